"""Differential equations: `odeint` compared with closed forms, 50-digit solutions, and its two sensitivities."""

from __future__ import annotations

import mpmath
import numpy as np
import optree
import pytest
import scipy.linalg

from adbench import tape
from adbench.tape.lazy import integrate
from adbench.tape.ode import odeint, solver
from adbench.tape.ode.solver import METHODS
from tests.tape import truth

TIMES = np.array([0.5, 1.0, 2.0])
SENSITIVITIES = ("forward", "adjoint")
WEIGHTS = np.random.default_rng(1).normal(size=(3, 2))


def _logistic(t, y, p):
    return p["rate"] * y * (1.0 - y / p["capacity"])


def _logistic_solution(y0, t0, ts, p):
    decay = tape.exp(-p["rate"] * (ts - t0))
    return tape.stack([p["capacity"] / (1.0 + (p["capacity"] / y0 - 1.0) * decay[i]) for i in range(3)])


LOGISTIC = (np.array([0.5, 1.0]), 0.1, TIMES, {"rate": 0.8, "capacity": np.array([2.0, 3.0])})


def _solved(args, **options):
    return tape.sum(WEIGHTS * tape.odeint(_logistic, *args, rtol=1e-11, atol=1e-13, **options))


def _closed(args):
    return tape.sum(WEIGHTS * _logistic_solution(*args))


def _assert_same(found, expected, rtol):
    for a, b in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("method", METHODS)
def test_end_points_have_their_derivatives(method, sensitivity):
    def end(point):
        t0, t1 = point
        return tape.odeint(lambda t, y: tape.cos(1.5 * t), 0.3, t0, [t1], method=method, sensitivity=sensitivity)[0]

    value, (to_t0, to_t1) = tape.gradient(end, (0.2, 1.7))
    assert value == pytest.approx(0.3 + (np.sin(1.5 * 1.7) - np.sin(0.3)) / 1.5, abs=1e-6)
    assert to_t0 == pytest.approx(-np.cos(1.5 * 0.2), rel=1e-14)
    assert to_t1 == pytest.approx(np.cos(1.5 * 1.7), rel=1e-14)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
def test_all_gradients_of_the_logistic_equation_are_those_of_its_solution(sensitivity):
    _assert_same(
        tape.gradient(lambda a: _solved(a, sensitivity=sensitivity), LOGISTIC), tape.gradient(_closed, LOGISTIC), 1e-10
    )


def test_forward_mode_and_second_derivatives_are_those_of_the_solution():
    direction = optree.tree_map(lambda x: np.random.default_rng(3).normal(size=np.shape(x)), LOGISTIC)
    _assert_same(tape.jvp(_solved, LOGISTIC, direction), tape.jvp(_closed, LOGISTIC, direction), 1e-10)
    expected = tape.hvp(_closed, LOGISTIC, direction)
    for sensitivity in SENSITIVITIES:
        found = tape.hvp(lambda a, s=sensitivity: _solved(a, sensitivity=s), LOGISTIC, direction)
        _assert_same(found, expected, 1e-9)


def test_reverse_over_reverse_gives_the_hessian_and_a_third_derivative():
    def of_rate(solution):
        return lambda rate: solution((*LOGISTIC[:3], {"rate": rate, "capacity": LOGISTIC[3]["capacity"]}))

    _assert_same(tape.hessian(of_rate(_solved), 0.8), tape.hessian(of_rate(_closed), 0.8), 1e-9)

    def of_start(solution):
        return lambda t0: solution((LOGISTIC[0], t0, *LOGISTIC[2:]))

    def third(f):
        return tape.jvp(lambda x: tape.jvp(lambda y: tape.jvp(f, y, 1.0)[1], x, 1.0)[1], 0.1, 1.0)[1]

    for argument in (of_rate, of_start):
        assert third(argument(_solved)) == pytest.approx(third(argument(_closed)), rel=1e-8)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
def test_a_linear_system_is_the_matrix_exponential_forwards_and_backwards_in_time(sensitivity):
    a = np.array([[-0.5, 1.0, 0.0], [-1.0, -0.2, 0.3], [0.0, 0.1, -1.0]])
    y0 = np.array([[1.0, 0.0], [0.5, -1.0], [0.2, 0.3]])
    weights = np.random.default_rng(2).normal(size=(4, 3, 2))
    times = np.array([0.7, 2.0, 0.7, 1.5])  # unordered, with one duplicate
    for direction in (1.0, -1.0):
        ts = direction * times

        def solved(point, ts=ts):
            states = tape.odeint(
                lambda t, y, m: m @ y, point[1], 0.0, ts, point[0], rtol=1e-11, atol=1e-13, sensitivity=sensitivity
            )
            return tape.sum(weights * states)

        def exact(point, ts=ts):
            return tape.sum(weights * tape.stack([tape.expm(point[0] * t) @ point[1] for t in ts]))

        assert tape.odeint(lambda t, y: a @ y, y0, 0.0, ts).shape == (4, 3, 2)
        np.testing.assert_allclose(
            tape.odeint(lambda t, y: a @ y, y0, 0.0, ts)[1], scipy.linalg.expm(a * ts[1]) @ y0, rtol=1e-6
        )
        _assert_same(tape.gradient(solved, (a, y0)), tape.gradient(exact, (a, y0)), 1e-9)


