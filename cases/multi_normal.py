"""Multivariate normal log density of one observation of n numbers, differentiated in mean and covariance.

    f(μ, Σ) = -½ (r · Σ⁻¹ r + log |det Σ| + n log 2π),   r = y - μ

    ∂f/∂μ = ½ (Σ⁻¹ + Σ⁻ᵀ) r,   ∂f/∂Σ = ½ (Σ⁻ᵀ r rᵀ Σ⁻ᵀ - Σ⁻ᵀ)

using a solve and a determinant, so Σ may be any matrix and conventions about symmetric matrices do not matter.

From the evaluations of the Stan Math Library, Carpenter et al. (2015), arXiv:1509.07164.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES, log_normal, positive_definite


def f(xp, y, mu, sigma):
    r = y - mu
    _, log_abs_det = xp.linalg.slogdet(sigma)
    return log_normal(xp, xp.sum(r * xp.linalg.solve(sigma, r[:, None])[:, 0]), log_abs_det, y.shape[0])


def gradient(y, mu, sigma):
    inverse, r = np.linalg.inv(sigma), y - mu
    return 0.5 * (inverse + inverse.T) @ r, 0.5 * (np.outer(r @ inverse, inverse @ r) - inverse.T)


def inputs(n, rng):
    return {
        "y": rng.normal(1.0, 1.0, n),
        "mu": rng.uniform(-0.5, 0.5, n),
        "sigma": positive_definite(n, rng),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("mu", "sigma"),
    sizes=SIZES,
    quick=QUICK,
    gradient=gradient,
    flops=lambda n: 4 / 3 * n**3,
    tags=("matrix", "linear-algebra", "density"),
    suites=("stan-paper", "ablations"),
)
