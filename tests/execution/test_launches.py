"""Launches with real processes: fresh, randomised, alternating, and compared with the check."""

import json
from pathlib import Path

import pytest

from adbench.execution.session import Session, exit_code, prepare
from adbench.execution.workers.randomisation import WorkerKey, randomise
from adbench.model.events import Checked, Event, MemoryMeasured, Started, Timed
from adbench.model.record import Record, Run
from tests.support.files import CASE, RIGHT, write

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("launches")]

LAUNCHES = 3
IN_A_LAUNCH = '"ADBENCH_PADDING" in os.environ'

# Records its environment when imported.
SPY = f"""
import json, os
with open(os.path.join(os.path.dirname(__file__), "seen.jsonl"), "a") as seen:
    json.dump({{
        "launch": {IN_A_LAUNCH},
        "hash": os.environ["PYTHONHASHSEED"],
        "padding": len(os.environ.get("ADBENCH_PADDING", "")),
        "threads": os.environ["OMP_NUM_THREADS"],
        "cpus": len(os.sched_getaffinity(0)),
    }}, seen)
    seen.write(chr(10))
"""
COUNT = """
import os
LAUNCHES = 0
if "ADBENCH_PADDING" in os.environ:
    with open(os.path.join(os.path.dirname(__file__), NAME), "a+") as count:
        count.write("x")
        count.seek(0)
        LAUNCHES = len(count.read())
"""


def session(
    folder: Path, *, memory: bool = False, quick: bool = True, launches: int = LAUNCHES, **backends: str
) -> Session:
    """Softplus at size 10 with these backends, a few short rounds in each launch."""
    write(folder / "cases", softplus=CASE.replace("sizes=", "flops=lambda n: 3 * n, sizes="))
    paths = write(folder / "backends", **backends)
    return prepare(
        cases=[str(folder / "cases" / "softplus.py")],
        backends=[str(paths / f"{name}.py") for name in backends],
        sizes=["10"],
        operators=["gradient"],
        quick=quick,
        launches=launches,
        memory=memory,
    )


def told(made: Session) -> tuple[list[Event], Run, dict[str, Record]]:
    events = list(made.events())
    run = made.result()
    return events, run, {record.job.backend: record for record in run.records}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event], Run, dict[str, Record]]:
    """One run of a correct backend, one that reports phases and records its start, one that gives other numbers in
    every process, and one that dies in the second launch."""
    folder = tmp_path_factory.mktemp("launches")
    calls = "        return lambda x: (right(x),)"
    assert calls in RIGHT
    made = session(
        folder,
        hand=RIGHT,
        phased=RIGHT.replace("import numpy as np", f"import time\nimport numpy as np\nfrom adbench import phase\n{SPY}")
        .replace(calls, f'        with phase("compile"):\n            time.sleep(0.01)\n{calls}'),
        drifts=RIGHT.replace("import numpy as np", "import os, random\nimport numpy as np").replace(
            "return 1 / (1", f"return (1 + 1e-3 * random.random() * ({IN_A_LAUNCH})) / (1"
        ),
        dies=RIGHT.replace("import numpy as np", f"import numpy as np\n{COUNT.replace('NAME', repr('dies.count'))}")
        .replace("    return 1 / (1", "    LAUNCHES == 2 and os.abort()\n    return 1 / (1"),
    )  # fmt: skip
    return folder, *told(made)


Found = tuple[Path, list[Event], Run, dict[str, Record]]


def test_every_launch_has_every_correct_cell_with_its_rounds(found: Found) -> None:
    _, _, _, records = found
    for name in ("hand", "phased"):
        time = records[name].time
        assert time is not None
        assert [launch.number for launch in time.launches] == [0, 1, 2]
        for launch in time.launches:
            assert 1 <= len(launch.rounds) <= 5
            assert all(r.calls >= 1 and r.ns > 0 for r in launch.rounds)
            assert launch.warm_up_calls is not None
            assert launch.warm_up_calls >= 3
            assert launch.import_seconds is not None
            assert launch.import_seconds > 0
        assert 0 < time.quartiles[0] <= time.seconds_per_call <= time.quartiles[1]


def test_the_reference_backend_has_a_control_in_the_same_launches(found: Found) -> None:
    _, events, run, records = found
    assert run.reference_backend == "hand"  # tape was not requested, so the first backend
    control = records["hand"].control
    assert control is not None
    assert [launch.number for launch in control.launches] == [0, 1, 2]
    assert all(record.control is None for name, record in records.items() if name != "hand")
    for event in events:
        if isinstance(event, Timed):
            pairs = {cell.control: cell.launch for cell in event.cells if cell.job.backend == "hand"}
            assert sorted(pairs) == [False, True]
            assert pairs[False] != pairs[True]


def test_checks_come_first_and_each_launch_is_reported_as_a_whole(found: Found) -> None:
    _, events, _, _ = found
    kinds = [type(event) for event in events if not isinstance(event, Started)]
    last_check = max(i for i, kind in enumerate(kinds) if kind is Checked)
    assert last_check < min(i for i, kind in enumerate(kinds) if kind is Timed)
    assert [event.number for event in events if isinstance(event, Timed)] == [0, 1, 2]
    assert MemoryMeasured not in kinds


