"""ATen operations on arrays of the oracle's numbers: name -> function(xp, *arguments).

A function gets torch's arguments in torch's order, with numpy arrays instead of tensors: arrays of `Real` (or
`Complex`) for floats, otherwise of integers and booleans. `xp` is the namespace over balls. Formulas are torch's if
they determine the effect of rounding: 1 + erf(x) loses digits that erfc(-x) keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adbench.functions.from_torch.torch_layers import LAYERS
from adbench.functions.from_torch.torch_linalg import LINALG, reals
from adbench.functions.from_torch.torch_reductions import REDUCTIONS, SUMS

Function = Callable[..., Any]

ARRANGING = frozenset(
    [
        "_unsafe_index",
        "_unsafe_view",
        "alias_copy",
        "as_strided_copy",
        "as_strided_scatter",
        "block_diag",
        "cat",
        "channel_shuffle",
        "constant_pad_nd",
        "detach_copy",
        "diag_embed",
        "diagonal_copy",
        "diagonal_scatter",
        "embedding",
        "expand_copy",
        "flip",
        "gather",
        "im2col",
        "index",
        "index_copy",
        "index_fill",
        "index_select",
        "masked_fill",
        "masked_scatter",
        "masked_select",
        "permute_copy",
        "pixel_shuffle",
        "pixel_unshuffle",
        "reflection_pad1d",
        "reflection_pad2d",
        "reflection_pad3d",
        "repeat",
        "repeat_interleave",
        "replication_pad1d",
        "replication_pad2d",
        "replication_pad3d",
        "roll",
        "rot90",
        "scatter",
        "select_copy",
        "select_scatter",
        "slice_copy",
        "slice_scatter",
        "split_copy",
        "split_with_sizes_copy",
        "squeeze_copy",
        "stack",
        "t_copy",
        "take",
        "transpose_copy",
        "tril",
        "triu",
        "unbind_copy",
        "unfold_copy",
        "unsafe_chunk",
        "unsafe_split",
        "unsafe_split_with_sizes",
        "unsqueeze_copy",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "view_copy",
    ]
)
"""Operations whose results have entries of their arguments, fill values and zeros."""

RANDOM_IN_PLACE = frozenset(
    ["bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"]
)


def elementwise(function: Function) -> Function:
    """A function that converts integers and booleans to numbers of the namespace."""

    def on_numbers(xp: Any, *args: Any, **kwargs: Any) -> Any:
        return function(xp, *(reals(xp, arg) for arg in args), **{key: reals(xp, a) for key, a in kwargs.items()})

    return on_numbers


def of_xp(name: str) -> Function:
    """The namespace's function of this name."""
    return elementwise(lambda xp, *args: getattr(xp, name)(*args))


# Elementwise ------------------------------------------------------------------------------------------------------


def scaled(factor: Any, x: Any) -> Any:
    """factor · x, without rounding if the factor is 1."""
    return x if factor is None or (isinstance(factor, (int, float)) and factor == 1) else factor * x


