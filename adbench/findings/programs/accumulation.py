"""The sizes of the terms that reverse mode adds up: their rounding errors are errors of every entry.

The adjoint of a number is the sum of one contribution for each place where the program reads it. Contributions of 1 and
-1 may leave 1e-18, of which double precision knows nothing, although forward mode does not meet them. So an entry of a
gradient may err by rounding errors of Σ |contribution| · |∂ number / ∂ entry|, over all numbers and places. Its size is
all that is needed here, and plain differences give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.findings.programs.generation import PLAIN, values_of
from adbench.findings.programs.random_program import PLACE, Input, Program, Step, compiled

STEP = 1e-6


def accumulated(program: Program, leaf: int, index: int) -> float:
    """Σ |contribution| · |∂ number / ∂ entry| for this entry of this active input; inf if the program does not run."""
    read, places = with_shifts(program)
    f, args = compiled(read.source()), read.args
    ahead, behind = (values_of(_moved(program, leaf, index, side * STEP)) for side in (1.0, -1.0))
    if ahead is None or behind is None:
        return float("inf")
    total = 0.0
    for k, number in enumerate(places, len(program.inputs)):
        rates = np.ravel((np.asarray(ahead[number]) - np.asarray(behind[number])) / (2.0 * STEP))
        for j in np.flatnonzero(rates):
            total += abs(_slope(f, args, k, int(j)) * float(rates[j]))
    return total


def with_shifts(program: Program) -> tuple[Program, list[int]]:
    """The program with a further input, 0, added at each place where a step reads a number; and these numbers."""
    values, known = values_of(program), len(program.inputs)
    places = [number for step in program.steps for number in _reads(step)]
    shifts = [Input.of(np.zeros(np.shape(values[number])) if values is not None else 0.0) for number in places]
    new, steps = known, []
    for step in program.steps:
        moved = step.renumbered(lambda old: old if old < known else old + len(places))
        operands, text, last = list(moved.operands), "", 0
        for match in PLACE.finditer(step.expression):
            text += f"{step.expression[last : match.start()]}({match[0]} + {{{len(operands)}}})"
            operands.append(new)
            last, new = match.end(), new + 1
        expression = text + step.expression[last:]
        steps.append(Step(step.name, expression, tuple(operands), moved.body, step.definition))
    return Program((*program.inputs, *shifts), tuple(steps)), places


def _reads(step: Step) -> list[int]:
    return [step.operands[int(match[1])] for match in PLACE.finditer(step.expression)]


def _moved(program: Program, leaf: int, index: int, by: float) -> Program:
    inputs = list(program.inputs)
    inputs[leaf] = Input.of(_plus(inputs[leaf].native, index, by), active=inputs[leaf].active)
    return Program(tuple(inputs), program.steps)


def _plus(value: Any, index: int, by: float) -> Any:
    moved = np.array(value, dtype=np.float64)
    moved.flat[index] += by
    return moved


def _slope(f: Any, args: Sequence[Any], k: int, index: int) -> float:
    """∂f in an entry of argument k."""
    ends = []
    for side in (1.0, -1.0):
        with np.errstate(all="ignore"):
            ends.append(float(f(PLAIN, *args[:k], _plus(args[k], index, side * STEP), *args[k + 1 :])))
    return (ends[0] - ends[1]) / (2.0 * STEP)
