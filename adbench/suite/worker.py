"""The process in which a library is imported, prepared, checked and timed: answers one request after another.

Requests and answers are messages on a private socket (channel.py). An answer holds `value`, or one of `unsupported`,
`failed` and `bad_file` with a reason; a worker that dies or hangs is the runner's business (process.py).
"""

from __future__ import annotations

import faulthandler
import gc
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from adbench.measure import clock, memory
from adbench.oracle import Reference, cached, reference_key
from adbench.suite import backend as contract
from adbench.suite import catalog, checking, fallback, relations
from adbench.suite.channel import Channel, Closed
from adbench.suite.errors import Unsupported, UsageError
from adbench.suite.plain import from_plain, to_plain


@dataclass
class Bench:
    """What is on the bench: a backend for the worker's life, one prepared call at a time."""

    backend: contract.Backend | None = None
    call: Callable[[], Any] | None = None


def main() -> None:
    """Serve the socket whose descriptor is the first argument until the other side closes it."""
    faulthandler.enable()
    end = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(end.fileno(), False)  # what a library starts must not hold our line open
    channel, bench = Channel(end), Bench()
    try:
        while True:
            channel.send(answer(bench, channel.receive()))
    except Closed:
        return


def answer(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Do what is asked; whatever is raised becomes a reason."""
    try:
        return {"value": REQUESTS[request["do"]](bench, request)}
    except (Unsupported, NotImplementedError) as reason:  # the latter is how libraries say the same
        return {"unsupported": catalog.first_line(reason)}
    except UsageError as reason:
        return {"bad_file": str(reason)}
    except (Exception, SystemExit) as error:  # a library may raise anything, even an attempt to leave
        return {"failed": describe(error), "traceback": traceback.format_exc(limit=-8)}


def describe(error: BaseException) -> str:
    """An exception in one line: its type, its first line, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {catalog.first_line(error)[:500]}{where}"


def load(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Import a backend; its time is the phase `import`."""
    source = from_plain(request["source"], catalog.Source)
    start = perf_counter_ns()
    bench.backend = contract.from_module(source.name, catalog.load(source))
    seconds = (perf_counter_ns() - start) * 1e-9
    gc.collect()
    gc.freeze()  # a collection before each epoch would else walk the whole library: 50 ms instead of 1
    return {"import_seconds": seconds, "known": dict(bench.backend.known)}


def refer(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """What is known about the case's value and derivatives at its inputs (checking.py), kept in the request's cache."""
    at, seconds = _point(request), float(request["reference_seconds"])

    def remember(what: str, compute: Callable[[], Reference]) -> Reference:
        if request["cache"] is None:
            return compute()
        text = Path(request["case"]["path"]).read_text(encoding="utf-8")
        named = {"what": what, "name": request["case"]["name"], "seconds": seconds}
        return cached(Path(request["cache"]), reference_key(text, at.args, at.wrt, at.seed, **named), compute)

    known = checking.known_at(at, second_order=request["second_order"], seconds=seconds, remember=remember)
    return {"first": known.first.to_plain(), "seconds": [second.to_plain() for second in known.seconds]}


def prepare(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare the operator, call it once, and judge what came out. The inputs are bound before any clock starts."""
    bench.call = None
    gc.collect()  # the last cell's tapes and arrays are not this one's
    at, backend, operator = _point(request), _loaded(bench), request["operator"]
    elsewhere, native = at.native(backend, operator)
    f = backend.function(at.case, at.names)
    made, prepare_ns, result, first_call_ns = _first_call(backend, operator, f, elsewhere, native, at.wrt)
    bench.call = _bound(made.call, native, backend.sync)
    known, claimed = _known(request), backend.claimed_relative_error
    return {
        "prepare_seconds": prepare_ns * 1e-9,
        "first_call_seconds": first_call_ns * 1e-9,
        "verdict": to_plain(checking.judged(at, operator, backend.numpy_result(result), known, claimed)),
        "how": made.how,
        "text": backend.text,
    }


def _first_call(
    backend: contract.Backend,
    operator: contract.Operator,
    f: Callable[..., Any],
    elsewhere: tuple[Any, ...],
    native: tuple[Any, ...],
    wrt: tuple[int, ...],
) -> tuple[fallback.Prepared, int, Any, int]:
    """Prepare and call once, both timed. A library that finds out only in the call that it cannot gets its fallback."""
    made, prepare_ns = clock.once(lambda: fallback.prepare(backend, operator, f, elsewhere, wrt))
    try:
        result, first_call_ns = clock.once(_bound(made.call, native, backend.sync))
    except (Unsupported, NotImplementedError) as refusal:
        if made.how != fallback.NATIVE:
            raise
        made, prepare_ns = clock.once(partial(fallback.instead, backend, operator, f, elsewhere, wrt, refusal))
        result, first_call_ns = clock.once(_bound(made.call, native, backend.sync))
    return made, prepare_ns, result, first_call_ns


def warm_up(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Warm up, and say how many calls make an epoch."""
    call = _prepared(bench)
    clock.warm_up(call, at_least_ns=request["warm_ns"])
    return {"calls": clock.calls_per_epoch(call, request["epoch_ns"])}


def epoch(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Time one epoch."""
    return {"calls": request["calls"], "ns": clock.epoch(_prepared(bench), request["calls"]).ns}


def peak(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """The memory of one call, by both methods, after one more warming call."""
    call = _prepared(bench)
    call()
    return {
        "allocated_peak_bytes": {"value": None, "reason": "not measured"},
        "python_peak_bytes": to_plain(memory.median_of(memory.python_peak, call)),
        "resident_peak_bytes": to_plain(memory.median_of(memory.resident_peak, call)),
    }


def relate(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Every relation that does not hold on the backend (relations.py)."""
    at = _point(request)
    setting = relations.Setting(_loaded(bench), at.case, at.size, at.seed, _known(request).first)
    return {"violations": relations.violations(setting)}


REQUESTS: Mapping[str, Callable[[Bench, Mapping[str, Any]], Any]] = {
    "load": load,
    "reference": refer,
    "prepare": prepare,
    "relations": relate,
    "warm_up": warm_up,
    "epoch": epoch,
    "memory": peak,
}


def _point(request: Mapping[str, Any]) -> checking.Point:
    source = from_plain(request["case"], catalog.Source)
    return checking.point(catalog.load_cases(source)[source.name], request["size"], request["seed"])


def _known(request: Mapping[str, Any]) -> checking.Known:
    given = request["reference"]
    return checking.Known(Reference.from_plain(given["first"]), tuple(map(Reference.from_plain, given["seconds"])))


def _bound(call: contract.Call, native: tuple[Any, ...], sync: Callable[[Any], Any] | None) -> Callable[[], Any]:
    """The call with its inputs bound and its result waited for, with as little between as there can be."""
    if sync is None:
        return lambda: call(*native)

    def waited() -> Any:
        result = call(*native)
        sync(result)
        return result

    return waited


def _loaded(bench: Bench) -> contract.Backend:
    if bench.backend is None:
        raise RuntimeError("no backend is loaded: the request `load` comes first")
    return bench.backend


def _prepared(bench: Bench) -> Callable[[], Any]:
    if bench.call is None:
        raise RuntimeError("nothing is prepared: the request `prepare` comes first")
    return bench.call
