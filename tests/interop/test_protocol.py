"""gradbench's protocol: a recorded session in both directions, damaged lines, and a log of it as a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adbench.catalog.discovery import catalog, load
from adbench.cli.support.output_formats import FORMATS, text_of
from adbench.interop.gradbench import tool_backend as driving
from adbench.interop.gradbench.messages import message, response, written
from adbench.interop.gradbench.modules import MODULES
from adbench.interop.gradbench.tool import Tool
from adbench.interop.line_protocol import TooLong, lines
from adbench.model.backend import from_module
from adbench.model.case import function_of
from adbench.model.errors import BadFile
from adbench.reports.text import terminal
from adbench.results.importers.gradbench_log import read_log
from adbench.results.importers.timing_files import read_input
from tests.interop.programs import command
from tests.support.command import adbench_in_a_process

SESSION = Path(__file__).with_name("gradbench_session.jsonl")
ROOT = Path(__file__).parents[2]
ADBENCH = [sys.executable, "-c", "from adbench.cli import main; main()"]
KNOWN = catalog()


def recorded(part: str) -> list[dict[str, Any]]:
    found = (json.loads(line) for line in SESSION.read_text("utf-8").splitlines())
    return [line[part] for line in found if part in line]


@pytest.fixture(scope="module")
def tool() -> Tool:
    return Tool(from_module("tape", load(KNOWN.backends["tape"])))


def answer(tool: Tool, line: str | bytes) -> dict[str, Any]:
    text = tool.answered(line.encode() if isinstance(line, str) else line)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
    return found


def test_our_tool_answers_a_recorded_session() -> None:
    """In a separate process, with a backend that prints: standard output has only the protocol."""
    sent = "".join(json.dumps(each) + "\n" for each in recorded("message"))
    done = subprocess.run(
        [*ADBENCH, "gradbench-tool", "-b", "tape"],
        input=sent, capture_output=True, text=True, cwd=ROOT, timeout=200, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(recorded("response"))
    for ours, theirs in zip(found, recorded("response"), strict=True):
        assert ours["id"] == theirs["id"]
        assert ours.get("success") == theirs.get("success")
        assert (ours.get("error") or "").startswith(theirs.get("error") or "")
        if "output" in theirs:
            assert ours["output"] == pytest.approx(theirs["output"], rel=1e-12)
        runs = [[t["name"] for t in each.get("timings", [])].count("evaluate") for each in (ours, theirs)]
        assert runs[0] == runs[1]
    assert found[0]["tool"] == "adbench tape"


def test_a_backends_prints_are_not_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        '"""Loud."""\nimport os, sys\nprint("imported")\n'
        'def prepare(operator, f, args, wrt):\n    os.write(1, b"from C\\n")\n    print("prepared")\n'
        "    print(sys.stdin.read())\n    return f\n"
    )
    sent = (
        '{"id": 5, "kind": "evaluate", "module": "hello", "function": "square", "input": 3}\n{"id": 6, "kind": "?"}\n'
    )
    done = subprocess.run(
        [*ADBENCH, "gradbench-tool", "-b", str(tmp_path / "loud.py")],
        input=sent, capture_output=True, text=True, cwd=ROOT, timeout=200, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["id"], first["output"], second) == (5, 9.0, {"id": 6})
    assert "from C" in done.stderr
    assert "imported" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="counts the process's threads in /proc")
@pytest.mark.parametrize(("given", "threads"), [((), 1), (("--threads", "2"), 2)])
def test_libraries_get_one_thread_unless_more_are_asked_for(tmp_path: Path, given: Any, threads: int) -> None:
    """Whatever the environment says; numpy's BLAS starts its threads when it is imported."""
    (tmp_path / "counts.py").write_text(
        '"""Counts."""\nimport os, numpy\nprint(len(os.listdir("/proc/self/task")), "threads")\n'
        "def prepare(operator, f, args, wrt):\n    return f\n"
    )
    done = adbench_in_a_process(
        tmp_path, "gradbench-tool", "-b", "counts.py", *given, stdin="", OPENBLAS_NUM_THREADS="4"
    )
    assert done.code == 0, done.err
    assert f"{min(threads, os.cpu_count() or 1)} threads" in done.err.splitlines()


