"""Runs that go wrong: the command line in a separate process, and backends that misbehave at a chosen moment."""

import json
import os
import secrets
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from adbench.model.record import Record
from adbench.results.store import read_run
from tests.support.files import CASE, RIGHT, write

MARK = "ADBENCH_TEST_MARK"  # in the environment of a run, and so of everything that it starts
PATIENCE = 300.0  # seconds for anything that must happen at all; nothing is measured by it

BACKEND = r'''"""Softplus by hand, and at one moment what it should not do."""
import os
import sys
import time
import numpy as np
from adbench import Unsupported, phase


def line():
    """The socket to the runner, which no library should touch."""
    import socket
    import stat
    for number in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                return socket.socket(fileno=os.dup(number))
        except OSError:
            pass


def within(name):
    """Whether a function of that name of adbench's has called us."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == name and "adbench" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def misbehave():
BODY

LAUNCH = "ADBENCH_PADDING" in os.environ
with open(NOTE, "a") as note:
    note.write("launch\n" if LAUNCH else "other\n")
STARTS = open(NOTE).read().split()
NUMBER = STARTS.count("launch")  # of the launch, from 1
CALLS = 0


def right(x):
    return 1 / (1 + np.exp(-x))


def prepare(operator, f, args, wrt):
    if operator == "value":
        return f
    if operator != "gradient":
        raise Unsupported("by hand: only value and gradient")

    def call(x):
        global CALLS
        CALLS += 1
        if MOMENT and not within("prepare"):
            misbehave()
        return (right(x),)

    def first(x):
        global CALLS
        CALLS += 1
        if FIRST and CALLS == 1:
            misbehave()
        return (right(x),)

    if PREPARE:
        misbehave()
    return lambda x: first(x) if within("prepare") else call(x)


if IMPORT:
    misbehave()
'''

# moment -> (its placeholder, its condition)
MOMENTS = {
    "prepare": ("PREPARE", "len(STARTS) == 2"),
    "first call": ("FIRST", "len(STARTS) == 2"),
    "import": ("IMPORT", "LAUNCH and NUMBER == 1"),
    "second import": ("IMPORT", "LAUNCH and NUMBER == 2"),
    "warm-up": ("MOMENT", 'LAUNCH and NUMBER == 1 and within("warm_up") and CALLS > 2'),
    "round": ("MOMENT", 'LAUNCH and NUMBER == 1 and within("epoch") and CALLS % 7 == 3'),
    "second launch": ("MOMENT", 'LAUNCH and NUMBER == 2 and within("epoch")'),
    "memory": ("MOMENT", 'within("measure_memory")'),
}


def misbehaving_at(moment: str, statements: str, note: Path) -> str:
    """A right backend that runs the statements at that moment; `note` counts its processes."""
    body = textwrap.indent(textwrap.dedent(statements).strip("\n"), "    ")
    text = BACKEND.replace("BODY", body).replace("NOTE", repr(str(note)))
    placeholder, when = MOMENTS[moment]
    for name in dict.fromkeys(name for name, _ in MOMENTS.values()):
        text = text.replace(f"if {name}", f"if {when if name == placeholder else False}")
    return text


@dataclass
class Run:
    """The command line with arguments, under way or ended. `folder`: where its results go."""

    folder: Path
    process: subprocess.Popen[str]
    mark: str
    out: str = ""
    err: str = ""
    seen: dict[str, Any] = field(default_factory=dict)

    def end(self) -> int:
        """Wait for its end: the exit code."""
        self.out, self.err = self.process.communicate(timeout=2 * PATIENCE)
        return self.process.returncode

    def tell(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send it a signal: to it alone, or to its group, as a terminal does."""
        (os.killpg if group else os.kill)(self.process.pid, number)

    def lines(self) -> list[str]:
        """The whole lines of its journal."""
        try:
            text = (self.folder / "journal.jsonl").read_text()
        except FileNotFoundError:
            return []
        return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_for_lines(self, count: int) -> None:
        """Until its journal holds so many lines, or it has ended."""
        wait_until(lambda: len(self.lines()) >= count or self.process.poll() is not None)

    def records(self) -> dict[str, Record]:
        """What is on the disk, by backend. For runs of one size."""
        return {record.job.backend: record for record in read_run(self.folder).records}

    def left_behind(self) -> list[str]:
        """The processes that it started and that live on; given some time to die."""
        deadline = time.monotonic() + PATIENCE
        while (found := marked(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


@contextmanager
def running(
    folder: Path, *arguments: str, cwd: Path | None = None, before: tuple[str, ...] = (), **options: Any
) -> Iterator[Run]:
    """`adbench` with the arguments. After the test, all its remaining processes are killed.

    before   a command that sets something up and then executes its arguments, like `prlimit`; a fork here must
             run no Python, because this process has threads
    """
    mark = secrets.token_hex(8)
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "adbench", *arguments],
        cwd=cwd,
        # no bytecode: where writing fails half-way, Python 3.11 keeps half a file and cannot import it afterwards
        env={
            **os.environ,
            MARK: mark,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        yield Run(folder, process, mark)
    finally:
        for pid in [int(text.split()[0]) for text in marked(mark)]:
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def run(folder: Path, *arguments: str, **options: Any) -> Run:
    """The same, gone through to its end."""
    with running(folder, *arguments, **options) as under_way:
        under_way.end()
        under_way.seen["left behind"] = under_way.left_behind()
    return under_way


def arguments(home: Path, backends: dict[str, str], *more: str, sizes: tuple[str, ...] = ("10",)) -> list[str]:
    """`run --quick` over softplus with these backends and one that is right, which is the reference."""
    write(home / "cases", softplus=CASE)
    write(home / "backends", hand=RIGHT, **backends)
    found = ["run", "--quick", "-o", str(home / "out"), "--operator", "gradient", "--reference", "hand"]
    found += ["-c", str(home / "cases" / "softplus.py")]
    for name in ("hand", *backends):
        found += ["-b", str(home / "backends" / f"{name}.py")]
    for size in sizes:
        found += ["-n", size]
    return [*found, *more]


def marked(mark: str) -> list[str]:
    """The living processes with this mark in their environment: number and command."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(f"{process.pid} {process.cmdline()}")
        except (psutil.Error, OSError):
            continue
    return found


def wait_until(holds: Any) -> None:
    """Until it holds. Raises TimeoutError where it does not, ever."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def rounds_of(folder: Path) -> dict[str, int]:
    """Journal unit -> how often it was written: more than once means measured twice."""
    found: dict[str, int] = {}
    for text in (folder / "journal.jsonl").read_text().splitlines():
        line = json.loads(text)
        for unit in units(line):
            found[unit] = found.get(unit, 0) + 1
    return found


def units(line: dict[str, Any]) -> list[str]:
    """What a line of a journal tells of, so that two lines about one thing are found."""
    match line["kind"]:
        case "checked":
            return [f"checked {sorted(line['record']['job'].items())}"]
        case "launch":
            return [f"launch {line['number']} {c['control']} {sorted(c['job'].items())}" for c in line["cells"]]
        case "memory":
            return [f"memory {sorted(line['job'].items())}"]
        case "facts" | "known":  # told again in a resumed run; nothing is measured for them twice
            return []
        case kind:
            return [kind]
