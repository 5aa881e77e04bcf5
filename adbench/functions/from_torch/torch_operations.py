"""ATen operations on arrays of the oracle's numbers: name -> function(xp, *arguments).

A function gets torch's arguments in torch's order, with numpy arrays instead of tensors: arrays of `Real` (or
`Complex`) for floats, otherwise of integers and booleans. `xp` is the namespace over balls. Formulas are torch's if
they determine the effect of rounding: 1 + erf(x) loses digits that erfc(-x) keeps.

An operation without a function here runs by torch's decomposition into others. Those with one have no decomposition
into operations that are here, or would lose digits, or gain a kink: that of |x| in a norm, or of the largest number in
softmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adbench.functions.from_torch.torch_linalg import LINALG, reals
from adbench.functions.from_torch.torch_reductions import REDUCTIONS, SUMS
from adbench.oracle.series.algebra import positions
from adbench.vocabulary import CANONICAL, words

Function = Callable[..., Any]

ARRANGING = words(
    "_pack_padded_sequence _unsafe_index _unsafe_view alias_copy as_strided_copy as_strided_scatter block_diag cat "
    "channel_shuffle constant_pad_nd detach_copy diag_embed diagonal_copy diagonal_scatter expand_copy flip gather "
    "im2col index index_copy index_fill index_select masked_fill masked_scatter masked_select permute_copy "
    "pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave "
    "replication_pad1d replication_pad2d replication_pad3d roll rot90 scatter select_copy select_scatter "
    "slice_copy slice_scatter split_copy split_with_sizes_copy squeeze_copy stack t_copy take transpose_copy "
    "tril triu unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d view_copy"
)
"""Operations whose results have entries of their arguments, fill values and zeros."""

RANDOM_IN_PLACE = words("bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_")

CONSTANT_DRAWS = words("bernoulli binomial multinomial normal poisson") | RANDOM_IN_PLACE
"""Random numbers whose derivative torch defines as 0."""

QUANTILES = words("_sample_dirichlet _standard_gamma")
"""Random numbers whose derivative torch defines as that of a quantile."""


def elementwise(function: Function) -> Function:
    """A function that converts integers and booleans to numbers of the namespace."""

    def on_numbers(xp: Any, *args: Any, **kwargs: Any) -> Any:
        return function(xp, *(reals(xp, arg) for arg in args), **{key: reals(xp, a) for key, a in kwargs.items()})

    return on_numbers


def of_xp(name: str) -> Function:
    """The namespace's function of this name."""
    return elementwise(lambda xp, *args, **options: getattr(xp, name)(*args, **options))


# Elementwise ------------------------------------------------------------------------------------------------------


def scaled(factor: Any, x: Any) -> Any:
    """factor · x, without rounding if the factor is 1."""
    return x if factor is None or (isinstance(factor, (int, float)) and factor == 1) else factor * x


def divided(xp: Any, a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """a / b, rounded towards zero or towards minus infinity."""
    quotient = a / b
    return quotient if rounding_mode is None else xp.floor(quotient) if rounding_mode == "floor" else xp.trunc(quotient)


def softplus(xp: Any, x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta x)) / beta, and x itself if beta x exceeds the threshold."""
    steep = scaled(beta, x)
    return xp.where(np.asarray(steep > threshold), x, xp.log1p_exp(steep) / beta)


def compared(holds: Callable[[Any, Any], Any]) -> Function:
    """A comparison of numbers."""
    return elementwise(lambda xp, a, b: np.asarray(holds(a, b)).astype(np.bool_))


FORMULAS: Mapping[str, Function] = {
    "add": lambda xp, a, b, *, alpha=1: a + scaled(alpha, b),
    "clamp": lambda xp, x, min=None, max=None: xp.clip(x, min, max),
    "complex": lambda xp, a, b: a + b * np.array(1j, dtype=object),
    "div": divided,
    "fill": lambda xp, x, value: xp.zeros(np.shape(x)) + value,
    "log_sigmoid_forward": lambda xp, x: (xp.log_expit(x), xp.zeros(np.shape(x))),  # without two kinks that cancel
    "logit": lambda xp, x, eps=None: xp.logit(x if eps is None else xp.clip(x, eps, 1 - eps)),
    "mul": lambda xp, a, b: a * b,
    "pow": lambda xp, a, b: a**b,
    "polar": lambda xp, size, angle: size * xp.cos(angle) + size * xp.sin(angle) * np.array(1j, dtype=object),
    "relu": lambda xp, x: xp.where(np.asarray(x > 0), x, 0.0),  # so frequent that the time of its decomposition counts
    "remainder": lambda xp, a, b: a % b,
    "silu": lambda xp, x: x * xp.expit(x),  # so is it
    "softplus": softplus,  # without the cancellation in log1p(exp(x)) of a small x
    "sub": lambda xp, a, b, *, alpha=1: a - scaled(alpha, b),
}

ELEMENTWISE: Mapping[str, Function] = {
    **{prefix + name: of_xp(function) for name, function in CANONICAL.items() for prefix in ("", "special_")},
    **{name: elementwise(function) for name, function in FORMULAS.items()},
    "eq": compared(lambda a, b: a == b),
    "ge": compared(lambda a, b: a >= b),
    "gt": compared(lambda a, b: a > b),
    "le": compared(lambda a, b: a <= b),
    "lt": compared(lambda a, b: a < b),
    "ne": compared(lambda a, b: a != b),
    "where": lambda xp, condition, a, b: xp.where(condition, reals(xp, a), reals(xp, b)),
}

# Convolutions and pools -------------------------------------------------------------------------------------------


def each(value: Any, count: int) -> list[int]:
    """torch's sizes for every axis; one number applies to all."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def convolution(
    xp: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """torch's convolution of any number of axes: (N, C, …) with (O, C / groups, …)."""
    weight = np.asarray(weight)
    count = weight.ndim - 2
    stride, padding, dilation = (each(value, count) for value in (stride, padding, dilation))
    batched = np.asarray(x).ndim == weight.ndim
    x = np.asarray(x) if batched else np.asarray(x)[None]
    spread, widths = [1] * count, [(p, p) for p in padding]
    if transposed:  # a convolution of x with zeros between its entries, and a reversed kernel
        ends = [d * (k - 1) - p for k, p, d in zip(weight.shape[2:], padding, dilation, strict=True)]
        widths = [(end, end + more) for end, more in zip(ends, each(output_padding, count), strict=True)]
        spread, stride = stride, spread
        split = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
        turned = np.flip(np.swapaxes(split, 1, 2), axis=tuple(range(3, split.ndim)))
        weight = turned.reshape(-1, *turned.shape[2:])
    where = positions.windows(x.shape[2:], weight.shape[2:], stride, widths, spread, dilation)
    found = positions.convolution(xp, x, weight, where, groups)
    if bias is not None:
        found = found + np.asarray(bias).reshape(-1, *[1] * count)
    return found if batched else found[0]


