"""A run on many machines: whole groups are handed to a Dask cluster, which says where each one runs.

A group that is timed is a case with all its backends, sizes and operators, so that every ratio is taken on one host. A
check has no clock: its groups are a case at some of its random points. What a host tells are the events of a run, which
go into the journal as if they had happened here; a group whose worker is lost is run again elsewhere, by Dask.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from adbench.execution.cluster.host import events_of, on_host
from adbench.execution.planning.plan import Plan
from adbench.execution.scheduler import enter
from adbench.model.errors import AdbenchError, UsageError
from adbench.model.events import Checked, Event, Learned
from adbench.model.record import Job, Record
from adbench.model.serialization import to_plain
from adbench.model.settings import PREFERRED_REFERENCE, Settings
from adbench.results.journal import Progress

ADDRESS = re.compile(r"dask://(?P<host>[^/\s]+):(?P<port>\d+)")
CONNECT_SECONDS = 15
SEEDS = 50  # of a case, in one group of a check: starting the workers must not be what takes the time

Facts = dict[str, Any]


def address_of(text: str) -> str:
    """tcp://HOST:PORT of dask://HOST:PORT. Raises UsageError where it is none."""
    found = ADDRESS.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no address of a cluster; write dask://HOST:PORT, as the scheduler prints it")
    return f"tcp://{found['host']}:{found['port']}"


def groups_of(jobs: Iterable[Job], *, timed: bool) -> list[tuple[Job, ...]]:
    """The jobs in groups that stay together, in the order of the plan."""
    found: dict[Any, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.case if timed else (job.case, job.seed // SEEDS), []).append(job)
    return [tuple(group) for group in found.values()]


@dataclass
class Cluster:
    """Goes through a plan on the hosts of a cluster; `progress` is what is known of the run so far.

    Connected when it is made: raises UsageError where there is no cluster, so that nothing has been written by then.
    """

    address: str
    plan: Plan
    settings: Settings
    progress: Progress
    client: Any = field(init=False)

    def __post_init__(self) -> None:
        self.client = self._connected()

    def events(self) -> Generator[Event, None, None]:
        """Do what of the plan is not in `progress` yet; each event is entered there before it is told.

        Raises UsageError where a host has not what the plan needs.
        """
        client = self.client
        from distributed import Event as Flag
        from distributed import as_completed

        flag = f"adbench-stop-{uuid4().hex}"
        stop = Flag(flag, client=client)
        futures: dict[Any, tuple[Job, ...]] = {}
        try:
            yield from self._entered([Learned({"reference_backend": self._reference()})] * self.settings.time)
            for group in self._left():
                name = f"{group[0].case}-{uuid4().hex}"
                futures[client.submit(on_host, self._request(group, flag), key=name, pure=False)] = group
            for future in as_completed(list(futures), loop=client.loop):
                yield from self._entered(self._answered(future, futures[future]))
        finally:
            stop.set()
            client.cancel(list(futures))
            client.close()

    def _connected(self) -> Any:
        try:
            from distributed import Client
        except ImportError as error:
            raise UsageError("--on needs Dask; pip install 'autodiff-bench[dask]'") from error
        where = address_of(self.address)
        try:
            client = Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise UsageError(f"{self.address}: no scheduler answers there; start one: dask scheduler") from error
        if not client.scheduler_info(n_workers=-1)["workers"]:
            client.close()
            raise UsageError(f"{self.address}: it has no worker; on each host: dask worker {where} --nthreads 1")
        return client

    def _left(self) -> list[tuple[Job, ...]]:
        """The groups of which something is not done yet: those whole, since they are measured together."""
        asked = self.settings
        done = self.progress

        def is_left(job: Job) -> bool:
            record = done.records.get(job)
            if record is None:
                return True
            right = record.status == "ok" and record.reason is None and record.summary is not None
            return asked.time and right and (job, False) not in done.launches and job.case not in done.head.run.traps

        groups = groups_of(self.plan.jobs, timed=asked.time)
        return [group for group in groups if any(map(is_left, group))]

    def _reference(self) -> str:
        """The control's backend, the same on every host."""
        backends = list(dict.fromkeys(job.backend for job in self.plan.jobs))
        first = PREFERRED_REFERENCE if PREFERRED_REFERENCE in backends else backends[0]
        return self.progress.head.run.reference_backend or self.settings.reference_backend or first

    def _request(self, group: tuple[Job, ...], stop: str) -> dict[str, Any]:
        """What a host needs to know."""
        run = self.progress.head.run
        cases = {name: about for name, about in run.cases.items() if name == group[0].case}
        backends = {job.backend for job in group}
        versions = {name: version for name, version in run.versions.items() if name in backends}
        head = replace(
            self.progress.head,
            run=replace(run, cases=cases, versions=versions, loop_overhead_ns=None, flops={}),
            plan=group,
            asked=_of_group(self.progress.head.asked, {*cases}, backends),
        )
        return {"head": to_plain(head), "stop": stop, "timed": self.settings.time or self.settings.memory}

    def _answered(self, future: Any, group: tuple[Job, ...]) -> Iterator[Event]:
        """The events of a group; a record for each of its jobs where every host that had it was lost."""
        from distributed.scheduler import KilledWorker

        try:
            answer = future.result()
        except KilledWorker:
            reason = "the workers of the cluster that measured this case were lost, one after the other"
            yield from (Checked(Record(job, "crashed", reason)) for job in group)
            return
        except ModuleNotFoundError as error:
            raise UsageError(f"{self.address}: a host lacks adbench, or what it needs: {error}") from error
        except AdbenchError as error:
            raise UsageError(f"{self.address}: {error}") from error
        yield Learned(self._facts(answer))
        yield from events_of(answer)

    def _facts(self, answer: Facts) -> Facts:
        """What is known of the machines: facts that are the same on all hosts, else each that there is."""
        run = self.progress.head.run
        overheads = [ns for ns in (run.loop_overhead_ns, answer["loop_overhead_ns"]) if ns is not None]
        hosts = str(run.machine.get("hosts") or "").split(", ") if run.machine.get("hosts") else []
        here = answer["machine"]
        if hosts:
            names = dict.fromkeys([*run.machine, *here])
            here = {name: _both(run.machine.get(name), here.get(name)) for name in names}
        joined = ", ".join(sorted({*hosts, answer["host"]}))
        # Of several hosts the largest: what is at most the clock's own.
        return {"machine": {**here, "hosts": joined}, "loop_overhead_ns": max(overheads, default=None)}

    def _entered(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            enter(event, self.progress)
            yield event


def _of_group(asked: Facts, cases: set[str], backends: set[str]) -> Facts:
    """The digests of what a group is made of."""
    kept = {f"cases/{name}{end}" for name in cases for end in ("", ".hpp")} | {f"backends/{name}" for name in backends}
    digests = asked.get("digests", {})
    return {**asked, "digests": {name: digest for name, digest in digests.items() if name in kept}}


def _both(before: Any, now: Any) -> Any:
    """A fact of two machines: itself where they agree, else both in words."""
    if before == now:
        return now
    texts = str(before).split(" / ") if before is not None else ["not known"]
    return " / ".join(dict.fromkeys([*texts, "not known" if now is None else str(now)]))
