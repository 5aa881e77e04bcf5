"""The number of processor instructions of one call, counted by Valgrind's Callgrind.

The time of a call differs by some per cent from run to run on a busy machine, the number of instructions by less than
one. It does not show the effect of caches, of waiting, or of other instruction sets than Callgrind's (AVX2).

The process runs under Valgrind from its start (`command`), and counts from the first `count` on. Each call of `getpgrp`
writes the number of instructions since the last one to a file. Blocks of n and 2n calls, alternating, differ by n
calls, without what surrounds them.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from adbench.measure.readings import Figure

FOLDER_VARIABLE = "ADBENCH_COUNTS"
"""Environment variable of a process under Callgrind: the folder of its counts."""

SLOWER = 60
"""About how many times as long a process takes under Callgrind."""

ENOUGH = 5_000_000  # instructions of a block, so that what surrounds it is small
MOST_CALLS = 1_000


@cache
def counter() -> str | None:
    """Callgrind with its version, such as "callgrind 3.19.0"; None if Valgrind is not installed."""
    if shutil.which("valgrind") is None:
        return None
    answer = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=False)
    return f"callgrind {answer.stdout.strip().removeprefix('valgrind-')}" if answer.returncode == 0 else None


def command(folder: Path) -> tuple[str, ...]:
    """The beginning of the command line of a process whose calls are counted; counts go to `folder`."""
    counting = ("--tool=callgrind", "--dump-before=getpgrp", f"--callgrind-out-file={folder}/count.%p")
    return ("valgrind", "-q", *counting, "--instr-atstart=no", f"--vgdb-prefix={folder}/control")


def count(call: Callable[[], Any], times: int) -> Figure:
    """The instructions of one call, all threads together: the median of so many pairs of blocks.

    A first block warms up and determines how many calls a block has. The process must run under `command`.
    """
    call()
    gc.collect()
    gc.disable()
    try:
        _begin()
        _block(call, 1)
        calls = min(MOST_CALLS, max(1, round(ENOUGH / _block(call, 1))))
        pairs = [(_block(call, calls), _block(call, 2 * calls)) for _ in range(times)]
    except LookupError:
        return Figure(None, "Callgrind wrote no count")
    finally:
        gc.enable()
    return Figure(median(two - one for one, two in pairs) / calls)


@cache
def _begin() -> None:
    """Begin to count: until then, the process is twice as fast. Raises LookupError if Callgrind does not answer."""
    prefix = f"--vgdb-prefix={os.environ[FOLDER_VARIABLE]}/control"
    asked = subprocess.Popen(
        ["vgdb", prefix, f"--pid={os.getpid()}", "instrumentation", "on"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while asked.poll() is None:  # Callgrind answers only between two instructions of this process
        pass
    if asked.returncode:
        raise LookupError("vgdb")


def _block(call: Callable[[], Any], calls: int) -> int:
    """The instructions of so many calls and of one `getpgrp`."""
    os.getpgrp()
    for _ in range(calls):
        call()
    os.getpgrp()
    return _last_count()


def _last_count() -> int:
    """The count of the newest file of this process; the files are removed."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    files = sorted(folder.glob(f"count.{os.getpid()}.*"), key=lambda path: int(path.suffix[1:]))
    if not files:
        raise LookupError(folder)
    lines = files[-1].read_text(encoding="utf-8", errors="replace").splitlines()
    for path in files:
        path.unlink()
    return next(int(line.split()[1]) for line in reversed(lines) if line.startswith(("summary:", "totals:")))
