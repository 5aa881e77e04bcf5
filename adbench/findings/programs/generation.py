"""Random programs, drawn step by step at their point: each operand's value is known when the next step is chosen.

All randomness comes from `draw(n)`, a whole number below n: a seeded generator's for `adbench fuzz`, or Hypothesis's in
a test (`tests/findings`), so that both make the same programs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import numpy as np

from adbench.findings.conform.places import inside
from adbench.findings.operations.operation import REAL, Domain
from adbench.findings.programs.expressions import (
    DERIVATIVE,
    LOOP,
    STRUCTURAL,
    TOTAL,
    Expression,
    inner,
    parameters,
    table,
)
from adbench.findings.programs.random_program import Input, Program, Step, compiled
from adbench.model.errors import AdbenchError
from adbench.model.namespace import PLAIN

Draw = Callable[[int], int]

SHAPES = ((), (), (3,), (3,), (2,), (1,), (2, 3), (3, 3), (3, 3), (2, 2), (2, 2), (3, 1), (1, 3), (4,), (3, 2))
CONSTANTS = (0.5, 1.0, 2.0, 3.0, -1.0, 1.5)
"""One of them is an input that is not differentiated, for arguments in which libraries have no derivative."""
OPERANDS, CANDIDATES = 3, 8
"""So many operands are drawn, and so many expressions for them."""
SPECIAL = (0.0, 1.0, -1.0, 2.0, 0.5, -0.5)
MOST_STEPS = 30
MOST_ENDS = 3
"""Values that nothing uses and that are added at the end; others are left out."""
MOST_ENTRIES = 12
LARGEST = 1e4
"""Of a value in a program. Larger ones soon overflow in a derivative."""
TRIES = 12


@dataclass
class Coverage:
    """How often an operation has been applied to the result of another one.

    without   names of operations that are not drawn, because no library has them
    """

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    without: frozenset[str] = frozenset()

    @cached_property
    def table(self) -> tuple[Expression, ...]:
        """The operations of the table that are drawn."""
        return tuple(one for one in table() if one.name not in self.without)

    def add(self, program: Program) -> None:
        """Count a program's pairs."""
        known = len(program.inputs)
        for step in program.steps:
            for operand in step.operands:
                before = program.steps[operand - known].name if operand >= known else "input"
                self.pairs[before, step.name] += 1


def drawn(draw: Draw, coverage: Coverage | None = None, steps: int | None = None) -> Program:
    """A scalar program with up to this many operations; by default 1 to 30 of them."""
    wanted = steps or 1 + draw(MOST_STEPS)
    growing = _Growing(draw, coverage or Coverage())
    while growing.size < wanted - 1 - len(growing.unused):
        growing.grow()
    if not growing.steps:
        growing.grow()
    program = growing.finished()
    if not program.wrt:  # it depends on no input, as 0 · x
        return drawn(draw, coverage, steps)
    growing.coverage.add(program)
    return program


def programs(seed: int, without: Iterable[str] = ()) -> Callable[[], Program]:
    """A function that returns the next program of this seed, without these operations."""
    random, coverage = Random(seed), Coverage(without=frozenset(without))
    return lambda: drawn(random.randrange, coverage)


