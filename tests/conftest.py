"""What every test needs: nothing of the user's is read or written."""

from pathlib import Path
from typing import Any

import pytest

SIZES = ("1", "1e-2", "1e-4", "1e-6", "1e-8", "1e-9", "gross")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of what is drawn at random is drawn."""
    parser.addoption(
        "--nightly",
        type=int,
        default=1,
        metavar="N",
        help="N times as many points for the mutants and for the search for false alarms (default: 1)",
    )


@pytest.fixture(scope="session")
def nightly(request: pytest.FixtureRequest) -> int:
    """How many times as many points as by default."""
    times: int = request.config.getoption("--nightly")
    return max(1, times)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """References are kept in a folder that the whole test run shares, not in the user's cache."""
    folder: Path = tmp_path_factory.getbasetemp().parent / "adbench-references"
    monkeypatch.setenv("ADBENCH_CACHE", str(folder))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The kill matrix of the mutants and the count of false alarms, from what tests recorded as properties."""
    reports = [report for how in ("passed", "failed", "xfailed") for report in terminalreporter.getreports(how)]
    recorded = [pair for report in reports if report.when == "call" for pair in report.user_properties]
    if mutants := [value for name, value in recorded if name == "mutant"]:
        terminalreporter.section("mutants: caught/planted")
        for line in kill_matrix(mutants):
            terminalreporter.write_line(line)
    if alarms := [value for name, value in recorded if name == "false alarms"]:
        false, entries, points = (sum(column) for column in zip(*alarms, strict=True))
        terminalreporter.write_line(f"false alarms: {false} of {entries} entries ({points} points)")


def kill_matrix(mutants: list[list[Any]]) -> list[str]:
    """Kinds by sizes of the error, and their sum in a line; `mutants` holds (kind, size, planted, caught)."""
    table: dict[str, dict[str, list[int]]] = {}
    for kind, size, planted, caught in mutants:
        cell = table.setdefault(kind, {}).setdefault(size, [0, 0])
        cell[0] += caught
        cell[1] += planted
    beyond = table.pop("beyond resolution", {})
    lines = [f"{'':26}" + "".join(f"{size:>8}" for size in SIZES)]
    for kind, cells in table.items():
        shown = ("/".join(map(str, cells[size])) if size in cells else "-" for size in SIZES)
        lines.append(f"{kind:26}" + "".join(f"{text:>8}" for text in shown))
    caught, planted = (sum(cell[i] for cells in table.values() for cell in cells.values()) for i in (0, 1))
    unsure, hard = (sum(cell[i] for cell in beyond.values()) for i in (0, 1))
    lines.append(f"mutants: {planted} planted, {caught} caught")
    if hard:
        lines.append(f"  and {hard} where no double can tell: {unsure} judged inconclusive, as they must be")
    return lines
