"""Show a compiled recording as text: its operations, its guards, and the code.

    print(listing(f, 1.3, 0.5, 1.2))

The function is recorded, lowered and optimised as in `compile`, but not run. Operations are called v1, v2, … in the
order of the recording. Unused operations have no line, so some numbers are missing. The function's operations come
first, then those of its sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from adbench.tape.compiled.lowering.module import lower
from adbench.tape.compiled.runtime.arguments import FlatArguments
from adbench.tape.compiled.runtime.compiled_call import Compiled
from adbench.tape.compiled.runtime.program import CompileOptions, default_level
from adbench.tape.compiled.trace.loop_rule import live
from adbench.tape.compiled.trace.record_function import record
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.rule import TapeError, Value
from adbench.tape.explain.explanation import _parameter_names, labels_of
from adbench.tape.explain.notation import aligned, text_of, written
from adbench.tape.levels import NotCompilableError
from adbench.tape.machine.llvm import optimised

LONGEST = 80
"""The most characters of an expanded guard; a longer guard names operations instead."""
DEPTHS = (4, 3, 2, 1)


@dataclass(frozen=True)
class Listing:
    """The operations and the code of a compiled function.

    operations   (name, formula) of each recorded operation that is used
    guards       conditions under which the recording is valid, such as "y > 0 is True"
    results      names of the value's parts, then of the gradient's; for a constant, its text
    python       operations without native code, which call Python
    llvm         LLVM's intermediate representation, optimised
    assembly     the same in this processor's instructions
    eager        the reason why the eager engine runs the function (the rest is then empty); "" if compiled
    """

    operations: tuple[tuple[str, str], ...] = ()
    guards: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    llvm: str = ""
    assembly: str = ""
    eager: str = ""

    def __str__(self) -> str:
        if self.eager:
            return f"runs in the eager engine: {self.eager}"
        rows = [("var", "operation"), *self.operations]
        guards = "\n".join(self.guards) or "none: one recording for every point"
        return f"{aligned(rows)}\n\nGuards\n\n{guards}\n\nCode\n\n{self.assembly}"


def listing(f: Callable[..., Any], *example: Any, names: Sequence[str] | None = None, wrt: Any = None) -> Listing:
    """The operations and the code of `compile(f, *example)` for value and gradient.

    names   of the arguments; by default the names of f's parameters
    wrt     positions of the arguments to differentiate in, as in `compile`
    """
    call = Compiled(f, example, "value_and_gradient", wrt, CompileOptions())
    arguments = FlatArguments(call, example)
    names = _parameter_names(f, len(example)) if names is None else names
    try:
        recording = record(call.request(arguments), careful=False)
    except NotCompilableError as reason:
        return Listing(eager=str(reason))
    except TapeError as reason:
        return Listing(eager=f"{type(reason).__name__}: {reason}")
    level = default_level(recording)
    lowered = lower(recording, level=level)
    codes = [optimised(module.text(), level=level) for module in lowered.modules]
    outputs = [*recording.value, *recording.parts]
    writer = _TraceWriter(recording.trace, _input_names(recording.inputs, arguments, example, names))
    return Listing(
        tuple(writer.lines([*outputs, *(symbol for symbol, _ in recording.guards)])),
        tuple(f"{writer.whole(symbol)} is {outcome}" for symbol, outcome in recording.guards),
        tuple(map(writer.name, outputs)),
        lowered.python_calls,
        "\n".join(llvm for llvm, _ in codes),
        "\n".join(assembly for _, assembly in codes),
    )


def _input_names(
    inputs: Sequence[Symbol], arguments: FlatArguments, example: Sequence[Any], names: Sequence[str]
) -> dict[int, str]:
    """Record of an input -> its name."""
    slots = [slot for _, of_argument in arguments.rebuilds for slot in of_argument]
    pairs = zip(slots, labels_of(tuple(example), names), strict=True)
    return {inputs[slot].number: label for slot, label in pairs if isinstance(slot, int)}


class _TraceWriter:
    """Writes the operations of a trace as text."""

    def __init__(self, trace: Trace, inputs: dict[int, str]) -> None:
        self.trace, self.inputs = trace, inputs

    def name(self, value: Value) -> str:
        """v7 for the seventh record; for a constant, its text."""
        return f"v{value.number + 1}" if isinstance(value, Symbol) and value.tape is self.trace else text_of(value)

    def operation(self, number: int, called: Callable[[Value], str]) -> str:
        """The text of a record's operation; `called` gives its operands' names."""
        operation = made_by(self.trace[number])
        if operation is None:
            return self.inputs.get(number) or "input"
        rule, inputs, params = operation
        operands = list(map(called, inputs))
        if rule.name in COMPARISONS and len(operands) == 2:
            return f"{operands[0]} {COMPARISONS[rule.name]} {operands[1]}"
        return written(rule, operands, params)

    def lines(self, outputs: Sequence[Value]) -> list[tuple[str, str]]:
        """The operations that these values need, in order."""
        return [(f"v{n + 1}", self.operation(n, self.name)) for n in sorted(live(self.trace, outputs))]

    def whole(self, symbol: Symbol) -> str:
        """A guard's formula, expanded as far as it stays short."""
        return next(filter(lambda text: len(text) <= LONGEST, map(partial(self._deep, symbol), DEPTHS)), "") or (
            self._deep(symbol, 0)
        )

    def _deep(self, value: Value, depth: int) -> str:
        """A value's formula, expanded to this depth, with names below it."""
        if not isinstance(value, Symbol) or value.tape is not self.trace:
            return text_of(value)

        def below(x: Value) -> str:
            if depth == 0 and not (isinstance(x, Symbol) and x.number in self.inputs):
                return self.name(x)
            text = self._deep(x, max(depth - 1, 0))
            return f"({text})" if " " in text else text

        return self.operation(value.number, below)


COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
