"""Compound functions and their first and second derivatives keep their digits at any argument."""

from __future__ import annotations

import math

import mpmath as m
import numpy as np
import pytest
from scipy import special

from adbench import tape
from adbench.tape.rules import compound
from adbench.tape.rules import special as ours
from tests.tape.limits import close, curvature, slope, value


def _lbeta(a, b):
    return m.loggamma(a) + m.loggamma(b) - m.loggamma(a + b)


def _phi(x):
    return m.erfc(-x / m.sqrt(2)) / 2


ONE = {
    "log1p_exp": (lambda x: m.log1p(m.exp(x)), [-700.0, -40.0, 0.0, 1.3, 40.0, 800.0]),
    "log1m": (lambda x: m.log1p(-x), [-1e300, -3.0, 1e-300, 1e-9, 0.5, 1 - 1e-12]),
    "log1m_exp": (lambda x: m.log(1 - m.exp(x)), [-700.0, -40.0, -1.0, -math.log(2), -0.1, -1e-9, -1e-150]),
    "inv_logit": (lambda x: 1 / (1 + m.exp(-x)), [-700.0, -40.0, 0.0, 2.0, 30.0]),
    "logit": (lambda p: m.log(p / (1 - p)), [1e-150, 1e-9, 0.3, 0.5 + 1e-9, 1 - 1e-12]),
    "log_inv_logit": (lambda x: -m.log1p(m.exp(-x)), [-800.0, -40.0, 0.0, 1.3, 40.0, 700.0]),
    "log1m_inv_logit": (lambda x: -m.log1p(m.exp(x)), [-700.0, -40.0, 0.0, 1.3, 40.0, 800.0]),
    "log1p_square": (lambda w: m.log(1 + w * w), [-1e200, -1e9, -0.7, 1e-9, 2.0, 1e155, 1e300]),
    "erfinv": (m.erfinv, [-0.999, -0.5, 1e-9, 0.3, 0.99999]),
    "Phi": (_phi, [-30.0, -5.0, 0.0, 1.5, 6.0]),
    "inv_Phi": (lambda p: m.sqrt(2) * m.erfinv(2 * p - 1), [1e-9, 0.01, 0.3, 0.5 + 1e-9, 0.99]),
    "std_normal_lcdf": (lambda x: m.log(_phi(x)), [-400.0, -40.0, -5.001, -4.999, -1.0, 0.0, 2.0, 7.0, 30.0]),
    "sinc": (lambda x: m.sin(m.pi * x) / (m.pi * x), [-2.5, 1e-9, 1e-3, 0.3, 1.25, 7.25]),
    "lgamma": (m.loggamma, [1e-150, 0.3, 2.5, 40.0, 1e10]),
    "digamma": (m.digamma, [1e-100, 0.3, 2.5, 40.0, 1e10]),
    "trigamma": (lambda x: m.psi(1, x), [1e-60, 0.3, 2.5, 40.0, 1e10]),
}
TWO = {
    "log_sum_exp": (lambda x, y: m.log(m.exp(x) + m.exp(y)), [(0.0, -40.0), (800.0, 801.0), (-1e3, -1e3), (1.0, 2.0)]),
    "log_diff_exp": (
        lambda x, y: m.log(m.exp(x) - m.exp(y)),
        [(1.0, -40.0), (800.0, 799.0), (1.0, 1.0 - 1e-9), (-900.0, -901.0)],
    ),
    "multiply_log": (lambda x, y: x * m.log(y), [(2.0, 3.0), (-1e-300, 1e-300), (1e300, 1e-7)]),
    "xlog1py": (lambda x, y: x * m.log1p(y), [(2.0, 3.0), (-2.0, 1e-20), (1e10, -0.9), (1.0, 1e-8), (1.0, -1e-8)]),
    "lbeta": (_lbeta, [(0.3, 0.2), (1e-150, 2.0), (1e10, 2.0), (1e5, 2.0), (20.0, 30.0), (12.0, 0.1), (1e5, 1e6)]),
    "digamma_rise": (
        lambda a, h: m.psi(0, a + h) - m.psi(0, a),
        [(0.3, 0.2), (3.0, 12.0), (9.0, 1e-3), (800.0, -798.0), (8.0, -7.75), (1e10, -1e-3), (3.0, -1e-9)],
    ),
}
OF_SCIPY = ("Phi", "std_normal_lcdf")  # scipy's values have 13 digits where Phi is about 1e-200
CASES = [(name, f, (x,)) for name, (f, points) in ONE.items() for x in points]
CASES += [(name, f, point) for name, (f, points) in TWO.items() for point in points]


