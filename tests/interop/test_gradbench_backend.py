"""gradbench tools as backends: adbench's own, driven by adbench, and bad ones."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import Unsupported
from adbench.catalog.discovery import catalog, load
from adbench.execution.session import prepare
from adbench.execution.workers.timed_call import RemoteCall, TimedCall, TimedRemoteCall
from adbench.interop.gradbench import tool_backend as driving
from adbench.interop.gradbench.case_matching import MATCHES
from adbench.measure import phases
from adbench.model.backend import Backend, from_module
from adbench.model.case import function_of
from tests.interop.programs import BAD, tool

OURS = shlex.join([sys.executable, "-c", "from adbench.cli import main; main()", "gradbench-tool", "-b", "tape"])
KNOWN = catalog()


def tape() -> Backend:
    return from_module("tape", load(KNOWN.backends["tape"]))


def asked(used: Any, name: str, operator: Any, size: int) -> Any:
    case = KNOWN.cases[name]
    names, args, wrt = case.bind(size, 0)
    f = function_of(case, names, used.xp if isinstance(used, Backend) else np, size)
    call = (used.prepare if isinstance(used, Backend) else used)(operator, f, args, wrt)
    return call(*args)


@pytest.fixture(scope="module")
def ours() -> Any:
    return driving.driven(OURS, str(Path.cwd()))


@pytest.mark.parametrize("name", MATCHES)
def test_our_tool_computes_the_same_with_and_without_the_protocol(ours: Any, name: str) -> None:
    case = KNOWN.cases[name]
    size = {"kmeans": 7, "bundle_adjustment": 1, "least_squares_polynomial": 5}.get(name, 3)
    for operator in MATCHES[name].operators:
        found, truth = asked(ours, name, operator, size), asked(tape(), name, operator, size)
        if operator == "value":
            np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-13)
            continue
        assert len(found) == len(truth) == len(case.wrt)
        for part, right in zip(found, truth, strict=True):
            right = right.toarray().reshape(np.shape(part)) if hasattr(right, "toarray") else right
            assert np.shape(part) == np.shape(right)
            np.testing.assert_allclose(part, right, rtol=1e-10, atol=1e-12)


def test_inputs_that_gradbench_lacks_are_unsupported(ours: Any) -> None:
    with pytest.raises(Unsupported, match="repeats one observation"):
        asked(ours, "bundle_adjustment", "value", 4)
    with pytest.raises(Unsupported, match="no such function"):
        asked(ours, "rosenbrock", "value", 4)
    with pytest.raises(Unsupported, match="kmeans has no gradient"):
        asked(ours, "kmeans", "gradient", 7)


def records(command: str, **settings: Any) -> dict[str, Any]:
    session = prepare(
        backends=[f"gradbench:{command}"],
        cases=["log_sum_exp"],
        sizes=["3"],
        operators=["value", "gradient"],
        **settings,
    )
    for _ in session.events():
        pass
    return {record.job.operator: record for record in session.result().records}


@pytest.mark.slow
def test_a_tool_is_judged_timed_and_its_memory_measured(tmp_path: Path) -> None:
    found = records(tool(tmp_path), quick=True)
    assert found["value"].status == found["gradient"].status == "ok"
    assert found["gradient"].verdict.word == "ok" or found["gradient"].verdict.sentence
    time = found["gradient"].time
    assert time.seconds_per_call == pytest.approx(5e-6)  # the tool's time, without that of the pipes
    assert time.phases["sweep"] == pytest.approx(3e-3)
    memory = found["gradient"].memory
    assert memory.allocated_peak_bytes.value is None
    assert "another process" in memory.allocated_peak_bytes.reason
    assert memory.resident_peak_bytes.value is not None or memory.resident_peak_bytes.reason


@pytest.mark.parametrize(
    ("mischief", "status", "reason"),
    [
        ("zero", "wrong", ""),
        ("shape", "failed", "has the wrong form"),
        ("garbage", "failed", "Welcome to my tool!"),
        ("crash", "failed", "died of SIGSEGV"),
        pytest.param("silent", "timed_out", "no answer within", marks=pytest.mark.slow),
    ],
)
def test_a_bad_tool_is_a_record(tmp_path: Path, mischief: str, status: str, reason: str) -> None:
    found = records(tool(tmp_path, BAD[mischief]), time=False, timeout=4.0 if mischief == "silent" else 60.0)
    assert found["gradient"].status == status
    assert reason in (found["gradient"].reason or "")


@pytest.mark.parametrize(
    ("mischief", "reason"),
    [
        ("nothing", "has no output"),
        ("texts", "has the wrong form"),
        ("failing", "out of luck"),
        ("other", "with the id 99"),
        ("exit", "exited with code 3"),
        ("flood", "not JSON"),
    ],
)
def test_a_bad_tools_behaviour_is_reported(tmp_path: Path, mischief: str, reason: str) -> None:
    used = driving.driven(tool(tmp_path, BAD[mischief]), str(tmp_path))
    for _ in range(2):  # it restarts
        with pytest.raises(RuntimeError, match=reason):
            asked(used, "log_sum_exp", "gradient", 2)


def test_a_tool_without_timings_has_no_time(tmp_path: Path) -> None:
    used = driving.driven(tool(tmp_path, BAD["timeless"]), str(tmp_path))
    case = KNOWN.cases["log_sum_exp"]
    names, args, wrt = case.bind(2, 0)
    call = used("gradient", function_of(case, names, np), args, wrt)
    assert isinstance(call, RemoteCall)
    with pytest.raises(RuntimeError, match="reports no time"):
        call.runs(args, 1, 0.0)


def test_the_tools_refusal_is_quoted_and_its_timings_are_phases(tmp_path: Path) -> None:
    used = driving.driven(tool(tmp_path), str(tmp_path))
    with pytest.raises(Unsupported, match="has no det: only lse is here"):
        asked(used, "determinant_by_minors", "value", 2)
    with phases.collecting() as parts:
        asked(used, "log_sum_exp", "gradient", 2)
    assert parts == pytest.approx({"define tape": 2e-3, "sweep": 3e-3})


def test_an_epoch_has_the_requested_number_of_runs() -> None:
    class Told:
        def __call__(self, *args: Any) -> Any:
            return None

        def runs(self, args: Any, least: int, seconds: float) -> list[int]:
            return [1000] * max(least, int(seconds * 1e6), 1) + [10**9]

        def resident_peak(self, args: Any) -> Any:
            raise AssertionError

    timed = TimedCall.of(Told(), (), tape())
    assert timed.epoch(7).ns == 7000
    warm, calls = timed.warm_up(100_000, 100_000, 50_000)
    assert (warm.calls, calls) == (101, 50)
    assert timed.memory("python", 1).value is None
    assert not isinstance(TimedCall.of(lambda: None, (), tape()), TimedRemoteCall)
