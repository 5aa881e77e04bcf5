"""One-line messages on pipes, with a limit on the length of lines; nothing else uses the pipes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CHUNK = 2**16
HEAD = 4096  # bytes kept of an overlong line, for its `id`
MOST_BYTES = 2**28  # of a line

_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18})\s*[,}]')


class Malformed(Exception):
    """A line is not a message. `id` is its id, or None if not found."""

    def __init__(self, id: int | None, reason: str) -> None:
        super().__init__(reason)
        self.id, self.reason = id, reason


@dataclass(frozen=True)
class TooLong:
    """A line over the limit; only its beginning is kept."""

    head: bytes
    length: int


def lines(descriptor: int, most_bytes: int = MOST_BYTES) -> Iterator[bytes | TooLong]:
    """The lines that arrive, without their ends, until the other side closes.

    A line over `most_bytes` is read to its end and discarded. Bytes after the last newline are a line too.
    """
    held, thrown = bytearray(), 0
    while chunk := os.read(descriptor, CHUNK):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            if thrown or len(held) + len(part) > most_bytes:
                yield TooLong(bytes((held + part)[:HEAD]), thrown + len(held) + len(part))
            else:
                yield bytes(held + part)
            held, thrown = bytearray(), 0
        held += rest
        if thrown or len(held) > most_bytes:
            thrown += len(held) - min(len(held), HEAD)
            del held[HEAD:]
    if thrown:
        yield TooLong(bytes(held), thrown + len(held))
    elif held:
        yield bytes(held)


def id_in(line: bytes) -> int | None:
    """The id of a damaged message, or None."""
    match = _ID.search(line[:HEAD]) or _ID.search(line[-HEAD:])
    return int(match[1]) if match else None


def write_line(descriptor: int, text: str) -> None:
    """Write a whole line. Raises BrokenPipeError if nobody reads."""
    left = memoryview(text.encode() + b"\n")
    while left:
        left = left[os.write(descriptor, left) :]


@contextmanager
def own_pipes() -> Iterator[tuple[int, int]]:
    """Descriptors of standard input and output for this protocol alone.

    A library that prints meanwhile, also from C, prints to standard error; one that reads gets end of file.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        yield incoming, outgoing
    finally:
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
        for descriptor in (incoming, outgoing, nothing):
            os.close(descriptor)
