"""Records Python operations on numpy arrays, anew at every call."""

from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy

from adbench import Namespace, Operator, Unsupported

REQUIRES = ("autograd",)

# autograd wraps every name of numpy but has derivatives under the older ones only: `cumsum`, not `cumulative_sum`.
xp = Namespace(autograd.numpy, prefer_older=True, matrix_transpose=lambda x: autograd.numpy.swapaxes(x, -1, -2))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator == "gradient":
        return autograd.grad(f, wrt)  # type: ignore[no-any-return]  # autograd publishes no types
    if operator == "value_and_gradient":
        return autograd.value_and_grad(f, wrt)  # type: ignore[no-any-return]
    raise Unsupported(f"adbench asks autograd for value, gradient and value_and_gradient, not {operator}")
