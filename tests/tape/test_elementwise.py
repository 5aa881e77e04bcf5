"""Every elementwise rule, in reverse, forward and second order, compared with 50-digit differences."""

import operator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adbench import tape

from . import truth

ANY, POSITIVE, UNIT, ABOVE_ONE = (-3.0, 3.0), (0.05, 5.0), (-0.95, 0.95), (1.05, 6.0)

UNARY = {
    **dict.fromkeys(
        [
            "sin",
            "cos",
            "tanh",
            "sinh",
            "cosh",
            "exp",
            "exp2",
            "expm1",
            "arctan",
            "arcsinh",
            "negative",
            "positive",
            "square",
        ],
        ANY,
    ),
    **dict.fromkeys(["absolute", "erf", "erfc", "expit", "degrees", "radians"], ANY),
    **dict.fromkeys(["log", "log2", "log10", "log1p", "sqrt", "cbrt", "reciprocal", "gammaln", "digamma"], POSITIVE),
    **dict.fromkeys(["arcsin", "arccos", "arctanh", "tan"], UNIT),
    "arccosh": ABOVE_ONE,
}
PIECEWISE_CONSTANT = ["sign", "floor", "ceil", "trunc", "rint"]
BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply", "hypot", "arctan2", "maximum", "minimum", "logaddexp"], (ANY, ANY)),
    "divide": (ANY, POSITIVE),
    "remainder": (ANY, POSITIVE),
    "power": (POSITIVE, ANY),
}
NEAR = {"rtol": 3e-14, "atol": 1e-15}


def inside(interval):
    return st.floats(*interval, allow_subnormal=False).filter(lambda x: abs(x) > 1e-3)


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_function_of_one_argument_has_the_right_derivatives_in_both_modes_and_to_second_order(name, data):
    x = data.draw(inside(UNARY[name]))
    f, exact = getattr(tape, name), getattr(truth.mp, name)
    slope = truth.jacobian(exact, x)
    np.testing.assert_allclose(tape.gradient(f, x)[1], slope, **NEAR)
    np.testing.assert_allclose(tape.jvp(f, x, 1.0)[1], slope, **NEAR)
    curvature = truth.second_derivative(exact, x, 1.0)
    near = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(tape.hessian(f, x)[2], curvature, **near)
    np.testing.assert_allclose(tape.hvp(f, x, 1.0)[1], curvature, **near)
    xs = np.array([x, x])
    np.testing.assert_allclose(tape.gradient(lambda v: tape.sum(f(v)), xs)[1], [slope, slope], **NEAR)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_function_of_two_arguments_has_the_right_derivatives_for_every_choice_of_active_ones(name, data):
    x, y = (data.draw(inside(interval)) for interval in BINARY[name])
    assume(abs(x - y) > 1e-3 and abs(np.sin(np.pi * x / y)) > 1e-3)  # away from the kinks of maximum and remainder
    f, exact = getattr(tape, name), getattr(truth.mp, name)
    slopes = truth.jacobian(lambda v: exact(v[0], v[1]), [x, y])
    near = {"rtol": 1e-13, "atol": 1e-14}
    np.testing.assert_allclose(tape.gradient(lambda v: f(*v), (x, y))[1], slopes, **near)
    np.testing.assert_allclose(tape.gradient(lambda v: f(v, y), x)[1], slopes[0], **near)
    np.testing.assert_allclose(tape.gradient(lambda v: f(x, v), y)[1], slopes[1], **near)
    np.testing.assert_allclose(tape.jvp(lambda v: f(v, y), x, 1.0)[1], slopes[0], **near)
    np.testing.assert_allclose(tape.jvp(lambda v: f(x, v), y, 1.0)[1], slopes[1], **near)
    direction = np.array([0.75, -1.25])
    curvature = truth.second_derivative(lambda v: exact(v[0], v[1]), [x, y], direction)
    hv = tape.hvp(lambda v: f(v[0], v[1]), np.array([x, y]), direction)[1]
    np.testing.assert_allclose(direction @ hv, curvature, rtol=1e-10, atol=1e-11)
    h = tape.hessian(lambda v: f(v[0], v[1]), np.array([x, y]))[2]
    np.testing.assert_allclose(h @ direction, hv, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PIECEWISE_CONSTANT)
