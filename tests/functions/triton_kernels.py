"""Four kernels in Triton: softmax, layer norm, fused cross entropy and a small attention, right and with faults.

On a CPU they run in Triton's interpreter, which TRITON_INTERPRET=1 chooses before triton is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch.nn import functional

Tensor = torch.Tensor


@triton.jit
def softmax_forward(x, y, n, MASK: tl.constexpr, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    inside = i < n
    v = tl.load(x + row * n + i, mask=inside, other=-float("inf")) if MASK else tl.load(x + row * n + i)
    v = v.to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + i, e / tl.sum(e, 0), mask=inside)


@triton.jit
def softmax_backward(y, g, d, n, TERM: tl.constexpr, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    inside = i < n
    p = tl.load(y + row * n + i, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(g + row * n + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(d + row * n + i, p * (w - TERM * tl.sum(p * w, 0)), mask=inside)


@triton.jit
def norm_backward(x, w, g, d, n, eps, SCALE: tl.constexpr, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    inside = i < n
    v = tl.load(x + row * n + i, mask=inside, other=0.0).to(tl.float32)
    h = tl.load(g + row * n + i, mask=inside, other=0.0).to(tl.float32)
    h = h * tl.load(w + i, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, v - tl.sum(v, 0) / n, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    z = centred * scale
    dx = scale * (h - tl.sum(h, 0) / n - z * tl.sum(h * z, 0) / n)
    tl.store(d + row * n + i, SCALE * dx, mask=inside)


@triton.jit
def entropy_backward(x, t, g, d, n, LAST: tl.constexpr, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    inside = i < n - LAST
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    p = e / tl.sum(e, 0) - tl.where(i == tl.load(t + row), 1.0, 0.0)
    tl.store(d + row * n + i, p * tl.load(g).to(tl.float32) / tl.num_programs(0), mask=inside)


@triton.jit
def attention_rows(q, k, v, g, dq, n, scale, LOW: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """One row of queries: its gradient, with the scores recomputed key by key."""
    row, c = tl.program_id(0), tl.arange(0, D)
    own, w = tl.load(q + row * D + c).to(tl.float32), tl.load(g + row * D + c).to(tl.float32)
    zero = tl.sum(own * 0, 0)  # of the type that the loop carries
    top, total, mean = zero - float("inf"), zero, zero
    for j in tl.static_range(N):
        s = tl.sum(own * tl.load(k + j * D + c).to(tl.float32), 0) * scale
        s = tl.where(j <= row, s, -float("inf"))
        u = tl.sum(w * tl.load(v + j * D + c).to(tl.float32), 0)
        higher = tl.maximum(top, s)
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.exp(s - higher)
        mean = mean * shrink + tl.exp(s - higher) * u
        top = higher
    grad = tl.zeros((D,), tl.float32)
    for j in tl.static_range(N):
        key = tl.load(k + j * D + c).to(tl.float32)
        p = tl.where(j <= row, tl.exp(tl.sum(own * key, 0) * scale - top) / total, 0.0)
        u = tl.sum(w * tl.load(v + j * D + c).to(tl.float32), 0)
        grad += p * (u - mean / total) * scale * key
        if LOW:
            grad = grad.to(tl.float16).to(tl.float32)
            grad = (grad * 16).to(tl.int32).to(tl.float32) / 16
    tl.store(dq + row * D + c, grad)


def softmax(fault: str = "") -> Callable[..., Any]:
    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            x = x.contiguous() if fault != "missing mask" else x
            y, n = torch.empty(x.shape, dtype=x.dtype, device=x.device), x.shape[-1]
            softmax_forward[(x.numel() // n,)](x, y, n, MASK=fault != "missing mask", B=triton.next_power_of_2(n))
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (y,) = ctx.saved_tensors
            d, n, term = torch.empty_like(y), y.shape[-1], 0.0 if fault == "missing term" else 1.0
            softmax_backward[(y.numel() // n,)](y, g.contiguous(), d, n, TERM=term, B=triton.next_power_of_2(n))
            return d

    return lambda x: Softmax.apply(x)


def layer_norm(fault: str = "") -> Callable[..., Any]:
    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            ctx.save_for_backward(x.contiguous(), w.contiguous())
            return functional.layer_norm(x, x.shape[-1:], w, None, 1e-3)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
            x, w = ctx.saved_tensors
            d, n = torch.empty_like(x), x.shape[-1]
            scale = 1.25 if fault == "wrong scale" else 1.0
            norm_backward[(x.numel() // n,)](x, w, g.contiguous(), d, n, 1e-3, SCALE=scale, B=triton.next_power_of_2(n))
            z = functional.layer_norm(x.float(), x.shape[-1:], None, None, 1e-3)
            return d, (g.float() * z).sum(0).to(w.dtype)

    return lambda x, w: Norm.apply(x, w)


def cross_entropy(fault: str = "") -> Callable[..., Any]:
    class Entropy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, t: Tensor) -> Tensor:
            ctx.save_for_backward(x.contiguous(), t)
            return functional.cross_entropy(x.float(), t).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
            x, t = ctx.saved_tensors
            d, n = torch.zeros_like(x), x.shape[-1]
            last = 1 if fault == "off by one at the block's end" else 0
            entropy_backward[(x.shape[0],)](x, t, g, d, n, LAST=last, B=triton.next_power_of_2(n))
            return d, None

    return lambda x, t: Entropy.apply(x, t)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The definition of the attention."""
    later = torch.ones(len(q), len(k), dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax((q @ k.T * q.shape[1] ** -0.5).masked_fill(later, -torch.inf), -1) @ v


def attention(fault: str = "") -> Callable[..., Any]:
    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            ctx.save_for_backward(q.contiguous(), k.contiguous(), v.contiguous())
            return causal(q.float(), k.float(), v.float()).to(q.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            q, k, v = ctx.saved_tensors
            dq, (n, size), low = torch.empty_like(q), q.shape, fault == "sums in few bits"
            attention_rows[(n,)](q, k, v, g.contiguous(), dq, n, size**-0.5, LOW=low, N=n, D=size)
            with torch.enable_grad():
                parts = [part.detach().float().requires_grad_() for part in (k, v)]
                dk, dv = torch.autograd.grad(causal(q.float(), *parts), parts, g.float())
            return dq, dk.to(k.dtype), dv.to(v.dtype)

    return lambda q, k, v: Attention.apply(q, k, v)


def softmax_arguments(kind: torch.dtype, device: str) -> list[Tensor]:
    return [torch.randn(5, 11).to(device, kind)]


ROWS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., list[Tensor]], str]] = {
    "softmax": (softmax, lambda x: torch.softmax(x, -1), softmax_arguments, "missing term"),
    "softmax, mask": (softmax, lambda x: torch.softmax(x, -1), softmax_arguments, "missing mask"),
    "layer norm": (
        layer_norm,
        lambda x, w: functional.layer_norm(x, x.shape[-1:], w, None, 1e-3),
        lambda kind, device: [torch.randn(4, 7).to(device, kind), torch.randn(7).to(device, kind)],
        "wrong scale",
    ),
    "cross entropy": (
        cross_entropy,
        lambda x, t: functional.cross_entropy(x, t),
        lambda kind, device: [torch.randn(6, 9).to(device, kind), torch.arange(6, device=device)],
        "off by one at the block's end",
    ),
    "attention": (
        attention,
        causal,
        lambda kind, device: [torch.randn(6, 8).to(device, kind) for _ in range(3)],
        "sums in few bits",
    ),
}
"""Name -> kernel(fault), its definition, its arguments(type, device), and a fault."""
