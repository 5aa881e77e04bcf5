"""Every compiled elementwise function equals the eager engine, even at kinks, at poles and outside the domain."""

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.kernels.natives import NATIVE
from adbench.tape.core.rule import Rule

ANYWHERE = np.array([-2.7, -1.0, -0.5, -0.0, 0.0, 0.3, 1.0, 1.5, 710.0, -745.2, 1e-310, 1e300, np.inf, -np.inf, np.nan])
ONE = {
    name: getattr(tape, name)
    for name in (
        *("negative", "positive", "square", "reciprocal", "absolute", "sign", "floor", "ceil", "trunc", "rint", "sqrt"),
        *("cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos"),
        *("arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "expit", "erf"),
        *("erfc", "log1p_exp", "log1m", "log_inv_logit", "log1m_inv_logit", "gammaln", "digamma", "logit", "Phi"),
        *("inv_Phi", "log1m_exp", "erfinv", "std_normal_lcdf", "log1p_square", "sinc", "stop_gradient"),
    )
}
ONE["power of abs"] = lambda x: tape.absolute(x) ** 2.5
TWO = {
    name: getattr(tape, name)
    for name in (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "copysign", "floor_divide", "remainder"),
        *("hypot", "power", "logaddexp", "arctan2", "log_sum_exp", "xlogy", "xlog1py", "log_diff_exp"),
    )
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


FEWER_DIGITS = {"gammaln": 1e-13, "digamma": 1e-13, "erfc": 1e-13}
"""Functions of scipy that lose digits."""


def compare(ours, theirs, digits=4e-15):
    """Check equality up to rounding, with NaN and infinities at the same positions."""
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=digits, atol=1e-300, equal_nan=True)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("shape", ["number", "small", "array"])
def test_a_function_of_one_argument_agrees_with_the_eager_engine_anywhere(name, shape):
    digits = FEWER_DIGITS.get(name, 4e-15)
    anywhere = ANYWHERE[ANYWHERE != 1e-310] if name == "gammaln" else ANYWHERE  # scipy's is infinite there
    f = lambda x: tape.sum(tape.where(x == x, 1.0, 2.0) * ONE[name](x))  # noqa: E731
    if shape == "number":
        compiled = tape.compile(ONE[name], 0.25)
        for x in map(float, anywhere):
            compare(compiled(x), tape.gradient(ONE[name], x), digits)
        return
    x = anywhere if shape == "small" else np.concatenate([anywhere, np.linspace(-3.1, 3.3, 30)])
    one_by_one = [tape.gradient(f, x[k : k + 1]) for k in range(len(x))]
    _, g = tape.compile(f, x)(x)
    compare([g], [np.concatenate([d for _, d in one_by_one])], digits)
    values = tape.compile(ONE[name], x, operator="value")(x)
    compare([values], [np.array([v for v, _ in one_by_one])], digits)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("shape", ["number", "array"])
def test_a_function_of_two_arguments_agrees_with_the_eager_engine_anywhere(name, shape):
    f = TWO[name]
    points = np.array([-np.inf, -2.5, -1.0, -0.0, 0.0, 0.7, 1.0, 2.0, 3.0, 800.0, np.inf, np.nan])
    if shape == "number":
        compiled = tape.compile(f, 0.25, 0.125)
        for x in map(float, points):
            for y in map(float, points):
                if name == "power" and x != x and y == 0.0:
                    continue  # the eager engine itself gives 0 for numbers and NaN for arrays
                value, slopes = tape.gradient(lambda v: f(*v), (x, y))
                compare([compiled(x, y)[0], *compiled(x, y)[1]], [value, *slopes])
        return
    x, y = (a.ravel() for a in np.meshgrid(points, points))
    weights = np.linspace(1.0, 2.0, x.size)
    g = lambda x, y, w: tape.sum(w * f(x, y))  # noqa: E731
    _, ours = tape.compile(g, x, y, weights, wrt=(0, 1))(x, y, weights)
    compare(ours, tape.gradient(lambda v: g(*v, weights), (x, y))[1])


@pytest.mark.parametrize("x", [0.0, 1.0, -2.0, 0.5, 3.0])
@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_a_constant_exponent_agrees(x, exponent):
    f = lambda x: x**exponent  # noqa: E731
    compare(tape.compile(f, 0.25)(x), tape.gradient(f, x))
    compare(
        tape.compile(lambda x: tape.sum(f(x)), np.ones(40))(np.full(40, x))[1:], [np.full(40, tape.gradient(f, x)[1])]
    )


def test_where_and_clip_and_comparisons_agree_on_arrays():
    x = np.linspace(-2.0, 2.0, 41)

    def f(x):
        inside = (x > -1.0) & ~(x >= 1.5) | (x == 2.0)
        return tape.sum(tape.where(inside, x * x, tape.exp(x)) + tape.clip(x, -0.5, 0.5) * (1.0 * (x < 0.0)))

    compare(tape.compile(f, np.zeros(41))(x), tape.gradient(f, x))


def test_every_native_form_is_of_a_rule_and_is_tested_here():
    assert all(isinstance(rule, Rule) for rule in NATIVE)
    tested = {f for f in (*ONE.values(), *TWO.values()) if isinstance(f, Rule)}
    forms = {f.native for f in tested} - {None}  # also of a strict rule, which a second derivative elsewhere has made
    untested = {r.name for r in NATIVE if r not in tested and r.native not in forms and r.reverse is not None}
    untested -= {"where", "clip", "log_sum_exp", "with slope"}  # the last in `test_loops`
    untested -= {"sech_square", "gauss", "digamma", "trigamma", "one_minus_square"}  # derivatives, or parts of them
    untested -= {"power of abs", "signed power"}  # "power of abs" above, and its derivative
    elsewhere = ("square of", "sinc")  # in `test_special_points`, and by a function that is no rule
    untested = {name for name in untested if not name.startswith(elsewhere)}
    assert not untested
