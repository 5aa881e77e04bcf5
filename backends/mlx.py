"""MLX: graphs on arrays, evaluated lazily on the CPU, in single precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx
import numpy as np

from adbench import Namespace, Operator, Unsupported, on_active
from adbench.catalog.discovery import first_line
from adbench.model import tree

REQUIRES = ("mlx",)
LICENCE = "MIT"
DEFAULT = False  # single precision is not ranked with double
PRECISION = "float32"  # float64 has only seven digits in exp, sin, cos and erf: ml-explore/mlx#3047

mx.set_default_device(mx.cpu)


def as_array(x: Any) -> Any:
    """An array from numbers, arrays, or lists of them."""
    if isinstance(x, list | tuple):
        return mx.stack([as_array(part) for part in x])
    return x if isinstance(x, mx.array) else mx.array(np.asarray(x, dtype=np.float32))


def of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays, which mlx does not make from numbers."""
    return lambda *args, **options: function(*map(as_array, args), **options)


def solve(A: Any, b: Any) -> Any:
    raise Unsupported("mlx has no derivative of linalg.solve: its permutation is differentiated as a gather")


def no_svd(*_: Any, **__: Any) -> Any:
    raise Unsupported("mlx has no derivative of linalg.svd")


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    return mx.grad(g)(x)


OF_ARRAYS = (
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tanh",
    "log1p",
    "abs",
    "sum",
    "where",
    "maximum",
    "minimum",
    "logaddexp",
)
CONVERTING: dict[str, Any] = {name: of_arrays(getattr(mx, name)) for name in OF_ARRAYS}
xp = Namespace(
    mx,
    linalg={"vector_norm": mx.linalg.norm, "diagonal": mx.diagonal, "trace": mx.trace, "solve": solve, "svd": no_svd},
    asarray=as_array,
    derivative=derivative,
    hypot=lambda x, y: mx.sqrt(as_array(x) ** 2 + as_array(y) ** 2),
    **CONVERTING,
)


def to_native(leaf: Any) -> Any:
    return mx.array(np.array(leaf, dtype=np.float32, order="C"))


def to_numpy(leaf: Any) -> Any:
    return np.array(leaf, dtype=np.float32)  # a number too


def sync(result: Any) -> None:
    mx.eval(tree.leaves(result))


REFUSALS = (
    "ot implemented",
    "not yet implemented",
    "Cannot calculate JVP",
    "Cannot calculate VJP",
    "Cannot index",
    "has no attribute",
    "incompatible function arguments",
)


def supported(call: Callable[..., Any], *args: Any) -> Any:
    """The call. Raises Unsupported for what mlx has no function or derivative of."""
    try:
        return call(*args)
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        if not any(part in str(error) for part in REFUSALS):
            raise
        raise Unsupported(f"mlx: {first_line(error)}") from error


def flat(g: Callable[..., Any], x: Any) -> tuple[Callable[..., Any], list[Any]]:
    """(g as a function of separate arrays, the arrays): mlx's jvp and vjp take no nested inputs."""
    leaves = [as_array(leaf) for leaf in tree.leaves(x)]
    return (lambda *parts: [as_array(g(tree.filled(x, list(parts))))]), leaves


def vjp(g: Callable[..., Any], x: Any, w: Any) -> Any:
    of_leaves, leaves = flat(g, x)
    return tree.filled(x, mx.vjp(of_leaves, leaves, [as_array(w)])[1])


def jvp(g: Callable[..., Any], x: Any, v: Any) -> Any:
    of_leaves, leaves = flat(g, x)
    return mx.jvp(of_leaves, leaves, [as_array(part) for part in tree.leaves(v)])[1][0]


def jvp_of(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """J v, a tuple if g's value is one."""
    shape: list[bool] = []

    def of_leaves(*parts: Any) -> list[Any]:
        value = g(tree.filled(x, list(parts)))
        shape[:] = [isinstance(value, tuple)]
        return [as_array(part) for part in (value if shape[0] else (value,))]

    slopes = mx.jvp(of_leaves, [as_array(leaf) for leaf in x], [as_array(part) for part in v])[1]
    return tuple(slopes) if shape[0] else slopes[0]


def gradient(g: Callable[..., Any], x: Any) -> Any:
    return value_and_gradient(g, x)[1]


def value_and_gradient(g: Callable[..., Any], x: Any) -> Any:
    leaves = tree.leaves(x)
    value, slopes = mx.value_and_grad(lambda parts: as_array(g(tree.filled(x, parts))))(leaves)
    return value, tree.filled(x, slopes)


def hvp(g: Callable[..., Any], x: Any, v: Any) -> Any:
    leaves = tree.leaves(x)

    def slopes(*parts: Any) -> Any:
        return tree.leaves(gradient(g, tree.filled(x, list(parts))))

    return tree.filled(x, mx.jvp(slopes, leaves, [as_array(part) for part in tree.leaves(v)])[1])


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": gradient,
    "value_and_gradient": value_and_gradient,
    "jvp": jvp,
    "vjp": vjp,
    "hvp": hvp,
}
NESTED = {"jvp": partial(supported, jvp_of), "vjp": partial(supported, vjp)}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return partial(supported, lambda *args: as_array(f(*args)))
    if operator not in OPERATIONS:
        raise Unsupported(f"mlx has no {operator}")
    return partial(supported, on_active(OPERATIONS[operator], operator, f, wrt))
