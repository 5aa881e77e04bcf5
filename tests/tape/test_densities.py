"""Log densities: values equal scipy's, gradients equal high precision, constants get no partial, errors are clear."""

from __future__ import annotations

import itertools
import math

import mpmath as m
import numpy as np
import pytest
import scipy.stats as st

from adbench import tape
from adbench.tape.densities import continuous, discrete, multivariate
from tests.tape.limits import close, gradient_in, slope, value

lg = m.loggamma

rng = np.random.default_rng(1)
POSITIVE = rng.gamma(2.0, size=(4, 3)) + 0.1
REAL = rng.normal(size=(4, 3))
COUNT = rng.poisson(3.0, size=(4, 3))
SHARE = rng.uniform(0.05, 0.95, size=(4, 3))
A, B, C = REAL[:1], np.array([0.3, -1.2, 0.7]), np.array([0.5, 1.5, 2.5])
BATCHES = {
    "normal_lpdf": ((REAL, A, C), lambda y, mu, s: st.norm.logpdf(y, mu, s)),
    "lognormal_lpdf": ((POSITIVE, A, 0.7), lambda y, mu, s: st.lognorm.logpdf(y, s, scale=np.exp(mu))),
    "cauchy_lpdf": ((REAL, 0.4, C), lambda y, mu, s: st.cauchy.logpdf(y, mu, s)),
    "student_t_lpdf": ((REAL, 3.0, B, C), lambda y, n, mu, s: st.t.logpdf(y, n, mu, s)),
    "exponential_lpdf": ((POSITIVE, C), lambda y, b: st.expon.logpdf(y, scale=1 / b)),
    "gamma_lpdf": ((POSITIVE, C, 0.7), lambda y, a, b: st.gamma.logpdf(y, a, scale=1 / b)),
    "beta_lpdf": ((SHARE, C, POSITIVE[:1]), lambda y, a, b: st.beta.logpdf(y, a, b)),
    "bernoulli_lpmf": ((COUNT > 2, SHARE[0]), lambda y, p: st.bernoulli.logpmf(y, p)),
    "bernoulli_logit_lpmf": ((COUNT > 2, B), lambda y, a: st.bernoulli.logpmf(y, 1 / (1 + np.exp(-a)))),
    "binomial_lpmf": ((COUNT, 20, SHARE[0]), lambda n, N, p: st.binom.logpmf(n, N, p)),
    "poisson_lpmf": ((COUNT, C), lambda y, r: st.poisson.logpmf(y, r)),
    "poisson_log_lpmf": ((COUNT, B), lambda y, e: st.poisson.logpmf(y, np.exp(e))),
}


def _check_modes_and_order(f, point):
    """<w, Jv> = <J'w, v> for the function, and for its gradient; and the gradient along a line by differences."""
    directions = tuple(np.asarray(np.random.default_rng(3).normal(size=np.shape(x)))[()] for x in point)
    _, g = tape.gradient(f, point)
    along = tape.jvp(f, point, directions)[1]
    inner = sum(np.vdot(a, b) for a, b in zip(g, directions, strict=True))
    assert along == pytest.approx(inner, rel=1e-12)
    _, hv = tape.hvp(f, point, directions)
    h = 1e-5

    def shifted(t):
        return tape.gradient(f, tuple(x + t * d for x, d in zip(point, directions, strict=True)))

    (up, g_up), (down, g_down) = shifted(h), shifted(-h)
    assert (up - down) / (2 * h) == pytest.approx(inner, rel=1e-6, abs=1e-6)
    for exact, a, b in zip(hv, g_up, g_down, strict=True):
        assert np.allclose(exact, (np.asarray(a) - b) / (2 * h), rtol=1e-6, atol=1e-6)
    return g


@pytest.mark.parametrize("name", BATCHES)
def test_batches_broadcast_and_sum_as_scipy_does(name):
    point, reference = BATCHES[name]
    density = getattr(tape, name)
    truth = reference(*(np.asarray(x, float) for x in point)).sum()
    assert density(*point) == pytest.approx(truth, rel=1e-12)
    active = [i for i, partial in enumerate(density.partials) if partial is not None]
    (_, g), f = gradient_in(density, point, active)
    assert all(np.shape(part) == np.shape(point[i]) for part, i in zip(g, active, strict=True))
    _check_modes_and_order(f, tuple(point[i] for i in active))


