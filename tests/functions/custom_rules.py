"""softplus with a custom derivative rule in each library, correct or wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Slope = Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]
"""slope(exp, constant, x) -> the derivative of softplus that a rule uses; `constant` hides x from derivatives of it."""

SLOPES: dict[str, Slope] = {
    "right": lambda exp, constant, x: 1 / (1 + exp(-x)),
    "wrong in first order": lambda exp, constant, x: 1 / (1 + exp(x)),
    "wrong in second order": lambda exp, constant, x: 1 / (1 + exp(-constant(x))),
    "wrong at zero": lambda exp, constant, x: x / (x + x * exp(-x)),
}


def jax_custom_vjp(slope: Slope) -> Callable[[Any], Any]:
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def softplus(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    def backward(x: Any, w: Any) -> tuple[Any]:
        return (w * slope(jnp.exp, jax.lax.stop_gradient, x),)

    softplus.defvjp(lambda x: (softplus(x), x), backward)
    return lambda x: jnp.sum(softplus(x))


def jax_custom_jvp(slope: Slope) -> Callable[[Any], Any]:
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def softplus(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    softplus.defjvps(lambda v, value, x: v * slope(jnp.exp, jax.lax.stop_gradient, x))
    return lambda x: jnp.sum(softplus(x))


def torch_function(slope: Slope) -> Callable[[Any], Any]:
    """Reverse mode only, in the older style."""
    import torch

    class Softplus(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.log1p(torch.exp(x))

        @staticmethod
        def backward(ctx: Any, w: Any) -> Any:
            (x,) = ctx.saved_tensors
            return w * slope(torch.exp, torch.Tensor.detach, x)

    return lambda x: torch.sum(Softplus.apply(x))


def torch_function_of_both_modes(slope: Slope) -> Callable[[Any], Any]:
    import torch

    class Softplus(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return torch.log1p(torch.exp(x))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, w: Any) -> Any:
            (x,) = ctx.saved_tensors
            return w * slope(torch.exp, torch.Tensor.detach, x)

        @staticmethod
        def jvp(ctx: Any, v: Any) -> Any:
            (x,) = ctx.saved_tensors
            return v * slope(torch.exp, torch.Tensor.detach, x)

    return lambda x: torch.sum(Softplus.apply(x))


def autograd_vjp(slope: Slope) -> Callable[[Any], Any]:
    import autograd.numpy as anp
    from autograd.extend import defvjp, primitive
    from autograd.tracer import getval

    @primitive
    def softplus(x: Any) -> Any:
        return np.log1p(np.exp(x))

    defvjp(softplus, lambda value, x: lambda w: w * slope(anp.exp, getval, x))
    return lambda x: anp.sum(softplus(x))


def autograd_of_both_modes(slope: Slope) -> Callable[[Any], Any]:
    import autograd.numpy as anp
    from autograd.extend import defjvp, defvjp, primitive
    from autograd.tracer import getval

    @primitive
    def softplus(x: Any) -> Any:
        return np.log1p(np.exp(x))

    defvjp(softplus, lambda value, x: lambda w: w * slope(anp.exp, getval, x))
    defjvp(softplus, lambda v, value, x: v * slope(anp.exp, getval, x))
    return lambda x: anp.sum(softplus(x))


def tape_function_gradients(slope: Slope) -> Callable[[Any], Any]:
    from adbench import tape

    def times_slope(value: Any, given: Any, x: Any) -> Any:
        return given * slope(tape.exp, lambda y: getattr(y, "val", y), x)

    softplus = tape.function_gradients(lambda x: np.log1p(np.exp(x)), (times_slope,))
    return lambda x: tape.sum(softplus(x))


def tape_reverse_only(slope: Slope) -> Callable[[Any], Any]:
    from adbench import tape

    def times_slope(value: Any, adjoint: Any, x: Any) -> Any:
        return adjoint * slope(tape.exp, lambda y: getattr(y, "val", y), x)

    softplus = tape.function_gradients(lambda x: np.log1p(np.exp(x)), reverse=(times_slope,))
    return lambda x: tape.sum(softplus(x))
