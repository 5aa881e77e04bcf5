"""ATen operations on arrays of the oracle's numbers: name -> function(xp, *arguments).

A function gets torch's arguments in torch's order, with numpy arrays instead of tensors: arrays of `Real` (or
`Complex`) for floats, otherwise of integers and booleans. `xp` is the namespace over balls. Formulas are torch's if
they determine the effect of rounding: 1 + erf(x) loses digits that erfc(-x) keeps.

An operation without a function here runs by torch's decomposition into others. Those with one have no decomposition
into operations that are here, or would lose digits, or gain a kink: that of |x| in a norm, or of the largest number in
softmax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adbench.functions.from_torch.torch_layers import LAYERS
from adbench.functions.from_torch.torch_linalg import LINALG, reals
from adbench.functions.from_torch.torch_reductions import REDUCTIONS, SUMS
from adbench.vocabulary import CANONICAL, words

Function = Callable[..., Any]

ARRANGING = words(
    "_unsafe_index _unsafe_view alias_copy as_strided_copy as_strided_scatter block_diag cat channel_shuffle "
    "constant_pad_nd detach_copy diag_embed diagonal_copy diagonal_scatter embedding expand_copy flip gather "
    "im2col index index_copy index_fill index_select masked_fill masked_scatter masked_select permute_copy "
    "pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave "
    "replication_pad1d replication_pad2d replication_pad3d roll rot90 scatter select_copy select_scatter "
    "slice_copy slice_scatter split_copy split_with_sizes_copy squeeze_copy stack t_copy take transpose_copy "
    "tril triu unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d view_copy"
)
"""Operations whose results have entries of their arguments, fill values and zeros."""

RANDOM_IN_PLACE = words("bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_")


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


def logical(holds: Callable[..., Any]) -> Function:
    """A function of truth values; for numbers x ≠ 0."""
    return elementwise(lambda xp, *args: np.asarray(holds(*(np.asarray(arg != 0).astype(np.bool_) for arg in args))))


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
    "logical_and": logical(np.logical_and),
    "logical_not": logical(np.logical_not),
    "logical_or": logical(np.logical_or),
    "logical_xor": logical(np.logical_xor),
    "lt": compared(lambda a, b: a < b),
    "ne": compared(lambda a, b: a != b),
    "where": lambda xp, condition, a, b: xp.where(condition, reals(xp, a), reals(xp, b)),
}


TABLE: Mapping[str, Function] = {**ELEMENTWISE, **REDUCTIONS, **SUMS, **LINALG, **LAYERS}
