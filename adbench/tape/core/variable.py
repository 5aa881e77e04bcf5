"""The direct style of the paper: variables, `grad`, adjoints; and the tape each thread records on.

mu, sigma = Var(0.5), Var(1.2)
lp = -0.5 * ((y - mu) / sigma) ** 2 - log(sigma)
lp.grad()
mu.adj, sigma.adj
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from adbench.tape.core.node import Array, Recorded, Scalar, new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import TapeError, Value
from adbench.tape.core.values import leaf_value
from adbench.tape.fast.blocks import release

next_level = itertools.count(1).__next__
"""A number for a new level, higher than all before it (in any thread: levels of different threads never meet)."""


class ForwardModeError(TapeError):
    """Something that exists in reverse mode only was used while the innermost derivative is by forward mode."""


class _Current(threading.local):
    """The tapes of this thread, innermost last, with None for a level of forward mode. The first is there always.

    `emit_loop` is None, or what does the work of `loop` in this thread: while compiling, a loop stays a loop. `careful`
    says, while compiling, that sweeps are to see to zero times infinity at every node.
    """

    def __init__(self) -> None:
        self.tapes: list[Tape | None] = [Tape(next_level())]
        self.emit_loop: Callable[..., Any] | None = None
        self.careful = False


current = _Current()


def current_tape() -> Tape:
    """The innermost tape of this thread, on which `Var(...)` records."""
    return next(tape for tape in reversed(current.tapes) if tape is not None)


def callback_tape() -> Tape:
    """The tape for a Python callback: the innermost level, which must not be one of forward mode."""
    tape = current.tapes[-1]
    if tape is None:
        raise ForwardModeError("a reverse-pass callback has no forward mode; give both modes with function_gradients")
    return tape


class nested:  # noqa: N801  # used as `with nested():`, and quicker than a generator
    """A tape of its own for the block, whose memory is recovered at the end, also after an exception.

    Variables made in the block live on the new tape; variables from outside are constants to its `grad()`. What
    should outlive the block is taken out with `.val` or `.adj`.
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
        tape.close()


on_tape = nested  # what a functional opens is the same thing


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


def set_zero_all_adjoints() -> None:
    """Sets every adjoint on the current tape to zero. (`grad` does so by itself before a second sweep.)"""
    current_tape().zero_adjoints()


def recover_memory() -> None:
    """Frees the current tape, and the blocks of large arrays that wait for use.

    Variables recorded on the tape can be read afterwards, but not computed with.
    """
    tapes = current.tapes
    tape = current_tape()
    tapes[tapes.index(tape)] = Tape(next_level())
    tape.close()
    release()


class _Face(type):
    """Makes `isinstance(v, Var)` true for all values on a tape."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (Scalar, Array))


class Var(Recorded, metaclass=_Face):
    """An independent variable on the current tape: `Var(0.5)`, `Var([1.0, 2.0])`.

    v.val    its value: a float, or an array the engine owns (a copy is taken; integers become floats)
    v.adj    after `y.grad()`, the derivative ∂y/∂v, in the shape of v

    Results of operations are variables too. In truth all of them are `Scalar`s or `Array`s: results are made tens of
    millions of times, and a class without constructor arguments is made in a third of the time.
    """

    __slots__ = ()
    val: Any
    adj: Any

    def __new__(cls, value: Value) -> Any:
        """The variable: a `Scalar` or an `Array`."""
        return new_leaf(current_tape(), leaf_value(value, "Var"))
