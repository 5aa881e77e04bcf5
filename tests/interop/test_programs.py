"""`-b 'gradbench:COMMAND'`, `-b 'process:COMMAND'` and `[tool.adbench.backends.NAME]`: from a string to a backend."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from adbench.catalog.programs import command_file, protocol_of
from adbench.catalog.selection import resolve
from adbench.model.errors import BadFile, UsageError
from tests.interop.programs import GOOD, command
from tests.support.command import adbench


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))


def test_only_protocol_commands_have_a_prefix() -> None:
    assert protocol_of("gradbench:python run.py") == "gradbench"
    assert protocol_of("process:./worker") == "process"
    assert protocol_of("jax") is None
    assert protocol_of("a:b.py") is None


def test_a_command_is_a_backend_named_after_it(tmp_path: Path) -> None:
    chosen = resolve(backends=[f"process:{sys.executable} /some/where/worker.py --fast"], start=tmp_path)
    (name,) = chosen.backends
    source = chosen.catalog.backends[name]
    assert name.startswith("process_python")
    assert name.endswith("worker_py_fast")
    assert source.summary.startswith("process: ")
    assert str(tmp_path) in Path(source.path).read_text("utf-8")


def test_equal_commands_share_a_file_and_others_do_not(tmp_path: Path) -> None:
    first, again, other = (command_file("process", f"{sys.executable} {text}", tmp_path) for text in ("a", "a", "b"))
    assert first == again != other


@pytest.mark.slow
def test_a_tool_may_declare_that_it_is_inexact(tmp_path: Path) -> None:
    """A tool of differences: its answers have six wrong digits of fifteen, as it says."""
    at = "gradient = [math.exp(v - lse(x)) for v in x]"
    inexact = GOOD.replace(at, at.replace("for v", "* (1 + 1e-9) for v")).replace("MISCHIEF", "pass")
    line = command(tmp_path, inexact)
    asked = ["check", "-b", "rough", "-c", "log_sum_exp", "-n", "10", "--operator", "gradient", "--json"]
    words = []
    for more in ("", "digits = 8\n"):
        (tmp_path / "pyproject.toml").write_text(f"[tool.adbench.backends.rough]\ngradbench = {line!r}\n{more}")
        (record,) = json.loads(adbench(tmp_path, *asked).out)["records"]
        words.append(record["verdict"]["word"])
    assert words == ["wrong", "approximate"]


def test_tools_in_other_folders_have_other_names(tmp_path: Path) -> None:
    texts = [f"gradbench:{sys.executable} tools/{tool}/run.py" for tool in ("jax", "torch")]
    names = resolve(backends=texts, start=tmp_path).backends
    assert [name.rpartition("python")[2].lstrip("0123456789_") for name in names] == ["jax_run_py", "torch_run_py"]
    (tmp_path / "tools/c").mkdir(parents=True)
    (tmp_path / "tools/c/run").touch(mode=0o755)
    assert resolve(backends=["process:tools/c/run"], start=tmp_path).backends == ("process_c_run",)


def test_commands_with_equal_names_are_told_how_to_name_one(tmp_path: Path) -> None:
    texts = [f"gradbench:{sys.executable} {folder}/jax/run.py" for folder in ("old", "new")]
    with pytest.raises(UsageError, match=r"name the command in pyproject.toml: \[tool.adbench.backends.NAME\]"):
        resolve(backends=texts, start=tmp_path)


@pytest.mark.parametrize("quoted", ['say "hello"', "a \\ b", 'x """ y', "{folder}"])
def test_any_command_gives_a_loadable_file(tmp_path: Path, quoted: str) -> None:
    file = command_file("process", f"{sys.executable} -c '{quoted}'", tmp_path)
    compile(file.read_text("utf-8"), str(file), "exec")
    assert resolve(backends=[str(file)], start=tmp_path).backends


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("process:", "names no command"),
        ("gradbench:   ", "names no command"),
        ("process:no-such-program-here --x", "there is no program 'no-such-program-here'"),
        ("process:'unbalanced", "cannot be read as a command"),
    ],
)
def test_a_command_that_cannot_run_is_a_one_line_error(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        resolve(backends=[text], start=tmp_path)


def configured(folder: Path, text: str) -> dict[str, str]:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    known = resolve(start=folder).catalog.backends
    return {name: source.path for name, source in known.items() if not source.builtin}


def test_the_configuration_names_commands_and_folders(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own.py").write_text('"""Own."""\nprepare = len\n')
    (tmp_path / "worker").write_text("")
    (tmp_path / "worker").chmod(0o755)
    found = configured(
        tmp_path,
        f"[tool.adbench.backends.theirs]\ngradbench = '{sys.executable} run.py'\n"
        '[tool.adbench.backends.c]\nprocess = "./worker"\n[tool.adbench.backends.more]\npath = "mine"\n',
    )
    assert set(found) == {"theirs", "c", "own"}
    assert "adbench.interop.process.process_backend" in Path(found["c"]).read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("backends.x = 3", r"\[tool.adbench.backends.x\] must have one of gradbench, process, path"),
        ('backends.x = {gradbench = "a", process = "b"}', "must have one of"),
        ('backends.x = {command = "a"}', "must have one of"),
        ("backends.x = {process = 3}", "process must be a string; got 3"),
        ('backends.x = {process = ""}', "names no command"),
        ('backends."a b" = {process = "sh"}', "letters, digits"),
        ('backends.x = {process = "sh", digits = 0}', "digits must be an integer from 1 to 15"),
        ('backends.x = {path = "a", digits = 8}', "next to a command"),
        ('folders = ["a"]', "has no key 'folders'"),
    ],
)
def test_a_wrong_configuration_names_the_place(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(BadFile, match=fault):
        configured(tmp_path, f"[tool.adbench]\n{text}\n")
