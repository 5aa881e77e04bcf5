"""Loops over arrays: the order of sums, divisions by one number, and slices that are shifted against each other."""

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.inspection import listing
from tests.tape.compiled.test_structure import calls_of, loops_in, workspace

LENGTHS = (17, 24, 31, 32, 33, 39, 64, 95, 100, 1_000, 4_095, 4_096, 4_097, 4_104, 8_192, 8_195, 20_001)


def documented_sum(x):
    """The sum of a vector of at least eight numbers in the documented order."""
    total = 0.0
    for start in range(0, x.size, 4096):
        block = x[start : start + 4096]
        together = block.size // 32 * 32
        partial = np.zeros((4, 8))
        for row in block[:together].reshape(-1, 4, 8):
            partial += row
        for first in range(together, block.size, 8):
            rest = block[first : first + 8]
            partial[0, : rest.size] += rest
        lanes = (partial[0] + partial[1]) + (partial[2] + partial[3])
        for half in (4, 2, 1):
            lanes = lanes[:half] + lanes[half:]
        total += lanes[0]
    return total


@pytest.mark.parametrize("n", LENGTHS)
def test_a_sum_has_the_documented_order_whatever_else_its_loop_does(n):
    x = np.random.default_rng(n).normal(size=n)
    expected = documented_sum(x)
    assert tape.compile(tape.sum, x, operator="value")(x) == expected
    busy = lambda x: (tape.sum(tape.sinh(x)), tape.sum(x), tape.sum(tape.exp(x) * tape.log(x * x)))  # noqa: E731
    assert tape.compile(busy, x, operator="value")(x)[1] == expected
    beside = lambda x: (tape.sum((x[1:] - x[:-1]) ** 2), tape.sum(x))  # noqa: E731
    assert tape.compile(beside, x, operator="value")(x)[1] == expected


def test_sums_of_short_rows_and_columns_agree_with_numpy():
    rng = np.random.default_rng(0)
    for shape in ((40, 3), (3, 40), (5, 9, 7), (1_000, 33), (2, 5_000)):
        x = rng.normal(size=shape)
        for axis in (None, 0, -1):
            found = tape.compile(lambda x, axis=axis: tape.sum(tape.exp(x), axis), x, operator="value")(x)
            np.testing.assert_allclose(found, np.sum(np.exp(x), axis), rtol=1e-13)


@pytest.mark.parametrize("shape", [(5, 1_000), (2, 4_500), (8, 17), (9, 40), (3, 2, 100), (4, 3, 5, 24)])
def test_a_sum_along_a_short_axis_adds_from_first_to_last_for_any_number_of_threads(shape):
    x = np.exp(np.random.default_rng(0).normal(size=shape))
    for axis in range(len(shape) - 1):
        f = lambda x, axis=axis: (tape.sum(x, axis), tape.sum(tape.sqrt(x), axis), tape.max(-x, axis))  # noqa: E731
        expected = np.zeros((2, *np.delete(shape, axis)))
        for part in np.moveaxis(x, axis, 0):
            expected += np.stack([part, np.sqrt(part)])
        for threads in (1, 2):
            *sums, largest = tape.compile(f, x, operator="value", threads=threads)(x)
            np.testing.assert_array_equal(sums, expected)
            np.testing.assert_array_equal(largest, np.max(-x, axis))


def test_a_sum_along_a_short_axis_stays_in_registers():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 640)), rng.normal(size=(3,))
    found = listing(lambda a, b: tape.sum(tape.exp(tape.sum(a * b[:, None], 0))), a, b)
    assert found.llvm.count("fmul <8 x double>") >= 3  # the three terms of each sum follow each other
    value, (by_a, by_b) = tape.compile(lambda a, b: tape.sum(tape.exp(tape.sum(a * b[:, None], 0))), a, b)(a, b)
    e = np.exp(b @ a)
    np.testing.assert_allclose(value, e.sum(), rtol=1e-13)
    np.testing.assert_allclose(by_a, b[:, None] * e, rtol=1e-13)
    np.testing.assert_allclose(by_b, a @ e, rtol=1e-12)


SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, -5e-324, 2.0**-1022, 49.0, 1.0, 1.7e-310)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "divisor",
    [3.0, -7.0, 49.0, 0.5, 1e-3, 1e300, 1e308, 5e-324, 1e-310, -1e-310, 0.0, -0.0, np.inf, np.nan, 2.0**-1022],
)
def test_a_quotient_by_one_number_is_numpys_with_an_inverse_computed_once(divisor):
    rng = np.random.default_rng(1)
    whole = rng.integers(1, 1_000, 500) * (divisor if 1e-300 < abs(divisor) < 1e300 else 1.0)
    x = np.concatenate([SPECIAL, rng.normal(size=1_000), np.exp(rng.uniform(-700, 700, 1_000)), whole])
    by_argument = tape.compile(lambda x, s: x / s, x, 2.0, operator="value")(x, divisor)
    by_constant = tape.compile(lambda x: x / divisor, x, operator="value")(x)
    expected = x / divisor
    for found in (by_argument, by_constant):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        good = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[good]), np.signbit(expected[good]))
        np.testing.assert_array_max_ulp(found[good], expected[good], 1)
        np.testing.assert_array_equal(found[-500:], expected[-500:])  # exact quotients are exact


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("count", [8, 21, 4_500])
def test_a_quotient_and_the_inverse_of_its_divisor_share_a_division_and_are_numpys(count):
    rng = np.random.default_rng(count)
    edges = np.array([*SPECIAL, 1e300, -1e-310, 2.0**1022, -(2.0**1023), 3.0])
    for x, y in (
        (np.exp(rng.uniform(-700, 700, count)), rng.normal(size=count)),
        (rng.integers(1, 1_000, count) * 49.0, np.full(count, 49.0)),
        *((np.resize(edges, count), np.full(count, e)) for e in edges),
        (np.resize(edges, count), np.resize(edges[::-1], count)),  # few lanes have an unusable inverse
    ):
        compiled = tape.compile(lambda x, y: (x / y, 1.0 / y), x, y, operator="value")
        quotient, inverse = compiled(x, y)
        np.testing.assert_array_equal(inverse, 1.0 / y)
        np.testing.assert_array_equal(np.isnan(quotient), np.isnan(x / y))
        good = ~np.isnan(quotient)
        np.testing.assert_array_equal(np.signbit(quotient[good]), np.signbit((x / y)[good]))
        np.testing.assert_array_max_ulp(quotient[good], (x / y)[good], 1)
        is_exact = (y == 49.0) & (np.mod(x, 49.0) == 0.0)
        np.testing.assert_array_equal(quotient[is_exact], (x / y)[is_exact])


def test_a_quotient_with_its_partials_takes_one_division_and_another_in_a_rare_branch():
    found = listing(lambda x, y: tape.sum(tape.sin(x / y)), np.ones(64), np.full(64, 3.0)).llvm
    divisions = [line for line in found.splitlines() if "fdiv <8 x double>" in line]
    assert len(divisions) == 2
    assert "splat (double 1.000000e+00)" in divisions[0]
    assert "!prof" in found[found.index(divisions[0]) : found.index(divisions[1])]  # the branch to the second is rare


def test_a_quotient_in_products_and_sums_only_is_within_two_units_in_the_last_place():
    rng = np.random.default_rng(2)
    x, s, only = rng.normal(size=200), 0.3, np.zeros(40)
    compiled = tape.compile(lambda x, s: tape.sum(x / s), only, s, operator="value")
    for number in x:
        only[7] = number  # the other terms of the sum are zero
        np.testing.assert_array_max_ulp(compiled(only, s), number / s, 2)


