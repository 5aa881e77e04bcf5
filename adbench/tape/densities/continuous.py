"""Densities of real numbers, in Stan's names, order of arguments and parameters (Stan Functions Reference)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adbench.tape.core.rule import Value, own_gradients
from adbench.tape.densities.density import FINITE, NOT_NEGATIVE, NUMBER, POSITIVE, UNIT, Density
from adbench.tape.lazy import special
from adbench.tape.rules.compound import log1p_square, over_1p_square, ratio
from adbench.tape.rules.elementwise import log, log1p, sqrt
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.special import (
    HALF_LOG_2PI,
    deviance,
    digamma,
    digamma_rise,
    half_step_rest,
    lbeta,
    stirling_rest,
)
from adbench.tape.values import shape_of, value_of

_LOG_PI = math.log(math.pi)

# Normal: z = (y - μ)/σ


_BLOCK = 8192
"""Block length: a block stays in the processor's cache, and BLAS does not split so short a dot product between
threads."""


def _sum_of_squares(flat: Any) -> float:
    """Σ x² of a vector, block by block."""
    if type(flat) is not np.ndarray:
        return sum(flat * flat)  # type: ignore[no-any-return]  # a symbol, whose compiled sum does the same
    blocks = (flat[i : i + _BLOCK] for i in range(0, flat.size, _BLOCK))
    return math.fsum(float(np.dot(block, block)) for block in blocks)


def _normal_value(z: Value, _y: Value, _mu: Value, sigma: Value) -> Value:
    n = np.size(z)
    log_scales = math.log(sigma) * n if type(sigma) is float else np.sum(np.log(sigma)) * (n / max(sigma.size, 1))
    return -0.5 * _sum_of_squares(np.ravel(z)) - log_scales - n * HALF_LOG_2PI


def _normal_sigma(z: Value, _y: Value, _mu: Value, sigma: Value) -> Value:
    """(z² - 1)/σ; for a single σ, summed before the division."""
    if shape_of(sigma) == ():
        return (sum(z * z) - value_of(z).size) / sigma if shape_of(z) else (z - 1.0) * (z + 1.0) / sigma
    return (z - 1.0) * (z + 1.0) / sigma


def _statistics(y: Any) -> dict[str, float]:
    """Summary of the data for a normal density with one μ and one σ: n, the mean (in two parts) and the spread.

    One pass over y finds a pivot near the mean, and one sums the differences from it, without an array of y's size.
    """
    flat = y.reshape(-1)
    pivot = float(np.add.reduce(flat)) / flat.size
    shift = squares = 0.0
    for start in range(0, flat.size, _BLOCK):
        d = flat[start : start + _BLOCK] - pivot
        shift += float(np.add.reduce(d))
        squares += float(np.dot(d, d))
    shift /= flat.size
    spread = math.sqrt(max(squares - flat.size * shift * shift, 0.0))
    return {"n": float(flat.size), "pivot": pivot, "shift": shift, "spread": spread}


def _summary_value(mu: float, sigma: float, n: float, pivot: float, shift: float, spread: float) -> float:
    d, r = ((pivot - mu) + shift) / sigma, spread / sigma
    log_sigma = math.log(sigma) if type(sigma) is float else log(sigma)
    return -0.5 * (r * r + n * d * d) - n * (log_sigma + HALF_LOG_2PI)


def _summary_sigma(
    _v: Value, adj: Value, mu: Value, sigma: Value, n: float, pivot: float, shift: float, spread: float
) -> Value:
    d, r = ((pivot - mu) + shift) / sigma, spread / sigma
    return adj * (((r * r - n) + n * (d * d)) / sigma)


_normal_summary = own_gradients(
    _summary_value,
    (
        lambda _v, adj, mu, sigma, n, pivot, shift, spread: adj * (n * ((pivot - mu) + shift) / sigma / sigma),
        _summary_sigma,
    ),
    name="normal_lpdf",
)


class NormalDensity(Density):
    """The normal density. For constant data with one μ and one σ, it summarises the data by n, mean and spread.

    It then reads the data only once, when called; derivatives of any order cost nothing more.
    """

    __slots__ = ()

    def __call__(self, *args: Value) -> Value:
        """The sum of the log densities."""
        y, mu, sigma = inputs = self.checked(args)
        if not self.supports([value_of(y)]):
            return -np.inf
        if type(y) is float:
            if shape_of(mu) == () == shape_of(sigma):
                return _normal_summary(mu, sigma, n=1.0, pivot=y, shift=0.0, spread=0.0)
        elif type(y) is np.ndarray and y.size and shape_of(mu) == () == shape_of(sigma):
            statistics = _statistics(y)
            if math.isfinite(statistics["spread"]) and math.isfinite(statistics["pivot"]):
                return _normal_summary(mu, sigma, **statistics)
        self.common_shape(inputs)
        return self.rule(y, mu, sigma)


normal_lpdf = NormalDensity(
    "normal_lpdf",
    {"y": NUMBER, "mu": FINITE, "sigma": POSITIVE},
    _normal_value,
    (
        lambda z, _y, _mu, sigma: z / -sigma,
        lambda z, _y, _mu, sigma: z / sigma,
        _normal_sigma,
    ),
    shared=lambda y, mu, sigma: (y - mu) / sigma,
    elementwise=False,
)
"""Σ -½ z² - log σ - ½ log 2π, z = (y - μ)/σ; ∂y = -z/σ, ∂μ = z/σ, ∂σ = (z² - 1)/σ."""

lognormal_lpdf = Density(
    "lognormal_lpdf",
    {"y": NUMBER, "mu": FINITE, "sigma": POSITIVE},
    lambda z, y, _mu, sigma: -0.5 * (z * z) - np.log(sigma) - np.log(y) - HALF_LOG_2PI,
    (
        lambda z, y, _mu, sigma: -(1.0 + z / sigma) / y,
        lambda z, _y, _mu, sigma: z / sigma,
        lambda z, _y, _mu, sigma: (z - 1.0) * (z + 1.0) / sigma,
    ),
    support=POSITIVE,
    shared=lambda y, mu, sigma: (log(y) - mu) / sigma,
)
"""log y is normal: Σ -½ z² - log(σ y) - ½ log 2π, z = (log y - μ)/σ; support y > 0."""

cauchy_lpdf = Density(
    "cauchy_lpdf",
    {"y": NUMBER, "mu": FINITE, "sigma": POSITIVE},
    lambda z, _y, _mu, sigma: -_LOG_PI - np.log(sigma) - log1p_square(z),
    (
        lambda z, _y, _mu, sigma: -2.0 * over_1p_square(z) / sigma,
        lambda z, _y, _mu, sigma: 2.0 * over_1p_square(z) / sigma,
        lambda z, _y, _mu, sigma: (2.0 * (z * over_1p_square(z)) - 1.0) / sigma,
    ),
    shared=lambda y, mu, sigma: (y - mu) / sigma,
)
"""Σ -log π - log σ - log(1 + z²), z = (y - μ)/σ; ∂μ = 2z/((1 + z²) σ)."""

# Student's t: w = z/√ν


def _student_value(w: Value, _y: Value, nu: Value, _mu: Value, sigma: Value) -> Value:
    """-log B(ν/2, ½) - ½ log ν - log σ - (ν + 1)/2 log(1 + w²); `lbeta` is exact where log Γ's difference is not."""
    return -lbeta(0.5 * nu, 0.5) - 0.5 * np.log(nu) - np.log(sigma) - 0.5 * (nu + 1.0) * log1p_square(w)


