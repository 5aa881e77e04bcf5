"""pqR's constructs: gradients attached to values, tracked, and reverse mode on request."""

from __future__ import annotations

import dataclasses
import math
import threading

import numpy as np
import pytest
from scipy import optimize

from adbench import tape
from adbench.tape.pqr import back_gradient, gradient_of, track_gradient, with_gradient
from tests.tape import truth
from tests.tape.truth import mp

X = np.array([0.3, -1.2, 2.0])
W = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 4.0]])
MODES = ["reverse", "forward", "hybrid"]

every_mode = pytest.mark.parametrize("mode", MODES)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)


# with_gradient


@every_mode
def test_ab_plus_a_squared_at_3_and_8_has_gradients_14_and_3(mode):
    r = with_gradient(lambda a, b: a * b + a**2, mode, a=3, b=8)
    assert r == 33.0
    assert r.gradient == {"a": 14.0, "b": 3.0}


@every_mode
def test_sin_3a_at_1_2_prints_as_in_the_slides(mode):
    r = with_gradient(lambda a: np.sin(3 * a), mode, a=1.2)
    assert f"{r:.7f} {r.gradient['a']:.6f}" == "-0.4425204 -2.690275"


@every_mode
def test_the_form_of_a_gradient_follows_value_and_input(mode):
    def form(f, **inputs):
        return tape.shape(with_gradient(f, mode, **inputs).gradient["x"])

    assert form(lambda x: x * x, x=2.0) == ()
    assert form(lambda x: tape.sum(x * x), x=X) == (3,)
    assert form(lambda x: W @ x, x=X) == (2, 3)
    assert form(lambda x: x * X, x=2.0) == (3,)
    assert form(lambda x: tape.sum(x * x), x=W) == (2, 3)
    assert form(lambda x: x @ X, x=W) == (2, 2, 3)
    assert form(lambda x: x[0] * x[1]["k"], x=[2.0, {"k": X}]) == [(3,), {"k": (3, 3)}]
    assert form(lambda x: [x * x, tape.sum(x)], x=X) == [(3, 3), (3,)]
    assert form(lambda x: {"u": x[0], "v": (x[1], 1.0)}, x=[2.0, X]) == [
        {"u": (), "v": ((3,), ())},
        {"u": (3,), "v": ((3, 3), (3,))},
    ]


@every_mode
def test_jacobians_agree_with_fifty_digit_differences(mode):
    r = with_gradient(lambda x: tape.exp(W @ x) * x[0], mode, x=X)
    close(r.gradient["x"], truth.jacobian(lambda x: mp.exp(W @ x) * x[0], X))


@every_mode
def test_nested_lists_hold_the_right_derivatives_with_the_input_outside(mode):
    r = with_gradient(lambda x: [x[0] * x[1], x[1] ** 2], mode, x=[2.0, 5.0])
    assert r == [10.0, 25.0]
    assert r.gradient["x"] == [[5.0, 0.0], [2.0, 10.0]]


@every_mode
def test_a_result_that_is_constant_has_a_gradient_of_zeros(mode):
    r = with_gradient(lambda x: [1.0, np.ones(2)], mode, x=X)
    assert [g.tolist() for g in r.gradient["x"]] == [[0.0] * 3, [[0.0] * 3] * 2]


def test_the_result_behaves_like_the_value():
    number = with_gradient(lambda a: a * a, a=3.0)
    array = with_gradient(lambda a: a * X, a=3.0)
    assert (number + 1, math.sqrt(number), np.sin(number)) == (10.0, 3.0, np.sin(9.0))
    assert isinstance(array, np.ndarray)
    assert type(array + 1) is np.ndarray
    assert (array @ X).item() == pytest.approx(3.0 * X @ X)
    assert not hasattr(array[:2], "gradient")
    assert with_gradient(lambda a: (a, a), a=3.0) == (3.0, 3.0)
    assert with_gradient(lambda a: {"k": a}, a=3.0) == {"k": 3.0}


def test_attached_values_can_be_computed_with_inside_other_derivatives():
    attached = with_gradient(lambda a: a * X, a=3.0)
    close(tape.gradient(lambda s: tape.sum(s * attached), 2.0)[1], 3.0 * X.sum())
    inner = lambda a: with_gradient(lambda b: [b * b, b], b=a)  # noqa: E731  # a formula
    assert tape.jvp(lambda a: tape.tree_map(lambda v: v, inner(a))[0], 3.0, 1.0) == (9.0, 6.0)


