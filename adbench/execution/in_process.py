"""One cell of a run in this process: checked for scripts and tests, or prepared for tools that bring their own clock.

A run measures in processes of its own (scheduler.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adbench.catalog.discovery import Catalog, load, select
from adbench.catalog.selection import Selection, resolve
from adbench.execution.check_function import REFERENCE_SECONDS
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import judged, known_at, needs_second_order, operator_named, point
from adbench.execution.operators.relations import Setting, related, sentences
from adbench.execution.phases.memory_phase import measure_memory
from adbench.execution.planning.request import RELATIONS
from adbench.execution.workers.context import Context
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.functions.libraries import compute_in_double
from adbench.measure import clock
from adbench.model.backend import Backend, from_module
from adbench.model.case import Case
from adbench.model.errors import Unsupported, UsageError
from adbench.model.events import MemoryMeasured
from adbench.model.record import Job, Memory
from adbench.model.settings import Settings
from adbench.oracle import Verdict


def check_cell(case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0) -> str:
    """Check one cell of a run again, in this process: its verdict in a sentence.

    case      a built-in case's name, or a user's file with the case's name behind a colon
    backend   a built-in backend's name, or a user's file

    Raises UsageError for what does not exist, and whatever the library raises.
    """
    chosen, which, where = find_cell(case, backend)
    used, made = from_module(where, load(chosen.catalog.backends[where])), chosen.catalog.cases[which]
    compute_in_double()
    if operator == RELATIONS:
        at = point(made, size, seed, single=used.single)
        known = known_at(at, second_order=True, seconds=REFERENCE_SECONDS)
        return "; ".join(sentences(related(Setting(used, made, size, seed, known)))) or "every relation holds"
    return _bound(made, size, used, operator, seed).verdict().sentence


@dataclass(frozen=True)
class ReadyCell:
    """A job whose operator is prepared and judged.

    catalog           where its case and its backend are found, for another process
    call              call() -> the native result, waited for; the inputs are bound
    how               "native", or "from …" where the harness made the operator from others
    known             why the backend is known to be wrong here, as its file says; None where it is not
    version           of the library behind the backend, None where it has none
    flops             elementary operations of one evaluation of the case, None where it does not know
    prepare_seconds   what preparing took, and first_call_seconds what the first call took
    """

    job: Job
    catalog: Catalog
    call: Callable[[], Any]
    verdict: Verdict
    how: str
    known: str | None
    version: str | None
    flops: float | None
    prepare_seconds: float
    first_call_seconds: float


def find_cell(case: str, backend: str) -> tuple[Selection, str, str]:
    """The catalog, and the names of the one case and the one backend that the texts stand for.

    case      a built-in case's name, or a user's file, with the case's name behind a colon where it has several
    backend   a backend's name, or a user's file

    Raises UsageError (also as UnknownName, BadFile) for what does not exist or is more than one.
    """
    file, colon, name = case.rpartition(":") if ".py:" in case else (case, "", "")
    chosen = resolve(cases=[file], backends=[backend])
    cases = select("case", chosen.catalog.cases, [name] if colon else chosen.cases)
    backends = select("backend", chosen.catalog.backends, chosen.backends)
    for kind, names in (("case", cases), ("backend", backends)):
        if len(names) != 1:
            raise UsageError(f"expected one {kind}, got {len(names)}: {', '.join(names)}; name one of them")
    return chosen, cases[0], backends[0]


def ready(case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0) -> ReadyCell:
    """Prepare one cell in this process, call it once and judge the result against the reference.

    Raises UsageError for what does not exist, Unsupported with the reason where the backend cannot or its library is
    missing, and whatever the library raises.
    """
    chosen, which, where = find_cell(case, backend)
    made, source = chosen.catalog.cases[which], chosen.catalog.backends[where]
    if not made.accepts(size):
        raise UsageError(f"{which} has no size {size}; it has: {', '.join(map(str, made.sizes))}")
    if source.missing:
        raise Unsupported(f"{' '.join(source.missing)} is not installed; pip install {' '.join(source.missing)}")
    used = from_module(where, load(source))
    compute_in_double()
    bound = _bound(made, size, used, operator, seed)
    prepared, prepare_ns = clock.once(bound.prepare)
    call = clock.bind(prepared.call, bound.native, used.sync)
    result, first_call_ns = clock.once(call)
    fault = used.known_fault(which, operator)
    return ReadyCell(
        job=Job(which, size, where, operator, seed),
        catalog=chosen.catalog,
        call=call,
        verdict=bound.judge(result),
        how=prepared.how,
        known=None if fault is None else made.known_fault(fault.reason),
        version=source.version,
        flops=None if made.flops is None else float(made.flops(size)),
        prepare_seconds=prepare_ns * 1e-9,
        first_call_seconds=first_call_ns * 1e-9,
    )


def memory(cell: ReadyCell) -> Memory:
    """What one call takes, each method in a process of its own: this one has a clock to look after."""
    with Supervisor(default_limit()) as supervisor:
        context = Context(supervisor, cell.catalog, Settings(seed=cell.job.seed))
        events = measure_memory(context, [cell.job])
        return next(event.memory for event in events if isinstance(event, MemoryMeasured))


@dataclass(frozen=True)
class _Bound:
    """An operator of a case at a point: prepared when asked, called with `native`, judged by what is known there."""

    prepare: Callable[[], fallback.Prepared]
    native: tuple[Any, ...]
    judge: Callable[[Any], Verdict]

    def verdict(self) -> Verdict:
        """Of one call."""
        return self.judge(self.prepare().call(*self.native))


def _bound(case: Case, size: int, backend: Backend, operator: str, seed: int) -> _Bound:
    asked, at = operator_named(operator), point(case, size, seed, single=backend.single)
    known = known_at(
        at, second_order=needs_second_order(operator), hessian=operator == "hessian", seconds=REFERENCE_SECONDS
    )
    elsewhere, native = at.native(backend, operator)
    f = backend.function(case, at.names, size)

    def judge(result: Any) -> Verdict:
        return judged(at, operator, backend.numpy_result(result), known, backend.claimed_relative_error)

    return _Bound(lambda: fallback.prepare(backend, asked, f, elsewhere, at.wrt), native, judge)
