"""The noise of double precision from series with random rounding: neither too small nor far too large."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_series

from adbench.oracle.series import ball, noisy
from adbench.oracle.series.ball import Arithmetic, Special, arithmetic
from adbench.oracle.series.functions import SEVERAL, UNARY
from adbench.oracle.series.noisy import Noisy, noisy_type, spread
from adbench.oracle.series.number import Real

U = 2.0**-53
DRAWS = 8
Function = Callable[..., Any]
Numbers = Sequence[float]


def apply(name: str, *operands: Any) -> Any:
    """A library function, called like a namespace's."""
    real = next(type(operand) for operand in operands if isinstance(operand, Real))
    function = {**UNARY, **SEVERAL, "abs": ball.absolute}[name]
    return real(real.computed(name, function, *(real.of(operand).ball for operand in operands)))


def coefficients(f: Function, real: type[Real], point: Numbers, direction: Numbers) -> list[Any]:
    """The coefficients of t^0, t^1 and t^2 of f(point + t direction); NaN where it is infinite or NaN."""
    if issubclass(real, Noisy):
        real.stream.restart()
    value = f(*(real(ball.moving(x, {1: v}) if v else arb(x)) for x, v in zip(point, direction, strict=True))).ball
    if isinstance(value, Special):
        return [arb.nan()] * 3
    series = value if isinstance(value, arb_series) else arb_series([value], 3)
    return [series[k] if k < series.prec else arb.nan() for k in range(3)]


def noise(f: Function, *point: float) -> tuple[float, float, float]:
    """σ of the value, of the first derivative and of the second, along the first argument."""
    direction = [1.0] + [0.0] * (len(point) - 1)
    with arithmetic(Arithmetic()):
        truth = coefficients(f, Real, point, direction)
        draws = [coefficients(f, noisy_type(3, draw), point, direction) for draw in range(DRAWS)]
        errors = [[float(noisy - true) for noisy, true in zip(draw, truth, strict=True)] for draw in draws]
    value, first, second = (spread([error[k] for error in errors]) for k in range(3))
    return value, first, 2 * second


def test_a_well_conditioned_function_has_the_noise_of_a_few_roundings() -> None:
    value, first, second = noise(lambda x: apply("sin", x) * apply("exp", x), 0.3)
    assert 0.2 * U < value < 10 * U
    assert 0.2 * U < first < 10 * U
    assert 0.2 * U < second < 20 * U


def test_digits_lost_to_an_offset_are_noise() -> None:
    value, first, second = noise(lambda x: apply("sin", (x + 1e9) - 1e9), 0.3)
    assert 1e-8 < value < 1e-6
    assert 1e-9 < first < 1e-6
    assert 1e-9 < second < 1e-6


def test_an_offset_adds_no_noise_to_derivatives() -> None:
    value, first, _ = noise(lambda x: x * x * x + 1e9, 0.3)
    assert 1e-8 < value < 1e-6
    assert first < 5 * U


def test_exact_values_have_no_noise_but_their_derivatives_have() -> None:
    value, first, second = noise(lambda x: (x * x + 1) * x - 3, 3.0)
    assert value == 0
    assert 0 < first < 100 * U
    assert 0 < second < 100 * U


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 4 * x - 0.5 * ((x + x) + (x + x)),
        lambda x: -(x - 0.25),
        lambda x: abs(x) - x,
        lambda x: (x + 1e-3) - (x + 1e-3),
        lambda x: apply("sin", x) - apply("sin", x),
        lambda x: apply("sqrt", x * 0 + 4) + apply("exp", x - x),
    ],
)
def test_exact_float64_operations_stay_exact(f: Function) -> None:
    assert noise(f, 0.3)[0] == 0


def test_cancelling_derivatives_keep_their_terms_rounding() -> None:
    _, first, second = noise(lambda x: x / x, 0.3)
    assert 0.1 * U < first * 0.3 < 10 * U
    assert 0.1 * U < second * 0.09 < 20 * U
    _, first, second = noise(lambda x: apply("log", apply("exp", x)), 0.3)
    assert 0.1 * U < second < 20 * U  # the two terms of the chain rule
    assert first < 10 * U


