"""adbench as a gradbench tool: the protocol's loop around a backend."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter_ns

from adbench.catalog.discovery import first_line
from adbench.interop.gradbench.inputs import BadInput, runs
from adbench.interop.gradbench.messages import (
    Define,
    Evaluate,
    Message,
    Response,
    Start,
    Timing,
    message,
    written,
)
from adbench.interop.gradbench.modules import MODULES, GradbenchModule
from adbench.interop.gradbench.work import Work
from adbench.interop.line_protocol import MOST_BYTES, Malformed, TooLong, id_in, lines, own_pipes, write_line
from adbench.measure import phases
from adbench.model.backend import Backend
from adbench.model.errors import Unsupported, contained
from adbench.version import __version__


class Tool:
    """Answers messages with a backend, one after the other."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        backend.before_timing()

    def answered(self, line: bytes | TooLong) -> str:
        """The answer to any line."""
        try:
            if isinstance(line, TooLong):
                raise Malformed(id_in(line.head), f"a line of {line.length} bytes; the limit is {MOST_BYTES}")
            asked = message(line)
            response = self._answer(asked)
        except Malformed as fault:
            response = Response(fault.id, success=False, error=fault.reason)
        return written(response)

    def _answer(self, asked: Message) -> Response:
        match asked:
            case Start():
                config = {"adbench": __version__, "backend": self._backend.name}
                return Response(asked.id, tool=f"adbench {self._backend.name}", config=config)
            case Define():
                return self._guarded(asked.id, lambda: self._defined(asked))
            case Evaluate():
                return self._guarded(asked.id, lambda: self._evaluated(asked))
        return Response(asked.id)

    def _guarded(self, number: int, answer: Callable[[], Response]) -> Response:
        """The answer, or the reason for a failure, so that no exception of a library ends the session."""
        try:
            with contained():
                return answer()
        except (BadInput, Unsupported, NotImplementedError) as reason:
            return Response(number, success=False, error=first_line(reason))
        except Exception as error:  # a library may raise anything; the answer says what
            return Response(number, success=False, error=f"{type(error).__name__}: {first_line(error)}")

    def _defined(self, asked: Define) -> Response:
        """Try each function of the module on a small input, so that it is compiled now."""
        module, timings, refusals = _module(asked.module), [], []
        for name, work in module.functions.items():
            start = perf_counter_ns()
            tried = self._guarded(asked.id, lambda work=work: self._run(asked.id, work(module.sample), 1, 0.0))  # type: ignore[misc]  # mypy cannot type a lambda's default
            timings.append(Timing(name, perf_counter_ns() - start))
            if not tried.success:
                refusals.append(f"{name}: {tried.error}")
        if len(refusals) == len(module.functions):
            reasons = dict.fromkeys(text.partition(": ")[2] for text in refusals)
            raise Unsupported(f"{self._backend.name}: {'; '.join(reasons)}")
        return Response(asked.id, success=True, timings=tuple(timings))

    def _evaluated(self, asked: Evaluate) -> Response:
        module = _module(asked.module)
        if asked.function not in module.functions:
            there_are = ", ".join(module.functions)
            raise BadInput(f"{asked.module} has no function {asked.function[:80]!r}; use one of {there_are}")
        least, seconds = runs(asked.input)
        return self._run(asked.id, module.functions[asked.function](asked.input), least, seconds)

    def _run(self, number: int, work: Work, least: int, seconds: float) -> Response:
        """Prepare, and call until `least` finished runs took `seconds` together."""
        with phases.collecting() as parts:
            start = perf_counter_ns()
            prepared = work.prepare(self._backend)
            timings = [Timing("prepare", perf_counter_ns() - start)]
        timings += [Timing(name, round(took * 1e9)) for name, took in parts.items()]
        counted, together, result = 0, 0, None
        while counted < least or together < seconds * 1e9:
            del result
            start = perf_counter_ns()
            result = prepared.run()
            took = perf_counter_ns() - start
            timings.append(Timing("evaluate", took))
            counted, together = counted + 1, together + took
        output = prepared.output(result)
        try:
            json.dumps(output, allow_nan=False)
        except ValueError:
            raise Unsupported("the output is not finite, which JSON cannot express") from None
        return Response(number, success=True, output=output, timings=tuple(timings))


def _module(name: str) -> GradbenchModule:
    if name not in MODULES:
        raise BadInput(f"no module {name[:80]!r}; use one of {', '.join(MODULES)}")
    return MODULES[name]


def serve(load: Callable[[], Backend]) -> None:
    """Answer the messages from standard input on standard output, until either is closed.

    The backend is loaded after standard output is reserved for the protocol.
    """
    with own_pipes() as (incoming, outgoing):
        tool = Tool(load())
        try:
            for line in lines(incoming):
                write_line(outgoing, tool.answered(line))
        except BrokenPipeError:
            return