def _pendulum(t, y, damping):
    return [y[1], -tape.sin(y[0]) - damping * y[1]]


def test_a_nonlinear_equation_agrees_with_fifty_digits():
    """The truth is mpmath's Taylor solver, differentiated by differences in 50-digit arithmetic."""

    def exact(p):
        def field(t, y):
            return [y[1], -mpmath.sin(y[0]) - p[2] * y[1]]

        with mpmath.workdps(30):
            return np.array(mpmath.odefun(field, 0, [p[0], p[1]])(mpmath.mpf(1)), dtype=object)

    start = np.array([1.2, -0.3, 0.4])
    with mpmath.workdps(30):
        steps = [mpmath.mpf(10) ** -8 * (np.arange(3) == i) for i in range(3)]
        lifted = np.array([mpmath.mpf(v) for v in start], dtype=object)
        columns = [(exact(lifted + h) - exact(lifted - h)) / (2 * mpmath.mpf(10) ** -8) for h in steps]
        expected = np.array(columns, dtype=float).T
    for sensitivity in SENSITIVITIES:
        _, jacobian = tape.jacobian(
            lambda p, s=sensitivity: tape.odeint(
                _pendulum, p[:2], 0.0, [1.0], p[2], rtol=1e-12, atol=1e-14, sensitivity=s
            )[0],
            start,
            "reverse",
        )
        np.testing.assert_allclose(jacobian, expected, rtol=1e-10)


def _robertson(t, y, k):
    slow, fast, square = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] * y[1]
    return [-slow + fast, slow - fast - square, square]


def test_stiff_methods_and_both_sensitivities_agree_on_robertsons_problem():
    rates = np.array([0.04, 1e4, 3e7])

    def last(k, **options):
        return tape.odeint(_robertson, [1.0, 0.0, 0.0], 0.0, [0.4, 40.0], k, atol=1e-12, **options)[1, 0]

    scaled = [
        tape.gradient(lambda k, m=method, s=sensitivity: last(k, method=m, sensitivity=s), rates)[1] * rates
        for method, sensitivity in [("bdf", "forward"), ("bdf", "adjoint"), ("lsoda", "adjoint"), ("radau", "adjoint")]
    ]
    for other in scaled[1:]:
        np.testing.assert_allclose(other, scaled[0], rtol=1e-5)


def test_stiff_methods_get_the_jacobian_of_f_from_the_engine(monkeypatch):
    seen = []

    class Spy(integrate.BDF):
        def __init__(self, *args, jac, **options):
            seen.append(jac(0.0, np.array([0.5, 0.2])))
            super().__init__(*args, jac=jac, **options)

    monkeypatch.setattr(integrate, "BDF", Spy)
    tape.odeint(_pendulum, [0.5, 0.2], 0.0, [0.1], 0.4, method="bdf")
    np.testing.assert_allclose(seen[0], [[0.0, 1.0], [-np.cos(0.5), -0.4]], rtol=1e-15)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
def test_every_subset_of_arguments_gives_the_same_derivatives(sensitivity):
    full = tape.gradient(lambda a: _solved(a, sensitivity=sensitivity), LOGISTIC)[1]
    for k in range(4):
        part = tape.gradient(
            lambda x, k=k: _solved((*LOGISTIC[:k], x, *LOGISTIC[k + 1 :]), sensitivity=sensitivity), LOGISTIC[k]
        )[1]
        _assert_same(part, full[k], 1e-9)


def test_the_solution_is_one_node_and_constants_make_no_edge():
    with tape.nested() as recording:
        rate = tape.Var(0.8)
        tape.odeint(lambda t, y, r: r * y, np.ones(2), 0.0, TIMES, rate)
        odes = [record for record in recording if record[0].name == "odeint"]
        assert len(odes) == 1
        assert recording.edges() == 1 + 1  # the solution and its reshape


@pytest.mark.parametrize(("sensitivity", "solutions"), [("forward", 2), ("adjoint", 2 + 6)])
def test_rows_of_a_jacobian_share_one_solution(monkeypatch, sensitivity, solutions):
    calls = []
    for module in (odeint, solver):
        solve = module.integrate_to
        monkeypatch.setattr(module, "integrate_to", lambda *args, solve=solve: calls.append(1) or solve(*args))
    tape.jacobian(
        lambda y: tape.odeint(_pendulum, y, 0.0, [1.0] * 3, 0.4, sensitivity=sensitivity), [0.5, 0.2], "reverse"
    )
    assert len(calls) == solutions  # the states, then all sensitivities at once, or y(t) and one adjoint per row


