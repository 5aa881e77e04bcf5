"""`tape.loop` while a function is recorded for compilation: one operation if the body allows it, else unrolled.

A loop of elementwise operations whose only differentiated value is one array x has a diagonal Jacobian. So a tangent of
ones in the same loop gives all derivatives: the sweep multiplies by them, and needs neither stored states nor a second
loop. (A careful recording needs a sweep over the body, which handles zero times infinity.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.loop_rule import (
    Body,
    Loop,
    ShapesChangeError,
    cut,
    live,
    paired,
    record_body,
    run,
    scan,
    unpacked,
)
from adbench.tape.compiled.trace.symbol import WITH_SLOPE, DependsOnDataError, Symbol
from adbench.tape.compiled.trace.trace import made_by
from adbench.tape.core.forward import Dual, tangent_of
from adbench.tape.core.rule import Active, Value
from adbench.tape.levels import forward_level, turns
from adbench.tape.rules.shapes import _zeros, broadcast_to
from adbench.tape.trees import flatten
from adbench.tape.values import any_active, shape_of

UNROLL_LIMIT = 8
"""Loops of fewer iterations are unrolled."""

AHEAD_LIMIT = 2_000
"""Loops that read at the counter plus an integer are unrolled if they have fewer operations.

Such a sweep stores no states, and computes up to 1.6 times as fast; the time to compile grows with the operations.
"""


def emitter(checkpointed: bool) -> Callable[[Callable[[Any, Any], Any], Any, int], Any]:
    """The `loop` of a recording: one operation if the body allows it, else unrolled.

    Checkpointed, a loop of n iterations becomes an outer loop of √n iterations over an inner loop of √n. Its reverse
    sweep stores only the outer states, and recomputes the inner states in each outer iteration.
    """

    def emit(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
        if not isinstance(n, (int, np.integer)) or n < UNROLL_LIMIT:
            return turns(step, range(n), state)
        try:
            leaves, rebuild = flatten(state, "loop: state")
        except TypeError:
            return turns(step, range(n), state)
        for _ in range(2):
            try:
                return rebuild(_emitted(step, leaves, rebuild, int(n), checkpointed))
            except ShapesChangeError as change:  # try again, for a number that becomes an array in the first iteration
                try:
                    leaves = [broadcast_to(s, shape) for s, shape in zip(leaves, change.shapes, strict=True)]
                except ValueError:
                    break
            except DependsOnDataError:
                break
        return turns(step, range(n), state)

    return emit


def _emitted(
    step: Callable[[Any, Any], Any], leaves: list[Value], rebuild: Callable[..., Any], n: int, checkpointed: bool
) -> list[Value]:
    def turn(i: Value, parts: Sequence[Value]) -> Sequence[Value]:
        new = step(i, rebuild(parts))
        flat, again = flatten(new, "loop: state")
        if len(flat) != len(parts) or type(again(flat)) is not type(rebuild(flat)):
            raise DependsOnDataError("the structure of a loop's state changes")
        return flat

    shapes = [shape_of(s) for s in leaves]
    body, rows, captures = record_body(turn, leaves)
    if not any_active([*leaves, *rows, *captures]):
        raise DependsOnDataError("nothing in this loop depends on an input")
    if body.trace.reads_ahead and n * len(body.trace) < AHEAD_LIMIT:
        raise DependsOnDataError("a short loop that reads ahead is unrolled")
    loop, inputs = Loop(body, n, False, None), (*leaves, *cut(rows, n), *captures)
    source = source_of(loop, inputs)
    if source is not None:
        return with_slopes(loop, inputs, *source)
    if not checkpointed or n < 2 * UNROLL_LIMIT:
        return unpacked(scan(*inputs, loop=loop), shapes)
    inner = math.isqrt(n)

    def many(first: Value, parts: Sequence[Value], count: int) -> list[Value]:
        return unpacked(run(lambda j, p: turn(first + j, p), parts, count), shapes)

    outer = n // inner
    done = unpacked(run(lambda k, parts: many(k * float(inner), parts, inner), leaves, outer), shapes)
    return many(float(outer * inner), done, n - outer * inner) if n > outer * inner else done


def source_of(loop: Loop, inputs: Sequence[Value]) -> tuple[Symbol, list[int]] | None:
    """The array x of which a loop's results are elementwise functions, if a sweep will follow and needs no others.

    Also the numbers of the records from x to the loop's inputs. The inputs are functions of x if the search back from
    them, always from the latest, comes to a single array.
    """
    active = {v.number: v for v in inputs if type(v) is Symbol and v.active}
    if not active or not all(type(v) is Symbol for v in inputs if isinstance(v, Active)):
        return None
    latest = active[max(active)]
    trace, shape = latest.tape, latest.shape
    is_swept = trace.is_differentiated and not trace.careful and trace.outer is None
    rows = {id(v) for v in loop.split(inputs)[1]}
    if not shape or not is_swept or any(id(v) in rows or v.shape != shape for v in active.values()):
        return None
    if not is_elementwise(loop.body, shape):
        return None
    between = []
    while len(active) > 1:
        number = max(active)
        operation = made_by(trace[number])
        if operation is None or not (operation[0].elementwise or operation[0] is _zeros):
            return None
        del active[number]
        between.append(number)
        sources = [v for v in operation[1] if type(v) is Symbol and v.active and operation[0] is not _zeros]
        if any(v.shape != shape for v in sources):
            return None
        active |= {v.number: v for v in sources}
    return next(iter(active.values())), between[::-1]


def is_elementwise(body: Body, shape: tuple[int, ...]) -> bool:
    """Whether all operations are elementwise, on arrays of this shape and on numbers."""
    if any(s.shape not in ((), shape) for s in body.state):
        return False
    for number in live(body.trace, body.outputs):
        operation = made_by(body.trace[number])
        if operation is not None and not (operation[0].elementwise and body.trace[number][1].shape in ((), shape)):
            return False
    return True


def with_slopes(loop: Loop, inputs: Sequence[Value], x: Symbol, between: Sequence[int]) -> list[Value]:
    """The parts of the last state, with their derivatives in x."""
    trace = x.tape
    with forward_level() as level:
        values: dict[int, Value] = {x.number: Dual(level, x.val, np.ones(x.shape))}

        def value(v: Value) -> Value:
            return values.get(v.number, v.val) if type(v) is Symbol else v

        for number in between:
            rule, operands, params = made_by(trace[number])  # type: ignore[misc]  # no input, see above
            values[number] = rule(*map(value, operands), **params)
        evaluated = [value(v) for v in inputs]
    plain = [v.val if isinstance(v, Dual) and v.level == level else v for v in evaluated]
    both = paired(plain, [tangent_of(v, level) if isinstance(v, Dual) else None for v in evaluated], loop, None)
    parts = unpacked(both, loop.shapes * 2)
    pairs = zip(parts, parts[len(loop.shapes) :], strict=False)
    return [WITH_SLOPE(y, slope, x) if shape else y for (y, slope), shape in zip(pairs, loop.shapes, strict=True)]
