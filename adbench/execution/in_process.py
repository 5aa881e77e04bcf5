"""One cell in this process: checked for scripts and tests, or prepared for tools that bring their own clock.

A run measures in processes of its own (scheduler.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adbench.catalog.discovery import Catalog, load, select
from adbench.catalog.double_precision import in_double
from adbench.catalog.selection import Selection, resolve
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import judged, known_at, needs_second_order, operator_named, point
from adbench.execution.operators.relations import Setting, related, sentences
from adbench.execution.phases.memory_phase import measure_memory
from adbench.execution.planning.request import RELATIONS
from adbench.execution.workers.context import Context
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.measure import clock
from adbench.model import tree
from adbench.model.backend import Backend, from_module
from adbench.model.case import Case
from adbench.model.errors import UnknownName, Unsupported, UsageError
from adbench.model.events import MemoryMeasured
from adbench.model.namespace import Namespace
from adbench.model.record import Job, Memory
from adbench.model.settings import Settings
from adbench.oracle import Verdict

REFERENCE_SECONDS = 3.0  # about how long a reference may take


class WrongGradient(AssertionError):
    """A derivative is wrong; the text is the verdict's sentence."""


def check_cell(case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0) -> str:
    """Check one cell of a run again, in this process: its verdict in a sentence.

    case      a built-in case's name, or a user's file with the case's name behind a colon
    backend   a built-in backend's name, or a user's file

    Raises UsageError for what does not exist, and whatever the library raises.
    """
    chosen, which, where = find_cell(case, backend)
    used, made = from_module(where, load(chosen.catalog.backends[where])), chosen.catalog.cases[which]
    if operator == RELATIONS:
        at = point(made, size, seed, single=used.single)
        known = known_at(at, second_order=True, seconds=REFERENCE_SECONDS)
        return "; ".join(sentences(related(Setting(used, made, size, seed, known)))) or "every relation holds"
    return _bound(made, size, used, operator, seed).verdict().sentence


def check(
    f: Callable[..., Any], *args: Any, backend: str = "tape", operator: str = "gradient", wrt: tuple[int, ...] = (0,)
) -> Verdict:
    """Check the derivative that a backend takes of a function of the user's own, at the given arguments.

    f         f(*args) -> a number, written for the backend's library; or f(xp, *args), on any
    args      floats, float64 arrays, or nested dicts, lists and tuples of them
    backend   a name, or the path of a backend's file
    wrt       the positions of the arguments to differentiate in

    Where `f` takes `xp`, the truth is proved; else it comes from differences of `f`, which tell less.
    """
    case, size = case_of(f, args, wrt), 1
    chosen = resolve(backends=[backend])
    if not chosen.backends or chosen.backends[0] not in chosen.catalog.backends:
        raise UnknownName("backend", backend, chosen.catalog.backends)
    used = from_module(chosen.backends[0], load(chosen.catalog.backends[chosen.backends[0]]))
    return _bound(case, size, used, operator, 0).verdict()


def assert_gradients(f: Callable[..., Any], *args: Any, backend: str = "tape", wrt: tuple[int, ...] = (0,)) -> None:
    """For tests: raises WrongGradient, with the entry and its digits, where `check` finds a derivative wrong."""
    verdict = check(f, *args, backend=backend, wrt=wrt)
    if verdict.word == "wrong":
        name = getattr(f, "__name__", "f")
        raise WrongGradient(f"{backend}'s gradient of {name}: {verdict.sentence}")


def case_of(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Case:
    """A case of one size from a function and its arguments. Raises UsageError for positions that there are not."""
    from inspect import signature

    if not args or not all(0 <= i < len(args) for i in wrt):
        raise UsageError(f"wrt is {wrt}, but there are {len(args)} arguments")
    arguments = tuple(np.asarray(a, dtype=np.float64) if isinstance(a, list) else a for a in args)
    try:
        takes_xp = next(iter(signature(f).parameters), "") == "xp"
    except (TypeError, ValueError):  # written in C: it tells nothing about its arguments
        takes_xp = False

    plain = in_double(f)

    def text(xp: Any, **inputs: Any) -> Any:
        if takes_xp:
            return f(xp, *inputs.values())
        return plain(*inputs.values()) if all(map(_is_plain, inputs.values())) else f(*inputs.values())

    named = {f"x{i}": float(a) if isinstance(a, int) and i in wrt else a for i, a in enumerate(arguments)}
    made = Case(f=text, inputs=lambda n, rng: named, wrt=tuple(f"x{i}" for i in wrt), sizes=(1,))
    return replace(made, operators=("value", "jacobian")) if _is_array(text, named) else made


def _is_plain(value: Any) -> bool:
    """Whether an input is of Python or numpy, not of a library that differentiates."""

    def plain(leaf: Any) -> bool:
        if isinstance(leaf, (np.ndarray, np.generic)):
            return leaf.dtype.kind in "biuf"
        return isinstance(leaf, float) or tree.is_static(leaf)

    return all(map(plain, tree.leaves(value)))


def _is_array(text: Callable[..., Any], inputs: dict[str, Any]) -> bool:
    """Whether the value is an array, by the text on plain numpy; not, where it does not run there."""
    try:
        with np.errstate(all="ignore"):
            return bool(np.shape(text(Namespace(np), **inputs)))
    except Exception:  # written for its backend's library only
        return False


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
            raise UsageError(f"one {kind} is wanted, but these are {len(names)}: {', '.join(names)}")
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
