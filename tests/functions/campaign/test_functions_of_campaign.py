"""No false ✗, ✓ or proof in functions with known derivatives. `python -m tests.functions.campaign` prints a table."""

import warnings
from collections import Counter

import pytest

from tests.functions.campaign.all_rows import KINDS, ROWS
from tests.functions.campaign.examine import fault, outcome
from tests.functions.campaign.row import Row
from tests.support.marks import one_in

MOST_BLIND = 20  # of all rows
MOST_REFUSED = 3

FIRST = {kind: next(row for row in ROWS if row.kind == kind) for kind in KINDS}


def judged(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of libraries are not verdicts
        reason = fault(row)
    assert reason in ("", "refused"), f"{reason}: {row}: {outcome(row)}"


def test_there_are_hundreds_of_functions_and_no_two_have_the_same_name() -> None:
    assert len(set(map(str, ROWS))) == len(ROWS)
    assert len(ROWS) >= 300
    assert sum(row.expected in ("wrong", "elsewhere") for row in ROWS) >= 100
    assert {row.library for row in ROWS} == {"jax", "torch", "autograd", "numpy", "tape"}


@pytest.mark.parametrize("kind", one_in(3, KINDS))
def test_a_function_of_each_kind_is_judged_as_it_deserves(kind: str) -> None:
    judged(FIRST[kind])


def mostly(rows: list[Row]) -> list[object]:
    """All rows with branches and every eighth other one as slow tests, the others as exhaustive ones."""
    return [
        pytest.param(row, marks=pytest.mark.exhaustive if k % 8 and row.module != "hidden" else pytest.mark.slow)
        for k, row in enumerate(rows)
    ]


@pytest.mark.parametrize("row", mostly(ROWS), ids=str)
def test_a_function_is_judged_as_it_deserves(row: Row) -> None:
    judged(row)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_few_functions_are_blind_or_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        words = Counter(outcome(row).word for row in ROWS)
    assert words["blind"] <= MOST_BLIND, words
    assert words["refused"] <= MOST_REFUSED, words
