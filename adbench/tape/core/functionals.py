"""Derivatives of functions: the functional style of the paper, and what nests.

Each takes a function `f` of one argument and a point `x`: a number, an array, or a nest of tuples, lists, dicts and
dataclasses of them (see `trees`); results have the structure of `x`. Every call opens a level of its own, so they
nest freely: a Hessian is the Jacobian of a gradient. At the outermost level results are plain floats and arrays.

Integers and narrower floats in `x` are promoted to float64; complex numbers raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual, tangent_of
from adbench.tape.core.node import Array, Scalar, new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import RuleError, TapeError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.levels import ForwardModeError, forward_level, on_tape
from adbench.tape.trees import described, flatten, is_scalar, matching, outputs
from adbench.tape.values import asarray, settle, shape_of

Function = Callable[[Any], Any]
Rebuild = Callable[[Sequence[Any]], Any]


class NotScalarError(TapeError, ValueError):
    """A gradient was asked of a function whose value is not a scalar."""


def _name(f: Function) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _finished(cell: Any) -> Value:
    """An adjoint as a result: an array that belongs to the caller."""
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
        cells = [leaf.cell for leaf in leaves]  # before f, which may rebind a leaf by x[i] = v
        y = f(rebuild(leaves))
        if type(y) is Scalar and y.tape is tape:
            propagate(tape, ((y, 1.0),), cells)
            return y.val, rebuild([_finished(cell) for cell in cells])
        if not is_scalar(y):
            raise NotScalarError(f"gradient: {_name(f)} should return a scalar, got {described(y)}; see jacobian, vjp")
        propagate(tape, [(y.cell, 1.0)] if is_on(y, tape) else [], cells)
        return plain(y, tape), rebuild([_finished(cell) for cell in cells])


def vjp(f: Function, x: Any, w: Any) -> tuple[Value, Any]:
    """(f(x), wᵀJ): Σ_i w_i ∂f_i/∂x, in the structure of x; w has the structure and shapes of f(x)."""
    values, rebuild = flatten(x, "vjp: x")
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]
        ys, rebuild_y = outputs(f(rebuild(leaves)))
        weights = matching(w, ys, f"vjp: w for {_name(f)}")
        propagate(tape, merged([(y, weight) for y, weight in zip(ys, weights, strict=True) if is_on(y, tape)]), cells)
        return rebuild_y([plain(y, tape) for y in ys]), rebuild([_finished(cell) for cell in cells])


def merged(seeds: Sequence[tuple[Any, Value]]) -> list[tuple[Any, Value]]:
    """(cell, adjoint) of each result; the adjoints of a value that is returned twice are added."""
    total: dict[int, tuple[Any, Value]] = {}
    for y, weight in seeds:
        before = total.get(id(y.cell))
        total[id(y.cell)] = (y.cell, weight if before is None else before[1] + weight)
    return list(total.values())


def jvp(f: Function, x: Any, v: Any) -> tuple[Value, Any]:
    """(f(x), J v): Σ_j ∂f/∂x_j v_j by forward mode, in the structure of f(x); v has the structure and shapes of x."""
    values, rebuild = flatten(x, "jvp: x")
    fx, tangents, rebuild_y = _along(f, values, rebuild, matching(v, values, "jvp: v"))
    return rebuild_y(fx), rebuild_y(tangents)


def _along(
    f: Function, values: list[Value], rebuild: Rebuild, tangents: Sequence[Value]
) -> tuple[list[Value], list[Value], Rebuild]:
    """Value and tangent of each result of f, and their structure."""
    with forward_level() as level:
        duals = [Dual(level, value, tan) for value, tan in zip(values, tangents, strict=True)]
        ys, rebuild_y = outputs(f(rebuild(duals)))
    fx = [y.val if isinstance(y, Dual) and y.level == level else settle(y) for y in ys]
    return fx, [tangent_of(y, level) for y in ys], rebuild_y


def hvp(f: Function, x: Any, v: Any) -> tuple[Value, Any]:
    """(f(x), H v) with H[i, j] = ∂²f/∂x_i∂x_j, in the structure of x: forward mode over the gradient."""
    (fx, _), (_, hv) = jvp(lambda point: gradient(f, point), x, v)
    return fx, hv


def jacobian(f: Function, x: Any, mode: str | None = None) -> tuple[Value, Any]:
    """(f(x), J): J[i, j] = ∂f_i/∂x_j, of shape f(x).shape + x.shape; for a nest x one such array in each place.

    mode "reverse": one recording and a sweep per element of f(x); "forward": one evaluation per element of x.
    By default whichever of the two is less, falling back on reverse where f has a part without forward mode.
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"jacobian: mode is 'forward', 'reverse' or None, got {mode!r}")
    values, rebuild = flatten(x, "jacobian: x")
    if mode == "forward":
        return _by_columns(f, values, rebuild)
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]
        ys, rebuild_y = outputs(f(rebuild(leaves)))
        if mode is None and sum(map(_size, values)) < sum(map(_size, ys)):
            try:
                return _by_columns(f, values, rebuild)
            except (RuleError, ForwardModeError):
                pass  # some part of f has reverse mode only, and that recording is at hand
        blocks = [rebuild(rows(y, tape, cells)) for y in ys]
        return rebuild_y([plain(y, tape) for y in ys]), rebuild_y(blocks)


