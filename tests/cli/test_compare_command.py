"""`adbench compare` and `adbench history` as a user and a CI meet them: exit codes, one line for what is wrong."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adbench.cli import cli
from adbench.model.events import Checked
from adbench.model.record import Job, Record, Run
from adbench.model.run_progress import Head
from adbench.results.journal import Journal
from adbench.results.store import dumps, read_run, write_run
from tests.reports import runs
from tests.support.command import adbench
from tests.support.sessions import run, times

THREE = ("tape", "jax", "autograd")
GATE = ("--fail-on", "regression,correctness")


def session(seed: int, factor: float = 1.0) -> Run:
    """A quiet session in which jax takes `factor` times as long."""
    rng = np.random.default_rng(seed)
    return run(times(rng, THREE, cases=2, layout=0.004, changes={"jax": factor}), seed=seed)


def doctored(found: Run, change: Callable[[Run], Run], folder: Path) -> Path:
    """The run with a change, in a separate folder."""
    folder.mkdir()
    write_run(folder, change(found))
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with the baseline in `base`."""
    return doctored(session(1), lambda run: run, tmp_path / "base")


def broken(found: Run) -> Run:
    """One derivative is wrong."""
    job = found.records[1].job
    wrong = runs.record(job.case, job.size, job.backend, job.operator, status="wrong")
    return replace(found, records=(found.records[0], wrong, *found.records[2:]))


def shaken(found: Run) -> Run:
    """The control does not agree with what it controls: two that are the same differ by a fifth."""
    records = []
    for record in found.records:
        if record.control is not None:
            launches = tuple(
                replace(
                    launch,
                    rounds=tuple(replace(r, ns=round(r.ns * (1.2 if k % 2 else 1 / 1.2))) for r in launch.rounds),
                )
                for k, launch in enumerate(record.control.launches)
            )
            record = replace(record, control=replace(record.control, launches=launches))
        records.append(record)
    return replace(found, records=tuple(records))


def test_the_command_is_there(base: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "adbench", "compare", "base", "base"], cwd=base.parent, timeout=120)
    assert done.returncode == 0


def test_equal_runs_are_fine(base: Path) -> None:
    new = doctored(session(2), lambda run: run, base.parent / "new")
    done = adbench(base.parent, "compare", "base", "new", *GATE)
    assert (done.code, done.err) == (0, "")
    assert "6 cells same" in done.out
    assert adbench(base.parent, "compare", "base/run.json", str(new), *GATE).code == 0


def test_a_regression_is_exit_code_3_only_where_it_is_asked_for(base: Path) -> None:
    doctored(session(2, 1.2), lambda run: run, base.parent / "new")
    done = adbench(base.parent, "compare", "base", "new", *GATE)
    assert (done.code, done.err) == (3, "")
    assert "▲ 2 regressions: significantly slower" in done.out
    assert adbench(base.parent, "compare", "base", "new").code == 0
    assert adbench(base.parent, "compare", "base", "new", "--fail-on", "correctness").code == 0
    for margins in (["30%"], ["300%"], ["case0=50%", "case1*=50%"], ["2%", "*-jax-gradient=30%"]):
        options = [part for margin in margins for part in ("--margin", margin)]
        assert adbench(base.parent, "compare", "base", "new", *options, *GATE).code == 0
    one = adbench(base.parent, "compare", "base", "new", "--margin", "case0[10]-jax-gradient=50%", *GATE)
    assert (one.code, "▲ 1 regression: " in one.out) == (3, True)
    assert adbench(base.parent, "compare", "new", "base", *GATE).code == 0  # it is faster


def test_a_wrong_derivative_is_exit_code_1_and_comes_first(base: Path) -> None:
    doctored(session(2, 1.2), broken, base.parent / "new")
    done = adbench(base.parent, "compare", "base", "new", *GATE)
    assert done.code == 1
    assert "✗ 1 cell now wrong" in done.out
    assert adbench(base.parent, "compare", "new", "new", *GATE).code == 0  # it was wrong before