def test_a_recorded_session_replays_through_our_driver(tmp_path: Path) -> None:
    """A tool that checks each message of the session, and gives the recorded answers."""
    used = [(m, r) for m, r in zip(recorded("message"), recorded("response"), strict=True) if m["id"] in (0, 5, 6, 7)]
    script = f"""
import json, sys
for number, (asked, answer) in enumerate({used!r}):
    found = json.loads(sys.stdin.readline())
    assert found["kind"] == asked["kind"] and found["id"] == number, found
    for name in ("module", "function", "input"):
        assert found.get(name) == asked.get(name), (name, found)
    answer["id"] = number
    print(json.dumps(answer), flush=True)
""".replace("true", "True").replace("false", "False")
    case = KNOWN.cases["log_sum_exp"]
    driver = driving.Driver(command(tmp_path, script), str(tmp_path))
    more = {"x": [0.0] * 4, "min_runs": 3, "min_seconds": 0}
    assert driver.evaluate("lse", "primal", more).output == pytest.approx(np.log(4))
    found = driver.evaluate("lse", "gradient", more)
    assert found.output == [0.25] * 4
    assert [t.nanoseconds for t in found.timings or () if t.name == "evaluate"] == [90000, 60000, 70000]
    assert case.name == "log_sum_exp"
    assert callable(function_of(case, ("x",), np))


def test_messages_survive_a_round_trip() -> None:
    for line in recorded("message"):
        assert json.loads(written(message(json.dumps(line).encode()))) | {"kind": line["kind"]} == line
    for line in recorded("response"):
        found = response(json.dumps(line).encode())
        assert response(written(found).encode()) == found


@pytest.mark.parametrize(
    ("line", "number", "error"),
    [
        ("", None, "not JSON"),
        ("hello", None, "not JSON"),
        ("[1, 2]", None, "an object"),
        ('{"kind": "define", "module": "lse"}', None, "needs an integer id"),
        ('{"id": "7", "kind": "define"}', None, "needs an integer id"),
        ('{"id": 7}', 7, "missing required field kind"),
        ('{"id": 7, "kind": 3}', 7, ".kind: expected str, got 3"),
        ('{"id": 7, "kind": "define"}', 7, "missing required field module"),
        ('{"id": 7, "kind": "evaluate", "module": "lse", "function": "primal"}', 7, "missing required field input"),
        ('{"id": 7, "kind": "analysis", "valid": true}', 7, "missing required field of"),
        ('{"id": 7, "kind": "evaluate", "module": "lse", "function": "primal", "input": NaN}', 7, "not JSON"),
        (
            '{"id": 7, "kind": "evaluate", "module": "lse", "function": "primal", "input": 1e999}',
            7,
            "beyond float64",
        ),
        ('{"id": 7, "kind": "evaluate", "module": "lse", "input": {"x": [1, 2', 7, "not JSON"),
        ('{"id": 7, "kind": "define", "module": "sudoku"}', 7, "no module 'sudoku'; use one of hello"),
        ('{"id": 7, "kind": "evaluate", "module": "lse", "function": "cube", "input": 1}', 7, "no function 'cube'"),
        ('{"id": 7, "kind": "x", "y": ' + "[" * 100_000, 7, "nested too deeply"),
        (b'{"id": 7, "kind": "\xff"}', 7, "not JSON"),
    ],
)
def test_damaged_messages_are_answered_with_the_error(
    tool: Tool, line: str | bytes, number: int | None, error: str
) -> None:
    found = answer(tool, line)
    assert (found["id"], found["success"]) == (number, False)
    assert error in found["error"]
    assert answer(tool, '{"id": 8, "kind": "sing"}') == {"id": 8}  # and the session continues


