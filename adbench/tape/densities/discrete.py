"""Probabilities of counts and categories, in Stan's names, order of arguments and parameters.

Counts have no derivative and must be plain whole numbers. Categories count from 0, as in numpy (in Stan from 1).
Binomial and Poisson probabilities use the saddle-point form of C. Loader (2000), which keeps its digits at counts of
10¹⁰; see `special`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adbench.tape.core.rule import Value
from adbench.tape.densities.density import (
    BINARY,
    COUNT,
    FINITE,
    NOT_NEGATIVE,
    NUMBER,
    UNIT,
    WHOLE,
    Density,
    DensityDomain,
    DomainError,
    sums_to_one,
)
from adbench.tape.lazy import special
from adbench.tape.rules.compound import log1m_inv_logit, log_inv_logit, log_softmax, ratio
from adbench.tape.rules.elementwise import exp, expit, expm1
from adbench.tape.rules.shapes import sum_to
from adbench.tape.rules.special import deviance, log1p_minus, stirling_rest
from adbench.tape.values import shape_of, value_of

# Binary outcomes

bernoulli_lpmf = Density(
    "bernoulli_lpmf",
    {"y": WHOLE, "theta": UNIT},
    lambda _s, y, theta: special.xlogy(y, theta) + special.xlog1py(1.0 - y, np.negative(theta)),
    (None, lambda _s, y, theta: ratio(y, theta) - ratio(1.0 - y, 1.0 - theta)),
    support=BINARY,
)
"""Σ y log θ + (1 - y) log(1 - θ) for y in {0, 1}; an event of probability 0 has log mass -inf and an infinite slope."""

bernoulli_logit_lpmf = Density(
    "bernoulli_logit_lpmf",
    {"y": WHOLE, "alpha": NUMBER},
    lambda _s, y, alpha: np.where(np.equal(y, 1.0), log_inv_logit(alpha), log1m_inv_logit(alpha)),
    (None, lambda _s, y, alpha: (2.0 * y - 1.0) * expit((1.0 - 2.0 * y) * alpha)),
    support=BINARY,
)
"""Bernoulli with log odds α: Σ -log(1 + exp(±α)); ∂α = y - inv_logit(α), formed without cancelling."""


def _binomial_value(_s: Value, n: Value, N: Value, theta: Value) -> Value:
    rest = np.subtract(N, n)
    miss = np.subtract(1.0, theta)
    inner = (np.greater(n, 0.0)) & (rest > 0.0) & np.greater(theta, 0.0) & (miss > 0.0)
    k, r, m = (np.where(inner, x, 1.0) for x in (n, rest, N))
    hits, misses = m * np.where(inner, theta, 1.0), m * np.where(inner, miss, 1.0)
    saddle = stirling_rest(m) - stirling_rest(k) - stirling_rest(r) - deviance(k, hits) - deviance(r, misses)
    ends = special.xlogy(n, theta) + special.xlog1py(rest, np.negative(theta))  # n = 0 or N, or an impossible n
    return np.where(inner, saddle + 0.5 * (np.log(m / k) - np.log(2.0 * math.pi * r)), ends)


binomial_lpmf = Density(
    "binomial_lpmf",
    {"n": WHOLE, "N": COUNT, "theta": UNIT},
    _binomial_value,
    (None, None, lambda _s, n, N, theta: ratio(n, theta) - ratio(N - n, 1.0 - theta)),
    support=lambda n, N, _theta: bool(np.all(np.greater_equal(n, 0.0) & np.less_equal(n, N))),
)
"""Σ log(N choose n) + n log θ + (N - n) log(1 - θ) for 0 ≤ n ≤ N."""

# Poisson


def _poisson_value(_s: Value, y: Value, rate: Value) -> Value:
    inner = np.greater(y, 0.0) & np.greater(rate, 0.0)
    k, m = np.where(inner, y, 1.0), np.where(inner, rate, 1.0)
    saddle = -stirling_rest(k) - deviance(k, m) - 0.5 * np.log(2.0 * math.pi * k)
    return np.where(inner, saddle, special.xlogy(y, rate) - rate)


def _poisson_rate(_s: Value, y: Value, rate: Value) -> Value:
    """y/λ - 1 as (y - λ)/λ, which is exact near the mode; -1 at y = λ = 0."""
    nothing = np.equal(y, 0.0) & (value_of(rate) == 0.0)
    return ratio(y - rate, rate) - np.asarray(nothing, float)[()]


poisson_lpmf = Density(
    "poisson_lpmf", {"n": WHOLE, "lambda": NOT_NEGATIVE}, _poisson_value, (None, _poisson_rate), support=COUNT
)
"""Σ n log λ - λ - log n! for n ≥ 0."""


def _poisson_log_value(_s: Value, y: Value, eta: Value) -> Value:
    """n η - e^η - log n!, in the saddle-point form with e^t - 1 - t, t = η - log n, instead of the deviance."""
    inner = np.greater(y, 0.0)
    k = np.where(inner, y, 1.0)
    t = eta - np.log(k)
    small = np.abs(t) < 0.2
    lost = np.where(small, -log1p_minus(np.expm1(np.where(small, t, 0.0))), np.expm1(t) - t)
    return np.where(inner, -stirling_rest(k) - k * lost - 0.5 * np.log(2.0 * math.pi * k), -np.exp(eta))


poisson_log_lpmf = Density(
    "poisson_log_lpmf",
    {"n": WHOLE, "alpha": FINITE},
    _poisson_log_value,
    (None, lambda _s, y, eta: y - exp(eta)),
    support=COUNT,
)
"""Poisson with log rate α: Σ n α - e^α - log n!; ∂α = n - e^α."""

# Categories


def _counts(y: Value, theta: Value) -> Any:
    """The count of each category in each row, in θ's shape; a category out of range counts nothing."""
    shape = shape_of(theta)
    categories = np.asarray(y, dtype=int)
    if len(shape) == 1:
        return np.bincount(categories.reshape(-1), minlength=shape[0]).astype(float)
    rows = np.broadcast_shapes(categories.shape, shape[:-1])
    drawn = np.zeros((*rows, shape[-1]))
    np.put_along_axis(drawn, np.broadcast_to(categories, rows)[..., None], 1.0, -1)
    return sum_to(drawn, shape)


