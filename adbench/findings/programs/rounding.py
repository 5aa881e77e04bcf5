"""What rounding does to a program: the terms that reverse mode adds up, singular points within its reach, overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.findings.conform.judgement import ULPS
from adbench.findings.finding import AT_ONE
from adbench.findings.programs.generation import evaluated, value_of_step, values_of
from adbench.findings.programs.random_program import PLACE, Input, Program, Step, compiled
from adbench.model.namespace import PLAIN
from adbench.oracle.reference import UNIT_ROUNDOFF

ADDED = 16.0
"""Rounding errors, relative to the terms that reverse mode adds, which no library need avoid."""

VALUE_ZERO = frozenset({"vector_norm", "std", "std_axis", "hypot", "sqrt", "half_power", "abs"})
"""Operations whose slope is infinite, or jumps, where their value is 0."""
TOO_CLOSE = 1e-12
SAME_SLOPE = 0.1
"""Slopes on two sides of a point that differ by more, relative to the larger one, are those of a kink."""

HALF_ZERO = 0.5
"""Half of the smallest zero of sinc."""

STEP = 1e-6


def accumulated(program: Program, leaf: int, index: int) -> float:
    """Σ |contribution| · |∂ number / ∂ entry| for this entry of this active input; inf if the program does not run.

    The adjoint of a number is the sum of one contribution for each place where the program reads it. Contributions of 1
    and -1 may leave 1e-18, of which double precision knows nothing, although forward mode does not meet them. So an
    entry of a gradient may err by rounding errors of this sum over all numbers and places. Its size is all that is
    needed here, and plain differences give it.
    """
    read, places = with_shifts(program)
    f, args = compiled(read.source()), read.args
    here = program.inputs[leaf]
    there = (here.at(_plus(here.native, index, side * STEP)) for side in (1.0, -1.0))
    ahead, behind = (values_of(program.with_input(leaf, one)) for one in there)
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
    places = [step.operands[int(match[1])] for step in program.steps for match in PLACE.finditer(step.expression)]
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
        steps.append(replace(moved, expression=expression, operands=tuple(operands), own={}))
    return Program((*program.inputs, *shifts), tuple(steps)), places


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


def nearby(program: Program, rng: np.random.Generator) -> Program:
    """The program at a neighbouring point: each number changed by a few units in the last place."""
    inputs = []
    for one in program.inputs:
        array = np.asarray(one.native)
        with np.errstate(all="ignore"):
            moved = array * (1.0 + 2.0 * ULPS * UNIT_ROUNDOFF * rng.uniform(-1.0, 1.0, array.shape))
        inputs.append(one.at(moved))
    return replace(program, inputs=tuple(inputs))


def overflows(program: Program) -> bool:
    """Whether a number on the way to the value, or in a branch that is not taken, leaves the range of doubles."""
    try:
        with np.errstate(over="raise", under="raise", divide="raise", invalid="ignore"):
            program.function()(PLAIN, *(np.asarray(one, dtype=np.float64)[()] for one in program.args))
    except ArithmeticError:
        return True
    return False


def pi_decides(program: Program) -> bool:
    """Whether sinc x is taken at one of its zeros, where sin(π x) is 0, or 1e-16 with the π of float64."""
    points = [operands[0] for step, operands, _ in evaluated(program) if step.name == "sinc"]
    return any(((np.abs(x) > HALF_ZERO) & (np.abs(x - np.rint(x)) <= TOO_CLOSE * np.abs(x))).any() for x in points)


def rounding_decides(program: Program) -> bool:
    """Whether an operation is so close to its singular point that rounding decides on which side it is.

    The deviation of three equal numbers is 0, or 1e-17 if their mean is rounded; its slope is then any number.
    """
    values = values_of(program) or []
    for step, operands, value in evaluated(program):
        if step.name in AT_ONE and (np.abs(np.abs(operands[0]) - 1) < TOO_CLOSE).any():
            return True
        size = max((float(np.abs(one).max(initial=0.0)) for one in operands), default=0.0)
        if step.name in VALUE_ZERO and (np.abs(value) <= TOO_CLOSE * size).any():
            return True
        if (step.own or step.name == "pow") and step.name not in AT_ONE | VALUE_ZERO and _bends(step, values, size):
            return True
    return False


def _bends(step: Step, values: Sequence[Any], size: float) -> bool:
    """Whether the slopes of an operation of the table differ on two sides of its operands, as close as rounding is."""
    rng, length = np.random.default_rng(0), TOO_CLOSE * (size or 1.0)
    moved = [list(values), list(values)]
    for number in step.operands:
        change = length * rng.standard_normal(np.shape(values[number]))
        for there, side in zip(moved, (1.0, -1.0), strict=True):
            there[number] = values[number] + side * change
    try:
        with np.errstate(all="ignore"):
            before, here, after = (np.asarray(value_of_step(step, there)) for there in (moved[1], values, moved[0]))
    except Exception:  # numpy lacks the function
        return False
    up, down = (after - here) / length, (here - before) / length
    room = ADDED * UNIT_ROUNDOFF * np.abs(here) / length
    same = np.abs(up - down) <= SAME_SLOPE * np.maximum(np.abs(up), np.abs(down)) + room
    return not same.all()  # NaN on one side is an end of the domain
