"""Elementwise functions of numpy, scipy.special and math that the oracle's namespace lacks under their name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from adbench.functions.declared_constants import stopped
from adbench.functions.from_numpy.name_table import FUNCTIONS, Function, known_as, namesake
from adbench.functions.from_numpy.rebinding import GETVAL

SAME_AS = {
    "absolute": "abs",
    "divmod": "_divmod",
    "expit": "expit",
    "fmax": "maximum",
    "fmin": "minimum",
    "float_power": "power",
    "true_divide": "divide",
    "gammasgn": "_gammasgn",
    "psi": "digamma",
}
"""Another name -> the namespace's."""


def _when(xp: Any, condition: Any, then: Any, otherwise: Any) -> Any:
    """`where` with values that may be infinite or NaN at unselected entries."""
    return xp.where(condition, then, otherwise)


def _huber(xp: Any, delta: Any, r: Any) -> Any:
    size = xp.abs(r)
    return _when(xp, size <= delta, _square(r) / 2, delta * (size - delta / 2))


def _stopping(spelling: str) -> Function:
    """A function that declares its argument constant."""
    stop = np.frompyfunc(partial(stopped, spelling=spelling), 1, 1)
    return lambda xp, x: stop(xp.reals(x))


def _square(x: Any) -> Any:
    return x * x


def _boxcox(xp: Any, x: Any, power: Any) -> Any:
    scale = xp.where(power == 0, 1.0, power)
    return _when(xp, power == 0, xp.log(x), (x**scale - 1) / scale)


def _rel_entr(xp: Any, x: Any, y: Any) -> Any:
    inside = _when(xp, (x == 0) & (y >= 0), 0.0, np.inf)
    both = (x > 0) & (y > 0)
    return _when(xp, both, x * xp.log(_when(xp, both, x, 1.0) / _when(xp, both, y, 1.0)), inside)


def _entr(xp: Any, x: Any) -> Any:
    return _when(xp, x >= 0, -xp.xlogy(xp.abs(x), xp.abs(x)), -np.inf)


def _exprel(xp: Any, x: Any) -> Any:
    return _when(xp, x == 0, 1.0, xp.expm1(x) / xp.where(x == 0, 1.0, x))


def _fmod(xp: Any, x: Any, y: Any) -> Any:
    return x - y * xp.trunc(x / y)


def _binom(xp: Any, n: Any, k: Any) -> Any:
    return xp.gamma(n + 1) / (xp.gamma(k + 1) * xp.gamma(n - k + 1))


def _beta(xp: Any, a: Any, b: Any) -> Any:
    return xp.gamma(a) * xp.gamma(b) / xp.gamma(a + b)


def _bessel(name: str, order: int) -> Function:
    return lambda xp, x: getattr(xp, name)(order, x)


ELEMENTWISE: Mapping[str, Function] = {
    "beta": _beta,
    "binom": _binom,
    "boxcox": _boxcox,
    "boxcox1p": lambda xp, x, power: _boxcox(xp, 1 + x, power),
    "cosm1": lambda xp, x: -2 * _square(xp.sin(x / 2)),
    "divmod": lambda xp, x, y: (x // y, x % y),
    "entr": _entr,
    "erfcinv": lambda xp, x: xp.erfinv(1 - x),
    "exp10": lambda xp, x: xp.exp(x * xp.log(10)),
    "exprel": _exprel,
    "fmod": _fmod,
    "heaviside": lambda xp, x, half: _when(xp, x == 0, half, _when(xp, x > 0, 1.0, 0.0)),
    "huber": _huber,
    "i0e": lambda xp, x: xp.i0(x) * xp.exp(-xp.abs(x)),
    "i1e": lambda xp, x: xp.i1(x) * xp.exp(-xp.abs(x)),
    "inv_boxcox": lambda xp, y, power: _when(xp, power == 0, xp.exp(y), (1 + power * y) ** (1 / power)),
    "ive": lambda xp, order, x: xp.iv(order, x) * xp.exp(-xp.abs(x)),
    "k0": _bessel("kv", 0),
    "k1": _bessel("kv", 1),
    "kl_div": lambda xp, x, y: _rel_entr(xp, x, y) - x + y,
    "kve": lambda xp, order, x: xp.kv(order, x) * xp.exp(x),
    "ldexp": lambda _xp, x, n: x * 2.0**n,
    "log_expit": lambda xp, x: -xp.log1p_exp(-x),
    "logaddexp2": lambda xp, x, y: xp.logaddexp(x * xp.log(2), y * xp.log(2)) / xp.log(2),
    "modf": lambda xp, x: (x - xp.trunc(x), xp.trunc(x)),
    "poch": lambda xp, z, m: xp.gamma(z + m) / xp.gamma(z),
    "pseudo_huber": lambda xp, delta, r: delta * delta * (xp.sqrt(1 + _square(r / delta)) - 1),
    "rel_entr": _rel_entr,
    "rgamma": lambda xp, x: 1 / xp.gamma(x),
    "y0": _bessel("yv", 0),
    "y1": _bessel("yv", 1),
}
"""Functions of numbers that the namespace lacks, by numpy's and scipy.special's name."""

OF_MATH = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "copysign", "cos", "cosh", "degrees"),
    *("erf", "erfc", "exp", "exp2", "expm1", "fabs", "gamma", "hypot", "isfinite", "isinf", "isnan", "lgamma"),
    *("log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan", "tanh", "pow"),
)
"""Functions of `math` that equal the namespace's function of that name."""


FUNCTIONS.update({f"math.{name}": namesake(name) for name in OF_MATH})
FUNCTIONS["math.fmod"] = _fmod
FUNCTIONS["math.fsum"] = lambda xp, terms: xp.sum(xp.reals(list(terms)))
FUNCTIONS["math.prod"] = lambda xp, terms, start=1: xp.prod(xp.reals(list(terms))) * start
for _name in ("adbench.tape.stop_gradient", GETVAL):
    FUNCTIONS[_name] = _stopping(_name.rpartition(".")[2])
FUNCTIONS["math.dist"] = lambda xp, p, q: xp.sqrt(xp.sum(_square(xp.reals(list(p)) - xp.reals(list(q)))))


@known_as("math.log")
def _math_log(xp: Any, x: Any, base: Any = None) -> Any:
    return xp.log(x) if base is None else xp.log(x) / xp.log(base)