def _function(name):
    module = compound if hasattr(compound, name) else ours if hasattr(ours, name) else tape
    return getattr(module, name)


def _digits(name, point):
    """Enough digits for 1 + e^-|x|, for 1 - Phi(x), and for the difference of tiny arguments."""
    largest, smallest = max(map(abs, point)), min((abs(x) for x in point if x), default=1.0)
    if name == "std_normal_lcdf" and point[0] > 0:
        return 90 + int(largest**2)
    if smallest < 1e-20:
        return 700
    return int(90 + 1.4 * largest) if largest < 2e3 else 90


@pytest.mark.parametrize(("name", "exact", "point"), CASES)
def test_value_and_derivatives_of_both_modes_agree_with_high_precision(name, exact, point):
    f, digits = _function(name), _digits(name, point)
    val, g = tape.gradient(lambda x: f(*x), point)
    assert close(val, value(exact, point, digits), 1e-13 if name in OF_SCIPY else 2e-15)
    for i in range(len(point)):
        truth = slope(exact, point, i, digits)
        assert close(g[i], truth, 2e-13 if name in OF_SCIPY else 3e-15), (i, g[i], truth)
        along = tape.jvp(lambda x: f(*x), point, tuple(float(i == j) for j in range(len(point))))[1]
        assert along == pytest.approx(g[i], rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("name", "exact", "point"), [c for c in CASES if min(map(abs, c[2])) > 1e-20 and max(map(abs, c[2])) < 50]
)
def test_second_derivatives_agree_with_high_precision(name, exact, point):
    f = _function(name)
    _, _, h = tape.hessian(lambda x: f(*x), point)
    digits = 2 * _digits(name, point)
    for i in range(len(point)):
        for j in range(len(point)):
            truth = curvature(exact, point, i, j, digits)
            assert close(h[i][j], truth, 1e-13, 1e-30), (i, j, h[i][j], truth)


def test_std_normal_lcdf_far_in_the_tail_follows_its_asymptotic_series():
    x = -1e8
    _, g, h = tape.hessian(tape.std_normal_lcdf, x)
    assert g == pytest.approx(-x - 1 / x, rel=1e-15)
    assert h == pytest.approx(-1 + 1 / x**2, rel=1e-15)


def test_third_derivatives_of_the_normal_log_distribution_function_are_right():
    for x in (-8.0, -3.0, 0.5, 2.0):
        third = tape.gradient(lambda t: tape.hessian(tape.std_normal_lcdf, t)[2], x)[1]
        with m.workdps(60):
            assert close(third, m.diff(lambda t: m.log(_phi(t)), x, 3), 1e-10)


def test_log1m_exp_keeps_its_second_derivative_where_e_to_x_vanishes():
    for x in (-700.0, -40.0, -1.0, -1e-9):
        _, _, h = tape.hessian(tape.log1m_exp, x)
        with m.workdps(700):
            e = m.exp(m.mpf(x))
            assert close(h, -e / (1 - e) ** 2, 1e-14)


def test_log_sum_exp_takes_arrays_axes_and_several_arguments():
    x = np.array([[0.3, -1.0, 2.0], [5.0, 5.0, -np.inf]])
    assert np.allclose(tape.log_sum_exp(x, axis=1), np.log(np.exp(x).sum(1)), rtol=1e-15)
    val, (a, b, c) = tape.gradient(lambda p: tape.log_sum_exp(*p), (1.0, 2.0, 3.0))
    weights = np.exp(np.array([1.0, 2.0, 3.0]) - val)
    assert np.allclose([a, b, c], weights, rtol=1e-14)
    _, (row, column) = tape.gradient(
        lambda p: tape.sum(tape.log_sum_exp(p[0], p[1], 0.0)), (np.zeros((3, 1)), np.zeros((1, 4)))
    )
    assert np.allclose(row, 4 / 3)
    assert np.allclose(column, 1.0)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_two_infinite_logs_have_gradient_zero():
    minus_infinity = -np.inf
    for f in (tape.log_sum_exp, tape.log_diff_exp):
        assert tape.gradient(lambda x, f=f: f(minus_infinity, minus_infinity + x), 1.0) == (minus_infinity, 0.0)
        assert tape.gradient(lambda x, f=f: f(minus_infinity + x, minus_infinity), 1.0) == (minus_infinity, 0.0)
    assert tape.gradient(lambda x: tape.log_diff_exp(x, minus_infinity), 1.0) == (1.0, 1.0)
    vector = tape.gradient(lambda x: tape.log_sum_exp(x), np.full(3, minus_infinity))
    assert vector[0] == minus_infinity
    assert np.array_equal(vector[1], np.zeros(3))


