"""A comparison and a list of runs as people read them: narrow, in Markdown, whatever things are called."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from adbench.model.record import Job
from adbench.reports.text import comparison, history
from adbench.results.compare import Comparison, compare
from adbench.results.comparison_inputs import ComparisonInput, Sample
from adbench.results.timeline.history import HistoryEntry
from tests.reports.test_hostile import HOSTILE
from tests.support.sessions import input_of, times

THREE = ("tape", "jax", "autograd")
NASTY = "a\nb|c`d</summary><script>x</script>\u202e\x1b[31m[red]*_@x"


def changed(name: str, states: dict[str, tuple[str, str | None]], made: ComparisonInput) -> ComparisonInput:
    jobs = {backend: Job("checked", 1, backend, "hvp") for backend in states}
    extra = {jobs[b]: Sample(jobs[b], state, reason) for b, (state, reason) in states.items()}  # type: ignore[arg-type]
    return replace(made, name=name, samples={**made.samples, **extra})


@pytest.fixture(scope="module")
def found() -> Comparison:
    """Something of every kind, and hostile names."""
    rng = np.random.default_rng(0)
    quiet = {"layout": 0.002, "cases": 2}
    slow = {(0, "jax"): 1.5, (1, "jax"): 0.2}
    old = changed(
        f"old {NASTY}",
        {"x": ("right", None), "y": ("wrong", "bad"), NASTY: ("right", None), "z": ("wrong", NASTY)},
        input_of("old", times(rng, THREE, **quiet), floor=0.01),  # type: ignore[arg-type]
    )
    new = changed(
        "new",
        {"x": ("failing", "raises\nValueError"), "y": ("right", None), NASTY: ("wrong", NASTY), "z": ("wrong", NASTY)},
        input_of("new", times(rng, THREE, changes=slow, **quiet), conditions={"jax": "2"}),  # type: ignore[arg-type]
    )
    heavy = {
        key: replace(s, memory={"allocated": 1e6 if key in old.samples else 9e6}) for key, s in new.samples.items()
    }
    light = {key: replace(s, memory={"allocated": 1e5}) for key, s in old.samples.items()}
    return compare(replace(old, samples=light), replace(new, samples=heavy))


def test_there_is_something_of_nearly_every_kind(found: Comparison) -> None:
    words = {row.word for row in found.rows}
    assert words >= {"now wrong", "now failing", "regression", "improvement", "now right", "still wrong", "same"}


@pytest.mark.parametrize("width", [24, 40, 60, 89, 90, 120, 200])
def test_no_line_is_longer_than_the_terminal_and_nothing_acts(found: Comparison, width: int) -> None:
    shown = comparison.text(found, width=width, colour=False)
    assert max(map(len, shown.splitlines())) <= width
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", shown)
    flat = re.sub(r"\s+", "", shown)
    assert "▲1regression:" in flat
    assert "✗1cellnowwrong" in flat
    assert re.search(r"\+\d\d\.\d%\(\+\d\d\.\d%…", flat)
    assert "100kB→1.00MB" in flat


def test_colour_is_only_there_where_it_is_asked_for(found: Comparison) -> None:
    assert "\x1b[" in comparison.text(found, width=100, colour=True)


def test_markdown_holds_every_name_in_its_cell(found: Comparison) -> None:
    shown = comparison.markdown(found)
    rows = [line for line in shown.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + sum(row.word not in comparison.FOLDED for row in found.rows)
    for line in rows:
        assert len(re.findall(r"(?<!\\)\|", line)) == 7, line
    outside = re.sub(r"(`+).*?\1", "", shown)  # code shows what it holds; everything else must not be markup
    assert "<script" not in outside
    assert "@x" not in outside  # a forge would call somebody
    assert shown.count("<details>") == shown.count("</details>") == shown.count("<summary>")


def test_data_is_json_with_every_cell(found: Comparison) -> None:
    data = json.loads(json.dumps(comparison.data(found, 1), allow_nan=False))
    assert len(data["cells"]) == len(found.rows)
    slow = next(cell for cell in data["cells"] if cell["name"] == "case0[10]-jax-gradient")
    assert slow["word"] == "regression"
    assert slow["ratio"]["low"] < 1.5 < slow["ratio"]["high"]
    assert slow["launches"] == [8, 8]
    assert (data["margin"], data["exit_code"], data["same_machine"]) == (0.05, 1, True)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_name_is_text_whatever_it_looks_like(name: str) -> None:
    rng = np.random.default_rng(0)
    logs = {replace(job, case=name): rows for job, rows in times(rng, ("tape", name), layout=0.002, cases=1).items()}
    slow = {job: rows + 0.5 if job.backend == name else rows for job, rows in logs.items()}
    found = compare(input_of(name, logs), input_of(name, slow, conditions={name: name}))
    for width in (24, 60, 100):
        shown = comparison.text(found, width=width, colour=False)
        assert max(map(cell_len, shown.splitlines())) <= width
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\udcff]", shown)
    shown = comparison.markdown(found)
    shown.encode()
    assert "<script" not in re.sub(r"(`+).*?\1", "", shown)
    assert (
        len(shown.splitlines())
        == len(comparison.markdown(compare(input_of("a", logs), input_of("b", slow))).splitlines()) + 1
    )
    json.dumps(comparison.data(found, 0))
    entry = HistoryEntry(Path(name), "resumable", None, name, "1234abcd", (name,), (name,))
    assert max(map(cell_len, history.text([entry], 60).splitlines())) <= 60


def test_many_cells_fit_into_a_comment(found: Comparison) -> None:
    rows = tuple(replace(found.rows[0], key=f"{k}{'x' * 200}") for k in range(2000))
    assert len(comparison.markdown(replace(found, rows=rows))) < 65_536
    assert "1800 more" in comparison.markdown(replace(found, rows=rows))


def test_equal_runs_say_so_in_one_line_of_names() -> None:
    rng = np.random.default_rng(0)
    made = input_of("made", times(rng, THREE, layout=0.002, cases=6))
    shown = comparison.text(compare(made, made), width=100, colour=False)
    assert "= 18 cells same: the whole interval is within the margin" in shown
    assert "and 15 more" in shown


@pytest.mark.parametrize("width", [24, 60, 99, 100, 160])
def test_a_list_of_runs_fits_and_nothing_acts(width: int) -> None:
    entries = [
        HistoryEntry(
            history_path,
            state,
            reason,
            "2026-01-01T10:20:30+00:00",
            "1234abcd",
            (NASTY,),
            ("tape", "jax", "b"),
            9,
            7,
            1,
        )  # type: ignore[arg-type]
        for history_path, state, reason in (
            ("a", "finished", None),
            (NASTY, "resumable", None),
            ("c", "unreadable", NASTY),
        )
    ]
    shown = history.text(entries, width)
    assert max(map(len, shown.splitlines())) <= width
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", shown)
    flat = re.sub(r"\s+", "", shown)
    assert "1Jan2026" in flat
    assert "unreadable:" in flat
    assert json.loads(json.dumps(history.data(entries)))[1]["state"] == "resumable"
    assert history.text([], width).startswith("No runs found: ")


@pytest.mark.parametrize(
    ("floor", "shown"), [(0.004, "< 1 %"), (0.023, "2 %"), (0.12, "12 %"), (1.38, "138 %"), (9.994, "999 %")]
)
def test_the_list_of_runs_has_the_noise_floor_in_whole_percents(floor: float, shown: str) -> None:
    for width in (60, 160):
        assert f" {shown}" in history.text([HistoryEntry(Path("out"), "finished", floor=floor)], width)
