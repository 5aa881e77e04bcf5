"""Derivatives of functions: the functional style of the paper, and what nests.

Each takes a function `f` of one argument and a point `x`: a number, an array, or a nest of tuples, lists, dicts and
dataclasses of them (see `trees`); results have the structure of `x`. Every call opens a level of its own, so they
nest freely: a Hessian is the Jacobian of a gradient. At the outermost level results are plain floats and arrays.

Integers and narrower floats in `x` are promoted to float64; complex numbers raise an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.forward import Dual, tangent_of
from adbench.tape.core.node import Array, Scalar, new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import Active, RuleError, TapeError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.core.trees import tree_flatten, tree_leaves, tree_unflatten
from adbench.tape.core.values import constant, leaf_value, settle, shape_of
from adbench.tape.core.variable import ForwardModeError, current, forward_level, on_tape
from adbench.tape.fast.blocks import full
from adbench.tape.rules.shapes import asarray

Function = Callable[[Any], Any]
_SINGLE = (float, int, np.ndarray, np.generic, complex, Active)


class NotScalarError(TapeError, ValueError):
    """A gradient was asked of a function whose value is not a scalar."""


def flatten(x: Any, what: str) -> tuple[list[Value], Callable[[Sequence[Any]], Any]]:
    """The numbers and arrays in x in normal form, and the function that puts others in their places."""
    if type(x) is np.ndarray or isinstance(x, _SINGLE):
        return [leaf_value(x, what)], _first
    leaves, structure = tree_flatten(x)
    return [leaf_value(leaf, what) for leaf in leaves], lambda leaves: tree_unflatten(structure, leaves)


_first = operator.itemgetter(0)


def _name(f: Function) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _finished(cell: Any) -> Value:
    """An adjoint as a result: an array that belongs to the caller."""
    adj = cell.adj
    if type(adj) is np.ndarray:
        return adj if cell.own else adj.copy()
    return full(cell.shape, adj) if cell.shape and type(adj) is float else adj


def _is_on(y: Any, tape: Tape) -> bool:
    return isinstance(y, (Scalar, Array)) and y.tape is tape


def _plain(y: Any, tape: Tape) -> Value:
    """The value of y one level down."""
    return y.val if _is_on(y, tape) else settle(y)


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
        if not _is_scalar(y):
            raise NotScalarError(f"gradient: {_name(f)} should return a scalar, got {_described(y)}; see jacobian, vjp")
        propagate(tape, [(y.cell, 1.0)] if _is_on(y, tape) else [], cells)
        return _plain(y, tape), rebuild([_finished(cell) for cell in cells])


def _is_scalar(y: Any) -> bool:
    return isinstance(y, (float, int, Active, np.ndarray, np.generic)) and shape_of(y) == ()


def _described(y: Any) -> str:
    if isinstance(y, (np.ndarray, Active)):
        return f"an array of shape {shape_of(y)}"
    return f"{type(y).__name__} {y!r:.60}"


def _outputs(y: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The numbers and arrays that a function returned, and their structure; a list of scalars is a vector."""
    if isinstance(y, _SINGLE):
        return [y], lambda leaves: leaves[0]
    if isinstance(y, list):
        return [asarray(y)], lambda leaves: leaves[0]
    leaves, structure = tree_flatten(y)
    return list(leaves), lambda new: tree_unflatten(structure, new)


def vjp(f: Function, x: Any, w: Any) -> tuple[Value, Any]:
    """(f(x), wᵀJ): Σ_i w_i ∂f_i/∂x, in the structure of x; w has the structure and shapes of f(x)."""
    values, rebuild = flatten(x, "vjp: x")
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]
        ys, rebuild_y = _outputs(f(rebuild(leaves)))
        weights = _matching(w, ys, f"vjp: w for {_name(f)}")
        seeds = [(y, weight) for y, weight in zip(ys, weights, strict=True) if _is_on(y, tape)]
        propagate(tape, _merged(seeds), cells)
        return rebuild_y([_plain(y, tape) for y in ys]), rebuild([_finished(cell) for cell in cells])


