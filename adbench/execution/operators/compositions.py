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
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.model import tree
from adbench.model.backend import Backend, Call, of_active
from adbench.model.errors import Unsupported
from adbench.model.operator import TRANSFORMS, Operator, definition

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
    derivatives = _Modes(backend, f, wrt, [np.shape(leaf) for leaf in tree.leaves(x)])
    if outer == inner == "forward":
        return _by_entries(derivatives, args, x)
    program = derivatives.forward_over_reverse if outer == "forward" else derivatives.reverse_over(inner)
    prepared = backend.prepare("value", program, args, wrt)

    def call(*inputs: Any) -> Any:
        return derivatives.nested(x, backend.numpy_result(backend.waited(prepared(*inputs))))

    return call


def _by_entries(modes: _Modes, args: tuple[Any, ...], x: tuple[Any, ...]) -> Call:
    """Forward over forward: one program, called for each entry."""
    backend = modes.backend
    units = [backend.native_inputs((unit,)) for unit in tree.units(x)] if modes.size <= MOST_PASSES else []
    if modes.size > MOST_PASSES:
        raise Unsupported(f"forward over forward would run {modes.size:,} times, once for each entry of the inputs")
    prepared = backend.prepare("value", modes.forward_over_forward, (*args, *(units or [args[-1:]])[0]), modes.wrt)

    def call(*inputs: Any) -> Any:
        derivatives = [backend.numpy_result(backend.waited(prepared(*inputs, *unit))) for unit in units]
        return modes.nested(x, np.array(derivatives, dtype=np.float64))

    return call


@dataclass(frozen=True)
class _Modes:
    """Programs for a backend. Their arguments: a function's inputs, the vector v, and the unit vector if needed.

    The transforms get a function of one flat tuple: the leaves of the active inputs, with shapes `shapes`.
    """

    backend: Backend
    f: Callable[..., Any]
    wrt: tuple[int, ...]
    shapes: Sequence[tuple[int, ...]]

    @property
    def size(self) -> int:
        """The number of entries of the active inputs."""
        return sum(int(np.prod(shape, dtype=int)) for shape in self.shapes)

    def forward_over_forward(self, *parts: Any) -> Any:
        """The entry of H v along the unit vector, which comes last."""
        *inputs, v, unit = parts
        g, x = self.of_leaves(inputs)
        return self.forward(self.slope("forward", g, v), x, _leaves(unit))

    def forward_over_reverse(self, *parts: Any) -> Any:
        """H v as one column."""
        *inputs, v = parts
        g, x = self.of_leaves(inputs)
        return self.column(self.forward(lambda y: self.reverse(g, y), x, _leaves(v)))

    def reverse_over(self, inner: str) -> Callable[..., Any]:
        """H v as one column, by reverse mode over this one."""

        def program(*parts: Any) -> Any:
            *inputs, v = parts
            g, x = self.of_leaves(inputs)
            return self.column(self.reverse(self.slope(inner, g, v), x))

        return program

    def slope(self, mode: str, g: Callable[..., Any], v: Any) -> Callable[[Any], Any]:
        """The derivative of g along v, a number, as a function of the leaves."""
        if mode == "forward":
            return lambda y: self.forward(g, y, _leaves(v))
        return lambda y: self.dot(self.reverse(g, y), _leaves(v))

    def of_leaves(self, inputs: Sequence[Any]) -> tuple[Callable[[Any], Any], tuple[Any, ...]]:
        """The function of the leaves of the active inputs, and these leaves."""
        x = tuple(inputs[i] for i in self.wrt)
        whole = of_active(self.f, tuple(inputs), self.wrt)
        return lambda leaves: whole(tree.filled(x, list(leaves))), _leaves(x)

    def forward(self, g: Callable[..., Any], x: Any, v: Any) -> Any:
        """J v."""
        return self.backend.nested[TRANSFORMS["forward"]](g, x, v)

    def reverse(self, g: Callable[..., Any], x: Any) -> Any:
        """∇g of a scalar function."""
        return self.backend.nested[TRANSFORMS["reverse"]](g, x, self.backend.to_native(1.0))

    def dot(self, a: Any, b: Any) -> Any:
        """Σ over the leaves' entries."""
        xp, total = self.backend.xp, 0.0
        for p, q, shape in zip(list(a), b, self.shapes, strict=True):
            total = total + (xp.sum(p * q) if shape else p * q)
        return total

    def column(self, leaves: Any) -> Any:
        """The leaves' entries in one array: every library supports it."""
        xp = self.backend.xp
        columns = [xp.reshape(leaf, (-1,)) for leaf in list(leaves)]
        return xp.concat(columns) if len(columns) > 1 else columns[0]

    def nested(self, x: Any, column: Any) -> Any:
        """A column in numpy, as x."""
        ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in self.shapes])[:-1]
        pairs = zip(np.split(column, ends), self.shapes, strict=True)
        return tree.rebuilt(x, [part.reshape(shape) for part, shape in pairs])


def _leaves(x: Any) -> tuple[Any, ...]:
    return tuple(tree.leaves(x))
