"""The first lines of a worker: everything that must be set before the first import.

    python -P -c "from adbench.execution.workers.worker_main import main; main()" DESCRIPTOR HEAP_BYTES CPUS

Libraries read the number of threads and the processors they may use once, on import; and an allocation before it moves
everything that comes after, as another environment or another order of linking would.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """Settle, then serve the socket whose descriptor is the first argument until the other side closes it."""
    descriptor, heap_bytes, cpus = sys.argv[1:4]
    faulthandler.enable()
    _die_with_parent()
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a processor that was taken from us since
            os.sched_setaffinity(0, map(int, cpus.split(",")))
    padding = bytearray(int(heap_bytes))  # held until the process ends
    from adbench.execution.workers.worker import serve

    serve(int(descriptor))
    del padding


def _die_with_parent() -> None:
    """If the parent process is killed, nothing else would end a worker that hangs (Linux only)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
