"""One host of a cluster: measures a group of jobs, from check to memory, by the same scheduler as local runs.

`on_host` is the task of a Dask worker. It starts a process that measures the group, this module run with -m, so that
libraries affect only that process. It ends when the worker does.

    stdin of that process    one line of JSON, the request; its end means that nobody waits for the answer
    the file in its argv     the answer: {"host", "machine", "loop_overhead_ns", "events": [line of a journal, …]},
                             or {"fault": the reason}
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from adbench.execution import interrupt
from adbench.execution.planning.costs import read as kept_costs
from adbench.execution.scheduler import Scheduler
from adbench.execution.workers.context import Context
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.measure import machine
from adbench.model.errors import AdbenchError
from adbench.model.events import Checked, Event, Learned, Timed
from adbench.model.run_progress import Head, Progress
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings, cache_folder
from adbench.results.journal import event_of, line_of
from adbench.results.run_files import catalog_of

POLL_SECONDS = 2.0  # interval at which a task asks whether it is still wanted
LEASE = "adbench on {host}"


def on_host(request: dict[str, Any]) -> dict[str, Any]:
    """The task: measure the group of this request on this worker's host, exclusively if a clock runs.

    Raises AdbenchError with one line if the host cannot do it.
    """
    from distributed import Event as Flag

    stop = Flag(request["stop"])
    with tempfile.TemporaryDirectory(prefix="adbench-") as folder, _alone(request["timed"]):
        answer, errors = Path(folder) / "answer.json", Path(folder) / "errors"
        with errors.open("wb") as stderr:
            # Variables that Dask's nanny sets for its workers would change memory results.
            environment = {k: v for k, v in os.environ.items() if k != "MALLOC_TRIM_THRESHOLD_"}
            process = subprocess.Popen(
                [sys.executable, "-m", "adbench.execution.cluster.host", str(answer)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=environment,
            )
        assert process.stdin is not None
        with process.stdin, contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            while process.poll() is None and not stop.is_set():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
        process.wait()
        if not answer.exists():
            words = " ".join(errors.read_text("utf-8", "replace").split()[-40:])
            raise AdbenchError(f"{socket.gethostname()}: the group ended with exit code {process.returncode}: {words}")
        response: dict[str, Any] = json.loads(answer.read_text("utf-8"))
    if "fault" in response:
        raise AdbenchError(f"{socket.gethostname()}: {response['fault']}")
    return response


def _alone(timed: bool) -> contextlib.AbstractContextManager[Any]:
    """With a clock running, one group at a time on a host, for any number of workers: Dask's semaphore, whose lease
    ends with its worker."""
    if not timed:
        return contextlib.nullcontext()
    from distributed import Semaphore

    lease: contextlib.AbstractContextManager[Any] = Semaphore(
        max_leases=1, name=LEASE.format(host=socket.gethostname())
    )
    return lease


def measured(head: Head) -> dict[str, Any]:
    """The group of this head on this machine, as plain data. Raises UsageError if this host has other files."""
    here = machine.describe()
    head = replace(head, run=replace(head.run, machine=here))
    known = catalog_of(head, "this host", "install and copy the same files there")
    asked = from_plain(head.run.settings, Settings)
    most = default_limit()
    limits = [limit for limit in (asked.mem_limit_bytes, most) if limit is not None]
    settings = replace(asked, cache=str(cache_folder()), mem_limit_bytes=min(limits, default=None), budget_seconds=None)
    progress = Progress(head)
    with Supervisor(settings.mem_limit_bytes) as supervisor:
        scheduler = Scheduler(Context(supervisor, known, settings), progress, kept_costs(cache_folder(), here))
        with contextlib.closing(scheduler.events()) as events:
            lines = [line_of(event) for event in events if not isinstance(event, Learned)]
    return {
        "host": socket.gethostname(),
        "machine": progress.head.run.machine,
        "loop_overhead_ns": progress.head.run.loop_overhead_ns,
        "events": [line for line in lines if line is not None],
    }


def events_of(answer: Mapping[str, Any]) -> Iterator[Event]:
    """The events of an answer, their records with the name of the host."""
    host = str(answer["host"])
    for line in answer["events"]:
        event = event_of(line)
        if isinstance(event, Checked):
            event = replace(event, record=replace(event.record, host=host))
        elif isinstance(event, Timed):
            event = replace(event, lost=tuple(replace(record, host=host) for record in event.lost))
        yield event


def _end_with_stdin() -> None:
    """End this process in order when its stdin ends, because the Dask worker is gone or no longer waits."""
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(answer: Path) -> None:
    """Read the request, measure, and write the answer."""
    request = json.loads(sys.stdin.buffer.readline())
    interrupt.listen()
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        response = measured(from_plain(request["head"], Head))
    except (AdbenchError, ValueError) as error:
        response = {"fault": " ".join(str(error).split())}
    answer.write_text(json.dumps(response), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
