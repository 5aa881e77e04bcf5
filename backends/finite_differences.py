"""2-point central differences on numpy: two evaluations per input, about nine digits."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optree

from adbench import Operator, Unsupported

LICENCE = "BSD-3-Clause"  # ours
ROLE = "comparison"


# eps^(2/3) = 4e-11 remains if f, f' and f''' have similar size. If f is a sum of n terms of mixed sign and the gradient
# is not, rounding is n times larger: 1e-6 holds at the sizes where differences are affordable.
CLAIMED_RELATIVE_ERROR = 1e-6


NESTED = "a difference of differences keeps too few digits"
EPSILON = sys.float_info.epsilon


def preparing(weights: Mapping[int, float], step: float) -> Callable[..., Callable[..., Any]]:
    """Make `prepare` for f'(x) ≈ Σ_k w_k (f(x + k h) - f(x - k h)) / h, exact for polynomials of degree 2 len(weights).

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
            return tuple(along(i, args, np.array) for i in wrt)  # a copy: f may return a part of x

        if operator == "value":
            return f
        if operator == "gradient":
            return gradient
        if operator == "value_and_gradient":
            return lambda *args: (f(*args), gradient(*args))
        if operator == "jacobian":
            return jacobian
        if operator in ("jvp", "vjp"):
            raise Unsupported(f"finite differences go entry by entry and have no {operator}")
        raise Unsupported(f"finite differences have no {operator}: {NESTED}")

    return prepare


def _slopes(f: Callable[[int, Any], Any], k: int, leaf: Any, step: float, weights: Mapping[int, float]) -> Any:
    """∂f/∂leaf[k], entry by entry; its shape is f's shape followed by the leaf's."""
    x = np.array(leaf)  # a copy, because the loop writes to it
    slopes = []

    def at(i: tuple[int, ...], entry: float) -> Any:
        x[i] = entry
        return f(k, x if x.ndim else entry)

    for i in np.ndindex(x.shape):
        centre = float(x[i])
        h = step * max(abs(centre), 1.0)
        h = (centre + h) - centre  # now x + h is exact
        slopes.append(sum(w * (at(i, centre + n * h) - at(i, centre - n * h)) for n, w in weights.items()) / h)
        x[i] = centre
    return np.moveaxis(
        np.reshape(slopes, x.shape + np.shape(slopes[0] if slopes else 0.0)), range(x.ndim), range(-x.ndim, 0)
    )


# This step balances rounding, eps |f| / h, with truncation, h² |f'''| / 6.
prepare = preparing({1: 1 / 2}, EPSILON ** (1 / 3))

VARIANTS = {
    "finite_differences_5": {
        "SUMMARY": "5-point central differences on numpy: four evaluations per input, about twelve digits.",
        # eps^(4/5) = 3e-13 if f and its derivatives have similar size; sums of many terms lose digits, as with two
        # points. If f oscillates within a step, like the seasons in `sir`, truncation leaves 6e-8.
        "CLAIMED_RELATIVE_ERROR": 1e-7,
        # This step balances rounding, eps |f| / h, with truncation, h⁴ |f⁽⁵⁾| / 30.
        "prepare": preparing({1: 2 / 3, 2: -1 / 12}, EPSILON ** (1 / 5)),
    },
    "finite_differences_9": {
        "SUMMARY": "9-point central differences on numpy: eight evaluations per input, about twelve digits.",
        # eps / h = 2e-13 if f and its derivatives have similar size; sums of many terms lose digits, as with two
        # points. If the slope is 1e-4 of f, as for rho in `gaussian_process`, rounding leaves 4e-9.
        "CLAIMED_RELATIVE_ERROR": 1e-8,
        # Truncation, h⁸ |f⁽⁹⁾| / 630, allows a step of eps^(1/9) = 0.02, which gives one more digit. But four such
        # steps span 7 % of x, across kinks, branches and poles: use 2⁻¹⁰ instead.
        "prepare": preparing({1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, 2.0**-10),
    },
}
