"""`adbench new` and shell completion, as a stranger meets them; and the examples of every verb's help, which run."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from adbench.cli import cli
from adbench.findings.finding import Finding
from adbench.findings.finding import write as write_finding
from adbench.findings.programs.random_program import Input, Program, Step
from tests.bisection.fake_library import wheel
from tests.results.test_timing_files import ran
from tests.support.command import adbench, adbench_in_a_process
from tests.support.files import CASE, RIGHT, git, repository, write
from tests.support.marks import one_in

pytestmark = pytest.mark.xdist_group("examples")

KINDS = ("case", "backend")


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_works_by_the_commands_that_are_printed(tmp_path: Path, kind: str) -> None:
    begun = adbench(tmp_path, "new", kind, f"my_{kind}")
    assert (begun.code, begun.err) == (0, "")
    assert begun.out.startswith(f"Wrote my_{kind}.py. Change it")
    text = (tmp_path / f"my_{kind}.py").read_text("utf-8")
    assert "NAME" not in text
    commands = [shlex.split(line) for line in begun.out.splitlines() if line.strip().startswith("adbench ")]
    assert len(commands) == 3
    first = adbench(tmp_path, *commands[0][1:], *(("-b", "tape", "-n", "10") if kind == "case" else ()))
    assert first.code == 0, first.out + first.err
    assert ("✓" if kind == "case" else "≈") in first.out
    for _, *words in commands[1:]:
        assert adbench(tmp_path, *words, *(() if words[0] == "explain" else ("--plan",))).code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_file_is_formatted_and_clean(tmp_path: Path, kind: str) -> None:
    assert adbench(tmp_path, "new", kind, "mine").code == 0
    for command in (
        ("format", "--check", "--line-length", "120"),
        ("check", "--isolated", "--line-length", "120", "--ignore", "I"),
    ):
        done = subprocess.run([sys.executable, "-m", "ruff", *command, "mine.py"], cwd=tmp_path, capture_output=True)
        assert done.returncode == 0, done.stdout.decode()


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("precious")
    done = adbench(tmp_path, "new", "case", "mine")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "mine.py already exists" in done.err
    assert (tmp_path / "mine.py").read_text() == "precious"
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    assert adbench(tmp_path, "new", "case", "gone").code == 2
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("case", "hypot", "a built-in case is called hypot"),
        ("backend", "jax", "a built-in backend is called jax"),
        ("case", "../mine", "'../mine' is not a valid name for a case; use lowercase letters"),
        ("backend", "Mine", "'Mine' is not a valid name for a backend"),
        ("case", "", "'' is not a valid name"),
        ("report", "mine", "report"),
    ],
)
def test_a_name_that_will_not_do_is_one_line(tmp_path: Path, kind: str, name: str, said: str) -> None:
    done = adbench(tmp_path, "new", kind, name)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_a_script_it_can_read(tmp_path: Path, shell: str) -> None:
    done = adbench_in_a_process(tmp_path, _ADBENCH_COMPLETE=f"{shell}_source")
    assert done.code == 0
    assert "_ADBENCH_COMPLETE" in done.out
    if shutil.which(shell):
        read = subprocess.run([shell, "-n", "-c", done.out], capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("adbench exp", "plain,explain"),
        ("adbench run --res", "plain,--resume"),
        ("adbench check -b autog", "plain,autograd"),
        ("adbench explain cholesky_", "plain,cholesky_elements"),
        ("adbench check -b ./min", "file,./min"),
    ],
)
def test_verbs_options_cases_and_backends_are_completed(
    monkeypatch: pytest.MonkeyPatch, typed: str, expected: str
) -> None:
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    completed = BashComplete(cli, {}, "adbench", "_ADBENCH_COMPLETE").complete()
    assert expected in completed.splitlines()


def examples() -> list[str]:
    """The lines of every verb's help that begin with the command's name, without explanations."""
    verbs: list[click.Command] = [cli, *cli.commands.values()]
    lines = [line.strip() for verb in verbs for line in re.sub(r"\\\n\s*", "", verb.help or "").splitlines()]
    found = [line.partition("   ")[0] for line in lines if line.startswith("adbench ")]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("verb", ["", *cli.commands])
def test_help_fits_into_80_columns_and_shortens_nothing(verb: str) -> None:
    shown = CliRunner().invoke(cli, [*verb.split(), "--help"], env={"COLUMNS": "80"}).output
    assert max(map(len, shown.splitlines())) <= 80
    assert "..." not in shown.partition("\nCommands:\n")[2]


def test_every_verb_has_an_example() -> None:
    shown = {example.split()[1] for example in examples()}
    assert shown == set(cli.commands)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples speak of: a backend, a function, and runs."""
    folder = tmp_path_factory.mktemp("examples")
    functions = "def f(x, y):\n    return x * y\ndef g(n):\n    return 1.0, 2.0 * n\n"
    functions += "def loss(p, n):\n    return p['w'][0] ** n * p['w'][1]\n"
    functions += "def rows(n):\n    return [float(k) for k in range(n)], [2.0] * n\n"
    kernels = "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
    kernels += "plain = softmax\ndef rows(n):\n    return (torch.linspace(-1, 1, n),)\n"
    write(folder, softplus=CASE, my_backend=RIGHT, mymodule=functions, k=kernels)
    repository(folder)  # some formats of reports need a commit
    files = ["-c", "softplus.py", "-b", "my_backend.py"]
    done = adbench(folder, "run", "--quick", "--launches", "1", *files, "-n", "10", "-o", "out")
    assert done.code == 0, done.err
    for name in ("base", "new", "january", "february", "results/time"):
        shutil.copytree(folder / "out", folder / name)
    write(folder, test_parse="def test_parse(benchmark):\n    benchmark(lambda: int('12'))\n")
    ran(folder, "-m", "pytest", "-q", "-p", "no:xdist", "test_parse.py", "--benchmark-json=base.json")
    shutil.copy(folder / "base.json", folder / "new.json")
    later = folder / "february" / "run.json"  # a site refuses two copies of one run
    later.write_text(later.read_text("utf-8").replace('"created": "20', '"created": "21', 1), "utf-8")
    root = Program((Input(2.0),), (Step("sqrt", "xp.sqrt({0})", (0,)),))
    wheel(folder / "dist", "1.0", name="mylib")
    wheel(folder / "dist", "1.4", name="mylib")
    for words in (("branch", "-M", "main"), ("tag", "v1.0"), ("commit", "-q", "--allow-empty", "-m", "A change")):
        git(folder, *words)
    (folder / "findings").mkdir()
    write_finding(
        Finding(root, "gradient", "torch", "nan", "nan", "0.35", "x0", ""), folder / "findings/torch_nan_sqrt.json"
    )
    (folder / "messages.jsonl").write_text('{"id": 0, "kind": "start"}\n{"id": 1, "kind": "define", "module": "lse"}\n')
    return folder


