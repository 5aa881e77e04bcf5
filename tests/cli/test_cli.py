"""The command line as a user sees it: its output on stdout and stderr, and its exit code."""

import contextlib
import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adbench.results.store import read_run
from tests.support.command import adbench, adbench_in_a_process
from tests.support.files import CASE, RIGHT, misbehaving, write
from tests.support.marks import one_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with one case and a right, a wrong and a crashing backend."""
    write(tmp_path, softplus=CASE, hand=RIGHT, off=RIGHT.replace("return 1 / (1", "return 1.01 / (1"))
    return write(tmp_path, dies=misbehaving("import os; os.abort()"))


def test_the_version_is_one_line(tmp_path: Path) -> None:
    done = adbench_in_a_process(tmp_path, "--version")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("adbench ")


def test_lists_are_for_people_and_for_machines(folder: Path) -> None:
    cases = adbench(folder, "list", "cases", "--cases", ".", "--backends", ".")
    assert cases.code == 2  # the backends in the same folder are no cases
    assert ".py: CASE is missing; define CASE = Case(...)" in cases.err
    backends = json.loads(adbench(folder, "list", "backends", "--json").out)
    assert {"jax", "autograd", "tape", "finite_differences", "torch"} <= {row["name"] for row in backends}
    cases_listed = adbench(folder, "list", "cases")
    assert cases_listed.code == 0
    assert "normal_log_density" in cases_listed.out
    assert max(map(len, adbench(folder, "list", "cases", COLUMNS="50").out.splitlines())) <= 50


def test_a_run_leaves_its_data_its_journal_and_its_page(folder: Path) -> None:
    asked = ["--quick", "--launches", "2", "-c", "softplus.py", "-b", "hand.py", "-b", "off.py", "-o", "out"]
    done = adbench(folder, "run", *asked)
    assert done.code == 1, done.err
    assert "\x1b" not in done.out + done.err
    assert done.out.startswith("✗ wrong: off, softplus n = 1 gradient")
    assert "\nPage           out/report.html\nDetails        adbench report out --details\nNext " in done.out
    details = adbench(folder, "report", "out", "--details")
    assert (details.code, details.err) == (0, "")
    assert "Time per call of gradient, median over launches" in details.out
    kept = read_run(folder / "out" / "run.json")
    assert {record.job.backend: record.status for record in kept.records if record.job.operator == "gradient"} == {
        "hand": "ok",
        "off": "wrong",
    }
    assert len((folder / "out" / "journal.jsonl").read_text().splitlines()) >= len(kept.records)
    page = (folder / "out" / "report.html").read_text()
    again = adbench(folder, "report", "out/run.json", "-o", "again.html")
    assert again.code == 0
    assert (folder / "again.html").read_text() == page
    second = adbench(folder, "run", "-c", "softplus.py", "-b", "hand.py", "-o", "out")
    assert (second.code, second.err.count("\n")) == (2, 1)
    assert "already holds a run" in second.err
    assert read_run(folder / "out" / "run.json") == kept


def test_a_plan_says_what_would_run_and_about_how_long_and_runs_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADBENCH_CACHE", str(folder / "cache"))  # other tests teach the common one what cells take
    write(folder, hand=misbehaving("raise RuntimeError('it was called')"))
    asked = ["run", "--plan", "-c", "softplus.py", "-b", "hand.py", "-b", "off.py", "-o", "out"]
    done = adbench(folder, *asked)
    assert (done.code, done.err) == (0, "")
    assert "softplus" in done.out
    assert "12 cells, 2 backends, up to 8 launches: about " in done.out
    assert not (folder / "out").exists()
    whole = json.loads(adbench(folder, *asked, "--json").out)
    assert len(whole["cells"]) == 12
    assert set(whole["seconds_by_backend"]) == {"hand", "off"}
    assert whole["seconds"]["total"] == pytest.approx(sum(whole["seconds"][p] for p in ("check", "time", "memory")))
    some = whole["seconds"]["total"] * 0.7
    fitted = adbench(folder, *asked, "--json", "--budget", f"{some:.2f}s")
    less = json.loads(fitted.out)
    assert less["seconds"]["total"] <= some
    assert less["left_out"]
    assert (whole["budget"], less["budget"]) == (None, pytest.approx(some, abs=0.01))
    assert all(f"left out: {text}" in fitted.err for text in less["left_out"])


def test_a_check_times_nothing_and_prints_json_when_asked(folder: Path) -> None:
    done = adbench(folder, "check", "-c", "softplus.py", "-b", "hand.py", "-n", "10", "--json")
    assert done.code == 0
    data = json.loads(done.out)
    found = {record["job"]["operator"]: (record["status"], record["how"]) for record in data["records"]}
    assert found["gradient"] == ("ok", "native")
    assert found["value_and_gradient"] == ("ok", "from value and gradient")
    assert found["jvp"] == ("ok", "from gradient")
    assert found["hvp"][0] == "unsupported"
    assert all(record["time"] is None for record in data["records"])


def test_a_long_check_says_how_far_it_is_also_without_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["check", "-c", "softplus.py", "-b", "hand.py", "-n", "10", "--operator", "gradient"]
    assert adbench(folder, *asked).err == ""
    monkeypatch.setattr("adbench.cli.support.execute.LONG_SECONDS", 0.0)
    monkeypatch.setattr("adbench.reports.text.progress.LOG_SECONDS", 0.0)
    assert " left: check softplus 10 hand" in adbench(folder, *asked).err


def test_a_crash_is_exit_code_4_and_a_wrong_derivative_beside_it_1(folder: Path) -> None:
    asked = ["check", "-c", "softplus.py", "-n", "1", "--operator", "gradient", "-b", "dies.py"]
    assert adbench(folder, *asked, "-b", "hand.py").code == 4
    assert adbench(folder, *asked, "-b", "off.py").code == 1


WITH_A_BACKEND = [
    ["fuzz", "-b", "nope"],
    ["conform", "-b", "nope"],
    ["explain", "hypot", "--digits", "nope"],
    ["gradbench-tool", "-b", "nope"],
]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "-c", "nope"], "no case 'nope'; adbench list cases shows all "),
        (["check", "-b", "nope"], "no backend 'nope'; adbench list backends shows all "),
        *((asked, "no backend 'nope'; adbench list backends shows all ") for asked in WITH_A_BACKEND),
        (["run", "-n", "0"], "size '0' is not a positive whole number"),
        (["run", "-n", "x"], "size 'x' is not a positive whole number"),
        (["check", "-c", "product_plus_constant", "-n", "2"], "product_plus_constant has no size 2; use 1"),
        (["check", "-c", "missing.py"], "missing.py: no such file"),
        (["check", "-b", "softplus.py"], "prepare is missing; define prepare"),
        (["check", "-c", "hand.py"], "hand.py: CASE is missing; define CASE = Case(...)"),
        (
            ["check", "-c", "array.py"],
            'array.py: f returns an array of shape (1,); add operators=("value", "jacobian") to its Case',
        ),
        (["check", "-b", "broken.py", "-c", "softplus.py"], "broken.py, line 1: invalid syntax"),
        (["check", "-b", "raises.py", "-c", "softplus.py"], "raises.py: cannot be imported: RuntimeError: no"),
        (["check", "--operator", "integral"], "no operator 'integral'; there are: batch_gradient, gradient"),
        (["check", "--seed", "-1"], "--seed"),
        (["run", "--timeout", "0"], "--timeout"),
        (["run", "--quick", "--rigorous"], "--quick and --rigorous contradict each other"),
        (["run", "--margin", "-1"], "--margin: '-1' is not a share above 0; write 2%, 150% or 0.02"),
        (["run", "--margin", "abc"], "--margin: 'abc' is not a share"),
        (["run", "--budget", "soon"], "--budget: 'soon' is not a duration; write 40s"),
        (["run", "--budget", "0m"], "--budget: '0m' must be above zero; write 40s, 10m or 1h30m"),
        (["run", "--mem-limit", "0"], "--mem-limit: '0' is not an amount of memory; write 4G"),
        (["run", "--launches", "0"], "--launches"),
        (["run", "--reference", "nope"], "no selected backend 'nope'; there are: "),
        (["run", "--reference", "jax", "-b", "autograd"], "no selected backend 'jax'; there are: autograd"),
        (
            ["run", "--resume", "out", "--quick", "-o", "x"],
            "--resume keeps the settings of the interrupted run; remove",
        ),
        (["run", "--resume", "nothing"], "no such journal; pass --resume the output folder of an earlier run"),
        (["run", "-c", "softplus.py", "-b", "hand.py", "--budget", "10ms"], "nothing fits into 0.01 s: softplus at"),
        (["frobnicate"], "no command 'frobnicate'; there are: atlas, audit, bisect, check, "),
        (["chekc"], "no command 'chekc'; did you mean check? there are: atlas, audit, bisect, "),
        (["run", "--quik"], "See adbench run --help."),
        (["list", "frogs"], "'frogs' is not one of 'cases', 'backends'. See adbench list --help."),
        (["run", "-c", "softplus.py", "-b", "hand.py", "-o", "softplus.py"], "softplus.py: already holds a run, or is"),
        (["run", "-c", "softplus.py", "-b", "hand.py", "-o", "/proc/nothing"], "/proc/nothing: cannot be written"),
        (["report", "nothing.json"], "nothing.json: cannot be read: No such file"),
        (["report", "softplus.py"], "softplus.py: invalid or damaged JSON"),
        (["report", "page.html"], "page.html: a page, not a run; pass the run: its folder or run.json"),
        (["report", "foreign.json"], "foreign.json: valid JSON, but not a run of adbench"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(folder: Path, args: list[str], message: str) -> None:
    write(folder, broken="def prepare(:", raises="raise RuntimeError('no')", array=CASE.replace("xp.sum(", "("))
    (folder / "page.html").write_text("\n<!doctype html>")
    (folder / "foreign.json").write_text('{"benchmarks": []}')
    done = adbench(folder, *args)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_bad_input_is_one_line_of_the_process_too(folder: Path) -> None:
    done = adbench_in_a_process(folder, "check", "-c", "hand.py")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_a_configuration_in_the_working_folder_adds_the_users_files(tmp_path: Path) -> None:
    write(tmp_path / "mine", softplus=CASE)
    write(tmp_path / "ours", hand=RIGHT)
    (tmp_path / "pyproject.toml").write_text('[tool.adbench]\ncases = ["mine"]\nbackends = ["ours"]\n')
    done = adbench(tmp_path, "check", "-c", "softplus", "-b", "hand", "-n", "1")
    assert done.code == 0, done.err


def test_what_a_case_lacks_is_left_out_with_a_word_on_stderr(folder: Path) -> None:
    asked = ["check", "-c", "softplus.py", "-c", "product_plus_constant", "-b", "hand.py", "-n", "10"]
    done = adbench(folder, *asked)
    assert "left out: product_plus_constant has no size 10; use 1" in done.err
    assert done.code == 4, "it was named, and nothing was checked"
    assert adbench(folder, *asked, "--allow-nothing").code == 0


@pytest.mark.slow
def test_a_user_file_called_like_a_library_does_not_hide_it(folder: Path) -> None:
    """`torch.py` in the working folder must not be what the torch backend imports."""
    write(folder, autograd="raise RuntimeError('the wrong file')")
    done = adbench_in_a_process(folder, "check", "-c", "product_plus_constant", "-b", "autograd")
    assert done.code == 0, done.out + done.err


@pytest.mark.parametrize("number", one_in(2, [signal.SIGINT, signal.SIGUSR1]))
def test_an_interruption_keeps_what_was_finished(folder: Path, number: int) -> None:
    """A signal while a backend hangs: the data and the page of the others are there."""
    write(folder, hangs=misbehaving("import time; open('hanging', 'w'); time.sleep(600)"))
    command = [sys.executable, "-m", "adbench", "run", "--quick", "-c", "softplus.py", "-n", "1", "-o", "out"]
    command += ["-b", "hand.py", "-b", "hangs.py", "--no-memory", "--operator", "value", "--operator", "gradient"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        journal = folder / "out" / "journal.jsonl"
        for _ in range(600):
            lines = journal.read_text().splitlines() if journal.exists() else []
            finished = sum(line.startswith('{"kind": "checked"') and '"hand"' in line for line in lines)
            if (folder / "hanging").exists() and finished == 2:
                break
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    statuses = {record.job.backend: record.status for record in read_run(folder / "out" / "run.json").records}
    assert statuses["hand"] == "ok"
    assert (folder / "out" / "report.html").exists()
    assert "report.html" in out
    assert "to resume: adbench run --resume out" in err


def test_an_interrupted_check_counts_the_cells_it_did_not_check(folder: Path) -> None:
    write(folder, hangs=misbehaving("import time; open('hanging', 'w'); time.sleep(600)"))
    command = [sys.executable, "-m", "adbench", "check", "-c", "softplus.py", "-b", "hangs.py", "--json"]
    command += ["--junit", "found.xml", "--sarif", "found.sarif", "--md", "found.md"]
    command += ["--operator", "value", "--operator", "gradient"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(600):
            if (folder / "hanging").exists():
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, err
    found = json.loads(out)
    planned = found["unchecked"] + len(found["records"])
    assert planned >= 2
    sentence = f"interrupted: {found['unchecked']} of {planned} cells not checked"
    assert f"adbench: {sentence}" in err.splitlines()
    (run,) = json.loads((folder / "found.sarif").read_text("utf-8"))["runs"]
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == sentence
    assert f"**{sentence}**" in (folder / "found.md").read_text("utf-8")
    assert f'<error message="{sentence}" />' in (folder / "found.xml").read_text()


@pytest.mark.parametrize(
    ("where", "says"), [(">&-", "standard output is closed"), (">/dev/full", "No space left on device")]
)
def test_a_closed_or_full_output_is_one_line(folder: Path, where: str, says: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m adbench list backends {where}"
    found = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert says in line
