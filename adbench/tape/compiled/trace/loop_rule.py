"""Loops that stay loops: record the body once, and run it n times by a rule.

The body of `loop(step, state, n)` is recorded once, on a separate trace, with symbols for counter and state. Each value
from outside becomes an input of the loop: a *row* if it is read at the counter, x[i], else a *capture*. Running the
body n times is then one operation, `SCAN`, with a rule like any other:

    reverse   a loop backwards over the stored states. Its body is the engine's own reverse sweep over the body;
              its state accumulates the adjoints of captures
    forward   a loop over pairs of state and tangent. Its body is the engine's own forward mode over the body

So loops nest, and have derivatives of higher order. A body that needs numbers which differ between iterations (a branch
on the state, a list at index i) is unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.recorded_forms import QUOTIENT, TRACED_GRADIENTS
from adbench.tape.compiled.trace.symbol import TAKE, DependsOnDataError, Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.forward import Dual, tangent_of
from adbench.tape.core.functionals import is_on, merged
from adbench.tape.core.node import new_leaf
from adbench.tape.core.recording import ASK, Record, Tape
from adbench.tape.core.rule import Active, AllInputs, Rule, RuleError, Value, function_gradients
from adbench.tape.fast.quick_sweep import careful_records, quiet_sweep
from adbench.tape.levels import current, forward_level, on_tape
from adbench.tape.rules import elementwise as e
from adbench.tape.rules.shapes import asarray, concatenate, flip, ravel, reshape
from adbench.tape.values import settle, shape_of, value_of

Step = Callable[[Any, Sequence[Value]], Sequence[Value]]
Apply = Callable[[Rule, list[Value], dict[str, Any], Symbol], Value]


@dataclass(frozen=True, eq=False)
class Body:
    """One iteration: outputs of a trace as functions of its inputs, in this order."""

    trace: Trace
    counter: Symbol
    state: tuple[Symbol, ...]
    rows: tuple[Symbol, ...]
    captures: tuple[Symbol, ...]
    outputs: tuple[Value, ...]

    def __call__(
        self,
        i: Value,
        state: Sequence[Value],
        rows: Sequence[Value],
        captures: Sequence[Value],
        apply: Apply | None = None,
    ) -> list[Value]:
        """The next state, for values of any kind; see `replay`."""
        inputs = (self.counter, *self.state, *self.rows, *self.captures)
        values = dict(zip(map(id, inputs), (i, *state, *rows, *captures), strict=True))
        return replay(self.trace, self.outputs, values, apply or call)


@dataclass(frozen=True, eq=False)
class Loop:
    """A body, the number and direction of its iterations, and the part of the state stored in every iteration.

    keep      None: the result is the last state, packed as a vector. Otherwise (start, stop): the result is a matrix
              with these entries of the packed state after k iterations in row k; row 0 is the first state
    """

    body: Body
    n: int
    backwards: bool
    keep: tuple[int, int] | None

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the parts of the state."""
        return tuple(s.shape for s in self.body.state)

    def split(self, inputs: Sequence[Value]) -> tuple[Sequence[Value], Sequence[Value], Sequence[Value]]:
        """Split the inputs of `SCAN` into state, rows and captures."""
        a, b = len(self.body.state), len(self.body.state) + len(self.body.rows)
        return inputs[:a], inputs[a:b], inputs[b:]

    def counters(self) -> range:
        """The values of the counter in order."""
        return range(self.n - 1, -1, -1) if self.backwards else range(self.n)


def live(trace: Trace, outputs: Sequence[Value]) -> list[int]:
    """The numbers of the records that these outputs need, in order."""
    waiting = [y.number for y in outputs if type(y) is Symbol and y.tape is trace]
    needed = set(waiting)
    while waiting:
        operation = made_by(trace[waiting.pop()])
        if operation is None:
            continue
        for x in operation[1]:
            if type(x) is Symbol and x.number not in needed and x.tape is trace:
                needed.add(x.number)
                waiting.append(x.number)
    return sorted(needed)


def nodes_with_bodies(trace: Trace) -> int:
    """The length of a trace and of the bodies of its loops, each counted once."""
    bodies, traces = {id(trace): trace}, [trace]
    for each in traces:
        for record in each:
            operation = made_by(record)
            if operation is not None and operation[0] is SCAN and id(operation[2]["loop"].body.trace) not in bodies:
                traces.append(operation[2]["loop"].body.trace)
                bodies[id(traces[-1])] = traces[-1]
    return sum(map(len, traces))


