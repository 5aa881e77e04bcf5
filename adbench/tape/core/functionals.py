"""Derivatives of functions: the functional style of the paper.

Each takes a function `f` of one argument and a point `x`: a number, an array, or a nest of them (see `trees`). Results
have the structure of `x`. Every call opens a new level, so calls nest freely (see `jacobians`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adbench.tape.core.forward import Dual, tangent_of
from adbench.tape.core.node import Array, Scalar, new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import TapeError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.levels import forward_level, on_tape
from adbench.tape.trees import described, flatten, is_scalar, matching, name_of, outputs
from adbench.tape.values import settle

Function = Callable[[Any], Any]
Rebuild = Callable[[Sequence[Any]], Any]


class NotScalarError(TapeError, ValueError):
    """A function's value is not a scalar, so it has no gradient."""


def finished(cell: Any) -> Value:
    """An adjoint as a result: the caller owns the array."""
    return cell.writable() if cell.shape else cell.adj


def is_on(y: Any, tape: Tape) -> bool:
    """Whether y is recorded on this tape."""
    return isinstance(y, (Scalar, Array)) and y.tape is tape


def plain(y: Any, tape: Tape) -> Value:
    """The value of y one level down."""
    return y.val if is_on(y, tape) else settle(y)


def gradient(f: Function, x: Any) -> tuple[Value, Any]:
    """(f(x), g): value and gradient of a scalar function, g[i] = ∂f/∂x_i, in the structure and shapes of x.

    One recording, one reverse sweep: the cost is a small multiple of f's, whatever the number of inputs.
    Raises NotScalarError if f(x) is not a scalar (an array of one element is not).
    """
    values, rebuild = flatten(x, "gradient: x")
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]  # before calling f, where x[i] = v may rebind a leaf
        y = f(rebuild(leaves))
        if type(y) is Scalar and y.tape is tape:
            propagate(tape, ((y, 1.0),), cells)
            return y.val, rebuild([finished(cell) for cell in cells])
        if not is_scalar(y):
            got = described(y)
            raise NotScalarError(f"gradient: {name_of(f)} should return a scalar, got {got}; use jacobian or vjp")
        propagate(tape, [(y.cell, 1.0)] if is_on(y, tape) else [], cells)
        return plain(y, tape), rebuild([finished(cell) for cell in cells])


def vjp(f: Function, x: Any, w: Any) -> tuple[Value, Any]:
    """(f(x), wᵀJ): Σ_i w_i ∂f_i/∂x, in the structure of x; w has the structure and shapes of f(x)."""
    values, rebuild = flatten(x, "vjp: x")
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]
        ys, rebuild_y = outputs(f(rebuild(leaves)))
        weights = matching(w, ys, f"vjp: w for {name_of(f)}")
        seeds = merged([(y, weight) for y, weight in zip(ys, weights, strict=True) if is_on(y, tape)])
        propagate(tape, seeds, cells)
        return rebuild_y([plain(y, tape) for y in ys]), rebuild([finished(cell) for cell in cells])


def merged(seeds: Sequence[tuple[Any, Value]]) -> list[tuple[Any, Value]]:
    """(cell, adjoint) of each result. If a value is returned twice, its adjoints are added."""
    total: dict[int, tuple[Any, Value]] = {}
    for y, weight in seeds:
        before = total.get(id(y.cell))
        total[id(y.cell)] = (y.cell, weight if before is None else before[1] + weight)
    return list(total.values())


def jvp(f: Function, x: Any, v: Any) -> tuple[Value, Any]:
    """(f(x), J v): Σ_j ∂f/∂x_j v_j by forward mode, in the structure of f(x); v has the structure and shapes of x."""
    values, rebuild = flatten(x, "jvp: x")
    fx, tangents, rebuild_y = along(f, values, rebuild, matching(v, values, "jvp: v"))
    return rebuild_y(fx), rebuild_y(tangents)


def along(
    f: Function, values: list[Value], rebuild: Rebuild, tangents: Sequence[Value]
) -> tuple[list[Value], list[Value], Rebuild]:
    """Value and tangent of each result of f, and their structure."""
    with forward_level() as level:
        duals = [Dual(level, value, tan) for value, tan in zip(values, tangents, strict=True)]
        ys, rebuild_y = outputs(f(rebuild(duals)))
    fx = [y.val if isinstance(y, Dual) and y.level == level else settle(y) for y in ys]
    return fx, [tangent_of(y, level) for y in ys], rebuild_y
