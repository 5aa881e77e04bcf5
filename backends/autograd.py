"""autograd: record numpy operations at every call."""

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy
import numpy as np
from autograd.misc.flatten import flatten

from adbench import Namespace, Operator, Unsupported, on_active

from .support.low_types import create_in

REQUIRES = ("autograd",)
DTYPES = ("float32",)
THREADED = True  # in numpy's BLAS
LICENCE = "MIT"

# autograd has derivatives for numpy's older names only: `cumsum`, not `cumulative_sum`.
xp = Namespace(
    autograd.numpy,
    prefer_older=True,
    derivative=lambda g, x: autograd.grad(g)(x),
    linalg={"diagonal": lambda x: autograd.numpy.diagonal(x, axis1=-1, axis2=-2)},
    matrix_transpose=lambda x: autograd.numpy.swapaxes(x, -1, -2),
)


DTYPE: Any = np.float64


def to_native(leaf: Any) -> Any:
    return leaf if DTYPE is np.float64 else np.asarray(leaf, dtype=DTYPE)[()]


def use_dtype(name: str) -> None:
    global DTYPE
    DTYPE = np.dtype(name).type
    create_in(name, xp, lambda array: array.astype(DTYPE))


def hvp(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """∇ (∇g(x) · v), reverse over reverse: autograd's hessian_vector_product for nested x."""
    direction, _ = flatten(v)
    return autograd.grad(lambda at: autograd.numpy.dot(flatten(autograd.grad(g)(at))[0], direction))(x)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: autograd.grad(g)(x),
    "value_and_gradient": lambda g, x: autograd.value_and_grad(g)(x),
    "jvp": lambda g, x, v: autograd.make_jvp(g)(x)(v)[1],
    "vjp": lambda g, x, w: autograd.make_vjp(g)(x)[0](w),
    "hvp": hvp,
}
NESTED = {mode: OPERATIONS[mode] for mode in ("jvp", "vjp")}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"autograd has no {operator} of several arguments")
    return on_active(OPERATIONS[operator], operator, f, wrt)
