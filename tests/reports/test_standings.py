"""The order of backends over a whole run."""

from __future__ import annotations

import pytest

from adbench.model.record import Record
from adbench.reports.content import ranking, standings
from adbench.reports.content.cells import Cells
from tests.reports import runs


def race(case: str, times: list[tuple[str, float]], word: str | None = "right") -> list[Record]:
    return [runs.record(case=case, backend=name, seconds=seconds, word=word) for name, seconds in times]


def order(records: list[Record]) -> list[str]:
    return [standing.backend for standing in standings.standings(Cells(runs.run(records)))]


def test_the_geometric_mean_of_slowdowns_decides() -> None:
    records = [*race("one", [("a", 1e-6), ("b", 4e-6)]), *race("two", [("a", 9e-6), ("b", 1e-6)])]
    found = {s.backend: s for s in standings.standings(Cells(runs.run(records)))}
    assert order(records) == ["b", "a"]
    assert found["a"].slowdown == pytest.approx(3.0)
    assert found["b"].slowdown == pytest.approx(2.0)


def test_who_is_ranked_on_few_cases_stands_after_who_is_ranked_on_most() -> None:
    records = [record for case in ("one", "two", "three") for record in race(case, [("slow", 9e-6), ("slower", 1e-5)])]
    assert order([*records, *race("one", [("quick", 1e-9)])]) == ["slow", "slower", "quick"]


def test_a_case_where_a_backend_is_not_ranked_counts_with_the_largest_slowdown_there() -> None:
    both = race("one", [("first", 1e-6), ("all", 3e-6), ("most", 2e-6)])
    hard = race("two", [("first", 1e-6), ("all", 1e-4)])
    found = {s.backend: s for s in standings.standings(Cells(runs.run([*both, *hard])))}
    assert order([*both, *hard]) == ["first", "most", "all"]
    assert order([*both, *hard, *race("two", [("slow", 2e-3)])]) == ["first", "all", "most", "slow"]
    assert found["most"].slowdown == pytest.approx(2.0)
    assert found["most"].ranked == 1


@pytest.mark.parametrize("word", ["wrong", "approximate", "blind", None])
def test_what_is_not_ranked_stands_last_however_fast(word: str | None) -> None:
    assert order([*race("one", [("fast", 1e-12)], word), *race("one", [("right", 1e-3)])]) == ["right", "fast"]


def test_a_cell_that_is_not_ranked_has_no_slowdown() -> None:
    cells = Cells(runs.run([*race("one", [("a", 1e-6), ("b", 2e-6)]), *race("one", [("c", 1e-9)], "wrong")]))
    found = ranking.lead(cells, "one")
    assert found is not None
    assert [standings.slowdown(found, cells.cell("one", found.size, name)) for name in ("a", "c")] == [1.0, None]
    assert standings.slowdown(found, cells.cell("one", found.size, "b")) == pytest.approx(2.0)