@every_mode
@pytest.mark.parametrize("inner", MODES)
def test_an_outer_derivative_sees_the_attached_value_and_its_gradient(mode, inner):
    r = with_gradient(lambda a: with_gradient(lambda b: a * b**3, inner, b=a), mode, a=7.0)
    assert (r, r.gradient["a"]) == (7.0**4, 4 * 7.0**3)
    r = with_gradient(lambda a: with_gradient(lambda b: a * b**3, inner, b=a).gradient["b"], mode, a=7.0)
    assert (r, r.gradient["a"]) == (3 * 7.0**3, 9 * 7.0**2)


def test_attaching_leaves_the_variable_of_an_outer_derivative_alone():
    def f(a):
        same = with_gradient(lambda b: b, b=a)
        assert not hasattr(a, "gradient")
        return same * a

    assert tape.gradient(f, 3.0) == (9.0, 6.0)


def test_perturbations_are_not_confused():
    f = lambda x: x * with_gradient(lambda y: x + y, y=1.0).gradient["y"]  # noqa: E731  # a formula
    assert with_gradient(f, x=1.0).gradient["x"] == 1.0


# track_gradient


@every_mode
def test_the_gradient_of_a_squared_at_7_is_14_without_attaching(mode):
    with track_gradient(mode, a=7.0) as (a,):
        r = a**2
        assert (r.val, gradient_of(r)) == (49.0, 14.0)
        assert gradient_of(3.0) == 0.0


@every_mode
def test_several_variables_come_by_name_and_give_a_dict(mode):
    with track_gradient(mode, a=3.0, b=8.0) as v:
        assert gradient_of(v.a * v.b + v.a**2) == {"a": 14.0, "b": 3.0}


@every_mode
@pytest.mark.parametrize("inner", MODES)
def test_the_second_derivative_of_a_cubed_at_7_is_42_by_nesting(mode, inner):
    with track_gradient(mode, a=7.0) as (a,):
        with track_gradient(inner, a=a) as (again,):
            slope = gradient_of(again**3)
        assert gradient_of(slope) == 42.0


@every_mode
def test_third_derivatives_by_nesting_three_times(mode):
    with track_gradient(mode, a=0.7) as (a,):
        with track_gradient(mode, b=a) as (b,):
            with track_gradient(mode, c=b) as (c,):
                first = gradient_of(tape.sin(c))
            second = gradient_of(first)
        close(gradient_of(second), -math.cos(0.7))


def test_gradient_of_works_in_functions_called_inside_and_inside_with_gradient():
    def helper(x):
        return gradient_of(x * x)

    assert with_gradient(lambda x: [x, helper(x)], x=5.0) == [5.0, 10.0]


@every_mode
def test_gradients_can_be_read_between_operations_and_more_than_once(mode):
    with track_gradient(mode, x=X) as (x,):
        y = tape.sin(x)
        close(gradient_of(y), np.diag(np.cos(X)))
        z = tape.sum(y * y)
        close(gradient_of(z), 2 * np.sin(X) * np.cos(X))
        close(gradient_of(y), np.diag(np.cos(X)))


def test_an_exception_inside_closes_every_construct():
    with pytest.raises(ZeroDivisionError), track_gradient(a=1.0), track_gradient("forward", b=1.0):
        raise ZeroDivisionError
    with pytest.raises(tape.TapeError, match="gradient_of: no track_gradient or with_gradient block is open"):
        gradient_of(1.0)
    assert tape.gradient(tape.sin, 0.0) == (0.0, 1.0)


