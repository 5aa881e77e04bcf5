"""5-point central differences on numpy: four evaluations per input, about twelve digits."""

from .finite_differences import EPSILON, preparing
from .finite_differences import NESTED as NESTED

VARIANT_OF = "finite_differences"

# eps^(4/5) = 3e-13 if f and its derivatives have similar size; sums of many terms lose digits, as with two points.
# If f oscillates within a step, like the seasons in `sir`, truncation leaves 6e-8.
CLAIMED_RELATIVE_ERROR = 1e-7

# This step balances rounding, eps |f| / h, with truncation, h⁴ |f⁽⁵⁾| / 30.
prepare = preparing({1: 2 / 3, 2: -1 / 12}, EPSILON ** (1 / 5))
