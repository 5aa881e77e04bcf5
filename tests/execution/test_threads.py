"""Further numbers of threads: their jobs, workers and rounds, and that nothing mixes them with the run's own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from adbench.catalog.discovery import catalog
from adbench.cli import cli
from adbench.execution import session as sessions
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import RELATIONS, Request
from adbench.execution.session import exit_code, prepare
from adbench.measure import machine
from adbench.measure.machine.processors import usable_cpus
from adbench.model.errors import UsageError
from adbench.model.events import Event, Timed
from adbench.model.record import Record, Run
from adbench.model.settings import allowed_threads
from adbench.results.store import read_run, write_run
from tests.support.files import CASE, RIGHT, write

THREADED = f"{RIGHT}\n\nTHREADED = True\n"
SPY = """
import json, os
with open(os.path.join(os.path.dirname(__file__), "seen.jsonl"), "a") as seen:
    about = [os.environ["OMP_NUM_THREADS"], os.environ["ADBENCH_THREADS"], len(os.sched_getaffinity(0))]
    json.dump([*about, "ADBENCH_PADDING" in os.environ], seen)
    seen.write(chr(10))
"""
SLEEPS = "import time\nfrom adbench.model.settings import allowed_threads\nimport numpy as np"


def backends(folder: Path) -> dict[str, str]:
    """One with a call that takes half as long with two threads, one that is wrong with two, one without threads."""
    scales = THREADED.replace("import numpy as np", SLEEPS).replace(
        "    return 1 / (1", "    time.sleep(0.004 / allowed_threads())\n    return 1 / (1"
    )
    races = THREADED.replace("import numpy as np", SLEEPS).replace(
        "1 / (1", "(1 + 1e-3 * (allowed_threads() > 1)) / (1"
    )
    return {"alone": RIGHT, "scales": scales + SPY, "races": races}


def test_the_plan_has_a_job_for_each_number_where_the_library_uses_threads(tmp_path: Path) -> None:
    write(tmp_path, alone=RIGHT, uses=THREADED, variant='"""V."""\nVARIANT_OF = "uses"\n' + THREADED.partition("\n")[2])
    known = catalog(backend_paths=[tmp_path])
    asked = Request(cases=["hypot"], backends=["alone", "uses", "variant"], threads=(1, 2, 4), time=False, sizes=["1"])
    jobs = [job for job in plan(known, asked).jobs if job.operator in ("gradient", RELATIONS)]
    found = {(job.backend, job.operator, job.threads) for job in jobs}
    several = {(name, "gradient", count) for name in ("uses", "variant") for count in (0, 2, 4)}
    assert found == several | {("alone", "gradient", 0)} | {(n, RELATIONS, 0) for n in ("alone", "uses", "variant")}
    assert asked.settings.thread_counts == (1, 2, 4)
    assert asked.settings.threads == 1


def test_the_libraries_that_use_threads_say_so() -> None:
    found = {name for name, source in catalog().backends.items() if source.threaded and source.builtin}
    assert {"jax", "jax_eager", "torch", "torch_compile", "tape_compiled", "tape", "tape_closures", "autograd"} <= found
    assert not found & {"finite_differences", "complex_step", "casadi", "stan_math", "cpp_simd"}


def test_a_worker_is_told_its_number_and_one_thread_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADBENCH_THREADS", raising=False)
    assert allowed_threads() == 1
    for name, value in machine.thread_environment(3).items():
        monkeypatch.setenv(name, value)
    assert allowed_threads() == 3


def test_more_threads_than_processors_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sessions, "usable_cpus", lambda: (0, 1))
    made = prepare(cases=["hypot"], backends=["tape"], threads=(1, 3), time=False)
    with pytest.raises(UsageError, match=r"^--threads 3: this machine has 2 usable processors; give at most 2$"):
        next(made.events())


@pytest.mark.parametrize("text", ["0", "1,", "1,1", "a", "1,-2", ""])
def test_a_list_of_threads_that_is_none_is_one_line_and_exit_code_2(text: str) -> None:
    done = CliRunner().invoke(cli, ["check", "-c", "hypot", "--threads", text])
    assert done.exit_code == 2
    assert "not a list of different numbers from 1; write 2, or 1,2,4" in done.output


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event], Run]:
    if len(usable_cpus()) < 2:
        pytest.skip("two threads need two processors")
    folder = tmp_path_factory.mktemp("threads")
    write(folder / "cases", softplus=CASE)
    paths = write(folder / "backends", **backends(folder))
    made = prepare(
        cases=[str(folder / "cases" / "softplus.py")],
        backends=[str(paths / f"{name}.py") for name in ("alone", "scales", "races")],
        sizes=["10"], operators=["gradient"], quick=True, launches=4, memory=False, threads=[1, 2],
    )  # fmt: skip
    events = list(made.events(folder))
    return folder, events, made.result()


def by_backend(records: tuple[Record, ...]) -> dict[str, Record]:
    assert len({record.job for record in records}) == len(records)
    return {record.job.backend: record for record in records}


@pytest.mark.slow
def test_numbers_of_threads_take_turns_and_have_their_own_processes_and_processors(
    found: tuple[Path, list[Event], Run],
) -> None:
    folder, events, run = found
    for event in (event for event in events if isinstance(event, Timed)):
        jobs = {(cell.job.backend, cell.job.threads, cell.control) for cell in event.cells}
        assert jobs == {("alone", 0, False), ("alone", 0, True), ("scales", 0, False), ("scales", 2, False)} | {
            ("races", 0, False)
        }
    seen = [json.loads(line) for line in (folder / "backends" / "seen.jsonl").read_text().splitlines()]
    assert {tuple(about[:3]) for about in seen if about[3]} == {("1", "1", 1), ("2", "2", 2)}
    assert run.settings["threads"] == 1
    assert run.settings["more_threads"] == "2"


@pytest.mark.slow
def test_each_number_is_checked_and_a_wrong_result_is_an_alarm_but_never_timed(
    found: tuple[Path, list[Event], Run],
) -> None:
    _, _, run = found
    own, more = by_backend(run.records), by_backend(run.threaded)
    assert {name: record.outcome.word for name, record in own.items()} == dict.fromkeys(own, "right")
    assert {name: record.outcome.word for name, record in more.items()} == {"scales": "right", "races": "wrong"}
    assert all(record.time is not None for record in own.values())
    wrong = more["races"]
    assert wrong.time is None
    assert str(wrong.reason).startswith("with 2 threads: ")
    assert "'--threads', '2'" in str(wrong.reproduce)
    assert exit_code(run.every_record) == 1
    assert exit_code(run.records) == 0


@pytest.mark.slow
def test_the_file_and_the_journal_keep_further_numbers_apart(found: tuple[Path, list[Event], Run]) -> None:
    folder, _, run = found
    write_run(folder, run)
    assert read_run(folder / "run.json") == run == read_run(folder / "journal.jsonl")
    assert {job.threads for job in (record.job for record in run.records)} == {0}
    assert {job.threads for job in (record.job for record in run.threaded)} == {2}