def _merged(seeds: Sequence[tuple[Any, Value]]) -> list[tuple[Any, Value]]:
    """Seeds of a value that is returned twice are added."""
    total: dict[int, tuple[Any, Value]] = {}
    for y, weight in seeds:
        before = total.get(id(y.cell))
        total[id(y.cell)] = (y.cell, weight if before is None else before[1] + weight)
    return list(total.values())


def _matching(v: Any, like: Sequence[Any], what: str) -> list[Value]:
    """The leaves of v, checked against the shapes of these values."""
    leaves = [v] if isinstance(v, _SINGLE) or (isinstance(v, list) and len(like) == 1) else tree_leaves(v)
    if len(leaves) != len(like):
        raise ValueError(f"{what}: expected {len(like)} arrays, got {len(leaves)}")
    parts = [constant(asarray(leaf), what) for leaf in leaves]
    for part, value in zip(parts, like, strict=True):
        if shape_of(part) != shape_of(value):
            raise ValueError(f"{what}: expected shape {shape_of(value)}, got {shape_of(part)}")
    return parts


def jvp(f: Function, x: Any, v: Any) -> tuple[Value, Any]:
    """(f(x), J v): Σ_j ∂f/∂x_j v_j by forward mode, in the structure of f(x); v has the structure and shapes of x."""
    values, rebuild = flatten(x, "jvp: x")
    tangents = _matching(v, values, "jvp: v")
    with forward_level() as level:
        duals = [Dual(level, value, tan) for value, tan in zip(values, tangents, strict=True)]
        ys, rebuild_y = _outputs(f(rebuild(duals)))
    plain = [y.val if isinstance(y, Dual) and y.level == level else settle(y) for y in ys]
    return rebuild_y(plain), rebuild_y([tangent_of(y, level) for y in ys])


def hvp(f: Function, x: Any, v: Any) -> tuple[Value, Any]:
    """(f(x), H v) with H[i, j] = ∂²f/∂x_i∂x_j, in the structure of x: forward mode over the gradient."""
    (fx, _), (_, hv) = jvp(lambda point: gradient(f, point), x, v)
    return fx, hv


def jacobian(f: Function, x: Any, mode: str | None = None) -> tuple[Value, Any]:
    """(f(x), J): J[i, j] = ∂f_i/∂x_j, of shape f(x).shape + x.shape; for a nest x one such array in each place.

    mode "reverse": one recording and a sweep per element of f(x); "forward": one evaluation per element of x.
    By default whichever of the two is less, falling back on reverse where f has a part without forward mode.
    """
    fx, rows, rebuild_y, rebuild = _jacobian_blocks(f, x, mode)
    return fx, rebuild_y([rebuild(row) for row in rows])


Blocks = tuple[Value, list[list[Value]], Callable[[Sequence[Any]], Any], Callable[[Sequence[Any]], Any]]


def _jacobian_blocks(f: Function, x: Any, mode: str | None) -> Blocks:
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"jacobian: mode is 'forward', 'reverse' or None, got {mode!r}")
    values, rebuild = flatten(x, "jacobian: x")
    if mode == "forward":
        return _forward_blocks(f, values, rebuild)
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]
        ys, rebuild_y = _outputs(f(rebuild(leaves)))
        fewer_inputs = sum(_size(v) for v in values) < sum(_size(y) for y in ys)
        if mode is None and fewer_inputs:
            try:
                return _forward_blocks(f, values, rebuild)
            except (RuleError, ForwardModeError):
                pass  # some part of f has reverse mode only, and that recording is at hand
        rows = [_rows(y, tape, cells) for y in ys]
        return rebuild_y([_plain(y, tape) for y in ys]), rows, rebuild_y, rebuild


def _size(value: Value) -> int:
    return int(np.prod(shape_of(value), dtype=int))


