"""The direct style of the paper: variables, `grad`, adjoints, and each thread's current tape.

mu, sigma = Var(0.5), Var(1.2)
lp = -0.5 * ((y - mu) / sigma) ** 2 - log(sigma)
lp.grad()
mu.adj, sigma.adj
"""

from __future__ import annotations

from typing import Any

from adbench.tape.core.node import Array, Recorded, Scalar, new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import TapeError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.fast.blocks import release
from adbench.tape.levels import ForwardModeError, close, current, leaves_of, next_level
from adbench.tape.values import leaf_value


def current_tape() -> Tape:
    """The innermost tape of this thread, on which `Var(...)` records."""
    return next(tape for tape in reversed(current.tapes) if tape is not None)


def callback_tape() -> Tape:
    """The tape for a Python callback: that of the innermost level, which must be of reverse mode."""
    tape = current.tapes[-1]
    if tape is None:
        raise ForwardModeError("a reverse-pass callback has no forward mode; give both modes with function_gradients")
    return tape


def grad(y: Recorded, wrt: Any = None) -> Any:
    """Sweep the tape from this scalar: afterwards v.adj = ∂y/∂v for every v on the tape.

    With `wrt`, a variable or a list of variables, also return their adjoints. Every sweep starts from zero adjoints, so
    a second call gives no stale sums.
    """
    if y.cell.shape != ():
        raise TapeError(
            f"grad: expected a scalar, got a value of shape {y.cell.shape}; use jacobian, or vjp with weights"
        )
    wanted = [] if wrt is None else wrt if isinstance(wrt, (list, tuple)) else [wrt]
    for v in wanted:
        if getattr(v, "tape", None) is not y.tape:
            raise TapeError(f"grad: wrt must hold variables of the result's tape, got {v!r:.60}")
    propagate(y.tape, [(y.cell, 1.0)], [cell for cell, _ in leaves_of(y.tape)], keep=True)
    if wrt is None:
        return None
    return [v.adj for v in wanted] if isinstance(wrt, (list, tuple)) else wrt.adj


setattr(Recorded, "grad", grad)  # noqa: B010  # a method of every value on a tape


def set_zero_all_adjoints() -> None:
    """Set every adjoint on the current tape to zero. (`grad` does this before a second sweep.)"""
    current_tape().zero_adjoints()


def recover_memory() -> None:
    """Free the current tape, and the unused memory blocks of large arrays.

    Afterwards you can read variables of the tape, but not compute with them.
    """
    tapes = current.tapes
    tape = current_tape()
    tapes[tapes.index(tape)] = Tape(next_level())
    close(tape)
    release()


class _Face(type):
    """Metaclass that makes `isinstance(v, Var)` true for all values on a tape."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (Scalar, Array))


class Var(Recorded, metaclass=_Face):
    """An independent variable on the current tape: `Var(0.5)`, `Var([1.0, 2.0])`.

    v.val    its value: a float, or an array the engine owns (a copy is taken; integers become floats)
    v.adj    after `y.grad()`, the derivative ∂y/∂v, in the shape of v

    Results of operations are variables too. All of them are really `Scalar`s or `Array`s: a program creates tens of
    millions of results, and a class without constructor arguments takes a third of the time to create.
    """

    __slots__ = ()
    val: Any
    adj: Any

    def __new__(cls, value: Value) -> Any:
        """The variable: a `Scalar` or an `Array`."""
        return new_leaf(current_tape(), leaf_value(value, "Var"))
