"""What a user sees while a run goes on: a bar on a terminal, lines elsewhere; and a plan before it runs."""

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from adbench.model.events import Checked, Learned, Started, Timed
from adbench.model.record import Job, Launched, Record
from adbench.model.settings import Settings
from adbench.reports.text.live_table import MARGIN, LiveTable
from adbench.reports.text.planned import duration, sentence
from adbench.reports.text.progress import Bar
from tests.reports import runs

JOB = Job("softplus", 10, "tape", "gradient")
ROW = ("softplus", 10)
WRONG = Record(JOB, "wrong", "1 of 2 wrong")


def shown(*, terminal: bool) -> str:
    out = io.StringIO()
    with Bar("values", Console(file=out, force_terminal=terminal, width=100, no_color=True, highlight=False)) as bar:
        bar.say("3 cells")
        for event in (
            Started(JOB, "check"),
            Checked(WRONG),
            Learned({"loop_overhead_ns": 15.0}),
            Learned({"settings": {"left_out": "values; launches: 6 instead of 8"}}),
            Started(JOB, "time", 2),
            Timed(2, (), (Record(JOB, "crashed", "in launch 3: died of SIGSEGV"),)),
        ):
            bar.show(event, 75.0)
    return out.getvalue()


def test_off_a_terminal_there_is_no_bar_but_what_is_left_out_is_said() -> None:
    assert shown(terminal=False).splitlines() == [
        "adbench: 3 cells",
        "adbench: left out: launches: 6 instead of 8",
    ]


def test_off_a_terminal_a_line_now_and_then_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now, out = [1000.0], io.StringIO()
    monkeypatch.setattr("adbench.reports.text.progress.monotonic", lambda: now[0])
    with Bar(console=Console(file=out, force_terminal=False, width=60, highlight=False), started=995.0) as bar:
        for second in range(1000, 1100):
            now[0] = float(second)
            bar.show(Started(JOB, "check" if second < 1050 else "time", 2 if second >= 1050 else None), 1100.0 - second)
    assert out.getvalue().splitlines() == [
        "adbench: 31 s, about 74 s left: check softplus 10 tape",
        "adbench: 62 s, about 43 s left: launch 3: softplus 10 gradient",
        "adbench: 93 s, about 12 s left: launch 3: softplus 10 gradient",
    ]


def test_on_a_terminal_the_bar_tells_what_is_under_way_and_trouble_stands_above_it() -> None:
    text = shown(terminal=True)
    assert "75 s left" in text
    assert "softplus             10" in text
    assert "launch 3: softplus 10 gradient" in text
    assert "wrong: tape, softplus 10, gradient: 1 of 2 wrong" in text
    assert "in launch 3: died of SIGSEGV" in text


def test_the_table_grows_from_verdicts_to_times() -> None:
    console = Console(file=io.StringIO(), width=100, height=40)
    live = LiveTable()
    ok = runs.record("softplus", 10, "tape", "gradient", seconds=2e-6)
    assert ok.time is not None
    live.note(Checked(replace(ok, time=None)))
    assert live.cell(ROW, "tape") == "✓"
    for launch in ok.time.launches:
        live.note(Timed(launch.number, (Launched(ok.job, launch), Launched(ok.job, launch, control=True))))
    value = replace(ok, job=replace(JOB, operator="value"), time=None)
    live.note(Checked(value))
    assert live.cell(ROW, "tape") == "✓ 2.00\N{NO-BREAK SPACE}µs"  # of the gradient, also where value is later
    live.note(Checked(replace(value, status="wrong")))
    assert live.cell(ROW, "tape").startswith("✗")  # of any operator
    live.note(Timed(9, (), (Record(ok.job, "crashed", "died"),)))
    assert live.cell(ROW, "tape") == "✗"  # a lost cell has no time
    assert live.table(console).row_count == 1


def test_the_table_has_its_first_row_with_the_first_verdict() -> None:
    live = LiveTable()
    console = Console(file=io.StringIO(), width=80, height=24)
    assert live.table(console).row_count == 0
    live.note(Checked(WRONG))
    assert live.table(console).row_count == 1


def test_a_table_that_does_not_fit_shows_what_changed_last_and_counts_the_backends_left_out() -> None:
    live = LiveTable()
    for case in range(100):
        for backend in range(30):
            live.note(Checked(runs.record(f"case{case}", 1, f"b{backend:02}", "gradient", seconds=1e-6)))
    out = io.StringIO()
    console = Console(file=out, width=80, height=14)
    console.print(live.table(console))
    lines = out.getvalue().splitlines()
    assert len(lines) == 1 + 14 - MARGIN
    assert max(map(len, lines)) <= 80
    assert "case99" in lines[-1]
    assert "+26 more" in lines[0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1 s"),
        (40.4, "40 s"),
        (99.4, "99 s"),
        (100.0, "1 min 40 s"),
        (120.0, "2 min"),
        (800.0, "13 min"),
        (7800.0, "2 h 10 min"),
        (7200.0, "2 h"),
    ],
)
def test_durations_are_round(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("budget", "end"),
    [
        (None, "about 8 h 45 min"),
        (9e4, "about 8 h 45 min"),
        (9e3, "about 8 h 45 min, of which it measures what fits into 2 h 30 min"),
    ],
)
def test_a_plan_says_what_a_longer_run_has_to_fit_into(budget: float | None, end: str) -> None:
    session: Any = SimpleNamespace(
        plan=SimpleNamespace(jobs=(JOB,)),
        settings=Settings(budget_seconds=budget),
        forecast=SimpleNamespace(total=31_500.0),
    )
    assert sentence(session) == f"1 cell, 1 backend, up to 8 launches: {end}"