def test_derivative_formulas_that_cancel_inside_are_noise() -> None:
    x = 15.0
    slope = 4 * math.exp(-2 * x)
    _, first, second = noise(lambda x: apply("tanh", x), x)
    assert 1e2 * U < first / slope < 1e16 * U  # 1 - tanh² has three digits
    assert second > 1e2 * U * slope


def test_second_derivatives_that_cancel_inside_a_function_are_noise() -> None:
    assert 0.1 * U < noise(lambda x, y: apply("hypot", x, y), 1.3, 1e-5)[2] < 20 * U
    assert 0.1 * U < noise(lambda x, y: apply("logaddexp", x, y), 30.0, 0.0)[2] < 20 * U
    assert 0.1 * U < noise(lambda x: abs(x), 1.3)[2] < 20 * U


def test_the_order_of_a_sum_is_noise() -> None:
    terms = [1e16, 1.0, -1e16, 1.0]
    value = noise(lambda x: type(x)(type(x).total([(x * term).ball for term in terms])), 1.0)[0]
    assert 0.3 < value < 10
    assert noise(lambda x: type(x)(type(x).total([(x * n).ball for n in range(50)])), 3.0)[0] == 0


def test_long_loops_accumulate_rounding() -> None:
    def recurrence(x: Any) -> Any:
        for _ in range(300):
            x = x + apply("sin", x) * 1e-3
        return x

    value, first, _ = noise(recurrence, 0.3)
    assert 3 * U < value < 300 * U
    assert 3 * U < first < 300 * U


def hessian(f: Function, real: type[Real], point: Numbers) -> Any:
    """By polarisation: q(e_i + e_j) - q(e_i) - q(e_j), q the coefficient of t²."""
    n, units = len(point), np.eye(len(point))
    q = {(i, i): coefficients(f, real, point, units[i])[2] for i in range(n)}
    found = [[2 * q[i, i]] * n for i in range(n)]
    for i, j in itertools.combinations(range(n), 2):
        both = coefficients(f, real, point, units[i] + units[j])[2]
        found[i][j] = found[j][i] = both - q[i, i] - q[j, j]
    return found


def test_one_draw_has_one_hessian() -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        total = type(x)(type(x).total([(x * y).ball, apply("tanh", y * z).ball, (z**3).ball]))
        return total / (1 + x * x) + apply("hypot", x, z) * apply("exp", -y)

    point = (0.3, 1.7, -0.6)
    with arithmetic(Arithmetic()):
        for draw in range(3):
            real = noisy_type(5, draw)
            found = hessian(f, real, point)
            v = (0.7, -1.3, 2.1)
            along = 2 * coefficients(f, real, point, v)[2]
            by_entries = sum(found[i][j] * v[i] * v[j] for i in range(3) for j in range(3))
            assert abs(float(along - by_entries)) < 1e-29
            truth = hessian(f, Real, point)
            errors = [
                abs(float(a - b))
                for row, right in zip(found, truth, strict=True)
                for a, b in zip(row, right, strict=True)
            ]
            assert 0 < max(errors) < 1000 * U


@pytest.mark.parametrize(
    ("f", "size"),
    [
        (lambda x, y: apply("atan2", x, y), 1.0),
        (lambda x, y: (x * 3 + y / 7) * (x / 3 - y / 63), 1 / 21),
        (lambda x, y: x / y - y / x, 1.0),
    ],
)
def test_cancelling_mixed_derivatives_keep_their_terms_rounding(f: Function, size: float) -> None:
    with arithmetic(Arithmetic()):
        truth = hessian(f, Real, (1.1, 1.1))[0][1]
        errors = [float(hessian(f, noisy_type(4, draw), (1.1, 1.1))[0][1] - truth) for draw in range(DRAWS)]
    assert 0.1 * U * size < spread(errors) < 30 * U * size


