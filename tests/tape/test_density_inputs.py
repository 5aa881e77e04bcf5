"""Outside their domain or support, densities raise an error that names the argument, or return -inf; never NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adbench import tape

rng = np.random.default_rng(1)
REAL = rng.normal(size=(4, 3))
B = np.array([0.3, -1.2, 0.7])
SIGMA = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, 1.5]])
W = np.array([[3.0, 0.5, 0.1], [0.5, 2.0, -0.6], [0.1, -0.6, 4.0]])
THETA = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])

OUTSIDE = [
    ("lognormal_lpdf", (0.0, 0.1, 1.0)),
    ("lognormal_lpdf", (-1.0, 0.1, 1.0)),
    ("exponential_lpdf", (-1e-9, 1.0)),
    ("gamma_lpdf", ([1.0, -1.0], 2.0, 1.0)),
    ("beta_lpdf", (1.5, 2.0, 2.0)),
    ("normal_lpdf", (np.inf, 0.0, 1.0)),
    ("cauchy_lpdf", (-np.inf, 0.0, 1.0)),
    ("bernoulli_lpmf", (2, 0.5)),
    ("bernoulli_logit_lpmf", (-1, 0.5)),
    ("binomial_lpmf", (6, 5, 0.5)),
    ("binomial_lpmf", (-1, 5, 0.5)),
    ("poisson_lpmf", ([1, -1], 2.0)),
    ("poisson_log_lpmf", (-1, 2.0)),
    ("categorical_lpmf", (3, THETA[0])),
    ("categorical_logit_lpmf", (-1, REAL[0])),
    ("dirichlet_lpdf", ([1.5, -0.5], [2.0, 2.0])),
]


@pytest.mark.parametrize(("name", "point"), OUTSIDE)
def test_outside_the_support_the_log_density_is_minus_infinity_with_gradient_zero(name, point):
    density = getattr(tape, name)
    last = np.asarray(point[-1], float)[()] if np.ndim(point[-1]) else float(point[-1])
    val, g = tape.gradient(lambda x: density(*point[:-1], x), last)
    assert val == -np.inf
    assert not np.any(g)


def test_at_the_edge_of_the_support_the_limit_from_inside_is_taken():
    assert tape.exponential_lpdf(0.0, 2.0) == math.log(2.0)
    assert tape.gamma_lpdf(0.0, 1.0, 2.0) == math.log(2.0)
    assert tape.gamma_lpdf(0.0, 2.0, 2.0) == -np.inf
    assert tape.gamma_lpdf(0.0, 0.5, 2.0) == np.inf
    assert tape.beta_lpdf(1.0, 2.0, 1.0) == pytest.approx(math.log(2.0))
    assert tape.gradient(lambda b: tape.gamma_lpdf(0.0, 1.0, b), 2.0)[1] == 0.5
    assert tape.gradient(lambda y: tape.gamma_lpdf(y, 1.0, 2.0), 0.0)[1] == -2.0
    assert tape.gradient(lambda p: tape.binomial_lpmf(0, 4, p), 0.0) == (0.0, -4.0)
    assert tape.gradient(lambda p: tape.bernoulli_lpmf(1, p), 0.0) == (-np.inf, np.inf)
    assert tape.gradient(lambda r: tape.poisson_lpmf(0, r), 0.0) == (0.0, -1.0)


WRONG = [
    ("normal_lpdf", (1.0, 0.0, 0.0), r"normal_lpdf: sigma: expected positive finite numbers, got 0\.0$"),
    (
        "normal_lpdf",
        (1.0, 0.0, [1.0, -2.0]),
        r"normal_lpdf: sigma: expected positive finite numbers, got -2\.0 at \[1\]",
    ),
    ("normal_lpdf", (np.nan, 0.0, 1.0), "normal_lpdf: y: expected numbers without NaN, got nan"),
    ("normal_lpdf", (1.0, np.inf, 1.0), "normal_lpdf: mu: expected finite numbers, got inf"),
    ("cauchy_lpdf", (1.0, 0.0, -1.0), "cauchy_lpdf: sigma: expected positive"),
    ("student_t_lpdf", (1.0, 0.0, 0.0, 1.0), "student_t_lpdf: nu: expected positive"),
    ("lognormal_lpdf", (1.0, 0.0, np.inf), "lognormal_lpdf: sigma: expected positive finite numbers, got inf"),
    ("exponential_lpdf", (1.0, 0.0), "exponential_lpdf: beta: expected positive"),
    ("gamma_lpdf", (1.0, -1.0, 1.0), "gamma_lpdf: alpha: expected positive"),
    ("beta_lpdf", (0.5, 1.0, 0.0), "beta_lpdf: beta: expected positive"),
    ("bernoulli_lpmf", (1, 1.1), r"bernoulli_lpmf: theta: expected numbers from 0 to 1, got 1\.1"),
    ("bernoulli_lpmf", (0.5, 0.5), r"bernoulli_lpmf: y: expected whole numbers, got 0\.5"),
    ("bernoulli_logit_lpmf", (1, np.nan), "bernoulli_logit_lpmf: alpha: expected numbers without NaN"),
    ("binomial_lpmf", (1, 2.5, 0.5), r"binomial_lpmf: N: expected whole numbers of at least 0, got 2\.5"),
    ("binomial_lpmf", (1, -2, 0.5), r"binomial_lpmf: N: expected whole numbers of at least 0, got -2\.0"),
    ("poisson_lpmf", (1, -1.0), "poisson_lpmf: lambda: expected finite numbers of at least 0"),
    ("poisson_lpmf", ([1, 2.5], 1.0), r"poisson_lpmf: n: expected whole numbers, got 2\.5 at \[1\]"),
    ("poisson_log_lpmf", (1, np.inf), "poisson_log_lpmf: alpha: expected finite"),
    ("categorical_lpmf", (0, [0.5, 0.6]), r"categorical_lpmf: theta: expected rows that sum to 1, got the sum 1\.1"),
    ("categorical_lpmf", (0, 1.0), "categorical_lpmf: expected a vector"),
    ("categorical_logit_lpmf", (0.5, [0.5, 0.6]), "categorical_logit_lpmf: y: expected whole"),
    ("dirichlet_lpdf", ([0.5, 0.4], [1.0, 1.0]), r"dirichlet_lpdf: theta: .* sum to 1, got the sum 0\.9"),
    ("dirichlet_lpdf", ([0.5, 0.5], [1.0, 0.0]), "dirichlet_lpdf: alpha: expected positive"),
    (
        "multi_normal_lpdf",
        (B, B, -SIGMA),
        "multi_normal_lpdf: Sigma: expected a positive definite matrix, got one with",
    ),
    ("multi_normal_lpdf", (B, B, np.triu(SIGMA)), "multi_normal_lpdf: Sigma: expected a symmetric matrix"),
    ("multi_normal_lpdf", (B, B, SIGMA[:2]), r"multi_normal_lpdf: Sigma: expected a square .*, got shape \(2, 3\)"),
    ("multi_normal_prec_lpdf", (B, B, SIGMA - 3 * np.eye(3)), "multi_normal_prec_lpdf: Omega: .* positive definite"),
    ("multi_normal_cholesky_lpdf", (B, B, -np.eye(3)), "multi_normal_cholesky_lpdf: L: .* positive diagonal, got -1"),
]


@pytest.mark.parametrize(("name", "point", "message"), WRONG)
def test_a_parameter_outside_its_domain_raises_an_error_that_names_the_domain(name, point, message):
    with pytest.raises(tape.DomainError, match=message):
        getattr(tape, name)(*point)


def test_wrong_shapes_counts_and_types_raise_errors_that_name_them():
    with pytest.raises(
        ValueError, match=r"normal_lpdf: expected shapes that broadcast, got y \(2,\), mu \(3,\), sigma \(\)"
    ):
        tape.normal_lpdf([1.0, 2.0], [1.0, 2.0, 3.0], 1.0)
    with pytest.raises(ValueError, match=r"multi_normal_lpdf: expected y and mu of shapes \(..., 3\), got \(2,\)"):
        tape.multi_normal_lpdf([1.0, 2.0], B, SIGMA)
    with pytest.raises(ValueError, match=r"dirichlet_lpdf: expected theta and alpha of shapes \(..., k\)"):
        tape.dirichlet_lpdf([0.5, 0.5], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="categorical_lpmf: expected y to broadcast with the rows"):
        tape.categorical_lpmf([0, 1, 1], THETA)
    with pytest.raises(TypeError, match=r"normal_lpdf: expected 3 arguments \(y, mu, sigma\), got 2"):
        tape.normal_lpdf(1.0, 2.0)
    with pytest.raises(TypeError, match="normal_lpdf: mu: expected numbers, got None"):
        tape.normal_lpdf(1.0, None, 2.0)
    with pytest.raises(tape.RuleError, match="poisson_lpmf: n: expected a plain number, got a variable"):
        tape.poisson_lpmf(tape.Var(2.0), 1.0)
    with pytest.raises(tape.ComplexError, match="normal_lpdf: y"):
        tape.normal_lpdf(1j, 0.0, 1.0)


def test_no_observations_have_log_density_zero():
    assert tape.gradient(lambda p: tape.normal_lpdf([], *p), (0.0, 1.0)) == (0.0, (0.0, 0.0))
    assert tape.gradient(lambda r: tape.poisson_lpmf([], r), 2.0) == (0.0, 0.0)


def test_integers_and_lists_are_promoted():
    assert tape.normal_lpdf(1, 0, 2) == tape.normal_lpdf(1.0, 0.0, 2.0)
    assert tape.normal_lpdf([1, 2], 0, 2) == pytest.approx(tape.normal_lpdf(np.array([1.0, 2.0]), 0.0, 2.0))
