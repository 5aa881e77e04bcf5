"""A graph of arrays, derived as a graph, simplified and compiled once: pytensor's default, by way of numba."""

import operator as operators
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.gradient
import pytensor.tensor as pt

from adbench import Namespace, Operator, Unsupported, phase
from adbench.suite import tree
from adbench.suite.backend import WITH_VECTOR

REQUIRES = ("pytensor",)
LICENCE = "BSD-3-Clause"

KNOWN: dict[str, str] = {}


def length(variable: Any) -> int:
    """What pytensor refuses otherwise: the Python number of a length that it knows."""
    try:
        return int(pt.get_underlying_scalar_constant_value(variable))
    except pytensor.tensor.exceptions.NotScalarConstantError as error:
        raise Unsupported("a Python loop or branch depends on data, and pytensor builds one graph for all") from error


pytensor.tensor.variable.TensorVariable.__index__ = length


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    """A scan, for the graph not to grow with n."""
    trips = operators.index(n)
    if not trips:
        return state
    start = [pt.as_tensor(leaf, dtype="float64") for leaf in tree.leaves(state)]

    def body(i: Any, *leaves: Any) -> Any:
        return [pt.as_tensor(leaf) for leaf in tree.leaves(step(i, tree.filled(state, leaves)))]

    found = pytensor.scan(body, sequences=pt.arange(trips), outputs_info=start, return_updates=False)
    return tree.filled(state, [leaf[-1] for leaf in (found if isinstance(found, list) else [found])])


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    at = pt.as_tensor(x, dtype="float64")
    return gradient(g(at), [at])[0]


# Constants are numpy's: their shapes are known.
PLAIN = {name: getattr(np, name) for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "asarray")}
xp = Namespace(
    pt,
    loop=loop,
    derivative=derivative,
    linalg={"vector_norm": pt.linalg.norm, "diagonal": lambda x: pt.diagonal(x, axis1=-2, axis2=-1)},
    remainder=pt.mod,
    stop_gradient=pytensor.gradient.disconnected_grad,
    **PLAIN,
)


def gradient(value: Any, x: list[Any]) -> list[Any]:
    found: list[Any] = pytensor.grad(value, x, disconnected_inputs="ignore", return_disconnected="zero")
    return found


def jacobian(value: Any, x: list[Any]) -> list[Any]:
    if not value.ndim:
        return gradient(value, x)
    found = pytensor.gradient.jacobian(value.ravel(), x, disconnected_inputs="ignore")
    return [J.reshape((*value.type.shape, *part.type.shape)) for J, part in zip(found, x, strict=True)]


OPERATIONS: dict[Operator, Callable[..., list[Any]]] = {
    "value": lambda f, x: [f],
    "gradient": gradient,
    "value_and_gradient": lambda f, x: [f, *gradient(f, x)],
    "jacobian": jacobian,
    "jvp": lambda f, x, v: [pytensor.gradient.Rop(f, x, v, disconnected_outputs="ignore")],
    "vjp": lambda f, x, w: pytensor.gradient.Lop(f, x, w[0], disconnected_inputs="ignore"),
    "hvp": lambda f, x, v: gradient(sum((pt.sum(g * u) for g, u in zip(gradient(f, x), v, strict=True)), 0.0), x),
}


def to_native(leaf: Any) -> Any:
    return np.array(leaf, dtype=np.float64)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator not in OPERATIONS:
        raise Unsupported(f"pytensor has no {operator} of several arguments")

    def symbol(leaf: Any) -> Any:
        return leaf if tree.is_static(leaf) else pt.tensor(dtype="float64", shape=np.shape(leaf))

    symbols = tuple(tree.map_leaves(symbol, arg) for arg in args)
    count = len(args) - (operator in WITH_VECTOR)
    x = tree.leaves(tuple(symbols[i] for i in wrt))
    try:
        with phase("trace"):
            value = pt.as_tensor(f(*symbols[:count]), dtype="float64")
            found = OPERATIONS[operator](value, x, *([tree.leaves(symbols[count:])] if count < len(args) else []))
        with phase("compile"):
            function = pytensor.function(
                [leaf for leaf in tree.leaves(symbols) if not tree.is_static(leaf)],
                found,
                on_unused_input="ignore",
                trust_input=True,
            )
    except (TypeError, NotImplementedError) as error:
        if "cannot be converted to Python" in str(error):
            raise Unsupported("a Python branch depends on data, and pytensor builds one graph for all") from error
        raise

    example = tuple(args[i] for i in wrt)

    def call(*args: Any) -> Any:
        found = function(*(leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)))
        if operator in ("value", "jvp"):
            return found[0]
        if operator == "value_and_gradient":
            return found[0], tree.filled(example, found[1:])
        return tree.filled(example, found)

    return call
