"""9-point central differences on numpy: eight evaluations per input, about twelve digits."""

from .finite_differences import KNOWN as OF_TWO_POINTS
from .finite_differences import NESTED as NESTED
from .finite_differences import preparing

VARIANT_OF = "finite_differences"

KNOWN = {
    **{case: why for case, why in OF_TWO_POINTS.items() if case != "trap_sinc_near_zero"},  # as accurate as claimed
    "credit_valuation_adjustment": "two digits at 3: four steps cross kinks of max",
    "libor_market_model": "two digits at 4: four steps cross kinks of max",
    "lotka_volterra_adaptive": "four digits at 100: four steps cross jumps, where the solver's step halves or doubles",
    "projectile": "six digits at 100 steps: four steps cross a kink, where the flight takes one more step",
    "sir_adaptive": "seven digits at 2, in the end time: two steps cross a jump, where the solver takes one more",
    "trap_logistic_far": "six digits: the step relative to x = 400 is 0.4, over which e^x is no polynomial",
}

# eps / h = 2e-13 if f and its derivatives have similar size; sums of many terms lose digits, as with two points.
# If the slope is 1e-4 of f, as for rho in `gaussian_process`, rounding leaves 4e-9.
CLAIMED_RELATIVE_ERROR = 1e-8

# Truncation, h⁸ |f⁽⁹⁾| / 630, allows a step of eps^(1/9) = 0.02, which gives one more digit. But four such steps span
# 7 % of x, across kinks, branches and poles: use 2⁻¹⁰ instead.
prepare = preparing({1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, 2.0**-10)
