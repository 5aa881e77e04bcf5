"""Kernels are right to two units in the last place at any number, with the same bits for a number and for an array."""

import math
import re

import mpmath
import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.inspection import listing
from adbench.tape.machine import simd
from tests.support.marks import one_in

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EXACT = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "log1p_exp": lambda x: mpmath.log1p(mpmath.exp(x)),
    "logit": lambda x: mpmath.log(x) - mpmath.log1p(-x),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "gammaln": mpmath.loggamma,
    "digamma": mpmath.digamma,
    "power": mpmath.power,
    "arctan2": mpmath.atan2,
    "hypot": mpmath.hypot,
}
SLOPES = {
    "exp": mpmath.exp,
    "expm1": mpmath.exp,
    "log": lambda x: 1 / x,
    "log1p": lambda x: 1 / (1 + x),
    "tanh": lambda x: 1 / mpmath.cosh(x) ** 2,
    "sinh": mpmath.cosh,
    "cosh": mpmath.sinh,
    "gammaln": mpmath.digamma,
    "digamma": lambda x: mpmath.polygamma(1, x),
    "log1p_exp": EXACT["expit"],
    "sin": mpmath.cos,
    "cos": lambda x: -mpmath.sin(x),
    "arcsin": lambda x: 1 / mpmath.sqrt(1 - x * x),
    "arccos": lambda x: -1 / mpmath.sqrt(1 - x * x),
    "arctan": lambda x: 1 / (1 + x * x),
    "erf": lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
    "erfc": lambda x: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
}
TINY = (1e-300, 1e-7)
RANGES = {
    "exp": [(-708.0, 709.7), (-745.0, -708.0), (-1.0, 1.0), TINY],
    "expm1": [(-40.0, 709.0), (-1.0, 1.0), TINY],
    "log": [(1e-310, 1e300), (0.5, 2.0), (1 - 1e-7, 1 + 1e-7), (1e-320, 1e-308)],
    "log1p": [(-0.999999, 5.0), TINY, (-1e-7, 1e-7), (1.0, 1e308)],
    "tanh": [(-20.0, 20.0), (60.0, 68.0), (-1.0, 1.0), (-0.4, 0.4), (17.5, 19.5), (-370.0, 370.0), TINY],
    "sinh": [(-710.4, 710.4), (-1.0, 1.0), TINY],
    "cosh": [(-710.4, 710.4), (-1.0, 1.0), TINY],
    "expit": [(-745.0, 40.0), (-1.0, 1.0)],
    "log1p_exp": [(-745.0, 800.0), (-1.0, 1.0)],
    "logit": [(0.0, 1.0), (0.4999, 0.5001), TINY],
    "sin": [(-10.0, 10.0), (1e3, 1e12), (1e12, 1.7e308), TINY],
    "cos": [(-10.0, 10.0), (1e3, 1e12), (1e12, 1.7e308), TINY],
    "tan": [(-10.0, 10.0), (1e3, 1e12), (1e12, 1.7e308), TINY],
    "arcsin": [(-1.0, 1.0), (0.999, 1.0), TINY],
    "arccos": [(-1.0, 1.0), (0.999, 1.0), TINY],
    "arctan": [(-5.0, 5.0), (1.0, 1e300), TINY],
    "erf": [(-6.0, 6.0), (-1.0, 1.0), TINY],
    "erfc": [(-6.0, 26.5), (26.5, 27.2), (-1.0, 1.0), TINY],
    "cbrt": [(-2.0, 2.0), (1e-320, 1e300)],
    "gammaln": [(1e-300, 1e300), (0.01, 3.0), (0.9, 1.1), (1.9, 2.1), (2.0, 10.0)],
    "digamma": [(1e-300, 1e300), (0.01, 3.0), (1.4616, 1.4617), (2.0, 10.0)],
    "power": [((0.01, 20.0), (-30.0, 30.0)), ((1e-300, 1e300), (-1.02, 1.02)), ((0.999, 1.001), (-7e5, 7e5))],
    "hypot": [((-2.0, 2.0), (-2.0, 2.0)), ((1e-320, 1e300), (1e-320, 1e300)), ((1e306, 1e308), (1e306, 1e308))],
    "arctan2": [((-2.0, 2.0), (-2.0, 2.0)), ((1e-300, 1e300), (1e-300, 1e300)), ((1e-320, 1e-306), (1e-320, 1e-306))],
}
SPECIAL = [
    0.0,
    0.5,
    1.0,
    2.0,
    3.0,
    37.0,
    354.1,
    372.6,
    708.1,
    709.79,
    710.5,
    745.2,
    1e15,
    2.0**40,
    2.0**41,
    1e22,
    1e308,
]
SPECIAL += [5e-324, 1e-310, 2.0**-1022, 2.0**-54, math.nextafter(1.0, 0.0), math.inf]
SPECIAL = np.array([*SPECIAL, *(-x for x in SPECIAL), math.nan])