@pytest.mark.parametrize("name", BATCHES)
def test_the_batch_is_the_sum_of_its_elements(name):
    point, _ = BATCHES[name]
    density = getattr(tape, name)
    rows = [np.broadcast_to(np.asarray(x, float), (4, 3)).ravel() for x in point]
    active = [i for i, partial in enumerate(density.partials) if partial is not None]
    (_, g), _ = gradient_in(density, point, active)
    single = [gradient_in(density, [float(x) for x in one], active)[0][1] for one in zip(*rows, strict=True)]
    for k, i in enumerate(active):
        spread = np.array([s[k] for s in single]).reshape(4, 3)
        shape = np.shape(point[i])
        summed = spread.sum() if not shape else spread.sum(0).reshape(shape) if spread.shape != shape else spread
        assert np.allclose(g[k], summed, rtol=1e-12)


SIGMA = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, 1.5]])
THETA = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
MATRIX = {
    "multi_normal_lpdf": ((REAL, B, SIGMA), lambda y, mu, s: st.multivariate_normal.logpdf(y - mu, cov=s).sum()),
    "multi_normal_cholesky_lpdf": (
        (REAL, B, np.linalg.cholesky(SIGMA)),
        lambda y, mu, f: st.multivariate_normal.logpdf(y - mu, cov=f @ f.T).sum(),
    ),
    "multi_normal_prec_lpdf": (
        (REAL, B, np.linalg.inv(SIGMA)),
        lambda y, mu, p: st.multivariate_normal.logpdf(y - mu, cov=np.linalg.inv(p)).sum(),
    ),
    "dirichlet_lpdf": ((THETA, C), lambda t, a: sum(st.dirichlet.logpdf(row, a) for row in t)),
}


def _keep_in_domain(name, i, direction):
    """Directions along which the argument stays in its domain."""
    if name == "dirichlet_lpdf" and i == 0:
        return direction - direction.mean(-1, keepdims=True)
    if np.ndim(direction) == 2 and direction.shape == (3, 3):
        return np.tril(direction) if "cholesky" in name else direction + direction.T
    return direction


@pytest.mark.parametrize("name", MATRIX)
def test_densities_of_vectors_and_matrices_agree_with_scipy_and_differences_in_every_argument(name):
    point, reference = MATRIX[name]
    density = getattr(tape, name)
    assert density(*point) == pytest.approx(reference(*point), rel=1e-12)
    _, g = tape.gradient(lambda p: density(*p), point)
    random = np.random.default_rng(5)
    for i, x in enumerate(point):
        assert np.shape(g[i]) == np.shape(x)
        d = _keep_in_domain(name, i, random.normal(size=np.shape(x)))
        h = 1e-4
        steps = [reference(*(v + k * h * d if j == i else v for j, v in enumerate(point))) for k in (-2, -1, 1, 2)]
        difference = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
        assert np.vdot(g[i], d) == pytest.approx(difference, rel=1e-8)
        unit = tuple(d[()] if j == i else np.zeros(np.shape(v))[()] for j, v in enumerate(point))
        assert tape.jvp(lambda p: density(*p), point, unit)[1] == pytest.approx(np.vdot(g[i], d), rel=1e-12)
        _, hv = tape.hvp(lambda p: density(*p), point, unit)
        up, down = (
            tape.gradient(lambda p: density(*p), tuple(v + t * u for v, u in zip(point, unit, strict=True)))[1]
            for t in (1e-5, -1e-5)
        )
        for exact, a, b in zip(hv, up, down, strict=True):
            assert np.allclose(exact, (np.asarray(a) - b) / 2e-5, rtol=1e-6, atol=1e-7)


