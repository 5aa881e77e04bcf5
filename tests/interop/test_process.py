"""Programs in other languages as backends: both examples, and possible failures."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adbench import Unsupported
from adbench.catalog.discovery import catalog
from adbench.execution.session import prepare
from adbench.interop.process import process_backend as driving
from adbench.interop.process.exchange import LARGE, BadValue, Exchange
from adbench.model.case import function_of
from tests.interop.programs import command

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "other_languages"
KNOWN = catalog()


def lacking(what: str) -> None:
    """Skip, or fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} (in CI nothing is skipped)")
    pytest.skip(what)


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("cc") is None or not Path("/usr/include/cjson/cJSON.h").exists():
        lacking("cc or cJSON is not there; apt install gcc libcjson-dev")
    made = tmp_path_factory.mktemp("c") / "worker"
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", made, EXAMPLES / "c" / "worker.c", "-lcjson", "-lm"],
        check=True,
    )
    return str(made)


@pytest.fixture(scope="module")
def in_javascript() -> str:
    folder = EXAMPLES / "javascript"
    if shutil.which("node") is None or not (folder / "node_modules" / "ganja.js").exists():
        lacking("node or ganja.js is not there; npm ci --prefix docs/examples/other_languages/javascript")
    return shlex.join(["node", str(folder / "worker.mjs")])


