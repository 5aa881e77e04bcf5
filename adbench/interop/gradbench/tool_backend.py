"""A gradbench tool as a backend of adbench: its functions replace the cases that gradbench has too.

The tool computes and times each run; adbench judges its answers. The tool's other timings become phases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adbench.interop.child_process import Child, Failed, words
from adbench.interop.gradbench.case_matching import MATCHES, Match
from adbench.interop.gradbench.messages import Define, Evaluate, Message, Response, Start, response, written
from adbench.measure import phases
from adbench.measure.readings import Figure
from adbench.model.errors import Unsupported


class Driver(Child):
    """A session with a tool."""

    def __init__(self, command: str, folder: str) -> None:
        super().__init__(command, folder)
        self._defined: dict[str, str | None] = {}  # module -> the refusal, or None

    def define(self, module: str) -> None:
        """Ask once whether the tool has the module. Raises Unsupported if not."""
        if self.pid is None:
            self._defined = {}
            self._ask(Start, "adbench")
        if module not in self._defined:
            answer = self._ask(Define, module)
            self._defined[module] = None if answer.success else words(answer.error) or "no reason given"
            for timing in answer.timings or ():
                phases.add(f"define {timing.name}", timing.nanoseconds * 1e-9)
        if (refusal := self._defined[module]) is not None:
            raise Unsupported(f"the tool has no {module}: {refusal}")

    def evaluate(self, module: str, function: str, data: Any) -> Response:
        """The tool's answer. Raises Failed if it reports a failure, or sends no output."""
        self.define(module)
        answer = self._ask(Evaluate, module, function, data)
        if not answer.success:
            raise Failed(f"the tool failed on {module} {function}: {words(answer.error) or 'no reason given'}")
        if answer.output is None:
            raise Failed(f"the tool's answer to {module} {function} has no output")
        return answer

    def _ask(self, kind: Callable[..., Message], *fields: Any) -> Response:
        return self.ask(lambda number: written(kind(number, *fields)), response, lambda found: found.id)


class ToolCall:
    """A function of the tool as a prepared call of an operator, timed by the tool."""

    def __init__(
        self, driver: Driver, match: Match, operator: str, names: tuple[str, ...], wrt: tuple[int, ...]
    ) -> None:
        self._driver, self._match = driver, match
        self._function, self._read = match.operators[operator]
        self._names, self._wrt = names, wrt

    def __call__(self, *args: Any) -> Any:
        """The result of one run."""
        answer = self._evaluate(args, 1, 0.0)
        for timing in answer.timings or ():
            if timing.name != "evaluate":
                phases.add(timing.name, timing.nanoseconds * 1e-9)
        inputs = dict(zip(self._names, args, strict=True))
        try:
            result = self._read(answer.output, inputs)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise Failed(f"the output of {self._match.module} has the wrong form: {error}") from error
        if not isinstance(result, dict):
            return result
        return tuple(result[self._names[i]] for i in self._wrt)

    def runs(self, args: tuple[Any, ...], least: int, seconds: float) -> list[int]:
        """See RemoteCall; from the tool's timings. Raises Failed if it sends none."""
        answer = self._evaluate(args, least, seconds)
        took = [int(timing.nanoseconds) for timing in answer.timings or () if timing.name == "evaluate"]
        if not took:
            raise Failed("the tool reports no time: its timings lack an entry `evaluate`")
        return took

    def resident_peak(self, args: tuple[Any, ...]) -> Figure:
        """See RemoteCall; includes the tool's reading of the message."""
        return self._driver.resident_peak(lambda: self._evaluate(args, 1, 0.0))

    def _evaluate(self, args: tuple[Any, ...], least: int, seconds: float) -> Response:
        data = self._match.input(dict(zip(self._names, args, strict=True)))
        return self._driver.evaluate(
            self._match.module, self._function, {**data, "min_runs": least, "min_seconds": seconds}
        )


def driven(command: str, folder: str) -> Callable[..., Any]:
    """`prepare` of a backend that is a tool, started by a command in a folder."""
    driver = Driver(command, folder)

    def prepare(operator: str, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> ToolCall:
        case, names = getattr(f, "case", None), getattr(f, "names", ())
        match = MATCHES.get(case.name) if case is not None else None
        if case is None or match is None:
            raise Unsupported(f"gradbench has no such function; it has {', '.join(MATCHES)}")
        if operator not in match.operators:
            raise Unsupported(f"gradbench's {match.module} has no {operator}")
        if operator != "value" and not {names[i] for i in wrt} <= set(case.wrt):
            raise Unsupported(f"gradbench's {match.module} has derivatives only in {', '.join(case.wrt)}")
        match.input(dict(zip(names, args, strict=True)))  # raises Unsupported for other inputs
        driver.define(match.module)
        return ToolCall(driver, match, operator, names, wrt)

    return prepare
