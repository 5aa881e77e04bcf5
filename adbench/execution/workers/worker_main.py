"""The start of a worker: settings that must precede the first import.

    python -P -c "from adbench.execution.workers.worker_main import main; main()" DESCRIPTOR HEAP_BYTES CPUS GROUP

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

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)


def main() -> None:
    """Apply the settings, then serve the socket with this descriptor until the other side closes it."""
    descriptor, heap_bytes, cpus, group = sys.argv[1:5]
    if group:
        with contextlib.suppress(OSError), open(f"{group}/cgroup.procs", "w") as file:
            file.write("0")  # this process, before it has children
    _fork_below_subreaper(int(descriptor))
    faulthandler.enable()
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a processor may have been removed meanwhile
            os.sched_setaffinity(0, map(int, cpus.split(",")))
    padding = bytearray(int(heap_bytes))  # held until the process ends
    from adbench.execution.workers.worker import serve

    serve(int(descriptor))
    del padding


def _fork_below_subreaper(descriptor: int) -> None:
    """Continue in a child process. The parent stays below the runner and ends whatever the child leaves behind.

    The kernel gives orphans to their nearest subreaper, so no daemon of a library escapes, whatever its session and its
    environment. The parent then ends as the child did. Linux only, and not under Callgrind, which one can only ask to
    count in the process that it started.
    """
    if sys.platform != "linux" or "ADBENCH_COUNTS" in os.environ:
        return
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    child = os.fork()
    if child == 0:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        return

    def terminate(*_: object) -> None:
        end_children()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    os.close(descriptor)  # or its end would tell nobody of the child's death
    ended = status = 0
    while ended != child:
        ended, status = os.waitpid(-1, 0)
    end_children()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has left one
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def end_children() -> None:
    """Kill all children of this process, and the orphans that it then inherits."""
    while children := [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == os.getpid()]:
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


def _parent(pid: str) -> int:
    """The number of the parent process; 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
