"""The worker process, which imports, prepares, checks and times a library, answering one request after another.

Requests and answers are messages on a private socket (channel.py). An answer has `value`, or one of `unsupported`,
`failed` and `bad_file` with a reason; the parent process handles workers that die or hang (process.py).
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import re
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy as np
import psutil

from adbench.catalog import discovery
from adbench.catalog.dependencies import dependencies, digest, text_of
from adbench.catalog.source import Source
from adbench.execution.operators import fallback, on_device, prepared_point, relations
from adbench.execution.operators.between_calls import NamedInputs, first_fault
from adbench.execution.operators.other_points import with_other_points
from adbench.execution.operators.perturbed import perturbed
from adbench.execution.operators.rounding_spread import Judge
from adbench.execution.workers.channel import Channel, Closed
from adbench.execution.workers.timed_call import TimedCall
from adbench.measure import clock, phases
from adbench.model import backend as contract
from adbench.model import tree
from adbench.model.errors import Unsupported, UsageError
from adbench.model.operator import batch_points, definition
from adbench.model.record import Summary
from adbench.model.serialization import from_plain, to_plain
from adbench.model.settings import FLOAT64, PROCESSOR
from adbench.oracle.evidence import PRECISIONS, worst_entries
from adbench.oracle.leaves import weights_of
from adbench.oracle.reference import Reference

T = TypeVar("T")

MOST_TRACEBACK = 8192  # characters
WORTH_COLLECTING = 2**26  # growth of a worker's memory since the last collection, in bytes
NOT_OF_TYPE = re.compile(
    r"not implemented for '|Low precision dtypes|[Uu]nsupported (data type|dtype)|must be float32 or"
)
"""How libraries report that they lack an operation in a type, if the exception's type does not show it."""

SLOW_NS = 10_000_000_000  # a slower first call is not repeated only to measure its cost


@dataclass
class WorkerState:
    """The state of a worker: one backend for its life, one prepared call at a time, and operators kept for relations.

    kept   (case, size, seed) and the operators prepared there, each with its interruption
    """

    backend: contract.Backend | None = None
    timed: TimedCall | None = None
    judge: Judge | None = None  # of its results
    kept: tuple[Any, dict[str, relations.Kept]] = (None, {})
    resident: int = 0  # bytes, after the last garbage collection

    def forget_last_cell(self) -> None:
        """Collect the last cells' tapes and arrays if they are large: a collection takes up to 50 ms, longer than most
        cells."""
        if _resident_bytes() > self.resident + WORTH_COLLECTING:
            gc.unfreeze()  # what `prepare` froze
            gc.collect()
            gc.freeze()
            self.resident = _resident_bytes()


def serve(descriptor: int) -> None:
    """Answer on the socket until the other side closes it."""
    end = socket.socket(fileno=descriptor)
    os.set_inheritable(end.fileno(), False)  # processes started by a library must not hold the socket open
    channel, state, ours = Channel(end), WorkerState(), os.getpid()
    try:
        while True:
            request = channel.receive()
            turn = {"turn": request.pop("turn")}
            response = answer(state, request)
            if os.getpid() != ours:  # a child forked by the library returned from the call; ignore its result
                os._exit(0)
            try:
                channel.send(response | turn)
            except (TypeError, ValueError, RecursionError) as error:
                channel.send({"failed": f"its answer cannot be sent: {describe(error)}"} | turn)
    except Closed:
        return