def test_a_noisy_session_is_exit_code_5_whatever_it_shows(base: Path) -> None:
    doctored(session(2, 1.2), shaken, base.parent / "new")
    done = adbench(base.parent, "compare", "base", "new", *GATE)
    assert done.code == 5
    assert "Cannot decide about regressions: too noisy: in new two runs of identical code differed by" in " ".join(
        done.out.split()
    )
    assert adbench(base.parent, "compare", "base", "new").code == 0


def test_another_machine_is_compared_by_ratios_and_by_the_clock_only_when_forced(base: Path) -> None:
    def elsewhere(found: Run) -> Run:
        return replace(found, machine={"processor": "another", "cores": 64, "memory_bytes": 8_000_000_000})

    rng = np.random.default_rng(2)
    slower = run(times(rng, THREE, cases=2, layout=0.004, session=math.log(2)))
    doctored(slower, elsewhere, base.parent / "new")
    done = adbench(base.parent, "compare", "base", "new", *GATE)
    assert done.code == 0
    assert "seconds are not compared (--absolute compares them)" in " ".join(done.out.split())
    assert " µs" not in done.out
    for option in ("--absolute", "--force"):
        forced = adbench(base.parent, "compare", "base", "new", option, *GATE)
        assert forced.code == 3
        assert "Two machines: compared anyway" in forced.out
        assert " µs" in forced.out


