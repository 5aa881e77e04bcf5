"""Messages between the runner and a worker: JSON with a length before it, on a socket of their own.

A worker's stdout and stderr belong to the library under test, which may print anything.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("!Q")
MAX_BYTES = 64 * 2**20


class Closed(Exception):
    """The other side is gone, or sent what is no message."""


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: dict[str, Any]) -> None:
        """Send one message. Raises Closed where nobody listens."""
        body = json.dumps(message).encode()
        try:
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next message. Raises TimeoutError after `timeout` seconds, however slowly it drips in, and Closed at
        the end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > MAX_BYTES:
            raise Closed(f"a message of {length} bytes; at most {MAX_BYTES} are taken")
        try:
            message = json.loads(self._exactly(length, deadline))
        except ValueError as error:
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
            if deadline is not None and deadline <= time.monotonic():
                raise TimeoutError
            self._socket.settimeout(None if deadline is None else max(1e-3, deadline - time.monotonic()))
            try:
                chunk = self._socket.recv(min(count - len(received), 2**20))
            except TimeoutError:
                raise
            except OSError as error:
                raise Closed(str(error)) from error
            if not chunk:
                raise Closed("the connection ended")
            received += chunk
        return bytes(received)
