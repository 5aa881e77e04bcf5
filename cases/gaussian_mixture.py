"""Log posterior of a Gaussian mixture with five components for n observations of three numbers.

    β_ik = α_k + Σ_j q_kj - ½ ‖Q_k (x_i - μ_k)‖²
    L = -½ n d log 2π + Σ_i lse_k β_ik - n lse_k α_k,      lse a = log Σ exp a
    P = k [ν d log(γ / √2) - log Γ_d(ν / 2)] - ½ γ² Σ_k ‖Q_k‖² + m Σ_kj q_kj,      ν = d + m + 1
    f(α, μ, q, l) = L + P

Q_k is lower triangular: exp(q_k) on its diagonal, l_k below it, filled by columns. α holds the log weights up to a
constant; P is the Wishart prior of the inverse covariances Qᵀ Q.

Šrajer, Kukelova and Fitzgibbon (2018), "A benchmark of selected algorithmic differentiation tools on some problems in
computer vision and machine learning", arXiv:1807.10129. That suite computes L - P; the posterior is L + P.

The hand-written gradient uses responsibilities r_ik = exp(β_ik - lse_k β_ik), as ∂L/∂μ_k = Σ_i r_ik Q_kᵀ Q_k (x_i -
μ_k).
"""

import math

import numpy as np

from adbench import Case

from ._special import log_sum_exp

DIMENSIONS, COMPONENTS = 3, 5


def below_diagonal(d):
    """The index of each entry of Q in (0, l); 0 for entries on or above the diagonal."""
    places = np.zeros((d, d), dtype=np.int64)
    rows, columns = np.tril_indices(d, -1)
    by_columns = np.lexsort((rows, columns))
    places[rows[by_columns], columns[by_columns]] = np.arange(1, rows.size + 1)
    return places


def log_wishart(xp, q, Q, gamma, m):
    k, d = q.shape
    nu = d + m + 1
    log_gamma = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma((nu - j) / 2) for j in range(d))
    constant = k * (nu * d * xp.log(gamma / math.sqrt(2)) - log_gamma)
    return constant - 0.5 * gamma * gamma * xp.sum(Q * Q) + m * xp.sum(q)


def f(xp, x, alpha, mu, q, l, gamma, m):  # noqa: E741 - the publication's name
    n, d = x.shape
    with_zero = xp.concat([xp.zeros_like(q[:, :1]), l], axis=1)
    Q = with_zero[:, below_diagonal(d)] + xp.exp(q)[:, :, None] * xp.eye(d)
    scaled = (x[None, :, :] - mu[:, None, :]) @ xp.matrix_transpose(Q)
    beta = (alpha + xp.sum(q, axis=1))[:, None] - 0.5 * xp.sum(scaled * scaled, axis=2)
    likelihood = xp.sum(log_sum_exp(xp, beta, axis=0)) - n * log_sum_exp(xp, alpha)
    return likelihood - 0.5 * n * d * math.log(2 * math.pi) + log_wishart(xp, q, Q, gamma, m)


def gradient(x, alpha, mu, q, l, gamma, m):  # noqa: E741 - as above
    (n, d), places = x.shape, below_diagonal(x.shape[1])
    Q = np.concatenate([np.zeros((len(q), 1)), l], axis=1)[:, places] + np.exp(q)[:, :, None] * np.eye(d)
    gap = x[None] - mu[:, None]
    scaled = gap @ Q.transpose(0, 2, 1)
    beta = (alpha + q.sum(axis=1))[:, None] - 0.5 * (scaled**2).sum(axis=2)
    share = np.exp(beta - beta.max(axis=0))
    share /= share.sum(axis=0)
    weight = np.exp(alpha - alpha.max())
    by_Q = -np.einsum("kn,kni,knj->kij", share, scaled, gap) - gamma**2 * Q
    by_q = share.sum(axis=1)[:, None] + np.einsum("kii->ki", by_Q) * np.exp(q) + m
    rows, columns = np.nonzero(places)
    by_l = np.zeros_like(l)
    by_l[:, places[rows, columns] - 1] = by_Q[:, rows, columns]
    return (
        share.sum(axis=1) - n * weight / weight.sum(),
        np.einsum("kn,kni,kij->kj", share, scaled, Q),
        by_q,
        by_l,
    )


def inputs(n, rng):
    d, k = DIMENSIONS, COMPONENTS
    return {
        "x": rng.normal(size=(n, d)),
        "alpha": rng.normal(size=k),
        "mu": rng.normal(size=(k, d)),
        "q": rng.normal(0, 0.5, (k, d)),
        "l": rng.normal(0, 0.5, (k, d * (d - 1) // 2)),
        "gamma": 1.0,
        "m": 0,
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("alpha", "mu", "q", "l"),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(3, 10),
    gradient=gradient,
    flops=lambda n: n * COMPONENTS * (DIMENSIONS * (DIMENSIONS + 1) + 3 * DIMENSIONS + 6) + 100,
    tags=("density", "matrix"),
    suites=("adbench", "gradbench", "quick"),
)
