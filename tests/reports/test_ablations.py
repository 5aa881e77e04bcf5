"""The page's section of ablations: which pairs it shows, and their ratios."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adbench.catalog.discovery import catalog
from adbench.model.record import Figure, Memory, Record
from adbench.reports.content import ablations
from adbench.reports.content.cells import Cells
from adbench.reports.content.footnotes import Footnotes
from adbench.reports.formats import markdown
from adbench.reports.html import page as html
from tests.reports import runs


def rows(records: list[Record]) -> list[ablations.AblationRow]:
    cells = Cells(runs.run(records))
    return ablations.rows(cells, Footnotes(cells))


def bytes_of(number: float) -> Memory:
    missing = Figure(None, "not asked for")
    return Memory(Figure(number, None), missing, missing)


CLOSURES = [
    runs.record("projectile", backend="tape", seconds=1e-6),
    runs.record("projectile", backend="tape_closures", seconds=3e-6),
]


def test_the_ratio_is_the_time_without_the_idea_in_times_of_that_with_it() -> None:
    (row,) = rows(CLOSURES)
    assert (row.title, row.instead_of, row.case, row.size) == ("a flat tape", "closures", "projectile", 10)
    assert row.value == pytest.approx(3)
    assert row.ratio.startswith("3")
    assert row.missing is None


def test_two_cases_are_paired_launch_by_launch() -> None:
    (row,) = rows(
        [
            runs.record("solve", backend="tape", seconds=2e-6),
            runs.record("solve_elements", backend="tape", seconds=8e-6),
        ]
    )
    assert row.title == "one node for each matrix operation"
    assert row.value == pytest.approx(4)  # all launches of a run of this kind move together


def test_an_idea_of_which_one_side_is_missing_or_wrong_is_not_shown() -> None:
    assert rows(CLOSURES[:1]) == []
    wrong = runs.record("projectile", backend="tape_closures", status="wrong")
    assert rows([CLOSURES[0], wrong]) == []
    unsupported = runs.record("projectile", backend="tape_closures", status="unsupported")
    assert rows([CLOSURES[0], unsupported]) == []


def test_too_few_launches_give_a_dash_with_its_reason() -> None:
    short = [
        replace(record, time=runs.time(seconds, launches=2))
        for record, seconds in zip(CLOSURES, (1e-6, 3e-6), strict=True)
    ]
    cells = Cells(runs.run(short))
    notes = Footnotes(cells)
    (row,) = ablations.rows(cells, notes)
    assert row.value is None
    assert row.missing is not None
    assert "there are 2" in notes.missing[row.missing - 1]


def test_memory_is_compared_where_both_took_any() -> None:
    def pair(without: float, with_it: float) -> ablations.AblationRow:
        (row,) = rows(
            [
                runs.record("lotka_volterra", backend="tape", memory=bytes_of(without)),
                runs.record("lotka_volterra", backend="tape_checkpointed", memory=bytes_of(with_it)),
            ]
        )
        return row

    assert pair(8000.0, 1000.0).memory == "8.0× (allocated peak)"
    assert pair(8000.0, 0.0).memory == ""


def test_the_page_has_the_section_where_there_is_something_to_show() -> None:
    page = html.render(runs.run(CLOSURES))
    assert '<section id="ablations"' in page
    assert '<a href="#ablations">' in page
    assert 'id="ablations"' not in html.render(runs.run(CLOSURES[:1]))
    assert "| a flat tape | closures | projectile |" in markdown.render(runs.run(CLOSURES)).replace("&#95;", "_")


def test_every_idea_names_cases_of_the_suite_and_backends_that_there_are() -> None:
    known = catalog()
    for idea in ablations.IDEAS:
        assert {idea.with_it, idea.without} <= set(known.backends)
        for case in idea.cases:
            assert "ablations" in known.cases[case].suites, case
            assert "ablations" in known.cases[case + idea.ending].suites, case + idea.ending
