"""The direct style of the paper: variables, `grad`, adjoints, each thread's current tape, and callbacks in the sweep.

mu, sigma = Var(0.5), Var(1.2)
lp = -0.5 * ((y - mu) / sigma) ** 2 - log(sigma)
lp.grad()
mu.adj, sigma.adj

A callback is opaque: no compiler can look into it, and forward mode cannot use it. If you can write the derivative as a
rule, prefer `function_gradients`. Source: "Thinking About Automatic Differentiation in Fun New Ways" (Stan, 2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adbench.tape.core import sweep
from adbench.tape.core.functionals import is_on
from adbench.tape.core.node import Array, Recorded, Scalar, new_leaf
from adbench.tape.core.recording import ASK, CALLBACK, Tape, new_cell
from adbench.tape.core.rule import TapeError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.fast.blocks import release
from adbench.tape.levels import ForwardModeError, close, current, leaves_of, loop, next_level, turns
from adbench.tape.trees import flatten
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


def reverse_pass_callback(fn: Callable[[], None]) -> None:
    """Call `fn()` when the reverse sweep reaches this point.

    By then the adjoints of all later values are complete. `fn` passes adjoints on. For y = a + b:

        a.adj += y.adj
        b.adj += y.adj
    """
    callback_tape().append((CALLBACK, new_cell(()), (), fn, {}, ASK))


def make_callback_var(value: Value, fn: Callable[[Any], None]) -> Any:
    """A new variable with this value, one node. The sweep calls `fn(variable)` when it reaches the node.

    y = make_callback_var(np.linalg.inv(a.val), lambda vi: add_to(a, -vi.val.T @ vi.adj @ vi.val.T))
    """
    tape = callback_tape()
    node = new_leaf(tape, leaf_value(value, "make_callback_var"))
    tape[-1] = (CALLBACK, node.cell, (), lambda: fn(node), {"value": node.val}, ASK)
    return node


Step = Callable[[int, Any], Any]


def checkpointed_loop(step: Step, state: Any, n: int) -> Any:
    """`loop(step, state, n)` with memory for √n steps in the reverse sweep; each step is evaluated twice.

    state ← step(i, state) for i = 0 … n-1. The state is a number, an array or a nest of them. `step` may use other
    variables from outside; called again with the same arguments, it must do the same. In forward mode, which records
    nothing, and in `compile`, which has its own loops, this is `loop`.

    The tape keeps √n states. When the sweep reaches one of the √n parts, it records the part again from its state,
    sweeps it, and drops its records. Source: Griewank (1992), "Achieving logarithmic growth of temporal and spatial
    complexity in reverse automatic differentiation", the schedule with one level.
    """
    tape = current.tapes[-1]
    if tape is None or current.emit_loop is not None:
        return loop(step, state, n)
    part = max(1, math.isqrt(n))
    for start in range(0, n, part):
        state = _shortened(tape, step, range(start, min(start + part, n)), state)
    return state


def _shortened(tape: Tape, step: Step, which: range, state: Any) -> Any:
    """These iterations: the tape keeps only the state before them and a callback."""
    before, rebuild = flatten(state, "checkpointed_loop: state")
    mark = len(tape)
    ends, rebuild_ends = flatten(turns(step, which, rebuild(before)), "checkpointed_loop: state")
    del tape[mark:]
    after: list[Any] = []

    def again() -> None:
        adjoints = [y.cell.adj if is_on(y, tape) else 0.0 for y in after]
        here = len(tape)
        starts = [new_leaf(tape, s.val) if is_on(s, tape) else s for s in before]
        # Captured: a step that assigns to its state must not reach the leaf whose adjoint the sweep needs.
        cells = [s.cell if is_on(s, tape) else None for s in starts]
        reached, _ = flatten(turns(step, which, rebuild(starts)), "checkpointed_loop: state")
        for y, adjoint in zip(reached, adjoints, strict=True):
            if is_on(y, tape):
                _give(y.cell, adjoint)
        sweep.PASSES[0](reversed(tape[here:]))
        del tape[here:]
        for s, cell in zip(before, cells, strict=True):
            if cell is not None:
                _give(s.cell, cell.adj)

    if any(is_on(y, tape) for y in ends):
        reverse_pass_callback(again)
    after.extend(new_leaf(tape, y.val) if is_on(y, tape) else y for y in ends)
    return rebuild_ends(after)


def _give(cell: Any, part: Value) -> None:
    cell.adj = cell.adj + part
    if cell.shape:
        cell.own = True
