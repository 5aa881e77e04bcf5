"""Plain numpy, autograd and tape functions on the oracle's numbers: same values, proved derivatives, clear refusals."""

import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
import scipy.integrate

from adbench import tape
from adbench.functions.from_numpy.numpy_calls import numpy_text
from adbench.oracle.compute import reference
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, arithmetic
from adbench.oracle.series.namespace import namespace_of
from adbench.oracle.series.number import Real
from adbench.oracle.subject import Effort
from tests.oracle.scalars import subject_of

from .numpy_programs import AUTOGRAD, PROGRAMS, WRONG_RULES, A, X

STEPS = np.array([0.5, -1.0, 0.75, 0.625, -0.875, 1.0])


def on_series(program, x, steps):
    """The shape, the values and the derivatives along the steps, by one evaluation on series."""
    text = numpy_text(program, (x,))
    with arithmetic(Arithmetic(192, terms=3)):
        moved = [Real(ball.moving(value, {1: step})) for value, step in zip(x.tolist(), steps.tolist(), strict=True)]
        leaf = namespace_of(Real).reals(x)
        leaf[:] = moved
        found = np.asarray(text(namespace_of(Real), leaf), dtype=object)
        balls = [ball.ball(Real.of(element).ball) for element in found.ravel()]
        values = [float(ball.ball(ball.start(b)).mid()) for b in balls]
        slopes = [float(b[1].mid()) if ball.is_series(b) else 0.0 for b in balls]
    return found.shape, np.array(values), np.array(slopes)


def truth(program, *args, shape=(), entries=8):
    """The row of the first number of the value."""
    subject = subject_of(program, args, range(len(args)), text=numpy_text(program, args), shape=shape)
    return reference(subject, Effort(max_entries=entries)).outputs[0][1]


