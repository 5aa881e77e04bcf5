"""Inputs and gradients that a matrix operation and its scalar elements share."""

import numpy as np

SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
QUICK = (2, 8)


def well_conditioned(n, rng):
    """An n × n matrix whose eigenvalues lie in a disc of radius 1 around 2 (the circular law), for every n."""
    return 2 * np.eye(n) + rng.normal(size=(n, n)) / np.sqrt(n)


def symmetric(A):
    """½ (A + Aᵀ), on which all conventions about the halves of a symmetric matrix agree."""
    return 0.5 * (A + A.T)


def positive_definite(n, rng):
    """A symmetric n × n matrix with eigenvalues between about 0.6 and 3.4 (the semicircle law)."""
    return symmetric(2 * np.eye(n) + 0.9 * rng.normal(size=(n, n)) / np.sqrt(n))


def log_normal(xp, quadratic_form, log_abs_det, n):
    """-½ (rᵀ Σ⁻¹ r + log |Σ| + n log 2π)."""
    return -0.5 * (quadratic_form + log_abs_det + n * np.log(2 * np.pi))