def test_an_entry_that_is_zero_by_structure_has_no_noise() -> None:
    with arithmetic(Arithmetic()):
        for draw in range(3):
            found = hessian(lambda x, y: apply("exp", 3 * x) + apply("sin", y) * 1e-9, noisy_type(1, draw), (1.3, 0.4))
            assert abs(float(found[0][1])) < 1e-40


def test_the_zero_diagonal_of_a_product_has_the_rounding_of_its_quotients() -> None:
    def product(*numbers: Any) -> Any:
        real = type(numbers[0])
        return real(real.product([number.ball for number in numbers]))

    with arithmetic(Arithmetic()):
        found = [hessian(product, noisy_type(4, draw), (0.7, 1.3, 2.1)) for draw in range(DRAWS)]
    assert 0.1 * U < spread([float(draw[0][0]) for draw in found]) < 20 * U
    assert noise(product, 1e-200, 1e-200)[1] == math.inf  # 0 / 1e-200
    assert noise(product, 0.0, 3.0)[1] < 10 * U


def test_every_element_of_a_variance_has_its_own_mean() -> None:
    def variance(x: Any) -> Any:
        real = type(x)
        numbers = [x, real.of(1e8 + 0.5), real.of(1e8 - 0.75)]
        mean = real(real.total([number.ball for number in numbers])) / 3
        gaps = [real(real.computed("centred", ball.sub, number.ball, mean.ball)) for number in numbers]
        return real(real.total([(gap * gap).ball for gap in gaps]))

    assert 1e-9 < noise(variance, 1e8)[1] < 1e-6


def test_draws_repeat_and_differ() -> None:
    def value(seed: int, draw: int) -> Any:
        return coefficients(lambda x: apply("sin", x) * x / 3, noisy_type(seed, draw), (0.3,), (1.0,))

    with arithmetic(Arithmetic()):
        again = [value(0, 1), value(0, 1)]
        assert all(a == b for a, b in zip(*again, strict=True))
        real = noisy_type(0, 1)
        repeated = [coefficients(lambda x: apply("sin", x) * x / 3, real, (0.3,), (1.0,)) for _ in range(2)]
        assert all(a == b for a, b in zip(*repeated, strict=True))
        assert len({str(value(seed, draw)[1]) for seed in range(2) for draw in range(3)}) == 6


def test_perturbations_do_not_depend_on_the_precision_at_creation() -> None:
    noisy._table.cache_clear()
    table, _ = noisy._table(2.0**-53)  # outside any arithmetic
    factors = {str(factor.man_exp()) for steps in table for factor in steps}
    assert len(factors) > 10_000


def test_balls_do_not_widen() -> None:
    def chaotic(x: Any) -> Any:
        for _ in range(400):
            x = 3.9 * x * (1 - x)
        return x

    with arithmetic(Arithmetic()):
        found = coefficients(chaotic, noisy_type(0, 0), (0.3,), (1.0,))
        assert all(c.is_exact() for c in found)
        assert float(found[0]) == found[0]  # a float64


def test_values_are_possible_float64_results() -> None:
    """Every value is one of the two float64 next to the exact result of the operation on such values."""
    with arithmetic(Arithmetic()):
        for draw in range(4):
            real = noisy_type(2, draw)
            for a, b in np.random.default_rng(draw).normal(size=(20, 2)).tolist():
                product = Fraction(a) * Fraction(b)
                below = (
                    float(product) if Fraction(float(product)) <= product else math.nextafter(float(product), -math.inf)
                )
                found = float((real(arb(a)) * b).ball)
                assert found in (below, math.nextafter(below, math.inf))


def test_a_relevant_overflow_makes_the_result_unknown() -> None:
    assert noise(lambda x: apply("sqrt", x * x + 1.0), 1e200) == (math.inf, math.inf, math.inf)
    assert noise(lambda x: apply("log", apply("exp", x)), 800.0)[1] == math.inf


def test_an_irrelevant_overflow_is_not_noise() -> None:
    value, first, second = noise(lambda x: 1 / (1 + apply("exp", -x)), -800.0)
    assert value == first == second == 0.0
    _, first, _ = noise(lambda x: apply("hypot", x, type(x).of(1.0)), 1e200)
    assert first < 20 * U


