"""The functions of AD libraries by which a test obtains a gradient, and where their results hold it."""

from __future__ import annotations

from collections.abc import Mapping

RETURNED, FUNCTION, PULLBACK, ACCUMULATED = "returned", "function", "pullback", "accumulated"
"""How a function hands out a gradient: as its result; by the function that it returns; by the function that is the
second part of its result; in the attribute `grad` of tensors."""

Where = tuple[str, int | None]
"""How, and at which place of the result: None where the whole result is the gradient."""

ENTRY_POINTS: Mapping[str, Mapping[str, Where]] = {
    "torch": {
        "Tensor.backward": (ACCUMULATED, None),
        "autograd.backward": (ACCUMULATED, None),
        "autograd.grad": (RETURNED, None),
        "autograd.functional.jacobian": (RETURNED, None),
        "autograd.functional.hessian": (RETURNED, None),
        "autograd.functional.vjp": (RETURNED, 1),
        "autograd.functional.jvp": (RETURNED, 1),
        "autograd.functional.hvp": (RETURNED, 1),
        "autograd.functional.vhp": (RETURNED, 1),
        "func.grad": (FUNCTION, None),
        "func.grad_and_value": (FUNCTION, 0),
        "func.jacrev": (FUNCTION, None),
        "func.jacfwd": (FUNCTION, None),
        "func.hessian": (FUNCTION, None),
        "func.vjp": (PULLBACK, None),
        "func.linearize": (PULLBACK, None),
        "func.jvp": (RETURNED, 1),
    },
    "jax": {
        "grad": (FUNCTION, None),
        "value_and_grad": (FUNCTION, 1),
        "jacobian": (FUNCTION, None),
        "jacrev": (FUNCTION, None),
        "jacfwd": (FUNCTION, None),
        "hessian": (FUNCTION, None),
        "vjp": (PULLBACK, None),
        "linearize": (PULLBACK, None),
        "jvp": (RETURNED, 1),
    },
    "autograd": {
        "grad": (FUNCTION, None),
        "value_and_grad": (FUNCTION, 1),
        "elementwise_grad": (FUNCTION, None),
        "holomorphic_grad": (FUNCTION, None),
        "jacobian": (FUNCTION, None),
        "hessian": (FUNCTION, None),
        "hessian_vector_product": (FUNCTION, None),
    },
    "equinox": {
        "filter_grad": (FUNCTION, None),
        "filter_value_and_grad": (FUNCTION, 1),
        "filter_jacrev": (FUNCTION, None),
        "filter_jacfwd": (FUNCTION, None),
        "filter_hessian": (FUNCTION, None),
        "filter_vjp": (PULLBACK, None),
        "filter_jvp": (RETURNED, 1),
    },
    "flax.nnx": {"grad": (FUNCTION, None), "value_and_grad": (FUNCTION, 1)},
}
"""Module -> function in it -> where the gradient is. A change of this table is all that a further function needs."""

CHECKERS = ("torch.autograd.gradcheck", "jax._src.public_test_util", "chex._src.asserts", "autograd.test_util")
"""Modules that compare gradients for a test: their calls count as calls of the test."""

JAX = ("jax", "equinox", "flax.nnx")
"""Modules whose arrays are jax's."""
