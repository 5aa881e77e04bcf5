"""Draws with the seed fixed: numpy's numbers, and the derivatives of each number."""

from __future__ import annotations

import math

import mpmath as m
import numpy as np
import pytest
from scipy import special

from adbench import tape
from adbench.tape import draws
from tests.tape.limits import close

SEED = 20240517
SMOOTH = {
    "normal": ((0.5, 1.5), lambda g, mu, s, n: g.normal(mu, s, n)),
    "logistic": ((0.5, 1.5), lambda g, mu, s, n: g.logistic(mu, s, n)),
    "gumbel": ((0.5, 1.5), lambda g, mu, s, n: g.gumbel(mu, s, n)),
    "laplace": ((0.5, 1.5), lambda g, mu, s, n: g.laplace(mu, s, n)),
    "cauchy": ((0.5, 1.5), lambda g, mu, s, n: mu + s * g.standard_cauchy(n)),
    "uniform": ((-0.5, 1.5), lambda g, a, b, n: g.uniform(a, b, n)),
    "lognormal": ((0.5, 0.3), lambda g, mu, s, n: g.lognormal(mu, s, n)),
    "exponential": ((1.7,), lambda g, s, n: g.exponential(s, n)),
    "weibull": ((1.7,), lambda g, a, n: g.weibull(a, n)),
    "pareto": ((2.7,), lambda g, a, n: g.pareto(a, n)),
    "rayleigh": ((1.7,), lambda g, s, n: g.rayleigh(s, n)),
}
IMPLICIT = {
    "gamma": ((0.7, 1.5), lambda g, a, s, n: g.gamma(a, s, n)),
    "chi_square": ((3.3,), lambda g, k, n: g.chisquare(k, n)),
    "student_t": ((4.5,), lambda g, k, n: g.standard_t(k, n)),
}


@pytest.mark.parametrize("name", SMOOTH | IMPLICIT)
@pytest.mark.parametrize("size", [None, 7, (2, 3)])
def test_values_are_those_of_numpy_with_the_same_seed(name, size):
    point, numpy_draw = (SMOOTH | IMPLICIT)[name]
    expected = numpy_draw(np.random.default_rng(SEED), *point, size)
    mine = getattr(draws, name)(SEED, *point, size=size)
    assert np.shape(mine) == np.shape(expected)
    assert np.allclose(mine, expected, rtol=4e-16, atol=0)
    generator, other = np.random.default_rng(SEED), np.random.default_rng(SEED)
    getattr(draws, name)(generator, *point, size=size)
    numpy_draw(other, *point, size)
    assert generator.random() == other.random(), "the generator must have advanced as numpy's"


def test_array_parameters_draw_one_number_for_each():
    mu, sigma = np.zeros((4, 1)), np.array([1.0, 2.0, 3.0])
    assert np.array_equal(draws.normal(SEED, mu, sigma), np.random.default_rng(SEED).normal(mu, sigma))
    shape = np.array([[0.5], [2.0], [30.0]])
    mine = draws.gamma(SEED, shape, sigma)
    assert np.array_equal(mine, np.random.default_rng(SEED).gamma(shape, sigma))
    _, g = tape.gradient(lambda a: tape.sum(draws.gamma(SEED, a, sigma)), shape)
    assert np.allclose(g[:, 0], (draws.gamma_slope(shape, mine / sigma) * sigma).sum(1), rtol=1e-14)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_smooth_draws_match_differences_with_the_same_seed(name):
    point, numpy_draw = SMOOTH[name]

    def f(p):
        return tape.mean(tape.sin(getattr(draws, name)(SEED, *p, size=50)))

    val, g = tape.gradient(f, point)
    assert val == pytest.approx(np.sin(numpy_draw(np.random.default_rng(SEED), *point, 50)).mean(), rel=1e-14)
    h = 1e-4
    for i in range(len(point)):
        at = [
            np.sin(
                numpy_draw(np.random.default_rng(SEED), *(p + k * h * (j == i) for j, p in enumerate(point)), 50)
            ).mean()
            for k in (-2, -1, 1, 2)
        ]
        assert g[i] == pytest.approx((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h), rel=1e-6, abs=1e-9)
        unit = tuple(float(i == j) for j in range(len(point)))
        assert tape.jvp(f, point, unit)[1] == pytest.approx(g[i], rel=1e-13)


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_draws_have_second_derivatives(name):
    point, _ = SMOOTH[name]

    def f(p):
        return tape.mean(tape.cos(getattr(draws, name)(SEED, *p, size=20)))

    direction = tuple(0.3 + i for i in range(len(point)))
    _, hv = tape.hvp(f, point, direction)
    h = 1e-5
    up, down = (tape.gradient(f, tuple(p + t * d for p, d in zip(point, direction, strict=True)))[1] for t in (h, -h))
    assert np.allclose(hv, (np.array(up) - np.array(down)) / (2 * h), rtol=1e-5, atol=1e-7)


def test_a_normal_draw_has_its_closed_form_gradient():
    z = np.random.default_rng(SEED).standard_normal(1000)
    _, (mu, sigma) = tape.gradient(lambda p: tape.mean(draws.normal(SEED, *p, size=1000) ** 2), (0.5, 2.0))
    assert mu == pytest.approx((2 * (0.5 + 2 * z)).mean(), rel=1e-14)
    assert sigma == pytest.approx((2 * (0.5 + 2 * z) * z).mean(), rel=1e-14)


# Implicit reparameterisation


