"""Functions of one argument with custom rules, in each library's ways: back(x, y, w) -> the adjoint of x."""

from collections.abc import Callable
from typing import Any

import numpy as np

Rule = Callable[..., Any]


def jax_vjp(f: Callable[..., Any], back: Rule) -> Callable[..., Any]:
    import jax

    @jax.custom_vjp
    def ruled(x: Any) -> Any:
        return f(x)

    def forward(x: Any) -> Any:
        y = f(x)
        return y, (x, y)

    ruled.defvjp(forward, lambda kept, w: (back(*kept, w),))
    return ruled


def jax_jvp(f: Callable[..., Any], push: Rule) -> Callable[..., Any]:
    """push(x, y, v) -> the tangent of y."""
    import jax

    @jax.custom_jvp
    def ruled(x: Any) -> Any:
        return f(x)

    @ruled.defjvp
    def jvp(primals: Any, tangents: Any) -> Any:
        y = ruled(*primals)
        return y, push(*primals, y, *tangents)

    return ruled


def jax_callback(f: Callable[..., Any], slope: Rule) -> Callable[..., Any]:
    """f in numpy, elementwise; slope(x, y) -> its derivative."""
    import jax

    def called(x: Any) -> Any:
        return jax.pure_callback(
            lambda x: np.asarray(f(np.asarray(x)), dtype=np.float64),
            jax.ShapeDtypeStruct(np.shape(x), np.float64),
            x,
            vmap_method="sequential",
        )

    return jax_vjp(called, lambda x, y, w: w * slope(x, y))


def torch_old(f: Callable[..., Any], back: Rule) -> Callable[..., Any]:
    import torch

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = f(x)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, w: Any) -> Any:
            return back(*ctx.saved_tensors, w)

    return Ruled.apply


def torch_new(f: Callable[..., Any], back: Rule) -> Callable[..., Any]:
    import torch

    class Ruled(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return f(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx: Any, w: Any) -> Any:
            return back(*ctx.saved_tensors, w)

    return Ruled.apply


def autograd_rule(f: Callable[..., Any], back: Rule) -> Callable[..., Any]:
    from autograd.extend import defvjp, primitive

    ruled = primitive(lambda x: f(x))  # autograd keeps the rules of numpy's own functions for the whole process
    defvjp(ruled, lambda y, x: lambda w: back(x, y, w))
    return ruled