def points(name, count=403):
    """Random arguments in all ranges: for each argument of the function an array."""
    rng = np.random.default_rng(1)

    def draw(low, high):
        if low > 0 and high / low > 1e3:
            return np.exp(rng.uniform(np.log(low), np.log(high), count))
        return rng.uniform(low, high, count)

    ranges = [r if isinstance(r[0], tuple) else (r,) for r in RANGES[name]]
    return [np.concatenate(column) for column in zip(*([draw(*r) for r in row] for row in ranges), strict=True)]


def with_anything(name):
    """The same, numbers with random bits, and all special points or pairs of them."""
    found = points(name)
    count = len(found)
    bits = np.random.default_rng(2).integers(0, 2**64, (count, 500), dtype=np.uint64).view(np.float64)
    special = np.meshgrid(*[SPECIAL] * count)
    return [np.concatenate([x, b, s.ravel()]) for x, b, s in zip(found, bits, special, strict=True)]


def errors(ours, exact, *columns):
    """Distances to the truth in units of the truth's last place."""
    found = []
    with mpmath.workdps(50):
        for y, *x in zip(ours, *columns, strict=True):
            truth = exact(*map(mpmath.mpf, map(float, x)))
            unit = mpmath.mpf(float(np.spacing(abs(float(truth)))))
            found.append(float(abs(mpmath.mpf(float(y)) - truth) / unit))
    return np.array(found)


@pytest.mark.parametrize("name", EXACT)
def test_a_kernel_is_right_to_two_units_in_the_last_place(name):
    x = points(name)
    ours = tape.compile(getattr(tape, name), *x, operator="value")(*x)
    found = errors(ours, EXACT[name], *x)
    worst = np.argmax(found)
    assert found[worst] <= 2.0, [c[worst] for c in x]


@pytest.mark.parametrize("name", SLOPES)
def test_a_derivative_is_right_to_two_units_in_the_last_place(name):
    (x,) = points(name)
    x = x[np.abs(np.log(np.abs(x))) < 350.0]  # where the formula of a derivative, such as 1 + x², stays finite
    f = getattr(tape, name)
    _, ours = tape.compile(lambda x: tape.sum(f(x)), x)(x)
    found = errors(ours, SLOPES[name], x)
    worst = np.argmax(found)
    assert found[worst] <= 2.0, x[worst]


@pytest.mark.parametrize("name", EXACT)
def test_special_points_and_random_bits_agree_with_numpy(name):
    x = with_anything(name)
    if name in ("gammaln", "digamma"):
        x = [np.where(np.abs(x[0]) < 1e-305, 0.0, np.abs(x[0]))]  # elsewhere scipy loses digits, or the result
    ours = tape.compile(getattr(tape, name), *x, operator="value")(*x)
    theirs = np.vectorize(math.erfc)(*x) if name == "erfc" else getattr(tape, name)(*x)  # scipy's loses digits
    loose = name in ("gammaln", "digamma")
    digits, least = (1e-13, 1e-15) if loose else (1e-15, 1e-307 if name == "expit" else 5e-324)
    np.testing.assert_allclose(ours, theirs, rtol=digits, atol=least)
    known = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(theirs)[known])