def test_a_piecewise_constant_function_has_derivative_zero_and_stays_on_the_tape(name):
    x = np.array([-1.7, 0.3, 2.6])
    f = getattr(tape, name)
    assert isinstance(f(tape.Var(x)), tape.Var)
    np.testing.assert_array_equal(tape.gradient(lambda v: tape.sum(f(v) * v), x)[1], f(x))
    np.testing.assert_array_equal(tape.jvp(f, x, np.ones(3))[1], np.zeros(3))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "hypot", "maximum", "where"])
@pytest.mark.parametrize(
    ("left", "right"), [((3, 1), (1, 4)), ((4,), (3, 4)), ((), (2, 3)), ((1,), (3,)), ((2, 1, 3), (5, 1))]
)
def test_broadcasting_is_undone_in_every_operator(name, left, right):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0.5, 2.0, left), rng.uniform(0.5, 2.0, right)
    x, y = (v if v.shape else float(v) for v in (x, y))
    if name == "where":
        c = rng.random(np.broadcast_shapes(left, right)) > 0.5
        f, exact = (lambda a, b: tape.where(c, a, b)), (lambda a, b: np.where(c, a, b))
    else:
        f, exact = getattr(tape, name), getattr(truth.mp, name)
    gx, gy = tape.gradient(lambda v: tape.sum(tape.sin(f(*v))), (x, y))[1]
    np.testing.assert_allclose(
        gx, truth.jacobian(lambda v: np.sum(truth.mp.sin(exact(v, truth.exact(y)))), x), rtol=1e-13
    )
    np.testing.assert_allclose(
        gy, truth.jacobian(lambda v: np.sum(truth.mp.sin(exact(truth.exact(x), v))), y), rtol=1e-13
    )
    v, w = rng.normal(size=left), rng.normal(size=right)
    _, along = tape.jvp(lambda p: f(*p), (x, y), (v if left else float(v), w if right else float(w)))
    u = rng.normal(size=np.shape(along))
    _, (ux, uy) = tape.vjp(lambda p: f(*p), (x, y), u)
    np.testing.assert_allclose(np.sum(u * along), np.sum(ux * v) + np.sum(uy * w), rtol=1e-12)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv"])
@pytest.mark.parametrize("x", [1.3, np.array([0.7, 1.9])], ids=["scalar", "array"])
def test_operators_with_numbers_and_arrays_on_either_side_agree_with_plain_python(op, x):
    apply = getattr(operator, op)
    for other in (2, 2.5, np.float64(1.5), np.int64(3), np.array([0.7, 1.9]), np.array([1, 2])):
        for f in (lambda a, b=other: apply(a, b), lambda a, b=other: apply(b, a)):
            fx, g = tape.gradient(lambda v, f=f: tape.sum(f(v)), x)
            assert fx == pytest.approx(float(np.sum(f(x))), rel=1e-15)
            if op == "mod":  # mpmath's remainder does not take arrays; the rule is tested above
                continue
            exact = truth.jacobian(lambda v, f=f: np.sum(f(v)), x) if op != "floordiv" else np.zeros(np.shape(x))
            np.testing.assert_allclose(g, exact, rtol=1e-13)


def test_numpy_functions_on_a_variable_are_the_functions_of_this_package():
    x = np.array([0.3, 0.8])
    for name in [*UNARY, *BINARY]:
        if not hasattr(np, name):
            continue
        args = (2.0,) if name in BINARY else ()
        x_in = x + 1.0 if name == "arccosh" else x
        ours = tape.gradient(lambda v, name=name, args=args: tape.sum(getattr(tape, name)(v, *args)), x_in)
        theirs = tape.gradient(lambda v, name=name, args=args: np.sum(getattr(np, name)(v, *args)), x_in)
        assert ours[0] == theirs[0]
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_clip_has_derivative_one_between_its_bounds_none_outside_and_one_half_at_a_bound():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(tape.gradient(lambda v: tape.sum(tape.clip(v, -1.0, 1.0)), x)[1], [0, 0.5, 1, 0.5, 0])
    np.testing.assert_array_equal(tape.gradient(lambda v: tape.sum(np.clip(v, None, 1.0)), x)[1], [1, 1, 1, 0.5, 0])
