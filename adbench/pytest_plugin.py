"""For pytest: two fixtures and the audit of a suite, available wherever adbench is installed.

def test_my_gradient(assert_gradients):
    assert_gradients(lambda xp, x: xp.sum(xp.sin(x)), np.array([0.3, 1.2]), backend="jax")

def test_speed(adbench_cell):
    adbench_cell("normal_log_density", 1000, "jax")     # checked first, then timed by pytest-benchmark

`pytest --adbench-audit` runs each gradient test again with spoiled gradients, see docs/how-to/audit-a-suite.md.

A test made by `@adbench.check_gradients(…)` needs no fixture. If it fails, pytest shows the table alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adbench.optional import pip_install

if TYPE_CHECKING:
    from adbench.audit.suite import Audit
    from adbench.execution.in_process import ReadyCell


AUDIT = "adbench audit"
"""Name of the plug-in that audits."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the audit."""
    group = parser.getgroup("adbench", "adbench: what do gradient tests notice?")
    group.addoption("--adbench-audit", action="store_true", help="Run each gradient test again with spoiled gradients.")
    group.addoption(
        "--adbench-audit-report", action="append", default=[], metavar="FILE", type=Path,
        help="Write the audit to FILE, by its suffix: .html, .json or .xml (JUnit). Repeatable.",
    )  # fmt: skip
    group.addoption(
        "--adbench-audit-limit", type=float, default=300.0, metavar="S", help="Seconds for one unspoiled test."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start the audit if `--adbench-audit` asks for it. Raises pytest.UsageError for bad options."""
    if config.getoption("--adbench-audit"):
        from adbench.audit.suite import Audit
        from adbench.model.errors import UsageError
        from adbench.reports.formats.audit_files import refuse

        limit = config.getoption("--adbench-audit-limit")
        if not 0 < limit < float("inf"):
            raise pytest.UsageError(f"--adbench-audit-limit {limit:g} is no duration; give seconds above 0")
        try:
            for file in config.getoption("--adbench-audit-report"):
                refuse(file)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        audit = Audit(config.rootpath, limit)
        config.pluginmanager.register(audit, AUDIT)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The result of the audit."""
    audit: Audit | None = config.pluginmanager.get_plugin(AUDIT)
    if audit is not None:
        from adbench.reports.formats.audit_files import write
        from adbench.reports.text.terminal.audit import text

        terminalreporter.section("adbench: what gradient tests notice")
        width = terminalreporter._tw.fullwidth
        terminalreporter.write(text(audit.tests, width=width, colour=terminalreporter.hasmarkup))
        for file in config.getoption("--adbench-audit-report"):
            write(audit.tests, file)


@pytest.fixture
def assert_gradients() -> Callable[..., None]:
    """`adbench.assert_gradients`; imported on first use, because every pytest loads this file."""
    from adbench.execution.python_check import assert_gradients

    return assert_gradients


@pytest.fixture
def adbench_cell(request: pytest.FixtureRequest) -> Callable[..., ReadyCell]:
    """adbench_cell(case, size, backend, operator="gradient", seed=0, memory=True): check one cell, then time it.

    The test fails if the value or the derivative is wrong. It is skipped, with the reason, if the backend lacks the
    operator or has a known fault there: such a cell is never timed. The fixture `benchmark` of pytest-benchmark times
    a right one; the verdict, the phases and the memory by each method (from separate processes) go into its
    `extra_info`, so that `--benchmark-json`, `--benchmark-compare` and `--benchmark-histogram` work on any case.

    case      a built-in case's name, or a user's file
    backend   a backend's name, or a user's file
    """
    if not request.config.pluginmanager.has_plugin("benchmark"):
        command = pip_install("pytest_benchmark")
        pytest.fail(f"adbench_cell times with pytest-benchmark: {command}", pytrace=False)
    benchmark = request.getfixturevalue("benchmark")

    def check_and_time(
        case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0, memory: bool = True
    ) -> ReadyCell:
        from adbench.execution import in_process
        from adbench.model.errors import Unsupported, UsageError
        from adbench.model.serialization import to_plain

        try:
            one = in_process.ready(case, size, backend, operator, seed=seed)
        except UsageError as error:
            pytest.fail(f"adbench_cell: {error}", pytrace=False)
        except (Unsupported, NotImplementedError) as reason:
            pytest.skip(f"{backend} on {case}: {reason}")
        if one.verdict.word == "wrong":
            if one.known is not None:
                pytest.skip(f"{one.job.backend} on {one.job.case}: known to be wrong: {one.known}")
            pytest.fail(f"{one.job.backend} on {one.job.case}: {one.verdict.sentence}", pytrace=False)
        benchmark.group = f"{one.job.case} {one.job.size} {one.job.operator}"
        benchmark.extra_info.update(_extra_info(one))
        if memory:
            benchmark.extra_info["memory"] = to_plain(in_process.memory(one))
        benchmark(one.call)
        return one

    return check_and_time


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The table of a check that found something wrong, without a traceback: every frame of it would be ours."""
    report: pytest.TestReport = yield
    if report.failed and call.excinfo is not None and getattr(getattr(item, "obj", None), "is_adbench_check", False):
        from adbench.execution.python_check import WrongGradient

        if call.excinfo.errisinstance(WrongGradient):
            table: Any = call.excinfo.getrepr(style="value")
            report.longrepr = table
            if table.reprcrash is not None:  # for the line of pytest's summary
                table.reprcrash.message = str(call.excinfo.value)
    return report


def _extra_info(one: ReadyCell) -> dict[str, Any]:
    """What pytest-benchmark records next to its own statistics."""
    return {
        "case": one.job.case,
        "size": one.job.size,
        "backend": one.job.backend,
        "operator": one.job.operator,
        "seed": one.job.seed,
        "version": one.version,
        "verdict": one.verdict.word,
        "digits": one.verdict.whole_digits,
        "verdict_sentence": one.verdict.sentence,
        "how": one.how,
        "flops": one.flops,
        "prepare_seconds": one.prepare_seconds,
        "first_call_seconds": one.first_call_seconds,
    }