def _extra(n: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """The extent of the last `ceil_mode` window beyond the padding."""
    if not ceil_mode:
        return 0
    places = -(-(n + 2 * padding - kernel) // stride) + 1
    if (places - 1) * stride >= n + padding:
        places -= 1
    return max(0, (places - 1) * stride + kernel - n - 2 * padding)


def adaptive_max_pool(count: int) -> Function:
    """The largest number in each of `output_size` parts of almost equal size, and its flat index."""

    def pool(xp: Any, x: Any, output_size: Sequence[int]) -> Any:
        sizes = np.shape(x)[-count:]
        flat = np.reshape(x, (*np.shape(x)[:-count], -1))
        places = np.arange(math.prod(sizes)).reshape(sizes)
        found = np.empty((*flat.shape[:-1], *output_size), dtype=np.int64)
        for part in np.ndindex(*output_size):
            ends = [(k * n // m, -(-(k + 1) * n // m)) for k, n, m in zip(part, sizes, output_size, strict=True)]
            among = places[tuple(slice(*end) for end in ends)].reshape(-1)
            found[(..., *part)] = among[np.argmax(flat[..., among], axis=-1)]
        return np.take_along_axis(flat, found.reshape(*flat.shape[:-1], -1), -1).reshape(found.shape), found

    return pool


def average_pool(count: int) -> Function:
    """The mean under each window."""

    def pool(
        xp: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        sizes, ones = np.shape(x)[-count:], [1] * count
        kernel, padding = each(kernel, count), each(padding, count)
        stride = each(stride, count) if isinstance(stride, int) or stride else kernel
        beyond = [_extra(*axis, ceil_mode) for axis in zip(sizes, kernel, stride, padding, strict=True)]

        def windows(sizes: Sequence[int], padding: Sequence[int]) -> Any:
            widths = [(p, p + more) for p, more in zip(padding, beyond, strict=True)]
            where = positions.windows(tuple(sizes), kernel, stride, widths, ones, ones)
            return where.reshape(*where.shape[:count], -1)

        under, flat = windows(sizes, padding), np.reshape(x, (*np.shape(x)[:-count], -1))
        numbers = np.concatenate([flat, np.broadcast_to(xp.number.of(0), (*flat.shape[:-1], 1))], axis=-1)
        whole = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
        counted = windows(whole, [0] * count) if count_include_pad else under
        divisor = divisor_override or (counted != positions.FILLED).sum(axis=-1).astype(object)
        return xp.sum(numbers[..., under], -1) / divisor

    return pool


LAYERS: Mapping[str, Function] = {
    "adaptive_max_pool2d": adaptive_max_pool(2),
    "adaptive_max_pool3d": adaptive_max_pool(3),
    "avg_pool2d": average_pool(2),
    "avg_pool3d": average_pool(3),
    "convolution": convolution,
}

TABLE: Mapping[str, Function] = {**ELEMENTWISE, **REDUCTIONS, **SUMS, **LINALG, **LAYERS}
