"""One cell of the plan in this process: prepared, checked, and ready to be called. For pytest-benchmark and for people.

A run measures in processes of its own (runner.py); this is for tools that bring their own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adbench.catalog.discovery import Catalog, load, select
from adbench.catalog.selection import Selection, resolve
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import judged, known_at, needs_second_order, operator_named, point
from adbench.execution.phases.memory_phase import measure_memory
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.measure import clock
from adbench.model.backend import from_module
from adbench.model.errors import Unsupported, UsageError
from adbench.model.events import MemoryMeasured
from adbench.model.record import Job, Memory
from adbench.model.settings import Settings
from adbench.oracle import Verdict

REFERENCE_SECONDS = 3.0  # about how long a reference may take


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


def found(case: str, backend: str) -> tuple[Selection, str, str]:
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
            raise UsageError(f"one {kind} is wanted, but these are {len(names)}: {', '.join(names)}")
    return chosen, cases[0], backends[0]


def ready(case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0) -> ReadyCell:
    """Prepare one cell in this process, call it once and judge the result against the reference.

    Raises UsageError for what does not exist, Unsupported with the reason where the backend cannot or its library is
    missing, and whatever the library raises.
    """
    chosen, which, where = found(case, backend)
    asked, made, source = operator_named(operator), chosen.catalog.cases[which], chosen.catalog.backends[where]
    if not made.accepts(size):
        raise UsageError(f"{which} has no size {size}; it has: {', '.join(map(str, made.sizes))}")
    if source.missing:
        raise Unsupported(f"{' '.join(source.missing)} is not installed; pip install {' '.join(source.missing)}")
    used, at = from_module(where, load(source)), point(made, size, seed)
    known = known_at(at, second_order=needs_second_order(operator), seconds=REFERENCE_SECONDS)
    elsewhere, native = at.native(used, operator)
    f = used.function(made, at.names, size)
    prepared, prepare_ns = clock.once(lambda: fallback.prepare(used, asked, f, elsewhere, at.wrt))
    call = clock.bind(prepared.call, native, used.sync)
    result, first_call_ns = clock.once(call)
    return ReadyCell(
        job=Job(which, size, where, operator, seed),
        catalog=chosen.catalog,
        call=call,
        verdict=judged(at, operator, used.numpy_result(result), known, used.claimed_relative_error),
        how=prepared.how,
        known=used.known.get(which),
        version=source.version,
        flops=None if made.flops is None else float(made.flops(size)),
        prepare_seconds=prepare_ns * 1e-9,
        first_call_seconds=first_call_ns * 1e-9,
    )


def memory(cell: ReadyCell) -> Memory:
    """What one call takes, each method in a process of its own: this one has a clock to look after."""
    with Supervisor(default_limit()) as supervisor:
        events = measure_memory(supervisor, cell.catalog, Settings(seed=cell.job.seed), [cell.job])
        return next(event.memory for event in events if isinstance(event, MemoryMeasured))
