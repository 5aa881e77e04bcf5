"""Further numbers of threads in reports: a section of their own, and no other table, ranking or file with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adbench.model.record import Record, Run
from adbench.model.serialization import to_plain
from adbench.reports.content import sections
from adbench.reports.content.cells import Cells
from adbench.reports.content.footnotes import Footnotes
from adbench.reports.formats import code_quality, junit, markdown, sarif, spreadsheet
from adbench.reports.html import page
from adbench.reports.text import terminal
from adbench.results.analysis import ratios, speedups
from adbench.results.compare import compare
from adbench.results.comparison_inputs import key_called, name_of, of_run
from adbench.results.store import from_data
from tests.reports import runs


def threaded(threads: int, **about: object) -> Record:
    record = runs.record(**about)  # type: ignore[arg-type]
    return replace(record, job=replace(record.job, threads=threads))


OWN = [
    runs.record(backend="tape", seconds=9e-6),
    runs.record(backend="jax", seconds=8e-6),
    runs.record(backend="torch", seconds=6e-6),
    runs.record(backend="numpy", seconds=7e-6),
]
MORE = (
    threaded(2, backend="jax", seconds=5e-6),
    threaded(2, backend="torch", status="wrong", reason="with 2 threads: 3 of 4 numbers are wrong"),
    threaded(4, backend="jax", seconds=2e-6, wobble=0.02),
    threaded(4, backend="torch", status="crashed", reason="with 4 threads: died of SIGSEGV"),
)


def run_of(records: list[Record] | None = None, more: tuple[Record, ...] = MORE) -> Run:
    run = runs.run(OWN if records is None else records)
    return replace(run, threaded=more, settings=run.settings | {"threads": 1, "more_threads": "2, 4"})


def texts(run: Run) -> dict[str, list[str]]:
    cells = Cells(run)
    groups = sections.table(sections.thread_rows, cells, Footnotes(cells))
    return {row.backend: [" ".join(e.text.split()) for e in row.entries] for group in groups for row in group.rows}


def test_a_row_has_times_speed_ups_and_efficiencies_of_each_number() -> None:
    found = texts(run_of())
    assert list(found) == ["jax", "torch"]  # the others use no threads
    own, two, speedup, efficiency, four, more, less = found["jax"]
    assert (own, two, speedup, efficiency) == ("8.00 µs", "5.00 µs", "1.60× (1.60–1.60)", "80 %")
    assert four == "2.04 µs"
    assert more.startswith("4.0")
    assert "–" in more
    assert less == "100 %"
    assert found["torch"] == ["6.00 µs", "wrong", "—", "—", "crashed", "—", "—"]


def test_the_efficiency_is_relative_to_the_runs_own_number() -> None:
    run = run_of()
    (found,) = speedups(replace(run, threaded=MORE[2:3], settings=run.settings | {"threads": 2}))
    assert found.efficiency == pytest.approx(2.0, rel=0.05)  # 4 times as fast with twice the threads


def test_only_correct_results_with_both_numbers_have_a_speed_up() -> None:
    assert [found.job.threads for found in speedups(run_of())] == [2, 4]
    wrong = runs.record(backend="jax", status="wrong")
    assert speedups(run_of([wrong, *OWN[:1]])) == ()
    value = threaded(2, backend="jax", operator="value", status="wrong")
    assert [found.job.threads for found in speedups(run_of(more=(*MORE, value)))] == [4]
    few = tuple(replace(r, time=runs.time(1e-6, launches=3)) for r in MORE[:1])
    (found,) = speedups(run_of(more=few))
    assert found.interval is None
    assert found.reason == "an interval needs 4 common launches; there are 3"


def test_no_ranking_comparison_or_export_changes_with_further_numbers() -> None:
    with_more, without = run_of(), run_of(more=())
    assert ratios(with_more) == ratios(without)
    assert of_run(with_more, "x").samples == of_run(without, "x").samples
    compared = compare(of_run(without, "a"), of_run(with_more, "b"), absolute=True)
    assert len(compared.rows) == len(OWN)
    for file in (spreadsheet, markdown):
        assert file.render(with_more) == file.render(without)
    verdicts = (
        sections.table(sections.verdict_rows, Cells(run), Footnotes(Cells(run))) for run in (with_more, without)
    )
    first, second = ([row.entries for group in groups for row in group.rows] for groups in verdicts)
    assert [[e.text for e in row] for row in first] == [[e.text for e in row] for row in second]


def test_failures_with_further_numbers_are_in_every_report_of_failures() -> None:
    run = run_of()
    for text in (junit.render(run), sarif.render(run), code_quality.render(run)):
        assert "with 2 threads: 3 of 4 numbers are wrong" in text
    shown = " ".join(terminal.table(run, width=100).split())
    assert "✗ wrong: torch" in shown
    assert "Threads speed-up with 2: jax 1.6×; wrong with 2: torch 1 of 1 result" in shown.replace("\u00a0", " ")
    html = page.render(run)
    assert '<section id="threads"' in html
    assert "3 of 4 numbers are wrong" in html
    assert '<section id="threads"' not in page.render(run_of(more=()))


def test_a_cells_name_has_its_threads_and_a_file_without_them_is_read() -> None:
    job = MORE[0].job
    assert name_of(job) == "quadratic[10]-jax-gradient-threads=2"
    assert key_called(name_of(job)) == job
    assert key_called("quadratic[10]-jax-gradient") == replace(job, threads=0)
    old = runs.run(OWN[:1])
    data = to_plain(old)
    del data["threaded"]
    assert "threads" not in data["records"][0]["job"]
    assert from_data(data, Path("old.json")) == old