def _gamma_truth(a, x):
    """-(∂P/∂a)/p, by differences of the regularised incomplete gamma function on its smaller side."""
    with m.workdps(80):
        a, x = m.mpf(a), m.mpf(x)
        h = a * m.mpf(10) ** -18

        def below(s):
            return m.gammainc(s, 0, x, regularized=True) if x < a + 1 else -m.gammainc(s, x, m.inf, regularized=True)

        return -(below(a + h) - below(a - h)) / (2 * h) / m.exp((a - 1) * m.log(x) - x - m.loggamma(a))


QUANTILES = [1e-8, 1e-4, 0.05, 0.3, 0.55, 0.8, 0.99, 1 - 1e-8]


@pytest.mark.parametrize("a", [1e-2, 0.1, 0.5, 1.0, 1.4, 2.0, 5.0, 30.0, 300.0, 1e3])
def test_the_slope_of_a_gamma_draw_agrees_with_high_precision_from_tail_to_tail(a):
    for q in QUANTILES:
        x = float(special.gammaincinv(a, q))
        if x > 1e-290:
            assert close(draws.gamma_slope(a, x), _gamma_truth(a, x), 1e-13), (q, x)


def test_gamma_draws_move_along_their_quantile():
    """dx/dα equals a difference of high-precision quantiles at the same probability, without the implicit formula."""
    shape = 2.3
    x = draws.gamma(SEED, shape, size=4)
    _, jac = tape.jacobian(lambda a: draws.gamma(SEED, a, size=4), shape)
    with m.workdps(40):
        for one, slope in zip(x, jac, strict=True):
            u = m.gammainc(m.mpf(shape), 0, m.mpf(one), regularized=True)
            h = m.mpf(10) ** -12
            up, down = (
                m.findroot(
                    lambda t, a=a, u=u: m.gammainc(a, 0, t, regularized=True) - u, (m.mpf(one), m.mpf(one) * 1.001)
                )
                for a in (m.mpf(shape) + h, m.mpf(shape) - h)
            )
            assert close(slope, (up - down) / (2 * h), 1e-13)


def test_the_mean_of_many_gamma_draws_has_the_scale_as_its_slope():
    slope = tape.gradient(lambda a: tape.mean(draws.gamma(SEED, a, 3.0, size=50_000)), 2.5)[1]
    assert slope == pytest.approx(3.0, rel=2e-2), "the expectation is shape · scale"


@pytest.mark.parametrize("name", IMPLICIT)
def test_both_modes_of_implicit_draws_agree(name):
    point, _ = IMPLICIT[name]

    def f(p):
        return tape.mean(tape.sin(getattr(draws, name)(SEED, *p, size=30)))

    _, g = tape.gradient(f, point)
    for i in range(len(point)):
        unit = tuple(float(i == j) for j in range(len(point)))
        assert tape.jvp(f, point, unit)[1] == pytest.approx(g[i], rel=1e-13)


def test_student_t_depends_on_its_normal_and_its_gamma_draw():
    generator = np.random.default_rng(SEED)
    z, g = generator.standard_normal(), generator.standard_gamma(2.25)
    val, (df, loc, scale) = tape.gradient(lambda p: draws.student_t(SEED, *p), (4.5, 1.0, 2.0))
    t = math.sqrt(2.25) * z / math.sqrt(g)
    assert val == pytest.approx(1.0 + 2.0 * t, rel=1e-15)
    assert (loc, scale) == (1.0, pytest.approx(t))
    assert df == pytest.approx(2.0 * t * (0.5 / 4.5 - 0.25 * draws.gamma_slope(2.25, g) / g), rel=1e-13)


def test_a_draw_that_underflowed_to_zero_has_derivative_zero():
    assert draws.gamma_slope(1e-3, 0.0) == 0.0


def test_a_second_derivative_in_a_shape_raises_and_in_a_scale_does_not():
    with pytest.raises(tape.RuleError, match="the derivative of a gamma draw in its shape has no derivative"):
        tape.hessian(lambda a: draws.gamma(SEED, a) ** 2, 2.0)
    x = draws.gamma(SEED, 2.0)
    assert tape.hessian(lambda s: draws.gamma(SEED, 2.0, s) ** 2, 3.0)[2] == pytest.approx(2 * x * x, rel=1e-14)


def test_discrete_draws_are_constants_and_refuse_variables():
    assert np.array_equal(draws.poisson(SEED, 3.0, size=5), np.random.default_rng(SEED).poisson(3.0, 5))
    assert draws.binomial(SEED, 10, 0.5) == np.random.default_rng(SEED).binomial(10, 0.5)
    with pytest.raises(draws.DiscreteDrawError, match="poisson: expected plain parameters, got a variable"):
        tape.gradient(lambda lam: tape.sum(draws.poisson(SEED, lam, size=5) * lam), 3.0)


def test_bad_arguments_of_draws_raise_errors_that_name_them():
    with pytest.raises(TypeError, match=r"normal: rng: expected a seed or a numpy\.random\.Generator, got NoneType"):
        draws.normal(None)
    with pytest.raises(tape.DomainError, match=r"normal: scale: expected finite numbers of at least 0, got -1\.0"):
        draws.normal(SEED, 0.0, -1.0)
    with pytest.raises(tape.DomainError, match=r"gamma: shape: expected positive finite numbers, got 0\.0"):
        draws.gamma(SEED, 0.0)
    with pytest.raises(ValueError, match=r"normal: expected parameters that broadcast to size \(2, 2\), got shapes"):
        draws.normal(SEED, np.zeros(3), 1.0, size=(2, 2))
