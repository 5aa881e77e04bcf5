"""What a user sees while a run goes on: a bar on a terminal, lines elsewhere; and a plan before it runs."""

import io

import pytest
from rich.console import Console

from adbench.suite.events import Checked, Learned, Started, Timed
from adbench.suite.record import Job, Record
from reports.planned import duration
from reports.progress import Bar

JOB = Job("softplus", 10, "tape", "gradient")
WRONG = Record(JOB, "wrong", "1 of 2 wrong")


def shown(*, terminal: bool) -> str:
    out = io.StringIO()
    with Bar("values", Console(file=out, force_terminal=terminal, width=100, no_color=True, highlight=False)) as bar:
        bar.say("3 cells")
        for event in (
            Started(JOB, "check"),
            Checked(WRONG),
            Learned({"loop_overhead_ns": 15.0}),
            Learned({"settings": {"left_out": "values; launches: 6 in the place of 8"}}),
            Started(JOB, "time", 2),
            Timed(2, (), (Record(JOB, "crashed", "in launch 3: died of SIGSEGV"),)),
        ):
            bar.show(event, 75.0)
    return out.getvalue()


def test_off_a_terminal_there_is_no_bar_but_what_is_left_out_is_said() -> None:
    assert shown(terminal=False).splitlines() == [
        "adbench: 3 cells",
        "adbench: left out: launches: 6 in the place of 8",
    ]


def test_on_a_terminal_the_bar_tells_what_is_under_way_and_trouble_stands_above_it() -> None:
    text = shown(terminal=True)
    assert "75 s left" in text
    assert "launch 3: softplus 10 gradient" in text
    assert "wrong: tape, softplus 10, gradient: 1 of 2 wrong" in text
    assert "in launch 3: died of SIGSEGV" in text


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
