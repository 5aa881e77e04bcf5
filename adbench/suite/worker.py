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
from adbench.oracle import Reference, cached, operators, reference, reference_key
from adbench.suite import backend as contract
from adbench.suite import catalog, fallback, relations
from adbench.suite.case import Case, function_of
from adbench.suite.channel import Channel, Closed
from adbench.suite.errors import Unsupported, UsageError
from adbench.suite.namespace import Namespace
from adbench.suite.plain import from_plain, to_plain

MOST_EVALUATIONS = 20_000  # of a case, for its reference: 300 entries or so


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
    """What is known about the case's value and derivatives at its inputs, from its own text: no backend is asked.

    first    the value and the gradient
    seconds  H v for the two directions that second order is judged by; empty unless `second_order` is asked for
    """
    import numpy as np

    case, names, args, wrt = _inputs(request)
    f, seed, seconds = function_of(case, names, Namespace(np)), request["seed"], request["reference_seconds"]
    where = request["cache"]

    def remembered(what: str, compute: Callable[[], Reference]) -> Reference:
        if where is None:
            return compute()
        text_of_file = Path(request["case"]["path"]).read_text(encoding="utf-8")
        key = reference_key(text_of_file, args, wrt, seed, what=what, name=request["case"]["name"], seconds=seconds)
        return cached(Path(where), key, compute)

    value, ns = clock.once(lambda: f(*args))
    if case.declared and case.gradient is not None:
        gradient = case.gradient(**dict(zip(names, args, strict=True)))
        return {"first": operators.declared(float(value), gradient, args, wrt, names).to_plain(), "seconds": []}

    def text(xp: Any, *args: Any) -> Any:
        return function_of(case, names, xp)(*args)

    first = remembered(
        "first",
        lambda: reference(
            f,
            args,
            wrt,
            seed=seed,
            xp_function=text,
            names=names,
            max_evaluations=min(MOST_EVALUATIONS, int(seconds * 1e9 / max(ns, 1))),
            max_seconds=seconds,
        ),
    )

    def second(number: int) -> Reference:
        return operators.second_order(text, args, wrt, number, first, seed=seed, names=names, max_seconds=seconds)

    numbers = operators.HESSIAN_DIRECTIONS if request["second_order"] else ()
    seconds_known = [remembered(f"second {number}", partial(second, number)) for number in numbers]
    return {"first": first.to_plain(), "seconds": [known.to_plain() for known in seconds_known]}


def prepare(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare the operator, call it once, and judge what came out. The inputs are bound before any clock starts."""
    bench.call = None
    gc.collect()  # the last cell's tapes and arrays are not this one's
    case, names, args, wrt = _inputs(request)
    backend, operator, seed = _loaded(bench), request["operator"], request["seed"]
    directions = [operators.direction(args, wrt, seed, number) for number in operators.HESSIAN_DIRECTIONS]
    vector = {"jvp": (directions[0],), "hvp": (directions[0],), "vjp": (operators.COTANGENT,)}.get(operator, ())
    native = backend.native_inputs((*args, *vector))
    elsewhere = backend.native_inputs((*case.bind_prepared(request["size"], seed), *vector))
    f = function_of(case, names, backend.xp)
    made, prepare_ns, result, first_call_ns = _first_call(backend, operator, f, elsewhere, native, wrt)
    bench.call = _bound(made.call, native, backend.sync)
    verdict = operators.judge_operator(
        operator,
        backend.numpy_result(result),
        Reference.from_plain(request["reference"]["first"]),
        [Reference.from_plain(second) for second in request["reference"]["seconds"]],
        directions,
        claimed_relative_error=backend.claimed_relative_error,
    )
    return {
        "prepare_seconds": prepare_ns * 1e-9,
        "first_call_seconds": first_call_ns * 1e-9,
        "verdict": to_plain(verdict),
        "how": made.how,
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
    return {"calls": request["calls"], "ns": clock.epoch(_prepared(bench), request["calls"])}


def peak(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """The memory of one call, by both methods, after one more warming call."""
    call = _prepared(bench)
    call()
    return {
        "python_peak_bytes": to_plain(memory.median_of(memory.python_peak, call)),
        "resident_peak_bytes": to_plain(memory.median_of(memory.resident_peak, call)),
    }


def relate(bench: Bench, request: Mapping[str, Any]) -> dict[str, Any]:
    """Every relation that does not hold on the backend (relations.py)."""
    source = from_plain(request["case"], catalog.Source)
    case = catalog.load_cases(source)[source.name]
    first = Reference.from_plain(request["reference"]["first"])
    found = relations.violations(relations.Setting(_loaded(bench), case, request["size"], request["seed"], first))
    return {"violations": found}


REQUESTS: Mapping[str, Callable[[Bench, Mapping[str, Any]], Any]] = {
    "load": load,
    "reference": refer,
    "prepare": prepare,
    "relations": relate,
    "warm_up": warm_up,
    "epoch": epoch,
    "memory": peak,
}


def _inputs(request: Mapping[str, Any]) -> tuple[Case, tuple[str, ...], tuple[Any, ...], tuple[int, ...]]:
    source = from_plain(request["case"], catalog.Source)
    case = catalog.load_cases(source)[source.name]
    return case, *case.bind(request["size"], request["seed"])


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