@pytest.fixture(params=["in_c", "in_javascript"])
def example(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


def asked(used: Any, name: str, operator: str, size: int, vector: Any = None) -> Any:
    case = KNOWN.cases[name]
    names, args, wrt = case.bind(size, 0)
    given = (*args, vector) if vector is not None else args
    return used(operator, function_of(case, names, np), given, wrt)(*given)


@pytest.mark.parametrize("large", [LARGE, 1])  # in base64, and in files
@pytest.mark.parametrize("name", ["log_sum_exp", "rosenbrock"])
def test_the_examples_are_correct(example: str, name: str, large: int) -> None:
    used, case = driving.driven(example, str(Path.cwd()), large), KNOWN.cases[name]
    names, args, _ = case.bind(7, 0)
    assert asked(used, name, "value", 7) == pytest.approx(function_of(case, names, np)(*args))
    assert case.gradient is not None
    (found,) = asked(used, name, "gradient", 7)
    np.testing.assert_allclose(found, case.gradient(*args)[0], rtol=1e-12)


def test_the_examples_time_themselves_and_their_memory_is_measured_from_outside(example: str) -> None:
    used, case = driving.driven(example, str(Path.cwd())), KNOWN.cases["log_sum_exp"]
    names, args, wrt = case.bind(100, 0)
    call = used("gradient", function_of(case, names, np), args, wrt)
    assert len(call.runs(args, 5, 0.0)) == 5
    assert sum(call.runs(args, 1, 0.001)) >= 1_000_000
    figure = call.resident_peak(args)
    assert figure.value is not None or figure.reason


def test_javascript_has_products_with_a_direction_and_c_both_at_once(in_javascript: str, in_c: str) -> None:
    case = KNOWN.cases["rosenbrock"]
    assert case.gradient is not None
    gradient = case.gradient(*case.bind(5, 0)[1])[0]
    direction = (np.arange(5.0),)
    found = asked(driving.driven(in_javascript, "."), "rosenbrock", "jvp", 5, direction)
    assert found == pytest.approx(gradient @ direction[0])
    value, (by_x,) = asked(driving.driven(in_c, "."), "rosenbrock", "value_and_gradient", 5)
    assert np.shape(value) == ()
    np.testing.assert_allclose(by_x, gradient, rtol=1e-12)


def test_an_example_reports_what_it_lacks(example: str) -> None:
    used = driving.driven(example, ".")
    with pytest.raises(Unsupported, match="only"):
        asked(used, "lstm", "gradient", 1)
    with pytest.raises(Unsupported, match=r"only|no hessian"):
        asked(used, "rosenbrock", "hessian", 3)


def test_a_run_with_an_example_is_checked(in_c: str) -> None:
    session = prepare(
        backends=[f"process:{in_c}"], cases=["product_plus_constant", "log_sum_exp"], sizes=["1", "3"],
        operators=["gradient"], time=False,
    )  # fmt: skip
    for _ in session.events():
        pass
    found = {(record.job.case, record.job.size): record.status for record in session.result().records}
    assert found["log_sum_exp", 3] == "ok"
    assert found["product_plus_constant", 1] == "unsupported"


WORKER = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    r = {"id": m["id"]}
    r |= {"hello": {"protocol": 1}, "prepare": {"phases": {"tape": 0.5}}}.get(m["do"], {})
    if m["do"] == "call":
        r |= {"result": {"list": [m["inputs"]["x"]]}, "nanoseconds": [10] * m["runs"]}
    MISCHIEF
    print(json.dumps(r), flush=True)
"""


@pytest.mark.parametrize(
    ("mischief", "reason"),
    [
        ('r["id"] = 17 if m["do"] == "call" else m["id"]', "with the id 17"),
        ('m["do"] == "call" and r.pop("nanoseconds")', "violates the rule required"),
        ('m["do"] == "call" and r.update(result={"list": []})', "has 0 arrays; expected 1"),
        ('m["do"] == "call" and r.update(result={"shape": [2], "base64": "AAAA"})', "needs 16 bytes; got 3"),
        ('m["do"] == "call" and r.update(result={"shape": [1], "base64": "????"})', "base64 is damaged"),
        (
            'm["do"] == "call" and r.update(result={"shape": [1], "file": "gone"})',
            "file gone of an array cannot be read",
        ),
        ('m["do"] == "call" and r.update(result={"shape": [1], "file": "../../etc/passwd"})', "violates the rule"),
        ('r = {"id": m["id"], "failed": "no luck"}', "no luck"),
        ('m["do"] == "hello" and r.update(protocol=2)', "has protocol version 2; this adbench needs 1"),
        ('m["do"] == "call" and sys.exit(5)', "exited with code 5$"),
        ('m["do"] == "call" and print("hello?", flush=True)', "not JSON"),
    ],
)
def test_a_bad_program_is_reported(tmp_path: Path, mischief: str, reason: str) -> None:
    used = driving.driven(command(tmp_path, WORKER.replace("MISCHIEF", mischief)), str(tmp_path))
    for _ in range(2):  # it restarts
        with pytest.raises(driving.Failed, match=reason.replace("?", r"\?")):
            asked(used, "log_sum_exp", "gradient", 2)


def test_the_reason_of_an_exit_has_the_programs_last_error() -> None:
    """As a worker process sees it: its standard error is a file."""
    command = shlex.join([sys.executable, "-c", "import sys; sys.exit('Error: no worker.mjs\\n    at line 1\\n')"])
    used = (
        "from adbench.interop.child_process import Child, Failed\n"
        "import sys\n"
        "print('Error: an earlier one', file=sys.stderr, flush=True)\n"
        f"try: Child({command!r}, '.').ask(str, str, len)\n"
        "except Failed as failed: print(failed)"
    )
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            [sys.executable, "-c", used], stdout=subprocess.PIPE, stderr=errors, text=True, check=True
        )
    assert done.stdout.strip() == "the program exited with code 1: Error: no worker.mjs"


def test_a_program_that_died_prepares_again(tmp_path: Path) -> None:
    text = WORKER.replace("MISCHIEF", 'if m["do"] == "call" and m["id"] > 2:\n        sys.exit(1)')
    used, case = driving.driven(command(tmp_path, text), str(tmp_path)), KNOWN.cases["log_sum_exp"]
    names, args, wrt = case.bind(2, 0)
    call = used("gradient", function_of(case, names, np), args, wrt)
    call(*args)
    with pytest.raises(driving.Failed):
        call(*args)
    np.testing.assert_array_equal(call(*args)[0], args[0])


SESSION = Path(__file__).with_name("process_session.jsonl")


def test_the_documented_session_fits_the_schema_and_equals_adbenchs(tmp_path: Path) -> None:
    """A recorded session, replayed by a program that insists on each request."""
    rules = json.loads(driving.SCHEMA.read_text("utf-8"))
    lines = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    for line in lines:
        jsonschema.validate(line, rules)
    text = f"""
import json, sys
lines = [json.loads(line) for line in open({str(SESSION)!r})]
for asked, answer in zip(lines[::2], lines[1::2]):
    found = json.loads(sys.stdin.readline())
    if found.get("do") == "hello":
        found["folder"] = asked["folder"]
    assert found == asked, (found, asked)
    print(json.dumps(answer), flush=True)
"""
    used = driving.driven(command(tmp_path, text), str(tmp_path))
    case = KNOWN.cases["product_plus_constant"]
    names, args, wrt = case.bind(1, 0)
    call = used("gradient", function_of(case, names, np), args, wrt)
    assert call(*args) == pytest.approx((2.2, 20.6))
    assert call.runs(args, 3, 0.0) == [120, 110, 111]


@settings(deadline=None)
@given(arrays(np.float64, st.lists(st.integers(0, 4), max_size=3).map(tuple)))
def test_arrays_survive_a_round_trip(array: Any) -> None:
    for large in (1, 10**6):
        there = Exchange(large)
        value = json.loads(json.dumps(there.encoded({"a": [array, 3, "text", True]})))
        back = there.decoded(value)["a"]
        np.testing.assert_array_equal(back[0], array)
        assert back[1:] == [3, "text", True]
        there.clear()
        assert not list(there.folder.iterdir())


def test_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-c",
            "import os\nfrom adbench.interop.process.exchange import Exchange\n"
            "e = Exchange()\nprint(e.folder, flush=True)\nos.kill(os.getpid(), 9)",
        ],
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    folder = Path(done.stdout.strip())
    assert folder.is_dir()
    Exchange()
    assert not folder.exists()


def test_a_damaged_array_is_refused() -> None:
    with pytest.raises(BadValue, match="needs 8 bytes"):
        Exchange().decoded({"shape": [], "base64": ""})


@pytest.fixture(autouse=True)
def _nothing_left_in_memory() -> Iterator[None]:
    yield
    import gc

    gc.collect()
