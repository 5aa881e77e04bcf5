"""A long loop in little memory: a few states are kept, and what lies between them is computed again in the sweep.

A loop of n steps records n times what a step does. Here √n states are kept and nothing else; when the sweep comes to
one of the √n parts, the part is recorded again from its state, swept, and its records are dropped. So the memory is
that of √n states and of √n steps, and each step is evaluated twice.

Griewank (1992), "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation":
the schedule with one level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from adbench.tape.callbacks import reverse_pass_callback
from adbench.tape.core import sweep
from adbench.tape.core.node import Array, Scalar, new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import Value
from adbench.tape.levels import current, loop
from adbench.tape.trees import flatten

Step = Callable[[int, Any], Any]


def checkpointed_loop(step: Step, state: Any, n: int) -> Any:
    """`loop(step, state, n)` for the reverse sweep in the memory of √n steps, each evaluated twice.

    state ← step(i, state) for i = 0 … n-1; the state is a number, an array or a nest of them, and `step` may use other
    variables from outside. It must do the same when it is called again with the same arguments. In forward mode, where
    nothing is recorded, and in `compile`, which treats loops itself, it is `loop`.
    """
    tape = current.tapes[-1]
    if tape is None or current.emit_loop is not None:
        return loop(step, state, n)
    part = max(1, math.isqrt(n))
    for start in range(0, n, part):
        state = _shortened(tape, step, range(start, min(start + part, n)), state)
    return state


def _turns(step: Step, which: range, state: Any) -> Any:
    for i in which:
        state = step(i, state)
    return state


def _on(tape: Tape, value: Value) -> bool:
    return isinstance(value, (Scalar, Array)) and value.tape is tape


def _shortened(tape: Tape, step: Step, which: range, state: Any) -> Any:
    """These turns, of which the tape keeps the state before them and a callback."""
    before, rebuild = flatten(state, "checkpointed_loop: state")
    mark = len(tape)
    ends, rebuild_ends = flatten(_turns(step, which, rebuild(before)), "checkpointed_loop: state")
    del tape[mark:]
    after: list[Any] = []

    def again() -> None:
        adjoints = [y.cell.adj if _on(tape, y) else 0.0 for y in after]
        here = len(tape)
        starts = [new_leaf(tape, s.val) if _on(tape, s) else s for s in before]
        # Captured, not read: a step that assigns to its state must not reach the leaf whose adjoint is wanted.
        cells = [s.cell if _on(tape, s) else None for s in starts]
        reached, _ = flatten(_turns(step, which, rebuild(starts)), "checkpointed_loop: state")
        _seed(tape, reached, adjoints)
        sweep.PASSES[0](reversed(tape[here:]))
        del tape[here:]
        for s, cell in zip(before, cells, strict=True):
            if cell is not None:
                _give(s.cell, cell.adj)

    if any(_on(tape, y) for y in ends):
        reverse_pass_callback(again)
    after.extend(new_leaf(tape, y.val) if _on(tape, y) else y for y in ends)
    return rebuild_ends(after)


def _seed(tape: Tape, reached: Sequence[Any], adjoints: Sequence[Value]) -> None:
    for y, adjoint in zip(reached, adjoints, strict=True):
        if _on(tape, y):
            _give(y.cell, adjoint)


def _give(cell: Any, part: Value) -> None:
    cell.adj = cell.adj + part
    if cell.shape:
        cell.own = True
