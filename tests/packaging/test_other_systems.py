"""What works on macOS and Windows, as far as Linux can show it: without the modules and functions that they lack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LINUX_ONLY = ("sched_getaffinity", "sched_setaffinity", "sched_getcpu", "pidfd_open")
MACOS = f"""
import os

for name in {LINUX_ONLY}:
    vars(os).pop(name, None)
"""
WINDOWS = f"""
import os, signal, sys
import numpy, psutil  # they ask for the system, not for what it has

for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ({", ".join(map(repr, LINUX_ONLY))}, "fork", "getuid", "geteuid", "killpg", "O_NOFOLLOW", "O_NONBLOCK"):
    vars(os).pop(name, None)
for name in ("SIGSTOP", "SIGCONT", "SIGHUP"):
    vars(signal).pop(name, None)
"""
MODEL = "def energy(x, y):\n    return x * x * y + y**3\n"
CHECK = ("-m", "adbench", "check", "--function", "model:energy", "--at", "1.0", "2.0")


def ran(folder: Path, system: str, *command: str) -> subprocess.CompletedProcess[str]:
    """The command on Linux without what the system lacks, also in the processes that it starts."""
    (folder / "sitecustomize.py").write_text(system)
    (folder / "model.py").write_text(MODEL)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "ADBENCH_CACHE": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )


def test_a_function_is_checked_on_macos(tmp_path: Path) -> None:
    done = ran(tmp_path, MACOS, *CHECK)
    assert (done.returncode, done.stderr) == (0, "")
    assert "right: gradient of energy by tape" in done.stdout


def test_adbench_is_imported_and_checks_in_python_on_windows(tmp_path: Path) -> None:
    done = ran(tmp_path, WINDOWS, "-c", "import adbench, model; print(adbench.check(model.energy, 1.0, 2.0))")
    assert (done.returncode, done.stderr) == (0, "")
    assert "right: gradient of energy by tape" in done.stdout


@pytest.mark.parametrize("arguments", [("list", "cases"), ("list", "backends"), ("explain", "hypot"), ("--help",)])
def test_commands_that_start_no_process_work_on_windows(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert ran(tmp_path, WINDOWS, "-m", "adbench", *arguments).returncode == 0


@pytest.mark.parametrize("command", [CHECK, ("-m", "adbench", "fuzz", "--programs", "1"), ("-m", "adbench", "doctor")])
def test_the_others_say_in_one_line_what_to_use_on_windows(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = ran(tmp_path, WINDOWS, *command)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "needs Linux or macOS" in line
    assert "on Windows use WSL, or adbench.check in Python" in line


@pytest.mark.slow
def test_every_module_is_imported_on_windows(tmp_path: Path) -> None:
    """All but those of C++ backends, whose libraries are built for Linux and macOS."""
    program = """
import adbench, importlib, pkgutil
from pathlib import Path
failed = []
root = Path(adbench.__file__).parent
for path in sorted(root.rglob("*.py")):
    parts = path.relative_to(root.parent).with_suffix("").parts
    if parts[-1] in ("__main__",) or "templates" in parts or "starters" in parts:
        continue
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    try:
        importlib.import_module(name)
    except ImportError as error:
        if error.name in ("fcntl", "resource", "termios", "pwd", "grp"):
            failed.append(f"{name} imports {error.name}")
    except AttributeError as error:
        failed.append(f"{name}: {error}")
print("\\n".join(failed))
"""
    done = ran(tmp_path, WINDOWS, "-c", program)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
