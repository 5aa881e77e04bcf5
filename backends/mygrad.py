"""MyGrad: record tensors on numpy arrays at every call and sweep back."""

from collections.abc import Callable
from typing import Any

import mygrad
import numpy as np

from adbench import Namespace, Operator, Unsupported
from adbench.catalog.discovery import first_line
from adbench.model import tree

REQUIRES = ("mygrad",)
THREADED = True  # in numpy's BLAS
LICENCE = "MIT"

mygrad.turn_memory_guarding_off()  # for speed, as the documentation advises for tested programs

NESTED = "mygrad returns gradients as plain arrays, which cannot be differentiated again"

# mygrad's zeros and ones are single precision; numpy's are constants too.
PLAIN = {name: getattr(np, name) for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "asarray")}


def derivative(*_: Any) -> Any:
    raise Unsupported(NESTED)


xp = Namespace(
    mygrad,
    linalg={"vector_norm": mygrad.linalg.norm},
    derivative=derivative,
    matrix_transpose=lambda x: mygrad.swapaxes(x, -1, -2),
    stop_gradient=lambda x: mygrad.tensor(x, constant=True),
    **PLAIN,
)


def pull_back(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], w: Any) -> tuple[Any, Any]:
    """(f(x), wᵀ J)."""
    marked = list(args)
    for i in wrt:
        marked[i] = tree.map_leaves(lambda leaf: mygrad.tensor(leaf, copy=False), args[i])
    try:
        value = f(*marked)
    except (TypeError, ValueError) as error:  # how mygrad reports a missing derivative
        if "non-constant" not in str(error) and "Tensor data" not in str(error):
            raise
        raise Unsupported(f"mygrad: {first_line(error)}") from error
    if isinstance(value, mygrad.Tensor):
        value.backward(w)

    def slope(leaf: Any) -> Any:  # None for an input that does not affect the value
        return np.zeros(leaf.shape) if leaf.grad is None else leaf.grad

    return np.asarray(value), tuple(tree.map_leaves(slope, marked[i]) for i in wrt)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        plain: Callable[..., Any] = mygrad.no_autodiff(f, to_numpy=True)
        return plain
    if operator == "gradient":
        return lambda *args: pull_back(f, args, wrt, None)[1]
    if operator == "value_and_gradient":
        return lambda *args: pull_back(f, args, wrt, None)
    if operator == "vjp":
        return lambda *args: pull_back(f, args[:-1], wrt, args[-1])[1]
    raise Unsupported(f"mygrad has no {operator}: it has first-order reverse mode only")
