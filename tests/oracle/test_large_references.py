"""References of large scalar functions: enclosures take over where power series take too long."""

import math
from typing import Any

import numpy as np
import pytest

from adbench.catalog.discovery import catalog
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.references import known_at, subject_of
from adbench.oracle.compute import DIFFERENCES
from adbench.oracle.compute import reference as of_any_shape
from adbench.oracle.enclosures import enclosed_row
from adbench.oracle.reference import Row
from adbench.oracle.subject import Effort
from tests.oracle.scalars import judge, reference

N = 200_000
X = np.random.default_rng(5).normal(size=N)
CASES = ("attention", "determinant_by_minors", "eight_schools", "gaussian_mixture", "lennard_jones", "log_sum_exp")


def text(xp: Any, x: Any) -> Any:
    return xp.sum(xp.exp(x) * x) / 7.0


def large(text: Any = text, x: Any = X, **effort: Any) -> Row:
    return reference(lambda *args: text(np, *args), (x,), (0,), text=text, enclosures=True, **effort)


def test_enclosures_prove_what_series_cannot_follow() -> None:
    found, gradient = large(), np.exp(X) * (1 + X) / 7
    assert (found.method, found.noise, found.proved) == (enclosed_row.METHOD, enclosed_row.NOISE, True)
    assert judge(text(np, X), (gradient,), found).word == "right"
    inside = found.leaves[0].entries[3].index
    outside = next(i for i in range(N) if i not in {entry.index for entry in found.leaves[0].entries})
    for index, size in ((inside, 1e-8), (outside, 1e-3)):
        spoiled = gradient.copy()
        spoiled[index] += size
        assert judge(text(np, X), (spoiled,), found).word == "wrong"


def test_linear_algebra_of_large_matrices_is_proved() -> None:
    a = np.random.default_rng(6).normal(size=(2, 100, 100))

    def systems(xp: Any, a: Any) -> Any:
        return xp.sum(xp.linalg.solve(a, np.ones((2, 100, 1)))) + xp.sum(xp.linalg.slogdet(a)[1])

    row = large(systems, a, max_seconds=0.5)
    assert (row.method, row.proved) == (enclosed_row.METHOD, True)
    x, inverse = np.linalg.solve(a, np.ones((2, 100, 1))), np.swapaxes(np.linalg.inv(a), -1, -2)
    gradient = inverse - inverse @ np.ones((2, 100, 1)) @ np.swapaxes(x, -1, -2)
    assert judge(systems(np, a), (gradient,), row).word in ("right", "verified")
    index = row.leaves[0].entries[2].index
    gradient.flat[index] *= 1 + 1e-4
    assert judge(systems(np, a), (gradient,), row).word == "wrong"


def test_a_matrix_of_more_rows_than_balls_take_is_proved() -> None:
    rng = np.random.default_rng(8)
    a, x = 2 * np.eye(260) + rng.normal(size=(260, 260)) / 20, rng.normal(size=260)

    def terms(xp: Any, a: Any, x: Any) -> Any:
        a = a + xp.linalg.outer(x, x)
        of_rows = xp.linalg.vecdot(xp.linalg.solve(a, x), x)
        return xp.linalg.slogdet(a)[1] + xp.linalg.trace(a) + xp.sum(xp.log(xp.abs(xp.linalg.diagonal(a)))) + of_rows

    at = (lambda *args: terms(np, *args)), (a, x), (0, 1)
    row = reference(*at, text=terms, enclosures=True, max_seconds=0.5)
    assert (row.method, row.proved) == (enclosed_row.METHOD, True)
    matrix = a + np.outer(x, x)
    inverse, solution = np.linalg.inv(matrix), np.linalg.solve(matrix, x)
    of_matrix = inverse.T + np.eye(260) + np.diag(1 / np.diagonal(matrix)) - np.outer(inverse.T @ x, solution)
    of_vector = solution + inverse.T @ x + (of_matrix + of_matrix.T) @ x
    assert judge(terms(np, a, x), (of_matrix, of_vector), row).word in ("right", "verified")
    of_vector[row.leaves[1].entries[2].index] *= 1 + 1e-6
    assert judge(terms(np, a, x), (of_matrix, of_vector), row).word == "wrong"


@pytest.mark.parametrize("name", CASES)
def test_enclosures_and_series_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the numbers, and on what rounding explains to a factor: by so many draws that it is known to an eighth."""
    monkeypatch.setattr(enclosed_row, "FEWEST_DRAWS", 32)
    case = catalog().cases[name]
    subject = subject_of(point(case, case.quick_sizes[0], 0))
    effort = Effort(0, max_seconds=30.0)
    rows = enclosed_row.enclosed_row(subject, effort), of_any_shape(subject, effort).scalar
    assert rows[1].proved
    numbers, others = ([row.value, *row.derivatives] for row in rows)
    for one, other in zip(numbers, others, strict=True):
        radius = 25 * one.bar
        assert abs(one.lower - other.lower) <= radius + other.bar
        assert radius <= 1e-9 * max(1.0, one.size)
    tolerated = [[20 * known.noise + 8 * 2.0**-53 * known.size for known in of] for of in (numbers, others)]
    ratios = np.divide(*tolerated)
    assert 0.5 < math.exp(np.mean(np.log(ratios))) < 8
    assert ratios.min() > 0.2


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda xp, x: xp.sum(xp.wavelet(x) if xp is not np else x), "it does not run on enclosures"),
        (lambda xp, x: xp.sum(xp.log(xp.abs(x - X[0]) + 0.0) * 0.0), "do not bound all"),
    ],
)
def test_what_enclosures_do_not_bound_is_left_to_differences(function: Any, reason: str) -> None:
    found = large(function, max_evaluations=300)
    assert (found.method, found.proved) == (DIFFERENCES, False)
    assert reason in found.reason


def test_the_values_decide_where_a_program_branches() -> None:
    def branching(xp: Any, x: Any) -> Any:
        return xp.sum(x * x) if x[0] > -9.0 else 0.0 * xp.sum(x)

    for decide, method in ((True, DIFFERENCES), (False, enclosed_row.METHOD)):
        assert large(branching, max_evaluations=300, against_values=lambda decide=decide: decide).method == method


def test_too_many_numbers_on_the_way_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enclosed_row, "MOST", 3 * N)
    assert "more than 600,000 numbers" in large(max_evaluations=300).reason


def test_a_large_case_has_its_reference_within_seconds() -> None:
    """A thousand tokens: the mask alone has a million entries. Differences would take 20,000 evaluations."""
    case = catalog().cases["attention"]
    known = known_at(point(case, 300, 0), second_order=False, seconds=1.0).first
    assert known.scalar.method == enclosed_row.METHOD
    assert known.all_outputs.proved
