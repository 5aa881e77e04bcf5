"""A program: inputs at a point, and steps that compute. It is data, and becomes Python source for any library.

    Program((Input(2.0), Input((1.0, 3.0))), (Step("sin", "xp.sin({0})", (0,)), Step("product", "{0} * {1}", (2, 1))))

is

    def f(xp, x0, x1):
        v2 = xp.sin(x0)
        v3 = v2 * x1
        return v3

Values are numbered: the inputs, then the steps. A step names its operands by these numbers, so that a program shares
subexpressions and can be cut anywhere. Its value is that of the last step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

Numbers = float | tuple[Any, ...]
"""A float, or nested tuples of floats: an array. One with an empty axis also needs its shape."""

PLACE = re.compile(r"\{(\d+)\}")
INDENT = "    "


@dataclass(frozen=True)
class Input:
    """An input and its value at the point.

    shape    of an array; needed only if it has an empty axis
    active   whether the program is differentiated in it
    """

    value: Numbers
    active: bool = True
    shape: tuple[int, ...] | None = None

    @property
    def native(self) -> Any:
        """A float, or a float64 array."""
        array = np.array(self.value, dtype=np.float64)
        if self.shape is not None:
            array = array.reshape(self.shape)
        return array if array.ndim else float(array)

    @staticmethod
    def of(value: Any, *, active: bool = True) -> Input:
        """The input with this value: a number or an array."""
        array = np.asarray(value, dtype=np.float64)
        return Input(_nested(array.tolist()), active, array.shape if array.size == 0 else None)

    def at(self, value: Any) -> Input:
        """This input with another value."""
        return Input.of(value, active=self.active)


def _nested(value: Any) -> Numbers:
    return tuple(map(_nested, value)) if isinstance(value, list) else float(value)


@dataclass(frozen=True)
class Step:
    """One operation.

    name         of the operation, for counting and comparing: "sin"
    expression   in `xp`, with {0}, {1} for the operands: "xp.sum({0}, axis=0)". {body} is a function of one argument,
                 whose steps are in `body`
    operands     the numbers of earlier values
    body         steps of the inner function, for a loop or an inner derivative. They may use every value before this
                 step; the next number is the inner function's argument, the following ones are the body's steps
    definition   source of functions that the expression calls: "def gelu(xp, x): ..."
    own          library -> its own expression for the same, as "torch.nn.functional.gelu({0})". Its module is imported
    """

    name: str
    expression: str
    operands: tuple[int, ...]
    body: tuple[Step, ...] = ()
    definition: str = ""
    own: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def used(self) -> frozenset[int]:
        """The numbers that it or its body uses; some may be the body's own."""
        return frozenset(self.operands).union(*(step.used for step in self.body))

    def renumbered(self, number: Callable[[int], int]) -> Step:
        """This step with other numbers for values."""
        body = tuple(step.renumbered(number) for step in self.body)
        return replace(self, operands=tuple(map(number, self.operands)), body=body)

    def moved(self, old: int, here: int, new: Mapping[int, int]) -> Step:
        """The step `old` as the step `here`, with new numbers for earlier values; those of its body move along."""
        return self.renumbered(lambda used: new[used] if used < old else used - old + here)

    @property
    def operations(self) -> tuple[str, ...]:
        """Its name, and those in its body."""
        return (self.name, *(name for step in self.body for name in step.operations))


@dataclass(frozen=True)
class Program:
    """Inputs at a point, and steps."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs' names."""
        return tuple(f"x{k}" for k in range(len(self.inputs)))

    @property
    def args(self) -> tuple[Any, ...]:
        """The point: floats and float64 arrays."""
        return tuple(one.native for one in self.inputs)

    @property
    def wrt(self) -> tuple[int, ...]:
        """The positions of the active inputs."""
        return tuple(k for k, one in enumerate(self.inputs) if one.active)

    @property
    def has_nan(self) -> bool:
        """Whether an input holds a NaN."""
        return any(np.isnan(one).any() for one in self.args)

    @property
    def operations(self) -> tuple[str, ...]:
        """The names of all operations, also of inner functions."""
        return tuple(name for step in self.steps for name in step.operations)

    @property
    def size(self) -> int:
        """The number of operations."""
        return len(self.operations)

    def source(self, library: str = "", *, name: str = "f") -> str:
        """``def f(xp, x0, x1)`` as Python text; with a library's own expressions where a step has one."""
        head = "".join(f"{text.strip()}\n\n\n" for text in dict.fromkeys(_definitions(self.steps, library)))
        lines = [f"def {name}({', '.join(('xp', *self.names))}):"]
        values = [*self.names]
        for step in self.steps:
            lines += _lines(step, values, library, 1)
        lines.append(f"{INDENT}return {values[-1]}")
        return head + "\n".join(lines) + "\n"

    def function(self) -> Callable[..., Any]:
        """f(xp, *inputs)."""
        return compiled(self.source())

    def pruned(self) -> Program:
        """This program without the steps and inputs that do not affect its value."""
        needed = {len(self.inputs) + len(self.steps) - 1}
        for number in range(len(self.inputs) + len(self.steps) - 1, len(self.inputs) - 1, -1):
            if number in needed:
                needed |= {used for used in self.steps[number - len(self.inputs)].used if used < number}
        kept = sorted(needed)
        new = {old: k for k, old in enumerate(kept)}
        inputs = tuple(self.inputs[old] for old in kept if old < len(self.inputs))
        steps = []
        for old in kept:
            if old >= len(self.inputs):
                steps.append(self.steps[old - len(self.inputs)].moved(old, new[old], new))
        return Program(inputs, tuple(steps))

    def with_input(self, k: int, one: Input) -> Program:
        """This program with another input in a place."""
        return replace(self, inputs=(*self.inputs[:k], one, *self.inputs[k + 1 :]))


def _definitions(steps: Sequence[Step], library: str) -> list[str]:
    definitions = []
    for step in steps:
        if step.definition and library not in step.own:
            definitions.append(step.definition)
        definitions += _definitions(step.body, library)
    return definitions


def _lines(step: Step, values: list[str], library: str, depth: int) -> list[str]:
    """The lines of a step. Appends the name of its value to `values`."""
    lines, names = [], [values[k] for k in step.operands]
    number = len(values)
    if step.body:
        inner, function = [*values, f"y{number}"], f"g{number}"
        lines.append(f"{INDENT * depth}def {function}(y{number}):")
        for part in step.body:
            lines += _lines(part, inner, library, depth + 1)
        lines.append(f"{INDENT * (depth + 1)}return {inner[-1]}")
    else:
        function = ""
    value = f"v{number}" if depth == 1 else f"w{number}" + "_" * (depth - 2)
    text = step.own.get(library, step.expression).replace("{body}", function)
    lines.append(f"{INDENT * depth}{value} = {PLACE.sub(lambda match: names[int(match[1])], text)}")
    values.append(value)
    return lines


@cache
def _code(source: str) -> Any:
    return compile(source, "<program>", "exec")


def compiled(source: str) -> Callable[..., Any]:
    """The function f of a program's source."""
    scope: dict[str, Any] = {"numpy": np}
    exec(_code(source), scope)
    f: Callable[..., Any] = scope["f"]
    return f
