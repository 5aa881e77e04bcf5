"""Tensors on numpy's arrays: records anew at every call and sweeps back."""

from collections.abc import Callable
from typing import Any

import mygrad
import numpy as np

from adbench import Namespace, Operator, Unsupported
from adbench.suite import tree
from adbench.suite.catalog import first_line

REQUIRES = ("mygrad",)
LICENCE = "MIT"

KNOWN: dict[str, str] = {}

mygrad.turn_memory_guarding_off()  # as its documentation has it for speed, where nobody writes into arrays

# mygrad's own zeros and ones are single precision; numpy's are constants to it all the same.
PLAIN = {name: getattr(np, name) for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "asarray")}


def derivative(*_: Any) -> Any:
    raise Unsupported("mygrad's derivatives do not nest: a gradient is a plain array")


xp = Namespace(
    mygrad,
    linalg={"vector_norm": mygrad.linalg.norm},
    derivative=derivative,
    matrix_transpose=lambda x: mygrad.swapaxes(x, -1, -2),
    **PLAIN,
)


def pull_back(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], w: Any) -> tuple[Any, Any]:
    """(f(x), wᵀ J)."""
    marked = list(args)
    for i in wrt:
        marked[i] = tree.map_leaves(lambda leaf: mygrad.tensor(leaf, copy=False), args[i])
    try:
        value = f(*marked)
    except (TypeError, ValueError) as error:  # so it says that it has no derivative of something
        if "non-constant" not in str(error) and "Tensor data" not in str(error):
            raise
        raise Unsupported(f"mygrad: {first_line(error)}") from error
    if isinstance(value, mygrad.Tensor):
        value.backward(w)

    def slope(leaf: Any) -> Any:  # None for an input that the value does not depend on
        return np.zeros(leaf.shape) if leaf.grad is None else leaf.grad

    return np.asarray(value), tuple(tree.map_leaves(slope, marked[i]) for i in wrt)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return mygrad.no_autodiff(f, to_numpy=True)
    if operator == "gradient":
        return lambda *args: pull_back(f, args, wrt, None)[1]
    if operator == "value_and_gradient":
        return lambda *args: pull_back(f, args, wrt, None)
    if operator == "vjp":
        return lambda *args: pull_back(f, args[:-1], wrt, args[-1])[1]
    raise Unsupported(f"mygrad has no {operator}: it sweeps back, and once")
