"""A plan before it runs: which cells, about how long, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ..content import formatting
from .drawing import printed

if TYPE_CHECKING:
    from adbench.execution.session import Session


def duration(seconds: float) -> str:
    """About how long: `40 s`, `1 min 50 s`, `2 h 10 min`."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = seconds / 60
    if minutes < 10:
        tens = round(seconds / 10) * 10
        return f"{tens // 60} min {tens % 60} s" if tens % 60 else f"{tens // 60} min"
    if minutes < 99.5:
        return f"{round(minutes)} min"
    fives = round(minutes / 5) * 5
    return f"{fives // 60} h {fives % 60} min" if fives % 60 else f"{fives // 60} h"


def sentence(session: Session) -> str:
    """What will run, in a line."""
    jobs, settings = session.plan.jobs, session.settings
    what = [formatting.plural(len(jobs), "cell"), formatting.plural(len({job.backend for job in jobs}), "backend")]
    if settings.time:
        launches = formatting.plural(settings.launches, "launch", "launches")
        what.append(f"up to {launches}" if settings.stop_early else launches)
    takes, most = session.forecast.total, settings.budget_seconds
    limit = f", of which it measures what fits into {duration(most)}" if most is not None and takes > most else ""
    return f"{', '.join(what)}: about {duration(takes)}{limit}"


def plain(session: Session) -> dict[str, Any]:
    """The plan as plain data; durations in seconds."""
    estimate, jobs = session.estimate(), session.plan.jobs
    every = estimate.of(jobs, _traps(session))
    return {
        "cells": [
            {"case": job.case, "size": job.size, "backend": job.backend, "operator": job.operator, "seed": job.seed}
            for job in jobs
        ],
        "seconds": {"check": every.check, "time": every.time, "memory": every.memory, "total": every.total},
        "seconds_by_backend": {k: s.total for k, s in estimate.by(jobs, _traps(session), "backend").items()},
        "seconds_by_case": {k: s.total for k, s in estimate.by(jobs, _traps(session), "case").items()},
        "left_out": list(session.plan.left_out),
        "budget": session.settings.budget_seconds,
    }


def table(session: Session, *, width: int) -> str:
    """The plan as text: a line for each case and each backend, then the sum by phase."""
    every = session.estimate().of(session.plan.jobs, _traps(session))
    phases = [f"check {duration(every.check)}"]
    phases += [f"time {duration(every.time)}"] if session.settings.time else []
    phases += [f"memory {duration(every.memory)}"] if session.settings.memory else []
    total = f"{sentence(session)} ({', '.join(phases)}; imports and processes included)"
    return printed([_by(session, "case"), "", _by(session, "backend"), "", total], width=width)


def _by(session: Session, field: str) -> Table:
    """A line for each case, with its sizes and operators, or for each backend."""
    rows = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    for name in (field, "sizes", "operators"):
        rows.add_column(name, overflow="fold")
    rows.add_column("about", justify="right", overflow="fold")
    jobs = session.plan.jobs
    for name, seconds in session.estimate().by(jobs, _traps(session), field).items():
        own = [job for job in jobs if field == "case" and job.case == name]
        sizes = ", ".join(map(formatting.count, sorted({job.size for job in own})))
        operators = ", ".join(dict.fromkeys(job.operator for job in own))
        texts = (formatting.short(name, 40), sizes, operators, duration(seconds.total))
        rows.add_row(*(Text(formatting.visible(text)) for text in texts))
    return rows


def _traps(session: Session) -> frozenset[str]:
    names = dict.fromkeys(job.case for job in session.plan.jobs)
    return frozenset(name for name in names if session.catalog.cases[name].is_trap)
