"""`adbench conform`: every operation of a library, at special points and over the whole range of exponents.

Each library runs in a separate worker; this process computes the references meanwhile, and judges.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from adbench.catalog.selection import Selection
from adbench.execution.known_faults import of_backend
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer, WorkerLost
from adbench.execution.workers.resident_worker import ResidentWorker, require_device
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.findings.conform.fault_threads import with_thread
from adbench.findings.conform.judgement import Fault, Judged, OperationReferences, judged, truth_at
from adbench.findings.conform.operation_worker import ORDERS, THIRD, family_of
from adbench.findings.conform.places import Place, places
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.operation import Operation
from adbench.findings.scripts import of_fault
from adbench.findings.variants.forms import FormsOfCase
from adbench.findings.variants.forms_of_operations import compared_forms
from adbench.model.errors import BadFile
from adbench.model.operator import definition
from adbench.model.serialization import converted, to_plain
from adbench.model.settings import FLOAT64, PROCESSOR, Settings

TIMEOUT_SECONDS = 120.0
OF_SHAPES = ("value", "gradient", "hvp_forward_over_reverse")
"""The derivatives examined at further shapes, because compiling takes most of the time."""

WORKER = "adbench.findings.conform.operation_worker"
ORDER: Mapping[str, int] = {name: definition(name).order for name in ORDERS} | {THIRD: 3}
"""The order of a derivative."""


@dataclass
class ConformanceCell:
    """An operation on a library.

    checked   judged results; silent: results at points where nothing can be judged
    refused   operator -> why the library has none
    faults    the worst for each operator and kind
    digits    (order, exponent of |x|) -> the fewest correct digits at points of this size, for one argument
    own       the library's expression, "" for the definition on its array functions
    derivatives   those judged results that are no values
    """

    operation: str
    library: str
    family: str
    own: str = ""
    checked: int = 0
    silent: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    digits: dict[tuple[int, int], float] = field(default_factory=dict)
    derivatives: int = 0

    @property
    def worst(self) -> float | None:
        """The fewest correct digits of a wrong number; 17 if all are right, None if nothing was judged."""
        return min((fault.digits for fault in self.faults), default=17.0 if self.checked else None)


@dataclass(frozen=True)
class Conformance:
    """The result of a sweep.

    libraries     library -> version
    precision     the arithmetic of the results
    forms         for each operation, where the eager and the compiled form of a library differ most
    missing       operations that were not examined, because of a time limit or an interruption
    interrupted   the exit code for the signal that ended the sweep; 0: none did
    device        that the libraries compute on
    """

    libraries: Mapping[str, str]
    cells: tuple[ConformanceCell, ...]
    seed: int = 0
    precision: str = "float64"
    missing: tuple[str, ...] = ()
    interrupted: int = 0
    forms: tuple[FormsOfCase, ...] = ()
    device: str = PROCESSOR

    @property
    def place(self) -> str:
        """ " on cuda", or "" for the CPU."""
        return f" on {self.device}" if self.device != PROCESSOR else ""

    @property
    def faults(self) -> list[Fault]:
        """All faults."""
        return [fault for cell in self.cells for fault in cell.faults]

    @property
    def unjudged(self) -> tuple[str, ...]:
        """A sentence with the most frequent reason for each library of which no derivative was judged."""
        sentences = []
        for library in self.libraries:
            cells = [cell for cell in self.cells if cell.library == library]
            if not any(cell.derivatives for cell in cells):
                refusals = Counter(reason for cell in cells for reason in cell.refused.values()).most_common(1)
                reason = refusals[0][0] if refusals else "its values raise errors, or no point has a known derivative"
                sentences.append(f"no derivative was checked with the backend {library}: {reason}")
        return tuple(sentences)


def conform(
    chosen: Selection,
    backends: Sequence[str],
    operations: Sequence[str],
    *,
    seed: int = 0,
    device: str = PROCESSOR,
    most_points: int | None = None,
    single: bool = False,
    seconds: float = math.inf,
    variants: bool = False,
    scripts: Path | None = None,
    told: Callable[[Operation, Sequence[ConformanceCell]], None] = lambda operation, cells: None,
) -> Conformance:
    """Examine these operations on these backends. An interruption ends the sweep, and what was finished is returned.

    most_points   of an operation; None: all
    single        compute in float32
    seconds       begin no operation after this time
    variants      compare the eager and the compiled form of each library; scripts: the folder for programs
    told          called after each operation with its cells

    Raises UsageError if no library has the device.
    """
    cells, forms = list[ConformanceCell](), list[FormsOfCase]()
    interrupted, deadline = 0, monotonic() + seconds
    with Supervisor(default_limit()) as supervisor, ExitStack() as ends:
        precision = "float32" if single else FLOAT64
        context = Context(supervisor, chosen.catalog.on(device), Settings(seed=seed, device=device, dtype=precision))
        libraries = [_Library(name, context) for name in backends]
        require_device((library.worker for library in libraries), device)
        pools = [ThreadPoolExecutor(1) for _ in libraries]
        for pool in pools:
            ends.callback(pool.shutdown, cancel_futures=True)
        ends.callback(supervisor.close)  # first: ends a request that is under way, for which the pools would wait
        try:
            rows = [OPERATIONS[name] for name in operations]
            asked = [_points(one, seed, single)[:most_points] for one in rows]
            ahead = [
                [pool.submit(library.answers, one, points) for pool, library in zip(pools, libraries, strict=True)]
                for one, points in zip(rows, asked, strict=True)
            ]
            for operation, points, futures in zip(rows, asked, ahead, strict=True):
                truths = [truth_at(operation, place, single) for place in points]
                examined = _examined(operation, truths, libraries, futures)
                if variants:
                    by_name = {one.name: future.result() for one, future in zip(libraries, futures, strict=True)}
                    forms += compared_forms(truths, by_name, scripts, device)
                told(operation, examined)
                cells += examined
                if monotonic() > deadline:
                    break
        except KeyboardInterrupt as signal:
            interrupted = getattr(signal, "code", 130)
    versions = {name: chosen.catalog.backends[name].version or "" for name in backends}
    done = {cell.operation for cell in cells}
    missing = tuple(name for name in operations if name not in done)
    return Conformance(versions, tuple(cells), seed, precision, missing, interrupted, tuple(forms), device)


def _examined(
    operation: Operation,
    truths: Sequence[OperationReferences],
    libraries: Sequence[_Library],
    futures: Sequence[Future[Answers]],
) -> list[ConformanceCell]:
    """The cells of an operation, one for each library."""
    results = [
        ConformanceCell(operation.name, one.name, operation.family, operation.expression(family_of(one.name)) or "")
        for one in libraries
    ]
    for cell, library, future in zip(results, libraries, futures, strict=True):
        for truth, of_place in zip(truths, future.result(), strict=True):
            _count(cell, truth, judged(truth, cell.library, of_place), of_place)
        worst = _worst_of_each(cell.faults)
        cell.faults = [replace(with_thread(fault, library.known), device=library.device) for fault in worst]
    return results


def _count(
    cell: ConformanceCell, truth: OperationReferences, verdicts: Sequence[Judged], answers: Mapping[str, Any]
) -> None:
    """Add the verdicts at one point to a cell."""
    cell.refused |= {operator: answer["refused"] for operator, answer in answers.items() if "refused" in answer}
    cell.silent += len(answers) - len(verdicts)
    exponent = _exponent(truth.place)
    for one in verdicts:
        if one.digits is None:
            cell.silent += 1
            continue
        cell.checked += 1
        cell.derivatives += one.operator != "value"
        if one.operator == "value" and one.fault and not cell.own and one.fault.kind not in ("crashes", "hangs"):
            continue  # our formula overflows on the way, and no function of the library is to blame
        if one.fault is not None:
            cell.faults.append(one.fault)
        if exponent is not None:
            key = ORDER[one.operator], exponent
            cell.digits[key] = min(cell.digits.get(key, 17.0), one.digits)


def _exponent(place: Place) -> int | None:
    """The decimal exponent of the only number of a point."""
    if len(place.arguments) != 1 or np.ndim(place.arguments[0]) or not place.arguments[0]:
        return None
    return math.floor(math.log10(abs(place.arguments[0])))


def _worst_of_each(faults: Sequence[Fault]) -> list[Fault]:
    """For each operator and kind the fault with the fewest digits, at the plainest point."""
    worst: dict[Any, Fault] = {}
    for fault in faults:
        best = worst.get(fault.key)
        if best is None or _rank(fault) < _rank(best):
            worst[fault.key] = fault
    return sorted(worst.values(), key=_rank)


def _rank(fault: Fault) -> tuple[float, float]:
    """Fewest digits first, then numbers near one."""
    numbers = [np.asarray(value, dtype=np.float64) for value in fault.point.values()]
    with np.errstate(all="ignore"):
        size = sum(float(np.abs(np.log(np.abs(array[array != 0]))).sum()) for array in numbers)
    return round(fault.digits), size


Answers = list[dict[str, Any]]
"""For each point: operator -> the library's result, or the reason why it is missing."""