class _Growing:
    """A program under construction, with the value of each number."""

    def __init__(self, draw: Draw, coverage: Coverage) -> None:
        self.draw, self.coverage = draw, coverage
        start = coverage.table[draw(len(coverage.table))] if draw(2) else None
        constant = CONSTANTS[draw(len(CONSTANTS))]
        if start is None:
            self.inputs = [self._input() for _ in range(1 + draw(3))]
        else:  # at random, its arguments would hardly meet
            arguments = self._arguments(start)
            self.inputs = [Input.of(x) for x, domain in zip(arguments, start.domain, strict=True) if domain.active]
            fixed = [x for x, domain in zip(arguments, start.domain, strict=True) if not domain.active]
            constant = fixed[0] if fixed else constant
        self.constant = len(self.inputs)
        self.inputs.append(Input.of(constant, active=False))
        self.steps: list[Step] = []
        self.values: list[Any] = []
        for one in self.inputs:
            self._add(np.asarray(one.native))
        self.unused = set(range(self.constant))
        if start is not None:
            numbers = iter(range(self.constant))
            self._accepted(self._step(start, [next(numbers) if one.active else self.constant for one in start.domain]))

    def _arguments(self, one: Expression) -> list[Any]:
        """Arguments in the domain of an operation, with four decimals where they stay inside."""
        rng = np.random.default_rng(self.draw(2**31))
        lengths = {name: 2 + self.draw(2) for name in "knm"}
        arguments = []
        for axes, domain in zip(one.axes, one.domain, strict=True):
            exact = inside(domain.moderate, tuple(lengths.get(name) or int(name) for name in axes), rng)
            short = np.round(exact, 4)
            arguments.append(short if domain.contains(np.min(short)) and domain.contains(np.max(short)) else exact)
        return arguments

    def grow(self) -> None:
        """Add a step, or an operation on the first input if nothing else works."""
        kind = self.draw(20)
        for _ in range(TRIES):
            step = self._with_body(LOOP) if kind == 0 else self._with_body(DERIVATIVE) if kind == 1 else self._plain()
            if step is not None and self._accepted(step):
                return
            kind = 2
        assert self._accepted(Step("tanh", "xp.tanh({0})", (0,)))

    @property
    def size(self) -> int:
        """The number of operations so far."""
        return sum(len(step.operations) for step in self.steps)

    def finished(self) -> Program:
        """Join the last values that nothing uses into one number."""
        rest = [number for number in sorted(self.unused) if number >= len(self.inputs)][-MOST_ENDS:]
        total = rest.pop()
        if np.ndim(self.values[total]):
            total = self._added(Step("sum", TOTAL, (total,)))
        for number in rest:
            part = self._added(Step("sum", TOTAL, (number,))) if np.ndim(self.values[number]) else number
            total = self._added(Step("add", "{0} + {1}", (total, part)))
        return Program(tuple(self.inputs), tuple(self.steps)).pruned()

    def _added(self, step: Step) -> int:
        assert self._accepted(step, largest=np.inf)
        return len(self.values) - 1

    def _plain(self) -> Step | None:
        drawn = [self._operand() for _ in range(OPERANDS)]
        some = self.coverage.table if self.draw(3) else STRUCTURAL
        fitting: dict[Expression, tuple[int, ...]] = {}
        for _ in range(CANDIDATES):
            one = some[self.draw(len(some))]
            if (operands := self._operands(one, drawn)) is not None:
                fitting[one] = operands
                if len(fitting) == 2:
                    break
        if not fitting:
            return None
        before = self._name(drawn[0])
        rarest = min(fitting, key=lambda one: self.coverage.pairs[before, one.name])
        return self._step(rarest, fitting[rarest])

    def _operands(self, one: Expression, drawn: Sequence[int]) -> tuple[int, ...] | None:
        """Operands in its domain that fit: those drawn, or the first of these several times; else None."""
        domains = one.domain[: one.arity]
        for numbers in (drawn, drawn[:1]) if one.arity > 1 else (drawn,):
            cycle = itertools.cycle(numbers)
            operands = tuple([next(cycle) if domain.active else self.constant for domain in domains])
            if one.fits(*map(self._shape, operands)) and all(map(self._is_inside, domains, operands)):
                return operands
        return None

    def _is_inside(self, domain: Domain, number: int) -> bool:
        value = self.values[number]
        return domain is REAL or (domain.contains(np.min(value)) and domain.contains(np.max(value)))

    def _step(self, chosen: Expression, operands: Sequence[int], shapes: Sequence[Any] = ()) -> Step:
        """A step of this expression, with drawn parameters."""
        text = chosen.text
        shapes = shapes or [*map(self._shape, operands)]
        for name, choices in parameters(text, shapes).items():
            text = text.replace(f"{{{name}}}", choices[self.draw(len(choices))])
        return Step(chosen.name, text, tuple(operands), (), chosen.definition, chosen.own)

    def _with_body(self, text: str) -> Step:
        """A loop or an inner derivative of a few operations, which may use the values so far."""
        over = self._operand()
        known, shape = len(self.values), self._shape(over)
        body: list[Step] = []
        for _ in range(1 + self.draw(3)):
            chosen = inner()[self.draw(len(inner()))]
            first = known + len(body)
            others = [k for k in range(known) if self._shape(k) in ((), shape)] + [known]
            second = others[self.draw(len(others))]
            body.append(self._step(chosen, (first, second)[: chosen.arity], [shape]))
        name = "loop" if text is LOOP else "derivative"
        return Step(name, text.replace("{n}", "3"), (over,), tuple(body))

    def _accepted(self, step: Step, largest: float = LARGEST) -> bool:
        """Add the step if its value exists, is real, and is of moderate size."""
        try:
            with np.errstate(all="ignore"):
                value = value_of_step(step, self.values)
            shape = np.shape(value)
            array = np.asarray(value, dtype=np.float64)
        except (ArithmeticError, ValueError, TypeError, IndexError, np.linalg.LinAlgError, AdbenchError, ImportError):
            return False
        if not array.size or array.size > MOST_ENTRIES or len(shape) > 2:
            return False
        if not np.isfinite(array).all() or np.abs(array).max() > largest:
            return False
        if step.name == "loop" and shape != np.shape(self.values[step.operands[0]]):
            return False
        self.steps.append(step)
        self._add(array)
        self.unused -= {number for number in step.used if number < len(self.values)}
        self.unused.add(len(self.values) - 1)
        return True

    def _add(self, array: Any) -> None:
        self.values.append(array if array.ndim else float(array))

    def _shape(self, number: int) -> tuple[int, ...]:
        return np.shape(self.values[number])

    def _operand(self) -> int:
        """A number: one not used yet, or a recent one, or any."""
        kind, count = self.draw(4), len(self.values)
        if kind <= 1 and self.unused:
            rest = sorted(self.unused)
            return rest[self.draw(len(rest))]
        number = self.draw(count) if kind == 2 else count - 1 - min(self.draw(count), self.draw(count))
        return 0 if number == self.constant else number

    def _name(self, number: int) -> str:
        return self.steps[number - len(self.inputs)].name if number >= len(self.inputs) else "input"

    def _input(self) -> Input:
        shape = SHAPES[self.draw(len(SHAPES))]
        kind = self.draw(8)
        size = int(np.prod(shape, dtype=int))
        if kind == 0:  # all equal: ties
            values = [self._number()] * size
        elif kind == 1:  # special points
            values = [SPECIAL[self.draw(len(SPECIAL))] for _ in range(size)]
        else:
            values = [self._number() for _ in range(size)]
        return Input.of(np.reshape(np.array(values), shape))

    def _number(self) -> float:
        """Between -3 and 3, with four decimals."""
        return (self.draw(60_001) - 30_000) / 10_000


