"""Operators that a library lacks for functions whose value is an array, made from those it has.

A Jacobian by columns (J e for unit vectors e of the inputs), by rows (eᵀ J for those of the value), or, where the case
declares its pattern, by groups of columns that share no row; products from the Jacobian, or from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adbench.model import tree
from adbench.model.backend import Backend, Call
from adbench.model.case import function_of
from adbench.model.errors import Unsupported
from adbench.model.namespace import Namespace
from adbench.model.operator import WITH_VECTOR, Operator

Shape = tuple[int, ...]
Part = Callable[..., Any]
Make = Callable[[Part, tuple[Any, ...], tuple[Any, ...], Shape], Any]
"""(part, x, vectors, shape) -> result: `part(*vectors)` calls the operator that it is made from, in numpy."""


def is_array_valued(f: Callable[..., Any]) -> bool:
    """Whether the case behind a function says that its value is an array."""
    case = getattr(f, "case", None)
    return case is not None and case.is_array_valued


def instead(
    backend: Backend,
    operator: Operator,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    refusal: Exception,
) -> tuple[Call, str]:
    """The operator from the first of its fallbacks that the backend has, and how; raises `refusal` if it has none."""
    vectors = 1 if operator in WITH_VECTOR else 0
    inputs = args[: len(args) - vectors]
    shape = value_shape(backend, f, inputs)
    for needed, make in FALLBACKS.get(operator, ()):
        try:
            part = _prepared_part(backend, needed, f, inputs, wrt, shape)
        except (Unsupported, NotImplementedError):
            continue
        return _composed(backend, part, make, wrt, vectors, shape), f"from {needed}"
    raise refusal


def value_shape(backend: Backend, f: Callable[..., Any], inputs: tuple[Any, ...]) -> Shape:
    """The shape of the value, by the case on plain numpy. Raises Unsupported where that does not work."""
    plain = function_of(f.case, f.names, Namespace(np))  # type: ignore[attr-defined]  # see `function_of`
    numbers = tree.map_leaves(lambda leaf: leaf if tree.is_static(leaf) else backend.to_numpy(leaf), inputs)
    try:
        return np.shape(plain(*numbers))
    except Exception as error:
        raise Unsupported(f"its value's shape is not known, for it does not run on numpy: {error}") from error


def _prepared_part(
    backend: Backend,
    operator: Operator,
    f: Callable[..., Any],
    inputs: tuple[Any, ...],
    wrt: tuple[int, ...],
    shape: Shape,
) -> Call:
    """The operator that a fallback is made from; its example vector is of ones."""
    if operator not in WITH_VECTOR:
        return backend.prepare(operator, f, inputs, wrt)
    x = tuple(backend.numpy_result(inputs[i]) for i in wrt)
    ones = np.ones(shape) if operator == "vjp" else tree.like(x, np.ones_like)
    return backend.prepare(operator, f, (*inputs, *backend.native_inputs((ones,))), wrt)


def _composed(backend: Backend, part: Call, make: Make, wrt: tuple[int, ...], vectors: int, shape: Shape) -> Call:
    def call(*args: Any) -> Any:
        inputs = args[: len(args) - vectors]

        def at_inputs(*v: Any) -> Any:
            return backend.numpy_result(backend.waited(part(*inputs, *backend.native_inputs(v))))

        x = tuple(backend.numpy_result(inputs[i]) for i in wrt)
        return make(at_inputs, x, backend.numpy_result(args[len(inputs) :]), shape)

    return call


def _unit_values(shape: Shape) -> Iterator[Any]:
    for place in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[place] = 1.0
        yield unit


def _by_columns(part: Part, x: tuple[Any, ...], _: tuple[Any, ...], shape: Shape) -> Any:
    columns = iter([part(unit) for unit in tree.units(x)])

    def leaf(value: Any) -> Any:
        mine = [next(columns) for _ in range(value.size)]
        stacked = np.stack(mine, axis=-1) if mine else np.zeros((*shape, 0))
        return stacked.reshape(shape + value.shape)

    return tree.map_leaves(lambda value: leaf(np.asarray(value)), x)


def _by_rows(part: Part, x: tuple[Any, ...], _: tuple[Any, ...], shape: Shape) -> Any:
    rows = [tree.leaves(part(unit)) for unit in _unit_values(shape)]
    stacked = [np.reshape([row[k] for row in rows], shape + np.shape(leaf)) for k, leaf in enumerate(tree.leaves(x))]
    return tree.filled(x, stacked)


def _times(jacobian: Any, v: Any) -> Any:
    """J v = Σ over the inputs' entries."""
    pairs = zip(tree.leaves(jacobian), tree.leaves(v), strict=True)
    return sum(np.tensordot(block, step, axes=np.ndim(step)) for block, step in pairs)


