"""9-point central differences on numpy: eight evaluations per input, about twelve digits."""

from .finite_differences import NESTED as NESTED
from .finite_differences import preparing

VARIANT_OF = "finite_differences"

# eps / h = 2e-13 if f and its derivatives have similar size; sums of many terms lose digits, as with two points.
# If the slope is 1e-4 of f, as for rho in `gaussian_process`, rounding leaves 4e-9.
CLAIMED_RELATIVE_ERROR = 1e-8

# Truncation, h⁸ |f⁽⁹⁾| / 630, allows a step of eps^(1/9) = 0.02, which gives one more digit. But four such steps span
# 7 % of x, across kinks, branches and poles: use 2⁻¹⁰ instead.
prepare = preparing({1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, 2.0**-10)