def call(rule: Rule, args: list[Value], params: dict[str, Any], _symbol: Symbol) -> Value:
    """The rule's value."""
    return rule(*args, **params)


def replay(trace: Trace, outputs: Sequence[Value], values: dict[int, Value], apply: Apply = call) -> list[Value]:
    """The outputs for other inputs: `values` gives them by the id of the symbol, or of an outside value.

    apply   a function of a rule, its arguments and parameters, and the recorded result, instead of the rule's value
    """
    for number in live(trace, outputs):
        record = trace[number]
        operation = made_by(record)
        if operation is not None and id(record[1]) not in values:
            rule, inputs, params = operation
            args = [values.get(id(x), x) if isinstance(x, Active) else x for x in inputs]
            if rule.reverse is None and rule.forward is None:  # a comparison: it sees only values
                args = [value_of(x) for x in args]
            values[id(record[1])] = apply(rule, args, params, record[1])
    return [values.get(id(y), y) if isinstance(y, Active) else y for y in outputs]


def record_body(step: Step, state: Sequence[Value]) -> tuple[Body, list[Value], list[Value]]:
    """The body of step(i, state) -> state, and the outside values that it reads: rows and captures.

    Raises DependsOnDataError if it cannot be recorded once for all iterations.
    """
    first = Trace(careful=current.careful, outer=True)
    i = first.counter = first.leaf(())
    leaves = [first.leaf(shape_of(s), active=True) for s in state]
    outputs = [y if isinstance(y, Active) else settle(y) for y in step(i, leaves)]
    if [shape_of(y) for y in outputs] != [shape_of(s) for s in state]:
        raise ShapesChangeError([shape_of(y) for y in outputs])
    rows: dict[int, Value] = {}
    captures: dict[int, Value] = {}
    row_sources: dict[int, int] = {}  # id of a symbol that reads a row -> id of the array
    for number in live(first, outputs):
        operation = made_by(first[number])
        if operation is None:
            continue
        rule, inputs, _ = operation
        if rule is TAKE and inputs[1] is i and _is_outside(inputs[0], first):
            rows[id(inputs[0])] = inputs[0]
            row_sources[id(first[number][1])] = id(inputs[0])
            continue
        captures |= {id(x): x for x in inputs if _is_outside(x, first)}
    captures |= {id(y): y for y in outputs if _is_outside(y, first)}
    trace = Trace(careful=first.careful, outer=True)
    trace.reads_ahead = first.reads_ahead
    counter = trace.counter = trace.leaf(())
    new_state = [trace.leaf(s.shape, active=True) for s in leaves]
    new_rows = {key: trace.leaf(shape_of(x)[1:], active=True) for key, x in rows.items()}
    new_captures = {key: trace.leaf(shape_of(x), active=True) for key, x in captures.items()}
    values: dict[int, Value] = {id(i): counter, **dict(zip(map(id, leaves), new_state, strict=True))}
    for key, x in captures.items():  # a loop gets booleans as numbers, like all operations but logic
        values[key] = new_captures[key] != 0.0 if type(x) is Symbol and x.boolean else new_captures[key]
    values |= {symbol: new_rows[source] for symbol, source in row_sources.items()}
    final = replay(first, outputs, values)
    body = Body(trace, counter, tuple(new_state), tuple(new_rows.values()), tuple(new_captures.values()), tuple(final))
    return body, list(rows.values()), list(captures.values())


class ShapesChangeError(DependsOnDataError):
    """A step returned a state of other shapes than it got."""

    def __init__(self, shapes: list[tuple[int, ...]]) -> None:
        super().__init__("the shapes of a loop's state change")
        self.shapes = shapes


def _is_outside(x: Value, trace: Trace) -> bool:
    return isinstance(x, Active) and not (type(x) is Symbol and x.tape is trace)


def run(step: Step, state: Sequence[Value], n: int, *, backwards: bool = False, keep: Any = None) -> Value:
    """The packed last state of step(i, state) for i = 0 … n-1, or its history, recorded as one operation."""
    body, rows, captures = record_body(step, state)
    return scan(*state, *cut(rows, n), *captures, loop=Loop(body, n, backwards, keep))


def cut(rows: Sequence[Value], n: int) -> list[Value]:
    """The arrays read at the counter, cut to one row per iteration."""
    if any(shape_of(x)[0] < n for x in rows):
        raise DependsOnDataError("a loop reads an index beyond the end of an array")
    return [x if shape_of(x)[0] == n else x[:n] for x in rows]


