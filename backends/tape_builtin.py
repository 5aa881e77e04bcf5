"""adbench.tape with built-in densities: one node each, with hand-written partial derivatives."""

from collections.abc import Callable
from typing import Any

from adbench import Operator, Unsupported, tape

from . import tape as elementary

VARIANT_OF = "tape"
before_timing = elementary.before_timing

FUNCTIONS = {
    "normal_log_density": lambda xp, y, mu, sigma: tape.normal_lpdf(y, mu, sigma),
    "multi_normal": lambda xp, y, mu, sigma: tape.multi_normal_lpdf(y, mu, sigma),
    "logistic_regression": lambda xp, beta, X, y: tape.bernoulli_logit_lpmf(y, X @ beta) - 0.5 * xp.sum(beta * beta),
    "log_sum_exp": lambda xp, x: tape.log_sum_exp(x),
}

xp = elementary.xp
NESTED = "built-in densities have first derivatives only; use tape"


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator in ("hvp", "hessian"):
        raise Unsupported(NESTED)
    return elementary.prepare(operator, f, args, wrt)
