"""Densities of vectors and matrices, one node each, with Stan's names and order of arguments.

Vectors have shape (..., k); their leading axes are observations and broadcast. Matrices have shape (k, k).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adbench.tape.core.rule import Value
from adbench.tape.densities.density import FINITE, NUMBER, POSITIVE, UNIT, Density, DomainError, Partial, sums_to_one
from adbench.tape.lazy import special
from adbench.tape.linalg.solving import inv, solve, solve_triangular, t
from adbench.tape.rules.compound import ratio
from adbench.tape.rules.elementwise import log
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import cumsum
from adbench.tape.rules.shapes import broadcast_to, concatenate, flip, reshape, tril
from adbench.tape.rules.special import HALF_LOG_2PI, digamma_rise, lbeta
from adbench.tape.values import shape_of


def _symmetric(a: Value) -> Value:
    """The symmetric part of a matrix, (A + Aᵀ)/2: densities read only this."""
    return 0.5 * (a + t(a))


def _positive_definite(name: str, argument: str, a: Value) -> Value:
    """The Cholesky factor of a plain matrix."""
    try:
        return np.linalg.cholesky(_symmetric(a))
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(_symmetric(a))[0]
        got = f"one with the eigenvalue {least:.6g}"
        raise DomainError(f"{name}: {argument}: expected a positive definite matrix, got {got}") from None


def _square(name: str, argument: str, a: Value) -> None:
    shape = shape_of(a)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise DomainError(f"{name}: {argument}: expected a square matrix (k, k), got shape {shape}")


def _symmetric_matrix(name: str, argument: str, a: Value) -> None:
    _square(name, argument, a)
    gap = np.max(np.abs(a - a.T), initial=0.0)
    if gap > 1e-8 * np.max(np.abs(a), initial=0.0):
        raise DomainError(f"{name}: {argument}: expected a symmetric matrix, got |A - Aᵀ| up to {gap:.6g}")


def _vectors(name: str, y: Value, mu: Value, matrix: Value) -> None:
    """Raise ValueError unless y and μ are vectors of the matrix's length that broadcast."""
    k, shapes = shape_of(matrix)[-1], (shape_of(y), shape_of(mu))
    try:
        fits = all(shape and shape[-1] == k for shape in shapes) and np.broadcast_shapes(*shapes)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: expected y and mu of shapes (..., {k}), got {shapes[0]} and {shapes[1]}")


# Multivariate normal; the rows of D are the differences y - μ


def _differences(y: Value, mu: Value) -> Value:
    d = y - mu
    return reshape(d, (-1, shape_of(d)[-1]))


def _spread_over(rows: Value, y: Value, mu: Value) -> Value:
    """The rows in the shape from before `_differences`."""
    return reshape(rows, np.broadcast_shapes(shape_of(y), shape_of(mu)))


def _multi_normal(
    name: str,
    argument: str,
    value: Callable[..., Value],
    slope: Partial,
    shared: Callable[..., Value],
    check: Callable[[str, Value, Value, Value], None],
) -> Density:
    """A multivariate normal of y, μ and a matrix; `shared` returns the rows ∂/∂μ second."""
    return Density(
        name,
        {"y": NUMBER, "mu": FINITE, argument: FINITE},
        value,
        (
            lambda shared, y, mu, _matrix: -_spread_over(shared[1], y, mu),
            lambda shared, y, mu, _matrix: _spread_over(shared[1], y, mu),
            slope,
        ),
        shared=shared,
        check=check,
        elementwise=False,
    )


def _of_symmetric(name: str, argument: str, sign: float, product: Callable[[Value, Value], Value]) -> Density:
    """The multivariate normal with a covariance Σ (sign 1) or a precision Ω (-1); product(D, M) is D Σ⁻¹ or D Ω.

    Σ -½ dᵀ product(d, M) - n (±½ log |M| + k/2 log 2π); ∂M = ±½ (Bᵀ B - n M⁻¹), where B is D Σ⁻¹ or D.
    """

    def shared(y: Value, mu: Value, matrix: Value) -> tuple[Value, Value, Value]:
        d, matrix = _differences(y, mu), _symmetric(matrix)
        return d, product(d, matrix), matrix

    def value(terms: Value, _y: Value, _mu: Value, _matrix: Value) -> Value:
        d, a, matrix = terms
        log_diagonal = np.sum(np.log(np.diagonal(np.linalg.cholesky(matrix))))
        return -0.5 * np.sum(d * a) - len(d) * (sign * log_diagonal + d.shape[1] * HALF_LOG_2PI)

    def slope(terms: Value, _y: Value, _mu: Value, _matrix: Value) -> Value:
        d, a, matrix = terms
        rows = a if sign > 0.0 else d
        return 0.5 * sign * (matmul(t(rows), rows) - float(shape_of(rows)[0]) * inv(matrix))

    def check(name: str, y: Value, mu: Value, matrix: Value) -> None:
        _symmetric_matrix(name, argument, matrix)
        _positive_definite(name, argument, matrix)
        _vectors(name, y, mu, matrix)

    return _multi_normal(name, argument, value, slope, shared, check)


