"""Pause Python's cyclic garbage collector while a tape or a compiled program grows.

The collector visits all young objects after every 700 new ones, and all objects now and then. The objects of a tape are
in use, so these visits find nothing: they took most of the time of a gradient of a long loop. While a block (`nested`,
`gradient`, …) holds a pause, the collector starts after `PATIENCE` new objects only. So cyclic garbage of the program
itself still goes, at the latest after that many.

Small tapes pay nothing. A block gets its pause from the first collection that meets its tape, or when it opens, if the
last block with a pause had a long tape. The end of the block, also by an exception, gives the pause back. When no block
of any thread holds one, the thresholds are as before. A collector that is off stays off, and thresholds that a program
sets meanwhile stay. `paused` is the same for a block without a tape, such as the lowering of a recording.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from adbench.tape.core.recording import Tape
from adbench.tape.levels import close, current, nested, next_level

PATIENCE = 2**20
"""New objects between two collections during a pause, about 100 MB of them."""

LONG = 256
"""Records that make a tape long; the collector first meets a tape of scalars after some 350."""

_holders: set[object] = set()  # what holds a pause: the tape of a block, or a key of `paused`
_lock = threading.RLock()  # reentrant, because a collection may start where it is held


class _CollectorState:
    """What to restore, and what to expect."""

    thresholds: tuple[int, int, int] | None = None  # those of the program, during a pause
    expected = False  # whether the last block with a pause had a long tape


def pause(holder: object) -> None:
    """Start a pause, or take part in it, until `resume`."""
    with _lock:
        _holders.add(holder)
        now = gc.get_threshold()
        if now[0] and now[0] != PATIENCE:
            _CollectorState.thresholds = now
            gc.set_threshold(PATIENCE, *now[1:])


def resume(ended: Collection[object], was_long: bool | None = None) -> None:
    """Give back the pauses of blocks that have ended, and note whether their tape was long, if they had one."""
    with _lock:
        before = len(_holders)
        _holders.difference_update(ended)
        if len(_holders) == before:
            return
        if was_long is not None:
            _CollectorState.expected = was_long
        if not _holders and _CollectorState.thresholds is not None:
            if gc.get_threshold()[0] == PATIENCE:
                gc.set_threshold(*_CollectorState.thresholds)
            _CollectorState.thresholds = None


@contextmanager
def paused() -> Iterator[None]:
    """Hold a pause in the block."""
    holder = object()
    if gc.isenabled():
        pause(holder)
    try:
        yield
    finally:
        resume([holder])


def after_collection(phase: str, _info: dict[str, int]) -> None:
    """Python calls this before and after each collection, in the thread that started it."""
    if phase == "stop" and gc.isenabled():
        resume([holder for holder in tuple(_holders) if not holder], False)  # an interrupt may have left one
        for tape in getattr(current, "tapes", ())[1:]:  # none while a new thread makes its `current`
            if tape is not None and len(tape) >= LONG:
                pause(tape)


def enter(self: nested) -> Tape:
    """`nested.__enter__`, with a pause where a long tape is expected."""
    self.tapes = current.tapes
    self.tape = tape = Tape(next_level())
    self.tapes.append(tape)
    if _CollectorState.expected and not _holders and gc.isenabled():
        pause(tape)
    return tape


def leave(self: nested, *_exception: object) -> None:
    """`nested.__exit__`, which gives the pause back once the tape is freed: until then, a collection would visit it."""
    tapes, tape = self.tapes, self.tape
    if tapes[-1] is tape and not _holders:
        tapes.pop()
        close(tape)
        return
    first, was_long = tapes.index(tape), len(tape) >= LONG
    ended = tapes[first:]
    del tapes[first:]
    try:
        close(tape)
    finally:
        resume(ended, was_long)
