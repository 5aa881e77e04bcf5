"""The work of a message: operators of a case at the message's input, called together in each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from adbench.catalog import discovery
from adbench.execution.operators import fallback
from adbench.measure import clock
from adbench.model.backend import Backend
from adbench.model.case import Case
from adbench.model.errors import Unsupported
from adbench.model.operator import Operator


@dataclass(frozen=True)
class PreparedWork:
    """`run()` computes once in the library's types, and waits; `output(result)` makes the message's output."""

    run: Callable[[], Any]
    output: Callable[[Any], Any]


class Work(Protocol):
    """A function of a module at an input."""

    def prepare(self, backend: Backend) -> PreparedWork:
        """Bind the input in the backend's types. Raises Unsupported."""
        ...


def number_of(result: Any) -> float:
    """A scalar result for JSON."""
    return float(np.asarray(result))


@dataclass(frozen=True)
class CaseWork:
    """Operators of a case; by default its scalar value.

    inputs    in the order of the case and its C++ implementation
    output    (numpy result of each operator) -> the output of the answer
    vectors   of operators with a vector
    """

    case: Case
    inputs: Mapping[str, Any]
    operators: tuple[Operator, ...] = ("value",)
    output: Callable[..., Any] = number_of
    size: int = 1
    vectors: tuple[Any, ...] = ()

    def prepare(self, backend: Backend) -> PreparedWork:
        """See Work; missing operators are computed from others, as in a run."""
        names = tuple(self.inputs)
        wrt = tuple(names.index(name) for name in self.case.wrt)
        f = backend.function(self.case, names, self.size)
        calls = []
        for operator in self.operators:
            vectors = self.vectors if operator in ("jvp", "vjp", "hvp") else ()
            native = backend.native_inputs((*self.inputs.values(), *vectors))
            calls.append(clock.bind(_call(backend, operator, f, native, wrt), native, backend.sync))
        return PreparedWork(
            calls[0] if len(calls) == 1 else lambda: tuple(call() for call in calls),
            lambda result: self.output(*map(backend.numpy_result, result if len(calls) > 1 else (result,))),
        )


def _call(
    backend: Backend, operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    """The operator, or its fallback, also if the library refuses only in the call."""
    prepared = fallback.prepare(backend, operator, f, args, wrt)
    if prepared.how != fallback.NATIVE:
        return prepared.call
    chosen = prepared.call

    def call(*args: Any) -> Any:
        nonlocal chosen
        try:
            return chosen(*args)
        except (Unsupported, NotImplementedError) as refusal:
            if chosen is not prepared.call:
                raise
            chosen = fallback.OperatorRequest(backend, operator, f, args, wrt).instead(refusal).call
            return chosen(*args)

    return call


@cache
def library() -> discovery.Catalog:
    """The built-in cases."""
    return discovery.catalog()


def case(name: str, **changes: Any) -> Case:
    """A built-in case with changes for gradbench's function.

    With another `f` it gets another name, so that its C++ implementation and its gradient by hand are not used.
    """
    built_in = library().cases[name]
    return replace(built_in, name=f"gradbench_{name}" if "f" in changes else name, **changes)


@cache
def case_module(name: str) -> ModuleType:
    """The module of a built-in case, for its parts."""
    return discovery.load(library().case_sources[name])
