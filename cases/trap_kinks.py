"""Traps at kinks: points where the derivative is a set, and smooth compositions of kinks.

At a kink of f, any value between the one-sided derivatives is correct; checks record which one a library takes.
"""

import math

from ._traps import traps

CASES, trap = traps("kinks")


@trap({"x": 0.0}, None)
def trap_abs_at_zero(xp, x):
    """|x| at 0 → anything in [-1, 1].

    x / |x| is NaN there (HIPS/autograd#100).
    """
    return xp.abs(x)


@trap({"x": [2.0, 2.0]}, None)
def trap_max_tie(xp, x):
    """max(2, 2) → anything in [0, 1] for each.

    Libraries split the gradient or give it to the first entry; one returned NaN (stan-dev/math#2060).
    """
    return xp.max(x)


@trap({"x": [2.0, 2.0, 3.0]}, None)
def trap_sort_tie(xp, x):
    """The smallest of sort(2, 2, 3) → anything in [0, 1] for the tied entries, 0 for the third."""
    return xp.sort(x)[0]


@trap({"x": [0.0, 0.0, 0.0]}, None, faults={"nan": "0 · inf, where sqrt is vertical (as pytorch/pytorch#2421)"})
def trap_norm_at_zero(xp, x):
    """sqrt(Σ x²) at 0 → anything in [-1, 1] in each entry.

    Most give 0 · inf = NaN; 0 is the subgradient of least norm (HIPS/autograd#151, jax-ml/jax#3058,
    pytorch/pytorch#2421).
    """
    return xp.sqrt(xp.sum(x * x))


@trap({"x": 2.0}, (1.0,))
def trap_max_tie_sums_to_one(xp, x):
    """max(x, x, x) at 2 → 1: this is the identity, so the shares of a tie sum to 1.

    A mask not divided by the number of ties gives 3 (HIPS/autograd#141).
    """
    return xp.max(xp.stack([x, x, x]))


@trap({"x": 2.0}, (1.0,))
def trap_maximum_tie_sums_to_one(xp, x):
    """maximum(x, x) at 2 → 1: this is the identity.

    Comparing with ≥ for one argument and > for the other also gives 1; the same comparison for both gives 2 or 0.
    """
    return xp.maximum(x, x)


@trap({"x": 2.0}, (1.0,))
def trap_sort_tie_sums_to_one(xp, x):
    """The middle entry of sort(x, x, x) at 2 → 1: this is the identity."""
    return xp.sort(xp.stack([x, x, x]))[1]


@trap({"x": 0.0}, (1.0,), faults={"2": "both sides of the kink contribute at 0"})
def trap_relu_difference(xp, x):
    """max(x, 0) - max(-x, 0) at 0 → 1: the identity, made of two kinks.

    Only max'(0) = 1/2 is correct, not 0 or 1: Kakade and Lee (2018), "Provably correct automatic
    subdifferentiation". jax-ml/jax#37821 asks for 0 instead of 1/2.
    """
    zero = 0.0 * x
    return xp.maximum(x, zero) - xp.maximum(-x, zero)


@trap(
    {"x": 0.0},
    (1.0,),
    faults={"0": "slope 0 at the bounds", "2": "slope 1 at the bounds (as pytorch/pytorch#7049)"},
)
def trap_clip_difference(xp, x):
    """clip(x, 0, 1) - clip(-x, 0, 1) at 0 → 1: the identity near 0, made of two kinks.

    Slope 1 at the bound (torch, pytorch/pytorch#7049) gives 2; slope 0 (pytorch/pytorch#185831) gives 0. Only one half
    is correct.
    """
    return xp.clip(x, 0.0, 1.0) - xp.clip(-x, 0.0, 1.0)


@trap({"x": [1.0, 2.0], "y": [1.0, 2.0]}, ([0.0, 0.0], [0.0, 0.0]))
def trap_half_square_norm(xp, x, y):
    """½ ‖x - y‖² at x = y → 0: squaring removes the kink of the norm.

    ‖·‖ · 0/0 = NaN (jax-ml/jax#21723, jax-ml/jax#4177, HIPS/autograd#617, casadi/casadi#3898).
    """
    return 0.5 * xp.linalg.vector_norm(x - y) ** 2


