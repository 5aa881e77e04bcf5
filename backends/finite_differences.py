"""Two evaluations per input on numpy, by 2-point central differences: about nine digits."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optree

from adbench import Operator, Unsupported

LICENCE = "BSD-3-Clause"  # ours

# Faults that `adbench check` finds. A key alone, such as "nan", means the reason in the trap's `faults`.
KNOWN = {
    "trap_exp_of_log": "nan: a step leaves the domain, and f is one-sided",
    "trap_log1p_exp_overflow": "nan: inf - inf, for exp overflows in the value too",
    "trap_log_add_exp_of_nothing": "nan: inf - inf, for f is -inf",
    "trap_minimum_with_infinity": "nan: a step from infinity",
    "trap_power_three_halves": "raises: Python's float to a power is complex at a step out of the domain",
    "trap_sinc_near_zero": "1.3e-6: f' is as small as x, f and its rounding are not",
    "trap_square_of_angle": "nan: a step leaves the domain, and f is one-sided",
    "trap_square_of_sqrt": "nan: a step leaves the domain, and f is one-sided",
    "trap_stop_gradient": "6: what is stopped cannot be seen in a difference",
    "trap_third_derivative_of_power": "4e-11: a difference of the rounded second derivative, where the truth is 0",
    "trap_x_sqrt_x": "nan: a step leaves the domain, and f is one-sided",
}

# eps^(2/3) = 4e-11 is what is left where f, f' and f''' are of one size. Where f is a sum of n terms of either sign
# and the gradient is not, rounding counts n times as much: 1e-6 holds at the sizes that differences can be afforded at.
CLAIMED_RELATIVE_ERROR = 1e-6


NESTED = "a difference of differences keeps too few digits"
EPSILON = sys.float_info.epsilon


def preparing(weights: Mapping[int, float], step: float) -> Callable[..., Callable[..., Any]]:
    """`prepare` for f'(x) ≈ Σ_k w_k (f(x + k h) - f(x - k h)) / h, exact for polynomials of degree 2 len(weights).

    weights   k -> w_k
    step      h, relative to max(|x|, 1)
    """

    def prepare(
        operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
    ) -> Callable[..., Any]:
        def along(i: int, args: tuple[Any, ...], number: Callable[[Any], Any]) -> Any:
            leaves, structure = optree.tree_flatten(args[i])

            def moved(k: int, leaf: Any) -> Any:
                argument = optree.tree_unflatten(structure, [*leaves[:k], leaf, *leaves[k + 1 :]])
                return number(f(*args[:i], argument, *args[i + 1 :]))

            slopes = [_slopes(moved, k, leaf, step, weights) for k, leaf in enumerate(leaves)]
            return optree.tree_unflatten(structure, slopes)

        def gradient(*args: Any) -> tuple[Any, ...]:
            return tuple(along(i, args, float) for i in wrt)

        def jacobian(*args: Any) -> tuple[Any, ...]:
            return tuple(along(i, args, np.array) for i in wrt)  # copies: f may return a part of x itself

        if operator == "value":
            return f
        if operator == "gradient":
            return gradient
        if operator == "value_and_gradient":
            return lambda *args: (f(*args), gradient(*args))
        if operator == "jacobian":
            return jacobian
        if operator in ("jvp", "vjp"):
            raise Unsupported(f"finite differences have no {operator} of their own: they go entry by entry")
        raise Unsupported(f"finite differences have no {operator}: a difference of differences keeps too few digits")

    return prepare


def _slopes(f: Callable[[int, Any], Any], k: int, leaf: Any, step: float, weights: Mapping[int, float]) -> Any:
    """∂f/∂leaf[k], entry by entry: of the shape of f's value before the leaf's."""
    x = np.array(leaf)  # a copy: the caller's array is never written to
    slopes = []

    def at(i: tuple[int, ...], entry: float) -> Any:
        x[i] = entry
        return f(k, x if x.ndim else entry)

    for i in np.ndindex(x.shape):
        centre = float(x[i])
        h = step * max(abs(centre), 1.0)
        h = (centre + h) - centre  # a step that x + h is not rounded by
        slopes.append(sum(w * (at(i, centre + n * h) - at(i, centre - n * h)) for n, w in weights.items()) / h)
        x[i] = centre
    return np.moveaxis(
        np.reshape(slopes, x.shape + np.shape(slopes[0] if slopes else 0.0)), range(x.ndim), range(-x.ndim, 0)
    )


# A step where rounding, eps |f| / h, and truncation, h² |f'''| / 6, are about equal.
prepare = preparing({1: 1 / 2}, EPSILON ** (1 / 3))