def test_the_same_as_markdown_and_as_json(base: Path) -> None:
    doctored(session(2, 1.2), lambda run: run, base.parent / "new")
    markdown = adbench(base.parent, "compare", "base", "new", "--markdown", *GATE)
    assert markdown.code == 3
    assert markdown.out.startswith("### ▲ 2 regressions")
    assert "| ▲ regression | `case0[10]-jax-gradient` |" in markdown.out
    data = json.loads(adbench(base.parent, "compare", "base", "new", "--json", *GATE).out)
    assert data["exit_code"] == 3
    assert [cell["word"] for cell in data["cells"]].count("regression") == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["base", "base", "--margin", "-1"], "'-1' is not a share"),
        (["base", "base", "--margin", "abc"], "'abc' is not a share"),
        (["base", "base", "--margin", "5"], "'5' is not a share above 0; write 2%, 150% or 0.02"),
        (["base", "base", "--margin", "case0=x"], "'x' is not a share"),
        (["base", "base", "--margin", "nothing=5%"], "margin for 'nothing': no cell of either run has this name"),
        (["base", "base", "--margin", "0%"], "'0%' is not a share"),
        (["base", "base", "--margin", "nan"], "'nan' is not a share"),
        (["base", "base", "--memory-margin", "-5%"], "'-5%' is not a share"),
        (["base", "base", "--fail-on", "speed"], "--fail-on 'speed' is unknown; choose from regression"),
        (["base", "base", "--fail-on", ""], "--fail-on '' is unknown"),
        (["base", "base", "--json", "--markdown"], "--json and --markdown contradict each other"),
        (["base"], "Missing argument 'NEW'"),
        (["base", "nothing"], "nothing: cannot be read: No such file"),
        (["base", "empty"], "contains no run: neither run.json nor journal.jsonl"),
        (["base", "truncated.json"], "truncated.json: invalid or damaged JSON"),
        (["base", "journal.jsonl"], "2 lines, the first is line 2, of journal.jsonl are damaged"),
        (["base", "deep.json"], "deep.json: invalid or damaged JSON"),
        (["base", "else.json"], "else.json: valid JSON, but not a run of adbench: schema_version is missing"),
        (["base", "later.json"], "schema version 3, of a later adbench"),
        (["base", "million.json"], "million.json: holds 1000000 records; adbench reads at most 100000"),
        (["base", "stranger"], "base and stranger have no cell in common"),
        (["base", "stranger"], "and 'other[1]-x-gradient'); compare runs of the same cases"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(base: Path, args: list[str], message: str) -> None:
    folder = base.parent
    (folder / "empty").mkdir()
    text = dumps(read_run(base))
    (folder / "truncated.json").write_text(text[: len(text) // 2])
    (folder / "journal.jsonl").write_text(
        json.dumps({"kind": "head", "run": json.loads(dumps(runs.run())), "plan": [], "asked": {}}) + '\n{"ki\n{}\n'
    )
    (folder / "deep.json").write_text('{"a":[' * 100_000)
    (folder / "else.json").write_text('{"hello": "world"}')
    (folder / "later.json").write_text(text.replace('"schema_version": 2', '"schema_version": 3'))
    if "million.json" in args:
        (folder / "million.json").write_text(
            '{"schema_version":2,"records":[' + ",".join(['{"status":"ok"}'] * 10**6) + "]}"
        )
    doctored(runs.run([runs.record("other", 1, "x")]), lambda run: run, folder / "stranger")
    done = adbench(folder, "compare", *args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_names_with_newlines_and_brackets_stay_on_their_line(base: Path) -> None:
    nasty = "a\nb<script>\x1b[31m"

    def renamed(found: Run) -> Run:
        records = (replace(r, job=Job(nasty, 1, r.job.backend, "gradient")) for r in found.records[:3])
        return replace(found, records=tuple(records))

    for name, seed, factor in (("a", 1, 1.0), ("b", 2, 1.3)):
        doctored(session(seed, factor), renamed, base.parent / name)
    done = adbench(base.parent, "compare", "a", "b", *GATE)
    assert done.code == 3
    assert "a\\nb<script>\\u{1b}[31m[1]-jax-gradient" in done.out
    assert "\x1b" not in done.out


def test_history_lists_what_is_below_a_folder(base: Path) -> None:
    (base.parent / "damaged").mkdir()
    (base.parent / "damaged" / "run.json").write_text("{")
    done = adbench(base.parent, "history", ".", COLUMNS="140")
    assert (done.code, done.err) == (0, "")
    assert "finished" in done.out
    assert "unreadable: damaged/run.json: invalid or damaged JSON" in " ".join(done.out.split())
    data = json.loads(adbench(base.parent, "history", ".", "--json").out)["runs"]
    assert [entry["state"] for entry in data] == ["unreadable", "finished"]
    missing = adbench(base.parent, "history")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "results: no such folder" in missing.err


def test_a_report_is_drawn_from_a_folder_or_from_the_journal_of_an_unfinished_run(base: Path) -> None:
    found = session(1)
    plan = tuple(record.job for record in found.records)
    with closing(
        Journal.create(base.parent / "cut" / "journal.jsonl", Head(replace(found, records=()), plan))
    ) as journal:
        journal.write(Checked(Record(plan[0], "ok", verdict=runs.verdict())))
    for path in ("base", "cut", "cut/journal.jsonl"):
        done = adbench(base.parent, "report", path)
        assert (done.code, done.err) == (0, "")
    assert (base.parent / "base" / "report.html").exists()
    assert (base.parent / "cut" / "report.html").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full is Linux's")
def test_a_page_that_cannot_be_written_is_one_line(base: Path) -> None:
    done = adbench(base.parent, "report", "base", "-o", "/proc/nothing/here.html")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "/proc/nothing/here.html: cannot be written" in done.err


def test_a_full_disk_is_one_line_and_loses_nothing(base: Path) -> None:
    """A file system of a few pages, in a mount that ends with the process: needs the right to make one."""
    program = (
        "mount -t tmpfs -o size=16k none full 2>/dev/null || exit 77; cp -r base full/ 2>/dev/null; "
        "python -m adbench report base -o full/page.html"
    )
    (base.parent / "full").mkdir()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", program]
    try:
        done = subprocess.run(command, cwd=base.parent, capture_output=True, text=True, timeout=120, env=environment)
    except FileNotFoundError:
        pytest.skip("unshare is not there")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no private mount here: {done.stderr.strip()}")
    assert done.returncode == 2, done.stderr
    assert "full/page.html: cannot be written: No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "store-and-compare.md"
COMMANDS = re.findall(r"^\s*(?:- run: )?adbench ([^#|>\n]+)", PAGE.read_text("utf-8"), re.M)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page_exist_with_their_options(line: str) -> None:
    name, *args = shlex.split(line)
    cli.commands[name].make_context(name, args)  # reads every argument and runs nothing


def test_the_page_shows_commands() -> None:
    assert {line.split()[0] for line in COMMANDS} == {"run", "report", "history", "compare"}
