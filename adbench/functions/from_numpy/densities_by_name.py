"""Functions of scipy.special and scipy.stats that are not ufuncs, and functions of adbench.tape beyond numpy.

A density is its formula; tape's densities are summed over the broadcast shape of their arguments, scipy's are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from adbench.functions.from_numpy.name_table import FUNCTIONS, Function, known_as, namesake, unsupported

TWO_PI = 2 * math.pi

# scipy.special ----------------------------------------------------------------------------------------------------


@known_as("scipy.special.logsumexp")
def _logsumexp(xp: Any, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    if b is None:
        return xp.logsumexp(a, axis, keepdims=keepdims)
    return xp.log(xp.sum(xp.exp(a) * b, axis, keepdims=keepdims))


@known_as("scipy.special.log_softmax")
def _log_softmax(xp: Any, x: Any, axis: Any = None) -> Any:
    return xp.reals(x) - xp.logsumexp(x, axis, keepdims=True)


FUNCTIONS["scipy.special.comb"] = namesake("binom")
FUNCTIONS["scipy.special.factorial"] = lambda xp, n: xp.gamma(n + 1)
FUNCTIONS["scipy.special.softmax"] = namesake("softmax")
FUNCTIONS["adbench.tape.softmax"] = lambda xp, x, axis=-1: xp.softmax(x, axis)
FUNCTIONS["adbench.tape.log_softmax"] = lambda xp, x, axis=-1: _log_softmax(xp, x, axis)
FUNCTIONS["adbench.tape.logsumexp"] = FUNCTIONS["adbench.tape.log_sum_exp"] = lambda xp, x, axis=None, keepdims=False: (
    xp.logsumexp(x, axis, keepdims=keepdims)
)
FUNCTIONS["adbench.tape.polygamma"] = lambda xp, x, order: xp.polygamma(order, x)
FUNCTIONS["adbench.tape.log_determinant"] = lambda xp, a: xp.linalg.slogdet(a).logabsdet

# Formulas of log densities, element by element --------------------------------------------------------------------


def _normal(xp: Any, y: Any, mu: Any, sigma: Any) -> Any:
    z = (y - mu) / sigma
    return -(z * z) / 2 - xp.log(sigma) - xp.log(TWO_PI) / 2


def _cauchy(xp: Any, y: Any, mu: Any, sigma: Any) -> Any:
    z = (y - mu) / sigma
    return -xp.log(math.pi) - xp.log(sigma) - xp.log1p(z * z)


def _student(xp: Any, y: Any, nu: Any, mu: Any, sigma: Any) -> Any:
    z = (y - mu) / sigma
    rise = xp.lgamma((nu + 1) / 2) - xp.lgamma(nu / 2)
    return rise - xp.log(nu * math.pi) / 2 - xp.log(sigma) - (nu + 1) / 2 * xp.log1p(z * z / nu)


def _exponential(xp: Any, y: Any, rate: Any) -> Any:
    return xp.where(y < 0, -math.inf, xp.log(rate) - rate * y)


def _gamma(xp: Any, y: Any, shape: Any, rate: Any) -> Any:
    inside = xp.where(y < 0, 1.0, y)
    found = shape * xp.log(rate) - xp.lgamma(shape) + xp.xlogy(shape - 1, inside) - rate * inside
    return xp.where(y < 0, -math.inf, found)


def _beta(xp: Any, y: Any, alpha: Any, beta: Any) -> Any:
    outside = np.asarray((np.asarray(y) < 0) | (np.asarray(y) > 1), dtype=np.bool_)
    inside = xp.where(outside, 0.5, y)
    found = xp.xlogy(alpha - 1, inside) + xp.xlog1py(beta - 1, -inside) - xp.betaln(alpha, beta)
    return xp.where(outside, -math.inf, found)


def _poisson(xp: Any, n: Any, rate: Any) -> Any:
    return xp.xlogy(n, rate) - rate - xp.lgamma(n + 1)


def _binomial(xp: Any, n: Any, N: Any, theta: Any) -> Any:
    ways = xp.lgamma(N + 1) - xp.lgamma(n + 1) - xp.lgamma(N - n + 1)
    return ways + xp.xlogy(n, theta) + xp.xlog1py(N - n, -theta)


# adbench.tape -----------------------------------------------------------------------------------------------------


def _summed(formula: Function) -> Function:
    def total(xp: Any, *args: Any) -> Any:
        return xp.sum(formula(xp, *map(xp.reals, args)))

    return total


_OF_TAPE: Mapping[str, Function] = {
    "bernoulli_lpmf": lambda xp, n, theta: xp.xlogy(n, theta) + xp.xlog1py(1 - n, -theta),
    "bernoulli_logit_lpmf": lambda xp, n, alpha: -xp.log1p_exp((1 - 2 * n) * alpha),
    "beta_lpdf": _beta,
    "binomial_lpmf": _binomial,
    "cauchy_lpdf": _cauchy,
    "exponential_lpdf": _exponential,
    "gamma_lpdf": _gamma,
    "lognormal_lpdf": lambda xp, y, mu, sigma: _normal(xp, xp.log(y), mu, sigma) - xp.log(y),
    "normal_lpdf": _normal,
    "poisson_lpmf": _poisson,
    "poisson_log_lpmf": lambda xp, n, log_rate: n * xp.reals(log_rate) - xp.exp(log_rate) - xp.lgamma(n + 1),
    "student_t_lpdf": _student,
}

for _name, _formula in _OF_TAPE.items():
    FUNCTIONS[f"adbench.tape.{_name}"] = _summed(_formula)


def _multi_normal(xp: Any, y: Any, mu: Any, quadratic: Any, log_det: Any) -> Any:
    """Σ over rows; ``quadratic`` of the differences as columns, ``log_det`` of the covariance."""
    gap = np.atleast_2d(np.asarray(xp.reals(y) - xp.reals(mu), dtype=object))
    rows, size = gap.shape
    return -(xp.sum(quadratic(gap.T)) + rows * (log_det + size * xp.log(TWO_PI))) / 2


def _symmetric(xp: Any, a: Any) -> Any:
    a = np.asarray(xp.reals(a), dtype=object)
    return (a + a.T) / 2


@known_as("adbench.tape.multi_normal_lpdf")
def _multi_normal_lpdf(xp: Any, y: Any, mu: Any, sigma: Any) -> Any:
    sigma = _symmetric(xp, sigma)
    log_det = xp.linalg.slogdet(sigma).logabsdet
    return _multi_normal(xp, y, mu, lambda gap: gap * np.asarray(xp.linalg.solve(sigma, gap)), log_det)


@known_as("adbench.tape.multi_normal_prec_lpdf")
def _multi_normal_prec_lpdf(xp: Any, y: Any, mu: Any, omega: Any) -> Any:
    omega = _symmetric(xp, omega)
    log_det = -xp.linalg.slogdet(omega).logabsdet
    return _multi_normal(xp, y, mu, lambda gap: gap * np.asarray(xp.matmul(omega, gap)), log_det)


@known_as("adbench.tape.multi_normal_cholesky_lpdf")
def _multi_normal_cholesky_lpdf(xp: Any, y: Any, mu: Any, factor: Any) -> Any:
    factor = np.tril(np.asarray(xp.reals(factor), dtype=object))
    log_det = 2 * xp.sum(xp.log(np.diagonal(factor)))

    def quadratic(gap: Any) -> Any:
        half = np.asarray(xp.linalg.solve_triangular(factor, gap, lower=True))
        return half * half

    return _multi_normal(xp, y, mu, quadratic, log_det)


@known_as("adbench.tape.dirichlet_lpdf")
def _dirichlet_lpdf(xp: Any, theta: Any, alpha: Any) -> Any:
    theta, alpha = np.broadcast_arrays(np.asarray(xp.reals(theta)), np.asarray(xp.reals(alpha)))
    terms = xp.sum(xp.xlogy(alpha - 1, theta) - xp.lgamma(alpha), -1) + xp.lgamma(xp.sum(alpha, -1))
    return xp.sum(terms)


def _drawn(logarithms: Any, y: Any) -> Any:
    """The entries of these categories, one per row."""
    categories = np.asarray(y, dtype=int)
    if np.ndim(logarithms) == 1:
        return np.asarray(logarithms)[categories]
    rows = np.broadcast_shapes(categories.shape, np.shape(logarithms)[:-1])
    table = np.broadcast_to(np.asarray(logarithms), (*rows, np.shape(logarithms)[-1]))
    return np.take_along_axis(table, np.broadcast_to(categories, rows)[..., None], -1)


FUNCTIONS["adbench.tape.categorical_lpmf"] = lambda xp, y, theta: xp.sum(xp.log(_drawn(xp.reals(theta), y)))
FUNCTIONS["adbench.tape.categorical_logit_lpmf"] = lambda xp, y, beta: xp.sum(_drawn(_log_softmax(xp, beta, -1), y))


@known_as("adbench.tape.quad_form", "adbench.tape.linalg.quad_form")
def _quad_form(xp: Any, a: Any, b: Any) -> Any:
    found = xp.matmul(a, b)
    return xp.matmul(np.swapaxes(xp.reals(b), -1, -2) if np.ndim(b) > 1 else b, found)


@known_as("adbench.tape.quad_form_sym", "adbench.tape.linalg.quad_form_sym")
def _quad_form_sym(xp: Any, a: Any, b: Any) -> Any:
    found = _quad_form(xp, a, b)
    return found if np.ndim(b) < 2 else (found + np.swapaxes(found, -1, -2)) / 2


@known_as("adbench.tape.trace_quad_form", "adbench.tape.linalg.trace_quad_form")
def _trace_quad_form(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(np.asarray(xp.reals(b)) * np.asarray(xp.matmul(a, b)))


# scipy.stats ------------------------------------------------------------------------------------------------------


def _located(formula: Function, shapes: int, *, log: bool) -> Function:
    """The density of scipy.stats, with shape parameters, then loc and scale, from the one with scale 1."""

    def found(xp: Any, x: Any, *args: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
        parameters, rest = args[:shapes], args[shapes:]
        if len(parameters) < shapes or len(rest) > 2:
            raise unsupported("a density of scipy.stats with its parameters by keyword")
        loc, scale = (rest[0] if rest else loc), (rest[1] if len(rest) > 1 else scale)
        logarithm = formula(xp, (xp.reals(x) - loc) / scale, *map(xp.reals, parameters)) - xp.log(scale)
        return logarithm if log else xp.exp(logarithm)

    return found


_OF_STATS: Mapping[str, tuple[Function, int]] = {
    "norm": (lambda xp, y: _normal(xp, y, 0, 1), 0),
    "cauchy": (lambda xp, y: _cauchy(xp, y, 0, 1), 0),
    "t": (lambda xp, y, nu: _student(xp, y, nu, 0, 1), 1),
    "expon": (lambda xp, y: _exponential(xp, y, 1), 0),
    "gamma": (lambda xp, y, a: _gamma(xp, y, a, 1), 1),
    "chi2": (lambda xp, y, df: _gamma(xp, y, df / 2, 0.5), 1),
    "beta": (_beta, 2),
    "laplace": (lambda xp, y: -xp.abs(y) - xp.log(2), 0),
    "logistic": (lambda xp, y: -y - 2 * xp.log1p_exp(-y), 0),
}

for _name, (_located_formula, _shapes) in _OF_STATS.items():
    FUNCTIONS[f"scipy.stats.{_name}.logpdf"] = _located(_located_formula, _shapes, log=True)
    FUNCTIONS[f"scipy.stats.{_name}.pdf"] = _located(_located_formula, _shapes, log=False)


for _name, _called, _sign in (
    ("cdf", "ndtr", 1),
    ("logcdf", "log_ndtr", 1),
    ("sf", "ndtr", -1),
    ("logsf", "log_ndtr", -1),
):
    FUNCTIONS[f"scipy.stats.norm.{_name}"] = lambda xp, x, loc=0.0, scale=1.0, _called=_called, _sign=_sign: getattr(
        xp, _called
    )(_sign * (xp.reals(x) - loc) / scale)


FUNCTIONS["scipy.stats.norm.ppf"] = lambda xp, q, loc=0.0, scale=1.0: loc + scale * xp.ndtri(q)
FUNCTIONS["scipy.stats.poisson.logpmf"] = lambda xp, k, mu: _poisson(xp, xp.reals(k), xp.reals(mu))


@known_as("scipy.stats.multivariate_normal.logpdf")
def _multivariate_normal_logpdf(xp: Any, x: Any, mean: Any, cov: Any, allow_singular: bool = False) -> Any:
    cov = np.asarray(xp.reals(cov), dtype=object)
    gap = np.asarray(xp.reals(x) - xp.reals(mean), dtype=object)
    size = cov.shape[-1] if cov.ndim == 2 else 1
    if allow_singular or size == 1 or not gap.ndim or gap.shape[-1] != size:
        raise unsupported("scipy.stats.multivariate_normal of one dimension, or with allow_singular=")
    factor = xp.linalg.cholesky(cov)  # like scipy's eigh, it reads the lower triangle
    half = np.asarray(xp.linalg.solve_triangular(factor, gap.reshape(-1, size).T, lower=True))
    log_det = 2 * xp.sum(xp.log(np.diagonal(factor)))
    return (-(xp.sum(half * half, 0) + log_det + size * xp.log(TWO_PI)) / 2).reshape(gap.shape[:-1])[()]


FUNCTIONS["scipy.stats.multivariate_normal.pdf"] = lambda xp, *args, **options: xp.exp(
    _multivariate_normal_logpdf(xp, *args, **options)
)
