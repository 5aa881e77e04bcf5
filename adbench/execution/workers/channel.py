"""Messages between the parent process and a worker: JSON with a length before it, on a private socket.

Arrays travel as their bytes; tuples arrive as lists. A worker's stdout and stderr belong to the library under test,
which may print anything.
"""

from __future__ import annotations

import select
import socket
import struct
from base64 import b64decode, b64encode
from json import dumps, loads  # by name, as the clock: the library in this process may replace the modules' functions
from time import monotonic
from typing import Any

import numpy as np

_LENGTH = struct.Struct("!Q")
MAX_BYTES = 64 * 2**20
_ARRAY = "bytes of an array"


class Closed(Exception):
    """The other side is gone, or sent an invalid message."""


class Channel:
    """One end of a socket pair.

    gone   a descriptor that becomes readable when the process at the other end dies, because a child of it may hold
           that end open. None if the system has no such descriptor.
    """

    def __init__(self, end: socket.socket, gone: int | None = None) -> None:
        self._socket, self._gone = end, gone

    def send(self, message: dict[str, Any], timeout: float | None = None) -> None:
        """Send one message. Raises Closed if nobody listens, TimeoutError if the other side does not read it within
        `timeout` seconds; ValueError, TypeError or RecursionError for an invalid message, before a byte is sent.
        """
        body = dumps(message, default=_plain).encode()
        if len(body) > MAX_BYTES:
            raise ValueError(f"a message of {len(body)} bytes; the limit is {MAX_BYTES}")
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next message. Raises TimeoutError after `timeout` seconds, even if bytes still arrive, and Closed at the
        end."""
        deadline = None if timeout is None else monotonic() + timeout
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > MAX_BYTES:
            raise Closed(f"a message of {length} bytes; the limit is {MAX_BYTES}")
        try:
            message = loads(self._exactly(length, deadline), object_hook=_restored)
        except (ValueError, TypeError, RecursionError) as error:
            raise Closed(f"not a message: {error}") from error
        if not isinstance(message, dict):
            raise Closed(f"not a message: {type(message).__name__}")
        return message

    def close(self) -> None:
        """Close this end; the other side then reads Closed."""
        self._socket.close()

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                self._wait(deadline)
                chunk = self._socket.recv(min(count - len(received), 2**20))
            except TimeoutError:
                raise
            except (OSError, ValueError) as error:  # ValueError: a library closed this end
                raise Closed(str(error)) from error
            if not chunk:
                raise Closed("the connection ended")
            received += chunk
        return bytes(received)

    def _wait(self, deadline: float | None) -> None:
        """Wait for input. Raises TimeoutError at the deadline, Closed if nobody can write."""
        left = None if deadline is None else deadline - monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        poll = select.poll()
        for descriptor in (self._socket.fileno(), self._gone):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        ready = dict(poll.poll(None if left is None else max(1.0, left * 1e3)))
        if not ready:
            raise TimeoutError
        if self._socket.fileno() not in ready:  # read the messages from before its death first
            raise Closed("the process ended")


def _plain(value: Any) -> dict[str, Any]:
    """An array, or a number of numpy's, as a dict. Raises TypeError for anything else."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.hasobject:
        raise TypeError(f"a message cannot have a {type(value).__name__}")
    return {_ARRAY: b64encode(value.tobytes()).decode(), "type": value.dtype.name, "shape": value.shape}


def _restored(plain: dict[str, Any]) -> Any:
    """The inverse."""
    if _ARRAY not in plain:
        return plain
    return np.frombuffer(bytearray(b64decode(plain[_ARRAY])), dtype=plain["type"]).reshape(plain["shape"])