def divided(xp: Any, a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """a / b, rounded towards zero or towards minus infinity."""
    quotient = a / b
    return quotient if rounding_mode is None else xp.floor(quotient) if rounding_mode == "floor" else xp.trunc(quotient)


def fmod(xp: Any, a: Any, b: Any) -> Any:
    """The remainder with the sign of a."""
    return a - b * xp.trunc(a / b)


def rounded(xp: Any, x: Any, *, decimals: int = 0) -> Any:
    """The nearest number with this many decimals."""
    return xp.round(x) if decimals == 0 else xp.round(x * 10.0**decimals) / 10.0**decimals


def clamped(xp: Any, x: Any, min: Any = None, max: Any = None) -> Any:
    """x between min and max."""
    return xp.clip(x, min, max)


def rectified(xp: Any, x: Any, slope: float = 0.0) -> Any:
    """x above zero, else slope · x."""
    return xp.where(np.asarray(x > 0), x, slope * x)


def gelu(xp: Any, x: Any, *, approximate: str = "none") -> Any:
    """x Φ(x), or its approximation by tanh."""
    if approximate == "none":
        return 0.5 * x * (1 + xp.erf(x * math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + xp.tanh(inner))


def softplus(xp: Any, x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """log(1 + exp(beta x)) / beta, and x itself if beta x exceeds the threshold."""
    steep = scaled(beta, x)
    return xp.where(np.asarray(steep > threshold), x, xp.log1p_exp(steep) / beta)


def elu(xp: Any, x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    """x above zero, else alpha (exp(x) - 1)."""
    bent = scaled(alpha, xp.expm1(scaled(input_scale, x)))
    return scaled(scale, xp.where(np.asarray(x > 0), x, bent))


def log_sigmoid(xp: Any, x: Any) -> Any:
    """-log(1 + exp(-x)); the second result is for torch's derivative."""
    return -xp.log1p_exp(-x), xp.zeros(np.shape(x))


def logit(xp: Any, x: Any, eps: float | None = None) -> Any:
    """log(x / (1 - x)), of x in [eps, 1 - eps]."""
    return xp.logit(x if eps is None else xp.clip(x, eps, 1 - eps))


def entropy(xp: Any, x: Any) -> Any:
    """-x log x, 0 at 0, -inf below."""
    return xp.where(np.asarray(x < 0), -math.inf, -xp.xlogy(x, x))


def nan_to_num(
    xp: Any, x: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """x with numbers instead of NaN and infinities."""
    most = float(np.finfo(np.float64).max)
    x = xp.where(xp.isnan(x), 0.0 if nan is None else nan, x)
    x = xp.where(np.asarray(x == math.inf), most if posinf is None else posinf, x)
    return xp.where(np.asarray(x == -math.inf), -most if neginf is None else neginf, x)


def fmax(xp: Any, a: Any, b: Any) -> Any:
    """The larger number; ignores NaN."""
    return xp.where(xp.isnan(a), b, xp.where(xp.isnan(b), a, xp.maximum(a, b)))


def fmin(xp: Any, a: Any, b: Any) -> Any:
    """The smaller number; ignores NaN."""
    return xp.where(xp.isnan(a), b, xp.where(xp.isnan(b), a, xp.minimum(a, b)))


def bessel_of(name: str, order: int, *, scale: int = 0) -> Function:
    """A Bessel function of this order, times exp(scale · |x|)."""

    def bessel(xp: Any, x: Any) -> Any:
        found = getattr(xp, name)(order, x)
        return xp.exp(scale * xp.abs(x)) * found if scale else found

    return elementwise(bessel)


def compared(holds: Callable[[Any, Any], Any]) -> Function:
    """A comparison of numbers."""
    return elementwise(lambda xp, a, b: np.asarray(holds(a, b)).astype(np.bool_))


def logical(holds: Callable[..., Any]) -> Function:
    """A function of truth values; for numbers x ≠ 0."""
    return elementwise(lambda xp, *args: np.asarray(holds(*(np.asarray(arg != 0).astype(np.bool_) for arg in args))))


FORMULAS: Mapping[str, Function] = {
    "_prelu_kernel": rectified,
    "add": lambda xp, a, b, *, alpha=1: a + scaled(alpha, b),
    "addcdiv": lambda xp, x, a, b, *, value=1: x + scaled(value, a) / b,
    "addcmul": lambda xp, x, a, b, *, value=1: x + scaled(value, a) * b,
    "angle": lambda xp, x: xp.atan2(xp.imag(x), xp.real(x)),
    "clamp": clamped,
    "clamp_max": lambda xp, x, most: xp.minimum(x, most),
    "clamp_min": lambda xp, x, least: xp.maximum(x, least),
    "complex": lambda xp, a, b: a + b * np.array(1j, dtype=object),
    "div": divided,
    "elu": elu,
    "fill": lambda xp, x, value: xp.zeros(np.shape(x)) + value,
    "floor_divide": lambda xp, a, b: a // b,
    "fmax": fmax,
    "fmin": fmin,
    "fmod": fmod,
    "frac": lambda xp, x: x - xp.trunc(x),
    "gelu": gelu,
    "hardtanh": lambda xp, x, least=-1.0, most=1.0: xp.clip(x, least, most),
    "heaviside": lambda xp, x, at_zero: xp.where(np.asarray(x == 0), at_zero, xp.where(np.asarray(x > 0), 1, 0)),
    "leaky_relu": lambda xp, x, slope=0.01: rectified(xp, x, slope),
    "lerp": lambda xp, a, b, weight: a + weight * (b - a),
    "log_sigmoid_forward": log_sigmoid,
    "logaddexp2": lambda xp, a, b: xp.logaddexp(a * xp.log(2.0), b * xp.log(2.0)) / xp.log(2.0),
    "logit": logit,
    "mish": lambda xp, x: x * xp.tanh(xp.log1p_exp(x)),
    "mul": lambda xp, a, b: a * b,
    "nan_to_num": nan_to_num,
    "neg": lambda xp, x: -x,
    "polar": lambda xp, size, angle: size * xp.cos(angle) + size * xp.sin(angle) * np.array(1j, dtype=object),
    "pow": lambda xp, a, b: a**b,
    "relu": lambda xp, x: xp.where(np.asarray(x > 0), x, 0.0),
    "remainder": lambda xp, a, b: a % b,
    "round": rounded,
    "rsqrt": lambda xp, x: 1 / xp.sqrt(x),
    "rsub": lambda xp, a, b, alpha=1: b - scaled(alpha, a),
    "silu": lambda xp, x: x * xp.expit(x),
    "softplus": softplus,
    "sub": lambda xp, a, b, *, alpha=1: a - scaled(alpha, b),
}

ELEMENTWISE: Mapping[str, Function] = {
    **{
        name: of_xp(name)
        for name in [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atan2",
            "atanh",
            "ceil",
            "copysign",
            "cos",
            "cosh",
            "deg2rad",
            "digamma",
            "erf",
            "erfc",
            "erfinv",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "hypot",
            "lgamma",
            "log",
            "log10",
            "log1p",
            "log2",
            "logaddexp",
            "maximum",
            "minimum",
            "polygamma",
            "rad2deg",
            "reciprocal",
            "sign",
            "sin",
            "sinc",
            "sinh",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "trunc",
            "xlogy",
        ]
    },
    **{
        name: of_xp(called)
        for name, called in {
            "abs": "abs",
            "_conj_physical": "conj",
            "conj_physical": "conj",
            "i0": "i0",
            "igamma": "gammainc",
            "igammac": "gammaincc",
            "isfinite": "isfinite",
            "isinf": "isinf",
            "isnan": "isnan",
            "mvlgamma": "multigammaln",
            "sgn": "sign",
            "sigmoid": "expit",
            "signbit": "signbit",
            "special_bessel_j0": "j0",
            "special_bessel_j1": "j1",
            "special_erfcx": "erfcx",
            "special_i1": "i1",
            "special_log_ndtr": "log_ndtr",
            "special_modified_bessel_i0": "i0",
            "special_modified_bessel_i1": "i1",
            "special_ndtri": "ndtri",
            "special_xlog1py": "xlog1py",
            "special_zeta": "zeta",
        }.items()
    },
    "special_bessel_y0": bessel_of("yv", 0),
    "special_bessel_y1": bessel_of("yv", 1),
    "special_entr": elementwise(entropy),
    "special_i0e": bessel_of("iv", 0, scale=-1),
    "special_i1e": bessel_of("iv", 1, scale=-1),
    "special_scaled_modified_bessel_k0": bessel_of("kv", 0, scale=1),
    "special_scaled_modified_bessel_k1": bessel_of("kv", 1, scale=1),
    "special_modified_bessel_k0": bessel_of("kv", 0),
    "special_modified_bessel_k1": bessel_of("kv", 1),
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
