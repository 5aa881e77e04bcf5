"""Squared distances of n points to the nearest of five centroids.

    f(C) = Σ_i min_j ‖p_i - c_j‖²

    ∂f/∂c_j = 2 Σ_(i nearest to j) (c_j - p_i),   H is diagonal: 2 × the number of points nearest to j

So H times a vector of ones is the diagonal, and the algorithm's step is Newton's: gradient divided by diagonal.

Bottou and Bengio (1994), "Convergence properties of the k-means algorithms"; the suite gradbench (`kmeans`).
"""

import numpy as np

from adbench import Case

CENTROIDS, DIMENSIONS = 5, 3


def f(xp, centroids, points):
    gap = points[:, None, :] - centroids[None, :, :]
    return xp.sum(xp.min(xp.sum(gap * gap, axis=2), axis=1))


def gradient(centroids, points):
    nearest = np.argmin(((points[:, None] - centroids[None]) ** 2).sum(axis=2), axis=1)
    return (np.array([2 * np.sum(c - points[nearest == j], axis=0) for j, c in enumerate(centroids)]),)


def inputs(n, rng):
    # Well-separated centroids that take turns to get a point.
    centroids = 2.0 * np.eye(CENTROIDS, DIMENSIONS) + np.arange(CENTROIDS)[:, None] + rng.normal(0, 0.2, (CENTROIDS, 3))
    points = centroids[np.arange(n) % CENTROIDS] + rng.normal(0, 0.5, (n, DIMENSIONS))
    return {"centroids": centroids, "points": points}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("centroids",),
    sizes=(5, 10, 100, 1_000, 10_000, 100_000),
    quick=(5, 10),
    least=CENTROIDS,
    operators=("value", "gradient", "hvp"),
    gradient=gradient,
    flops=lambda n: n * CENTROIDS * (3 * DIMENSIONS + 1),
    tags=("vectorised", "second-order"),
    suites=("gradbench", "quick"),
)
