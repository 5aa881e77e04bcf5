"""A program in any language as a backend: it computes each operator of each case, by this folder's protocol.

The program times its runs itself; its memory is measured from outside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from adbench.interop.child_process import Child, Failed, words
from adbench.interop.line_protocol import Malformed
from adbench.interop.process.exchange import LARGE, BadValue, Exchange
from adbench.measure import phases
from adbench.measure.readings import Figure
from adbench.model import tree
from adbench.model.errors import Unsupported
from adbench.model.operator import definition

PROTOCOL = 1
SCHEMA = Path(__file__).with_name("protocol.schema.json")


class ProgramSession(Child):
    """A session with a program."""

    def __init__(self, command: str, folder: str, large: int) -> None:
        super().__init__(command, folder)
        self._large = large

    @cached_property
    def exchange(self) -> Exchange:
        """The folder for large arrays, created on first use."""
        return Exchange(self._large)

    def request(self, answer: str, **request: Any) -> dict[str, Any]:
        """The answer to a request, checked against the schema's definition `answer`.

        Raises Unsupported or Failed, with the program's reason if it gives one.
        """
        if self.pid is None:
            self._begin()
        try:
            return self._asked(answer, request)
        except BaseException:
            self.exchange.clear()  # no answer names a file
            raise

    def _begin(self) -> None:
        more = {"protocol": PROTOCOL, "folder": str(self.exchange.folder), "large": self.exchange.large}
        answer = self._asked("hello_answer", {"do": "hello", **more})
        if answer["protocol"] != PROTOCOL:
            self.lost("is ended")
            raise Failed(f"the program has protocol version {answer['protocol']}; this adbench needs {PROTOCOL}")

    def _asked(self, definition: str, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.ask(
            lambda number: json.dumps({"id": number, **request}, allow_nan=False),
            partial(_answer, definition),
            lambda answer: answer.get("id"),
        )
        for refusal, kind in (("unsupported", Unsupported), ("failed", Failed)):
            if refusal in answer:
                raise kind(words(answer[refusal]) or "no reason given")
        return answer


class ProgramCall:
    """An operator that the program has prepared."""

    def __init__(
        self, program: ProgramSession, asked: Mapping[str, Any], operator: str, names: tuple[str, ...]
    ) -> None:
        self._program, self._asked, self._operator, self._names = program, asked, operator, names
        self._prepared: tuple[int | None, int] | None = None
        self._wrt = tuple(names.index(name) for name in asked["wrt"])

    def prepare(self, args: tuple[Any, ...]) -> None:
        """Let the program prepare, and record its phases."""
        answer = self._program.request("prepare_answer", do="prepare", **self._asked, **self._given(args))
        self._program.exchange.clear()
        self._prepared = self._program.pid, answer["id"]
        for name, seconds in answer["phases"].items():
            phases.add(name, float(seconds))

    def __call__(self, *args: Any) -> Any:
        """The result of one run, in the operator's structure."""
        answer = self._run(args, 1, 0.0)
        try:
            result = self._program.exchange.decoded(answer["result"])
        except BadValue as error:
            raise Failed(str(error)) from error
        finally:
            self._program.exchange.clear()
        return structured(self._operator, result, tuple(args[i] for i in self._wrt))

    def runs(self, args: tuple[Any, ...], least: int, seconds: float) -> list[int]:
        """See RemoteCall."""
        answer = self._run(args, least, seconds)
        self._program.exchange.clear()
        return list(answer["nanoseconds"])

    def resident_peak(self, args: tuple[Any, ...]) -> Figure:
        """See RemoteCall; includes the program's reading of the request."""
        return self._program.resident_peak(lambda: self.runs(args, 1, 0.0))

    def _run(self, args: tuple[Any, ...], least: int, seconds: float) -> dict[str, Any]:
        if self._prepared is None or self._prepared[0] != self._program.pid:  # lost meanwhile; a new one has none
            self.prepare(args)
        assert self._prepared is not None
        more = {"prepared": self._prepared[1], "runs": least, "seconds": seconds}
        return self._program.request("call_answer", do="call", **self._given(args), **more)

    def _given(self, args: tuple[Any, ...]) -> dict[str, Any]:
        encoded = self._program.exchange.encoded
        fields = {"inputs": {name: encoded(arg) for name, arg in zip(self._names, args, strict=False)}}
        return fields | ({"vector": encoded(args[-1])} if definition(self._operator).vector else {})


def driven(command: str, folder: str, large: int = LARGE) -> Callable[..., Any]:
    """`prepare` of a backend that is a program, started by a command in a folder."""
    program = ProgramSession(command, folder, large)

    def prepare(operator: str, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> ProgramCall:
        case, names = getattr(f, "case", None), getattr(f, "names", ())
        if case is None:
            raise Unsupported("another program identifies cases by name; this function has no case")
        asked = {"case": case.name, "operator": operator}
        call = ProgramCall(program, asked | {"wrt": [names[i] for i in wrt]}, operator, names)
        call.prepare(args)
        return call

    return prepare


def structured(operator: str, result: Any, x: tuple[Any, ...]) -> Any:
    """The arrays of a result in the structure of the active inputs x. Raises Failed if their number is wrong."""
    arrays = tree.leaves(result)
    n = len(tree.leaves(x))

    result = definition(operator).result
    needed = {"value": 1, "pair": 1 + n, "hessian": n * n}.get(result, n)
    if len(arrays) != needed:
        raise Failed(f"the program's {operator} has {len(arrays)} arrays; expected {needed}")
    if result == "value":
        return arrays[0]
    if result == "pair":
        return arrays[0], tree.filled(x, arrays[1:])
    if result == "hessian":
        return tree.filled(x, [tree.filled(x, arrays[k : k + n]) for k in range(0, n * n, n)])
    return tree.filled(x, arrays)


def _answer(definition: str, line: bytes) -> dict[str, Any]:
    """Parse an answer: of the schema's definition, or a refusal. Raises Malformed for anything else."""
    import fastjsonschema

    try:
        answer: dict[str, Any] = json.loads(line)
        is_refusal = isinstance(answer, dict) and ("unsupported" in answer or "failed" in answer)
        _validator("refusal" if is_refusal else definition)(answer)
    except fastjsonschema.JsonSchemaValueException as error:
        part = str(error.name).removeprefix("data").lstrip(".")
        raise Malformed(None, f"{part or 'the answer'} violates the rule {error.rule}") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(None, "not JSON") from error
    return answer


@cache
def _validator(definition: str) -> Callable[[Any], Any]:
    import fastjsonschema

    rules = json.loads(SCHEMA.read_text("utf-8"))
    part = {"$ref": f"#/definitions/{definition}", "definitions": rules["definitions"]}
    compiled: Callable[[Any], Any] = fastjsonschema.compile(part, use_default=False)
    return compiled