@pytest.mark.parametrize(
    ("module", "function", "change", "error"),
    [
        ("gmm", "objective", {"x": [[1.0]]}, "x must be 1 × 3 numbers; got 1 × 1"),
        ("gmm", "objective", {"l": None}, "l must be an array; got null"),
        ("gmm", "objective", {"gamma": 0}, "gamma must be greater than 0"),
        ("gmm", "objective", {"m": -1}, "m must be at least 0"),
        ("ba", "jacobian", {"cam": [0.0] * 11}, "nonzero angle"),
        ("ba", "objective", {"p": 10**8}, "the limit is 50000000"),
        ("lstm", "jacobian", {"sequence": [[1.0] * 4]}, "at least two frames"),
        ("lstm", "jacobian", {"state": [[1.0, 2.0]]}, "state must be 4 × 4 numbers"),
        ("ht", "objective", {"theta": [0.0] * 26}, "must turn the hand"),
        ("ode", "primal", {"s": 0}, "s must be at least 1"),
        ("ode", "primal", {"s": True}, "s must be an integer"),
        ("det", "gradient", {"ell": 3}, "A must be 9 numbers; got 4"),
        ("lse", "primal", {"x": []}, "at least one number"),
        ("lse", "primal", {"x": [1.0, [2.0]]}, "different lengths"),
        ("lse", "primal", {"x": ["a"]}, "got a string"),
        ("lse", "primal", {"x": [True]}, "true or false"),
        ("llsq", "gradient", {"n": 1}, "n must be at least 2"),
        ("kmeans", "dir", {"centroids": [[0.0], [100.0]]}, "is nearest to no point"),
        ("particle", "ff", {"w": "0"}, "w must be a number; got a string"),
        ("saddle", "rr", {"start": [1.0]}, "start must be 2 numbers"),
        ("lse", "primal", {"min_runs": -1}, "min_runs must be at least 0"),
        ("lse", "primal", {"min_seconds": "long"}, "min_seconds must be a number"),
        ("lse", "gradient", {"x": [1e308, 1.0, 10**400]}, "must hold numbers"),
    ],
)
def test_unsuitable_inputs_are_reported(
    tool: Tool, module: str, function: str, change: dict[str, Any], error: str
) -> None:
    data = {**MODULES[module].sample, **change}
    asked = {"id": 1, "kind": "evaluate", "module": module, "function": function, "input": data}
    found = answer(tool, json.dumps(asked))
    assert found["success"] is False
    assert error in found["error"]