def _log1p_square_rest(w: Value) -> Value:
    """log(1 + w²) - w²/(1 + w²), for small w by its series w⁴/2 - 2w⁶/3 + 3w⁸/4 - …"""
    u = np.square(np.where(np.abs(w) < 0.1, w, 0.0))
    series = np.zeros(np.shape(u))
    for k in range(9, 0, -1):
        series = k / (k + 1.0) - u * series
    return np.where(np.abs(w) < 0.1, u * u * series, log1p_square(w) - w * over_1p_square(w))[()]


log1p_square_rest = own_gradients(
    _log1p_square_rest,
    (lambda _v, adj, w: adj * (2.0 * (w * over_1p_square(w)) * over_1p_square(w)),),
    name="log1p_square_rest",
)


def _student_slope(w: Value, nu: Value) -> Value:
    """(ν + 1) w/(1 + w²)."""
    return (nu + 1.0) * over_1p_square(w)


def _student_nu(w: Value, _y: Value, nu: Value, _mu: Value, _sigma: Value) -> Value:
    """½ (ψ((ν+1)/2) - ψ(ν/2) - log(1 + w²) - 1/ν + (1 + 1/ν) w²/(1 + w²)), in parts that each vanish as ν grows."""
    return 0.5 * (half_step_rest(0.5 * nu) - log1p_square_rest(w) + w * over_1p_square(w) / nu)


