"""The smallest program in which a fault stays: cut at computed values, then with fewer operations, numbers and digits.

The value of every step is known in numpy. So any step can become an input with that value, and any value the result:
of thirty operations the one at fault is found by halving, without following the path from the inputs.

    1  the result is an earlier value: the first half, the quarter, ... in which the fault stays
    2  steps become inputs with their values, the latest ones first in large blocks
    3  steps are left out: an operand takes their place; a loop or an inner derivative becomes its body
    4  inputs are made constant, and arrays smaller
    5  numbers become 0, 1, 2, or short decimals

Each change is kept if the program still has a fault of the same kind, and it is judged like the first one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from adbench.findings.finding import Finding
from adbench.findings.programs.expressions import TOTAL
from adbench.findings.programs.generation import values_of
from adbench.findings.programs.random_program import Input, Program, Step

SECONDS = 60.0
NICE = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0)

Fails = Callable[[Program], Finding | None]
"""The finding of a program if it has a fault of the same kind, else None."""


def shrunk(finding: Finding, fails: Fails, seconds: float = SECONDS) -> Finding:
    """The finding in the smallest program that could be found in this time."""
    return _Shrinking(finding, fails, time.monotonic() + seconds).result()


class _Shrinking:
    def __init__(self, finding: Finding, fails: Fails, deadline: float) -> None:
        self.best, self.fails, self.deadline = finding, fails, deadline
        self.tried: set[Program] = {finding.program}

    @property
    def program(self) -> Program:
        return self.best.program

    def result(self) -> Finding:
        """The smallest; runs the passes until none helps."""
        passes = (prefixes, cuts, omissions, unwrapped, constants, smaller_arrays, simpler_numbers)
        weight = None
        while weight != (weight := cost(self.program)) and time.monotonic() < self.deadline:
            for one in passes:
                self.repeat(one)
        return self.best

    def repeat(self, changes: Callable[[Program], Iterator[Program]]) -> None:
        """Apply a pass until none of its changes keeps the fault."""
        improved = True
        while improved and time.monotonic() < self.deadline:
            improved = any(self.keeps(candidate) for candidate in changes(self.program))

    def keeps(self, candidate: Program) -> bool:
        """Whether the fault stays in a smaller program, which then is the best."""
        if candidate in self.tried or not candidate.wrt or cost(candidate) >= cost(self.program):
            return False
        if time.monotonic() > self.deadline:
            return False
        self.tried.add(candidate)
        finding = self.fails(candidate)
        if finding is not None:
            self.best = replace(finding, origin=self.best.origin)
        return finding is not None


def cost(program: Program) -> tuple[int, ...]:
    """Operations, inputs, entries, digits: the order in which programs are small."""
    numbers = [float(x) for one in program.inputs for x in np.ravel(one.native)]
    entries = sum(max(1, np.size(one.native)) + np.ndim(one.native) for one in program.inputs)
    digits = sum(0 if x in NICE else len(repr(x)) + 1 for x in numbers) + sum(abs(x) > 1 for x in numbers)
    active = sum(one.active for one in program.inputs)
    constants = sum(step.expression.count(".") for step in program.steps)
    # A sum at the end only makes one number, so it counts less than an operation.
    return program.size, len(program.inputs), active, entries, digits, constants


def result(program: Program, number: int, shape: tuple[int, ...]) -> Program:
    """The program with this value as its result, summed if it is an array."""
    steps = program.steps[: max(0, number - len(program.inputs) + 1)]
    if shape:
        steps = (*steps, Step("sum", TOTAL, (number,)))
    elif number < len(program.inputs):
        steps = (Step("itself", "{0} + 0.0", (number,)),)
    return Program(program.inputs, steps).pruned()


def prefixes(program: Program) -> Iterator[Program]:
    """Earlier values as the result, short programs first."""
    values, known = values_of(program), len(program.inputs)
    if values is None:
        return
    for number in range(known, len(values) - 1):
        yield result(program, number, np.shape(values[number]))


def cuts(program: Program) -> Iterator[Program]:
    """Blocks of steps replaced by inputs with their values: all but the last few, then half as many, ... then one."""
    values, known, count = values_of(program), len(program.inputs), len(program.steps)
    if values is None:
        return
    block = count - 1
    while block:
        for start in range(0, count - 1, block):
            yield with_inputs(
                program, {known + k: values[known + k] for k in range(start, min(start + block, count - 1))}
            )
        block //= 2


def with_inputs(program: Program, values: dict[int, Any]) -> Program:
    """The program with new inputs instead of these steps; if they depend on no input, the new ones are constant."""
    known = len(program.inputs)
    moves = [one.active for one in program.inputs]
    for step in program.steps:
        moves.append(any(moves[k] for k in step.used if k < len(moves)))
    cut = sorted(values)
    inputs = [Input.of(values[number], active=moves[number]) for number in cut]
    new = {number: known + k for k, number in enumerate(cut)}
    for number in range(known + len(program.steps)):
        new.setdefault(number, number if number < known else 0)
    at = known + len(cut)
    steps = []
    for number in range(known, known + len(program.steps)):
        if number in values:
            continue
        steps.append(program.steps[number - known].moved(number, at, new))
        new[number] = at
        at += 1
    return Program((*program.inputs, *inputs), tuple(steps)).pruned()


def omissions(program: Program) -> Iterator[Program]:
    """One step left out, an operand of the same shape or any other in its place; the last ones first."""
    known = len(program.inputs)
    for k in reversed(range(len(program.steps))):
        for operand in dict.fromkeys(program.steps[k].operands):
            yield without(program, known + k, operand)


def without(program: Program, number: int, instead: int) -> Program:
    """The program without a step, whose place an earlier value takes."""
    known = len(program.inputs)
    if number == known + len(program.steps) - 1:
        values = values_of(program)
        return program if values is None else result(program, instead, np.shape(values[instead]))
    steps = [
        step.renumbered(lambda k: instead if k == number else k) if known + j > number else step
        for j, step in enumerate(program.steps)
    ]
    return Program(program.inputs, tuple(steps)).pruned()


def unwrapped(program: Program) -> Iterator[Program]:
    """A loop with fewer steps, or its body once; a body with fewer steps."""
    known = len(program.inputs)
    for k, step in enumerate(program.steps):
        if not step.body:
            continue
        number = known + k
        inline = [part.renumbered(partial(_inlined, number, step.operands[0])) for part in step.body]
        later = [one.renumbered(partial(_later, number, len(inline) - 1)) for one in program.steps[k + 1 :]]
        yield Program(program.inputs, (*program.steps[:k], *inline, *later)).pruned()
        for length in range(1, len(step.body)):
            shorter = replace(step, body=step.body[:length])
            yield Program(program.inputs, (*program.steps[:k], shorter, *program.steps[k + 1 :])).pruned()


def _inlined(number: int, operand: int, k: int) -> int:
    """The number of k when the body of the step `number` takes its place: its argument is the operand."""
    return operand if k == number else k - 1 if k > number else k


def _later(number: int, more: int, k: int) -> int:
    """The number of k after that many additional steps at `number`."""
    return k + more if k >= number else k


def constants(program: Program) -> Iterator[Program]:
    """One input fewer that is differentiated."""
    if len(program.wrt) > 1:
        for k in program.wrt:
            yield program.with_input(k, replace(program.inputs[k], active=False))


def smaller_arrays(program: Program) -> Iterator[Program]:
    """One input as a number, or along one axis shorter; then all inputs of a length together."""
    lengths = sorted({n for one in program.inputs for n in np.shape(one.native) if n > 1}, reverse=True)
    for length in lengths:
        for most in range(1, length):
            for keep in (slice(None, most), slice(length - most, None)):
                yield Program(tuple(_cropped(one, length, keep) for one in program.inputs), program.steps)
    for k, one in enumerate(program.inputs):
        array = np.asarray(one.native)
        for entry in array.ravel()[:4] if array.ndim else ():
            yield program.with_input(k, one.at(entry))
        for axis, length in enumerate(array.shape):
            for index in range(length) if length > 1 else ():
                yield program.with_input(k, one.at(np.delete(array, index, axis)))


def simpler_numbers(program: Program) -> Iterator[Program]:
    """All numbers of an input alike, then one after the other: 0, 1, 2, fewer digits."""
    for k, one in enumerate(program.inputs):
        array = np.asarray(one.native)
        for value in NICE:
            yield program.with_input(k, one.at(np.full(array.shape, value)))
        for digits in (0, 1, 2, 3):
            yield program.with_input(k, one.at(_rounded(array, digits)))
        for index in np.ndindex(array.shape) if array.ndim else ():
            for value in (*NICE, *(float(_rounded(array[index], digits)) for digits in (0, 1, 2, 3))):
                changed = array.copy()
                changed[index] = value
                yield program.with_input(k, one.at(changed))


def _rounded(array: Any, digits: int) -> Any:
    """To this many significant digits after the first."""
    return np.vectorize(lambda x: float(f"{x:.{digits}e}"), otypes=[float])(array)


def _cropped(one: Input, length: int, keep: slice) -> Input:
    array = np.asarray(one.native)
    return one.at(array[tuple(keep if n == length else slice(None) for n in array.shape)])
