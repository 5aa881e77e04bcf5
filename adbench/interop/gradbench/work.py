"""What a message asks of a backend: operators of a case at the message's input, called together in each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, Protocol

from adbench.catalog import discovery
from adbench.execution.operators import fallback
from adbench.measure import clock
from adbench.model.backend import Backend
from adbench.model.case import Case
from adbench.model.errors import Unsupported
from adbench.model.operator import Operator


@dataclass(frozen=True)
class Prepared:
    """`run()` computes once, waited for, in the library's own numbers; `output(result)` makes the message's of it."""

    run: Callable[[], Any]
    output: Callable[[Any], Any]


class Work(Protocol):
    """A function of a module at an input."""

    def prepare(self, backend: Backend) -> Prepared:
        """Bind the input to the backend's own numbers. Raises Unsupported."""
        ...


@dataclass(frozen=True)
class OfCase:
    """Operators of a case.

    inputs    in the order of the case's own, as its twin has them
    output    (numpy result of each operator) -> what the message is answered with
    vectors   of the operators that take one
    """

    case: Case
    inputs: Mapping[str, Any]
    operators: tuple[Operator, ...]
    output: Callable[..., Any]
    size: int = 1
    vectors: tuple[Any, ...] = ()

    def prepare(self, backend: Backend) -> Prepared:
        """As Work says; what the library lacks is made from what it has, as the suite does."""
        names = tuple(self.inputs)
        wrt = tuple(names.index(name) for name in self.case.wrt)
        f = backend.function(self.case, names, self.size)
        calls = []
        for operator in self.operators:
            vectors = self.vectors if operator in ("jvp", "vjp", "hvp") else ()
            native = backend.native_inputs((*self.inputs.values(), *vectors))
            calls.append(clock.bind(_call(backend, operator, f, native, wrt), native, backend.sync))
        return Prepared(
            calls[0] if len(calls) == 1 else lambda: tuple(call() for call in calls),
            lambda result: self.output(*map(backend.numpy_result, result if len(calls) > 1 else (result,))),
        )


def _call(
    backend: Backend, operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    """The operator, or its fallback; also where the library finds out in the call that it lacks it."""
    made = fallback.prepare(backend, operator, f, args, wrt)
    if made.how != fallback.NATIVE:
        return made.call
    chosen = made.call

    def call(*args: Any) -> Any:
        nonlocal chosen
        try:
            return chosen(*args)
        except (Unsupported, NotImplementedError) as refusal:
            if chosen is not made.call:
                raise
            chosen = fallback.instead(backend, operator, f, args, wrt, refusal).call
            return chosen(*args)

    return call


@cache
def library() -> discovery.Catalog:
    """The cases that ship."""
    return discovery.catalog()


def case(name: str, **changes: Any) -> Case:
    """A case that ships, with the changes that gradbench's function needs.

    Where its `f` is another, so is its name: then it is not the twin, nor a gradient by hand, that is called.
    """
    found = library().cases[name]
    return replace(found, name=f"gradbench_{name}" if "f" in changes else name, **changes)


def text(name: str) -> ModuleType:
    """The file of a case that ships, for its parts."""
    return discovery.load(library().case_sources[name])
