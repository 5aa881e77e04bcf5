"""The array API's elementwise functions, others of numpy, and special functions by their names in scipy.special."""

from __future__ import annotations

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