def test_two_threads_track_at_once():
    results = {}

    def work(a):
        for _ in range(50):
            with track_gradient("forward" if a % 2 else "reverse", a=float(a)) as (v,):
                results[a] = gradient_of(v**3)

    threads = [threading.Thread(target=work, args=(a,)) for a in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {a: 3.0 * a * a for a in range(4)}


# back_gradient


def seen(calls, p):
    calls.append(type(p).__name__)
    return p**2 + p**3 + p**4 + p**5


@every_mode
def test_reverse_inside_gives_the_gradient_of_the_slides_in_all_eleven_elements(mode):
    elements = np.linspace(0.0, 1.0, 11).tolist()
    calls = []

    def total(elements):
        p = 0.0
        for i, element in enumerate(elements, 1):
            p = p + i * element
        return back_gradient(lambda p: seen(calls, p), p)

    r = with_gradient(total, mode, elements=elements)
    p = float(np.arange(1, 12) @ elements)
    slope = 2 * p + 3 * p**2 + 4 * p**3 + 5 * p**4
    close(r, p**2 + p**3 + p**4 + p**5)
    close(r.gradient["elements"], slope * np.arange(1, 12))
    assert calls == ["Scalar"]  # one recording, by p only


@every_mode
def test_several_arguments_and_array_results_pass_through_reverse_inside(mode):
    def f(x):
        return back_gradient(lambda y, z: tape.sin(y) * z, x, x * x)

    close(with_gradient(f, mode, x=X).gradient["x"], truth.jacobian(lambda x: mp.sin(x) * x * x, X))
    close(
        tape.hessian(lambda x: tape.sum(f(x)), X)[2],
        tape.hessian(lambda x: tape.sum(tape.sin(x) * x * x), X)[2],
    )


def test_second_derivatives_pass_through_reverse_inside():
    f = lambda x: back_gradient(lambda y: tape.sum(tape.exp(y) * y[0]), x)  # noqa: E731  # a formula
    direction = np.array([1.0, 2.0, -1.0])
    expected = truth.second_derivative(lambda x: np.sum(mp.exp(x) * x[0]), X, direction)
    assert direction @ tape.hessian(f, X)[2] @ direction == pytest.approx(expected, rel=1e-14)
    assert direction @ tape.hvp(f, X, direction)[1] == pytest.approx(expected, rel=1e-14)


def test_reverse_inside_with_nothing_to_differentiate_is_the_function():
    assert back_gradient(lambda x, y: x * y, 2.0, 3.0) == 6.0


@every_mode
def test_a_variable_that_is_not_an_argument_of_the_inner_function_is_an_error(mode):
    with pytest.raises(tape.TapeError, match="back_gradient: the function uses a variable that is not among"):
        with_gradient(lambda a: back_gradient(lambda p: p * a, a * a), mode, a=2.0)


# Bad input


def test_errors_name_the_construct_and_what_it_was_given():
    with pytest.raises(ValueError, match="mode: expected one of reverse, forward, hybrid, got 'backward'"):
        with_gradient(tape.sin, "backward", x=1.0)
    with pytest.raises(TypeError, match=r"expected inputs by name, got none; write a=3\.0"):
        with_gradient(lambda: 1.0)
    with pytest.raises(tape.ComplexError, match="gradient with respect to z: expected real numbers, got 1j"):
        with_gradient(tape.sin, z=1j)
    with pytest.raises(TypeError, match=r"f should return a number, an array, a list.*got Point"):
        with_gradient(lambda x: Point(x), x=1.0)
    with track_gradient(a=1.0) as (a,), pytest.raises(tape.TapeError, match="belongs to a derivative inside"):
        tape.gradient(lambda x: gradient_of(x * a), 2.0)


@dataclasses.dataclass(slots=True)
class Point:
    x: float


# The projectile


def distance_travelled(vx, vy, dt=0.0001, g=9.8):
    """The slides' program, unchanged: derivatives pass through the loop, the assignments and the branch."""
    x = y = 0.0
    while True:
        last_x, last_y = x, y
        x = x + vx * dt
        y = y + vy * dt
        if y < 0:  # the point of impact, interpolated
            return (x * last_y - last_x * y) / (last_y - y)
        vy = vy - g * dt


def minus_distance(angle):
    r = with_gradient(lambda a: -distance_travelled(tape.cos(a), tape.sin(a)), a=float(np.squeeze(angle)))
    return float(r), np.array([r.gradient["a"]])


def test_the_best_launch_angle_found_from_0_with_our_gradient_is_44_997_degrees():
    found = optimize.minimize(minus_distance, [0.0], jac=True, method="BFGS")
    assert f"{math.degrees(found.x.item()):.3f}" == "44.997"


def test_the_gradient_changes_sign_where_the_slides_stop_44_99701_degrees():
    # The distance has a kink there, at which the number of steps in the air changes: 44.997020 to more digits.
    angle = optimize.brentq(lambda d: minus_distance(math.radians(d))[1].item(), 44.99, 45.0, xtol=1e-10)
    assert angle == pytest.approx(44.99701, abs=1e-5)


@every_mode
def test_the_derivative_of_the_distance_agrees_with_fifty_digit_differences(mode):
    r = with_gradient(lambda a: distance_travelled(tape.cos(a), tape.sin(a), dt=0.01), mode, a=0.8)
    expected = truth.jacobian(lambda a: distance_travelled(mp.cos(a), mp.sin(a), truth.exact(0.01)), 0.8)
    assert r.gradient["a"] == pytest.approx(float(expected), rel=1e-13)