def _points(operation: Operation, seed: int, single: bool) -> list[Place]:
    """The points of an operation; in float32, only those within its range."""
    points = places(operation, seed)
    return [place for one in points if (place := one.in_single) is not None] if single else list(points)


class _Library:
    """A backend's worker; it is started again when it dies."""

    def __init__(self, name: str, context: Context) -> None:
        self.name, self.worker, self.device = name, ResidentWorker(context, name), context.settings.device
        self._lacks = context.catalog.backends[name].refuses(self.device, context.settings.dtype)
        self.known = of_backend(context.catalog.backends[name], context.catalog.cases, self.device).bugs
        self._flushes: bool | None = None

    def answers(self, operation: Operation, points: Sequence[Place]) -> Answers:
        """Of all points."""
        if self._lacks:
            return [{name: {"refused": self._lacks} for name in ORDERS} for _ in points]
        if self._flushes is None:
            request = {"do": "call", "function": f"{WORKER}:flushes"}
            try:
                self._flushes = bool(self.worker.ask(request, TIMEOUT_SECONDS))
            except NoAnswer:  # the answers to the operations have the reason
                self._flushes = False
        collected: dict[int, dict[str, Any]] = defaultdict(dict)
        kept = [k for k, place in enumerate(points) if not (self._flushes and place.is_subnormal)]
        for _, same in groupby(kept, key=lambda k: points[k].shapes):
            numbers = list(same)
            every = ORDERS if operation.slope is None else (*ORDERS, THIRD)
            operators = OF_SHAPES if points[numbers[0]].kind == "shape" else every
            answers = self._asked(operation, [points[k] for k in numbers], operators)
            collected.update(zip(numbers, answers, strict=True))
        return [collected[k] for k in range(len(points))]

    def _asked(self, operation: Operation, points: Sequence[Place], operators: Sequence[str]) -> Answers:
        """The answers, where a crash or a hang belongs to as few points and operators as possible."""
        request = {
            "do": "call",
            "function": f"{WORKER}:derivatives",
            "operation": operation.name,
            "places": [vars(place) for place in points],
            "operators": list(operators),
        }
        try:
            answers: Answers = self.worker.ask(request, TIMEOUT_SECONDS)
            return answers
        except WorkerLost as lost:
            kind, reason = {"crashed": "crashes", "timed_out": "hangs"}.get(lost.status, "crashes"), lost.reason
        except NoAnswer as no:
            return [{name: {"refused": no.reason} for name in operators} for _ in points]
        if len(operators) > 1:
            parts = [self._asked(operation, points, [operator]) for operator in operators]
            return [{name: answer for part in parts for name, answer in part[k].items()} for k in range(len(points))]
        if len(points) > 1 and kind == "crashes":
            half = len(points) // 2
            return self._asked(operation, points[:half], operators) + self._asked(operation, points[half:], operators)
        return [{operators[0]: {kind: reason}} for _ in points]