multi_normal_lpdf = _of_symmetric("multi_normal_lpdf", "Sigma", 1.0, lambda d, cov: t(solve(cov, t(d))))
"""Σ -½ dᵀ Σ⁻¹ d - ½ log |Σ| - k/2 log 2π, d = y - μ, Σ the covariance."""

multi_normal_prec_lpdf = _of_symmetric("multi_normal_prec_lpdf", "Omega", -1.0, matmul)
"""The multivariate normal with precision Ω = Σ⁻¹: Σ -½ dᵀ Ω d + ½ log |Ω| - k/2 log 2π."""


def _factor_check(name: str, y: Value, mu: Value, factor: Value) -> None:
    _square(name, "L", factor)
    if not np.all(np.diagonal(factor) > 0.0):
        least = np.min(np.diagonal(factor))
        raise DomainError(f"{name}: L: expected a lower triangle with positive diagonal, got {least:.6g} on it")
    _vectors(name, y, mu, factor)


def _factor_shared(y: Value, mu: Value, factor: Value) -> tuple[Value, Value]:
    """Z = L⁻¹ Dᵀ, shape (k, n), and A = Zᵀ L⁻¹, shape (n, k)."""
    z = solve_triangular(factor, t(_differences(y, mu)), lower=True)
    return z, t(solve_triangular(factor, z, lower=True, transposed=True))


def _factor_value(shared: Value, _y: Value, _mu: Value, factor: Value) -> Value:
    z, _ = shared
    return -0.5 * np.sum(z * z) - z.shape[1] * (np.sum(np.log(np.diagonal(factor))) + len(z) * HALF_LOG_2PI)


def _factor_slope(shared: Value, _y: Value, _mu: Value, factor: Value) -> Value:
    """The lower triangle of Aᵀ Zᵀ, minus n/L_ii on the diagonal. The upper triangle of L is not read."""
    z, a = shared
    eye = np.eye(shape_of(factor)[-1])
    inverse_diagonal = eye / (factor * eye + (1.0 - eye))
    return tril(matmul(t(a), t(z))) - float(shape_of(z)[1]) * inverse_diagonal


multi_normal_cholesky_lpdf = _multi_normal(
    "multi_normal_cholesky_lpdf", "L", _factor_value, _factor_slope, _factor_shared, _factor_check
)
"""The multivariate normal with Σ = L Lᵀ: Σ -½ |L⁻¹ d|² - Σ_i log L_ii - k/2 log 2π."""

# Dirichlet


def _dirichlet_check(name: str, theta: Value, alpha: Value) -> None:
    if not shape_of(theta) or not shape_of(alpha) or shape_of(theta)[-1] != shape_of(alpha)[-1]:
        described = f"{shape_of(theta)} and {shape_of(alpha)}"
        raise ValueError(f"{name}: expected theta and alpha of shapes (..., k), got {described}")
    sums_to_one(name, "theta", theta)


def _others(alpha: Value) -> Value:
    """For each element of the last axis, the sum of the others, without subtraction."""
    nothing = np.zeros((*shape_of(alpha)[:-1], 1))
    before = cumsum(concatenate([nothing, alpha[..., :-1]], -1), -1)
    after = flip(cumsum(flip(concatenate([alpha[..., 1:], nothing], -1), -1), -1), -1)
    return before + after


def _dirichlet_value(_s: Value, theta: Value, alpha: Value) -> Value:
    """log B(α) as a chain of log B(α_0 + … + α_(k-1), α_k): the terms of Σ log Γ(α_k) would cancel for large α."""
    log_b = np.sum(lbeta(np.cumsum(alpha, -1)[..., :-1], alpha[..., 1:]), -1)
    kernel = np.sum(special.xlogy(alpha - 1.0, theta), -1)
    return np.sum(kernel - log_b)


dirichlet_lpdf = Density(
    "dirichlet_lpdf",
    {"theta": NUMBER, "alpha": POSITIVE},
    _dirichlet_value,
    (
        lambda _s, theta, alpha: broadcast_to(
            ratio(alpha - 1.0, theta), np.broadcast_shapes(shape_of(theta), shape_of(alpha))
        ),
        lambda _s, theta, alpha: log(theta) + digamma_rise(alpha, _others(alpha)),  # ψ(Σα) - ψ(α_k) + log θ_k
    ),
    support=UNIT,
    check=_dirichlet_check,
    elementwise=False,
)
"""Σ log Γ(Σα) - Σ_k log Γ(α_k) + Σ_k (α_k - 1) log θ_k; θ of shape (..., k), each row must sum to 1."""
