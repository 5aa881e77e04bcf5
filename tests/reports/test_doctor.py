"""What the doctor's findings look like."""

import pytest

from adbench.doctor.examine import Examination
from adbench.doctor.findings import MachineFinding
from adbench.reports.text import doctor

FOUND = Examination(
    facts={"processor": "Made Up [red]", "cores": 4, "memory_bytes": 16 << 30, "system": "Linux 6.1", "libc": None},
    fingerprint="…",
    versions={"adbench": "0.1.0", "numpy": None},
    findings=(
        MachineFinding("load", "0.1 over the last minute", "ok", "Other work takes time."),
        MachineFinding("governor", "powersave", "warning", "The rate follows the load.", "sudo cpupower frequency-set"),
        MachineFinding("heat", "unknown", "unknown", "Heat slows."),
    ),
    memory=(MachineFinding("numpy", "allocated 64; python 64; resident 12 (!)", "warning", "MB read", "do not quote"),),
)


def text(width: int = 80, *, colour: bool = False) -> str:
    return doctor.text(FOUND, width=width, colour=colour)


def test_a_warning_says_why_and_what_to_do_and_the_rest_is_one_line() -> None:
    lines = text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("!  governor"))
    assert [line.strip() for line in lines[at : at + 3]] == [
        "!  governor  powersave",
        "The rate follows the load.",
        "→ sudo cpupower frequency-set",
    ]
    assert "✓  load      0.1 over the last minute" in lines
    assert "—  heat      unknown" in lines
    assert "Other work" not in text()
    assert lines[-1] == "2 warnings; nothing was changed"


def test_what_is_not_known_is_not_named() -> None:
    assert "None" not in text()
    assert "numpy None" not in text()
    assert "[red]" in text()


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    assert max(map(len, text(width).splitlines())) <= width


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[" in text(colour=True)
    assert "\x1b[" not in text()
