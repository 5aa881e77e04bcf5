"""One wrong entry, or two exchanged ones, among a hundred thousand are found; the verdict states the limits."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from adbench.oracle.leaves import Point, weighted_sum
from adbench.oracle.operators import cotangent, judge_operator
from adbench.oracle.reference import Reference
from adbench.oracle.verdict import Verdict
from tests.oracle import closed_forms

N = 100_000
X = np.random.default_rng(18).uniform(0.2, 1.3, N)
SIZES = 10.0 ** np.random.default_rng(19).uniform(-10.5, 1, N)
B = 0.75
AT = Point((X,), (0,), ("x",))
LONG = X.astype(np.longdouble)
SCALARS = ("gradient", "value_and_gradient", "vjp")
ARRAYS = ("value", "jvp", "jacobian", "vjp of an array")


@cache
def known(of_array: bool) -> Reference:
    """Of b Σ s sin x, or of its terms; b and s are constants."""
    terms, slopes = SIZES * np.sin(LONG), B * SIZES * np.cos(LONG)
    if not of_array:
        return closed_forms.scalar(AT, B * terms.sum(), [slopes])

    def row(k: int) -> closed_forms.Gradient:
        return [np.where(np.arange(N) == k, slopes, 0)]

    return closed_forms.matrix(AT, B * terms, row, lambda w: [w * slopes], most_rows=3)


def numbers() -> tuple[Any, Any]:
    """The terms and their derivatives in double precision, like a library's."""
    return B * SIZES * np.sin(X), B * SIZES * np.cos(X)


Fault = Callable[[Any], None]  # of many numbers, in place


def verdict(operator: str, fault: Fault = lambda numbers: None) -> Verdict:
    """The verdict on a correct result with a planted fault."""
    terms, slopes = numbers()
    of_array = operator in ARRAYS
    (v,) = AT.direction(0, 0)
    w = cotangent((N,), 0)
    many: Any = {"value": terms, "jvp": slopes * v, "vjp of an array": w * slopes}.get(operator, slopes.copy())
    fault(many)
    result = {
        "gradient": lambda: (many,),
        "value_and_gradient": lambda: (terms.sum(), (many,)),
        "vjp": lambda: (-2 * many,),
        "value": lambda: many,
        "jvp": lambda: many,
        "jacobian": lambda: (scipy.sparse.csc_array(scipy.sparse.diags_array(many)),),
        "vjp of an array": lambda: (many,),
    }[operator]()
    return judge_operator(operator.partition(" ")[0], result, known(of_array))


def unseen(count: int) -> list[int]:
    """Entries that are not compared individually."""
    seen = {e.index for e in known(False).scalar.leaves[0].entries} | {index for index, _ in known(True).outputs}
    return [int(k) for k in np.random.default_rng(3).permutation(N) if int(k) not in seen][:count]


def scaled(numbers: Any) -> None:
    numbers[next(k for k in unseen(1000) if abs(numbers[k]) > 1e-3)] *= 1 + 1e-6


def exchanged(numbers: Any) -> None:
    """Two neighbours of the same sign that differ by about a hundredth."""
    places = unseen(1000)
    near = sorted((k for k in places if numbers[k] > 1e-6), key=lambda k: numbers[k])
    one, other = min(pairwise(near), key=lambda pair: abs(numbers[pair[1]] / numbers[pair[0]] - 1.01))
    assert numbers[one] != numbers[other]
    numbers[[one, other]] = numbers[[other, one]]


def small(numbers: Any) -> int:
    return min((k for k in unseen(20_000) if abs(numbers[k]) > 1.5e-11), key=lambda k: abs(numbers[k]))


def flipped(numbers: Any) -> None:
    """An entry a million million times smaller than the largest."""
    numbers[small(numbers)] *= -1


def forgotten(numbers: Any) -> None:
    numbers[small(numbers)] = 0.0


def a_nan(numbers: Any) -> None:
    numbers[unseen(1)] = np.nan


@pytest.mark.parametrize("operator", [*SCALARS, *ARRAYS])
def test_a_correct_result_is_right_and_states_the_largest_hidden_error(operator: str) -> None:
    found = verdict(operator)
    assert found.word == "right", found.sentence
    assert found.hidden is not None
    assert 0 < found.hidden.of_largest < 1e-9
    assert found.hidden.of_largest < found.hidden.of_median < 1e-5
    assert "were compared in sums only, where an error of" in found.sentence


@pytest.mark.parametrize("fault", [scaled, exchanged, flipped, forgotten, a_nan])
@pytest.mark.parametrize("operator", [*SCALARS, *ARRAYS])
def test_one_wrong_entry_or_two_exchanged_of_a_hundred_thousand_are_found(operator: str, fault: Fault) -> None:
    found = verdict(operator, fault)
    assert found.word == "wrong", found.sentence


@pytest.mark.parametrize("operator", ["gradient", "vjp", "value", "jvp"])
def test_no_error_larger_than_the_stated_one_can_hide(operator: str) -> None:
    right = verdict(operator).hidden
    assert right is not None
    for k in unseen(6):

        def off(numbers: Any, k: int = k) -> None:
            numbers[k] += 1.001 * right.error * (2 if operator == "vjp" else 1)

        assert verdict(operator, off).word == "wrong"


@pytest.mark.parametrize(
    "rounded",
    [
        lambda g: g * (1 + 5e-16),
        lambda g: g + 3 * (np.nextafter(g, np.inf) - g),
        lambda g: g - 3 * (np.nextafter(g, np.inf) - g),
        lambda g: np.where(np.arange(g.size) % 2, g * (1 + 6e-16), g * (1 - 6e-16)),
    ],
    ids=["all by the same", "all up", "all down", "in turns"],
)
def test_dependent_rounding_errors_raise_no_alarm(rounded: Callable[[Any], Any]) -> None:
    def fault(numbers: Any) -> None:
        numbers[...] = rounded(numbers)

    for operator in ("gradient", "value", "jvp", "vjp of an array"):
        found = verdict(operator, fault)
        assert found.word == "right", found.sentence


def test_a_verdict_without_sums_states_that() -> None:
    without = known(False).mapped(lambda row: row.__class__(**{**vars(row), "directions": ()}))
    found = judge_operator("gradient", (numbers()[1],), without)
    assert found.word == "right"
    assert "99936 entries of x were not compared" in found.sentence
    assert found.hidden is not None
    assert np.isinf(found.hidden.error)


@pytest.mark.parametrize("size", [1.0, 1e-320, 1e306])
def test_a_weighted_sum_is_rounded_once(size: float) -> None:
    from fractions import Fraction

    rng = np.random.default_rng(5)
    numbers = size * rng.uniform(-1, 1, 999)
    weights = rng.integers(-2047, 2048, 999) / 2048.0
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(numbers, weights, strict=True))
    assert abs(weighted_sum(numbers, weights) - float(exact)) <= 2.0**-52 * abs(float(exact)) + 1e-321
    assert weighted_sum(np.full(4, 1.5e308), np.ones(4)) == np.inf
    with np.errstate(invalid="ignore"):
        assert np.isnan(weighted_sum(np.array([np.inf, -np.inf, 1.0]), np.ones(3)))
