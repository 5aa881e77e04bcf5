"""Fast operators make the same records as the rules, for any mix of arrays, scalars and constants, small and large."""

import itertools
import operator

import numpy as np
import pytest

from adbench import tape
from adbench.tape.fast.blocks import LARGE

OPERATORS = {
    "+": (operator.add, tape.add),
    "-": (operator.sub, tape.subtract),
    "*": (operator.mul, tape.multiply),
    "/": (operator.truediv, tape.divide),
}
KINDS = ("array", "scalar", "constant array", "float", "int", "row", "integers")


def operand(kind: str, x, s, n: int, seed: int):
    data = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    return {
        "array": lambda: x * data,
        "scalar": lambda: s * data[0],
        "constant array": lambda: data,
        "float": lambda: 0.7,
        "int": lambda: 3,
        "row": lambda: data[None, :],
        "integers": lambda: np.arange(1, n + 1),
    }[kind]()


@pytest.mark.parametrize("n", [5, LARGE])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_agree_with_their_rules_and_with_forward_mode(name, n):
    by_operator, by_rule = OPERATORS[name]
    x = np.random.default_rng(0).uniform(0.5, 2.0, n)
    v = np.random.default_rng(1).normal(size=n)
    for left, right in itertools.product(KINDS, KINDS):
        if not {left, right} & {"array", "scalar"}:
            continue

        def f(point, combine, left=left, right=right):
            array, scalar = point["x"], point["s"]
            y = combine(operand(left, array, scalar, n, 2), operand(right, array, scalar, n, 3))
            return tape.sum(y * y * np.linspace(1.0, 2.0, n))

        point, direction = {"x": x, "s": 1.3}, {"x": v, "s": 0.4}
        value, g = tape.gradient(lambda p: f(p, by_operator), point)
        wanted, expected = tape.gradient(lambda p: f(p, by_rule), point)
        assert value == pytest.approx(wanted, rel=1e-14)
        np.testing.assert_allclose(g["x"], expected["x"], rtol=1e-13)
        assert g["s"] == pytest.approx(expected["s"], rel=1e-12)
        slope = tape.jvp(lambda p: f(p, by_operator), point, direction)[1]
        scale = float(np.abs(g["x"]) @ np.abs(v)) + abs(g["s"] * 0.4)
        assert abs(float(g["x"] @ v) + g["s"] * 0.4 - slope) < 1e-12 * (scale + n)  # x / x is all rounding


@pytest.mark.parametrize("name", OPERATORS)
def test_second_order_of_the_operators_is_symmetric_and_that_of_forward_over_reverse(name):
    by_operator, _ = OPERATORS[name]
    x = np.array([0.7, 1.1, 1.9])
    for left, right in itertools.product(KINDS[:5], KINDS[:5]):
        if not {left, right} & {"array", "scalar"}:
            continue

        def f(v, left=left, right=right):
            y = by_operator(operand(left, v, v[0], 3, 2), operand(right, v, v[1], 3, 3))
            return tape.sum(y * y)

        h = tape.hessian(f, x)[2]
        np.testing.assert_allclose(h, h.T, rtol=1e-12, atol=1e-12)
        columns = [tape.hvp(f, x, e)[1] for e in np.eye(3)]
        np.testing.assert_allclose(h, columns, rtol=1e-12, atol=1e-12)


def test_a_uniform_adjoint_becomes_an_array_where_one_is_needed():
    x = np.arange(1.0, 4.0)
    ones = np.ones(3)

    def gradient(f):
        return tape.gradient(f, x)[1]

    np.testing.assert_array_equal(gradient(tape.sum), ones)
    np.testing.assert_array_equal(gradient(lambda v: -tape.sum(-v) * 2.0), 2.0 * ones)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v + v) + tape.sum(3.0 - v)), ones)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v * v) + tape.sum(v)), 2 * x + 1)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v) + tape.sum(v * v)), 2 * x + 1)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v[::2])), [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v[np.array([0, 0, 2])])), [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(tape.reshape(v, (3, 1)) + np.ones((3, 2)))), 2.0 * ones)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v + np.ones((4, 3)))), 4.0 * ones)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(tape.where(v > 1.5, v, 0.0))), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(tape.sum(v) * np.ones(5))), 5.0 * ones)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(v) * tape.sum(v)), 12.0 * ones)
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(tape.floor(v) + tape.maximum(v, 2.0))), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(gradient(lambda v: tape.sum(tape.multiply(np.ones((2, 3)) * 3.0, v))), 6.0 * ones)


def test_the_adjoint_of_an_intermediate_sum_can_be_read_and_added_to():
    with tape.nested():
        x = tape.Var(np.arange(3.0))
        y = x * 2.0
        tape.sum(y).grad()
        np.testing.assert_array_equal(y.adj, np.ones(3))
        np.testing.assert_array_equal(x.adj, 2 * np.ones(3))
        y.adj += 1.0
        np.testing.assert_array_equal(y.adj, 2 * np.ones(3))
        np.testing.assert_array_equal(x.adj, 2 * np.ones(3))