def test_steps_and_kinks_of_a_quotient_are_where_they_are_without_compiling():
    x = np.arange(1.0, 200.0)
    f = lambda x, s: tape.sum(tape.floor(x / s)) + tape.sum(tape.abs(x / s - 1.0))  # noqa: E731
    compiled = tape.compile(f, x, 3.0)
    for s in (3.0, 7.0, 49.0, 10.0, 0.1):
        value, (by_x, by_s) = compiled(x, s)
        expected, (there_x, there_s) = tape.gradient(lambda a: f(*a), (x, s))
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(by_x, there_x, rtol=1e-13)
        assert by_s == pytest.approx(there_s, rel=1e-12)


def rosenbrock(x):
    return tape.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def second_differences(x):
    return tape.sum(tape.exp(-((x[2:] - 2.0 * x[1:-1] + x[:-2]) ** 2)) * x[1:-1])


def neighbours_and_all(x):
    return tape.sum(x * x * tape.cos(x)) + tape.sum(x[1:] * x[:-1]) + tape.sum(x[3:] / x[:-3]) - tape.sum(x[:-2])


def pairs(x):
    return tape.sum(100.0 * (x[1::2] - x[: x.shape[0] // 2 * 2 : 2] ** 2) ** 2) + tape.sum(x[::-1] * x**3)


def walk(x):
    return tape.sum(tape.where(x[1:] > x[:-1], x[1:] * x[:-1], x[:-1] ** 2)) * tape.max(x)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("f", [rosenbrock, second_differences, neighbours_and_all, pairs, walk])
def test_functions_of_shifted_slices_have_the_eager_gradient(f, n):
    x = np.random.default_rng(n).uniform(0.5, 1.5, n)
    value, slope = tape.compile(f, x)(x)
    expected = tape.gradient(f, x)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("n", [33, 4_096, 4_101, 10_000])
def test_second_derivatives_of_shifted_slices_are_the_eager_ones(n):
    x, v = np.random.default_rng(n).uniform(0.5, 1.5, (2, n))
    for f in (rosenbrock, second_differences):
        for found, expected in zip(tape.compile(f, x, v, operator="hvp")(x, v), tape.hvp(f, x, v), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


def test_neighbours_and_their_gradient_take_one_pass_without_workspace():
    for f in (rosenbrock, second_differences):
        assert workspace(tape.compile(f, np.ones(1_000))) == 0
    wide = tape.compile(rosenbrock, np.ones(1_000_000))
    assert 8 * workspace(wide) <= 8_000_000


def test_zeros_stay_negative_where_nothing_is_added():
    """The gradient of x[1:] adds nothing to the first element, not even a positive zero."""
    x, w = np.full(100, -0.0), np.full(99, -1.0)
    f = lambda x: tape.sum(tape.sin(x) ** 2) + tape.sum(tape.sin(x[1:]) ** 2 * w)  # noqa: E731
    slope = tape.compile(f, x)(x)[1]
    assert slope[0] == 0.0
    assert np.signbit(slope[0])


def test_a_normal_density_takes_one_pass_with_one_division():
    def normal(y, mu, sigma):
        z = (y - mu) / sigma
        return -0.5 * tape.sum(z * z) - y.shape[0] * tape.log(sigma)

    y = np.random.default_rng(0).normal(size=10_000)
    found = listing(normal, y, 0.3, 1.7, wrt=(1, 2))
    assert calls_of(found, "adbench_log_1") == 1
    assert loops_in(found) <= 5  # blocks, four vectors, one vector, the rest, or one vector with a division
    assert found.llvm.count("fmul <8 x double>") == 5  # one for each vector: the sum of squares fuses, 1/σ is outside
    value, slopes = tape.compile(normal, y, 0.3, 1.7, wrt=(1, 2))(y, 0.4, 1.5)
    z = (y - 0.4) / 1.5
    assert value == pytest.approx(-0.5 * np.sum(z * z) - y.size * np.log(1.5), rel=1e-14)
    np.testing.assert_allclose(slopes, [np.sum(z) / 1.5, (np.sum(z * z) - y.size) / 1.5], rtol=1e-12)


def test_a_small_factor_stays_inside_a_sum_so_that_large_numbers_do_not_overflow():
    x = np.full(100, 1e308)
    for f in (
        lambda x: tape.sum(1e-10 * x),
        lambda x: tape.sum(1e10 * (x * 1e-300)),
        lambda x: tape.sum(-x * x[0] ** -1),
    ):
        value, slope = tape.compile(f, x)(x)
        expected, slopes = tape.gradient(f, x)
        assert value == pytest.approx(expected, rel=1e-14)
        np.testing.assert_allclose(slope, slopes, rtol=1e-14)


def test_a_sum_of_a_negative_product_has_the_other_sign():
    x = np.random.default_rng(0).normal(size=100)

    def f(x):
        a, b = tape.sin(x), tape.cos(x)
        return tape.sum(a * b) + 3.0 * tape.sum(-a * b) + 5.0 * tape.sum(-(a * b)) + 7.0 * tape.sum(a * -b * 2.0)

    value, slope = tape.compile(f, x)(x)
    assert value == pytest.approx(-21.0 * np.sum(np.sin(x) * np.cos(x)), rel=1e-13)
    np.testing.assert_allclose(slope, tape.gradient(f, x)[1], rtol=1e-12)


@pytest.mark.parametrize("n", [17, 39, 40, 4097, 4096 * 2 + 13])
def test_any_and_all_see_every_element(n):
    def f(x):
        return tape.where(np.any(x > 0.5), 10.0, 0.0) + tape.where(np.all(x < 0.5), 1.0, 0.0)

    x = np.zeros(n)
    one, two = tape.compile(f, x, operator="value"), tape.compile(f, x, operator="value", threads=2)
    assert one(x) == two(x) == 1.0
    for i in {*range(9), *range(30, 41), *range(4090, 4099), *range(n - 14, n)} & set(range(n)):
        x[i] = 3.0
        assert one(x) == two(x) == 10.0, i
        x[i] = 0.0


@pytest.mark.parametrize("n", [17, 40, 4096 + 13])
def test_a_nan_in_any_element_of_a_gradient_is_found(n):
    def f(x):
        return tape.sum(tape.sqrt(x) * 0.0)

    x = np.ones(n)
    call = tape.compile(f, x)
    for i in {0, 7, 8, 31, 32, 4095, 4096, n - 1} & set(range(n)):
        x[i] = 0.0  # 0 · ∞ of the plain program is 0 in the careful one
        np.testing.assert_array_equal(call(x)[1], tape.gradient(f, x)[1])
        assert not np.isnan(call(x)[1]).any()
        x[i] = 1.0


def test_a_factor_outside_a_sum_is_used_only_if_the_sum_is_finite():
    def f(x, c):
        return tape.sum((x * c) * 1e-200)

    x = np.full(100, 1e307)
    value, slope = tape.compile(f, x, 0.5, wrt=0)(x, 0.5)
    assert value == pytest.approx(0.5e109, rel=1e-14)
    np.testing.assert_allclose(slope, np.full(100, 0.5e-200), rtol=1e-14)
    for c in (0.0, 1e200, np.inf, -np.inf, np.nan):
        with np.errstate(all="ignore"):
            expected = tape.gradient(lambda x, c=c: f(x, c), x)[0]
        np.testing.assert_array_equal(tape.compile(f, x, 0.5, wrt=0)(x, c)[0], expected)


@pytest.mark.parametrize("n", [20, 100, 5000])
def test_a_power_of_a_constant_is_compiled_in_every_part_of_a_loop(n):
    x = np.linspace(-1.0, 1.0, n)
    call = tape.compile(lambda x: tape.sum(2.0**x), x)
    assert "eager" not in call.explain()
    np.testing.assert_allclose(call(x)[1], np.log(2.0) * 2.0**x, rtol=1e-14)
