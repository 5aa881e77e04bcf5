"""One run from what was asked for to a `Run`: planned, gone through event by event, kept in a journal, gone on with."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from adbench.catalog import inactive_inputs
from adbench.catalog.discovery import Catalog
from adbench.catalog.selection import resolve
from adbench.execution.cluster.dask_cluster import Cluster
from adbench.execution.planning.budget import fit
from adbench.execution.planning.costs import Costs
from adbench.execution.planning.costs import keep as keep_costs
from adbench.execution.planning.costs import read as kept_costs
from adbench.execution.planning.estimate import Estimate
from adbench.execution.planning.forecast import Forecast
from adbench.execution.planning.plan import RELATIONS, Plan, check_inputs, flops_of, plan, sizes_by_case
from adbench.execution.scheduler import Runner
from adbench.execution.workers.pool import refuse_bad_file
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.measure import machine
from adbench.model.backend import OPERATORS
from adbench.model.errors import BadFile, UnknownName, UsageError
from adbench.model.events import Checked, Event, Learned, MemoryMeasured, Timed
from adbench.model.record import SCHEMA_VERSION, Job, Record, Run
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings, cache_folder
from adbench.results.journal import Head, Journal, Progress, assemble
from adbench.results.run_files import catalog_of, files_of, unchanged
from adbench.results.store import JOURNAL
from adbench.version import __version__

QUICK_SECONDS = 110.0  # what a quick run of nothing in particular is planned to fit into


STAYS = "what was measured so far stays readable; start a new run for the rest"


class Session:
    """A plan under way. Iterate `events` to make it go; `result` is valid at any moment, also after an interruption."""

    def __init__(
        self,
        plan: Plan,
        catalog: Catalog,
        settings: Settings,
        progress: Progress,
        costs: Costs,
        journal: Journal | None = None,
        sizes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.plan, self.catalog, self.settings = plan, catalog, settings
        self._sizes = sizes_by_case(plan.jobs) if sizes is None else sizes
        self._progress, self._costs, self._journal = progress, costs, journal
        self.forecast = Forecast(plan.jobs, settings, costs, progress, missing(catalog, plan.jobs))

    def events(self, folder: Path | None = None, on: str | None = None) -> Generator[Event, None, None]:
        """Run what of the plan is not done yet, event by event, each in the journal before it is told.

        on       dask://HOST:PORT of the cluster whose hosts measure; None for this machine
        folder   where the journal of a new run goes; None for none. A resumed run has its own.

        Raises BadFile, before anything is measured, where a user's own backend file cannot be used; BadOutput where
        the journal cannot be written.
        """
        with Supervisor(self.settings.mem_limit_bytes) as supervisor:
            left = dict.fromkeys(job.backend for job in self.plan.jobs if job not in self._progress.records)
            for name in left:
                refuse_bad_file(supervisor, self.catalog, self.settings, name)
            runner: Runner | Cluster
            if on is None:
                runner = Runner(supervisor, self.plan, self.catalog, self.settings, self._progress, self._costs)
            else:
                runner = Cluster(on, self.plan, self.settings, self._progress)
            if folder is not None:
                self._journal = Journal.create(folder / JOURNAL, self._progress.head)
            try:
                self.forecast.begin()
                with closing(runner.events()) as events:
                    for event in events:
                        self._keep(event)
                        self.forecast.note(event)
                        yield event
                if self._journal is not None and not self._progress.ended:
                    self._journal.end()
            finally:
                if self._journal is not None:
                    self._journal.close()
                self._costs.learn_run(self.result())
                keep_costs(cache_folder(), self._progress.head.run.machine, self._costs)

    def close(self) -> None:
        """Let go of the journal of a resumed run that is not gone on with."""
        if self._journal is not None:
            self._journal.close()

    def estimate(self) -> Estimate:
        """The model of how long it takes, with what cells have cost before."""
        return Estimate(self.settings, self._costs, missing=missing(self.catalog, self.plan.jobs))

    @cached_property
    def remarks(self) -> tuple[inactive_inputs.Notice, ...]:
        """What the user's own cases cannot show, at every size that is timed: of a check, at all that a run has."""
        return tuple(inactive_inputs.of_own_cases(self.catalog, self._sizes, self.settings.seed))

    def result(self) -> Run:
        """What has been found out so far, in the plan's order."""
        return assemble(self._progress)

    def _keep(self, event: Event) -> None:
        """Write an event through to the disk, where it tells of something done."""
        if self._journal is None:
            return
        match event:
            case Checked(record):
                self._journal.checked(record)
            case Timed(number, cells, lost):
                self._journal.launched(number, cells, lost)
            case MemoryMeasured(job, memory):
                self._journal.memory(job, memory)
            case Learned(facts):
                self._journal.facts(**facts)


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
    rigorous: bool = False,
    launches: int | None = None,
    budget: float | None = None,
    time: bool = True,
    memory: bool = True,
    margin: float = 0.02,
    reference: str | None = None,
    seed: int = 0,
    points: int = 1,
    threads: int = 1,
    timeout: float = 60.0,
    mem_limit: int | None = None,
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
        few=time,
        traps=not time,
    )
    check_inputs(chosen.catalog, planned.jobs, seed)
    selected = tuple(dict.fromkeys(job.backend for job in planned.jobs))
    if reference is not None and reference not in selected:
        raise UnknownName("selected backend", reference, selected)
    settings = Settings(
        cache=str(cache_folder()),
        seed=seed,
        threads=threads,
        timeout_seconds=timeout,
        mem_limit_bytes=mem_limit or default_limit(),
        time=time,
        memory=memory,
        margin=margin,
        reference_backend=reference,
    )
    if quick:
        settings = settings.for_a_first_look()
    if rigorous:
        settings = settings.for_publishing()
    if launches is not None:
        settings = replace(settings, launches=launches)
    described = machine.describe()  # before the load that we make ourselves
    costs = kept_costs(cache_folder(), described)
    if time and quick and not (cases or backends or sizes or operators or suites):
        budget = budget or QUICK_SECONDS
    if budget is not None:
        planned, settings = _fitted(planned, chosen.catalog, replace(settings, budget_seconds=budget), costs)
    head = _head(planned, chosen.catalog, settings, described)
    progress = Progress(head)
    every = {name: chosen.catalog.cases[name].sizes for name in head.run.cases} if not time and not sizes else None
    return Session(planned, chosen.catalog, settings, progress, costs, sizes=every)


