"""`adbench.run`, and what a run offers in Python: parts, frames, HTML, files."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import adbench
from adbench.execution.sent_cases import pickled, sent_case
from adbench.model.errors import BadOutput
from adbench.model.events import Checked, Event, Started
from adbench.reports.text import progress
from tests import sent
from tests.reports import page, runs
from tests.reports.test_hostile import HOSTILE

ROOT = Path(__file__).parents[1]
RUN = adbench.Run.of(
    runs.run(
        [
            *(record for size in (10, 100) for record in runs.race([("tape", 3e-6), ("jax", 1e-6)], size=size)),
            runs.record(backend="liar", status="wrong", reason="sigma is <off>"),
            runs.record(backend="differences", word="approximate", seconds=1e-5, memory=runs.memory()),
            runs.record("other", 5, "tape", memory=runs.memory()),
        ]
    )
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[adbench.Run, list[Event], Path]]:
    """A case and a function of a module on the tape, the events that were reported, and the run's folder."""
    events: list[Event] = []
    folder = tmp_path_factory.mktemp("measured") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ADBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        run = adbench.run(
            [sent.CUBES, (sent.square, 1.0, 2.0)],
            "tape",
            launches=1,
            memory=False,
            progress=events.append,
            output=folder,
        )
        yield run, events, folder


@pytest.mark.slow
def test_a_run_from_python_checks_and_measures_in_worker_processes(measured: Any) -> None:
    run, events, _ = measured
    assert isinstance(run, adbench.Run)
    assert {record.job.case for record in run.records} == {"CUBES", "square"}
    assert {record.outcome.word for record in run.records} == {"right"}
    assert all(record.time is not None and record.memory is None for record in run.records)
    assert {job.size for job in (record.job for record in run["CUBES"].records)} == {2, 4}
    assert sum(isinstance(event, Checked) for event in events) == len(run.records)


