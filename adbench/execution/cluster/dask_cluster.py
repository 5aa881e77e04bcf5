"""Runs on many machines: a Dask cluster gets whole groups and decides where each one runs.

A timed group is a case with all its backends, sizes and operators, so every ratio is measured on one host. Checks have
no clock: their groups are a case at some of its random points. A host answers with events, which go into the journal
like local ones. Dask repeats a group on another host if its worker is lost.
"""

from __future__ import annotations

import logging
import re
from asyncio import CancelledError as AsyncCancelledError
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from adbench.execution.cluster.host import events_of, on_host
from adbench.model.backend import KnownBugs
from adbench.model.errors import AdbenchError, LostCluster, UsageError
from adbench.model.events import Checked, Event, Learned
from adbench.model.record import Job, Record, grouped
from adbench.model.run_progress import Progress, applied
from adbench.model.serialization import to_plain
from adbench.model.settings import PREFERRED_REFERENCE, Settings
from adbench.optional import library

ADDRESS = re.compile(r"dask://(?P<host>[^/\s]+):(?P<port>\d+)")
CONNECT_SECONDS = 15
SEEDS = 50  # random points of a case in one group of a check, so that starting workers does not dominate

LOST = "lost_workers"  # a fact about the machines

Facts = dict[str, Any]


def address_of(text: str) -> str:
    """tcp://HOST:PORT of dask://HOST:PORT. Raises UsageError for anything else."""
    match = ADDRESS.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a cluster address; write dask://HOST:PORT, as the scheduler prints it")
    return f"tcp://{match['host']}:{match['port']}"


