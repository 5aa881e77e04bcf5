"""Records Python operations on numpy arrays, anew at every call."""

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy
from autograd.misc.flatten import flatten

from adbench import Namespace, Operator, Unsupported, on_active

REQUIRES = ("autograd",)

# autograd wraps every name of numpy but has derivatives under the older ones only: `cumsum`, not `cumulative_sum`.
xp = Namespace(autograd.numpy, prefer_older=True, matrix_transpose=lambda x: autograd.numpy.swapaxes(x, -1, -2))


def hvp(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """∇ (∇g(x) · v), reverse over reverse: autograd's own hessian_vector_product, for nested x."""
    direction, _ = flatten(v)
    return autograd.grad(lambda at: autograd.numpy.dot(flatten(autograd.grad(g)(at))[0], direction))(x)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: autograd.grad(g)(x),
    "value_and_gradient": lambda g, x: autograd.value_and_grad(g)(x),
    "jvp": lambda g, x, v: autograd.make_jvp(g)(x)(v)[1],
    "vjp": lambda g, x, w: autograd.make_vjp(g)(x)[0](w),
    "hvp": hvp,
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"autograd has no {operator} of several arguments")
    return on_active(OPERATIONS[operator], operator, f, wrt)