def test_multivariate_normal_gradient_agrees_with_fifty_digits():
    y, mu = [1.0, -0.5], [0.25, 0.5]

    def exact(y1, y2, m1, m2, a, b, c):
        cov = m.matrix([[a, b], [b, c]])
        d = m.matrix([y1 - m1, y2 - m2])
        return -(d.T * m.inverse(cov) * d)[0] / 2 - m.log(m.det(cov)) / 2 - m.log(2 * m.pi)

    for scale in (1.0, 1e-150, 1e150):
        flat = (*y, *mu, 2.0 * scale, 0.5 * scale, 1.0 * scale)
        cov = np.array([[flat[4], flat[5]], [flat[5], flat[6]]])
        val, (gy, gmu, gcov) = tape.gradient(lambda p: tape.multi_normal_lpdf(*p), (np.array(y), np.array(mu), cov))
        assert close(val, value(exact, flat, 400), 1e-14)
        got = [*gy, *gmu, gcov[0, 0], gcov[0, 1] + gcov[1, 0], gcov[1, 1]]
        for i, part in enumerate(got):
            assert close(part, slope(exact, flat, i, 700), 1e-13), (scale, i)


def test_symmetric_matrices_have_symmetric_gradients_and_hessians():
    _, _, h = tape.hessian(lambda s: tape.multi_normal_lpdf(REAL, B, s), SIGMA)
    assert np.allclose(h, h.transpose(2, 3, 0, 1), rtol=1e-12)
    assert np.allclose(h, h.transpose(1, 0, 2, 3), rtol=1e-12)


def test_the_upper_triangle_of_a_cholesky_factor_is_not_read():
    factor = np.linalg.cholesky(SIGMA)
    messy = factor + np.triu(np.full((3, 3), 7.0), 1)
    val, g = tape.gradient(lambda f: tape.multi_normal_cholesky_lpdf(REAL, B, f), messy)
    assert val == pytest.approx(tape.multi_normal_cholesky_lpdf(REAL, B, factor), rel=1e-14)
    assert np.array_equal(np.triu(g, 1), np.zeros((3, 3)))


def test_categories_agree_with_the_table_of_probabilities():
    y = np.array([0, 2, 2, 1])
    theta = np.array([0.2, 0.3, 0.5])
    val, g = tape.gradient(lambda t: tape.categorical_lpmf(y, t), theta)
    assert val == pytest.approx(np.log(theta[y]).sum(), rel=1e-15)
    assert np.allclose(g, np.array([1, 1, 2]) / theta, rtol=1e-15)
    rows = np.array([[0.2, 0.8], [1e-300, 1.0]])
    val, g = tape.gradient(lambda t: tape.categorical_lpmf([1, 0], t), rows)
    assert val == pytest.approx(math.log(0.8) + math.log(1e-300), rel=1e-15)
    assert np.allclose(g, [[0.0, 1.25], [1e300, 0.0]], rtol=1e-15)


def test_categories_by_logits_keep_their_digits_at_probabilities_near_one():
    y, beta = np.array([0, 2, 2, 1]), np.array([0.3, -1.0, 2.0])
    p = np.exp(beta) / np.exp(beta).sum()
    val, g = tape.gradient(lambda b: tape.categorical_logit_lpmf(y, b), beta)
    assert val == pytest.approx(np.log(p[y]).sum(), rel=1e-14)
    assert np.allclose(g, np.array([1, 1, 2]) - 4 * p, rtol=1e-13)
    _, g = tape.gradient(lambda b: tape.categorical_logit_lpmf(0, b), np.array([50.0, 0.0]))
    assert np.allclose(g, [math.exp(-50), -math.exp(-50)], rtol=1e-14, atol=0)
    _check_modes_and_order(lambda b: tape.categorical_logit_lpmf([0, 1], b[0]), (REAL[:2],))


def test_dirichlet_keeps_its_digits_at_large_concentrations():
    theta, alpha = (0.25, 0.5, 0.25), (1e10, 2e10, 3.0)

    def exact(*a):
        return lg(m.fsum(a)) - sum(map(lg, a)) + sum((x - 1) * m.log(m.mpf(t)) for x, t in zip(a, theta, strict=True))

    val, g = tape.gradient(lambda a: tape.dirichlet_lpdf(np.array(theta), a), np.array(alpha))
    assert close(val, value(exact, alpha), 1e-14)
    assert all(close(g[i], slope(exact, alpha, i), 1e-13) for i in range(3))


EVERY = {name: point for name, (point, _) in (BATCHES | MATRIX).items()} | {
    "categorical_lpmf": (np.array([0, 2]), THETA),
    "categorical_logit_lpmf": (np.array([0, 2]), REAL[0]),
}


