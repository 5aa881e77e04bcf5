"""`adbench conform --every-input`: the sweep over functions, types and libraries, each library in its own worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from adbench.catalog.selection import Selection
from adbench.execution.known_faults import of_backend
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.resident_worker import ResidentWorker, require_device
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.findings.conform.fault_threads import with_thread
from adbench.findings.conform.judgement import Fault, Kind
from adbench.findings.conform.operation_worker import family_of
from adbench.findings.conform.places import Floats
from adbench.findings.every_input.input_judgement import (
    ORDERS,
    InputCurve,
    InputFault,
    InputTruth,
    curve_of,
    errors_in_ulp,
    fault_of,
    truth_of,
)
from adbench.findings.every_input.input_worker import COMPILES_MANY, LIMIT_SECONDS
from adbench.findings.every_input.sixteen_bits import TYPES, every_number, functions
from adbench.findings.scripts import of_fault
from adbench.model.errors import BadFile, UsageError
from adbench.model.serialization import converted
from adbench.model.settings import PROCESSOR, Settings

TOGETHER = 4
"""Functions in one part, and in one compilation of torch.compile: alone each takes twice as long to compile."""
AHEAD = 16
"""Parts that a fast library may be ahead: their arrays are kept."""
TIMEOUT_SECONDS = 600.0
"""Of one request, also on a busy machine; its limit counts the processor's time (input_worker.py)."""
DEFINITION = "tape"
"""The engine evaluates the definitions in float64."""
INPUT_SWEEP = "adbench conform --every-input"
SWEPT = ("torch", "torch_compile", "jax")
WORKER = "adbench.findings.every_input.input_worker:at_every_input"
Answers = list[dict[str, Any]]


@dataclass
class InputSweep:
    """The result: rows of faults, the worst first.

    right       the others, as curves
    refused     (function, library, type, reason); judged: results whose truth is known
    contested   results where float64 evaluations differ, and balls decided; unknown: of these, none could be decided
    proved      inputs that balls have proved
    unfinished  parts that were not examined, because of an interruption; interrupted: its exit code, 0 for none
    device      that the libraries computed on
    """

    libraries: Mapping[str, str]
    types: Sequence[str]
    functions: int
    seconds: float = 0.0
    faults: list[InputFault] = field(default_factory=list)
    right: list[InputCurve] = field(default_factory=list)
    refused: list[tuple[str, str, str, str]] = field(default_factory=list)
    judged: int = 0
    contested: int = 0
    unknown: int = 0
    proved: int = 0
    unfinished: int = 0
    interrupted: int = 0
    device: str = PROCESSOR

    def as_plain(self) -> dict[str, Any]:
        """The result for JSON."""
        return {INPUT_SWEEP: 1, **asdict(self)}

    @staticmethod
    def from_plain(data: Any, file: Path) -> InputSweep:
        """The result in the JSON data of a file of --save. Raises BadFile."""
        try:
            return converted(data, InputSweep, strict=False)
        except ValueError as error:
            raise BadFile(f"{file}: not a result of {INPUT_SWEEP}: {error}") from error


def refuse_others(libraries: Sequence[str]) -> None:
    """Raise UsageError for a library without types of 16 bits."""
    for name in libraries:
        if name not in SWEPT:
            raise UsageError(f"--every-input examines {', '.join(SWEPT)}, got {name}; choose from these")


