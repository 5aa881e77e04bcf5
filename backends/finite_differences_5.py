"""5-point central differences on numpy: four evaluations per input, about twelve digits."""

from .finite_differences import EPSILON, preparing
from .finite_differences import KNOWN as OF_TWO_POINTS
from .finite_differences import NESTED as NESTED

VARIANT_OF = "finite_differences"

KNOWN = {
    **{case: why for case, why in OF_TWO_POINTS.items() if case != "trap_sinc_near_zero"},  # 2e-8 there, as claimed
    "credit_valuation_adjustment": "two digits at 3: steps cross kinks of max",
    "libor_market_model": "two digits at 4: steps cross kinks of max",
    "lotka_volterra_adaptive": "six digits at 100: steps cross a jump, where the solver halves or doubles its step",
    "trap_logistic_far": "three digits: the step relative to x = 400 is 0.3, over which e^x is no polynomial",
}

# eps^(4/5) = 3e-13 if f and its derivatives have similar size; sums of many terms lose digits, as with two points.
# If f oscillates within a step, like the seasons in `sir`, truncation leaves 6e-8.
CLAIMED_RELATIVE_ERROR = 1e-7

# This step balances rounding, eps |f| / h, with truncation, h⁴ |f⁽⁵⁾| / 30.
prepare = preparing({1: 2 / 3, 2: -1 / 12}, EPSILON ** (1 / 5))
