"""Traps of numerical stability: infinities that cancel, exponentials that overflow, cancellation."""

import math

import numpy as np

from ._traps import traps

CASES, trap = traps("stability")


@trap({"x": 1.0}, (0.0,), declared=True, faults={"nan": "-inf - -inf (as jax-ml/jax#6811)"})
def trap_log_add_exp_of_nothing(xp, x):
    """logaddexp(-inf, -inf + x) at 1 → 0: log(0 + 0 eˣ), in logarithms.

    exp(-inf - -inf) is NaN (jax-ml/jax#6811, pytorch/pytorch#31829, stan-dev/math#646). Declared: f is -inf for all x.
    """
    return xp.logaddexp(xp.asarray(-np.inf), -np.inf + x)


@trap({"x": 2.0}, (1.0,), faults={"nan": "-inf - -inf (as jax-ml/jax#6811)"})
def trap_log_add_exp_with_nothing(xp, x):
    """logaddexp(logaddexp(-inf, -inf + x), x) at 2 → 1: in logarithms, zeros and then x are added.

    The value of the inner call is correct, its derivative is NaN (pytorch/pytorch#49724).
    """
    nothing = xp.asarray(-np.inf)
    return xp.logaddexp(xp.logaddexp(nothing, -np.inf + x), x)


@trap({"x": 800.0}, (1.0,))
def trap_log_add_exp_large(xp, x):
    """logaddexp(0, x) at 800 → 1: log(1 + eˣ) without overflow.

    The derivative exp x / (1 + exp x) is inf / inf.
    """
    return xp.logaddexp(xp.asarray(0.0), x)


@trap({"x": 800.0}, (1.0,), faults={"nan": "inf / inf, because exp overflows in the value too"})
def trap_log1p_exp_overflow(xp, x):
    """log1p(exp x) at 800 → 1: f is 800, and inf in double precision.

    exp x overflows: every library's value is inf, the derivative inf / inf or 1 / inf · inf. An engine that rewrites
    log1p(exp x) is correct; NaN shows the problem, 0 hides it.
    """
    return xp.log1p(xp.exp(x))


@trap({"x": 1e10}, (1.0,), faults={"few digits": "exp(x - f) with f rounded (as stan-dev/math#1679)"})
def trap_log_add_exp_equal_large(xp, x):
    """logaddexp(x, x) at 10¹⁰ → 1: x + log 2.

    exp(x - f) with f rounded has an error of x · 1e-16: 0.9999995 at 1e10 (stan-dev/math#1679).
    """
    return xp.logaddexp(x, x)


@trap({"x": 1.5, "y": 1.5}, (0.5, 0.5))
def trap_log_add_exp_equal(xp, x, y):
    """logaddexp(x, y) at x = y → ½ and ½.

    max(x, y) + log1p(exp(-|x - y|)) is smooth, but its parts have kinks: (1, 0) (keras-team/keras#23616).
    """
    return xp.logaddexp(x, y)


@trap(
    {"x": 1e-6},
    (-1e-6 * math.pi**2 / 3 * (1 - 1e-12 * math.pi**2 / 10),),
    faults={
        "five digits": "cos - sin x / x cancels (as jax-ml/jax#34139)",
        "four digits": "cos - sin x / x cancels (as jax-ml/jax#34139)",
    },
)
def trap_sinc_near_zero(xp, x):
    """sinc x = sin(π x) / (π x) at 1e-6 → -π² x / 3.

    (cos - sinc) / x leaves four digits (jax-ml/jax#34139, jax-ml/jax#40629).
    """
    return xp.sinc(x)


@trap({"x": 1e200}, (1.0,))
def trap_hypot_large(xp, x):
    """hypot(x, 1) at 1e200 → 1.

    x / sqrt(x² + 1) overflows: 0, or NaN (casadi/casadi#1595 requests hypot for its numerical properties).
    """
    return xp.hypot(x, xp.asarray(1.0))


@trap({"x": 1e-200}, (0.0,), faults={"nan": "x² + y² underflows in the derivative of atan2"})
def trap_atan2_small(xp, x):
    """atan2(x, x) at 1e-200 → 0: the angle of the diagonal.

    x² + y² underflows to 0: x / 0 - x / 0 = NaN. For complex numbers: pytorch/pytorch#98276.
    """
    return xp.atan2(x, x)


@trap(
    {"y": 1e200, "x": 1e200},
    (5e-201, -5e-201),
    faults={
        "raises": "x² + y² of Python's floats overflows in the derivative of atan2",
        "0": "x² + y² overflows in the derivative of atan2",
    },
)
def trap_atan2_large(xp, y, x):
    """atan2(y, x) at y = x = 1e200 → 1 / 2y and -1 / 2x.

    x² + y² overflows to inf, and x / inf is 0.
    """
    return xp.atan2(y, x)


@trap({"x": 1e200}, (0.0,), faults={"1e-200": "(x + 1)² overflows and its term is lost"})
def trap_quotient_large(xp, x):
    """(x - 1) / (x + 1) at 1e200 → 2 / (x + 1)² = 2e-400, which is 0 in double precision.

    1 / (x + 1) - (x - 1) / (x + 1)²: the square overflows and the second term is lost, which leaves 1e-200.
    """
    return (x - 1.0) / (x + 1.0)


@trap({"x": 750.0}, (0.0,), faults={"nan": "inf · 0, because exp overflows"})
def trap_logistic_tail(xp, x):
    """1 / (1 + exp x) at 750 → -e⁻⁷⁵⁰, which is 0 in double precision.

    -exp x / (1 + exp x)² = inf / inf = NaN.
    """
    return 1.0 / (1.0 + xp.exp(x))


@trap(
    {"x": 400.0},
    (-math.exp(-400.0),),
    faults={"0": "(1 + exp x)² overflows in the derivative of the quotient (as jax-ml/jax#40825)"},
)
def trap_logistic_far(xp, x):
    """1 / (1 + exp x) at 400 → -e⁻⁴⁰⁰ = -1.9e-174: small but representable.

    (1 + exp x)² overflows, so the quotient rule gives 0 (the same problem for the logistic function:
    jax-ml/jax#40825).
    """
    return 1.0 / (1.0 + xp.exp(x))
