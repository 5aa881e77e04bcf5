"""Backends that are correct when checked but not when timed: a run finds all of them and ranks none."""

from pathlib import Path

import pytest

from adbench.execution.session import exit_code, prepare
from adbench.model.record import Record, Run
from tests.support.files import CASE, RIGHT, write

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("timed results")]

CALL = "        return lambda x: (right(x),)\n"
assert CALL in RIGHT
OUR_LOOP = "_loop"  # the function of adbench/measure/clock.py that makes the timed calls


def with_call(body: str, before: str = "import numpy as np") -> str:
    """The right backend, whose gradient is the function `call` of this source."""
    indented = "".join(f"        {line}\n" for line in body.strip().splitlines())
    return RIGHT.replace("import numpy as np", before, 1).replace(CALL, f"{indented}        return call\n")


CHEATS = {
    "folds": with_call("""
folded = right(args[0])
call = lambda x: (folded,)
"""),
    "first_calls": with_call("""
made, folded = [], right(args[0])
def call(x):
    made.append(None)
    return (right(x) if len(made) < 40 else folded,)
"""),
    "checked_by_environment": with_call(
        """
timed, folded = "ADBENCH_PADDING" in os.environ, right(args[0])
call = lambda x: (folded if timed else right(x),)
""",
        "import os\nimport numpy as np",
    ),
    "checked_by_stack": with_call(
        f"""
folded = right(args[0])
def call(x):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != {OUR_LOOP!r}:
        frame = frame.f_back
    return (right(x) if frame is None else folded,)
""",
        "import sys\nimport numpy as np",
    ),
    "caches_by_id": with_call("""
kept = {}
def call(x):
    if id(x) not in kept:
        kept[id(x)] = x, right(x)
    return (kept[id(x)][1],)
"""),
    "caches_by_first_entry": with_call("""
kept = {}
def call(x):
    key = x[:1].tobytes()
    if key not in kept:
        kept[key] = right(x)
    return (kept[key],)
"""),
    "last_result_when_quick": with_call(
        """
last = [0.0, None]
def call(x):
    now = time.perf_counter()
    if last[1] is None or now - last[0] > 1e-3:
        last[1] = right(x)
    last[0] = now
    return (last[1],)
""",
        "import time\nimport numpy as np",
    ),
    "alternates": with_call("""
made = []
def call(x):
    made.append(None)
    if len(made) < 20 or len(made) < 40 and len(made) % 2 == 0:
        kept[len(made) % 2] = right(x)
        return (right(x),)
    return (kept[len(made) % 2],)
""").replace("def right", "kept = {}\n\n\ndef right"),
    "works_on_a_copy_of_the_example": with_call("""
import copy
mine = copy.deepcopy(args[0])
def call(x):
    mine[0] = x[0]
    return (right(mine),)
"""),
}
FAULTY = {  # only between calls, not in a single one
    "returns_its_buffer": (
        with_call("""
buffer = np.empty_like(args[0])
def call(x):
    buffer[...] = right(x)
    return (buffer,)
"""),
        "a later call changes the result",
    ),
    "writes_into_its_input": (
        with_call("""
def call(x):
    found = right(x)
    x *= 1 + 1e-16 + 2.0**-52
    return (found,)
"""),
        "changes its inputs",
    ),
    "adds_up": (
        with_call("""
total = np.zeros_like(args[0])
made = []
def call(x):
    made.append(None)
    if len(made) > 3:
        total[...] += right(x)
        return (total.copy(),)
    return (right(x),)
"""),
        "called again",
    ),
}
HONEST = {
    "hand": RIGHT,
    "remembers_by_content": with_call("""
kept = {}
def call(x):
    key = x.tobytes()
    if key not in kept:
        kept[key] = right(x)
    return (kept[key],)
"""),
}


def run(folder: Path, **backends: str) -> Run:
    write(folder, softplus=CASE, **backends)
    made = prepare(
        cases=[str(folder / "softplus.py")],
        backends=[str(folder / f"{name}.py") for name in backends],
        sizes=["10"],
        operators=["gradient"],
        quick=True,
        launches=2,
        memory=False,
    )
    for _ in made.events():
        pass
    return made.result()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    faulty = {name: text for name, (text, _) in FAULTY.items()}
    made = run(tmp_path_factory.mktemp("timed"), **HONEST, **CHEATS, **faulty)
    assert exit_code(made.records) == 1
    return {record.job.backend: record for record in made.records}


@pytest.mark.parametrize("name", CHEATS)
def test_a_backend_that_is_correct_only_when_checked_is_wrong(found: dict[str, Record], name: str) -> None:
    record = found[name]
    assert record.outcome.word == "wrong", record
    assert not record.outcome.is_measured
    assert record.time is None or not record.may_be_timed
    assert record.reason
    assert any(place in record.reason for place in ("perturbed", "returned while timed", "exchanged")), record.reason
    assert record.reproduce


@pytest.mark.parametrize("name", FAULTY)
def test_a_run_finds_faults_between_calls(found: dict[str, Record], name: str) -> None:
    record = found[name]
    assert record.outcome.word == "wrong"
    assert record.time is None
    assert FAULTY[name][1] in (record.reason or "")


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_backend_is_correct_and_timed(found: dict[str, Record], name: str) -> None:
    record = found[name]
    assert record.outcome.word == "right", record
    assert record.unperturbed is None
    assert record.time is not None
    assert len(record.time.launches) == 2
