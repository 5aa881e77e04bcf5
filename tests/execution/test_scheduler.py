"""Any behaviour of a backend becomes a record with a reason, and the others continue."""

import os
import time
from pathlib import Path

import pytest

from adbench.execution.phases.memory_phase import LEFT_OUT
from adbench.execution.session import Session, exit_code, prepare
from adbench.model.errors import BadFile
from adbench.model.events import Checked
from adbench.model.record import Record, Status
from tests.support.files import CASE, RIGHT, misbehaving, write

GRADIENT = ("gradient",)


def session(
    folder: Path, *, timeout: float = 60.0, measure: bool = False, launches: int | None = None, **backends: str
) -> Session:
    """A session over softplus at sizes 1 and 10 with the given backends; `measure` time and memory too."""
    write(folder / "cases", softplus=CASE)
    paths = write(folder / "backends", **backends)
    return prepare(
        cases=[str(folder / "cases" / "softplus.py")],
        backends=[str(paths / f"{name}.py") for name in backends],
        sizes=["1", "10"],
        operators=GRADIENT,
        quick=True,
        time=measure,
        memory=measure,
        timeout=timeout,
        launches=launches,
    )


def records(made: Session) -> dict[tuple[str, int], Record]:
    for _ in made.events():
        pass
    return {(record.job.backend, record.job.size): record for record in made.result().records}


def test_a_correct_backend_is_checked_timed_and_its_memory_measured(tmp_path: Path) -> None:
    found = records(session(tmp_path, measure=True, hand=RIGHT))
    record = found["hand", 10]
    assert record.status == "ok"
    assert record.verdict is not None
    assert record.verdict.word == "right"
    assert record.time is not None
    assert [launch.number for launch in record.time.launches] == [0, 1, 2, 3, 4]
    assert all(1 <= len(launch.rounds) <= 5 for launch in record.time.launches)
    low, high = record.time.quartiles
    assert 0 < low <= record.time.seconds_per_call <= high
    assert record.memory is not None
    figures = [getattr(record.memory, f"{name}_peak_bytes") for name in ("allocated", "python", "resident")]
    assert figures[-1] == LEFT_OUT["resident"]
    assert sum(figure.value is not None for figure in figures) == 1
    assert exit_code(tuple(found.values())) == 0


WRONG = {
    "zero": "x * 0.0",
    "nan": "np.where(np.arange(x.size) == x.size - 1, np.nan, 1 / (1 + np.exp(-x)))",
    "one_percent": "1.01 / (1 + np.exp(-x))",
    "single_precision": "(1 / (1 + np.exp(-x))).astype(np.float32)",
    "rounded_to_single": "(1 / (1 + np.exp(-x))).astype(np.float32).astype(float)",
    "column": "(1 / (1 + np.exp(-x)))[:, None]",
    "none": "None",
}


@pytest.mark.slow
def test_a_wrong_result_is_not_timed_and_gives_the_reason(tmp_path: Path) -> None:
    right = "1 / (1 + np.exp(-x))\n"
    texts = {name: RIGHT.replace(right, formula + "\n") for name, formula in WRONG.items()}
    made = session(tmp_path, measure=True, launches=1, hand=RIGHT, **texts)
    found = records(made)
    for name in WRONG:
        for size in (1, 10):
            record = found[name, size]
            assert record.status == "wrong", (name, record)
            assert record.time is None
            assert record.reason
    assert found["hand", 10].status == "ok"
    assert exit_code(tuple(found.values())) == 1


MISBEHAVIOUR: dict[str, tuple[str, str, Status, str]] = {
    # name: statement, where it runs, status, part of the reason
    "segfault": ("import ctypes; ctypes.string_at(0)", "call", "crashed", "SIGSEGV"),
    "abort": ("import os; os.abort()", "prepare", "crashed", "SIGABRT"),
    "leaves": ("import os; os._exit(3)", "call", "crashed", "exited with code 3"),
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "call", "crashed", "SIGKILL"),
    "raises": ("raise ValueError('no such luck\\nsecond line')", "call", "failed", "ValueError: no such luck"),
    "exits": ("raise SystemExit(1)", "prepare", "failed", "SystemExit"),
    "hangs": ("import time; time.sleep(600)", "call", "timed_out", "no answer within"),
    "unsupported": ("raise Unsupported('not with <these>')", "prepare", "unsupported", "not with <these>"),
    "closes": ("import os; os.closerange(3, 100)", "call", "crashed", ""),
}


@pytest.mark.slow
def test_every_misbehaviour_becomes_a_record_and_others_continue(tmp_path: Path) -> None:
    texts = {name: misbehaving(statement, where=where) for name, (statement, where, _, _) in MISBEHAVIOUR.items()}
    found = records(session(tmp_path, timeout=8.0, hand=RIGHT, **texts))
    for name, (_, _, status, reason) in MISBEHAVIOUR.items():
        assert found[name, 1].status == status, (name, found[name, 1])
        assert reason in str(found[name, 1].reason)
        assert "\n" not in str(found[name, 1].reason)
    assert found["hand", 1].status == found["hand", 10].status == "ok"
    assert found["hangs", 10].status == "skipped"
    assert "timed out at size 1" in str(found["hangs", 10].reason)
    assert exit_code(tuple(found.values())) == 4


