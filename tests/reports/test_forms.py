"""A run as Markdown and CSV, and several runs on one page: the same findings, and names that stay names."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from adbench.cli import cli
from adbench.model.record import Run
from adbench.reports.formats import markdown, spreadsheet
from adbench.reports.html import over_time
from adbench.results.store import dumps
from tests.reports import page, runs
from tests.reports.test_hostile import HOSTILE

RACE = runs.run(
    [
        *runs.race([("tape", 3e-6), ("jax", 1e-6)]),
        runs.record(backend="liar", status="wrong", reason="sigma is off"),
        runs.record(backend="differences", word="approximate", seconds=1e-9),
    ]
)


def _later(run: Run, day: int, factor: float, **changes: object) -> Run:
    """The run on another day, with jax slower by that factor."""
    factors = {"jax": factor}
    records = [
        replace(r, time=runs.time(r.time.seconds_per_call * factors.get(r.job.backend, 1.0), spread=0.001))
        for r in run.records
        if r.time
    ]
    return replace(run, records=tuple(records), created=f"2025-01-{day:02}T00:00:00+00:00", **changes)  # type: ignore[arg-type]


BASE = runs.run(
    [
        runs.record(f"case{k}", 10, backend, seconds=seconds, spread=0.001)
        for k in range(3)
        for backend, seconds in (("tape", 3e-6), ("jax", 1e-6), ("torch", 2e-6))
    ],
    reference_backend="tape",
)


def _table(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(spreadsheet.render(run))))


def test_markdown_says_who_is_wrong_and_who_is_fastest_with_its_interval() -> None:
    text = markdown.render(RACE)
    assert text.startswith("### adbench: ✗ 1 cell wrong, 1 cell for each backend\n")
    assert text.index("* ✗ wrong, liar on 1 cell: sigma is off") < text.index("* Correct: tape and jax in 1 of 1 test")
    assert "| quadratic | 10 | ★ 1.0 | 3.0 | ✗ | ≈ 0.0010 | 1.00 µs | — |".replace(" µs", "\u00a0µs") in text
    assert "* Fastest: jax in 1 of 1 case; mean slowdown: jax 1.0 · tape 3.0" in text
    assert "| quadratic | 10 | tape | ✓ right | 3.00 µs | 3.00× (3.00–3.00) |".replace(" µs", "\u00a0µs") in text
    assert "* Noise: unknown" in text
    assert markdown.render(runs.run()) == "### adbench: nothing was measured\n"


def test_markdown_counts_the_cells_that_an_interruption_left_before_the_first_result() -> None:
    text = markdown.render(replace(runs.run(), unchecked=4))
    assert text == "### adbench: nothing was measured\n\n**interrupted: 4 of 4 cells not checked**\n"


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_neither_markup_nor_a_new_line_nor_a_column(name: str) -> None:
    records = [runs.record(name, 1, name), runs.record("q", 1, name, status="failed", reason=name or "none")]
    harmless = [runs.record("a", 1, "b"), runs.record("q", 1, "b", status="failed", reason="none")]
    text, plain = (markdown.render(runs.run(rs)) for rs in (records, harmless))
    text.encode()
    assert "<script" not in text
    assert [line.count("|") for line in text.splitlines()] == [line.count("|") for line in plain.splitlines()]


def test_csv_has_a_line_for_each_record_and_nothing_for_what_is_not_there() -> None:
    rows = {row["backend"]: row for row in _table(RACE)}
    assert float(rows["tape"]["seconds_per_call"]) == pytest.approx(3e-6)
    assert float(rows["tape"]["against_fastest"]) == pytest.approx(3)
    assert rows["tape"]["fastest"] == "jax"
    assert rows["tape"]["word"] == "slower"
    assert rows["liar"]["outcome"] == "wrong"
    assert rows["liar"]["seconds_per_call"] == rows["tape"]["resident_peak_bytes"] == rows["jax"]["floor"] == ""
    assert rows["differences"]["against_fastest"] == ""


def test_every_form_shows_how_many_digits_are_verified() -> None:
    run = runs.run([runs.record(backend=word, word=word) for word in ("right", "verified", "blind")])
    text = markdown.render(run)
    assert "| verified | ~ 6 digits |" in text
    assert "| blind | ? blind |" in text
    rows = {row["backend"]: row for row in _table(run)}
    assert [rows[word]["digits"] for word in ("right", "verified", "blind")] == ["11", "6", "0"]


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_csv_keeps_a_hostile_name_in_its_cell(name: str) -> None:
    (row,) = _table(runs.run([runs.record(name, 1, "b")]))
    assert row["case"].replace("\ufffd", "?") == name.encode("utf-8", "replace").decode()
    assert _table(runs.run([runs.record("=1+1", 1, "@b")]))[0]["case"] == "'=1+1"


def test_several_runs_show_what_became_slower_and_when() -> None:
    text = over_time.render([("c", _later(BASE, 4, 1.5)), ("a", BASE), ("b", _later(BASE, 3, 1.0))])
    found = page.read(text)
    assert found.one("h1").words == "3 runs on 1 machine"
    assert [li.one("bdi").words for li in found.one("ol").all("li")] == ["a", "b", "c"]
    rows = {(r.one("th").words, r.all("td")[1].words): r for r in found.one("tbody").all("tr")}
    assert len(rows) == 9
    slower = {key for key, row in rows.items() if "▲ slower since c: 1.5" in row.words}
    assert slower == {(f"case{k}", "jax") for k in range(3)}
    assert [c.classes for c in rows["case0", "jax"].all("circle")] == [set(), set(), {"up"}]
    assert rows["case0", "jax"].all("td")[5].words == "1.5×"
    assert text == over_time.render([("a", BASE), ("b", _later(BASE, 3, 1.0)), ("c", _later(BASE, 4, 1.5))])


def test_runs_of_two_machines_stand_side_by_side_and_are_not_compared_by_the_clock() -> None:
    other = _later(BASE, 3, 1.0, machine=BASE.machine | {"processor": "another"})
    found = page.read(over_time.render([("a", BASE), ("b", other)]))
    assert found.one("h1").words == "2 runs on 2 machines"
    assert "slower" not in found.one("main").all("table")[0].words
    row = next(r for r in found.one("div", **{"aria-label": "machines"}).all("tr") if "jax" in r.words)
    assert row.all("td")[3].words == "1.00 µs 0.33× tape"


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_runs_over_time_are_text(name: str) -> None:
    run = runs.run([runs.record(name, 1, name), runs.record(name, 1, "q")], created=name, adbench_version=name)
    text = over_time.render([(name, run), ("b", runs.run())])
    found = page.read(text)
    text.encode()
    assert len(found.all("script")) == 2
    assert not set(text) & set("\u202e\u2066\u200f\x1b\x07\x00\u2028\r")


def test_the_command_writes_each_form(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(dumps(RACE))
    for name, says in (("x.md", "### adbench"), ("x.csv", "case,size"), ("x.xml", "<testsuites"), ("x.html", "<html")):
        result = CliRunner().invoke(cli, ["report", str(tmp_path), "-o", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert says in (tmp_path / name).read_text()
    printed = CliRunner().invoke(cli, ["report", str(tmp_path / "run.json"), "--format", "md"]).output
    assert printed == (tmp_path / "x.md").read_text()
    several = CliRunner().invoke(cli, ["report", str(tmp_path), str(tmp_path), "-o", str(tmp_path / "all.html")])
    assert several.exit_code == 0
    assert "2 runs" in (tmp_path / "all.html").read_text()


@pytest.mark.parametrize("arguments", [["-o", "x.pdf"], [".", "-o", "x.csv"], []], ids=["suffix", "two", "none"])
def test_what_cannot_be_made_is_said(tmp_path: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, ["report", *([str(tmp_path)] if arguments else []), *arguments])
    assert result.exit_code == 2
