"""The part of the pytest plug-in that audits: it runs each gradient test again for each spoil.

Only the unspoiled run is reported to pytest. With pytest-xdist each worker audits its own tests, and the results travel
on the reports.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import random
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from .audited import MISSED, NOT_APPLICABLE, NOT_TRIED, NOTICED, AuditedTest
from .handing import Handing, TestRun, of_suite
from .spoils import SPOILS

MOST_RUNS = len(SPOILS) + 1

SLOWER = 10.0
"""A spoiled run may take this many times the unspoiled one, and ten seconds."""

TOLERANCES = ("rtol", "atol", "rel", "abs", "tol", "eps", "decimal", "places", "delta", "rel_tol", "abs_tol")
"""Keywords of comparisons."""

ATTRIBUTE = "adbench_audit"
"""Of the report of a test's call: the audited test as plain data."""


class Audit:
    """Hooks of pytest.

    limit   seconds for an unspoiled run
    """

    def __init__(self, root: Path, limit: float) -> None:
        self.tests: list[AuditedTest] = []
        self._limit = limit
        self._handing = Handing(of_suite(root))
        self._handing.install()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """The unspoiled run, and then one for each spoil."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports, first, seconds = self._run(item, nextitem, TestRun(), self._limit)
        if first.calls:
            call = ([report for report in reports if report.when == "call"] or reports)[-1]
            failed = _failed_subtests(item.config)
            before = failed.get(item.nodeid, 0)
            setattr(call, ATTRIBUTE, asdict(self._audited(item, nextitem, reports, first, seconds)))
            if item.nodeid in failed:  # or pytest would count those of spoiled runs
                failed[item.nodeid] = before
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what a worker, or this process, has found out."""
        if (plain := getattr(report, ATTRIBUTE, None)) is not None:
            self.tests.append(AuditedTest.of(plain))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """pytest-timeout would count all runs of a test as one, so the audit's own limit takes its place."""
        if config.pluginmanager.has_plugin("timeout"):
            for item in items:
                item.add_marker(pytest.mark.timeout(0), append=False)

    def _audited(
        self,
        item: pytest.Item,
        nextitem: pytest.Item | None,
        reports: list[pytest.TestReport],
        first: TestRun,
        seconds: float,
    ) -> AuditedTest:
        file, line, _ = item.location
        about = AuditedTest(item.nodeid, file, (line or 0) + 1, gradients=first.calls, tolerances=_tolerances(item))
        if not all(report.passed for report in reports):
            outcome = next(report.outcome for report in reports if not report.passed)
            return replace(about, set_aside=f"{outcome} with its own gradients")
        answers, runs = dict[str, str](), 1
        patterns: tuple[int, ...] = (0, 1) if first.calls > 1 else (0,)
        for spoil in SPOILS:
            if any(answers.get(larger) == MISSED for larger in spoil.needs):
                answers[spoil.name] = MISSED
                continue
            answer = NOT_TRIED
            for pattern in patterns:
                if runs == MOST_RUNS:
                    break
                again, spoiled, _ = self._run(item, nextitem, TestRun(spoil, pattern), SLOWER * seconds + 10)
                runs += 1
                if first.first and spoiled.first and first.first != spoiled.first:
                    return replace(about, runs=runs, set_aside="its gradients differ from run to run")
                if not all(report.passed for report in again):
                    answer = NOTICED
                    patterns = (pattern, *(other for other in patterns if other != pattern))
                    break
                if spoiled.changed:
                    answer = MISSED
                elif answer == NOT_TRIED:
                    answer = NOT_APPLICABLE
            answers[spoil.name] = answer
        return replace(about, answers=answers, runs=runs)

    def _run(
        self, item: pytest.Item, nextitem: pytest.Item | None, run: TestRun, limit: float
    ) -> tuple[list[pytest.TestReport], TestRun, float]:
        """Reports of one run with those of its subtests, what it was handed, and its seconds."""
        from _pytest.runner import runtestprotocol  # what every plug-in that runs tests again uses

        if self._handing.run.traced and (jax := sys.modules.get("jax")) is not None:
            jax.clear_caches()  # a compiled function would still hold the gradient of an earlier run
        self._handing.run = run
        if hasattr(item, "_initrequest"):
            item._initrequest()
        _seed()
        subtests: list[pytest.TestReport] = []
        proxy_of = item.session.gethookproxy
        setattr(item.session, "gethookproxy", lambda path: _Holding(proxy_of(path), subtests))  # noqa: B010 - of one object
        try:
            with _alarm(limit):
                first, *others = runtestprotocol(item, log=False, nextitem=nextitem)
        finally:
            delattr(item.session, "gethookproxy")
        return [first, *subtests, *others], run, sum(report.duration for report in (first, *others))


class _Holding:
    """The hooks of a test, except that reports of its subtests are collected: pytest logs them while the test runs."""

    def __init__(self, hooks: Any, subtests: list[pytest.TestReport]) -> None:
        self._hooks, self._subtests = hooks, subtests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hooks, name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._subtests.append(report)


def _failed_subtests(config: pytest.Config) -> dict[str, int]:
    """pytest's number of failed subtests of each test; empty before pytest 9."""
    try:
        from _pytest.subtests import failed_subtests_key
    except ImportError:
        return {}
    return config.stash.get(failed_subtests_key, {})


def _seed() -> None:
    """Each run of a test draws the same numbers."""
    random.seed(0)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(0)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End a test that takes longer, as a failure. Without effect where the system has no such signal."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def expired(_: int, frame: FrameType | None) -> None:
        pytest.fail(f"no end within {seconds:.0f} s", pytrace=False)

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _tolerances(item: pytest.Item) -> tuple[str, ...]:
    """The tolerances in a test's text, such as "line 41: rtol=0.1"; none if its text cannot be read."""
    function = inspect.unwrap(getattr(item, "function", None) or (lambda: None))
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return ()
    return tuple(
        f"line {start + word.value.lineno - 1}: {word.arg}={ast.unparse(word.value)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in TOLERANCES
    )
