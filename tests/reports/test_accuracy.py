"""Accuracy next to time: the table of a run, and the picture of runs in several types."""

from dataclasses import replace

from adbench.model.record import Record, Run
from adbench.oracle.verdict import UlpErrors
from adbench.reports.content.answer.accuracy import accuracy_rows, in_ulp, time_and_error
from adbench.reports.content.cells import Cells
from adbench.reports.content.footnotes import Footnotes
from adbench.reports.content.sections import MethodRow, table
from adbench.reports.html import over_time, page
from tests.reports import runs


def known(backend: str, seconds: float, median: float, word: str = "right") -> Record:
    """A record whose verdict has errors in ulp."""
    record = runs.record(backend=backend, seconds=seconds, word=word)
    assert record.verdict is not None
    return replace(record, verdict=replace(record.verdict, ulp=UlpErrors(median, 3 * median, 20.0)))


def in_type(dtype: str, *records: Record) -> Run:
    plain = runs.run(records)
    return replace(plain, settings=plain.settings | {"dtype": dtype})


def accuracy(run: Run) -> list[MethodRow]:
    cells = Cells(run)
    return [row for group in table(accuracy_rows, cells, Footnotes(cells)) for row in group.rows]


SINGLE = in_type("float32", known("torch", 2e-6, 0.4), known("jax", 1e-6, 0.2))
BRAIN = in_type("bfloat16", known("torch", 1e-6, 0.3), known("jax", 3e-6, float("inf"), "verified"))


def test_the_page_has_the_errors_of_each_library_next_to_its_time() -> None:
    (row,) = accuracy(SINGLE)
    assert [(entry.text, entry.more) for entry in row.entries] == [
        ("0.4 / 1.2", "2.00\xa0µs"),
        ("0.2 / 0.6", "1.00\xa0µs"),
    ]
    html = page.render(SINGLE)
    assert 'id="accuracy"' in html
    assert "0.4 / 1.2" in html
    assert "in float32, judged by its rounding" in html
    assert in_ulp(12_345.0) == "12\u202f345"
    assert in_ulp(float("inf")) == "∞"


def test_a_run_of_an_earlier_adbench_has_no_errors() -> None:
    earlier = runs.run([runs.record(backend="jax")])
    assert not accuracy(earlier)
    assert 'id="accuracy"' not in page.render(earlier)


def test_a_wrong_result_has_no_error_in_the_table() -> None:
    wrong = in_type("float32", known("torch", 2e-6, 0.4), runs.record(backend="jax", status="wrong"))
    (row,) = accuracy(wrong)
    assert [entry.text for entry in row.entries] == ["0.4 / 1.2", "—"]


def test_runs_in_several_types_are_a_picture_of_time_against_error() -> None:
    (picture,) = time_and_error([SINGLE, BRAIN])
    at = {(point.backend, point.dtype): point for point in picture.points}
    assert len(at) == 4
    assert at["jax", "float32"].x < at["torch", "float32"].x < at["jax", "bfloat16"].x
    assert at["jax", "float32"].y > at["torch", "float32"].y > at["torch", "bfloat16"].y >= at["jax", "bfloat16"].y
    assert "torch in bfloat16: 1.00\xa0µs, error 2.3e-03" in at["torch", "bfloat16"].said
    assert not time_and_error([SINGLE, SINGLE])
    html = over_time.render([("single", SINGLE), ("brain", BRAIN)])
    assert html.count("<title>torch in ") == 2
    assert "Time against error" in html
    assert "<h1>2 runs on 1 machine, in float32, bfloat16</h1>" in html
    assert "Types side by side" in html
    assert "Time against error" not in over_time.render([("single", SINGLE)])