def _categories(y: Value, theta: Value) -> bool:
    return DensityDomain("a category", 0.0, float(shape_of(theta)[-1]), (True, False)).holds(y)


def _rows(name: str, y: Value, theta: Value) -> None:
    if not shape_of(theta):
        raise DomainError(f"{name}: expected a vector of one number for each category, got a scalar")
    try:
        np.broadcast_shapes(shape_of(y), shape_of(theta)[:-1])
    except ValueError:
        described = f"y {shape_of(y)} and {shape_of(theta)}"
        raise ValueError(
            f"{name}: expected y to broadcast with the rows of the second argument, got {described}"
        ) from None


def _rows_of_probabilities(name: str, y: Value, theta: Value) -> None:
    _rows(name, y, theta)
    sums_to_one(name, "theta", theta)


categorical_lpmf = Density(
    "categorical_lpmf",
    {"y": WHOLE, "theta": UNIT},
    lambda counts, _y, theta: np.sum(special.xlogy(counts, theta)),
    (None, lambda counts, _y, theta: ratio(counts, theta)),
    shared=_counts,
    support=_categories,
    check=_rows_of_probabilities,
    elementwise=False,
)
"""Σ log θ[y] for y in 0 … K-1; θ of shape (K,), or (…, K) with a row for each y. Each row must sum to 1."""


def _softmax_slope(counts: Any, _y: Value, beta: Value) -> Value:
    """n_k (1 - p_k) - (n - n_k) p_k, with 1 - p = -expm1(log p), which is accurate for p close to 1."""
    log_p = log_softmax(beta)
    rest = counts.sum(-1, keepdims=True) - counts
    return -counts * expm1(log_p) - rest * exp(log_p)


categorical_logit_lpmf = Density(
    "categorical_logit_lpmf",
    {"y": WHOLE, "beta": FINITE},
    lambda counts, _y, beta: np.sum(counts * log_softmax(beta)),
    (None, _softmax_slope),
    shared=_counts,
    support=_categories,
    check=_rows,
    elementwise=False,
)
"""Σ log softmax(β)[y]; β of shape (K,), or (…, K) with a row for each y. ∂β = counts - n softmax(β)."""
