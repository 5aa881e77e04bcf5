"""One run from plan to `Run`: iterates the runner's events, keeps the records, hands each to whoever watches."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from adbench.measure import machine
from adbench.suite.backend import OPERATORS
from adbench.suite.catalog import Catalog
from adbench.suite.errors import UnknownName
from adbench.suite.plan import RELATIONS, Plan, check_inputs, plan
from adbench.suite.record import SCHEMA_VERSION, Job, Record, Run
from adbench.suite.resolve import resolve
from adbench.suite.runner import Event, Finished, run
from adbench.suite.settings import Settings
from adbench.version import __version__


class Session:
    """A plan under way. Iterate `events` to make it go; `result` is valid at any moment, also after an interruption."""

    plan: Plan

    def __init__(self, plan: Plan, catalog: Catalog, settings: Settings) -> None:
        self.plan, self._catalog, self._settings = plan, catalog, settings
        self._created = datetime.now(UTC).isoformat(timespec="seconds")
        self._machine = machine.describe()  # before the load that we make ourselves
        self._records: dict[Job, Record] = {}

    def events(self) -> Generator[Event, None, None]:
        """Run the plan, event by event."""
        for event in run(self.plan, self._catalog, self._settings):
            if isinstance(event, Finished):
                self._records[event.record.job] = event.record
            yield event

    def result(self) -> Run:
        """What has been found out so far, in the plan's order."""
        jobs = [job for job in self.plan.jobs if job in self._records]
        return Run(
            schema_version=SCHEMA_VERSION,
            created=self._created,
            adbench_version=__version__,
            seed=self._settings.seed,
            settings=asdict(self._settings),
            machine=self._machine,
            versions={name: self._catalog.backends[name].version for name in dict.fromkeys(j.backend for j in jobs)},
            cases={name: self._catalog.case_sources[name].summary for name in dict.fromkeys(j.case for j in jobs)},
            records=tuple(self._records[job] for job in jobs),
            traps=tuple(n for n in dict.fromkeys(j.case for j in jobs) if self._catalog.cases[n].is_trap),
        )


def prepare(
    *,
    cases: Sequence[str] = (),
    backends: Sequence[str] = (),
    sizes: Sequence[str] = (),
    operators: Sequence[str] = (),
    suites: Sequence[str] = (),
    case_folders: Sequence[str] = (),
    backend_folders: Sequence[str] = (),
    quick: bool = False,
    time: bool = True,
    memory: bool = True,
    seed: int = 0,
    points: int = 1,
    threads: int = 1,
    timeout: float = 60.0,
) -> Session:
    """What was asked for, resolved and planned; nothing has run yet but the user's own case files.

    Raises UsageError (also as UnknownName, BadFile) for what cannot be done.
    """
    for name in operators:
        if name not in OPERATORS and name != RELATIONS:
            raise UnknownName("operator", name, (*OPERATORS, RELATIONS))
    chosen = resolve(cases=cases, backends=backends, case_folders=case_folders, backend_folders=backend_folders)
    named = tuple(name for name in operators if name != RELATIONS)
    planned = plan(
        chosen.catalog,
        cases=chosen.cases,
        backends=chosen.backends,
        sizes=sizes,
        operators=named if operators else None,
        thorough=not time,
        suites=suites,
        relations=(not time and not operators) or RELATIONS in operators,
        seeds=range(seed, seed + points),
        quick=quick,
        traps=not time,
    )
    check_inputs(chosen.catalog, planned.jobs, seed)
    settings = Settings(
        cache=str(cache_folder()), seed=seed, threads=threads, timeout_seconds=timeout, time=time, memory=memory
    )
    return Session(planned, chosen.catalog, settings.for_a_first_look() if quick else settings)


def cache_folder() -> Path:
    """Where references are kept: $ADBENCH_CACHE, else the user's cache folder. May be thrown away at any time."""
    given = os.environ.get("ADBENCH_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "adbench" / "references"


def exit_code(records: Sequence[Record]) -> int:
    """0 fine, 1 a wrong derivative or a known fault that is gone, 4 a backend crashed, timed out or raised.

    What is unsupported, or wrong as it is known to be, is fine: it says so.
    """
    statuses = {record.status for record in records}
    if statuses & {"wrong", "surprise"}:
        return 1
    return 4 if statuses & {"crashed", "timed_out", "failed", "skipped"} else 0
