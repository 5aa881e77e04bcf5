"""Faults between calls: remembered, folded, shared or overwritten data, and wrong kinds of results."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from adbench import Case
from adbench.model.backend import Backend
from tests.backends.loaded import backend
from tests.oracle.campaign import cases as at
from tests.oracle.campaign.fault import GRADIENTS, Fault, refilled

Call = Callable[..., Any]
Prepare = Callable[[Call, str, Any, Any, Any], Call]


def prepared(change: Prepare) -> Callable[[], Backend]:
    """change(right call, operator, f, args of prepare, wrt) -> the call, for gradients."""

    def make() -> Backend:
        right = backend("tape")

        def prepare(operator: Any, f: Any, args: Any, wrt: Any) -> Call:
            call = right.prepare(operator, f, args, wrt)
            return change(call, operator, f, args, wrt) if operator in GRADIENTS else call

        return replace(right, prepare=prepare)

    return make


def first_result(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    kept: list[Any] = []

    def again(*given: Any) -> Any:
        kept[1:] = []
        if not kept:
            kept.append(call(*given))
        return kept[0]

    return again


def result_by(key: Callable[[Any], Any]) -> Prepare:
    def change(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
        kept: dict[Any, Any] = {}

        def again(*given: Any) -> Any:
            name = tuple(key(arg) for arg in given)
            if name not in kept:
                kept[name] = call(*given)
            return kept[name]

        return again

    return change


def at_prepare(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    """Everything constant-folded: the result at the inputs of `prepare`."""
    found = call(*args)
    return lambda *given: found


def constants_folded(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    def folded(*given: Any) -> Any:
        return call(*[arg if i in wrt or i >= len(args) else args[i] for i, arg in enumerate(given)])

    return folded


def branch_of_prepare(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    """A branch such as x[0] < x[1], fixed in `prepare`; some pairs have another order at the next seed."""
    before = np.argsort(np.ravel(args[wrt[0]]))

    def recorded(*given: Any) -> Any:
        right = call(*given)
        same = np.array_equal(np.argsort(np.ravel(given[wrt[0]])), before)
        return right if same else _scaled(right, operator, 1.5)

    return recorded


def _scaled(result: Any, operator: str, factor: float) -> Any:
    if operator == "value_and_gradient":
        return result[0], refilled(result[1], lambda g: g * factor)
    return refilled(result, lambda g: g * factor)


def wrong_on_call(number: int) -> Prepare:
    def change(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
        count = [0]

        def counted(*given: Any) -> Any:
            count[0] += 1
            return _scaled(call(*given), operator, 1.0 if count[0] < number else 1.5)

        return counted

    return change


def accumulates(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    total: list[Any] = []

    def added(*given: Any) -> Any:
        right = call(*given)
        if operator != "gradient":
            return right
        before = total[0] if total else 0.0
        found = refilled(right, lambda g: g + before)
        total[:] = [np.concatenate([np.ravel(part) for part in found])]
        return found

    return added


def one_buffer(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    buffers: list[Any] = []

    def shared(*given: Any) -> Any:
        right = call(*given)
        if operator != "gradient":
            return right
        if not buffers:
            buffers.extend(np.array(part) for part in right)
        for buffer, part in zip(buffers, right, strict=True):
            buffer[...] = part
        return tuple(buffers)

    return shared


def writes_inputs(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    def spoiling(*given: Any) -> Any:
        found = call(*given)
        for arg in given:
            if isinstance(arg, np.ndarray) and arg.flags.writeable:
                arg[...] = arg * (1 + 1e-12)
        return found

    return spoiling


def keeps_references(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    """Reads the arrays of `prepare`, not those of the call."""
    return lambda *given: call(*args, *given[len(args) :])


def same_object(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    """Caches a result by the array object, ignoring new contents."""
    kept: list[Any] = []

    def again(*given: Any) -> Any:
        if not kept or any(a is not b for a, b in zip(kept[0], given, strict=True)):
            kept[:] = [given, call(*given)]
        return kept[1]

    return again


SHARED: dict[str, Any] = {}


def shared_between_prepares(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    """All prepared calls use the inputs of the last `prepare`."""
    SHARED["wrt"] = wrt
    return lambda *given: call(*given) if SHARED["wrt"] == wrt else _scaled(call(*given), operator, 2.0)


def subset_ignored(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    everything = tuple(range(len(args)))
    if operator != "gradient" or wrt == everything:
        return call
    all_of_them = backend("tape").prepare("gradient", f, args, everything)
    return lambda *given: all_of_them(*given)[: len(wrt)]


def needs_contiguous(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    def careless(*given: Any) -> Any:
        read = [
            np.frombuffer(a.tobytes(order="A"), dtype=a.dtype).reshape(a.shape) if isinstance(a, np.ndarray) else a
            for a in given
        ]
        return call(*read)

    return careless


def swallows_nan(call: Call, operator: str, f: Any, args: Any, wrt: Any) -> Call:
    def quiet(*given: Any) -> Any:
        clean = [np.nan_to_num(a) if isinstance(a, np.ndarray) else a for a in given]
        return call(*clean)

    return quiet


CALLS_WRONG: dict[str, tuple[Prepare, dict[str, Case]]] = {
    "first result kept for ever": (first_result, {"chain": at.SMALL, "matrix": at.MATRIX}),
    "result kept by shape": (result_by(np.shape), {"chain": at.SMALL, "matrix": at.MATRIX}),
    "result kept by the first entry's digits": (
        result_by(lambda a: np.round(np.ravel(a)[:1], 0).tobytes()), {"chain": at.SMALL, "matrix": at.MATRIX},
    ),
    "inputs of prepare folded": (at_prepare, {"chain": at.SMALL, "matrix": at.MATRIX}),
    "constants of prepare folded": (constants_folded, {"constant": at.WITH_CONSTANT}),
    "branch of prepare recorded": (branch_of_prepare, {"chain": at.SMALL}),
    "second call wrong": (wrong_on_call(2), {"chain": at.SMALL}),
    "third call wrong": (wrong_on_call(3), {"chain": at.SMALL}),
    "tenth call wrong": (wrong_on_call(10), {"chain": at.SMALL}),
    "gradient accumulated over calls": (accumulates, {"chain": at.SMALL, "matrix": at.MATRIX}),
    "one buffer for all results": (one_buffer, {"chain": at.SMALL, "matrix": at.MATRIX}),
    "input written into": (writes_inputs, {"chain": at.SMALL, "matrix": at.MATRIX}),
    "inputs of prepare read": (keeps_references, {"chain": at.SMALL, "matrix": at.MATRIX}),
    "result kept for the same array object": (same_object, {"chain": at.SMALL}),
    "state shared between two prepared calls": (shared_between_prepares, {"couples": at.COUPLES}),
    "wrt ignored for a subset": (subset_ignored, {"couples": at.COUPLES, "matrix": at.MATRIX}),
    "memory read in the wrong order": (needs_contiguous, {"matrix": at.MATRIX}),
    "NaN swallowed in the gradient": (swallows_nan, {"chain": at.SMALL}),
}  # fmt: skip


def calls() -> Iterator[Fault]:
    for kind, (change, where) in CALLS_WRONG.items():
        for name, case in where.items():
            operators = ("gradient", "value_and_gradient", "vjp", "jacobian")
            yield Fault(kind=kind, name=name, case=case, operators=operators, make=prepared(change))


def forms() -> Iterator[Fault]:
    changes: dict[str, Callable[[Any], Any]] = {
        "result float32": lambda g: tuple(np.float32(p) for p in g),
        "result complex": lambda g: tuple(p + 0j for p in g),
        "result of objects": lambda g: tuple(np.asarray(p).astype(object) for p in g),
        "result with one axis more": lambda g: tuple(np.asarray(p)[None] for p in g),
        "result flattened": lambda g: tuple(np.ravel(p) if np.ndim(p) > 1 else np.reshape(p, (-1, 1)) for p in g),
        "result one entry short": lambda g: (np.asarray(g[0])[:-1], *g[1:]),
        "result without one part": lambda g: g[:-1],
        "result with a part too many": lambda g: (*g, g[0]),
        "result without its tuple": lambda g: g[0],
        "result missing": lambda g: None,
    }
    for kind, change in changes.items():
        for name, case in (("chain", at.SMALL), ("matrix", at.MATRIX)):

            def changed(call: Call, operator: str, f: Any, args: Any, wrt: Any, change: Any = change) -> Call:
                return (lambda *given: change(call(*given))) if operator == "gradient" else call

            yield Fault(kind=kind, name=name, case=case, operators=("gradient",), make=prepared(changed))


CALLS = [*calls(), *forms()]