def _fitted(planned: Plan, catalog: Catalog, settings: Settings, costs: Costs) -> tuple[Plan, Settings]:
    """What of the plan fits into the budget. Raises UsageError where nothing does."""
    budget = settings.budget_seconds or 0.0
    estimate = Estimate(settings, costs, missing=missing(catalog, planned.jobs))
    found = fit(planned.jobs, estimate, budget, frozenset(n for n in catalog.cases if catalog.cases[n].is_trap))
    if not found.fits:
        job = found.jobs[0]
        raise UsageError(
            f"nothing fits into {budget:g} s: {job.case} at size {job.size} alone takes about {found.seconds:.0f} s; "
            "give more time, or fewer backends with -b"
        )
    left_out = tuple(f"to fit into {budget:g} s: {text}" for text in found.left_out)
    settings = replace(found.settings, left_out="; ".join(found.left_out) or None)
    return Plan(found.jobs, planned.left_out + left_out), settings


def missing(catalog: Catalog, jobs: Iterable[Job]) -> frozenset[str]:
    """The backends of these jobs whose library is not installed."""
    return frozenset(name for name in {job.backend for job in jobs} if catalog.backends[name].missing)


def resume(folder: Path, on: str | None = None) -> Session:
    """The run whose journal is in the folder, to be gone on with as it was begun, on a cluster where that is named.

    Raises UsageError (also as BadFile, BadOutput) where there is none, or what it would measure has changed since.
    """
    journal, progress = Journal.resume(folder / JOURNAL)
    try:
        catalog = unchanged(progress.head, folder) if on is None else catalog_of(progress.head, folder, STAYS)
        settings = from_plain(progress.head.run.settings, Settings)
    except ValueError as error:
        journal.close()
        raise BadFile(f"{folder / JOURNAL}: not the journal of this adbench: {error}") from error
    except BaseException:
        journal.close()
        raise
    costs = kept_costs(cache_folder(), progress.head.run.machine)
    return Session(Plan(progress.head.plan), catalog, settings, progress, costs, journal)


def _head(planned: Plan, catalog: Catalog, settings: Settings, described: dict[str, machine.Fact]) -> Head:
    """A run of which nothing has been measured."""
    backends = tuple(dict.fromkeys(job.backend for job in planned.jobs))
    cases = tuple(dict.fromkeys(job.case for job in planned.jobs))
    run = Run(
        schema_version=SCHEMA_VERSION,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        adbench_version=__version__,
        seed=settings.seed,
        settings=asdict(settings),
        machine=described,
        versions={name: catalog.backends[name].version for name in backends},
        cases={name: catalog.case_sources[name].summary for name in cases},
        records=(),
        traps=tuple(name for name in cases if catalog.cases[name].is_trap),
        flops=flops_of(catalog, planned.jobs),
    )
    return Head(run, planned.jobs, files_of(catalog, backends, cases))


def exit_code(records: Sequence[Record]) -> int:
    """0 fine, 1 a wrong derivative or a known fault that is gone, 4 a backend crashed, timed out or raised.

    What is unsupported, or wrong as it is known to be, is fine: it says so.
    """
    statuses = {record.status for record in records}
    if statuses & {"wrong", "surprise"}:
        return 1
    return 4 if statuses & {"crashed", "timed_out", "failed", "skipped"} else 0
