"""A run from request to `Run`: planned, executed event by event, kept in a journal, resumed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adbench.catalog.ad_hoc import Sized
from adbench.catalog.discovery import Catalog
from adbench.catalog.selection import resolve
from adbench.execution import checkout, known_faults
from adbench.execution.planning import costs as kept
from adbench.execution.planning.costs import Costs
from adbench.execution.planning.plan import (
    Plan,
    check_inputs,
    flops_of,
    plan,
    seconds_of_large_references,
    sizes_by_case,
)
from adbench.execution.planning.request import Request, selected
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.supervisor import Supervisor
from adbench.measure import machine
from adbench.measure.machine.processors import usable_cpus
from adbench.model.backend import KnownBugs
from adbench.model.errors import BadFile, UnknownName, UsageError
from adbench.model.events import Ended, Event
from adbench.model.record import SCHEMA_VERSION, Job, Record, Run, Selected
from adbench.model.run_progress import Head, Progress, apply, assemble
from adbench.model.serialization import from_plain
from adbench.model.settings import FLOAT64, PROCESSOR, Settings, cache_folder
from adbench.version import __version__

if TYPE_CHECKING:
    from adbench.execution.cluster.dask_cluster import Cluster
    from adbench.execution.planning.estimate import Estimate
    from adbench.execution.planning.forecast import Forecast
    from adbench.execution.planning.inactive_inputs import Notice
    from adbench.execution.scheduler import Scheduler
    from adbench.results.journal import Journal


class Session:
    """A planned run. Iterate `events` to execute it; `result` is always valid, also after an interruption."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        progress: Progress,
        *,
        left_out: tuple[str, ...] = (),
        sizes: Mapping[str, Sequence[int]] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.plan = Plan(progress.head.plan, left_out, progress.head.run.not_installed)
        self.catalog, self.settings = catalog, settings
        self._progress, self._journal = progress, journal
        self._sizes = sizes_by_case(self.plan.jobs) if sizes is None else sizes
        self._keeps = settings.dtype == FLOAT64  # costs in another type are others
        self._costs = kept.read(cache_folder(), progress.head.run.machine) if self._keeps else Costs()

    def events(self, folder: Path | None = None, on: str | None = None) -> Generator[Event, None, None]:
        """Run the rest of the plan, event by event; each is in the journal before it is passed on.

        on       dask://HOST:PORT of a cluster that measures; None for this machine
        folder   the folder for a new run's journal; None for none. A resumed run uses its own.

        Raises BadFile, before anything is measured, if a user's backend file cannot be used; UsageError if this machine
        has fewer processors than `threads`; BadOutput if the journal cannot be written.
        """
        from adbench.execution.scheduler import Scheduler

        if on is None:
            refuse_too_many_threads(self.settings)
        with Supervisor(self.settings.mem_limit_bytes) as supervisor:
            context = Context(supervisor, self.catalog, self.settings)
            for name in dict.fromkeys(self.catalog.backends[job.backend].name for job in self._progress.unchecked):
                refuse_bad_file(context, name)
            if not self._progress.head.asked and (on is not None or folder is not None):
                from adbench.results.run_files import with_files

                self._progress.head = with_files(self._progress.head, self.catalog)
            measuring: Scheduler | Cluster
            if on is None:
                measuring = Scheduler(context, self._progress, self._costs)
            else:
                from adbench.execution.cluster.dask_cluster import Cluster

                measuring = Cluster(on, self.settings, self._progress)
            if folder is not None:
                from adbench.results.journal import Journal
                from adbench.results.store import JOURNAL

                self._journal = Journal.create(folder / JOURNAL, self._progress.head)
            try:
                if "forecast" in vars(self):
                    self.forecast.begin()
                with closing(measuring.events()) as events:
                    for event in events:
                        self._write(event)
                        if "forecast" in vars(self):  # or nobody has asked for it yet
                            self.forecast.note(event)
                        yield event
                if not self._progress.ended:
                    apply(Ended(), self._progress)
                    self._write(Ended())
            finally:
                self.close()
                self._costs.learn_run(self.result())
                if self._keeps:
                    kept.keep(cache_folder(), self._progress.head.run.machine, self._costs)

    def close(self) -> None:
        """Close the journal, if any."""
        if self._journal is not None:
            self._journal.close()

    def estimate(self) -> Estimate:
        """The estimated duration, with costs of cells from earlier runs."""
        return _estimate(self.catalog, self.plan.jobs, self.settings, self._costs)

    @cached_property
    def forecast(self) -> Forecast:
        """How long the rest takes, from its first use on."""
        from adbench.execution.planning.forecast import Forecast

        return Forecast(self.estimate(), self._progress)

    @cached_property
    def remarks(self) -> tuple[Notice, ...]:
        """The inactive inputs of user cases, at every timed size; for a check, at all their sizes."""
        from adbench.execution.planning.inactive_inputs import of_own_cases

        return tuple(of_own_cases(self.catalog, self._sizes, self.settings.seed))

    def result(self) -> Run:
        """The results so far, in the plan's order."""
        return assemble(self._progress)

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the plan is left: no interruption ended the run."""
        return self._progress.ended

    def _write(self, event: Event) -> None:
        if self._journal is not None:
            self._journal.write(event)


def prepare(**asked: Any) -> Session:
    """Plan the run of a `Request` with these fields; only the user's case files are executed.

    Raises UsageError (also as UnknownName, BadFile) for impossible requests.
    """
    request = Request(**asked)
    settings = request.settings
    chosen = resolve(
        cases=request.cases,
        backends=request.backends,
        case_folders=request.case_folders,
        backend_folders=request.backend_folders,
    )
    wanted = replace(request, cases=chosen.cases, backends=chosen.backends)
    planned = plan(chosen.catalog, wanted)
    parts = selected(chosen.catalog, wanted, planned.jobs)
    check_inputs(chosen.catalog, planned.jobs, request.seed)
    backends = tuple(dict.fromkeys(job.backend for job in planned.jobs))
    if (reference := request.reference) is not None:
        named = [name for name in backends if reference in (name, chosen.catalog.backends[name].name)]
        if not named:
            raise UnknownName("selected backend", reference, backends)
        settings = replace(settings, reference_backend=named[0])
    described = machine.describe()  # before adbench itself causes load
    if request.budget is not None:  # a quick run's own budget is applied after the checks, not to guesses
        costs = kept.read(cache_folder(), described)
        planned, settings = _fitted(planned, chosen.catalog, settings, costs)
    head = _head(planned, chosen.catalog, settings, described, parts)
    every = {name: chosen.catalog.cases[name].sizes for name in head.run.cases}
    sizes = None if request.time or request.sizes else every
    return Session(chosen.catalog, settings, Progress(head), left_out=planned.left_out, sizes=sizes)


def refuse_too_many_threads(settings: Settings) -> None:
    """Raises UsageError for further numbers of threads above that of processors: their times would say nothing."""
    usable, most = len(usable_cpus()), max(settings.thread_counts)
    if settings.more_threads and most > usable:
        has = f"this machine has {usable} usable processor{'s' if usable > 1 else ''}"
        raise UsageError(f"--threads {most}: {has}; give at most {usable}")


def refuse_bad_file(context: Context, name: str) -> None:
    """Load a user's backend file in a temporary process, on the processor, because a device may take seconds to start.
    Raises BadFile if it cannot be used.

    A file that ends that process fails in its own cells only; the others are measured.
    """
    source = context.catalog.backends[name]
    if source.builtin or source.missing:
        return
    try:
        with context.supervisor.start(context.plain_start()) as worker:
            worker.ask({**context.load_request(name), "device": PROCESSOR}, context.settings.timeout_seconds)
    except NoAnswer as no:
        if no.is_bad_file:
            raise BadFile(no.reason) from no


def _fitted(planned: Plan, catalog: Catalog, settings: Settings, costs: Costs) -> tuple[Plan, Settings]:
    """The part of the plan that fits into the budget. Raises UsageError if nothing does."""
    from adbench.execution.planning.budget import fit

    budget, estimate = settings.budget_seconds or 0.0, _estimate(catalog, planned.jobs, settings, costs)
    fitted = fit(planned.jobs, estimate, budget, frozenset(n for n in catalog.cases if catalog.cases[n].is_trap))
    if not fitted.fits:
        job = fitted.jobs[0]
        raise UsageError(
            f"nothing fits into {budget:g} s: {job.case} at size {job.size} alone takes about {fitted.seconds:.0f} s; "
            "give more time with --budget, or name fewer backends with -b"
        )
    left_out = tuple(f"to fit into {budget:g} s: {text}" for text in fitted.left_out)
    settings = replace(fitted.settings, left_out="; ".join(fitted.left_out) or None)
    return replace(planned, jobs=fitted.jobs, left_out=planned.left_out + left_out), settings


def _estimate(catalog: Catalog, jobs: Sequence[Job], settings: Settings, costs: Costs) -> Estimate:
    """The model for these jobs; those of a library that is not installed take no time."""
    from adbench.execution.planning.estimate import Estimate

    missing = [name for name in {job.backend for job in jobs} if catalog.backends[name].missing]
    return Estimate(settings, costs, missing=missing, large=seconds_of_large_references(catalog, jobs))


def resume(folder: Path, on: str | None = None) -> Session:
    """The run whose journal is in the folder, with its own plan and settings; `on` is the cluster that measures.

    Raises UsageError (also as BadFile, BadOutput) without a journal, or if its files or the machine have changed.
    """
    from adbench.results.journal import Journal
    from adbench.results.run_files import catalog_of, unchanged
    from adbench.results.store import JOURNAL

    journal, progress = Journal.resume(folder / JOURNAL)
    try:
        head = progress.head
        again = "the results stay readable; start a new run for the rest"
        catalog = unchanged(head, folder) if on is None else catalog_of(head, folder, again)
        return Session(catalog, from_plain(head.run.settings, Settings), progress, journal=journal)
    except ValueError as error:
        journal.close()
        raise BadFile(f"{folder / JOURNAL}: not a journal of this adbench: {error}") from error
    except BaseException:
        journal.close()
        raise


def _head(
    planned: Plan,
    catalog: Catalog,
    settings: Settings,
    described: dict[str, machine.Fact],
    parts: tuple[Selected, ...],
) -> Head:
    """The beginning of a run."""
    backends = tuple(dict.fromkeys(job.backend for job in planned.jobs))
    cases = tuple(dict.fromkeys(job.case for job in planned.jobs))
    root, commit = checkout.root_and_commit()
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
        known_bugs=_known_bugs(catalog, settings, backends, cases),
        not_installed=planned.not_installed,
        commit=commit,
        sources=checkout.sources(root, catalog, cases, backends),
        selected=parts,
        roles={name: catalog.backends[name].role for name in backends},
    )
    return Head(run, planned.jobs)


def _known_bugs(catalog: Catalog, settings: Settings, backends: tuple[str, ...], cases: tuple[str, ...]) -> KnownBugs:
    """What is known of the backends on traps, for the page; a check of the user's functions has none."""
    if not settings.time and not any(catalog.case_sources[name].builtin for name in cases):
        from adbench.functions.user_function import UserFunction

        if all(isinstance(catalog.cases[name].f, UserFunction | Sized) for name in cases):
            return KnownBugs()
    sources = [catalog.backends[name] for name in backends]
    return known_faults.on_traps(sources, catalog.cases, cases, settings.dtype)


def exit_code(records: Iterable[Record], unjudged: Sequence[str] = ()) -> int:
    """0 correct, 1 a wrong derivative, 4 a backend crashed, timed out or raised, or nothing
    was judged of a selected part.

    An unsupported operator and a known fault count as 0.
    """
    codes = {record.outcome.exit_code for record in records}
    if unjudged:
        codes.add(4)
    return 1 if 1 in codes else max(codes, default=0)
