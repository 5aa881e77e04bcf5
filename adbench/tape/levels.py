"""The levels open in this thread, innermost last: the tape of each, or None for a level of forward mode."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from adbench.tape.core.recording import LEAF, Record, Tape
from adbench.tape.core.rule import TapeError

next_level = itertools.count(1).__next__
"""A number for a new level, higher than all earlier numbers of all threads."""


class ForwardModeError(TapeError):
    """An operation without forward mode was used inside a derivative by forward mode."""


class ClosedTapeError(TapeError):
    """A variable was used after its tape was cleared."""


class NotCompilableError(TapeError):
    """A function cannot be recorded, or does not run as machine code; the eager engine can run it."""


class ClosedTape(Tape):
    """A tape that has freed its records."""

    __slots__ = ()

    def append(self, record: Record) -> None:
        """Raise ClosedTapeError: this tape takes no more records."""
        raise ClosedTapeError(
            f"{record[0].name}: an argument is a variable of a tape that was cleared, because its `gradient` or "
            f"`nested` block has ended; take its value with .val inside the block"
        )


def close(tape: Tape) -> None:
    """Free all records. Using a variable of this tape afterwards is an error."""
    tape.clear()
    tape.__class__ = ClosedTape


def leaves_of(tape: Tape) -> list[tuple[Any, Any]]:
    """(cell, value) of each independent variable on the tape."""
    return [(record[1], record[3]) for record in tape if record[0] is LEAF]


class _Current(threading.local):
    """The open levels; the first always exists. The other attributes serve the compiler, which records functions once.

    emit_loop   None, or the function that replaces `loop` in this thread: while compiling, a loop stays a loop
    careful     whether, while compiling, sweeps treat zero times infinity at every node
    one_sided   whether a derivative that is being computed is that of a kink along a direction
    """

    def __init__(self) -> None:
        self.tapes: list[Tape | None] = [Tape(next_level())]
        self.emit_loop: Callable[..., Any] | None = None
        self.careful = False
        self.one_sided = False


current = _Current()


class nested:  # noqa: N801  # used as `with nested():`, and quicker than a generator
    """Open a new tape for the block; free its memory at the end, also after an exception.

    Variables made in the block live on the new tape; variables from outside are constants to its `grad()`. To keep a
    result after the block, take its `.val` or `.adj`.
    """

    __slots__ = ("tape", "tapes")

    def __enter__(self) -> Tape:
        self.tapes = current.tapes
        self.tape = Tape(next_level())
        self.tapes.append(self.tape)
        return self.tape

    def __exit__(self, *_exception: object) -> None:
        tapes, tape = self.tapes, self.tape
        if tapes[-1] is tape:
            tapes.pop()
        else:  # an inner level is still open
            del tapes[tapes.index(tape) :]
        close(tape)


on_tape = nested  # functionals open their tapes by this name


@contextmanager
def forward_level() -> Iterator[int]:
    """Open a new level of forward mode for the block; yields its number."""
    tapes = current.tapes
    depth = len(tapes)
    tapes.append(None)
    try:
        yield next_level()
    finally:
        del tapes[depth:]


def loop(step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
    """state ← step(i, state) for i = 0 … n-1. Recorded as the operations it performs; `compile` keeps it a loop."""
    if current.emit_loop is not None:
        return current.emit_loop(step, state, n)
    return turns(step, range(n), state)


def turns(step: Callable[[int, Any], Any], which: Iterable[int], state: Any) -> Any:
    """These iterations of a loop, one after the other."""
    for i in which:
        state = step(i, state)
    return state