def test_an_output_that_json_cannot_express_is_a_failure(tool: Tool) -> None:
    asked = {"id": 1, "kind": "evaluate", "module": "hello", "function": "square", "input": 1e200}
    found = answer(tool, json.dumps(asked))
    assert found["success"] is False
    assert "not finite" in found["error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=6), part, max_size=4),
    max_leaves=12,
)
SMALL = {name: module for name, module in MODULES.items() if name not in ("particle", "saddle")}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message with a changed part or changed bytes, or no message at all."""
    module = draw(st.sampled_from(sorted(SMALL)))
    data = SMALL[module].sample
    asked: dict[str, Any] = {
        "id": draw(st.integers(0, 99)),
        "kind": draw(st.sampled_from(["evaluate", "define", "start"])),
    }
    asked |= {"module": module, "function": draw(st.sampled_from(sorted(SMALL[module].functions))), "input": data}
    if isinstance(data, dict) and draw(st.booleans()):
        asked["input"] = {**data, draw(st.sampled_from(sorted(data))): draw(JSON)}
    elif draw(st.booleans()):
        asked[draw(st.sampled_from(sorted(asked)))] = draw(JSON)
    line = json.dumps(asked).encode()
    if draw(st.booleans()):
        where = draw(st.integers(0, len(line)))
        line = line[:where] + draw(st.binary(max_size=3)) + line[where + draw(st.integers(0, 5)) :]
    return draw(st.just(line) | st.binary(max_size=40)).replace(b"\n", b" ")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged())
def test_any_message_is_answered_with_one_line_of_json(tool: Tool, line: bytes) -> None:
    found = answer(tool, line)
    assert set(found) <= {"id", "success", "output", "timings", "error", "tool", "config"}
    assert found.get("success") is not False or found["error"]
    assert found.get("success") is not True or "output" in found or "timings" in found


def through_a_pipe(data: bytes, most_bytes: int) -> list[bytes | TooLong]:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        return list(lines(reading, most_bytes))
    finally:
        thread.join()
        os.close(reading)


def test_an_overlong_line_is_discarded_and_the_next_is_read(tool: Tool) -> None:
    long = b'{"id": 41, "x": "' + b"y" * 300_000 + b'"}'
    found = through_a_pipe(long + b'\n{"id": 42, "kind": "sing"}\n' + long, 100_000)
    assert found[0] == TooLong(long[:4096], len(long))
    assert found[1] == b'{"id": 42, "kind": "sing"}'
    assert isinstance(found[2], TooLong)
    told = json.loads(tool.answered(found[0]))
    assert (told["id"], told["success"]) == (41, False)
    assert f"a line of {len(long)} bytes" in told["error"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=30).map(lambda text: text.replace(b"\n", b"")), max_size=6), st.booleans())
def test_lines_are_split_at_newlines(parts: list[bytes], ended: bool) -> None:
    data = b"\n".join(parts) + (b"\n" if ended and parts else b"")
    wanted = data.split(b"\n")
    if wanted[-1] == b"":
        wanted.pop()
    assert through_a_pipe(data, 1000) == wanted


def test_a_log_becomes_a_run_with_its_own_figures() -> None:
    run = read_log(SESSION)
    found = {(r.job.case, r.job.size, r.job.operator): r for r in run.records}
    assert {key: r.status for key, r in found.items()} == {
        ("hello", 1, "value"): "ok",
        ("lse", 4, "value"): "ok",
        ("lse", 4, "gradient"): "wrong",
        ("lse", 1, "gradient"): "failed",
        ("sudoku", 1, "value"): "unsupported",
    }
    assert {r.job.backend for r in run.records} == {"adbench tape (gradbench)"}
    time = found["lse", 4, "value"].time
    assert time is not None
    assert [r.ns for r in time.launches[0].rounds] == [9000, 6000, 7000]
    assert time.seconds_per_call == pytest.approx(7e-6)
    assert time.prepare_seconds == pytest.approx(100_000e-9 - 22_000e-9)  # the exchange without the runs
    assert found["lse", 4, "gradient"].reason == "expected zeros"
    assert run.settings["made_by"] == "gradbench"


@pytest.mark.parametrize("form", FORMATS)
def test_a_log_has_every_form_of_report(form: str) -> None:
    assert "gradbench" in text_of(read_log(SESSION), form)


def test_a_log_has_a_table() -> None:
    assert "gradbench" in terminal.table(read_log(SESSION), width=120, colour=False)


def test_a_log_can_be_compared() -> None:
    side = read_input(SESSION)
    assert side.made_by == "gradbench"
    assert sum(sample.timed for sample in side.samples.values()) == 2
    assert all(len(sample.logs) == 1 for sample in side.samples.values() if sample.timed)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it holds no evaluation"),
        ('{"message": {"id": 0, "kind": "start"}}\n', "it holds no evaluation"),
        ('{"message": {"kind": "start"}}\n', r"line 1 is damaged.*: \.message: object missing required field id"),
        ('{"message": {"id": 0, "kind": "start"}}\n{"mess', "line 2 is damaged, or .*: Unterminated string"),
        ("[]\n", r"line 1 is damaged, or this is not a gradbench log: expected object, got \[\]"),
        (
            '{"response": {"id": 0, "timings": [{"name": "evaluate", "nanoseconds": -1}]}}\n',
            r"line 1 .*: \.response\.timings\[0\]\.nanoseconds: expected float >= 0.0, got -1",
        ),
    ],
)
def test_a_file_that_is_not_a_log_is_a_one_line_error(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(text)
    with pytest.raises(BadFile, match=fault):
        read_log(file)


def test_a_truncated_log_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(SESSION.read_text().splitlines()[:13]))
    (last,) = [record for record in read_log(file).records if record.job.case == "lse"]
    assert last.status == "crashed"
    assert "ends without its answer" in (last.reason or "")


def test_the_tools_other_timings_count_as_preparation(tmp_path: Path) -> None:
    timings = [{"name": "evaluate", "nanoseconds": 5.0}, *[{"name": "compile", "nanoseconds": 2e9}] * 2]
    lines = [
        {
            "message": {
                "id": 1,
                "kind": "evaluate",
                "module": "ba",
                "function": "jacobian",
                "input": [1, True, {"n": 2}],
            }
        },
        {"response": {"id": 1, "success": True, "timings": timings}},
        {"message": {"id": 2, "kind": "evaluate", "module": "a\nb", "function": "dir", "input": None}},
        {"response": {"id": 2, "success": True, "timings": None, "error": None}},
    ]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    ba, other = read_log(file).records
    assert (ba.job.case, ba.job.size, ba.job.operator, ba.job.backend) == ("ba", 2, "jacobian", "log (gradbench)")
    assert ba.time is not None
    assert (ba.time.prepare_seconds, ba.time.phases) == (4.0, {"compile": 4.0})
    assert (other.job.case, other.job.size, other.job.operator, other.time) == ("a b_dir", 1, "value", None)


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    yield
    import gc

    gc.collect()
