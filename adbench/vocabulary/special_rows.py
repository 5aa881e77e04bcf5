"""Special functions, most of them by their names in scipy.special."""

from __future__ import annotations

from math import exp, inf, nan
from typing import Any

from adbench.vocabulary.row import Function

POSITIVE, UNIT, BETWEEN, ANY = (0.0, inf), (0.0, 1.0), (-1.0, 1.0), (-inf, inf)


def _common(name: str, aliases: str = "", **facts: Any) -> Function:
    """A function with this name in torch.special and in jax.scipy.special."""
    return Function(name, aliases, torch=f"torch.special.{name}", jax=f"jax.scipy.special.{name}", **facts)


def _in_jax(name: str, aliases: str = "", **facts: Any) -> Function:
    """A function that only jax.scipy.special has."""
    return Function(name, aliases, jax=f"jax.scipy.special.{name}", **facts)


ROWS = (
    # error functions
    _common("erf", limits=(-1.0, 1.0), exponential=True),
    _common("erfc", limits=(2.0, 0.0), exponential=True),
    Function("erfcx", torch="torch.special.erfcx", limits=(inf, 0.0)),
    _common("erfinv", "erf_inv", domain=(BETWEEN,), singular=(-1.0, 1.0), limits=(nan, nan)),
    _common("ndtr", limits=(0.0, 1.0), exponential=True),
    _common("log_ndtr", limits=(-inf, -0.0)),
    _common("ndtri", domain=(UNIT,), singular=(0.0, 1.0), limits=(nan, nan)),
    # logistic functions
    _common("expit", "sigmoid logistic", limits=(0.0, 1.0), exponential=True),
    _common("logit", domain=(UNIT,), singular=(0.0, 1.0), limits=(nan, nan)),
    Function("log1p_exp", "softplus", limits=(0.0, inf), exponential=True),
    # gamma and its relatives
    _in_jax("gamma", domain=(POSITIVE,), singular=(0.0,), limits=(nan, inf)),
    Function("lgamma", "loggamma", scipy="gammaln", torch="torch.lgamma", jax="jax.scipy.special.gammaln",
             singular=(0.0,), limits=(-inf, inf)),
    _common("digamma", "psi", singular=(0.0,), limits=(nan, inf)),
    _common("polygamma", arity=2),
    _common("multigammaln", "mvlgamma", arity=2),
    _in_jax("betaln", arity=2, domain=(POSITIVE, POSITIVE), singular=(0.0,)),
    _common("gammainc", "igamma", arity=2),
    _common("gammaincc", "igammac", arity=2),
    _in_jax("betainc", "regularized_incomplete_beta", arity=3),
    _common("zeta", arity=2),
    # integrals and Bessel functions
    _in_jax("exp1", domain=(POSITIVE,), singular=(0.0,), limits=(nan, 0.0)),
    _in_jax("expi", domain=(POSITIVE,), singular=(0.0,), limits=(-0.0, inf)),
    Function("lambertw", domain=((-exp(-1.0), inf),), singular=(-exp(-1.0),), limits=(nan, inf)),
    _common("i0", "modified_bessel_i0", limits=(nan, nan)),
    _common("i1", "modified_bessel_i1", limits=(nan, nan)),
    Function("j0", "bessel_j0", limits=(nan, nan)),
    Function("j1", "bessel_j1", limits=(nan, nan)),
    Function("iv", arity=2),
    Function("jv", arity=2),
    Function("kv", arity=2, domain=(ANY, POSITIVE)),
    Function("yv", arity=2, domain=(ANY, POSITIVE)),
    # products with a logarithm
    _common("xlogy", arity=2, domain=(ANY, POSITIVE)),
    _common("xlog1py", arity=2, domain=(ANY, (-1.0, inf))),
)  # fmt: skip
