"""Log densities keep all digits of value, gradient and Hessian at ordinary and extreme arguments."""

from __future__ import annotations

import math

import mpmath as m
import numpy as np
import pytest

from adbench import tape
from tests.tape.limits import close, curvature, gradient_in, slope, value

HUGE, TINY = math.exp(300), math.exp(-300)
lg = m.loggamma


def _normal(y, mu, s):
    return -(((y - mu) / s) ** 2) / 2 - m.log(s) - m.log(2 * m.pi) / 2


def _student(y, n, mu, s):
    core = (n + 1) / 2 * m.log(1 + ((y - mu) / s) ** 2 / n)
    return lg((n + 1) / 2) - lg(n / 2) - m.log(n * m.pi) / 2 - m.log(s) - core


def _beta(y, a, b):
    return (a - 1) * m.log(y) + (b - 1) * m.log(1 - y) - lg(a) - lg(b) + lg(a + b)


def _choose(n, k):
    return lg(n + 1) - lg(k + 1) - lg(n - k + 1)


SCALES = [(1.3, 0.5, 1.2), (40.0, 0.0, 1.0), (2.0, 1.0, HUGE), (2.0, 1.0, TINY)]  # in the last, ∂σ is 1e390: inf
CONTINUOUS = {
    "normal_lpdf": (_normal, [*SCALES, (-1e100, 0.0, 1.0)]),
    "lognormal_lpdf": (
        lambda y, mu, s: _normal(m.log(y), mu, s) - m.log(y),
        [*SCALES, (1e-300, 0.0, 1.0), (1e300, 2.0, 0.1)],
    ),
    "cauchy_lpdf": (
        lambda y, mu, s: -m.log(m.pi) - m.log(s) - m.log(1 + ((y - mu) / s) ** 2),
        [*SCALES, (1e200, 0.5, 1.0), (1e-9, 0.0, 1.0)],
    ),
    "student_t_lpdf": (
        _student,
        [
            *[(1.3, 4.0, 0.5, 1.2), (1e200, 3.0, 0.5, 1.0), (2.0, 5.0, 1.0, HUGE), (2.0, 0.1, 1.0, TINY)],
            *[(1.5, 1e10, 0.0, 1.0), (1.5, 1e-3, 0.0, 1.0), (0.1, 300.0, 0.0, 1.0)],
        ],
    ),
    "exponential_lpdf": (
        lambda y, b: m.log(b) - b * y,
        [(1.3, 0.5), (1e-300, 1e300), (0.0, 1e-300), (1e5, 3.0), (2.0, HUGE)],
    ),
    "gamma_lpdf": (
        lambda y, a, b: a * m.log(b) - lg(a) + (a - 1) * m.log(y) - b * y,
        [
            *[(1.3, 0.5, 1.2), (1e-300, 1e-3, 1.0), (5e3, 2.0, 1e-300), (1e-300, 1.0, 1e300), (3.0, 20.0, 7.0)],
            *[(1e4, 2.0, 3.0), (1.5e10, 1e10, 1.0)],
        ],
    ),
    "beta_lpdf": (
        _beta,
        [(0.3, 0.5, 1.2), (1e-300, 2.0, 3.0), (0.3, 1e10, 2.0), (0.999, 1e-3, 1e-3), (0.4, 1e5, 2e5)],
    ),
}
DISCRETE = {
    "bernoulli_lpmf": (
        lambda y, p: y * m.log(p) + (1 - y) * m.log(1 - p),
        [(1.0, 0.3), (0.0, 0.3), (1.0, 1e-300), (0.0, 1e-300), (0.0, 1 - 1e-12)],
    ),
    "bernoulli_logit_lpmf": (
        lambda y, a: y * a - m.log(1 + m.exp(a)),
        [(1.0, 0.3), (0.0, 0.3), (1.0, 40.0), (0.0, -40.0), (1.0, -700.0), (1.0, 700.0), (0.0, 700.0)],
    ),
    "binomial_lpmf": (
        lambda n, N, p: _choose(N, n) + n * m.log(p) + (N - n) * m.log(1 - p),
        [
            *[(3.0, 10.0, 0.35), (0.0, 10.0, 0.3), (10.0, 10.0, 0.3), (3.0, 10.0, 1e-300), (0.0, 5.0, 1e-300)],
            *[(3e9, 1e10, 0.31), (1.0, 1e15, 2e-15)],
        ],
    ),
    "poisson_lpmf": (
        lambda n, r: n * m.log(r) - r - lg(n + 1),
        [(3.0, 2.5), (0.0, 2.5), (7.0, 1e-300), (3.0, 1e5), (1e10, 1e10 + 3.0), (0.0, 1e-300)],
    ),
    "poisson_log_lpmf": (
        lambda n, e: n * e - m.exp(e) - lg(n + 1),
        [(3.0, 1.1), (0.0, 1.1), (7.0, -300.0), (3.0, 300.0), (1e6, 13.7), (0.0, -300.0), (3.0, 1.09)],
    ),
}
CASES = [(name, f, p) for name, (f, points) in (CONTINUOUS | DISCRETE).items() for p in points]


def _digits(point):
    """More digits if one argument is negligible compared with another."""
    sizes = [abs(x) for x in point if x]
    return 600 if max(sizes) / min(sizes) > 1e30 or max(sizes) > 200 or min(sizes) < 1e-200 else 60


@pytest.mark.parametrize(("name", "exact", "point"), CASES)
def test_value_and_gradient_agree_with_high_precision_in_both_modes(name, exact, point):
    density, digits = getattr(tape, name), _digits(point)
    active = [i for i, partial in enumerate(density.partials) if partial is not None]
    (val, g), f = gradient_in(density, point, active)
    assert close(val, value(exact, point, digits), 2e-14, 1e-15)
    for k, i in enumerate(active):
        truth = slope(exact, point, i, digits)
        assert close(g[k], truth, 1e-13), (i, g[k], truth)
        unit = tuple(float(j == i) for j in active)
        assert tape.jvp(f, tuple(point[j] for j in active), unit)[1] == pytest.approx(g[k], rel=1e-15, abs=0)


@pytest.mark.parametrize(("name", "exact", "point"), [(n, f, p[0]) for n, (f, p) in (CONTINUOUS | DISCRETE).items()])
def test_second_derivatives_agree_with_high_precision(name, exact, point):
    density = getattr(tape, name)
    active = [i for i, partial in enumerate(density.partials) if partial is not None]
    _, f = gradient_in(density, point, active)
    at = tuple(point[i] for i in active)
    h = tape.hessian(f, at)[2]
    _, hv = tape.hvp(f, at, tuple(1.0 for _ in active))
    for a, i in enumerate(active):
        for b, j in enumerate(active):
            assert close(h[a][b], curvature(exact, point, i, j), 1e-13, 1e-20)
        assert hv[a] == pytest.approx(math.fsum(h[a]), rel=1e-12)


@pytest.mark.parametrize(("log_sigma", "unit"), [(-300.0, 1e-130), (300.0, 1.0), (300.0, 1e130)])
def test_normal_of_log_scale_is_right_at_the_ends_of_the_floats(log_sigma, unit):
    y = unit * np.array([0.5, 1.0, -0.25])
    at = (0.3 * unit, log_sigma)

    def exact(mu, ls):
        return sum(_normal(m.mpf(float(x)), mu, m.exp(ls)) for x in y)

    val, g = tape.gradient(lambda p: tape.normal_lpdf(y, p[0], tape.exp(p[1])), at)
    assert close(val, value(exact, at, 500), 1e-13)
    for i in range(2):
        assert close(g[i], slope(exact, at, i, 700), 2e-13)