def sweep(
    chosen: Selection,
    libraries: Sequence[str],
    names: Sequence[str],
    types: Sequence[str],
    told: Callable[[int, int, str], None] = lambda done, total, part: None,
    inputs: Mapping[str, Floats] | None = None,
    device: str = PROCESSOR,
) -> InputSweep:
    """Examine these functions at all inputs. ``inputs``: type -> others; told: parts done, all, and the next one.

    Raises UsageError if no library has the device.
    """
    begun = monotonic()
    versions = {name: chosen.catalog.backends[name].version or "" for name in libraries}
    result = InputSweep(versions, types, len(names), device=device)
    known = {name: of_backend(chosen.catalog.backends[name], chosen.catalog.cases, device).bugs for name in libraries}
    parts = [(type_, names[k : k + TOGETHER]) for k in range(0, len(names), TOGETHER) for type_ in types]
    asked = list(dict.fromkeys([DEFINITION, *libraries, *(family_of(name) for name in libraries)]))
    asked = [name for name in asked if name in chosen.catalog.backends]
    with Supervisor(default_limit()) as supervisor:
        here = Context(supervisor, chosen.catalog, Settings())
        there = Context(supervisor, chosen.catalog.on(device), Settings(device=device))
        pairs = [(name, type_) for name in asked for type_ in types]  # a worker each: jax compiles on one core
        workers = {pair: ResidentWorker(here if pair[0] == DEFINITION else there, pair[0]) for pair in pairs}
        require_device((workers[name, types[0]] for name in libraries), device)
        pools = {pair: ThreadPoolExecutor(1) for pair in pairs}
        try:
            ahead: deque[dict[str, Future[Answers]]] = deque()
            for done, (type_, part) in enumerate(parts):
                for later, some in parts[done + len(ahead) : done + AHEAD]:
                    x = every_number(TYPES[later]) if inputs is None else inputs[later]
                    ahead.append({n: pools[n, later].submit(_asked, workers[n, later], later, some, x) for n in asked})
                result.unfinished = len(parts) - done
                told(done, len(parts), f"{', '.join(part)} in {type_}")
                answers = {name: future.result() for name, future in ahead.popleft().items()}
                x = every_number(TYPES[type_]) if inputs is None else inputs[type_]
                for k, name in enumerate(part):
                    of_one = {library: answer[k] for library, answer in answers.items()}
                    _judge(result, name, type_, x, of_one, libraries)
            result.unfinished = 0
        except KeyboardInterrupt as signal:
            result.interrupted = getattr(signal, "code", 130)
        finally:
            supervisor.close()
            for pool in pools.values():
                pool.shutdown(cancel_futures=True)
    result.faults = sorted(
        (_told_about(row, known, device) for row in result.faults), key=lambda row: (-row.ulp, -row.over_100)
    )
    result.seconds = monotonic() - begun
    return result


def _asked(worker: ResidentWorker, type_: str, names: Sequence[str], x: Floats) -> Answers:
    """The answers: for each function alone, but first together where they are compiled together."""
    request = {"do": "call", "function": WORKER, "type": type_, "inputs": x}
    answers: Answers = []
    if worker.name == COMPILES_MANY and len(names) > 1:
        with suppress(NoAnswer):
            answers = worker.ask({**request, "functions": list(names)}, TIMEOUT_SECONDS)
    for name in names[len(answers) :]:
        try:
            answers += worker.ask({**request, "functions": [name]}, TIMEOUT_SECONDS)
        except NoAnswer as no:
            late = "SIGXCPU" in no.reason
            answers.append({"refused": f"no result within {LIMIT_SECONDS} s of processor time" if late else no.reason})
    return answers


def _judge(
    result: InputSweep, name: str, type_: str, x: Floats, answers: Mapping[str, Any], libraries: Sequence[str]
) -> None:
    """Add a function's rows, one for each library and order with a fault."""
    form = TYPES[type_]
    truth = truth_of(functions()[name], form, x, [answer for answer in answers.values() if "value64" in answer])
    for library in libraries:
        if "refused" in answers[library]:
            result.refused.append((name, library, type_, answers[library]["refused"]))
            continue
        for order in ORDERS:
            row = fault_of(truth, form, library, order, answers[library], answers.get(family_of(library), {}))
            lower, upper = truth.lower[order], truth.upper[order]
            result.judged += (judged := int((~np.isnan(lower)).sum()))
            if row is not None:
                result.faults.append(row)
            elif judged:
                errors = errors_in_ulp(form, answers[library][order], lower, upper)
                result.right.append(InputCurve(name, library, type_, order, curve_of(errors)))
    _count(result, truth)


def _count(result: InputSweep, truth: InputTruth) -> None:
    result.contested += sum(truth.contested.values())
    result.unknown += sum(
        int((np.isnan(truth.lower[order]) & (truth.x > truth.function.domain.lower)
             & (truth.x < truth.function.domain.upper)).sum())
        for order in ORDERS
    )  # fmt: skip
    result.proved += len(truth.proofs)


def _told_about(row: InputFault, known: Mapping[str, Any], device: str) -> InputFault:
    """The row with its program, and the thread that discusses the same fault."""
    function = functions()[row.function]
    point = dict(((function.argument, row.x), *function.held))
    point = dict(sorted(point.items(), key=lambda pair: "xyzab".index(pair[0])))
    kind: Kind = (
        "nan" if not np.isfinite(row.got) else "wrong" if row.got * row.expected <= 0 or row.ulp > 100 else "digits"
    )
    fault = Fault(
        function.operation.name, row.library, row.order, kind, 0.0, point, "special",
        function.argument if row.order == "gradient" else "", repr(row.got), repr(row.expected),
        (function.argument,), (), precision=row.type, device=device,
    )  # fmt: skip
    own = function.operation.expression(family_of(row.library)) or ""
    return replace(row, program=of_fault(fault, own), thread=with_thread(fault, known[row.library]).thread)