def answer(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a request; an exception becomes a reason."""
    try:
        with weights_of(PRECISIONS[request.get("dtype", FLOAT64)].bits):
            return {"value": REQUESTS[request["do"]](state, request)}
    except on_device.NoDevice as reason:
        return {"skipped": discovery.first_line(reason)}
    except (Unsupported, NotImplementedError) as reason:  # libraries raise NotImplementedError for the same
        return {"unsupported": discovery.first_line(reason)}
    except UsageError as reason:
        return {"bad_file": str(reason)}
    except BaseException as error:  # a library may raise anything, even SystemExit or KeyboardInterrupt
        if request.get("dtype", FLOAT64) != FLOAT64 and NOT_OF_TYPE.search(str(error)):
            return {"unsupported": discovery.first_line(error)}
        return {"failed": describe(error), "traceback": traceback.format_exc(limit=-8)[-MOST_TRACEBACK:]}


def describe(error: BaseException) -> str:
    """An exception in one line: its type, its first line, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {discovery.first_line(error)}{where}".split())


def load(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """Import a backend; its time is the phase `import`. A worker has one backend for its life, so that different copies
    of OpenMP, TBB or LLVM never meet in a process."""
    source = from_plain(request["source"], Source)
    if state.backend is not None:
        raise RuntimeError(f"this worker already has {state.backend.name}; start another one for {source.name}")
    start = perf_counter_ns()
    where = request.get("device", PROCESSOR), request.get("transfers", "outside"), request.get("dtype", FLOAT64)
    state.backend = on_device.loaded(source, *where)
    seconds = (perf_counter_ns() - start) * 1e-9
    gc.collect()
    gc.freeze()  # otherwise the collection before each epoch traverses the whole library: 50 ms instead of 1
    device = state.backend.device
    return {"import_seconds": seconds, "device": device and device.name}


def refer(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """The reference of the case at its inputs (prepared_point.py), from the request's cache.

    `reference_seconds` is the approximate time to compute it. A reference to be shipped takes `effort_seconds` instead.
    """
    # Not at the top: a worker with a library computes no references.
    from adbench.execution.operators import references
    from adbench.oracle.cache import cached, reference_key
    from adbench.oracle.evidence import DOUBLE

    at, seconds = _point(request), float(request["reference_seconds"])
    effort = float(request.get("effort_seconds", seconds))
    text = text_of(Path(request["case"]["path"]))
    if not request["case"]["builtin"]:
        text += digest(dependencies(Path(request["case"]["path"]))) + references.fingerprint(at)
    if request.get("perturbed"):
        at = perturbed(at)

    def remember(at: prepared_point.CasePoint, what: str, compute: Callable[[], Reference]) -> Reference:
        if request["cache"] is None:
            return compute()
        key = partial(reference_key, text, at.args, at.wrt, at.seed, what=what, name=request["case"]["name"])
        key = key if at.arithmetic is DOUBLE else partial(key, precision=at.arithmetic.name)
        own = key() if "effort_seconds" in request else key(seconds=seconds)
        return cached(Path(request["cache"]), own, key(), compute)

    asked = {name: bool(request[name]) for name in ("second_order", "hessian")}
    known = references.known_at(at, **asked, seconds=effort, remember=partial(remember, at))
    count, remembered = int(request.get("points", 0)), partial(partial, remember)
    return references.with_points(known, at, count, seconds=effort, remember=remembered).to_plain()


def build(state: WorkerState, request: Mapping[str, Any]) -> None:
    """Compile for the request's operator if the backend has `build`; later requests find the result."""
    at, backend = _point(request), _needed(state.backend, "load")
    if backend.build is None:
        return
    f, args = backend.function(at.case, at.names, at.size), backend.native_inputs(at.args)
    related = relations.subsets_of(at.wrt) if request["operator"] == "relations" else []
    for wrt in (at.wrt, *related):
        backend.build(f, args, wrt)


def prepare(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare the operator and call it once; the inputs are bound before any clock starts.

    If the request has a reference, the result is judged; with `entries`, the answer has its worst numbers. If it has
    `slow`, further calls are timed and judged, also at the perturbed point if that has a reference. A call that takes
    longer than `slow` seconds is not repeated for that, because it will not be timed.

    A launch sends `rotate`: whether timed calls alternate between the case's inputs and perturbed ones. The library's
    objects are then frozen: the collection before each epoch, which traversed them, took as long as the epoch. They
    stay until memory has grown.
    """
    state.timed = state.judge = None
    is_timed = "rotate" in request
    state.forget_last_cell()
    at, backend, operator = _point(request), _needed(state.backend, "load"), request["operator"]
    if not request.get("few_calls"):  # else what is timed would not be what was checked
        backend.before_timing()
    if is_timed:
        at = at.copied()  # its arrays will be overwritten
    elsewhere, native = at.native(backend, operator)
    f = backend.function(at.case, at.names, at.size)
    interruption = relations.Interruption()
    if request.get("keep"):
        f = interruption.of(f)
    with phases.collecting() as parts:
        first = fallback.OperatorRequest(backend, definition(operator).name, f, elsewhere, at.wrt).first_call(native)
    prepared, first_call_ns = first.prepared, first.call_ns
    state.timed = TimedCall.of(prepared.call, native, backend)
    state.judge = Judge(backend, operator, state.timed.call)
    if request.get("rotate"):
        state.timed.sets.append(perturbed(at).native(backend, operator)[1])
    if request.get("keep") and prepared.how == fallback.NATIVE:
        _kept(state, at)[operator] = prepared.call, interruption
    numbers = backend.numpy_result(first.result)
    summary = summary_of(numbers)
    answer = {
        "prepare_seconds": first.prepare_ns * 1e-9,
        "phases": parts,
        "first_call_seconds": first_call_ns * 1e-9,
        "how": prepared.how,
        "text": backend.text,
        "summary": to_plain(summary),
        "least_bytes": on_device.least_bytes(backend, at.args, summary),
        "claimed": backend.claimed_relative_error,
        "verdict": None,
        "entries": [],
    }
    if request.get("reference") is not None:
        verdict, entries = state.judge.examined(at, numbers, _known(request, at))
        if count := batch_points(operator):
            verdict = with_other_points(verdict, entries, at, backend, f, prepared, count)
        answer["verdict"] = to_plain(verdict)
        answer["entries"] = to_plain(worst_entries(entries) if request.get("entries") else [])
    del first, numbers
    if is_timed:
        gc.freeze()
    answer["call_seconds"], answer["unwaited"] = None, state.timed.unwaited is not None
    if (slow := request.get("slow")) is not None:
        ns = first_call_ns
        if ns * 1e-9 > slow:  # it may have compiled
            ns = min(ns, clock.once(state.timed.bound)[1])
        answer["call_seconds"] = ns * 1e-9
        if ns * 1e-9 <= slow and (answer["verdict"] is None or answer["verdict"]["word"] != "wrong"):
            sites = _sites(at, [request["reference"], request.get("perturbed")])
            answer["between_calls"] = first_fault(state.judge, sites)
            answer["call_seconds"] = _seconds_of(state.timed.bound, ns)
    return answer


def _kept(state: WorkerState, at: prepared_point.CasePoint) -> dict[str, relations.Kept]:
    """The operators kept at this point; those of another point are dropped."""
    key = at.case.name, at.size, at.seed
    if state.kept[0] != key:
        state.kept = key, {}
    return state.kept[1]


def _seconds_of(call: Callable[[], Any], first_call_ns: int) -> float:
    """The approximate time of a call: the fastest of a few. The first call includes one-time work; after a slow one,
    there are fewer repetitions, or none."""
    few = 0 if first_call_ns > SLOW_NS else 1 if first_call_ns > SLOW_NS // 100 else 3
    return min([first_call_ns, *(clock.once(call)[1] for _ in range(few))]) * 1e-9


def summary_of(result: Any) -> Summary:
    """A summary that identifies a numpy result; NaN if it holds anything but numbers."""
    try:
        leaves = [
            np.asarray(leaf.data if hasattr(leaf, "nnz") else leaf, dtype=np.float64) for leaf in tree.leaves(result)
        ]
    except (TypeError, ValueError):
        return Summary(0, math.nan, math.nan)
    with np.errstate(all="ignore"):
        total, magnitude = (sum(float(np.sum(f(leaf))) for leaf in leaves) for f in (np.positive, np.abs))
    return Summary(sum(leaf.size for leaf in leaves), total, magnitude)


def warm_up(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """Warm up; returns the warm-up and the number of calls per epoch."""
    timed, limits = _needed(state.timed, "prepare"), ("warm_ns", "warm_at_most_ns", "epoch_ns")
    warmed, calls = timed.warm_up(*(request[name] for name in limits))
    return {"warm_up": to_plain(warmed), "calls": calls}


def epoch(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """Time one epoch; with `unwaited`, one that waits for its last result only."""
    timed, calls = _needed(state.timed, "prepare"), request["calls"]
    measured: dict[str, Any] = to_plain(timed.unwaited_epoch(calls) if request.get("unwaited") else timed.epoch(calls))
    return measured


def judge(state: WorkerState, request: Mapping[str, Any]) -> str | None:
    """Why a result of a timed round, or one after exchanging the inputs' contents, is wrong; None if all are correct.

    The request brings the references of the case's inputs, and of the perturbed ones if used.
    """
    timed, judge = _needed(state.timed, "prepare"), _needed(state.judge, "prepare")
    sites = _sites(_point(request), request["references"])

    def fault(where: str, which: int, result: Any) -> str | None:
        site, numbers = sites[which], judge.backend.numpy_result(result)
        verdict = judge.judged(site.at, numbers, site.known)
        return f"{where}, at {site.name}: {verdict.sentence}" if verdict.word == "wrong" else None

    faults = [fault("returned while timed", which, result) for which, result in timed.results.items()]
    after = timed.after_exchange()
    faults += [fault("returned after the inputs' contents were exchanged", which, result) for which, result in after]
    return next((one for one in faults if one is not None), None)


def _sites(at: prepared_point.CasePoint, references: Sequence[Any]) -> list[NamedInputs]:
    """The inputs of the references: the case's, then perturbed ones, without None."""
    known = [None if plain is None else prepared_point.PointReferences.from_plain(plain) for plain in references]
    sites = [NamedInputs(at, known[0], "the case's inputs")] if known[0] is not None else []
    if len(known) > 1 and known[1] is not None:
        sites.append(NamedInputs(perturbed(at), known[1], "perturbed inputs"))
    return sites


def overhead(state: WorkerState, request: Mapping[str, Any]) -> float:
    """The time of an empty call in the clock's loop, in nanoseconds."""
    return clock.loop_overhead_ns()


def rates(state: WorkerState, request: Mapping[str, Any]) -> Any:
    """How fast the backend's device, or this processor, copies and computes."""
    return to_plain(on_device.rates(state.backend, request["dtype"]))


def count_operations(state: WorkerState, request: Mapping[str, Any]) -> float | None:
    """How many operations the case's value and gradient take, in those of the value; None if they are not counted."""
    # Not at the top: a worker with a library counts none.
    from adbench.execution.operators import references
    from adbench.oracle.enclosures.counted_sweep import operations_with_gradient
    from adbench.oracle.precise import NotPrecise

    with suppress(NotPrecise):
        return operations_with_gradient(references.subject_of(_point(request)))
    return None


def measure_memory(state: WorkerState, request: Mapping[str, Any]) -> Any:
    """The memory of one call by one method."""
    timed, method, times = _needed(state.timed, "prepare"), request["method"], request["times"]
    if method == "device":
        return to_plain(on_device.peak(_needed(state.backend, "load"), timed.bound, times))
    return to_plain(timed.memory(method, times))


def count_instructions(state: WorkerState, request: Mapping[str, Any]) -> Any:
    """The instructions of one call, in a process under Callgrind."""
    return to_plain(_needed(state.timed, "prepare").instructions(request["times"]))


def relate(state: WorkerState, request: Mapping[str, Any]) -> dict[str, Any]:
    """The relations between calls of the backend's operators (relations/)."""
    at, backend = _point(request), _needed(state.backend, "load")
    setting = relations.Setting(backend, at.case, at.size, at.seed, _known(request, at), dict(_kept(state, at)))
    state.kept = None, {}
    tested: dict[str, Any] = to_plain(relations.related(setting))
    return tested


def call(state: WorkerState, request: Mapping[str, Any]) -> Any:
    """The answer of ``function(backend, request)``: "package.module:name", in a part that this one must not import."""
    module, _, name = request["function"].partition(":")
    return getattr(importlib.import_module(module), name)(state.backend, request)


REQUESTS: Mapping[str, Callable[[WorkerState, Mapping[str, Any]], Any]] = {
    "load": load,
    "reference": refer,
    "build": build,
    "prepare": prepare,
    "relations": relate,
    "warm_up": warm_up,
    "epoch": epoch,
    "judge": judge,
    "overhead": overhead,
    "rates": rates,
    "operations": count_operations,
    "memory": measure_memory,
    "instructions": count_instructions,
    "call": call,
}


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _point(request: Mapping[str, Any]) -> prepared_point.CasePoint:
    source = from_plain(request["case"], Source)
    case = discovery.load_cases(source)[source.name]
    asked = {"single": request.get("single", False), "dtype": request.get("dtype", FLOAT64)}
    return prepared_point.point(case, request["size"], request["seed"], **asked)


def _needed(value: T | None, request: str) -> T:
    """What an earlier request has made."""
    if value is None:
        raise RuntimeError(f"it is not there; send the request `{request}` first")
    return value


def _known(request: Mapping[str, Any], at: prepared_point.CasePoint) -> prepared_point.PointReferences:
    known = prepared_point.PointReferences.from_plain(request["reference"])
    if not request["case"]["builtin"]:
        prepared_point.refuse_another_function(at, known)
    return known