def test_subnormal_values_have_an_absolute_error() -> None:
    value, first, _ = noise(lambda x: 1e-310 * apply("sin", x), 0.3)
    assert 1e-324 < value < 2e-323
    assert 1e-324 < first < 2e-323
    scaled = noise(lambda x: apply("sin", 1e310**0.5 * 1e155 * (1e-310 * apply("sin", x))), 0.3)
    assert scaled[0] > 1e-15  # of the remaining 14 digits


def test_partial_derivatives_out_of_range_leave_the_second_derivative_unknown() -> None:
    assert noise(lambda y, x: apply("atan2", y, x), 1e150, 2e150)[2] == math.inf
    _, first, second = noise(lambda x: 1e-150 / (1e-150 * x), 0.7)
    assert first < 20 * U
    assert second == math.inf


def test_the_spread_is_relative_to_the_reference() -> None:
    assert spread([3.0, -4.0]) == pytest.approx(math.sqrt(12.5))
    assert spread([2.0, 2.0]) == pytest.approx(2.0)
    assert spread([1e200, 1e200]) == pytest.approx(1e200)
    assert spread([0.0, 0.0]) == 0
    assert spread([1.0, math.nan]) == math.inf
    assert spread([1.0, -math.inf]) == math.inf


def inverse_noise(gap: float, *, together: bool) -> float:
    """σ of the derivative of an entry of the inverse of [[1, 1], [1, 1 + gap]]."""

    def entry(x: Any) -> Any:
        real = type(x)
        rows = [[real.of(1.0).ball, x.ball], [x.ball if together else real.of(1.0).ball, real.of(1.0 + gap).ball]]
        (a, b), (c, d) = [[real(value) for value in row] for row in real.matrix(rows, symmetric=False, mixing=False)]
        # Exactly, like the decomposition itself.
        determinant = ball.sub(ball.mul(a.ball, d.ball), ball.mul(b.ball, c.ball))
        return real(real.rounded(ball.div(a.ball, determinant)))

    return noise(entry, 1.0)[1]


def test_the_noise_of_a_decomposition_follows_the_condition() -> None:
    for gap in (1e-2, 1e-4):
        size = 1 / gap**2  # of the derivative
        assert 0.1 * U / gap < inverse_noise(gap, together=False) / size < 100 * U / gap


def test_second_derivatives_of_a_decomposition_solve_again_with_other_rounding() -> None:
    """log det of v vᵀ + g I: terms of size 1/g² cancel, each with the rounding of a separate solution."""

    def log_determinant(x: Any) -> Any:
        real, y, gap = type(x), type(x).of(0.7), 1e-5
        rows = [[(x * x + gap).ball, (x * y).ball], [(x * y).ball, (y * y + gap).ball]]
        (a, b), (c, d) = real.matrix(rows, symmetric=False, mixing=False)
        return real(real.rounded(UNARY["log"](ball.sub(ball.mul(a, d), ball.mul(b, c)))))

    assert 0.01 * U / 1e-10 < noise(log_determinant, 1.3)[2] < 1e4 * U / 1e-10


def test_a_matrix_without_elimination_is_exact() -> None:
    with arithmetic(Arithmetic()):
        real = noisy_type(0, 0)
        rows = [[arb(3), arb(0), arb(0)], [arb(0), arb(0), arb(7)], [arb(0), arb(0.1), arb(0)]]
        assert real.matrix(rows, symmetric=False, mixing=False) == rows
        rows[0][1] = arb(1e-3)
        moved = real.matrix(rows, symmetric=False, mixing=False)
        assert moved[0][1] != rows[0][1]
        assert moved[1][0] == 0
        assert moved[2][0] != 0  # filled in
        lower = real.matrix([[arb(2), arb(5)], [arb(1), arb(2)]], symmetric=True, mixing=False)
        assert lower[0][1] == 5
        assert lower[1][0] != 1
