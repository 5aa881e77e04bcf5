"""Traps of low precision: right in float64, and lost to a short significand or range in float32, bfloat16 or float16.

float16 ends at 65,504, float32 and bfloat16 at 3.4e38; bfloat16 has eight bits. `adbench check --dtype bfloat16 --suite
low-precision` checks them in a type. A point beyond the range of a type is unsupported there.
"""

import math
from dataclasses import replace

import numpy as np

from ._traps import traps

CASES, trap = traps("precision")

LOGITS = np.array([11.0, 12.0, 12.5, -11.0])
TARGET = np.array([0.0, 1.0, 0.0, 0.0])
ROW = np.array([100.0, 101.0, 103.0, 104.0])
EPSILON = 2.0**-10
MASK = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
SCORES = np.array([[0.5, 100.0, 100.0], [1.5, -0.5, 100.0], [0.25, 0.75, -1.0]])
VALUES = np.array([1.0, -2.0, 0.5])
MANY = np.resize([1.0, 0.5, 0.25, -0.125], 2048)


def softmax(x):
    grown = np.exp(x - x.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def of_softmax(x, w):
    share = softmax(x)
    return share * (w - np.sum(share * w, axis=-1, keepdims=True))


def shifted(xp, x):
    return x - xp.max(x, axis=-1, keepdims=True)


@trap({"x": LOGITS}, (of_softmax(LOGITS, TARGET),))
def trap_low_softmax(xp, x):
    """softmax(x)₁ with its largest logit subtracted, at (11, 12, 12.5, -11) → p (e₁ - p₁).

    exp 12 overflows in float16; the subtraction is exact and keeps exp at most 1.
    """
    grown = xp.exp(shifted(xp, x))
    return (grown / xp.sum(grown))[1]


@trap({"x": LOGITS}, (softmax(LOGITS),))
def trap_low_log_sum_exp(xp, x):
    """max x + log Σ exp(x - max x) at (11, 12, 12.5, -11) → softmax x.

    Its value has few digits in 8 bits. A derivative exp(x - value) of the rounded value has no more of them.
    """
    return xp.max(x) + xp.log(xp.sum(xp.exp(shifted(xp, x))))


@trap({"x": LOGITS}, (softmax(LOGITS) - TARGET,))
def trap_low_cross_entropy(xp, x):
    """log Σ exp z - z₁ for z = x - max x, at (11, 12, 12.5, -11) → softmax x - e₁.

    The log of a probability would lose the tail: 6e-11 underflows to 0 in float16, and log 0 is -inf.
    """
    z = shifted(xp, x)
    return xp.log(xp.sum(xp.exp(z))) - z[1]


@trap({"x": 12.0, "y": 0.0}, (1 / (1 + math.exp(-12.0)), 1 / (1 + math.exp(12.0))))
def trap_low_log_add_exp_end16(xp, x, y):
    """logaddexp(x, y) at (12, 0) → σ(12) and σ(-12) = 6.1e-6.

    exp 12 overflows in float16: 1 / (1 + exp(x - y)) is 0.
    """
    return xp.logaddexp(x, y)


@trap({"x": 100.0, "y": 40.0}, (1 / (1 + math.exp(-60.0)), 1 / (1 + math.exp(60.0))))
def trap_low_log_add_exp_far(xp, x, y):
    """logaddexp(x, y) at (100, 40) → 1 and e⁻⁶⁰ = 8.8e-27.

    exp 100 overflows in float32; only the difference 60 may be exponentiated.
    """
    return xp.logaddexp(x, y)


@trap({"x": 11.0}, (math.exp(11.0),))
def trap_low_exp_end(xp, x):
    """exp x at 11 → 59,874, near the end of float16.

    exp x for both the value and the derivative; a detour by 2 ** (x / log 2) loses digits of the exponent.
    """
    return xp.exp(x)


@trap({"x": 2.0**-14}, (2.0**14,))
def trap_low_log_end(xp, x):
    """log x at 2⁻¹⁴, the smallest normal number of float16 → 2¹⁴.

    The derivative 1 / x is exact in every type.
    """
    return xp.log(x)


@trap({"x": 2.0**-9}, (math.exp(2.0**-9),))
def trap_low_expm1(xp, x):
    """expm1 x at 2⁻⁹ → exp x, about 1.002.

    exp x - 1 is 0 in bfloat16, and the value + 1 is exp x only up to its rounding.
    """
    return xp.expm1(x)


@trap(
    {"x": 300.0},
    (1 / math.sqrt(90_001.0),),
    faults={"0": "x² + 1 overflows in 1 / sqrt(x² + 1) (as jax-ml/jax#40634)"},
)
def trap_low_asinh_end16(xp, x):
    """asinh x at 300 → 1 / sqrt(x² + 1) = 1/300.

    x² overflows in float16, and 1 / sqrt(inf) is 0.
    """
    return xp.asinh(x)


@trap({"x": 2.0**66}, (2.0**-66,), faults={"0": "x² + 1 overflows in 1 / sqrt(x² + 1) (as jax-ml/jax#40634)"})
def trap_low_asinh_end(xp, x):
    """asinh x at 2⁶⁶ → 1 / sqrt(x² + 1) = 2⁻⁶⁶.

    x² overflows in float32 and bfloat16, and 1 / sqrt(inf) is 0 (jax-ml/jax#40634).
    """
    return xp.asinh(x)


@trap({"x": 2.0**66}, (2.0**-66,), faults={"0": "x² - 1 overflows in 1 / sqrt(x² - 1) (as jax-ml/jax#40634)"})
def trap_low_acosh_end(xp, x):
    """acosh x at 2⁶⁶ → 1 / sqrt(x² - 1) = 2⁻⁶⁶.

    x² overflows in float32 and bfloat16, and 1 / sqrt(inf) is 0 (jax-ml/jax#40634).
    """
    return xp.acosh(x)


@trap(
    {"x": [300.0, 400.0]}, ([0.6, 0.8],), faults={"0": "the norm is inf, and x / inf is 0 (as pytorch/pytorch#193006)"}
)
def trap_low_norm_end16(xp, x):
    """The norm of (300, 400) → (0.6, 0.8).

    x² overflows in float16: the norm is inf, and x / inf is 0 (jax-ml/jax#39899).
    """
    return xp.linalg.vector_norm(x)


@trap(
    {"x": [3 * 2.0**65, 2.0**67]},
    ([0.6, 0.8],),
    faults={"0": "the norm is inf, and x / inf is 0 (as pytorch/pytorch#193006)"},
)
def trap_low_norm_end(xp, x):
    """The norm of 2⁶⁵ (3, 4) → (0.6, 0.8).

    x² overflows in float32 and bfloat16: the norm is inf, and x / inf is 0 (pytorch/pytorch#193006).
    """
    return xp.linalg.vector_norm(x)


@trap(
    {"x": 300.0, "y": 400.0},
    (0.6, 0.8),
    faults={"1.25 instead of 0.8": "y² overflows in x / y², the slope of the ratio x / y"},
)
def trap_low_hypot_end16(xp, x, y):
    """hypot(300, 400) → (0.6, 0.8).

    x² + y² overflows in float16, though the length is 500.
    """
    return xp.hypot(x, y)


@trap(
    {"x": 3 * 2.0**65, "y": 2.0**67},
    (0.6, 0.8),
    faults={"1.25 instead of 0.8": "y² overflows in x / y², the slope of the ratio x / y"},
)
def trap_low_hypot_end(xp, x, y):
    """hypot(x, y) at 2⁶⁵ (3, 4) → (0.6, 0.8).

    y² overflows in float32 and bfloat16, also in the derivative of y sqrt(1 + (x / y)²), whose value is right.
    """
    return xp.hypot(x, y)


@trap({"x": ROW}, (2 * (ROW - ROW.mean()) / 4,))
def trap_low_variance(xp, x):
    """The variance of (100, 101, 103, 104) → 2 (x - 102) / 4.

    The mean of the squares minus the square of the mean has no digit in float16 and bfloat16.
    """
    return xp.var(x)


@trap({"x": ROW}, ((ROW - ROW.mean()) / (4 * ROW.std()),))
def trap_low_deviation(xp, x):
    """The standard deviation of (100, 101, 103, 104) → (x - 102) / 4 s.

    x - 102 is small next to x, which 8 bits round to a multiple of ½.
    """
    return xp.std(x)


def of_layer_norm():
    moved, w = ROW - ROW.mean(), TARGET
    scale = 1 / np.sqrt(np.mean(moved**2) + EPSILON)
    by_moved = scale * (w - moved * scale**2 * np.mean(w * moved))
    return by_moved - by_moved.mean()


@trap({"x": ROW}, (of_layer_norm(),))
def trap_low_layer_norm(xp, x):
    """(z / sqrt(mean z² + 2⁻¹⁰))₁ for z = x - mean x, at (100, 101, 103, 104).

    Layer norm of activations with a large mean. A usual 1e-12 instead of 2⁻¹⁰ would be 0 in float16.
    """
    moved = x - xp.mean(x)
    return moved[1] / xp.sqrt(xp.mean(moved * moved) + EPSILON)


@trap({"s": SCORES}, (of_softmax(np.where(MASK > 0, SCORES, -np.inf), VALUES),))
def trap_low_masked_attention(xp, s):
    """Σ softmax(s, masked by -inf) v, causal with scores of 100 behind the mask → 0 behind it.

    Each row has a visible score, so no row is NaN. A mask of -1e9 overflows in float16.
    """
    visible = xp.where(xp.asarray(MASK) > 0, s, -np.inf)
    grown = xp.exp(shifted(xp, visible))
    shares = grown / xp.sum(grown, axis=-1, keepdims=True)
    return xp.sum(shares * xp.asarray(VALUES))


@trap({"x": 0.75}, (832.0,))
def trap_low_large_sum(xp, x):
    """Σ x w for 2048 weights w, 832 in all, at ¾ → 832: the sum of the weights.

    Added one by one in bfloat16, the value and the adjoint of x stop at 256: 256 + 1 is 256.
    """
    return xp.sum(x * xp.asarray(MANY))


@trap({"x": 0.75}, (1.5 * 680.0 / 2048.0,))
def trap_low_mean_square(xp, x):
    """The mean of (x w)² for 2048 weights w at ¾ → 2 x times the mean of w².

    The sum of the squares passes 256, where bfloat16 adds no more 1s.
    """
    return xp.mean((x * xp.asarray(MANY)) ** 2)


@trap({"x": [30_000.0, 30_000.0, 20_000.0]}, ([1 / 3] * 3,))
def trap_low_mean_end16(xp, x):
    """The mean of (30,000, 30,000, 20,000) → 1/3.

    The sum overflows in float16, the mean does not: sums need a wider accumulator.
    """
    return xp.mean(x)


@trap({"x": np.ones(64)}, ((64 - np.arange(64.0)) / 64,))
def trap_low_cumulative_sum(xp, x):
    """Σ of the cumulative sums of 64 ones, / 64 → (64 - k) / 64.

    The adjoint is a cumulative sum from behind. Both have at most 64 terms, exact in every type.
    """
    return xp.sum(xp.cumulative_sum(x)) / 64.0


@trap({"x": 4.0}, (1 / math.cosh(4.0) ** 2,))
def trap_low_tanh_saturated(xp, x):
    """tanh x at 4 → 1 / cosh² 4 = 0.00134.

    1 - tanh² of the rounded output: bfloat16 rounds tanh 4 = 0.99933 to 1, and the derivative is 0.
    """
    return xp.tanh(x)


CASES.update({name: replace(case, suites=("low-precision",)) for name, case in CASES.items()})