@pytest.mark.parametrize("name", EVERY)
def test_partials_are_computed_for_active_arguments_only(name, monkeypatch):
    density, point = getattr(tape, name), EVERY[name]
    calls = []

    def counted(i, partial):
        return lambda *args: calls.append(i) or partial(*args)

    partials = [None if p is None else counted(i, p) for i, p in enumerate(density.partials)]
    monkeypatch.setattr(density, "partials", partials)
    possible = [i for i, p in enumerate(partials) if p is not None]
    for size in range(len(possible) + 1):
        for active in itertools.combinations(possible, size):
            calls.clear()
            with tape.nested() as recording:
                args = [tape.Var(x) if i in active else x for i, x in enumerate(point)]
                out = density(*args)
                if active:
                    assert recording.edges() == len(active)
                    assert sum(record[2] != () for record in recording) == 1, "one node"
                    out.grad()
            assert calls == list(active)


def test_a_normal_density_of_constant_data_computes_no_array_partial(monkeypatch):
    monkeypatch.setattr(tape.normal_lpdf, "partials", None)
    val, (mu, sigma) = tape.gradient(
        lambda p: continuous._normal_summary(*p, **continuous._statistics(REAL)), (0.1, 2.0)
    )
    z = (REAL - 0.1) / 2.0
    assert val == pytest.approx(st.norm.logpdf(REAL, 0.1, 2.0).sum(), rel=1e-14)
    assert mu == pytest.approx((z / 2.0).sum(), rel=1e-13)
    assert sigma == pytest.approx(((z * z - 1) / 2.0).sum(), rel=1e-13)


def test_the_summary_of_data_keeps_its_digits_far_from_zero():
    y = 1e8 + np.array([0.25, -0.5, 1.0, 0.125])
    val, (mu, sigma) = tape.gradient(lambda p: tape.normal_lpdf(y, *p), (1e8, 2.0))
    d = y - 1e8
    assert val == pytest.approx(st.norm.logpdf(d, 0.0, 2.0).sum(), rel=1e-15)
    assert mu == pytest.approx(d.sum() / 4.0, rel=1e-15)
    assert sigma == pytest.approx(((d / 2) ** 2 - 1).sum() / 2, rel=1e-15)


def test_data_changed_after_the_call_do_not_change_the_gradient():
    for name in ("normal_lpdf", "student_t_lpdf"):
        y = REAL.copy()
        sigma = tape.Var(1.5)
        args = (0.2, sigma) if name == "normal_lpdf" else (3.0, 0.2, sigma)
        out = getattr(tape, name)(y, *args)
        y[:] = 100.0
        late = out.grad(sigma)
        fresh = tape.Var(1.5)
        assert late == getattr(tape, name)(REAL, *args[:-1], fresh).grad(fresh)


def test_densities_add_up_inside_a_larger_gradient():
    y = REAL[:, 0]

    def posterior(p):
        return 2.0 * tape.normal_lpdf(y, p["mu"], tape.exp(p["ls"])) + tape.normal_lpdf(p["mu"], 0.0, 10.0)

    val, g = tape.gradient(posterior, {"mu": 0.3, "ls": 0.2})
    s = math.exp(0.2)
    z = (y - 0.3) / s
    assert val == pytest.approx(2 * st.norm.logpdf(y, 0.3, s).sum() + st.norm.logpdf(0.3, 0, 10))
    assert g["mu"] == pytest.approx(2 * (z / s).sum() - 0.003)
    assert g["ls"] == pytest.approx(2 * (z * z - 1).sum())


def test_every_density_of_the_modules_is_public():
    for module in (continuous, discrete, multivariate):
        for name, item in vars(module).items():
            if isinstance(item, tape.Density):
                assert getattr(tape, name) is item
                assert item.name == name
                assert name in EVERY


@pytest.mark.parametrize("name", EVERY)
def test_a_multiple_of_a_density_has_the_multiple_of_its_gradient(name):
    density, point = getattr(tape, name), EVERY[name]
    active = [i for i, partial in enumerate(density.partials) if partial is not None]
    (val, g), f = gradient_in(density, point, active)
    thrice, three_g = tape.gradient(lambda some: 3.0 * f(some), tuple(point[i] for i in active))
    assert thrice == 3.0 * val
    assert all(np.allclose(a, 3.0 * b, rtol=1e-15) for a, b in zip(three_g, g, strict=True))