def scan(*inputs: Value, loop: Loop) -> Value:
    """Record the operation."""
    size = sum(map(math.prod, loop.shapes))
    shape = (size,) if loop.keep is None else (loop.n + 1, loop.keep[1] - loop.keep[0])
    return SCAN(*inputs, loop=loop, result_shape=shape)


def packed(parts: Sequence[Value]) -> Value:
    """Parts as one vector."""
    return concatenate([ravel(asarray(p)) for p in parts]) if len(parts) != 1 else ravel(asarray(parts[0]))


def unpacked(flat: Value, shapes: Sequence[tuple[int, ...]]) -> list[Value]:
    """The parts of a vector, in these shapes."""
    parts, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        parts.append(reshape(flat[start : start + size], shape) if shape else flat[start])
        start += size
    return parts


def _scan_value(*inputs: Value, loop: Loop, result_shape: Any) -> Value:
    state, rows, captures = loop.split(inputs)
    history = [packed(state)]
    for i in loop.counters():
        state = loop.body(float(i), state, [x[i] for x in rows], captures)
        if loop.keep is not None:
            history.append(packed(state))
    return packed(state) if loop.keep is None else np.stack(history)[:, slice(*loop.keep)]


def pull_back(
    outputs_of: Callable[..., Sequence[Value]],
    values: Sequence[Value],
    wanted: Sequence[bool],
    weights: Sequence[Value],
) -> list[Value]:
    """Σ weights ∂outputs/∂values for each wanted value, None for the others, by one sweep of the engine."""
    with on_tape() as tape:
        leaves = [new_leaf(tape, v) if w else v for v, w in zip(values, wanted, strict=True)]
        cells = [leaf.cell if w else None for leaf, w in zip(leaves, wanted, strict=True)]
        outputs = outputs_of(leaves)
        seeds = [(y, weight) for y, weight in zip(outputs, weights, strict=True) if is_on(y, tape)]
        return sweep_back(tape, seeds, cells)


def sweep_back(tape: Tape, seeds: Sequence[tuple[Any, Value]], cells: Sequence[Any]) -> list[Value]:
    """The adjoints of these cells, None for no cell, by one sweep of the engine from (result, adjoint) seeds."""
    for cell, adj in merged(seeds):
        cell.adj = adj
        if cell.shape:
            cell.own = False
    careful = current.careful
    records = careful_records(reversed(tape)) if careful else reversed(tape)
    quiet_sweep(map(_by_reciprocal, records), careful=careful)
    return [None if cell is None else spread(cell.adj, cell.shape) for cell in cells]


def _by_reciprocal(record: Record) -> Record:
    """The record; a quotient's in its form on a trace, with one division for both partials."""
    return (QUOTIENT, *record[1:]) if record[0] is e.divide and record[5] is ASK else record


def spread(adj: Value, shape: tuple[int, ...]) -> Value:
    """An adjoint in its shape; a single number applies to all elements."""
    return np.broadcast_to(adj, shape) if shape and type(adj) is float else adj


def _back(
    wanted: Sequence[bool], _val: Value, adj: Value, *inputs: Value, loop: Loop, result_shape: Any
) -> list[Value]:
    if loop.keep is not None:
        raise RuleError("loop: reverse mode twice over a loop is not supported; use jvp of gradient (hvp)")
    body, shapes, n = loop.body, loop.shapes, loop.n
    count, rows_from = len(shapes), len(body.rows)
    states = scan(*inputs, loop=Loop(body, n, loop.backwards, (0, sum(map(math.prod, shapes)))))
    # The state before iteration k is row k of the history. A backward loop starts with the last counter.
    before = flip(states[:-1], 0) if loop.backwards else states[:-1]
    _, rows, captures = loop.split(inputs)
    rows_wanted, captures_wanted = wanted[count : count + rows_from], wanted[count + rows_from :]
    of_rows = [x for x, w in zip(rows, rows_wanted, strict=True) if w]
    of_captures = [c for c, w in zip(captures, captures_wanted, strict=True) if w]

    def step(i: Value, carried: Sequence[Value]) -> list[Value]:
        adjoints, sums = carried[:count], carried[count : count + len(of_captures)]
        values = [*unpacked(TAKE(before, i), shapes), *[TAKE(x, i) for x in rows], *captures]

        def turn(leaves: Sequence[Value]) -> list[Value]:
            return body(i, leaves[:count], leaves[count : count + rows_from], leaves[count + rows_from :])

        parts = pull_back(turn, values, [*[True] * count, *rows_wanted, *captures_wanted], adjoints)
        of_these = [p for p, w in zip(parts[count + rows_from :], captures_wanted, strict=True) if w]
        return [
            *parts[:count],
            *[s if type(p) is float and p == 0.0 else s + p for s, p in zip(sums, of_these, strict=True)],
            *[p for p, w in zip(parts[count : count + rows_from], rows_wanted, strict=True) if w],
        ]

    zeros = [np.zeros(s) if s else 0.0 for s in [*map(shape_of, of_captures), *[shape_of(x)[1:] for x in of_rows]]]
    start = [*unpacked(adj, shapes), *zeros]
    back, new_rows, new_captures = record_body(step, start)
    starts = (*start, *new_rows, *new_captures)
    last = unpacked(scan(*starts, loop=Loop(back, n, not loop.backwards, None)), [shape_of(s) for s in start])
    sums = iter(last[count : count + len(of_captures)])
    results: list[Value] = [last[k] if wanted[k] else None for k in range(count)]
    at = sum(math.prod(shape_of(s)) for s in start[: count + len(of_captures)])
    for x, w in zip(rows, rows_wanted, strict=True):
        if not w:
            results.append(None)
            continue
        size = math.prod(shape_of(x)[1:])
        history = scan(*starts, loop=Loop(back, n, not loop.backwards, (at, at + size)))[1:]
        results.append(reshape(history if loop.backwards else flip(history, 0), shape_of(x)))
        at += size
    results += [next(sums) if w else None for w in captures_wanted]
    return results


