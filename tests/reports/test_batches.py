"""Many points at once: the time of each point, loops by name, and from how many points on a batch pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adbench.model.record import Record
from adbench.reports.content import sections
from adbench.reports.content.cells import Cells
from adbench.reports.content.footnotes import Footnotes
from adbench.reports.html import page as html
from adbench.reports.text import terminal
from tests.reports import runs

LOOP = "from gradient in a loop"


def batches(backend: str, times: dict[int, float], how: str = "native") -> list[Record]:
    """Batches of one backend: number of points -> seconds."""
    memory = runs.memory(python=2048.0)
    found = [
        runs.record(backend=backend, operator=f"batch_gradient_{n}", seconds=seconds, memory=memory)
        for n, seconds in times.items()
    ]
    return [replace(record, how=how) for record in found]


RECORDS = [
    *batches("compiled", {1: 100e-6, 1_000: 200e-6, 100_000: 10e-3}),
    *batches("eager", {1: 2e-6, 1_000: 2e-3}, LOOP),
    runs.record(backend="eager", operator="batch_gradient_100000", status="unsupported", reason="takes too long"),
]


def rows(records: list[Record]) -> dict[str, sections.MethodRow]:
    run = runs.run(records)
    cells = Cells(run)
    return {
        row.backend: row for group in sections.table(sections.batch_rows, cells, Footnotes(cells)) for row in group.rows
    }


def texts(row: sections.MethodRow) -> list[str]:
    return [" ".join(entry.text.split()) for entry in row.entries]


def test_a_row_has_the_time_of_each_point_the_first_result_the_memory_and_the_break_even() -> None:
    found = rows(RECORDS)
    compiled, eager = found["compiled"], found["eager"]
    assert (compiled.label, eager.label) == ("batch", "loop")
    assert texts(compiled) == ["100 µs", "200 ns", "100 ns", "110 µs", "8.19 kB", "53"]
    assert texts(eager) == [
        "2.00 µs",
        "2.00 µs",
        "—",
        "110 µs",
        "8.19 kB",
        "more than 1 000",
    ]
    assert eager.entries[2].note is not None


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({1: 2e-6, 10: 10e-6}, "2"),  # the fastest single point; its batches pay at once
        ({1: 5e-6, 10: 12e-6}, "4"),  # 5 + 7/9 (N - 1) < 2 N
        ({1: 3e-6, 10: 21e-6}, "more than 10"),
        ({10: 10e-6}, "—"),
    ],
)
def test_the_break_even_number_of_points_is_the_first_at_which_the_batch_is_faster(
    times: dict[int, float], expected: str
) -> None:
    found = rows([*batches("other", times), *batches("single", {1: 2e-6, 10: 20e-6}, LOOP)])
    assert found["other"].entries[-1].text == expected


def test_a_wrong_batch_has_no_time_and_is_no_single_point_to_compare_with() -> None:
    wrong = [replace(record, status="wrong", reason="point 3 is wrong") for record in batches("wrong", {1: 1e-9})]
    found = rows([*wrong, *batches("right", {1: 2e-6, 10: 10e-6})])
    assert found["wrong"].entries[0].text == "—"
    assert found["right"].entries[-1].text == "2"


def test_the_page_has_the_section_only_with_batches_and_the_terminal_names_the_fastest() -> None:
    section = html.render(runs.run(RECORDS)).split('id="many-points"')[1].split("</section>")[0]
    assert 'data-backend="0"' in section, "the page's filter of backends hides lines by it"
    assert 'id="many-points"' not in html.render(runs.run(runs.race([("one", 1e-6), ("two", 2e-6)])))
    text = " ".join(terminal.table(runs.run(RECORDS), width=200).split())
    assert "quadratic, 100 000 points, time of each: compiled 100 ns" in text.replace("\u202f", " ")


def test_a_run_of_batches_leads_with_the_largest_and_any_other_run_with_its_gradient() -> None:
    assert Cells(runs.run(RECORDS)).operator == "batch_gradient_100000"
    gradient = runs.record(backend="eager", operator="gradient", seconds=1e-6)
    assert Cells(runs.run([*RECORDS, gradient])).operator == "gradient"
    assert Cells(runs.run([runs.record(operator="hvp"), runs.record(operator="jvp")])).operator == "hvp"
