"""The array API's elementwise functions, and other functions of numbers that numpy has."""

from __future__ import annotations

from math import inf, nan, pi
from typing import Any

from adbench.vocabulary.row import Function

POSITIVE, ABOVE_ONE, BETWEEN = (0.0, inf), (1.0, inf), (-1.0, 1.0)
ENDS = (-1.0, 1.0)


def _common(name: str, aliases: str = "", **facts: Any) -> Function:
    """A function with this name in torch and in jax.numpy."""
    return Function(name, aliases, torch=f"torch.{name}", jax=f"jax.numpy.{name}", **facts)


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
    _common("acos", numpy="arccos", domain=(BETWEEN,), singular=ENDS, limits=(nan, nan), analytic=True),
    _common("asin", numpy="arcsin", domain=(BETWEEN,), singular=ENDS, limits=(nan, nan), analytic=True),
    _common("atanh", numpy="arctanh", domain=(BETWEEN,), singular=ENDS, limits=(nan, nan), analytic=True),
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
)  # fmt: skip