def _along(_val: Value, tans: Sequence[Value], *inputs: Value, loop: Loop, result_shape: Any) -> Value:
    size = sum(map(math.prod, loop.shapes))
    if loop.keep is not None:
        return paired(inputs, tans, loop, (size + loop.keep[0], size + loop.keep[1]))
    both = paired(inputs, tans, loop, None)
    if type(_val) is Symbol and type(both) is Symbol and both.tape is _val.tape:
        _val.tape.rebind(_val, both[:size])  # this loop computes it too, so its own loop is unnecessary
    return both[size:]


def paired(inputs: Sequence[Value], tans: Sequence[Value], loop: Loop, keep: tuple[int, int] | None) -> Value:
    """The loop over state and tangent, by forward mode over its body: the last of both, or a history."""
    body, shapes = loop.body, loop.shapes
    state, rows, captures = loop.split(inputs)
    state_tans, row_tans, capture_tans = loop.split(tans)
    count = len(state)

    def step(i: Value, carried: Sequence[Value]) -> list[Value]:
        values, tangents = carried[:count], carried[count:]
        with forward_level() as level:
            duals = [Dual(level, v, t) for v, t in zip(values, tangents, strict=True)]
            read = [
                _lifted(level, TAKE(x, i), None if t is None else TAKE(t, i))
                for x, t in zip(rows, row_tans, strict=True)
            ]
            fixed = [_lifted(level, c, t) for c, t in zip(captures, capture_tans, strict=True)]
            outputs = body(i, duals, read, fixed, _with_one_division)
        plain = [y.val if isinstance(y, Dual) and y.level == level else y for y in outputs]
        return [*plain, *[tangent_of(y, level) for y in outputs]]

    zeros = [(np.zeros(s) if s else 0.0) if t is None else t for t, s in zip(state_tans, shapes, strict=True)]
    pair, new_rows, new_captures = record_body(step, [*state, *zeros])
    starts = (*state, *zeros, *new_rows, *new_captures)
    return scan(*starts, loop=Loop(pair, loop.n, loop.backwards, keep))


def _with_one_division(rule: Rule, args: list[Value], params: dict[str, Any], _symbol: Symbol) -> Value:
    """The rule's value; the tangent of x / y as (ẋ - ẏ x/y) (1/y), so that one division serves it and both partials."""
    result = rule(*args, **params)
    if rule is not e.divide or type(result) is not Dual or current.careful:
        return result
    (x_tan, _), (y_tan, divisor) = (
        (v.tangent, v.val) if type(v) is Dual and v.level == result.level else (None, v) for v in args
    )
    tangent = x_tan
    if y_tan is not None:
        part = y_tan * result.val
        tangent = -part if x_tan is None else x_tan - part
    tangent = tangent * (1.0 / divisor)
    if shape_of(tangent) == shape_of(result.val):
        result.tangent = tangent
    return result


def _lifted(level: int, value: Value, tangent: Value) -> Value:
    return value if tangent is None else Dual(level, value, tangent)


SCAN: Rule = function_gradients(_scan_value, reverse=AllInputs(_back), forward=AllInputs(_along), name="loop")
"""SCAN(*state, *rows, *captures, loop=): the state after all iterations, or its history."""

TRACED_GRADIENTS.add(SCAN)
