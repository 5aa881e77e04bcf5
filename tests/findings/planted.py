"""A library with a wrong rule: the tape, with one function whose derivatives are too large and whose value is right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adbench import Namespace, tape
from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.findings.programs import program_worker
from adbench.findings.programs.laboratory import Laboratory
from adbench.model.backend import Backend, from_module


def backend(name: str) -> Backend:
    return from_module(name, load(resolve(backends=[name]).catalog.backends[name]))


def constant(y: Any) -> Any:
    while isinstance(y, tape.Active):
        y = tape.value_of(y)
    return y


def too_large(right: Callable[..., Any], error: float) -> Callable[..., Any]:
    def wrong(*args: Any, **more: Any) -> Any:
        y = right(*args, **more)
        return y + error * (y - constant(y))

    return wrong


def planted(name: str, error: float) -> Backend:
    """The tape with this relative error in the derivatives of a function of its namespace."""
    xp = Namespace(tape, linalg=vars(tape.linalg), derivative=lambda g, x: tape.gradient(g, x)[1])
    home, _, function = name.rpartition(".")
    where = xp.linalg if home else xp
    setattr(where, function, too_large(getattr(where, function), error))
    return replace(backend("tape"), name="planted", xp=xp)


@dataclass
class InThisProcess:
    """A library, or the judge, in this process, where nothing crashes."""

    function: Callable[[Any, Mapping[str, Any]], Any]
    backend: Backend | None = None

    def ask(self, request: Mapping[str, Any], timeout: float) -> Any:
        return self.function(self.backend, request)


def laboratory(*libraries: Backend) -> Laboratory:
    """These libraries and the judge in this process."""
    asked = {one.name: InThisProcess(program_worker.answer, one) for one in libraries}
    return Laboratory(asked, InThisProcess(program_worker.judge))
