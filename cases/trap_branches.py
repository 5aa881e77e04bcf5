"""Traps in branches: values that are computed but not selected, and recorded branches that no longer apply."""

import numpy as np

from ._traps import traps

CASES, trap = traps("branches")


@trap({"x": -1.0}, (0.0,), faults={"nan": "0 · nan in the branch not taken (as jax-ml/jax#2630)"})
def trap_masked_sqrt(xp, x):
    """where(x > 0, sqrt x, 0) at -1 → 0: the untaken branch must not matter.

    The mask gives sqrt the adjoint 0, and 0 · NaN is NaN (jax-ml/jax#2630, casadi/casadi#1878).
    """
    return xp.where(x > 0, xp.sqrt(x), 0.0)


@trap(
    {"x": 0.0},
    (0.0,),
    faults={
        "nan": "0/0 in the branch not taken (as jax-ml/jax#1722)",
        "0": "the taken branch is a constant without a second derivative (as EnzymeAD/Enzyme.jl#1601)",
    },
)
def trap_masked_sinc(xp, x):
    """where(x = 0, 1, sin x / x) at 0 → 0: the quotient is computed but not selected.

    Its derivative at 0 is 0/0, and times the adjoint 0 still NaN (jax-ml/jax#1722, and the FAQ of most libraries).
    """
    return xp.where(x == 0, 1.0, xp.sin(x) / x)


@trap({"x": 1.0}, (1.0,), prepared={"x": -1.0})
def trap_recorded_branch(xp, x):
    """Relu by a Python `if`, prepared at -1 and called at 1 → 1.

    A recording at -1 holds the other branch: 0. A library that compiles one program must refuse. Returning the number 0
    made Enzyme's activity analysis treat the whole function as constant (EnzymeAD/Enzyme#101).
    """
    return x if x > 0 else 0.0


@trap({"x": 0.0}, (1.0,), faults={"0": "the derivative of the taken branch, a constant (EnzymeAD/Enzyme.jl#1601)"})
def trap_equality_branch(xp, x):
    """where(x = 0, 0, x) at 0 → 1: this is the identity, written with a special case.

    The taken branch is a constant with derivative 0: right for the branch, wrong for f. Julia's `xlogy` has the same
    form; its derivative at 0 was 0 instead of log y (EnzymeAD/Enzyme.jl#1601).
    """
    return xp.where(x == 0, 0.0, x)


@trap({"x": 1.0}, (0.0,), faults={"nan": "0 · inf in the branch not taken (as jax-ml/jax#2630)"})
def trap_masked_infinity(xp, x):
    """where(x > 0, 0, x · inf) at 1 → 0: a constant infinity in the untaken branch.

    The adjoint of that branch is 0 · inf = NaN (jax-ml/jax#2630).
    """
    return xp.where(x > 0, 0.0, x * np.inf)


@trap({"x": 1000.0}, (1.0,), faults={"nan": "0 · inf in the branch not taken (as jax-ml/jax#2630)"})
def trap_masked_overflow(xp, x):
    """where(x ≤ 0, exp x, 1 + x) at 1000 → 1: exp x overflows in the untaken branch.

    Its derivative inf times the adjoint 0 is NaN, although the value is correct (pytorch/pytorch#68425).
    """
    return xp.where(x <= 0, xp.exp(x), 1.0 + x)


@trap({"x": 0.0}, (1.0,), faults={"nan": "0 · inf in the branch not taken (as jax-ml/jax#5798)"})
def trap_masked_steep(xp, x):
    """where(x < 1, x, sqrt x) at 0 → 1: the untaken branch is finite, but its slope is infinite.

    0 · inf = NaN, although no value is infinite (jax-ml/jax#5798).
    """
    return xp.where(x < 1, x, xp.sqrt(x))


@trap({"x": [3.0, 0.0, -5.0]}, ([0.0, 0.0, 0.0],), faults={"nan": "0/0 at the masked origin (as jax-ml/jax#1052)"})
def trap_masked_angle(xp, x):
    """Σ where(i = 1, 0, atan2(x, x)) at (3, 0, -5) → 0: the angle of the origin is masked.

    atan2 has 0/0 at the origin, and masking with 0 does not remove it (jax-ml/jax#1052, pytorch/pytorch#98276).
    """
    return xp.sum(xp.where(xp.asarray([0.0, 1.0, 0.0]) > 0.5, 0.0 * x, xp.atan2(x, x)))


@trap(
    {"x": [2.0, 3.0, 4.0]}, ([1.0, 0.0, 0.0],), faults={"nan": "0/0 in the entry not read (as pytorch/pytorch#26799)"}
)
def trap_unread_entry(xp, x):
    """(x / (1, 0, 1))[0] at (2, 3, 4) → (1, 0, 0): an infinite entry that is never read.

    Indexing gives the other entries the adjoint 0, and 0 / 0 is NaN (pytorch/pytorch#26799, pytorch/pytorch#4132).
    """
    return (x / xp.asarray([1.0, 0.0, 1.0]))[0]


@trap({"x": 0.0}, (0.0,), faults={"nan": "0 · inf at the masked log (as stan-dev/math#2494)"})
def trap_masked_count_log(xp, x):
    """where(n = 0, 0, n log x) at n = 0, x = 0 → 0: no events at any rate.

    The log of zero gets the adjoint 0 · n, which leads to 0 · inf: the log density of a Poisson count of 0 had no
    gradient at rate 0 (stan-dev/math#2494).
    """
    n = xp.asarray([0.0])
    return xp.sum(xp.where(n == 0, 0.0 * x, n * xp.log(x)))
