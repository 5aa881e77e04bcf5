"""`adbench.run`: check and measure from Python, in worker processes, as `adbench run` does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from adbench.execution.planning.request import Request
from adbench.execution.sent_cases import Send, sent_case
from adbench.execution.session import Session, prepare
from adbench.model.case import Case
from adbench.model.errors import UnknownName, UsageError
from adbench.model.events import Event
from adbench.model.settings import MOST_COUNT, MOST_SECONDS, MOST_SEED, MOST_THREADS
from adbench.runs import Run

Wanted = str | Path | Case | tuple[Any, ...]
"""A case: its name, a glob, a path, a Case, or a function at its arguments: (f, *arguments)."""

Follow = Callable[[Event], object]

WHOLE: Mapping[str, tuple[int, int]] = {
    "launches": (1, MOST_COUNT),
    "points": (1, MOST_COUNT),
    "threads": (1, MOST_THREADS),
    "seed": (0, MOST_SEED),
    "mem_limit": (1, 2**63 - 1),
}
"""Settings that are whole numbers, the least and the most that they may be."""

POSITIVE: Mapping[str, float] = {"budget": MOST_SECONDS, "timeout": MOST_SECONDS, "margin": 1}
"""Settings that are numbers above 0, and the most that they may be."""


def run(
    cases: Wanted | Iterable[Wanted] | None = None,
    backends: str | Iterable[str] | None = None,
    *,
    quick: bool = True,
    sizes: int | str | Iterable[int | str] | None = None,
    operators: str | Iterable[str] | None = None,
    time: bool = True,
    memory: bool = True,
    progress: bool | Follow | None = None,
    output: str | Path | None = None,
    seed: int = 0,
    send: Send = "import",
    **settings: Any,
) -> Run:
    """Check derivatives, then measure time and memory, in worker processes; returns the run.

        run = adbench.run(["hypot", "normal_*"], ["tape", "jax"])
        run = adbench.run((f, 1.0, x), ["jax", "torch"])          your function at these arguments

    cases       names, globs, paths of files, Case objects, or functions with their arguments: (f, *arguments);
                none: the cases of a first look
    backends    names, globs or paths of files; none: one of each installed library
    quick       fewer sizes, launches and epochs: a first look, too few for decisions; off with rigorous=True
    sizes       numbers, or globs over a case's own sizes
    operators   such as "gradient" or "hvp"; none: each case's own
    time        False only checks, which is faster; memory is not measured then
    progress    None shows a bar in a terminal and a line in a notebook, False nothing. A function is called with each
                event, as soon as it happens
    output      a folder for run.json, report.html and the journal; none: nothing is written
    send        how a Case or a function gets to the workers: "import" from its module, "pickle" by cloudpickle
    settings    suites, launches, rigorous, budget and timeout in seconds, mem_limit in bytes, threads (a number, or
                several), device (one, or several), transfers, points, margin, reference, case_folders,
                backend_folders: as for the command line

    A derivative that is wrong is a record in the run, not an exception. If nothing was checked with a selected backend,
    or of a selected case, a warning gives the reason. With `output`, an interrupted run keeps its results. Raises
    UsageError (UnknownName, BadFile, BadOutput) for a request that is impossible.
    """
    asked = _checked({**settings, "seed": seed})
    session = prepare(
        cases=[_file(case, send, _texts(backends)) for case in _listed(cases)],
        backends=_texts(backends),
        sizes=_texts(sizes),
        operators=_texts(operators),
        quick=quick and not asked.get("rigorous"),
        time=time,
        memory=memory and time,
        **asked,
    )
    for notice in session.remarks:
        warnings.warn(f"adbench: {notice.text}", stacklevel=2)
    folder = None if output is None else Path(output)
    with _following(progress, session) as follow, closing(session.events(folder)) as events:
        try:
            for event in events:
                follow(event)
        except KeyboardInterrupt as interrupted:
            if folder is not None:
                interrupted.add_note(f"adbench.load({str(folder)!r}) has the results so far, and")
                interrupted.add_note(f"adbench run --resume {folder} measures the rest")
            raise
    found = Run.of(session.result())
    for text in found.unjudged:
        warnings.warn(f"adbench: {text}", stacklevel=2)
    if folder is not None:
        found.save(folder)
    return found


def _listed(cases: Any) -> list[Wanted]:
    """One case is a list of one; a tuple that begins with a function is one case."""
    if cases is None:
        return []
    if isinstance(cases, str | Path | Case) or (isinstance(cases, tuple) and cases and callable(cases[0])):
        return [cases]
    if callable(cases):
        name = getattr(cases, "__name__", "f")
        raise UsageError(f"{name} is a function without arguments; give a point too: cases=({name}, 1.0)")
    return [case for each in cases for case in _listed(each)]


def _file(case: Wanted, send: Send, backends: tuple[str, ...]) -> str:
    """The name or the path that selects the case."""
    if isinstance(case, Case | tuple):
        return str(sent_case(case, send, backends))
    return str(case.resolve()) if isinstance(case, Path) else case


def _texts(given: object) -> tuple[str, ...]:
    """One value, or several, as texts."""
    if given is None:
        return ()
    if isinstance(given, str | int | Path):
        return (str(given),)
    return tuple(map(str, given)) if isinstance(given, Iterable) else (str(given),)


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings. Raises UsageError for an unknown name or a value that cannot be."""
    known = [each.name for each in fields(Request)]
    for name, value in settings.items():
        if name not in known:
            raise UnknownName("setting", name, known)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in WHOLE and value is not None:
            several = value if name == "threads" and isinstance(value, tuple | list) and value else (value,)
            least, most = WHOLE[name]
            if not all(type(each) is int and least <= each <= most for each in several):
                bound = f"up to {most}" if is_number and value > most else f"from {least}"
                raise UsageError(f"{name} must be a whole number {bound}; got {value!r}")
        if name in POSITIVE and value is not None and not (is_number and 0 < value <= POSITIVE[name]):
            unit = "a number above 0, such as 0.02" if name == "margin" else "a number of seconds above 0"
            unit += f", at most {POSITIVE[name]:,}"
            raise UsageError(f"{name} must be {unit}; got {value!r}")
    lists = ("suites", "case_folders", "backend_folders")
    found = {name: _texts(value) if name in lists else value for name, value in settings.items()}
    return found | ({"device": ",".join(_texts(found["device"]))} if "device" in found else {})


@contextmanager
def _following(progress: bool | Follow | None, session: Session) -> Iterator[Follow]:
    """What is called with each event."""
    if callable(progress):
        yield progress
    elif progress is False:
        yield lambda event: None
    else:
        from adbench.reports.text import progress as bars

        with bars.shown(session.settings.left_out) as bar:
            for text in session.plan.sentences:
                bar.say(text)
            yield lambda event: bar.show(event, session.forecast.remaining)
