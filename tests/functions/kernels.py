"""Kernels with a backward pass by hand, their definitions, and faults to plant in them.

A kernel computes in float32 inside and rounds its results to the type of its arguments, like most that are written for
a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

Tensor = torch.Tensor
Gradients = tuple[Tensor, ...]


@dataclass(frozen=True)
class Row:
    """forward(*x) -> y and backward(g, *x) -> a gradient for each argument, in float32; shapes of the arguments."""

    definition: Callable[..., Any]
    forward: Callable[..., Any]
    backward: Callable[..., Gradients]
    shapes: tuple[tuple[int, ...], ...]


def softmax_rule(g: Tensor, x: Tensor) -> Gradients:
    y = torch.softmax(x, -1)
    return (y * (g - (y * g).sum(-1, keepdim=True)),)


def normalised(x: Tensor) -> tuple[Tensor, Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + 1e-3).rsqrt()
    return centred * scale, scale


def layer_norm_rule(g: Tensor, x: Tensor, w: Tensor, b: Tensor) -> Gradients:
    z, scale = normalised(x)
    h = g * w
    dx = scale * (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True))
    return dx, (g * z).sum(0), g.sum(0)


def rms_rule(g: Tensor, x: Tensor, w: Tensor) -> Gradients:
    scale = (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt()
    h = g * w
    return scale * (h - x * scale.square() * (h * x).mean(-1, keepdim=True)), (g * x * scale).sum(0)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    later = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.T * q.shape[1] ** -0.5).masked_fill(later, -torch.inf)
    return torch.softmax(scores, -1) @ v


def attention_rule(g: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Gradients:
    later = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool).triu(1)
    p = torch.softmax((q @ k.T * q.shape[1] ** -0.5).masked_fill(later, -torch.inf), -1)
    dp = g @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * q.shape[1] ** -0.5
    return ds @ k, ds.T @ q, p.T @ g


def swiglu_rule(g: Tensor, a: Tensor, b: Tensor) -> Gradients:
    s = torch.sigmoid(a)
    return g * b * s * (1 + a * (1 - s)), g * a * s


def gelu_rule(g: Tensor, x: Tensor) -> Gradients:
    return (g * (0.5 * (1 + torch.erf(x * 2**-0.5)) + x * torch.exp(-x * x / 2) * (2 * torch.pi) ** -0.5),)


def unit_rule(g: Tensor, x: Tensor) -> Gradients:
    length = x.square().sum(-1, keepdim=True).sqrt()
    y = x / length
    return ((g - y * (g * y).sum(-1, keepdim=True)) / length,)


def cross_entropy(x: Tensor) -> Tensor:
    return (torch.logsumexp(x, -1) - x[:, 2]).mean()


def cross_entropy_rule(g: Tensor, x: Tensor) -> Gradients:
    p = torch.softmax(x, -1)
    p[:, 2] -= 1
    return (g * p / len(x),)


KERNELS: Mapping[str, Row] = {
    "softmax": Row(lambda x: torch.softmax(x, -1), lambda x: torch.softmax(x, -1), softmax_rule, ((5, 7),)),
    "logsumexp": Row(
        lambda x: torch.logsumexp(x, -1),
        lambda x: torch.logsumexp(x, -1),
        lambda g, x: (g[:, None] * torch.softmax(x, -1),),
        ((5, 7),),
    ),
    "layer norm": Row(
        lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, 1e-3),
        lambda x, w, b: normalised(x)[0] * w + b,
        layer_norm_rule,
        ((5, 8), (8,), (8,)),
    ),
    "rms norm": Row(
        lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-3) * w,
        lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt() * w,
        rms_rule,
        ((5, 8), (8,)),
    ),
    "cross entropy": Row(cross_entropy, cross_entropy, cross_entropy_rule, ((6, 7),)),
    "gelu": Row(functional.gelu, functional.gelu, gelu_rule, ((4, 9),)),
    "swiglu": Row(
        lambda a, b: functional.silu(a) * b,
        lambda a, b: a * torch.sigmoid(a) * b,
        swiglu_rule,
        ((4, 6), (4, 6)),
    ),
    "unit rows": Row(
        lambda x: x / torch.sqrt((x * x).sum(-1, keepdim=True)),
        lambda x: x / x.square().sum(-1, keepdim=True).sqrt(),
        unit_rule,
        ((4, 6),),
    ),
    "attention": Row(attention, attention, attention_rule, ((5, 4), (5, 4), (5, 4))),
}


def last_column_missing(g: Tensor) -> Tensor:
    return torch.cat([g[..., :-1], torch.zeros_like(g[..., -1:])], -1)


def tail_negated(g: Tensor) -> Tensor:
    return torch.cat([g[..., :-2], -g[..., -2:]], -1)


class Stale:
    """The gradient of the call before."""

    def __init__(self) -> None:
        self.before: Tensor | None = None

    def __call__(self, g: Tensor) -> Tensor:
        before, self.before = self.before, g.clone()
        return g if before is None or before.shape != g.shape else before


FAULTS: Mapping[str, Callable[[], Callable[[Tensor], Tensor]]] = {
    "scale": lambda: lambda g: 1.25 * g,
    "block edge": lambda: last_column_missing,
    "wrong row": lambda: lambda g: g.roll(1, 0),
    "sign of the tail": lambda: tail_negated,
    "stale buffer": Stale,
}
"""Each changes the gradient of the first argument."""

OWN_FAULTS: Mapping[tuple[str, str], Callable[..., Gradients]] = {
    ("softmax", "missing term"): lambda g, x: (torch.softmax(x, -1) * g,),
    ("layer norm", "missing mean"): lambda g, x, w, b: (
        normalised(x)[1] * (g * w - normalised(x)[0] * (g * w * normalised(x)[0]).mean(-1, keepdim=True)),
        *layer_norm_rule(g, x, w, b)[1:],
    ),
    ("attention", "scale of the scores"): lambda g, q, k, v: (
        attention_rule(g, q, k, v)[0] * q.shape[1] ** 0.5,
        *attention_rule(g, q, k, v)[1:],
    ),
    ("rms norm", "only the first row for w"): lambda g, x, w: (rms_rule(g, x, w)[0], rms_rule(g[:1], x[:1], w)[1]),
}


def kernel_of(row: Row, fault: Callable[[Tensor], Tensor] | None = None, rule: Any = None) -> Callable[..., Any]:
    """The kernel, with a fault in its backward pass, or with another backward pass."""

    class Kernel(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, *x: Tensor) -> Tensor:
            ctx.save_for_backward(*x)
            result: Tensor = row.forward(*(part.float() for part in x)).to(x[0].dtype)
            return result

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            x = ctx.saved_tensors
            gradients = (rule or row.backward)(g.float(), *(part.float() for part in x))
            changed = (fault(gradients[0]) if fault else gradients[0], *gradients[1:])
            return tuple(part.to(own.dtype) for part, own in zip(changed, x, strict=True))

    def kernel(*x: Tensor) -> Any:
        return Kernel.apply(*x)

    return kernel


def arguments_of(row: Row, kind: torch.dtype, seed: int = 0) -> list[Tensor]:
    """Random arguments."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(kind) for shape in row.shapes]