@pytest.mark.slow
def test_a_run_is_read_again_from_its_folder_and_its_cells_repeat_from_anywhere(
    measured: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run, _, folder = measured
    assert adbench.load(folder) == run
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    file = sent_case((sent.square, 1.0, 2.0), "import")
    monkeypatch.chdir(tmp_path)
    assert "right" in adbench.check_cell(f"{file}:square", 1, "tape")


def test_an_interrupted_run_keeps_its_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function is from a module that only this process finds."""
    (tmp_path / "only_here.py").write_text("def f(x):\n    return x * x\n")
    monkeypatch.syspath_prepend(tmp_path)

    def stop(event: Event) -> None:
        if isinstance(event, Checked):
            raise KeyboardInterrupt

    f = importlib.import_module("only_here").f
    with pytest.raises(KeyboardInterrupt) as raised:
        adbench.run((f, 1.0), "tape", time=False, progress=stop, output=tmp_path / "out")
    assert any(f"--resume {tmp_path / 'out'}" in note for note in raised.value.__notes__)
    assert [record.outcome.word for record in adbench.load(tmp_path / "out").records] == ["right"]


def test_a_function_that_was_typed_in_is_measured_without_running_the_script_again(tmp_path: Path) -> None:
    """`python -` has neither a file nor a guard around its main part, as a notebook has none."""
    script = """
import adbench, os, numpy as np
print("once")
def f(x):
    return 2.0 * x * x
try:
    adbench.run((f, 1.0), "tape")
except adbench.UsageError as error:
    print(error)
run = adbench.run((f, 1.0), "tape", operators="gradient", time=False, send="pickle")
print(repr(run).partition(": ")[2])
print("JAX_ENABLE_X64" in os.environ)  # the user's process keeps the defaults of its libraries
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "once"
    assert lines[1].startswith("the worker processes cannot import it: f is defined in __main__")
    assert "use send='pickle'" in lines[1]
    assert lines[2:] == ["1 case, 1 backend, 1 record: 1 right>", "False"]
    assert done.stderr == ""


LOCAL = sent.made(2.0)


@pytest.mark.parametrize(
    ("given", "send", "says"),
    [
        ((LOCAL, 1.0), "import", "local object.*send='pickle'"),
        ((LOCAL, threading.Lock()), "pickle", "cannot be pickled"),
        ((1.0, 2.0), "import", "is not a case"),
        ((LOCAL, 1.0), "fork", "no way to send a function 'fork'"),
    ],
    ids=["local", "lock", "number", "way"],
)  # fmt: skip
def test_what_cannot_be_sent_says_what_else_to_do(given: Any, send: Any, says: str) -> None:
    with pytest.raises(adbench.UsageError, match=says) as raised:
        sent_case(given, send)
    assert "\n" not in str(raised.value)


def test_a_custom_gradient_of_jax_keeps_its_rule_on_the_way() -> None:
    """jax's own pickling forgets the function."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, g: (5.0 * x * g,))
    back = pickle.loads(pickled({"f": f}, "pickle"))["f"]  # noqa: S301 - written here
    assert jax.grad(back)(2.0) == 10.0


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"lauches": 3}, "no setting 'lauches'"),
        ({"launches": 0}, "launches must be a whole number from 1; got 0"),
        ({"budget": "10m"}, "budget must be a number of seconds"),
        ({"cases": sent.square}, "square is a function without arguments"),
        ({"cases": ["no_such_case"]}, "no case 'no_such_case'"),
        ({"operators": "gradiant"}, "no operator 'gradiant'"),
    ],
    ids=["setting", "number", "text", "function", "case", "operator"],
)
def test_an_impossible_request_is_refused_in_one_line(asked: Any, says: str) -> None:
    with pytest.raises(adbench.UsageError, match=says) as raised:
        adbench.run(**{"cases": "hypot", "backends": "tape", **asked})
    assert "\n" not in str(raised.value)


def test_a_run_is_one_line_and_prints_as_the_table() -> None:
    assert repr(RUN) == (
        "<Run '2025-01-02T03:04:05+00:00': 2 cases, 4 backends, 7 records: 5 right, 1 approximate, 1 wrong>"
    )
    assert all(len(repr(part)) < 100 for record in RUN.records for part in (record, record.time))
    assert repr(RUN.records[0]) == "<Record 'quadratic' 10 'tape' 'gradient': right, 3e-06 s per call>"
    assert "sigma is <off>" in str(RUN)
    assert replace(RUN, seed=8).seed == 8
    assert pickle.loads(pickle.dumps(RUN)) == RUN  # noqa: S301 - written here
    with pytest.raises(TypeError):
        iter(RUN)


def test_a_part_of_a_run_is_a_run() -> None:
    part = RUN["quadratic", "tape"]
    assert isinstance(part, adbench.Run)
    assert [(record.job.size, record.job.backend) for record in part.records] == [(10, "tape"), (100, "tape")]
    assert (*part.cases, *part.versions) == ("quadratic", "tape")
    assert RUN["*", "j*"]["quadratic"].records == RUN["quadratic", "jax"].records
    assert "jax" not in str(part)
    with pytest.raises(adbench.UnknownName, match="no case 'quadratik'"):
        RUN["quadratik", "tape"]
    with pytest.raises(adbench.UnknownName, match="no backend 'tap'"):
        RUN["quadratic", "tap"]
    with pytest.raises(adbench.UsageError, match="names no part"):
        RUN[0]  # type: ignore[index]


def test_a_frame_has_a_row_for_each_record_and_says_why_figures_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = RUN.to_frame()
    assert len(frame) == len(RUN.records)
    rows = frame.set_index(["case", "size", "backend"])
    tape, liar = rows.loc["quadratic", 10, "tape"], rows.loc["quadratic", 10, "liar"]
    assert (tape["outcome"], tape["digits"], tape["fastest"]) == ("right", 11.0, "jax")
    assert tape["seconds_per_call"] == pytest.approx(3e-6)
    assert tape["first_quartile"] < tape["seconds_per_call"] < tape["third_quartile"]
    assert tape["missing"] == "its memory was not measured"
    assert (liar["outcome"], liar["reason"]) == ("wrong", "sigma is <off>")
    assert pandas.isna(liar["seconds_per_call"])
    assert rows.loc["other", 5, "tape"]["resident_peak_bytes"] == 8192.0
    assert frame["seconds_per_call"].dtype == frame["allocated_peak_bytes"].dtype == np.float64
    assert len(replace(RUN, records=()).to_frame()) == 0


def test_without_pandas_the_frame_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: pip install 'autodiff-bench\[notebook\]'"):
        RUN.to_frame()


def test_a_notebook_shows_the_table_and_the_reasons_of_failures() -> None:
    found = page.read(f"<html><body>{RUN._repr_html_()}</body></html>")
    rows = [[cell.words for cell in row.all("td")] for row in found.one("tbody").all("tr")]
    assert rows[0][0] == "10"
    assert [text.split()[0] for text in rows[0][1:]] == ["★", "✓", "✗", "≈"]
    assert "sigma is <off>" in found.one("ul").words
    many = replace(RUN, records=tuple(runs.record("c", size, "tape") for size in range(1, 100)))
    assert "59 rows not shown" in many._repr_html_()


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_stays_a_name(name: str) -> None:
    run = adbench.Run.of(
        runs.run([runs.record(name, 1, name), runs.record("q", 1, name, status="failed", reason=name)])
    )
    html = run._repr_html_()
    html.encode()
    assert "<script" not in html
    assert "\n" not in repr(run)
    assert run[name, name].records if name and not set(name) & set("*?[") else True


def test_a_notebook_has_one_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for IPython, which holds each line that it was given, in all its versions."""
    lines: list[list[str]] = []

    def display(data: Any, *, raw: bool, display_id: bool) -> Any:
        versions = [data["text/plain"]]
        lines.append(versions)
        return SimpleNamespace(update=lambda data, raw: versions.append(data["text/plain"]))

    assert isinstance(progress.shown(), progress.Bar)
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with progress.shown() as line:
        line.say("left out: much")
        line.show(Started(RUN.records[0].job, "check"), 12.0)
    assert lines[0] == ["adbench: left out: much"]
    assert lines[1][0] == "adbench: 12 s left, check quadratic 10 tape"
    assert lines[1][1].startswith("adbench: done after")


def test_a_notebook_shows_an_impossible_request_in_one_line() -> None:
    assert adbench.UsageError("no such thing")._render_traceback_() == ["UsageError: no such thing"]


def test_runs_are_compared_without_files() -> None:
    slower = replace(RUN, records=tuple(replace(r, time=runs.time(5e-6)) for r in RUN.records if r.time))
    found = adbench.compare(RUN, slower, absolute=True)
    assert "regression" in {row.word for row in found.rows}
    assert repr(found).endswith(": 7 cells: 5 regression, 1 improvement, 1 gone>")


def test_a_run_saves_its_data_and_its_page(tmp_path: Path) -> None:
    saved = RUN.save(tmp_path / "new" / "folder")
    assert saved.name == "report.html"
    assert adbench.load(saved.parent) == RUN
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOutput, match="choose another folder"):
        RUN.save(tmp_path / "file")
