"""The array API's elementwise functions, others of numpy, and special functions by their names in scipy.special."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, nan, pi
from typing import Any

from adbench.vocabulary.row import Function

POSITIVE, ABOVE_ONE, BETWEEN, UNIT, ANY = (0.0, inf), (1.0, inf), (-1.0, 1.0), (0.0, 1.0), (-inf, inf)


def _common(name: str, aliases: str = "", **facts: Any) -> Function:
    """A function with this name in torch and in jax.numpy."""
    return Function(name, aliases, torch=f"torch.{name}", jax=f"jax.numpy.{name}", **facts)


def _special(name: str, aliases: str = "", **facts: Any) -> Function:
    """A function with this name in torch.special and in jax.scipy.special."""
    return _in_jax(name, aliases, torch=f"torch.special.{name}", **facts)


def _in_jax(name: str, aliases: str = "", **facts: Any) -> Function:
    """A function that only jax.scipy.special has."""
    return Function(name, aliases, jax=f"jax.scipy.special.{name}", **facts)


ROWS = (
    # of any number
    _common("abs", "absolute fabs", limits=(inf, inf), noise="rounded"),
    _common("atan", numpy="arctan", limits=(-pi / 2, pi / 2), noise="squares", analytic=True),
    _common("asinh", numpy="arcsinh", limits=(-inf, inf), noise="squares", analytic=True),
    _common("cos", limits=(nan, nan), analytic=True),
    _common("cosh", limits=(inf, inf), exponential=True, analytic=True),
    _common("exp", limits=(0.0, inf), exponential=True, analytic=True),
    _common("exp2", limits=(0.0, inf), exponential=True),
    _common("expm1", limits=(-1.0, inf), exponential=True, analytic=True),
    _common("negative", "neg", noise="rounded"),
    _common("sin", limits=(nan, nan), analytic=True),
    _common("sinh", limits=(-inf, inf), exponential=True, analytic=True),
    _common("square", noise="rounded", analytic=True),
    _common("tan", limits=(nan, nan), analytic=True),
    _common("tanh", limits=(-1.0, 1.0), exponential=True, analytic=True),
    _common("sinc", limits=(nan, nan)),
    Function("cbrt", jax="jax.numpy.cbrt", limits=(-inf, inf), singular=(0.0,)),
    Function("degrees", "rad2deg", torch="torch.rad2deg", jax="jax.numpy.degrees", limits=(-inf, inf)),
    Function("radians", "deg2rad", torch="torch.deg2rad", jax="jax.numpy.radians", limits=(-inf, inf)),
    _common("reciprocal", singular=(0.0,), noise="rounded"),
    # of positive numbers, or of an interval
    _common("log", domain=(POSITIVE,), singular=(0.0,), limits=(nan, inf), analytic=True),
    _common("log10", domain=(POSITIVE,), singular=(0.0,), limits=(nan, inf), analytic=True),
    _common("log2", domain=(POSITIVE,), singular=(0.0,), limits=(nan, inf), analytic=True),
    _common("sqrt", domain=(POSITIVE,), singular=(0.0,), noise="rounded", analytic=True),
    _common("log1p", domain=((-1.0, inf),), singular=(-1.0,), limits=(nan, inf), analytic=True),
    _common("acos", numpy="arccos", domain=(BETWEEN,), singular=BETWEEN, limits=(nan, nan), analytic=True),
    _common("asin", numpy="arcsin", domain=(BETWEEN,), singular=BETWEEN, limits=(nan, nan), analytic=True),
    _common("atanh", numpy="arctanh", domain=(BETWEEN,), singular=BETWEEN, limits=(nan, nan), analytic=True),
    _common("acosh", numpy="arccosh", domain=(ABOVE_ONE,), singular=(1.0,), limits=(nan, inf), noise="squares",
            analytic=True),
    # with steps
    _common("floor", noise="rounded"),
    _common("ceil", noise="rounded"),
    _common("trunc", "fix", noise="rounded"),
    _common("sign", "sgn", noise="rounded"),
    Function("rint", noise="rounded"),
    Function("isfinite", "is_finite"),
    Function("isinf"),
    Function("isnan"),
    Function("signbit"),
    # of complex numbers
    Function("conj", "conjugate conj_physical _conj_physical"),
    Function("real"),
    Function("imag"),
    # of two numbers
    _common("maximum", arity=2, noise="rounded"),
    _common("minimum", arity=2, noise="rounded"),
    _common("logaddexp", arity=2),
    _common("hypot", arity=2, singular=(0.0,)),
    _common("atan2", arity=2, numpy="arctan2", noise="squares"),
    Function("copysign", arity=2, noise="rounded", torch="torch.copysign", jax="jax.numpy.copysign"),
    Function("pow", "float_power", arity=2, numpy="power", singular=(0.0,), torch="torch.pow", jax="jax.numpy.power"),
    # error functions
    _special("erf", limits=(-1.0, 1.0), exponential=True),
    _special("erfc", limits=(2.0, 0.0), exponential=True),
    Function("erfcx", torch="torch.special.erfcx", limits=(inf, 0.0)),
    _special("erfinv", "erf_inv", domain=(BETWEEN,), singular=BETWEEN, limits=(nan, nan)),
    _special("ndtr", limits=(0.0, 1.0), exponential=True),
    _special("log_ndtr", limits=(-inf, -0.0)),
    _special("ndtri", domain=(UNIT,), singular=UNIT, limits=(nan, nan)),
    # logistic functions
    _special("expit", "sigmoid logistic", limits=(0.0, 1.0), exponential=True),
    _special("logit", domain=(UNIT,), singular=UNIT, limits=(nan, nan)),
    Function("log1p_exp", "softplus", limits=(0.0, inf), exponential=True),
    # gamma and its relatives
    _in_jax("gamma", domain=(POSITIVE,), singular=(0.0,), limits=(nan, inf)),
    Function("lgamma", "loggamma", scipy="gammaln", torch="torch.lgamma", jax="jax.scipy.special.gammaln",
             singular=(0.0,), limits=(-inf, inf)),
    _special("digamma", "psi", singular=(0.0,), limits=(nan, inf)),
    _special("polygamma", arity=2),
    _special("multigammaln", "mvlgamma", arity=2),
    _in_jax("betaln", arity=2, domain=(POSITIVE, POSITIVE), singular=(0.0,)),
    _special("gammainc", "igamma", arity=2),
    _special("gammaincc", "igammac", arity=2),
    _in_jax("betainc", "regularized_incomplete_beta", arity=3),
    _special("zeta", arity=2),
    # integrals and Bessel functions
    _in_jax("exp1", domain=(POSITIVE,), singular=(0.0,), limits=(nan, 0.0)),
    _in_jax("expi", domain=(POSITIVE,), singular=(0.0,), limits=(-0.0, inf)),
    Function("lambertw", domain=((-exp(-1.0), inf),), singular=(-exp(-1.0),), limits=(nan, inf)),
    _special("i0", "modified_bessel_i0", limits=(nan, nan)),
    _special("i1", "modified_bessel_i1", limits=(nan, nan)),
    Function("j0", "bessel_j0", limits=(nan, nan)),
    Function("j1", "bessel_j1", limits=(nan, nan)),
    Function("iv", arity=2),
    Function("jv", arity=2),
    Function("kv", arity=2, domain=(ANY, POSITIVE)),
    Function("yv", arity=2, domain=(ANY, POSITIVE)),
    # products with a logarithm
    _special("xlogy", arity=2, domain=(ANY, POSITIVE)),
    _special("xlog1py", arity=2, domain=(ANY, (-1.0, inf))),
)  # fmt: skip

# Functions that are defined by others: definition(xp, x, …) on any namespace that has those. The translations of jax's,
# torch's and numpy's functions share these definitions. Those of `adbench conform` are written apart from them, because
# they decide what is right.

_LARGEST = 1.7976931348623157e308


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
    x = xp.where(x == inf, _LARGEST if posinf is None else posinf, x)
    return xp.where(x == -inf, -_LARGEST if neginf is None else neginf, x)


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


DERIVED = (
    # of one number
    Function("angle", definition=_angle),
    Function("cosm1", definition=_cosm1),
    Function("entr", torch="torch.special.entr", jax="jax.scipy.special.entr", domain=(POSITIVE,), singular=(0.0,),
             definition=lambda xp, x: xp.where(x < 0, -inf, -xp.xlogy(x, x))),
    Function("erfcinv", definition=lambda xp, x: xp.erfinv(1 - x)),
    Function("exp10", definition=lambda xp, x: xp.exp(x * xp.log(10))),
    Function("exprel", definition=lambda xp, x: xp.where(x == 0, 1.0, xp.expm1(x) / xp.where(x == 0, 1.0, x))),
    Function("log_expit", definition=lambda xp, x: -xp.log1p_exp(-x)),
    Function("nan_to_num", torch="torch.nan_to_num", jax="jax.numpy.nan_to_num", definition=_nan_to_num),
    Function("one_minus_square", definition=lambda xp, x: (1 + x) * (1 - x)),
    Function("rgamma", definition=lambda xp, x: 1 / xp.gamma(x)),
    Function("round", "around", definition=_round),
    Function("rsqrt", torch="torch.rsqrt", jax="jax.lax.rsqrt", domain=(POSITIVE,), singular=(0.0,),
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
