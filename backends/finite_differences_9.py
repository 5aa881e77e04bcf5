"""Eight evaluations per input on numpy, by 9-point central differences: about twelve digits."""

from .finite_differences import KNOWN as OF_TWO_POINTS
from .finite_differences import NESTED as NESTED
from .finite_differences import preparing

VARIANT_OF = "finite_differences"

KNOWN = {
    **{case: why for case, why in OF_TWO_POINTS.items() if case != "trap_sinc_near_zero"},  # better than claimed there
    "lotka_volterra_adaptive": "four digits at 100: four of h reach over jumps, where a step is halved or doubled",
    "projectile": "six digits at 100 steps: four steps of h reach over a kink, where a flight takes one step more",
    "sir_adaptive": "seven digits at 2, by the end: two of h reach over a jump, where there is one step more",
    "trap_logistic_far": "six digits: a step in proportion to x = 400 is 0.4, and e^x is no polynomial over that",
}

# eps / h = 2e-13 where f and its derivatives are of one size; and what a sum of many terms loses, as with two points.
# Where the slope is a ten-thousandth of f, as by rho in `gaussian_process`, rounding leaves 4e-9.
CLAIMED_RELATIVE_ERROR = 1e-8

# Truncation, h⁸ |f⁽⁹⁾| / 630, allows a step of eps^(1/9) = 0.02 and one digit more. But four such steps reach 7 % of x
# away, over kinks, branches and poles: rather 2⁻¹⁰.
prepare = preparing({1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, 2.0**-10)