def test_the_reported_phases_of_preparing_are_recorded(found: Found) -> None:
    time = found[3]["phased"].time
    assert time is not None
    assert set(time.phases) == {"compile"}
    assert 0 < time.phases["compile"] <= time.prepare_seconds
    assert all(launch.phases == {} for launch in found[3]["hand"].time.launches)  # type: ignore[union-attr]


def test_each_launch_starts_its_workers_differently_and_pins_them_before_the_import(found: Found) -> None:
    folder, _, run, _ = found
    seen = [json.loads(line) for line in (folder / "backends" / "seen.jsonl").read_text().splitlines()]
    launches = [one for one in seen if one["launch"]]
    assert len(launches) == LAUNCHES
    assert len({one["hash"] for one in launches}) == LAUNCHES
    assert len({one["padding"] for one in launches}) > 1
    assert {one["threads"] for one in seen} == {"1"}
    assert {one["cpus"] for one in launches} == {1}
    assert str(run.machine["measuring_cpus"]).isdigit()
    assert run.loop_overhead_ns is not None
    assert 0 < run.loop_overhead_ns < 1e6
    slopes_and_products = 4  # of log1p and of exp, next to these and the sum
    assert run.gradient_operations == {"softplus": pytest.approx(1 + slopes_and_products / 3)}


def test_a_result_that_differs_between_processes_is_wrong(found: Found) -> None:
    record = found[3]["drifts"]
    assert record.status == "wrong"
    assert "differs between processes" in str(record.reason)
    assert record.verdict is not None
    assert record.verdict.word == "right"  # in the check
    assert record.time is None
    assert record.reproduce is not None


def test_a_crash_in_a_launch_is_reported_and_earlier_results_stay(found: Found) -> None:
    _, events, _, records = found
    record = records["dies"]
    assert record.status == "crashed"
    assert str(record.reason).startswith("in launch 2: died of SIGABRT")
    assert record.time is not None
    assert [launch.number for launch in record.time.launches] == [0]
    assert exit_code(list(records.values())) == 1  # for the changing result; the crash alone would be 4
    assert exit_code([record]) == 4
    later = [event for event in events if isinstance(event, Timed) and event.number == 2]
    assert {cell.job.backend for event in later for cell in event.cells} == {"hand", "phased"}


def test_the_seed_determines_the_randomisation_of_a_session(found: Found) -> None:
    folder, _, run, _ = found
    seen = [json.loads(line) for line in (folder / "backends" / "seen.jsonl").read_text().splitlines()]
    keys = [WorkerKey(name) for name in run.versions] + [WorkerKey("hand", control=True)]
    for number, one in enumerate(one for one in seen if one["launch"]):
        drawn = randomise(run.seed, number, keys, 1).starts[WorkerKey("phased")].environment
        assert (one["hash"], one["padding"]) == (drawn["PYTHONHASHSEED"], len(drawn["ADBENCH_PADDING"]))


def test_a_worker_over_the_memory_limit_is_terminated_and_others_continue(tmp_path: Path) -> None:
    hog = "import time\n    held = [np.ones(2**20) for _ in range(10**6) if not time.sleep(0.002)]"
    session(tmp_path, hand=RIGHT, hog=RIGHT.replace("    return 1 / (1", f"    {hog}\n    return 1 / (1"))
    made = prepare(
        cases=[str(tmp_path / "cases" / "softplus.py")],
        backends=[str(tmp_path / "backends" / f"{name}.py") for name in ("hand", "hog")],
        sizes=["10"],
        operators=["gradient"],
        time=False,
        memory=False,
        mem_limit=700 * 2**20,
    )
    _, _, records = told(made)
    assert records["hand"].status == "ok"
    assert records["hog"].status == "crashed"
    assert "GiB of memory; the limit is 0.68 GiB (--mem-limit)" in str(records["hog"].reason)


def test_each_memory_method_runs_in_a_separate_process(tmp_path: Path) -> None:
    note = (
        "import os\nwith open(os.path.join(os.path.dirname(__file__), 'pids'), 'a') as pids:\n"
        "    pids.write(f'{os.getpid()} {\"MALLOC_ARENA_MAX\" in os.environ}\\n')\n"
    )
    noting = RIGHT.replace("import numpy as np", f"import numpy as np\n{note}")
    made = session(tmp_path, memory=True, quick=False, launches=1, hand=noting)
    events, _, records = told(made)
    memory = records["hand"].memory
    assert memory is not None
    by_memray = memory.allocated_peak_bytes.value is not None
    assert by_memray == (memory.python_peak_bytes.value is None)
    assert memory.resident_peak_bytes.value is not None or memory.resident_peak_bytes.reason
    pids = [line.split() for line in (tmp_path / "backends" / "pids").read_text().splitlines()]
    # temporary, check, launch with control, one per memory method used; one of these with allocator settings
    assert len({pid for pid, _ in pids}) == len(pids) == 2 + 2 + 2 + (not by_memray)
    assert sum(tuned == "True" for _, tuned in pids) == 1
    assert sum(isinstance(event, MemoryMeasured) for event in events) == 1
