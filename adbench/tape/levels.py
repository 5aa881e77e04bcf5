"""The levels that are open in this thread: the tape of each, innermost last, and None for a level of forward mode."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from adbench.tape.core.recording import Record, Tape
from adbench.tape.core.rule import TapeError

next_level = itertools.count(1).__next__
"""A number for a new level, higher than all before it (in any thread: levels of different threads never meet)."""


class ForwardModeError(TapeError):
    """Something that exists in reverse mode only was used while the innermost derivative is by forward mode."""


class ClosedTapeError(TapeError):
    """A variable was used after the tape that held it was cleared."""


class ClosedTape(Tape):
    """A tape that has given its memory back."""

    __slots__ = ()

    def append(self, record: Record) -> None:
        """Refuses: nothing may be recorded any more."""
        raise ClosedTapeError(
            f"{record[0].name}: an argument is a variable of a tape that was cleared: its `gradient` or `nested` block "
            f"has ended. Take what should outlive the block with .val"
        )


def close(tape: Tape) -> None:
    """Frees all records. Using a variable of this tape afterwards is an error."""
    tape.clear()
    tape.__class__ = ClosedTape


class _Current(threading.local):
    """The open levels; the first is always there. The rest is for a compiler, which records functions once.

    emit_loop   None, or what does the work of `loop` in this thread: while compiling, a loop stays a loop
    careful     whether, while compiling, sweeps treat zero times infinity at every node
    """

    def __init__(self) -> None:
        self.tapes: list[Tape | None] = [Tape(next_level())]
        self.emit_loop: Callable[..., Any] | None = None
        self.careful = False


current = _Current()


class nested:  # noqa: N801  # used as `with nested():`, and quicker than a generator
    """A new tape for the block, whose memory is recovered at the end, also after an exception.

    Variables made in the block live on the new tape; variables from outside are constants to its `grad()`. Take what
    should outlive the block out with `.val` or `.adj`.
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
        else:  # a level inside was left open
            del tapes[tapes.index(tape) :]
        close(tape)


on_tape = nested  # a functional opens the same thing


@contextmanager
def forward_level() -> Iterator[int]:
    """The number of a new level of forward mode, open during the block."""
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
    for i in range(n):
        state = step(i, state)
    return state