def test_empty_times_and_the_start_are_valid_times():
    assert tape.odeint(_pendulum, [0.5, 0.2], 0.0, np.zeros(0), 0.4).shape == (0, 2)
    y0 = np.array([0.5, 0.2])
    for sensitivity in SENSITIVITIES:
        value, jacobian = tape.jacobian(
            lambda y, s=sensitivity: tape.odeint(_pendulum, y, 1.0, [1.0], 0.4, sensitivity=s)[0], y0, "reverse"
        )
        np.testing.assert_array_equal(value, y0)
        np.testing.assert_array_equal(jacobian, np.eye(2))


def test_rk4_has_order_four_and_can_be_differentiated():
    def end(p, steps):
        return tape.rk4(lambda t, y, rate: rate * y + t, p[0], p[1], p[2], steps, p[3])

    def exact(p):  # y' = r y + t
        y0, t0, t1, r = p
        return (y0 + t0 / r + 1 / r**2) * tape.exp(r * (t1 - t0)) - t1 / r - 1 / r**2

    point = (1.0, 0.2, 1.0, -0.7)
    expected = tape.gradient(exact, point)
    _assert_same(tape.gradient(lambda p: end(p, 200), point), expected, 1e-9)
    errors = [abs(end(point, n) - expected[0]) for n in (10, 20)]
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.1)
    recorded = truth.jacobian(_two_steps, np.array(point))
    np.testing.assert_allclose(tape.gradient(lambda p: end(p, 2), np.array(point))[1], recorded, rtol=1e-14)


def _two_steps(p):
    """Two steps of the same method, on 50-digit numbers."""
    y, t0, t1, r = p
    h = (t1 - t0) / 2
    for i in range(2):
        t = t0 + i * h
        k1 = r * y + t
        k2 = r * (y + h / 2 * k1) + t + h / 2
        k3 = r * (y + h / 2 * k2) + t + h / 2
        k4 = r * (y + h * k3) + t + h
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


FAILURES = {
    "a solution that grows without bound": (
        lambda: tape.odeint(lambda t, y: y * y, 1.0, 0.0, [2.0]),
        r"method 'dop853' reached t = 1\.0000.* on the way to 2 and failed: Required step size",
    ),
    "a stiff problem given to an explicit method": (
        lambda: tape.odeint(_robertson, [1.0, 0, 0], 0.0, [4e3], [0.04, 1e4, 3e7], method="rk45", max_steps=200),
        r"method 'rk45' reached t = .* failed: no end after 200 steps .*use 'bdf', 'radau' or 'lsoda'",
    ),
    "f not finite at the start": (
        lambda: tape.odeint(lambda t, y: tape.log(y - 2.0), 1.0, 0.0, [2.0], method="bdf"),
        r"method 'bdf' reached t = 0 on the way to 2 and failed: f is not finite at the start",
    ),
    "f not finite on the way": (
        lambda: tape.odeint(lambda t, y: -1.0 / tape.sqrt(y), 1.0, 0.0, [2.0], method="rk45"),
        r"method 'rk45' reached t = 0\.66.* failed",
    ),
}


@pytest.mark.parametrize(("call", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failing_solver_reports_where_and_why(call, message):
    with pytest.raises(tape.OdeError, match=message):
        call()


BAD = {
    "method": (
        lambda: tape.odeint(_pendulum, [0.5, 0.2], 0.0, [1.0], 0.4, method="euler"),
        "argument method: .*'euler'",
    ),
    "sensitivity": (
        lambda: tape.odeint(_pendulum, [0.5, 0.2], 0.0, [1.0], 0.4, sensitivity="both"),
        "argument sensitivity: expected 'forward' or 'adjoint', got 'both'",
    ),
    "t0": (lambda: tape.odeint(_pendulum, [0.5, 0.2], [0.0], [1.0], 0.4), r"argument t0: .* got shape \(1,\)"),
    "ts": (lambda: tape.odeint(_pendulum, [0.5, 0.2], 0.0, 1.0, 0.4), r"argument ts: .* got shape \(\)"),
    "times on both sides": (lambda: tape.odeint(_pendulum, [0.5, 0.2], 0.0, [-1.0, 1.0], 0.4), "one side of t0"),
    "infinite time": (lambda: tape.odeint(_pendulum, [0.5, 0.2], 0.0, [np.inf], 0.4), "expected finite times"),
    "shape of f": (lambda: tape.odeint(lambda t, y: y[:1], [0.5, 0.2], 0.0, [1.0]), r"expected \(2,\), got \(1,\)"),
    "y0": (lambda: tape.odeint(_pendulum, None, 0.0, [1.0], 0.4), "odeint: argument y0"),
    "a parameter": (lambda: tape.odeint(_pendulum, [0.5, 0.2], 0.0, [1.0], "0.4"), "odeint: parameters: .* str"),
    "steps": (lambda: tape.rk4(_pendulum, [0.5, 0.2], 0.0, 1.0, 0, 0.4), "rk4: argument steps: .* got 0"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_raises_an_error_that_names_it(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_variable_from_outside_raises_an_error():
    rate = tape.Var(0.5)
    with pytest.raises(tape.TapeError, match="f uses a variable from outside that is being differentiated"):
        tape.odeint(lambda t, y: rate * y, 1.0, 0.0, [1.0])
