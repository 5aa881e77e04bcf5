"""The command line, called as a user calls it: in this process, where the process itself is not what is tested."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from adbench.cli import main
from adbench.execution.interrupt import SIGNALS


@dataclass
class Result:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


def adbench(folder: Path, *args: str, **environment: str) -> Result:
    """`adbench` with the arguments, as if it had been called in `folder`; nothing is a terminal."""
    out, err = io.StringIO(), io.StringIO()
    handlers = {name: signal.getsignal(getattr(signal, name)) for name in SIGNALS if hasattr(signal, name)}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["adbench", *args])
        for name, value in ({"COLUMNS": "100"} | environment).items():
            patch.setenv(name, value)
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            for name, handler in handlers.items():  # a run listens to them
                signal.signal(getattr(signal, name), handler)
    code = ended.value.code
    return Result(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


def adbench_in_a_process(folder: Path, *args: str, stdin: str | None = None, **environment: str) -> Result:
    """The same in a separate process, as a shell starts it."""
    done = subprocess.run(
        [sys.executable, "-m", "adbench", *args],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=250,
    )
    return Result(done.returncode, done.stdout, done.stderr)
