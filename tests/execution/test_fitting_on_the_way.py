"""A run under a budget, after its checks: cells that do not fit are left out, reported, and remain so."""

from dataclasses import asdict
from time import monotonic

import numpy as np

from adbench import Case
from adbench.catalog.discovery import Catalog
from adbench.catalog.source import Source
from adbench.execution.planning.costs import Costs
from adbench.execution.scheduler import Scheduler
from adbench.execution.workers.context import Context
from adbench.execution.workers.supervisor import Supervisor
from adbench.model.events import CellSeconds, Checked, Event, Learned
from adbench.model.record import Job, Record, Run, Summary
from adbench.model.run_progress import Head, Progress, apply
from adbench.model.serialization import from_plain
from adbench.model.settings import Settings

SIZES = (1, 10, 100)
JOBS = tuple(Job("a", n, backend, operator) for n in SIZES for operator in ("value", "gradient") for backend in "xy")


def scheduler(spent: float, checked: tuple[Job, ...] = JOBS, budget: float | None = 100.0) -> Scheduler:
    """A run of one case after this many seconds, with these jobs checked; each call takes 10 ms times n."""
    case = Case(f=lambda xp, x: xp.sum(x), inputs=lambda n, rng: {"x": np.ones(n)}, wrt=("x",), sizes=SIZES)
    sources = {name: Source("backends", name, "", builtin=True) for name in "xy"}
    catalog = Catalog({"a": case}, {"a": Source("cases", "a", "", builtin=True)}, sources)
    settings = Settings(budget_seconds=budget)
    head = Head(Run(2, "", "0", 0, asdict(settings), {}, {"x": None, "y": None}, {"a": ""}, ()), JOBS)
    progress = Progress(head, {job: Record(job, "ok", summary=Summary(1, 1.0, 1.0)) for job in checked})
    costs = Costs({"x": 0.1, "y": 0.1})
    for job in checked:
        costs.learn(job, seconds=CellSeconds(0.01, 0.01 * job.size, 0.01 * job.size))
    return Scheduler(Context(Supervisor(), catalog, settings), progress, costs, started=monotonic() - spent)


def fitted(made: Scheduler) -> list[Event]:
    found = list(made._fit())
    for event in found:
        apply(event, made.progress)
    return found


def test_a_cell_beyond_the_budget_keeps_its_verdict_and_gives_the_reason() -> None:
    made = scheduler(spent=40.0)
    events = fitted(made)
    dropped = [event.record for event in events if isinstance(event, Checked)]
    assert dropped
    assert {record.job.size for record in dropped} >= {100}
    assert {record.job.backend for record in dropped} == {"x", "y"}
    assert all(record.status == "ok" for record in dropped)
    assert all(record.reason == "right, but not timed: it does not fit into 100 s" for record in dropped)
    timed = {record.job for records in made._timed() for record in records}
    assert timed == set(JOBS) - {record.job for record in dropped}
    (learned,) = (event for event in events if isinstance(event, Learned))
    settings = from_plain(learned.facts["settings"], Settings)
    assert settings == made.settings
    assert "sizes: a at " in str(settings.left_out)
    assert from_plain(made.progress.head.run.settings, Settings) == settings


def test_less_time_measures_less_but_never_nothing() -> None:
    left = []
    for spent in (0.0, 40.0, 80.0, 99.0, 500.0):
        made = scheduler(spent)
        fitted(made)
        left.append(sum(map(len, made._timed())))
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1] > 0


def test_unchecked_cells_are_named() -> None:
    made = scheduler(spent=50.0, checked=tuple(job for job in JOBS if job.size == 1))
    fitted(made)
    assert "not checked: a at 10, 100" in str(made.settings.left_out)


def test_without_a_budget_nothing_is_left_out() -> None:
    assert fitted(scheduler(spent=1e6, budget=None)) == []
    assert fitted(scheduler(spent=0.0, budget=1e6)) == []