def test_no_two_adjoints_share_memory():
    x = np.arange(1.0, 4.0)

    def f(p):
        total = p["a"] + p["b"]
        return tape.sum(total * total) + tape.sum(p["a"] * 3.0) + tape.sum(p["a"] * p["c"])

    g = tape.gradient(f, {"a": x, "b": x, "c": x})[1]
    np.testing.assert_array_equal(g["a"], 4 * x + 3 + x)
    np.testing.assert_array_equal(g["b"], 4 * x)
    np.testing.assert_array_equal(g["c"], x)
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations([*g.values(), x], 2))


def test_zero_times_infinity_is_zero_between_an_array_and_a_scalar():
    def masked(p):
        return tape.sum(tape.where(p["x"] > 0, p["x"] * p["s"], 0.0))

    g = tape.gradient(masked, {"x": np.array([1.0, -np.inf]), "s": 2.0})[1]
    np.testing.assert_array_equal(g["x"], [2.0, 0.0])
    assert g["s"] == 1.0

    def quotient(p):
        return tape.sum(tape.where(p["x"] > 0, p["x"] / p["s"], 0.0))

    g = tape.gradient(quotient, {"x": np.array([1.0, -np.inf]), "s": 2.0})[1]
    np.testing.assert_array_equal(g["x"], [0.5, 0.0])
    assert g["s"] == -0.25


def test_division_by_zero_follows_numpy():
    with np.errstate(all="ignore"):
        value, g = tape.gradient(lambda p: tape.sum(p["x"] / p["s"]), {"x": np.ones(2), "s": 0.0})
    assert value == np.inf
    np.testing.assert_array_equal(g["x"], [np.inf, np.inf])
    assert g["s"] == -np.inf
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert tape.gradient(lambda x: tape.sum(x / 0.0), np.ones(2))[0] == np.inf


@pytest.mark.parametrize("number", [0.7, 0.0, -1.5, np.inf, np.nan])
@pytest.mark.parametrize("x", [1.3, np.array([1.3, -0.4])], ids=["scalar", "array"])
def test_a_number_of_numpy_is_as_quick_and_good_as_a_float(x, number):
    """Elements of numpy's arrays are of type float64."""
    for compute in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, tape.maximum, tape.hypot):
        for left in (False, True):
            f = lambda v, c, left=left, compute=compute: compute(c, v) if left else compute(v, c)  # noqa: E731
            results, forms = [], []
            for constant in (number, np.float64(number)):
                with np.errstate(all="ignore"), tape.nested() as recording:
                    leaf = tape.Var(x)
                    y = f(leaf, constant)
                    forms.append([type(part) for part in recording[-1]])
                    assert type(y.val) in (float, np.ndarray)
                    tape.sum(y).grad()
                    results.append((y.val, leaf.adj))
            np.testing.assert_array_equal(*[result[0] for result in results])
            np.testing.assert_array_equal(*[result[1] for result in results])
            assert forms[0] == forms[1]


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 1e308, -1e308, 0.0])
def test_functions_of_large_arrays_equal_those_of_small_ones(special):
    """Large arrays are computed in pieces and in reused memory."""
    x = np.linspace(-3.0, 3.0, 3 * LARGE)
    at = np.r_[0:10, LARGE - 5 : LARGE + 5, len(x) - 10 : len(x)]
    x[[5, LARGE, -1]] = special
    y, weights = np.full_like(x, 0.3), np.where(x > 0.0, 2.0, 0.5)
    y[LARGE] = special
    for f in (
        lambda x, y, _w: tape.sum(tape.logaddexp(x, y)),
        lambda x, y, w: tape.sum(tape.logaddexp(0.3, y - x) * w),
        lambda x, y, w: tape.sum((x - y) ** 2 * w) + 3.0 * tape.sum(tape.square(x)),
    ):
        with np.errstate(all="ignore"):
            large = tape.gradient(lambda v, f=f: f(*v, weights), (x, y))[1]
            small = tape.gradient(lambda v, f=f: f(*v, weights[at]), (x[at], y[at]))[1]
        for ours, theirs in zip(large, small, strict=True):
            np.testing.assert_allclose(ours[at], theirs, rtol=1e-15)


def test_a_product_with_a_large_matrix_is_numpys():
    matrix, w = np.linspace(-1.0, 1.0, 2 * LARGE).reshape(-1, 2), np.array([0.3, 1.7])
    value, (of_matrix, of_w) = tape.gradient(lambda v: tape.sum((v[0] @ v[1]) ** 2), (matrix, w))
    z = matrix @ w
    np.testing.assert_allclose(value, z @ z, rtol=1e-13)
    np.testing.assert_allclose(of_w, 2.0 * z @ matrix, rtol=1e-13)
    np.testing.assert_allclose(of_matrix, 2.0 * z[:, None] * w, rtol=1e-13)
