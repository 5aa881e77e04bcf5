"""One cell of a run in this process: checked for scripts and tests, or prepared for tools with their own clock.

Runs measure in separate processes (scheduler.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from adbench.catalog.discovery import Catalog, first_line, load, select
from adbench.catalog.selection import Selection, resolve
from adbench.execution.known_faults import of_backend
from adbench.execution.operators import fallback
from adbench.execution.operators.other_points import with_other_points
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.references import known_at, with_points
from adbench.execution.operators.relations import Setting, related, sentences
from adbench.execution.operators.rounding_spread import Judge
from adbench.execution.phases.memory_phase import measure_memory
from adbench.execution.python_check import REFERENCE_SECONDS
from adbench.execution.workers.context import Context
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.functions.libraries import compute_in_double
from adbench.measure import clock
from adbench.model.backend import Backend, from_module, known_bug
from adbench.model.case import Case
from adbench.model.errors import Unsupported, UsageError, contained
from adbench.model.events import MemoryMeasured
from adbench.model.operator import RELATIONS, batch_points, definition, needs
from adbench.model.record import Job, Memory
from adbench.model.settings import Settings
from adbench.oracle.verdict import Verdict


def check_cell(case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0) -> str:
    """Check one cell of a run again in this process, and return its verdict as a sentence.

    case      a built-in case's name, or a user's file, a colon and the case's name
    backend   a built-in backend's name, or a user's file, with a colon and the name if it is a variant

    Raises UsageError for unknown names, and any exception of the library.
    """
    chosen, which, where = find_cell(case, backend)
    with contained():
        used, chosen_case = from_module(where, load(chosen.catalog.backends[where])), chosen.catalog.cases[which]
        compute_in_double()
        if operator == RELATIONS:
            at = point(chosen_case, size, seed, single=used.single)
            known = known_at(at, second_order=True, seconds=REFERENCE_SECONDS)
            return (
                "; ".join(sentences(related(Setting(used, chosen_case, size, seed, known)))) or "every relation holds"
            )
        _, first_call, judge = _bound(chosen_case, size, used, operator, seed)
        return judge(first_call()).sentence


@dataclass(frozen=True)
class ReadyCell:
    """A job with a prepared and judged operator.

    catalog           the catalog with its case and backend, for another process
    call              call() -> the native result, waited for; the inputs are bound
    how               "native", or "from …" if the harness computed the operator from others
    known             why the backend is known to be wrong here, or None
    version           of the backend's library, or None
    flops             elementary operations of one evaluation of the case, if known
    prepare_seconds   time to prepare; first_call_seconds: time of the first call
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
    """The catalog, and the names of one case and one backend.

    case      a built-in case's name, or a user's file, with a colon and the case's name if it has several
    backend   a backend's name, or a user's file

    Raises UsageError (also as UnknownName, BadFile) unless there is exactly one of each.
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

    Raises UsageError for unknown names, Unsupported with the reason if the library is missing, lacks the operator or is
    known to raise here, and any other exception of the library.
    """
    chosen, which, where = find_cell(case, backend)
    chosen_case, source = chosen.catalog.cases[which], chosen.catalog.backends[where]
    if not chosen_case.accepts(size):
        raise UsageError(f"{which} has no size {size}; use one of {', '.join(map(str, chosen_case.sizes))}")
    if source.not_installed:
        raise Unsupported(source.not_installed)
    with contained():
        used = from_module(where, load(source))
        used.before_timing()
        compute_in_double()
        native, first_call, judge = _bound(chosen_case, size, used, operator, seed)
    bug = known_bug(of_backend(source, chosen.catalog.cases).bugs, which, operator)
    known = None if bug is None else bug.text
    try:
        with contained():
            first = first_call()
    except Exception as error:
        if known is None or isinstance(error, Unsupported):
            raise
        raise Unsupported(f"known bug: {known}; here: {type(error).__name__}: {first_line(error)}") from error
    return ReadyCell(
        job=Job(which, size, where, operator, seed),
        catalog=chosen.catalog,
        call=clock.bind(first.prepared.call, native, used.sync),
        verdict=judge(first),
        how=first.prepared.how,
        known=known,
        version=source.version,
        flops=None if chosen_case.flops is None else float(chosen_case.flops(size)),
        prepare_seconds=first.prepare_ns * 1e-9,
        first_call_seconds=first.call_ns * 1e-9,
    )


def memory(cell: ReadyCell) -> Memory:
    """The memory of one call, each method in a separate process, to keep it away from this process's clock."""
    with Supervisor(default_limit()) as supervisor:
        context = Context(supervisor, cell.catalog, Settings(seed=cell.job.seed))
        events = measure_memory(context, [cell.job])
        return next(event.memory for event in events if isinstance(event, MemoryMeasured) and event.memory)


def _bound(
    case: Case, size: int, backend: Backend, operator: str, seed: int
) -> tuple[tuple[Any, ...], Callable[[], fallback.FirstCall], Callable[[fallback.FirstCall], Verdict]]:
    """The native arguments of an operator of a case; a function that prepares and calls it there; and its judge."""
    asked, at = definition(operator).name, point(case, size, seed, single=backend.single)
    count, seconds, needed = batch_points(operator), REFERENCE_SECONDS, needs(operator)
    known = known_at(at, second_order=bool(needed["second_order"]), hessian=bool(needed["hessian"]), seconds=seconds)
    known = with_points(known, at, count, seconds=seconds)
    elsewhere, native = at.native(backend, operator)
    f = backend.function(case, at.names, size)

    def judge(first: fallback.FirstCall) -> Verdict:
        prepared, numbers = first.prepared, backend.numpy_result(first.result)
        verdict, entries = Judge(backend, operator, prepared.call).examined(at, numbers, known)
        return with_other_points(verdict, entries, at, backend, f, prepared, count) if count else verdict

    request = fallback.OperatorRequest(backend, asked, f, elsewhere, at.wrt)
    return native, partial(request.first_call, native), judge
