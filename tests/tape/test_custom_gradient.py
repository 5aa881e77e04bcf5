"""compute_gradient: the forms of a custom gradient, reuse of intermediate results, and skipped work."""

from __future__ import annotations

import numpy as np
import pytest

from adbench import tape
from adbench.tape import pqr
from adbench.tape.pqr import compute_gradient, with_gradient
from tests.tape import truth
from tests.tape.truth import mp

X = np.array([0.3, -1.2, 2.0])
W = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 4.0]])

every_mode = pytest.mark.parametrize("mode", ["reverse", "forward", "hybrid"])


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)


class Counted:
    """sigmoid with a custom gradient; counts the computations of value and gradient."""

    def __init__(self):
        self.values = self.gradients = 0
        self.sigmoid = compute_gradient(self.sigmoid_and_gradient)

    def sigmoid_and_gradient(self, x):
        self.values += 1
        v = 1.0 / (1.0 + np.exp(-x))

        def gradient():
            self.gradients += 1
            return v * (1.0 - v)

        return v, gradient


def logistic(x):
    return 1 / (1 + mp.exp(-x))


def test_a_custom_gradient_is_skipped_if_it_is_not_needed():
    counted = Counted()
    assert counted.sigmoid(0.0) == 0.5
    tape.gradient(lambda x: counted.sigmoid(0.5) * x, 1.0)
    tape.gradient(lambda x: (counted.sigmoid(x), x * x)[1], 1.0)
    with_gradient(lambda x: counted.sigmoid(tape.stop_gradient(x).val), x=1.0)
    assert (counted.values, counted.gradients) == (4, 0)


@every_mode
def test_value_and_gradient_are_each_computed_once_and_the_vector_is_the_diagonal(mode):
    counted = Counted()
    r = with_gradient(counted.sigmoid, mode, x=X)
    assert (counted.values, counted.gradients) == (1, 1)
    close(r.gradient["x"], truth.jacobian(logistic, X))


def test_a_diagonal_stays_compact_in_forward_mode():
    assert type(pqr.compact_jacobian(Counted().sigmoid, X)[1]) is pqr.Diagonal


def test_a_custom_gradient_has_higher_orders():
    expected = truth.second_derivative(logistic, 0.3, 1.0)
    assert tape.hessian(Counted().sigmoid, 0.3)[2] == pytest.approx(expected, rel=1e-14)


@every_mode
def test_several_variables_share_work_and_only_active_ones_are_computed(mode):
    asked = []

    @compute_gradient
    def f(x, y):
        s = x**2 + y**2
        return s**2, (lambda: asked.append("x") or 4 * s * x, lambda: asked.append("y") or 4 * s * y)

    assert with_gradient(f, mode, x=1.0, y=2.0).gradient == {"x": 20.0, "y": 40.0}
    asked.clear()
    assert with_gradient(lambda y: f(1.0, y), mode, y=2.0).gradient == {"y": 40.0}
    assert asked == ["y"]


def test_each_gradient_is_computed_once_however_many_sweeps_use_it():
    asked = []
    product = compute_gradient(
        lambda x, y: (x * y, (lambda: asked.append("x") or y, lambda: asked.append("y") or x)),
    )
    jacobian = tape.jacobian(lambda x: product(x, x), X, "reverse")[1]
    close(jacobian, np.diag(2 * X))
    assert sorted(asked) == ["x", "y"]


def linear(form):
    """x -> W x, with its Jacobian in one of its forms."""
    return compute_gradient(lambda x: (W @ x, lambda: form))


@every_mode
@pytest.mark.parametrize(
    "form",
    [
        W,
        pqr.Dense(W),
        lambda left: left @ W,
        lambda right: W @ right,
        lambda left=None, right=None: W @ right if left is None else left @ W,
    ],
    ids=["matrix", "compact", "left", "right", "both"],
)
def test_a_custom_jacobian_can_be_a_matrix_or_its_products_from_either_side(form, mode):
    close(with_gradient(lambda x: linear(form)(x * x), mode, x=X).gradient["x"], W * (2 * X))


def test_only_the_product_that_a_mode_needs_is_called():
    sides = []

    def products(left=None, right=None):
        sides.append("right" if left is None else "left")
        return W @ right if left is None else left @ W

    tape.vjp(linear(products), X, np.ones(2))
    tape.jvp(linear(products), X, np.ones(3))
    assert sides == ["left", "right"]


def test_matrix_values_take_the_diagonal_in_their_own_shape():
    square = compute_gradient(lambda x: (x * x, lambda: 2 * x))
    close(tape.gradient(lambda x: tape.sum(square(x)), W)[1], 2 * W)


def test_options_are_given_by_keyword():
    scale = compute_gradient(lambda x, *, by: (by * x, by))
    assert tape.gradient(lambda x: scale(x, by=3.0), 2.0) == (6.0, 3.0)
    with pytest.raises(TypeError, match="a keyword-only argument is an option without derivative"):
        tape.gradient(lambda b: scale(1.0, by=b), 2.0)


def test_errors_of_a_custom_gradient_name_function_argument_expected_and_found():
    def check(f, message, error=tape.RuleError):
        with pytest.raises(error, match=message):
            tape.jacobian(f, X, "reverse")

    def bare(x):
        return x

    check(compute_gradient(bare), r"bare should return \(value, gradient\)")
    check(linear(np.ones(4)), r"gradient for argument 0: expected shape \(2, 3\), got \(4,\)")
    check(linear((W, W)), "has 1 arguments and should return as many gradients in a tuple, got 2")
    check(linear(pqr.Dense(W.T)), r"expected shape \(2, 3\), got \(3, 2\)")
    check(linear(lambda left: left), r"the product with left: expected shape \(1, 3\), got \(1, 2\)")
    check(lambda x: compute_gradient(lambda y: (x * y, x))(x), "uses a variable that is not among", tape.TapeError)