@pytest.mark.parametrize("name", one_in(3, [*EXACT, "logaddexp", "log1m", "xlogy"]))
def test_a_number_an_array_and_its_remainder_have_the_same_bits(name):
    f = getattr(tape, name)
    x = with_anything("power" if name in ("power", "arctan2", "hypot", "logaddexp", "xlogy") else "exp")
    x = [np.concatenate([c[::37], SPECIAL]) for c in x]
    n = len(x[0])
    array = tape.compile(f, *x, operator="value")(*x)
    number = tape.compile(f, *(0.5 for _ in x), operator="value")
    assert [same_bits(number(*map(float, row)), y) for *row, y in zip(*x, array, strict=True)] == [True] * n
    for length in (2, 3, 8, 13, *range(17, 24)):  # in registers, and every number of remaining elements
        part = [c[:length] for c in x]
        cut = tape.compile(f, *part, operator="value")(*part)
        assert all(map(same_bits, cut, array[:length]))


def same_bits(a, b):
    return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)


def test_one_far_lane_leaves_its_neighbours_as_they_are():
    x = np.linspace(0.1, 3.0, 64)
    far = x.copy()
    far[5::8] = 1e300
    for name in ("sin", "tan", "exp", "tanh", "log", "log1p"):
        value = tape.compile(getattr(tape, name), x, operator="value")
        near, mixed = value(x), value(far)
        keep = far == x
        np.testing.assert_array_equal(mixed[keep], near[keep])
        assert mixed[5] == pytest.approx(getattr(np, name)(1e300), rel=1e-15)


@pytest.mark.parametrize("name", [n for n in EXACT if n not in ("power", "arctan2", "hypot", "digamma")])
def test_the_loop_over_an_array_calls_nothing_unless_a_lane_is_far(name):
    f = getattr(tape, name)
    found = listing(lambda x: tape.sum(f(x)), np.linspace(0.1, 0.9, 64))
    (run,) = (text for text in found.llvm.split("\ndefine ") if " @run(" in text.partition("\n")[0])
    calls = set(re.findall(r"call [^@\n]*@(\w+)\(", run))
    assert all(c.startswith("adbench_") and c.endswith("_far_8") for c in calls), calls


def test_sine_and_cosine_share_their_work():
    x = np.linspace(0.1, 0.9, 64)
    both = listing(lambda x: tape.sum(tape.sin(x) * tape.cos(x)), x).llvm
    one = listing(lambda x: tape.sum(tape.sin(x)), x).llvm  # its gradient is the cosine
    assert both.count("llvm.fmuladd") <= one.count("llvm.fmuladd") + 4


def test_logaddexp_with_zero_is_softplus_and_shares_its_exponential_with_the_derivative():
    x = with_anything("log1p_exp")[0]
    softplus = tape.compile(tape.log1p_exp, x, operator="value")(x)
    number = tape.compile(lambda x: tape.logaddexp(0.0, x), 0.7, operator="value")
    assert [same_bits(number(float(a)), b) for a, b in zip(x, softplus, strict=True)] == [True] * len(x)
    for f in (lambda x: tape.logaddexp(0.0, x), lambda x: tape.logaddexp(x, 0.0)):
        assert all(map(same_bits, tape.compile(f, x, operator="value")(x), softplus))

    def products(c):
        found = listing(lambda x: tape.sum(tape.logaddexp(c, x)), np.linspace(0.1, 0.9, 64))
        return found.llvm.count("llvm.fmuladd")

    assert products(0.0) < 0.7 * products(0.1)


def test_many_kernels_become_calls_so_that_compile_time_stays_linear():
    def f(x):
        for _ in range(60):
            x = tape.sin(x) + tape.exp(-x)
        return tape.sum(x)

    found = listing(f, np.linspace(0.1, 0.9, 64))
    assert "@adbench_sin_cos_8(" in found.llvm
    compiled = tape.compile(f, np.linspace(0.1, 0.9, 64))
    x = np.linspace(0.2, 1.0, 64)
    np.testing.assert_allclose(compiled(x)[1], tape.gradient(f, x)[1], rtol=1e-11)


def test_without_avx512_tables_are_read_lane_by_lane_with_the_same_bits(monkeypatch):
    x = np.concatenate([np.linspace(0.1, 9.0, 61), [1e-300, 1e300, 1.0]])

    def values():
        functions = (tape.log, tape.gammaln, tape.digamma, lambda x: x**1.7)
        return [tape.compile(f, x, operator="value")(x) for f in functions]

    usual = values()
    monkeypatch.setattr(simd, "processor", lambda: ("generic", ""))
    assert "@table" in listing(lambda x: tape.sum(tape.log(x)), x).llvm
    np.testing.assert_array_equal(values(), usual)