def answered(folder: Path, *words: str) -> None:
    """A verb that reads what a shell hands it: one answer a line, none of them a refusal."""
    done = adbench_in_a_process(folder, *words[: words.index("<")], stdin=(folder / words[-1]).read_text("utf-8"))
    assert done.code == 0, done.err
    first, second = map(json.loads, done.out.splitlines())
    assert (first["id"], second["id"], second["success"]) == (0, 1, True)


@pytest.mark.parametrize("example", one_in(10, examples()))
def test_the_examples_of_the_help_run(prepared: Path, example: str) -> None:
    words = shlex.split(example.replace("<time>", "time"))[1:]
    if "<" in words:
        answered(prepared, *words)
        return
    plans = words[0] in ("run", "check", "bisect") and not {"--resume", "--definition", "--same-bits"} & set(words)
    if words[0] == "bisect" and not {"--wheels", "--commits"} & set(words):
        words += ["--versions", "0.4.30,0.4.31,0.5.0"]  # as the index would list them
    if words[0] == "audit" or (words[0] == "atlas" and "--show" not in words):
        words += ["--help"]  # it would run a suite, or install releases; a wrong option is an error here, too
    shorter = {"fuzz": ["--programs", "3"], "conform": ["--list"]}.get(words[0], ["--plan"] if plans else [])
    run = adbench_in_a_process if "--definition" in words else adbench  # a kernel's module sets torch's defaults
    done = run(prepared, *words, *shorter)
    # compare, 5: one launch on a shared machine is too little to decide; fuzz, 1: it found something
    fine = {"compare": {0, 5}, "fuzz": {0, 1}}.get(words[0], {0})
    lacks_device = "cuda" in words and "no CUDA device" in done.err
    assert done.code in fine or lacks_device, f"{example}: {done.err}"
