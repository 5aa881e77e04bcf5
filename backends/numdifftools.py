"""numdifftools: central differences with adaptive steps and Richardson extrapolation, on numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numdifftools
import numpy as np

from adbench import Operator, Unsupported

from ._flat import on_numbers

REQUIRES = ("numdifftools",)
LICENCE = "BSD-3-Clause"
DEFAULT = False  # a gradient takes 30 evaluations for each input

ONE_SIDED = "nan: a step leaves the domain of a one-sided f"
KINKS = "four digits or fewer: its long steps cross kinks of max near the point"
NOT_POSITIVE = "raises: the first steps are so long that the matrix is not positive definite"

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    "cholesky": NOT_POSITIVE,
    "credit_valuation_adjustment": KINKS,
    "heston": KINKS,
    "libor_market_model": KINKS,
    "mlp": KINKS,
    "trap_atan2_large": "0: a step relative to 1, where the arguments are 1e200",
    "trap_cholesky_lower_half": NOT_POSITIVE,
    "trap_cholesky_symmetric": NOT_POSITIVE,
    "trap_cholesky_upper_half": NOT_POSITIVE,
    "trap_exp_of_log": ONE_SIDED,
    "trap_hypot_large": "0: a step relative to 1, where the argument is 1e200",
    "trap_log1p_exp_overflow": "nan: inf - inf, because exp overflows in the value too",
    "trap_log_add_exp_equal_large": "six digits: rounding of a large value",
    "trap_log_add_exp_of_nothing": "nan: inf - inf, because f is -inf",
    "trap_minimum_with_infinity": "nan: a step from infinity",
    "trap_power_three_halves": "-5e-17: a rounding error, where the truth is 0",
    "trap_square_of_angle": ONE_SIDED,
    "trap_square_of_sqrt": ONE_SIDED,
    "trap_stop_gradient": "6: differences cannot see stop_gradient",
    "trap_third_derivative_of_power": "3e-16: a rounding error, where the truth is 0",
    "trap_x_sqrt_x": ONE_SIDED,
}

CLAIMED_RELATIVE_ERROR = 1e-8

NESTED = "differences of differences keep too few digits"


def differentiated(method: Any, g: Callable[[Any], Any], x: list[float]) -> Any:
    """One of the library's classes at x; it passes a vector of one entry as a number."""
    if not x:
        return np.zeros(0)
    return np.atleast_1d(method(lambda y: g(np.atleast_1d(y)))(x))


OPERATIONS: dict[Operator, Callable[..., Any]] = {  # for functions of a list of numbers
    "gradient": lambda g, x: differentiated(numdifftools.Gradient, g, x),
    "value_and_gradient": lambda g, x: (g(x), differentiated(numdifftools.Gradient, g, x)),
    "jacobian": lambda g, x: differentiated(numdifftools.Jacobian, lambda y: np.ravel(g(y)), x),
}


def doubles(x: Any) -> Any:
    """One input of f."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) else float(x)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator in ("hvp", "hessian"):
        raise Unsupported(f"numdifftools.Hessian has too few digits to be checked; adbench asks for no {operator}")
    if operator not in OPERATIONS:
        raise Unsupported(f"numdifftools differentiates entry by entry and has no {operator}")
    return on_numbers(OPERATIONS[operator], operator, f, wrt, doubles)
