"""Who is called right and fast: decisions, tested as values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adbench.model.record import Record
from adbench.reports.content import ranking
from adbench.reports.content.cells import Cells, cell_of
from adbench.reports.text import terminal
from tests.reports import runs


def _lead(records: list[Record]) -> ranking.Lead | None:
    return ranking.lead(Cells(runs.run(records)), "quadratic")


def _names(cells: tuple[object, ...]) -> list[str]:
    return [cell.job.backend for cell in cells]  # type: ignore[attr-defined]


def test_the_fastest_right_result_leads_and_the_next_is_told_with_its_factor() -> None:
    lead = _lead(runs.race([("slow", 6e-6), ("fast", 2e-6)]))
    assert lead is not None
    assert _names(lead.leaders) == ["fast"]
    _, slow = lead.ranked
    assert slow.job.backend == "slow"
    interval = lead.interval(slow)
    assert interval is not None
    assert interval.estimate == pytest.approx(3)


def test_what_is_not_told_from_the_fastest_shares_the_lead() -> None:
    shaky = runs.record(backend="shaky", seconds=1.01e-6, wobble=0.2)
    lead = _lead([*runs.race([("a", 1.00e-6), ("c", 4e-6)]), shaky])
    assert lead is not None
    assert _names(lead.leaders) == ["a", "shaky"]
    assert lead.winner is None
    assert ranking.wins([lead]) == []


def test_overlapping_quartiles_do_not_hide_what_the_pairs_tell() -> None:
    lead = _lead(runs.race([("a", 1.00e-6), ("b", 1.04e-6)]))  # each is 5 % away from its median, both at once
    assert lead is not None
    assert _names(lead.leaders) == ["a"]


def test_with_too_few_launches_nobody_is_the_fastest() -> None:
    lead = _lead([replace(r, time=runs.time(launches=3)) for r in runs.race([("a", 1e-6), ("b", 9e-6)])])
    assert lead is not None
    assert lead.winner is None
    assert not any(lead.place(cell) for cell in lead.ranked)  # and there is no tie: one takes nine times as long


@pytest.mark.parametrize("word", ["approximate", "verified", "blind", "inconclusive", "wrong", None])
def test_nothing_but_right_is_ranked_however_fast(word: str | None) -> None:
    quick = runs.record(backend="quick", word=word, seconds=1e-12)
    lead = _lead([quick, *runs.race([("tape", 1e-6)])])
    assert lead is not None
    assert _names(lead.ranked) == ["tape"]


def test_the_largest_common_size_is_where_most_backends_are_right() -> None:
    records = [runs.record(size=n, backend=b) for n in (1, 10, 100) for b in ("a", "b") if (n, b) != (100, "b")]
    lead = _lead(records)
    assert lead is not None
    assert lead.size == 10


def test_one_backend_alone_wins_nothing() -> None:
    lead = _lead([runs.record()])
    assert lead is not None
    assert ranking.wins([lead]) == []


def test_a_later_success_does_not_hide_a_wrong_derivative() -> None:
    cells = Cells(runs.run([runs.record(status="wrong"), runs.record()]))
    assert cells.cell("quadratic", 10, "tape").word == "wrong"
    cells = Cells(runs.run([runs.record(), runs.record(status="wrong")]))
    assert cells.cell("quadratic", 10, "tape").word == "wrong"


def test_a_status_that_contradicts_its_verdict_is_taken_at_its_worst() -> None:
    assert cell_of(replace(runs.record(), verdict=runs.verdict("wrong"))).word == "wrong"
    assert cell_of(replace(runs.record(status="crashed"), verdict=runs.verdict("right"))).word == "crashed"


def test_who_is_right_on_most_cells_comes_first() -> None:
    records = [runs.record(size=n, backend=b) for n in (1, 10) for b in ("half", "all", "whole")]
    records[0] = runs.record(size=1, backend="half", status="failed")
    scores = ranking.scores(Cells(runs.run(records)))
    assert [(score.backend, score.right) for score in scores] == [("all", 2), ("whole", 2), ("half", 1)]


def test_a_run_without_gradients_leads_with_what_it_has() -> None:
    cells = Cells(runs.run([runs.record(operator="value")]))
    assert cells.operator == "value"
    assert Cells(runs.run()).operator == "gradient"
    assert Cells(runs.run([runs.record(operator="hessian")])).operator == "hessian"


def test_a_case_whose_value_is_an_array_is_shown_with_its_jacobian() -> None:
    found = runs.run(
        [runs.record("quadratic", seconds=1e-6), runs.record("quadratic", backend="jax", seconds=2e-6)]
        + [runs.record("many", operator=op, seconds=3e-6) for op in ("value", "jacobian")]
        + [runs.record("many", backend="jax", operator=op, seconds=6e-6) for op in ("value", "jacobian")]
    )
    cells = Cells(found)
    assert [cell.job.operator for cell in cells.row("many", 10)] == ["jacobian", "jacobian"]
    assert cells.shown == ("gradient", "jacobian")
    leading = ranking.race(cells, "many", 10)
    assert leading is not None
    assert leading.winner is not None
    assert leading.winner.job.backend == "tape"
    text = terminal.table(found)
    assert "not run" not in text
    assert "Slowdown of the gradient or jacobian relative to the fastest" in text


def test_an_operator_that_nobody_has_for_a_case_is_not_what_it_is_shown_with() -> None:
    asked_for_both = [
        runs.record("many", backend=name, operator=op, status="ok" if op == "jacobian" else "unsupported")
        for name in ("tape", "jax")
        for op in ("gradient", "jacobian")
    ]
    cells = Cells(runs.run([runs.record("quadratic"), *asked_for_both]))
    assert cells.operator_of("many") == "jacobian"
    nowhere = Cells(runs.run([runs.record("quadratic"), runs.record("none", status="unsupported")]))
    assert nowhere.operator_of("none") == "gradient"
