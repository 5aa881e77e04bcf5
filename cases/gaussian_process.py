"""Log marginal likelihood of a Gaussian process at n points, differentiated in its three parameters.

    f(α, ρ, σ) = -½ (y · K⁻¹ y + log det K + n log 2π),   K_ij = α² exp(-½ (t_i - t_j)² / ρ²) + σ² δ_ij

    ∂f/∂θ = ½ tr((a aᵀ - K⁻¹) ∂K/∂θ),   a = K⁻¹ y

using the Cholesky factor of K: log det K = 2 Σ log L_ii, y · K⁻¹ y = ‖L⁻¹ y‖².

Rasmussen and Williams (2006), "Gaussian Processes for Machine Learning", equations 5.8 and 5.9.
"""

import numpy as np

from adbench import Case

from ._matrices import QUICK, SIZES, log_normal


def f(xp, t, y, alpha, rho, sigma):
    gap = (t[:, None] - t[None, :]) / rho
    K = alpha * alpha * xp.exp(-0.5 * gap * gap) + sigma * sigma * xp.eye(t.shape[0])
    L = xp.linalg.cholesky(K)
    z = xp.linalg.solve(L, y[:, None])
    return log_normal(xp, xp.sum(z * z), 2 * xp.sum(xp.log(xp.linalg.diagonal(L))), t.shape[0])


def gradient(t, y, alpha, rho, sigma):
    squares = (t[:, None] - t[None, :]) ** 2
    smooth = alpha**2 * np.exp(-0.5 * squares / rho**2)
    inverse = np.linalg.inv(smooth + sigma**2 * np.eye(len(t)))
    a = inverse @ y
    slopes = (2 / alpha * smooth, smooth * squares / rho**3, 2 * sigma * np.eye(len(t)))
    return tuple(0.5 * np.sum((np.outer(a, a) - inverse) * slope) for slope in slopes)


def inputs(n, rng):
    # The density of points does not depend on n, so K stays well conditioned.
    t = np.sort(rng.uniform(0, n / 2, n))
    return {
        "t": t,
        "y": np.sin(t) + rng.normal(0, 0.5, n),
        "alpha": rng.uniform(0.8, 1.2),
        "rho": rng.uniform(0.8, 1.2),
        "sigma": rng.uniform(0.4, 0.6),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("alpha", "rho", "sigma"),
    sizes=(*SIZES, 500),
    quick=QUICK,
    gradient=gradient,
    flops=lambda n: n**3 / 3 + 6 * n**2,
    tags=("matrix", "linear-algebra", "density", "science"),
    suites=("quick", "science"),
)