student_t_lpdf = Density(
    "student_t_lpdf",
    {"y": NUMBER, "nu": POSITIVE, "mu": FINITE, "sigma": POSITIVE},
    _student_value,
    (
        lambda w, _y, nu, _mu, sigma: -_student_slope(w, nu) / sqrt(nu) / sigma,
        _student_nu,
        lambda w, _y, nu, _mu, sigma: _student_slope(w, nu) / sqrt(nu) / sigma,
        lambda w, _y, nu, _mu, sigma: (nu * (w * over_1p_square(w)) - 1.0 / (1.0 + w * w)) / sigma,
    ),
    shared=lambda y, nu, mu, sigma: (y - mu) / sigma / sqrt(nu),
)
"""Σ log Γ((ν+1)/2) - log Γ(ν/2) - ½ log(νπ) - log σ - (ν+1)/2 log(1 + z²/ν), z = (y - μ)/σ."""

exponential_lpdf = Density(
    "exponential_lpdf",
    {"y": NUMBER, "beta": POSITIVE},
    lambda _s, y, beta: np.log(beta) - beta * y,
    (lambda _s, _y, beta: -beta, lambda _s, y, beta: 1.0 / beta - y),
    support=NOT_NEGATIVE,
)
"""Σ log β - β y, β the rate; support y ≥ 0."""


def _gamma_value(_s: Value, y: Value, alpha: Value, beta: Value) -> Value:
    """In saddle-point form: the terms of α log(βy) - log Γ(α) - βy are 10¹¹ large at α = 10¹⁰, their sum is not."""
    x = np.multiply(beta, y)
    tame = (x > 0.0) & (x < np.inf)
    at = np.where(tame, x, 1.0)
    saddle = 0.5 * np.log(alpha) - stirling_rest(alpha) - deviance(alpha, at) - np.log(np.where(tame, y, 1.0))
    plain = special.xlogy(alpha, beta) - special.gammaln(alpha) + special.xlogy(alpha - 1.0, y) - x
    return np.where(tame, saddle - HALF_LOG_2PI, plain)


gamma_lpdf = Density(
    "gamma_lpdf",
    {"y": NUMBER, "alpha": POSITIVE, "beta": POSITIVE},
    _gamma_value,
    (
        lambda _s, y, alpha, beta: ratio(alpha - 1.0, y) - beta,
        lambda _s, y, alpha, beta: log(beta) + log(y) - digamma(alpha),
        lambda _s, y, alpha, beta: alpha / beta - y,
    ),
    support=NOT_NEGATIVE,
)
"""Σ α log β - log Γ(α) + (α - 1) log y - β y, β the rate; support y ≥ 0, at 0 the limit from above."""

beta_lpdf = Density(
    "beta_lpdf",
    {"y": NUMBER, "alpha": POSITIVE, "beta": POSITIVE},
    lambda _s, y, alpha, beta: (
        special.xlogy(alpha - 1.0, y) + special.xlog1py(beta - 1.0, np.negative(y)) - lbeta(alpha, beta)
    ),
    (
        lambda _s, y, alpha, beta: ratio(alpha - 1.0, y) - ratio(beta - 1.0, 1.0 - y),
        lambda _s, y, alpha, beta: log(y) + digamma_rise(alpha, beta),
        lambda _s, y, alpha, beta: log1p(-y) + digamma_rise(beta, alpha),
    ),
    support=UNIT,
)
"""Σ (α - 1) log y + (β - 1) log(1 - y) - log B(α, β); support 0 ≤ y ≤ 1, at the ends the limit from inside."""
