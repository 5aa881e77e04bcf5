"""The four compositions of a library's two modes, each of which gives H v, from its NESTED transforms alone.

With g the function of the active inputs, D f(y) = <∇f(y), v>, J v = jvp(g, x, v) and wᵀ J = vjp(g, x, w):

    forward over forward    jvp(D f, x, e) for each unit vector e, with D f(y) = jvp(g, y, v)
    reverse over forward    vjp(D f, x, 1), with the same
    reverse over reverse    vjp(D f, x, 1), with D f(y) = <vjp(g, y, 1), v>
    forward over reverse    jvp(∇f, x, v), with ∇f(y) = vjp(g, y, 1)

The library traces, compiles and calls each as a plain function of the inputs, as for `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.model import tree
from adbench.model.backend import Backend, Call, of_active
from adbench.model.errors import Unsupported
from adbench.model.operator import TRANSFORMS, Operator, definition
from adbench.model.operator.definition import Mode

MOST_PASSES = 1_000
"""The most entries for forward over forward, which runs the function once for each entry of the inputs."""


def composed(
    backend: Backend, composition: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Call:
    """call(*args) -> H v in numpy, as the gradient; the last argument is v.

    Raises Unsupported, with the backend's reason, if it cannot nest the two modes.
    """
    modes = definition(composition).modes
    assert modes is not None
    outer, inner = modes
    for transform in (TRANSFORMS[inner], TRANSFORMS[outer]):
        if transform not in backend.nested:
            raise Unsupported(backend.not_nested or f"{backend.name} has no nestable {transform} in NESTED")
    x = tuple(backend.numpy_result(args[i]) for i in wrt)
    shapes = [np.shape(leaf) for leaf in tree.leaves(x)]
    ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in shapes])
    by_entries = outer == inner == "forward"
    if by_entries and ends[-1] > MOST_PASSES:
        raise Unsupported(f"forward over forward would run {ends[-1]:,} times, once for each entry of the inputs")
    seeds: list[tuple[Any, ...]] = [backend.native_inputs((e,)) for e in tree.units(x)] if by_entries else [()]
    example = (*args, *(seeds or [args[-1:]])[0])
    prepared = backend.prepare("value", _program(backend, outer, inner, f, wrt, shapes), example, wrt)

    def call(*inputs: Any) -> Any:
        columns = [backend.numpy_result(backend.waited(prepared(*inputs, *seed))) for seed in seeds]
        column = np.array(columns, dtype=np.float64) if by_entries else columns[0]
        return tree.rebuilt(x, list(map(np.reshape, np.split(column, ends[:-1]), shapes)))

    return call


def _program(
    backend: Backend, outer: Mode, inner: Mode, f: Callable[..., Any], wrt: tuple[int, ...], shapes: Sequence[Any]
) -> Callable[..., Any]:
    """program(*inputs, v) -> H v as one column; of forward over forward program(*inputs, v, e), its entry along e.

    The transforms get a function of one flat tuple: the leaves of the active inputs, which have these shapes.
    """
    xp, by_entries = backend.xp, outer == inner == "forward"

    def derivative(mode: Mode, g: Callable[..., Any], y: Any, v: Any) -> Any:
        """J v, or ∇g of a scalar function."""
        seed = tuple(tree.leaves(v)) if mode == "forward" else backend.to_native(1.0)
        return backend.nested[TRANSFORMS[mode]](g, y, seed)

    def program(*parts: Any) -> Any:
        count = len(parts) - (2 if by_entries else 1)
        inputs, vectors = parts[:count], parts[count:]
        x, whole = tuple(inputs[i] for i in wrt), of_active(f, inputs, wrt)

        def g(leaves: Any) -> Any:
            return whole(tree.filled(x, list(leaves)))

        def first(y: Any) -> Any:
            """D f, or ∇f for forward over reverse."""
            result = derivative(inner, g, y, vectors[0])
            return _dot(xp, result, vectors[0], shapes) if outer == inner == "reverse" else result

        second = derivative(outer, first, tuple(tree.leaves(x)), vectors[-1])
        return second if by_entries else _column(xp, list(second))

    return program


def _dot(xp: Any, a: Any, v: Any, shapes: Sequence[Any]) -> Any:
    """Σ over the entries of a and of the leaves of v."""
    total = 0.0
    for p, q, shape in zip(list(a), tree.leaves(v), shapes, strict=True):
        total = total + (xp.sum(p * q) if shape else p * q)
    return total


def _column(xp: Any, leaves: Sequence[Any]) -> Any:
    """The leaves' entries in one array: every library supports it."""
    columns = [xp.reshape(leaf, (-1,)) for leaf in leaves]
    return xp.concat(columns) if len(columns) > 1 else columns[0]
