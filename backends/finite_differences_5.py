"""Four evaluations per input on numpy, by 5-point central differences: about twelve digits."""

from .finite_differences import EPSILON, preparing
from .finite_differences import KNOWN as OF_TWO_POINTS
from .finite_differences import NESTED as NESTED

VARIANT_OF = "finite_differences"

KNOWN = {
    **{case: why for case, why in OF_TWO_POINTS.items() if case != "trap_sinc_near_zero"},  # 2e-8 there, as claimed
    "lotka_volterra_adaptive": "six digits at 100: steps of h reach over a jump, where a step is halved or doubled",
    "trap_logistic_far": "three digits: a step in proportion to x = 400 is 0.3, and e^x is no polynomial over that",
}

# eps^(4/5) = 3e-13 where f and its derivatives are of one size; and what a sum of many terms loses, as with two points.
# Where f swings within a step of x, as seasons do in `sir`, truncation leaves 6e-8.
CLAIMED_RELATIVE_ERROR = 1e-7

# A step where rounding, eps |f| / h, and truncation, h⁴ |f⁽⁵⁾| / 30, are about equal.
prepare = preparing({1: 2 / 3, 2: -1 / 12}, EPSILON ** (1 / 5))
