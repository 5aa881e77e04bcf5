"""Traps of powers and products: zero bases, zero exponents, zero factors."""

import math

from ._traps import traps

CASES, trap = traps("powers")


@trap({"y": 2.0}, (0.0,), faults={"nan": "0^y log 0 (as pytorch/pytorch#27134)"})
def trap_zero_to_a_power(xp, y):
    """0^y at y = 2 → 0: the power stays 0 for every y > 0.

    0^y log 0 = 0 · -inf (pytorch/pytorch#27134).
    """
    return xp.pow(xp.asarray([0.0]), y)[0]


@trap(
    {"x": [0.0, 0.0]},
    ([1.0, 0.0],),
    faults={"nan": "0 · 0^-1 for the float exponent 0.0 (as jax-ml/jax#14397)"},
)
def trap_power_zero(xp, x):
    """Σ x^(1, 0) at 0 → (1, 0): x⁰ is constant.

    0 · 0^-1 = 0 · inf (casadi/casadi#2856; jax-ml/jax#14397: jax keeps NaN for exponents of float type).
    """
    return xp.sum(x ** xp.asarray([1.0, 0.0]))


@trap(
    {"x": [0.0, 0.0, 0.0], "y": [1.0, 2.0, 3.0]},
    ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    faults={"nan": "x^y log x at 0 (as pytorch/pytorch#27134)"},
)
def trap_power_both(xp, x, y):
    """Σ x^y at x = 0, y = (1, 2, 3) → (1, 0, 0) in x, 0 in y.

    Stan skips all derivatives at base 0, so d/dx x¹ is 0 there (stan-dev/math#3031). x^y as exp(y log x) has 0/0
    (martinjrobins/diffsl#138, with Enzyme).
    """
    return xp.sum(xp.pow(x, y))


@trap({"x": -2.0}, (12.0,))
def trap_power_negative_base(xp, x):
    """x³ with the exponent 3.0, at -2 → 12.

    exp(3 log x) is NaN for a negative base: value, derivative, or both.
    """
    return x**3.0


@trap({"x": 0.0}, (0.0,))
def trap_power_three_halves(xp, x):
    """x^1.5 at 0 → 0, from the right.

    y x^y / x is 0/0 there.
    """
    return x**1.5


@trap({"x": 0.0}, (-2.0,))
def trap_power_chain(xp, x):
    """(x - 1)^2.0 at 0 → -2: a float exponent and a negative base.

    The general rule computes both derivatives and multiplies by log(x - 1).
    """
    return (x - 1.0) ** 2.0


@trap({"x": [0.0, 2.0, 3.0]}, ([6.0, 0.0, 0.0],), faults={"nan": "product / x at x = 0 (as HIPS/autograd#93)"})
def trap_prod_zero(xp, x):
    """Π (0, 2, 3) → (6, 0, 0).

    product / x is 0/0 at the zero (pytorch/pytorch#773, HIPS/autograd#93, HIPS/autograd#378).
    """
    return xp.prod(x)


@trap({"x": [0.0, 0.0, 3.0]}, ([0.0, 0.0, 0.0],), faults={"nan": "product / x at x = 0 (as HIPS/autograd#93)"})
def trap_prod_two_zeros(xp, x):
    """Π (0, 0, 3) → 0: with two zeros each factor is multiplied by another zero.

    A rule for a single zero gives (3, 3, 0).
    """
    return xp.prod(x)


@trap({"x": [0.0]}, ([1.0],))
def trap_prod_one_zero(xp, x):
    """Π (0) → 1, in an array of one entry.

    The adjoint lost its axis in pytorch/pytorch#82644.
    """
    return xp.prod(x, axis=0)


@trap({"x": [2.0, 0.0, 5.0]}, ([1.0, 12.0, 0.0],))
def trap_cumulative_product_zero(xp, x):
    """x₀ + x₀ x₁ + x₀ x₁ x₂ at (2, 0, 5), by the cumulative product → (1, 12, 0).

    Dividing by x gives NaN (pymc-devs/pytensor#1911, tensorflow/tensorflow#3862); autograd lacks the derivative
    (HIPS/autograd#257).
    """
    return xp.sum(xp.cumulative_prod(x))


P_NORM = (1 + 2**1.5) ** (2 / 3)


@trap({"x": [0.0, 1.0, 2.0]}, ([0.0, math.sqrt(1 / P_NORM), math.sqrt(2 / P_NORM)],))
def trap_p_norm_zero_entry(xp, x):
    """(Σ |x|^1.5)^(2/3) at (0, 1, 2) → |x|^½ sign x / ‖x‖^½: 0 at the zero.

    |x|^-½ x is inf · 0 there.
    """
    return xp.linalg.vector_norm(x, ord=1.5)


@trap({"x": 0.7}, (math.sinh(0.7),))
def trap_cosh(xp, x):
    """cosh x at 0.7 → sinh x.

    casadi had -sinh x, the pattern of cos and sin, for nine years (casadi/casadi#2585).
    """
    return xp.cosh(x)
