"""The start of a worker: settings that must precede the first import.

    python -P -c "from adbench.execution.workers.worker_main import main; main()" DESCRIPTOR HEAP_BYTES CPUS

Libraries read the number of threads and the allowed processors once, on import. An allocation before it shifts later
ones, as another environment or another link order would.
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
    """Apply the settings, then serve the socket with this descriptor until the other side closes it."""
    descriptor, heap_bytes, cpus = sys.argv[1:4]
    faulthandler.enable()
    _die_with_parent()
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a processor may have been removed meanwhile
            os.sched_setaffinity(0, map(int, cpus.split(",")))
    padding = bytearray(int(heap_bytes))  # held until the process ends
    from adbench.execution.workers.worker import serve

    serve(int(descriptor))
    del padding


def _die_with_parent() -> None:
    """End with the parent process, because nothing else ends a hanging worker if it is killed (Linux only)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