def _rows(y: Any, tape: Tape, cells: Sequence[Any]) -> list[Value]:
    """∂y/∂x for each leaf, of shape y.shape + leaf.shape, by a sweep per element of y."""
    shape = shape_of(y)
    if not _is_on(y, tape):
        return [np.zeros(shape + cell.shape) if shape + cell.shape else 0.0 for cell in cells]
    lines: list[list[Value]] = [[] for _ in cells]
    for place in np.ndindex(shape):
        propagate(tape, [(y.cell, _unit(shape, place))], cells)
        for line, cell in zip(lines, cells, strict=True):
            line.append(_finished(cell))
    return [_assembled(line, shape, cell.shape) for line, cell in zip(lines, cells, strict=True)]


def _unit(shape: tuple[int, ...], place: tuple[int, ...]) -> Value:
    if not shape:
        return 1.0
    unit = np.zeros(shape)
    unit[place] = 1.0
    return unit


def _assembled(line: list[Value], shape: tuple[int, ...], leaf_shape: tuple[int, ...]) -> Value:
    """Slices ∂f_i/∂x as one array of shape f.shape + x.shape."""
    if not shape:
        return line[0]
    if not line:
        return np.zeros(shape + leaf_shape)
    return asarray(line).reshape(shape + leaf_shape)


def _forward_blocks(f: Function, values: list[Value], rebuild: Callable[[Sequence[Any]], Any]) -> Blocks:
    fx: Value = None
    columns: list[list[list[Value]]] = []
    structure: Callable[[Sequence[Any]], Any] = lambda leaves: leaves[0]  # noqa: E731  # replaced below
    for k, value in enumerate(values):
        columns.append([])
        for place in np.ndindex(shape_of(value)):
            with forward_level() as level:
                tans = [_unit(shape_of(u), place) if i == k else _none(u) for i, u in enumerate(values)]
                ys, structure = _outputs(f(rebuild([Dual(level, u, t) for u, t in zip(values, tans, strict=True)])))
            fx = structure([y.val if isinstance(y, Dual) and y.level == level else settle(y) for y in ys])
            columns[k].append([tangent_of(y, level) for y in ys])
    if fx is None:  # no input has any element
        ys, structure = _outputs(f(rebuild(values)))
        fx = structure(ys)
        return fx, [[np.zeros(shape_of(y) + shape_of(u)) for u in values] for y in ys], structure, rebuild
    rows = []
    first = next(column[0] for column in columns if column)
    for i in range(len(first)):
        row = []
        for column, value in zip(columns, values, strict=True):
            if not column:  # an input without elements
                row.append(np.zeros(shape_of(first[i]) + shape_of(value)))
                continue
            slices = asarray([parts[i] for parts in column])  # one axis for the element of x, in front
            shape = shape_of(column[0][i])
            last = slices if not shape else np.moveaxis(slices, 0, -1)
            row.append(last.reshape(shape + shape_of(value)) if shape + shape_of(value) else last[0])
        rows.append(row)
    return fx, rows, structure, rebuild


def _none(value: Value) -> Value:
    return np.zeros(shape_of(value)) if shape_of(value) else 0.0


def hessian(f: Function, x: Any) -> tuple[Value, Any, Any]:
    """(f(x), g, H): H[i, j] = ∂²f/∂x_i∂x_j of shape x.shape + x.shape; for a nest x a nest of nests.

    The Jacobian of the gradient, reverse over reverse: one recording, then a sweep for each input.
    """
    (fx, g), (_, h) = jacobian(lambda point: gradient(f, point), x, "reverse")
    return fx, g, h


def loop(step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
    """state ← step(i, state) for i = 0 … n-1. Recorded as the operations it performs; `compile` keeps it a loop."""
    if current.emit_loop is not None:
        return current.emit_loop(step, state, n)
    for i in range(n):
        state = step(i, state)
    return state