def _size(value: Value) -> int:
    return int(np.prod(shape_of(value), dtype=int))


def rows(y: Any, tape: Tape, cells: Sequence[Any]) -> list[Value]:
    """∂y/∂x for each leaf, of shape y.shape + leaf.shape, by a sweep per element of y."""
    shape = shape_of(y)
    lines: list[list[Value]] = [[] for _ in cells]
    for place in np.ndindex(shape if is_on(y, tape) else (0,)):
        propagate(tape, [(y.cell, _unit(shape, place))], cells)
        for line, cell in zip(lines, cells, strict=True):
            line.append(_finished(cell))
    return [_assembled(line, shape, cell.shape) for line, cell in zip(lines, cells, strict=True)]


def _unit(shape: tuple[int, ...], place: tuple[int, ...] | None) -> Value:
    """1 in one place, 0 elsewhere; 0 everywhere without a place."""
    unit = np.zeros(shape)
    if place is not None:
        unit[place] = 1.0
    return unit if shape else float(unit)


def _assembled(slices: list[Value], shape: tuple[int, ...], leaf_shape: tuple[int, ...]) -> Value:
    """Slices ∂f_i/∂x as one array of shape f.shape + x.shape; zeros if there are none."""
    if not slices:
        return settle(np.zeros(shape + leaf_shape))
    return asarray(slices).reshape(shape + leaf_shape) if shape else slices[0]


def _by_columns(f: Function, values: list[Value], rebuild: Rebuild) -> tuple[Value, Any]:
    """The Jacobian by one evaluation of f in forward mode for each element of the inputs."""
    fx: list[Value] | None = None
    rebuild_y: Rebuild
    columns: list[list[list[Value]]] = []
    for k, value in enumerate(values):
        columns.append([])
        for place in np.ndindex(shape_of(value)):
            directions = [_unit(shape_of(u), place if i == k else None) for i, u in enumerate(values)]
            fx, tangents, rebuild_y = _along(f, values, rebuild, directions)
            columns[k].append(tangents)
    if fx is None:  # no input has any element
        fx, _, rebuild_y = _along(f, values, rebuild, [_unit(shape_of(u), None) for u in values])
    blocks = []
    for i, y in enumerate(fx):
        pairs = zip(columns, values, strict=True)
        blocks.append(rebuild([_side_by_side([c[i] for c in column], shape_of(y), shape_of(u)) for column, u in pairs]))
    return rebuild_y(fx), rebuild_y(blocks)


def _side_by_side(columns: list[Value], shape: tuple[int, ...], leaf_shape: tuple[int, ...]) -> Value:
    """Columns ∂f/∂x_j as one array of shape f.shape + x.shape; zeros if there are none."""
    if not columns or not leaf_shape:
        return columns[0] if columns else np.zeros(shape + leaf_shape)
    return np.moveaxis(asarray(columns), 0, -1).reshape(shape + leaf_shape)


def hessian(f: Function, x: Any) -> tuple[Value, Any, Any]:
    """(f(x), g, H): H[i, j] = ∂²f/∂x_i∂x_j of shape x.shape + x.shape; for a nest x a nest of nests.

    The Jacobian of the gradient, reverse over reverse: one recording, then a sweep for each input.
    """
    (fx, g), (_, h) = jacobian(lambda point: gradient(f, point), x, "reverse")
    return fx, g, h