@trap(
    {"x": [0.0, 0.0, 0.0]}, ([0.0, 0.0, 0.0],), faults={"nan": "0 · inf, where sqrt is vertical (as HIPS/autograd#151)"}
)
def trap_half_square_root(xp, x):
    """½ sqrt(Σ x²)² at 0 → 0: the same, written out.

    0 · inf (jax-ml/jax#939, HIPS/autograd#151).
    """
    return 0.5 * xp.sqrt(xp.sum(x * x)) ** 2


@trap({"x": [0.0, 0.0]}, ([0.0, 0.0],), faults={"nan": "0/0 in the derivative of hypot (as HIPS/autograd#151)"})
def trap_half_square_hypot(xp, x):
    """½ hypot(x, y)² at the origin → 0.

    x / hypot is 0/0 there; casadi/casadi#1595 discusses the right derivative.
    """
    return 0.5 * xp.hypot(x[0], x[1]) ** 2


@trap({"x": [7.0, 7.0, 7.0]}, None, faults={"nan": "0 · inf, where sqrt is vertical (as pytorch/pytorch#4320)"})
def trap_std_of_constant(xp, x):
    """The standard deviation of (7, 7, 7) → anything between ±√2/3 in each entry.

    The square root of the variance 0 (pytorch/pytorch#4320, jax-ml/jax#11716).
    """
    return xp.std(x)


@trap(
    {"x": [7.0, 7.0, 7.0]},
    ([0.0, 0.0, 0.0],),
    faults={"nan": "0 · inf, where sqrt is vertical (as pytorch/pytorch#4320)"},
)
def trap_square_std_of_constant(xp, x):
    """The square of the standard deviation of (7, 7, 7) → 0: the variance at its minimum.

    2 std · 0/0 = NaN.
    """
    return xp.std(x) ** 2


@trap({"x": 0.0}, (0.0,), faults={"nan": "0 · inf, where sqrt is vertical (as HIPS/autograd#151)"})
def trap_x_sqrt_x(xp, x):
    """x sqrt x at 0 → 0, from the right.

    sqrt has the adjoint x = 0 and the slope inf: most give NaN, although f is x^1.5.
    """
    return x * xp.sqrt(x)


@trap({"x": 0.0}, (1.0,), faults={"nan": "0 · inf, where sqrt is vertical (as HIPS/autograd#151)"})
def trap_square_of_sqrt(xp, x):
    """(sqrt x)² at 0 → 1, from the right: this is x.

    2 sqrt x · 1 / (2 sqrt x) = 0 · inf. NaN shows that something is wrong; an engine that takes 0 · inf as 0 for
    x sqrt x returns 0.
    """
    return xp.sqrt(x) ** 2


@trap({"x": 0.0}, (1.0,), faults={"nan": "0 · inf, where log has its pole (as HIPS/autograd#151)"})
def trap_exp_of_log(xp, x):
    """exp(log x) at 0 → 1, from the right: this is x.

    exp(-inf) · 1 / 0 = 0 · inf: NaN, or 0 in engines that take 0 · inf as 0.
    """
    return xp.exp(xp.log(x))


@trap({"x": 1.0}, (-2.0,), faults={"nan": "0 · inf, where acos is vertical (as casadi/casadi#3598)"})
def trap_square_of_angle(xp, x):
    """(acos x)² at 1 → -2, from the left: the squared angle of two vectors that coincide, ≈ 2 (1 - x).

    2 acos x · -1 / sqrt(1 - x²) = 0 · -inf: NaN, or 0 in engines that take 0 · inf as 0. casadi/casadi#3598 found NaN
    in the Jacobian of a model with acos.
    """
    return xp.acos(x) ** 2


@trap({"x": 1.5}, (1.0,))
def trap_floor_is_flat(xp, x):
    """x floor x at 1.5 → 1: floor has derivative 0; it must not be unsupported."""
    return x * xp.floor(x)


@trap({"x": -7.5, "y": 2.0}, (1.0, 4.0))
def trap_remainder_negative(xp, x, y):
    """remainder(-7.5, 2) = 0.5 → 1 in x, -floor(x / y) = 4 in y.

    C's fmod rounds towards zero and has 3 in y; casadi/casadi#2767 discusses the names.
    """
    return xp.remainder(x, y)


@trap({"x": [math.inf, 1.0]}, ([0.0, 1.0],), declared=True)
def trap_minimum_with_infinity(xp, x):
    """min(inf, 1) → 0 and 1: the infinite input is not selected.

    A rule x - (x - y)·[x > y], or a mask times inf, gives NaN. Declared: finite differences are impossible at infinity.
    """
    return xp.min(x)