def derivatives(row):
    return np.array([entry.derivative.lower for leaf in row.leaves for entry in leaf.entries])


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_match_the_program_and_slopes_its_differences(name):
    program, h = PROGRAMS[name], 1e-5
    with np.errstate(all="ignore"):
        plain = np.asarray(program(X.copy()))
        differences = (np.asarray(program(X + h * STEPS)) - np.asarray(program(X - h * STEPS))) / (2 * h)
    shape, values, slopes = on_series(program, X, STEPS)
    assert shape == plain.shape
    np.testing.assert_allclose(values, plain.ravel(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes, differences.ravel(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["functions", "array", "concatenate", "solve", "special"])
def test_the_gradient_of_an_autograd_function_is_proved(name):
    def program(x):
        return autograd.numpy.sum(AUTOGRAD[name](x))

    row = truth(program, X)
    assert row.proved, row.reason
    np.testing.assert_allclose(derivatives(row), autograd.grad(program)(X), rtol=1e-9)


@pytest.mark.parametrize("name", WRONG_RULES)
def test_a_wrong_custom_derivative_does_not_affect_the_reference(name):
    function, expected = WRONG_RULES[name]
    row = truth(lambda x: np.sum(function(x)), X)
    assert row.proved, row.reason
    np.testing.assert_allclose(derivatives(row), expected, rtol=1e-14)


def test_a_scalar_a_kink_and_a_loop_are_proved():
    def program(a, x):
        out = np.zeros(3)
        for i in range(3):
            out[i] = max(x[i], 0.0) * math.exp(a)
        return out.sum() + np.abs(x[2])

    row = truth(program, 0.5, np.array([1.0, -2.0, 0.0]))
    assert row.proved, row.reason
    np.testing.assert_allclose(derivatives(row)[:3], [math.exp(0.5), math.exp(0.5), 0.0], rtol=1e-15)
    assert row.leaves[1].entries[2].derivative.kind == "kink"


def test_a_library_function_can_be_the_program():
    row = truth(math.sin, 0.7)
    assert row.proved
    np.testing.assert_allclose(derivatives(row), [math.cos(0.7)], rtol=1e-15)


def test_constants_from_other_arrays_are_included():
    weights = np.array([0.1, 0.2, 0.3])
    row = truth(lambda x: np.sum(np.tanh(A @ x) * weights), np.array([0.1, -0.2, 0.3]))
    assert row.proved


def test_the_exponential_of_a_matrix_is_proved():
    row = truth(lambda t: scipy.linalg.expm(t * np.array([[0.0, 1.0], [-1.0, 0.0]]))[0, 1], 0.7)
    assert row.proved, row.reason
    np.testing.assert_allclose([row.value.lower, *derivatives(row)], [math.sin(0.7), math.cos(0.7)], rtol=1e-15)


INNER = {
    "tape": lambda x: tape.gradient(lambda t: tape.sum(tape.sin(t) * t), x)[1][1],
    "autograd": lambda x: autograd.grad(lambda t: autograd.numpy.sum(autograd.numpy.sin(t) * t))(x)[1],
    "two levels": lambda x: autograd.grad(lambda u: autograd.grad(lambda t: anp.sin(t) * t**2 / 2)(u) * u)(x[1]),
}


@pytest.mark.parametrize("name", INNER)
def test_a_derivative_inside_the_program_is_proved(name):
    row, b = truth(INNER[name], X), X[1]
    assert row.proved, row.reason
    slope = 2 * math.cos(b) - b * math.sin(b)
    if name == "two levels":  # d/du of u d/dt (t² sin t / 2), and its derivative
        value = 2 * b * math.sin(b) + 2.5 * b**2 * math.cos(b) - b**3 / 2 * math.sin(b)
        np.testing.assert_allclose(row.value.lower, value, rtol=1e-14)
    else:
        np.testing.assert_allclose(derivatives(row), [0, slope, 0, 0, 0, 0], rtol=1e-14)


def test_writing_into_arguments_does_not_affect_the_next_evaluation():
    def program(x):
        x *= 2
        x[0] = x[1]
        return np.sum(x)

    np.testing.assert_allclose(derivatives(truth(program, X[:3])), [0.0, 4.0, 2.0])


memory: dict[bytes, float] = {}


def remembering(x):
    if x.tobytes() not in memory:
        memory[x.tobytes()] = np.sum(x)
    return memory[x.tobytes()]


REFUSED = {
    "float32 array": (lambda x: np.sum(x.astype(np.float32)), "computes in float32 inside"),
    "float32 sum": (lambda x: np.sum(x, dtype=np.float32), "computes in float32 inside"),
    "float32 constant": (lambda x: np.sum(np.ones(3, np.float32) * x[0]), "computes in float32 inside"),
    "quad": (lambda x: scipy.integrate.quad(lambda t: t * x[0], 0, 1)[0], "converts an active number to a float"),
    "bytes": (remembering, "converts an active number to a float"),
    "eig": (lambda x: np.linalg.eigvals(A * x[0])[0], "numpy.linalg.eigvals has no translation"),
    "logm": (lambda x: scipy.linalg.logm(A * x[0])[0, 0], "scipy.linalg.logm has no translation"),
    "frexp": (lambda x: np.frexp(x)[0][0], "numpy.frexp has no translation"),
    "ellipk": (lambda x: scipy.special.ellipk(x[0]), "scipy.special.ellipk has no translation"),
    "norm of order 0": (lambda x: np.linalg.norm(x, 0), "a vector norm with ord=0"),
    "an option": (lambda x: np.quantile(x, 0.3, method="hazen"), "method="),
    "another option": (lambda x: np.mean(x, nonsense=1), "nonsense"),
    "complex()": (lambda x: complex(x[0]).real, "complex number"),
    "jacobian": (lambda x: tape.jacobian(lambda t: t**3, x[0])[1], "converts an active number to a float"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_untranslatable_code_is_refused_with_the_reason_and_the_line(name):
    program, reason = REFUSED[name]
    with pytest.raises(Exception, match=reason) as caught, arithmetic(Arithmetic(192)):
        numpy_text(program, (X,))(namespace_of(Real), namespace_of(Real).reals(X))
    if name not in ("another option", "complex()"):
        assert "test_numpy_text.py, line" in str(caught.value)


def test_a_refused_function_falls_back_to_differences():
    row = truth(lambda x: np.linalg.eigvals(np.diag(x))[0], X[:3])
    assert not row.proved
    assert "numpy.linalg.eigvals" in row.reason