@pytest.mark.slow  # waits for two time limits
def test_a_cell_whose_reference_takes_too_long_is_timed_and_compared_with_the_others(tmp_path: Path) -> None:
    waits = "    if type(x).__module__.startswith('adbench.oracle'):\n        __import__('time').sleep(600)\n    return"
    write(tmp_path / "cases", softplus=CASE.replace("    return", waits, 1))
    other = RIGHT.replace("1 / (1", "(1 + 2e-6) / (1")
    paths = [str(write(tmp_path, hand=RIGHT, other=other) / f"{name}.py") for name in ("hand", "other")]
    asked = {"cases": [str(tmp_path / "cases" / "softplus.py")], "sizes": ["10"], "operators": GRADIENT, "timeout": 8.0}
    timed = records(prepare(backends=paths, quick=True, memory=False, launches=1, **asked))["hand", 10]
    assert (timed.outcome.word, timed.time is not None) == ("unchecked", True)
    assert timed.reason == "its reference takes too long (--timeout); its sums agree with those of other to 5 digits"
    checked = records(prepare(backends=paths[:1], quick=True, time=False, memory=False, **asked))["hand", 10]
    assert (checked.status, checked.reason) == ("timed_out", "its reference takes over 8 s (--timeout)")


def test_a_librarys_output_disturbs_nothing_and_its_end_is_kept(tmp_path: Path) -> None:
    noise = "import os; [os.write(fd, b'\\x00\\xffgarbage' * 1000) for fd in (1, 2)]"
    found = records(session(tmp_path, loud=misbehaving(noise), dies=misbehaving(noise + "; os.abort()")))
    assert found["loud", 1].status == "ok"
    assert "garbage" in str(found["dies", 1].stderr)
    assert len(str(found["dies", 1].stderr)) < 20_000


def test_after_two_crashes_the_rest_of_a_case_is_skipped(tmp_path: Path) -> None:
    made = session(tmp_path, dies=misbehaving("import os; os.abort()"))
    write(tmp_path / "cases", softplus=CASE)
    made = prepare(
        cases=[str(tmp_path / "cases" / "softplus.py")],
        backends=[str(tmp_path / "backends" / "dies.py")],
        operators=GRADIENT,
        time=False,
        memory=False,
    )
    assert [record.status for record in records(made).values()] == ["crashed", "crashed", "skipped"]


def test_a_missing_library_is_unsupported_with_the_install_command(tmp_path: Path) -> None:
    needs = RIGHT.replace("import numpy as np", 'import numpy as np\nREQUIRES = ("no-such-library",)')
    record = records(session(tmp_path, needs=needs))["needs", 1]
    assert record.status == "unsupported"
    assert "pip install no-such-library" in str(record.reason)


def test_a_case_that_fails_on_numpy_is_not_a_backends_fault(tmp_path: Path) -> None:
    folder = write(tmp_path / "more", broken=CASE.replace("xp.log1p", "xp.no_such_function"))
    write(tmp_path / "backends", hand=RIGHT)
    made = prepare(
        cases=[str(folder / "broken.py")],
        backends=[str(tmp_path / "backends" / "hand.py")],
        sizes=["1"],
        operators=GRADIENT,
        time=False,
        memory=False,
    )
    record = records(made)["hand", 1]
    assert record.status == "failed"
    assert "the case itself" in str(record.reason)
    assert "numpy has no no_such_function" in str(record.reason)


@pytest.mark.parametrize("statement", ["raise RuntimeError('no')", "import no_such_module"])
def test_a_users_backend_that_does_not_load_is_refused_before_measuring(tmp_path: Path, statement: str) -> None:
    made = session(tmp_path, hand=RIGHT, broken=misbehaving(statement, where="import"))
    with pytest.raises(BadFile, match=r"broken\.py: "):
        records(made)
    assert made.result().records == ()


def test_leaving_a_run_ends_its_workers_and_their_children(tmp_path: Path) -> None:
    """A child that a library forked must not linger after an interruption."""
    note = tmp_path / "pids"
    fork = f"import os, time; pid = os.fork(); open({str(note)!r}, 'a').write(f'{{pid}} ') if pid else time.sleep(600)"
    made = session(tmp_path, forks=misbehaving(fork), hand=RIGHT)
    events = made.events()
    for event in events:
        if isinstance(event, Checked) and event.record.job.backend == "forks":
            break
    events.close()
    children = [int(pid) for pid in note.read_text().split()]
    assert children
    for _ in range(100):
        if not any(_alive(pid) for pid in children):
            return
        time.sleep(0.05)
    pytest.fail(f"still running: {[pid for pid in children if _alive(pid)]}")


def _alive(pid: int) -> bool:
    """Running; a zombie is dead."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