def groups_of(jobs: Iterable[Job], *, timed: bool) -> list[tuple[Job, ...]]:
    """The jobs in groups that stay together, in the order of the plan."""
    groups = grouped(jobs, lambda job: (job.case, 0 if timed else job.seed // SEEDS))
    return [tuple(group) for group in groups.values()]


@dataclass
class Cluster:
    """Executes a plan on the hosts of a cluster; `progress` is the state of the run.

    Connects at once: raises UsageError if there is no cluster, before anything is written.
    """

    address: str
    settings: Settings
    progress: Progress
    client: Any = field(init=False)

    def __post_init__(self) -> None:
        self.client = self._connected()

    def events(self) -> Generator[Event, None, None]:
        """Do the rest of the plan; each event is applied to `progress` before it is passed on.

        Raises UsageError if a host cannot execute the plan.
        """
        yield from applied(self._events(), self.progress)

    def _events(self) -> Iterator[Event]:
        client = self.client
        from concurrent.futures import CancelledError

        from distributed import Event as Flag
        from distributed import as_completed

        losses = (OSError, TimeoutError, CancelledError, AsyncCancelledError)  # Dask's own are among them
        workers = _addresses(client)
        flag = f"adbench-stop-{uuid4().hex}"
        stop = Flag(flag, client=client)
        futures: dict[Any, tuple[Job, ...]] = {}
        try:
            if self.settings.time:
                yield Learned({"reference_backend": self._reference()})
            for group in self._left():
                name = f"{group[0].case}-{uuid4().hex}"
                futures[client.submit(on_host, self._request(group, flag), key=name, pure=False)] = group
            for future in as_completed(list(futures), loop=client.loop):
                yield from self._answered(future, futures[future])
                if lost := workers - _addresses(client):
                    workers -= lost
                    yield Learned({"machine": {**self.progress.head.run.machine, LOST: self._lost(lost)}})
        except losses as error:
            raise LostCluster(f"{self.address}: lost the connection to the scheduler: {_in_words(error)}") from error
        finally:
            for end in (stop.set, lambda: client.cancel(list(futures)), client.close):
                with suppress(*losses):
                    end()

    def _lost(self, addresses: set[str]) -> str:
        """The workers that were lost so far, these too, in words."""
        before = self.progress.head.run.machine.get(LOST)
        return ", ".join([*([str(before)] if before else []), *sorted(addresses)])

    def _connected(self) -> Any:
        Client = library("distributed", "--on").Client
        for module in ("client", "utils"):  # they log a loss with tracebacks; this class raises what they tell
            logging.getLogger(f"distributed.{module}").setLevel(logging.CRITICAL)
        where = address_of(self.address)
        try:
            client = Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise UsageError(f"{self.address}: no scheduler answers; start one: dask scheduler") from error
        if not client.scheduler_info(n_workers=-1)["workers"]:
            client.close()
            raise UsageError(f"{self.address}: no workers; run on each host: dask worker {where} --nthreads 1")
        return client

    def _left(self) -> list[tuple[Job, ...]]:
        """The unfinished groups, each as a whole, because its cells are measured together."""
        done, settings = self.progress, self.settings

        def is_left(job: Job) -> bool:
            record = done.records.get(job)
            if record is None:
                return True
            timed = settings.time and record.may_be_timed and job.case not in done.head.run.traps
            return timed and (job, False) not in done.launches

        groups = groups_of(done.head.plan, timed=settings.time)
        return [group for group in groups if any(map(is_left, group))]

    def _reference(self) -> str:
        """The control's backend, the same on every host."""
        backends = list(dict.fromkeys(job.backend for job in self.progress.head.plan))
        first = PREFERRED_REFERENCE if PREFERRED_REFERENCE in backends else backends[0]
        return self.progress.head.run.reference_backend or self.settings.reference_backend or first

    def _request(self, group: tuple[Job, ...], stop: str) -> dict[str, Any]:
        """The request to a host."""
        run = self.progress.head.run
        cases = {name: about for name, about in run.cases.items() if name == group[0].case}
        backends = {job.backend for job in group}
        versions = {name: version for name, version in run.versions.items() if name in backends}
        head = replace(
            self.progress.head,
            run=replace(run, cases=cases, versions=versions, loop_overhead_ns=None, flops={}, known_bugs=KnownBugs()),
            plan=group,
            asked=_of_group(self.progress.head.asked, {*cases}, backends),
        )
        return {"head": to_plain(head), "stop": stop, "timed": self.settings.time or self.settings.memory}

    def _answered(self, future: Any, group: tuple[Job, ...]) -> Iterator[Event]:
        """The events of a group; a record for each of its jobs if all its hosts were lost."""
        from distributed.scheduler import KilledWorker

        try:
            answer = future.result()
        except KilledWorker:
            reason = "the cluster's workers that measured this case were lost, one after the other"
            yield from (Checked(Record(job, "crashed", reason)) for job in group)
            return
        except ImportError as error:
            raise UsageError(f"{self.address}: a host lacks adbench or a library, install it there: {error}") from error
        except AdbenchError as error:
            raise UsageError(f"{self.address}: {error}") from error
        yield Learned(self._facts(answer))
        yield from events_of(answer)

    def _facts(self, answer: Facts) -> Facts:
        """The facts about the machines: values that all hosts share, and every value of the others."""
        run = self.progress.head.run
        overheads = [ns for ns in (run.loop_overhead_ns, answer["loop_overhead_ns"]) if ns is not None]
        hosts = str(run.machine.get("hosts") or "").split(", ") if run.machine.get("hosts") else []
        here = answer["machine"]
        if hosts:
            names = dict.fromkeys([*run.machine, *here])
            here = {name: _both(run.machine.get(name), here.get(name)) for name in names if name != LOST}
        if LOST in run.machine:
            here = {**here, LOST: run.machine[LOST]}
        joined = ", ".join(sorted({*hosts, answer["host"]}))
        # The largest of several hosts, an upper bound of the clock's overhead.
        return {"machine": {**here, "hosts": joined}, "loop_overhead_ns": max(overheads, default=None)}


def _addresses(client: Any) -> set[str]:
    """The workers that the scheduler knows now."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


def _in_words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _of_group(asked: Facts, cases: set[str], backends: set[str]) -> Facts:
    """The digests of a group's files."""
    kept = {f"cases/{name}{end}" for name in cases for end in ("", ".hpp")} | {f"backends/{name}" for name in backends}
    digests = asked.get("digests", {})
    return {**asked, "digests": {name: digest for name, digest in digests.items() if name in kept}}


def _both(before: Any, now: Any) -> Any:
    """A fact of two machines: the value if they agree, else both in words."""
    if before == now:
        return now
    texts = str(before).split(" / ") if before is not None else ["unknown"]
    return " / ".join(dict.fromkeys([*texts, "unknown" if now is None else str(now)]))