def value_of_step(step: Step, values: Sequence[Any]) -> Any:
    """The step's value on numpy."""
    operands = [k for k in sorted(step.used) if k < len(values)]
    new = {old: k for k, old in enumerate(operands)}
    moved = step.moved(len(values), len(operands), new)
    inputs = tuple(Input(0.0) for _ in operands)
    f = compiled(Program(inputs, (moved,)).source())
    return f(PLAIN, *[values[k] for k in operands])


def nan_reaches(program: Program) -> bool:
    """Whether the value on numpy is NaN. That of an inner derivative does not count: numpy's, by a complex step, is NaN
    also for a linear function, whose slope does not read the input."""
    if any(step.expression == DERIVATIVE for step in program.steps):
        return False
    values = values_of(program)
    return values is not None and bool(np.isnan(values[-1]).all())


def with_nan(program: Program, rng: np.random.Generator) -> Program:
    """The program with a NaN in an entry of an active input, if that reaches the value on numpy; else as it is."""
    which = int(rng.choice(program.wrt))
    array = np.array(program.inputs[which].native)
    if not array.size:
        return program
    array.flat[rng.integers(array.size)] = np.nan
    changed = program.with_input(which, Input.of(array))
    return changed if nan_reaches(changed) else program


def values_of(program: Program) -> list[Any] | None:
    """Every value in numpy, by number; None if it does not run."""
    lines = program.source().splitlines()
    names = [*program.names, *(f"v{len(program.inputs) + k}" for k in range(len(program.steps)))]
    lines[-1] = f"    return [{', '.join(names)}]"
    try:
        with np.errstate(all="ignore"):
            values: list[Any] = compiled("\n".join(lines) + "\n")(PLAIN, *program.args)
    except Exception:  # a library's own function has no meaning here
        return None
    return values


def evaluated(program: Program) -> Iterator[tuple[Step, list[Any], Any]]:
    """Each step with its operands and its value in numpy; nothing if the program does not run."""
    values = values_of(program) or []
    for step, value in zip(program.steps, values[len(program.inputs) :], strict=False):
        yield step, [np.asarray(values[number]) for number in step.operands], np.asarray(value)