def _from_left(w: Any, jacobian: Any) -> Any:
    """wᵀ J = Σ over the value's entries."""
    return tree.map_leaves(lambda block: np.tensordot(w, block, axes=np.ndim(w)), jacobian)


def _jvp_by_rows(part: Part, x: tuple[Any, ...], vectors: tuple[Any, ...], shape: Shape) -> Any:
    return _times(_by_rows(part, x, (), shape), vectors[0])


def _vjp_by_columns(part: Part, x: tuple[Any, ...], vectors: tuple[Any, ...], shape: Shape) -> Any:
    return _from_left(vectors[0], _by_columns(part, x, (), shape))


FALLBACKS: Mapping[Operator, tuple[tuple[Operator, Make], ...]] = {
    "jacobian": (("jvp", _by_columns), ("vjp", _by_rows)),
    "jvp": (("jacobian", lambda part, x, vectors, shape: _times(part(), vectors[0])), ("vjp", _jvp_by_rows)),
    "vjp": (("jacobian", lambda part, x, vectors, shape: _from_left(vectors[0], part())), ("jvp", _vjp_by_columns)),
}


def coloured(
    backend: Backend,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    pattern: tuple[Sequence[int], Sequence[int]],
) -> tuple[Call, str]:
    """The Jacobian of a declared pattern, in as few directions as there are groups of columns, and how.

    Its leaves are scipy.sparse arrays of (entries of the value, entries of the input).

    Raises Unsupported where the backend has no jvp of its own.
    """
    from scipy import sparse  # here, not above: a second that every worker would wait for

    from adbench.execution.operators.colouring import groups

    x = tuple(backend.numpy_result(args[i]) for i in wrt)
    leaves = [np.asarray(leaf) for leaf in tree.leaves(x)]
    starts = np.cumsum([0, *(leaf.size for leaf in leaves)])
    outputs = int(np.prod(value_shape(backend, f, args), dtype=np.intp))
    jvp = _prepared_part(backend, "jvp", f, args, wrt, ())
    order = np.lexsort((pattern[0], pattern[1]))  # by columns, as the matrices below are held
    rows, columns = np.asarray(pattern[0])[order], np.asarray(pattern[1])[order]
    group = groups(rows, columns, (outputs, int(starts[-1])))
    count = int(group.max(initial=-1)) + 1

    def direction(k: int) -> Any:
        ones = (group == k).astype(np.float64)
        parts = [ones[a:b].reshape(leaf.shape) for a, b, leaf in zip(starts, starts[1:], leaves, strict=False)]
        return backend.native_inputs((tree.rebuilt(x, parts),))

    directions = [direction(k) for k in range(count)]
    places = np.searchsorted(columns, starts)
    heights = np.searchsorted(columns, np.arange(starts[-1] + 1))

    def call(*inputs: Any) -> Any:
        found = [backend.numpy_result(backend.waited(jvp(*inputs, *v))) for v in directions]
        values = np.stack([np.ravel(column) for column in found])[group[columns], rows]
        blocks = [
            sparse.csc_array(
                (values[low:high], rows[low:high], heights[start : end + 1] - low), shape=(outputs, end - start)
            )
            for low, high, start, end in zip(places, places[1:], starts, starts[1:], strict=False)
        ]
        return tree.filled(x, blocks)

    return call, f"from jvp, coloured: {count} directions for {int(starts[-1])} columns"
