"""Reprojection errors of n observations of points by cameras, with a sparse Jacobian.

    p = R(r) (X - C),   q = p_xy / p_z,   ρ = ‖q‖²,   d = q (1 + k₁ ρ + k₂ ρ²)
    e = w (f d + u - feature),   e_w = 1 - w²

A camera is (r, C, f, u₀, v₀, k₁, k₂): a rotation by Rodrigues' formula, a centre, a focal length, a principal point and
two coefficients of radial distortion. Each observation has three values (e, e_w): e depends on 11 + 3 + 1 numbers, e_w
on a single weight.

There are about sqrt(n) cameras and as many points; no observation occurs twice.

Triggs, McLauchlan, Hartley and Fitzgibbon (2000), "Bundle adjustment - a modern synthesis"; Šrajer, Kukelova and
Fitzgibbon (2018), arXiv:1807.10129, in whose data all observations are copies of one.
"""

import math

import numpy as np

from adbench import Case

ROTATION, CENTRE, FOCAL, PRINCIPAL, DISTORTION = slice(0, 3), slice(3, 6), slice(6, 7), slice(7, 9), slice(9, 11)
PARAMETERS = 11


def seen(n):
    """(number of cameras, number of points, camera of each observation, point of each observation)."""
    cameras = math.isqrt(n - 1) + 1
    index = np.arange(n)
    return cameras, -(-n // cameras), index % cameras, index // cameras


def rotated(xp, r, X):
    """Rotate each row of X by the rotation vector in the same row of r."""
    angle = xp.sqrt(xp.sum(r * r, axis=1))[:, None]
    axis = r / angle
    along = xp.sum(axis * X, axis=1)[:, None]
    x, y, z = axis[:, 0], axis[:, 1], axis[:, 2]
    across = xp.stack([y * X[:, 2] - z * X[:, 1], z * X[:, 0] - x * X[:, 2], x * X[:, 1] - y * X[:, 0]], axis=1)
    return X * xp.cos(angle) + across * xp.sin(angle) + axis * along * (1 - xp.cos(angle))


def f(xp, cameras, points, weights, features):
    _, _, camera, point = seen(features.shape[0])
    return errors(xp, cameras[camera], points[point], weights[:, None], features)


def errors(xp, by, X, w, features):
    """(e, e_w) of each observation; `by` and `X` hold its camera and its point."""
    p = rotated(xp, by[:, ROTATION], X - by[:, CENTRE])
    q = p[:, :2] / p[:, 2:]
    rho = xp.sum(q * q, axis=1)[:, None]
    k = by[:, DISTORTION]
    distorted = q * (1 + k[:, :1] * rho + k[:, 1:] * rho * rho)
    error = w * (by[:, FOCAL] * distorted + by[:, PRINCIPAL] - features)
    return xp.concat([error, 1 - w * w], axis=1)


def sparsity(n):
    return pattern(*seen(n))


def pattern(cameras, points, camera, point):
    """Rows and columns of the nonzero entries, for the result of `seen`."""
    n = camera.size
    of_camera = camera[:, None] * PARAMETERS + np.arange(PARAMETERS)
    of_point = cameras * PARAMETERS + point[:, None] * 3 + np.arange(3)
    of_weight = cameras * PARAMETERS + points * 3 + np.arange(n)[:, None]
    columns = np.concatenate([of_camera, of_point, of_weight], axis=1)
    rows = 3 * np.arange(n)[:, None]
    entries = [(rows + i + 0 * columns, columns) for i in range(2)] + [(rows + 2, of_weight)]
    return tuple(np.concatenate([part[k].ravel() for part in entries]) for k in range(2))


def inputs(n, rng):
    cameras, points, _, _ = seen(n)
    low = [-0.3, -0.3, -0.3, -0.5, -0.5, -4.5, 0.8, -0.2, -0.2, -0.2, -0.2]
    high = [0.3, 0.3, 0.3, 0.5, 0.5, -3.5, 1.2, 0.2, 0.2, 0.2, 0.2]
    return {
        "cameras": rng.uniform(low, high, (cameras, PARAMETERS)),
        "points": rng.uniform(-1, 1, (points, 3)),
        "weights": rng.uniform(0.5, 1.5, n),
        "features": rng.uniform(-1, 1, (n, 2)),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("cameras", "points", "weights"),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(2, 10),
    operators=("value", "jacobian"),
    sparsity=sparsity,
    flops=lambda n: 70 * n,
    tags=("array-valued", "sparse"),
    suites=("adbench", "gradbench", "quick"),
)
