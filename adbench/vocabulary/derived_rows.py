"""Functions that are defined by others: definition(xp, x, …) on any namespace that has those.

The translations of jax's, torch's and numpy's functions share these definitions. Those of `adbench conform` are written
apart from them, because they decide what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from adbench.vocabulary.row import Function

LARGEST = 1.7976931348623157e308
POSITIVE = ((0.0, inf),)


def _angle(xp: Any, z: Any, deg: bool = False) -> Any:
    angle = xp.atan2(xp.imag(z), xp.real(z))
    return xp.degrees(angle) if deg else angle


def _round(xp: Any, x: Any, decimals: int = 0) -> Any:
    if decimals == 0:
        return xp.rint(x)
    x, unit = xp.asarray(x), 10 ** abs(decimals)
    return xp.rint(x * unit) / unit if decimals > 0 else xp.rint(x / unit) * unit


def _boxcox(xp: Any, x: Any, power: Any) -> Any:
    scale = xp.where(power == 0, 1.0, power)
    return xp.where(power == 0, xp.log(x), (x**scale - 1) / scale)


def _huber(xp: Any, delta: Any, r: Any) -> Any:
    size = xp.abs(r)
    return xp.where(size <= delta, r * r / 2, delta * (size - delta / 2))


def _pseudo_huber(xp: Any, delta: Any, r: Any) -> Any:
    ratio = r / delta
    return delta * delta * (xp.sqrt(1 + ratio * ratio) - 1)


def _cosm1(xp: Any, x: Any) -> Any:
    half = xp.sin(x / 2)
    return -2 * (half * half)


def _rel_entr(xp: Any, x: Any, y: Any) -> Any:
    edge = xp.where((x == 0) & (y >= 0), 0.0, inf)
    inside = (x > 0) & (y > 0)
    return xp.where(inside, x * xp.log(xp.where(inside, x, 1.0) / xp.where(inside, y, 1.0)), edge)


def _nan_to_num(xp: Any, x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    x = xp.where(xp.isnan(x), 0.0 if nan is None else nan, x)
    x = xp.where(x == inf, LARGEST if posinf is None else posinf, x)
    return xp.where(x == -inf, -LARGEST if neginf is None else neginf, x)


def _without_nan(better: str) -> Callable[..., Any]:
    """The better one of two numbers; ignores NaN."""
    return lambda xp, x, y: xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, getattr(xp, better)(x, y)))


def _of_order(bessel: str, order: int) -> Callable[..., Any]:
    return lambda xp, x: getattr(xp, bessel)(order, x)


def _decaying(bessel: str) -> Callable[..., Any]:
    """A Bessel function times exp(-|x|); x is the last argument."""
    return lambda xp, *args: getattr(xp, bessel)(*args) * xp.exp(-xp.abs(args[-1]))


def _growing(bessel: str) -> Callable[..., Any]:
    """A Bessel function times exp(x); x is the last argument."""
    return lambda xp, *args: getattr(xp, bessel)(*args) * xp.exp(args[-1])


ROWS = (
    # of one number
    Function("angle", definition=_angle),
    Function("cosm1", definition=_cosm1),
    Function("entr", torch="torch.special.entr", jax="jax.scipy.special.entr", domain=POSITIVE, singular=(0.0,),
             definition=lambda xp, x: xp.where(x < 0, -inf, -xp.xlogy(x, x))),
    Function("erfcinv", definition=lambda xp, x: xp.erfinv(1 - x)),
    Function("exp10", definition=lambda xp, x: xp.exp(x * xp.log(10))),
    Function("exprel", definition=lambda xp, x: xp.where(x == 0, 1.0, xp.expm1(x) / xp.where(x == 0, 1.0, x))),
    Function("log_expit", definition=lambda xp, x: -xp.log1p_exp(-x)),
    Function("nan_to_num", torch="torch.nan_to_num", jax="jax.numpy.nan_to_num", definition=_nan_to_num),
    Function("one_minus_square", definition=lambda xp, x: (1 + x) * (1 - x)),
    Function("rgamma", definition=lambda xp, x: 1 / xp.gamma(x)),
    Function("round", "around", definition=_round),
    Function("rsqrt", torch="torch.rsqrt", jax="jax.lax.rsqrt", domain=POSITIVE, singular=(0.0,),
             definition=lambda xp, x: 1 / xp.sqrt(x)),
    # Bessel functions
    Function("i0e", "bessel_i0e", definition=_decaying("i0")),
    Function("i1e", "bessel_i1e", definition=_decaying("i1")),
    Function("ive", arity=2, definition=_decaying("iv")),
    Function("k0", "modified_bessel_k0", definition=_of_order("kv", 0)),
    Function("k0e", "scaled_modified_bessel_k0", definition=_growing("k0")),
    Function("k1", "modified_bessel_k1", definition=_of_order("kv", 1)),
    Function("k1e", "scaled_modified_bessel_k1", definition=_growing("k1")),
    Function("kve", arity=2, definition=_growing("kv")),
    Function("y0", "bessel_y0", definition=_of_order("yv", 0)),
    Function("y1", "bessel_y1", definition=_of_order("yv", 1)),
    # of two numbers
    Function("beta", arity=2, definition=lambda xp, a, b: xp.gamma(a) * xp.gamma(b) / xp.gamma(a + b)),
    Function("binom", arity=2,
             definition=lambda xp, n, k: xp.gamma(n + 1) / (xp.gamma(k + 1) * xp.gamma(n - k + 1))),
    Function("boxcox", arity=2, definition=_boxcox),
    Function("boxcox1p", arity=2, definition=lambda xp, x, power: _boxcox(xp, 1 + x, power)),
    Function("fmax", arity=2, definition=_without_nan("maximum")),
    Function("fmin", arity=2, definition=_without_nan("minimum")),
    Function("fmod", arity=2, definition=lambda xp, x, y: x - y * xp.trunc(x / y)),
    Function("heaviside", arity=2,
             definition=lambda xp, x, at_zero: xp.where(x == 0, at_zero, xp.where(x > 0, 1.0, 0.0))),
    Function("huber", arity=2, definition=_huber),
    Function("inv_boxcox", arity=2,
             definition=lambda xp, y, power: xp.where(power == 0, xp.exp(y), (1 + power * y) ** (1 / power))),
    Function("kl_div", arity=2, definition=lambda xp, x, y: _rel_entr(xp, x, y) - x + y),
    Function("ldexp", arity=2, definition=lambda _xp, x, n: x * 2.0**n),
    Function("logaddexp2", arity=2,
             definition=lambda xp, x, y: xp.logaddexp(x * xp.log(2), y * xp.log(2)) / xp.log(2)),
    Function("poch", arity=2, definition=lambda xp, z, m: xp.gamma(z + m) / xp.gamma(z)),
    Function("pseudo_huber", arity=2, definition=_pseudo_huber),
    Function("rel_entr", arity=2, definition=_rel_entr),
)  # fmt: skip