def as_plain(result: Conformance) -> dict[str, Any]:
    """The result for JSON; numbers that are not finite are strings."""
    about = {name: getattr(result, name) for name in ("seed", "precision", "device", "libraries", "missing")}
    cells = [
        {
            **vars(cell),
            "worst_digits": None if cell.worst is None else round(cell.worst, 1),
            "digits": [[order, k, round(d, 1)] for (order, k), d in sorted(cell.digits.items())],
            "faults": [
                {**vars(fault), "digits": round(fault.digits, 1), "program": of_fault(fault, cell.own)}
                for fault in cell.faults
            ],
        }
        for cell in result.cells
    ]
    return {"adbench conform": 1, **about, "cells": cells}


def from_plain(data: Any, file: Path) -> Conformance:
    """The result in the JSON data of a file of --save. Raises BadFile."""
    try:
        cells = [
            {
                "derivatives": cell["checked"],  # files of an earlier adbench lack the number
                **cell,
                "digits": {(order, k): digits for order, k, digits in cell["digits"]},
            }
            for cell in data["cells"]
        ]
        result = converted({**data, "cells": cells}, Conformance, strict=False)
        if unknown := [cell.library for cell in result.cells if cell.library not in result.libraries]:
            raise ValueError(f"cells of {unknown[0]!r}, which is not among its libraries")
        return result
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadFile(f"{file}: not a result of adbench conform --save: {error!r}") from error


def as_text(plain: Mapping[str, Any]) -> str:
    """Valid JSON; arguments that are not finite are strings."""
    return json.dumps(to_plain(plain), indent=1, allow_nan=False) + "\n"


def read(file: Path) -> Conformance:
    """The result in a file of --save. Raises BadFile."""
    try:
        return from_plain(json.loads(file.read_text(encoding="utf-8")), file)
    except OSError as error:
        raise BadFile(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadFile(f"{file}: not a result of adbench conform --save: {error!r}") from error


def unfinished(file: Path, libraries: Sequence[str]) -> Conformance:
    """The result in a file of --save, to be continued with these libraries. Raises BadFile."""
    result = read(file)
    if set(result.libraries) != set(libraries):
        raise BadFile(f"{file} is a result of {', '.join(result.libraries)}; pass the same libraries with -b")
    return result


def joined(before: Conformance, now: Conformance) -> Conformance:
    """The result of a sweep and of its continuation, which examined some of the missing operations."""
    order = {name: k for k, name in enumerate(OPERATIONS)}
    done = {cell.operation for cell in now.cells}
    cells = sorted((*before.cells, *now.cells), key=lambda cell: order.get(cell.operation, len(order)))
    return replace(now, cells=tuple(cells), missing=tuple(name for name in before.missing if name not in done))


def new_faults(result: Conformance, baseline: Conformance) -> list[Fault]:
    """The faults that the baseline does not have."""
    old = {fault.key for fault in baseline.faults}
    return [fault for fault in result.faults if fault.key not in old]
