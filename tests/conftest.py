"""What every test needs: nothing of the user's is read or written."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adbench.measure.machine import NO_GPU
from tests.support.signals import let_children_hear

ROOT = Path(__file__).parents[1]
LEFT_OUT = pytest.StashKey[int]()  # how many tests marked slow were not asked for

MANY = 6  # variants of a test; of more, CI takes every third but at most KEPT
KEPT = 3
SIZES = ("1", "1e-2", "1e-4", "1e-6", "1e-8", "1e-9", "gross")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for the amount of random inputs."""
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


def pytest_configure(config: pytest.Config) -> None:
    """What the processes that tests start inherit: signals that can be heard, no GPU, and where builds are kept."""
    let_children_hear()
    os.environ.update(NO_GPU)
    if (ROOT / ".venv").is_dir():
        os.environ.setdefault("ADBENCH_BUILDS", str(ROOT / ".venv" / "builds"))
        if not hasattr(config, "workerinput"):  # once, not in each process of pytest-xdist
            # What one run of the tests learnt must not act on the next.
            for folder in ("cases", "commands"):
                shutil.rmtree(references() / folder, ignore_errors=True)
            (references() / "costs.json").unlink(missing_ok=True)


def references() -> Path:
    """Where references are kept from one run of the tests to the next."""
    return ROOT / ".venv" / "cache"


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> None:
    """No collection looks again at what is there by now: many tests ask for one, and it took 0.2 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outside of a checkout with .venv: in a folder that the whole test run shares."""
    kept = (ROOT / ".venv").is_dir()
    return references() if kept else tmp_path_factory.getbasetemp().parent / "adbench-references"


@pytest.fixture(autouse=True)
def _own_cache(_references: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither references nor anything else is read from the user's cache."""
    monkeypatch.setenv("ADBENCH_CACHE", str(_references))


@pytest.fixture
def own_defaults() -> Iterator[None]:
    """jax and torch with users' defaults: in single precision."""
    import jax
    import torch

    before = jax.config.jax_enable_x64, torch.get_default_dtype()
    jax.config.update("jax_enable_x64", False)
    torch.set_default_dtype(torch.float32)
    yield
    jax.config.update("jax_enable_x64", before[0])
    torch.set_default_dtype(before[1])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """What may take longest begins first, so that nothing waits for it at the end; slow tests left out are counted."""
    items.sort(key=_time_limit, reverse=True)
    thin_out(items)
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.slow)
    slow = {item.nodeid for item in items if item.get_closest_marker("slow")}
    yield
    if config.option.markexpr:  # otherwise it is by their names that tests are left out
        config.stash[LEFT_OUT] = len(slow - {item.nodeid for item in items})


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Raises UsageError if pytest-xdist does not see the groups that have to stay in one process."""
    grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
    if getattr(session.config.option, "loadgroup", False) and any("@" not in item.nodeid for item in grouped):
        raise pytest.UsageError("pytest-xdist ignores groups on this pytest; install the versions of constraints.txt")


def thin_out(items: list[pytest.Item]) -> None:
    """Of more than six variants of a test, CI takes every third but at most three.

    Of more than three, the default run takes a third of CI's. It keeps all tests of a group, because they share their
    setup, and of cases and backends, which contributors add. Of slow ones CI takes as many as of others.
    """
    tests: dict[tuple[str, bool], list[pytest.Item]] = {}
    for item in items:
        test, bracket, _ = item.nodeid.partition("[")
        is_slow = item.get_closest_marker("slow") is not None
        stays = test.startswith(("tests/cases/", "tests/backends/")) or item.get_closest_marker("xdist_group")
        if bracket and (is_slow or not stays):
            tests.setdefault((test, is_slow), []).append(item)
    for (_, is_slow), variants in tests.items():
        step = max(3, -(-len(variants) // KEPT)) if len(variants) > MANY else 1
        for i, variant in enumerate(variants):
            if i % step:
                variant.add_marker(pytest.mark.exhaustive)
            elif i // step % 3 and len(variants) > 3 and not is_slow:
                variant.add_marker(pytest.mark.slow)


def _time_limit(item: pytest.Item) -> float:
    """The test's own time limit in seconds, else 0."""
    own = item.get_closest_marker("timeout")
    return float(own.args[0]) if own else 0.0


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Each process of pytest-xdist sends the printing process the number of tests that it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """The processes of pytest-xdist collect the same tests: what one has left out, all have. One that died says how."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)
    if error:  # the report names the test, but not the signal, and a signal such as SIGKILL leaves no other trace
        print(f"\n{node.gateway.id} ended with exit code {node.gateway._io.popen.wait(5)}", file=sys.stderr)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How much was left out; the kill matrix and the count of false alarms, from what tests recorded as properties."""
    if left_out := config.stash.get(LEFT_OUT, 0):
        terminalreporter.section("slow tests")
        terminalreporter.write_line(f"{left_out} slow tests were left out; ./scripts/test --all runs them too")
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
        lines.append(f"  and {hard} where no double can tell: {unsure} verified to fewer digits, as they must be")
    return lines