def test_zero_times_log_zero_and_its_slope_in_y_are_zero():
    val, (gx, gy) = tape.gradient(lambda p: tape.multiply_log(*p), (0.0, 0.0))
    assert (val, gx, gy) == (0.0, -np.inf, 0.0)
    assert tape.gradient(lambda y: tape.multiply_log(0.0, y), 0.0) == (0.0, 0.0)
    assert tape.gradient(lambda y: tape.xlog1py(0.0, y), -1.0) == (0.0, 0.0)


def test_the_order_of_polygamma_may_be_a_float() -> None:
    for order in range(3):
        assert tape.gradient(lambda x: tape.polygamma(x, float(order)), 1.3) == tape.gradient(  # noqa: B023 - called now
            lambda x: tape.polygamma(x, order),  # noqa: B023
            1.3,
        )


def test_sinc_has_its_even_derivatives_at_zero():
    assert tape.gradient(tape.sinc, 0.0) == (1.0, 0.0)
    assert tape.hessian(tape.sinc, 0.0)[2] == pytest.approx(-(math.pi**2) / 3, rel=1e-15)
    fourth = tape.hessian(lambda x: tape.hessian(tape.sinc, x)[2], 0.0)[2]
    assert fourth == pytest.approx(math.pi**4 / 5, rel=1e-13)


def test_log_softmax_is_exact_for_a_dominant_element():
    x = np.array([[50.0, 0.0, -3.0], [1.0, 1.0, -np.inf]])
    out = tape.log_softmax(x)
    assert out[0, 0] == pytest.approx(-(math.exp(-50) + math.exp(-53)), rel=1e-14)
    assert out[1].tolist() == [pytest.approx(-math.log(2)), pytest.approx(-math.log(2)), -np.inf]
    w = np.array([[0.3, -1.0, 2.0], [0.5, 0.25, 0.0]])
    _, back = tape.vjp(tape.log_softmax, x, w)
    p = np.exp(out)
    assert np.allclose(back, w - p * w.sum(1, keepdims=True), rtol=1e-14)
    v = np.array([[1.0, 2.0, -1.0], [0.5, 1.0, 0.0]])
    _, forward = tape.jvp(tape.log_softmax, x, v)
    assert np.vdot(w, forward) == pytest.approx(np.vdot(back, v), rel=1e-13)
    assert np.allclose(tape.softmax(x), p, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "point"),
    [("logit", 1.5), ("erfinv", -2.0), ("inv_Phi", 1.1), ("log1m", 1.5), ("log1m_exp", 0.5), ("log_diff_exp", (0, 1))],
)
def test_a_nan_outside_the_domain_comes_with_a_warning(name, point):
    arguments = point if isinstance(point, tuple) else (point,)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert math.isnan(_function(name)(*map(float, arguments)))


def test_log_sum_exp_refuses_an_axis_for_several_arguments():
    with pytest.raises(TypeError, match="log_sum_exp: axis and keepdims need a single array, got 2 arguments"):
        tape.log_sum_exp(1.0, 2.0, axis=0)
    with pytest.raises(TypeError, match="log_sum_exp: expected at least one argument, got none"):
        tape.log_sum_exp()


@pytest.mark.parametrize(
    "name", ["logit", "log_expit", "log_ndtr", "ndtr", "ndtri", "erfinv", "betaln", "xlogy", "xlog1py"]
)
def test_scipy_s_names_reach_the_same_functions(name):
    ufunc = getattr(special, name)
    point = (0.3, 0.6)[: ufunc.nin]
    val, g = tape.gradient(lambda p: ufunc(*p), point)
    assert val == pytest.approx(ufunc(*point), rel=1e-14)
    h = 1e-6
    for i in range(ufunc.nin):
        up, down = (ufunc(*(x + t * (i == j) for j, x in enumerate(point))) for t in (h, -h))
        assert g[i] == pytest.approx((up - down) / (2 * h), rel=1e-8)
    assert tape.gradient(np.sinc, 0.0) == (1.0, 0.0)
