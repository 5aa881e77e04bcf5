"""Find which inputs each element of a value depends on, from the recording of a linear program.

A product J v is recorded as a program that is linear in v (see `compression`). An element of J v depends on v[j] if and
only if J has a structural entry in column j. So the pattern of J is found operation by operation: each rule says which
elements of its operands every element of its result reads.

A pattern is a sorted array of *keys*, element · columns + column, one for each entry. It counts an entry as zero only
if it is zero for all numbers: where nothing connects input and output, or a constant factor is zero. Rules without a
row in the table below are *opaque*: every element of the result may read every element of the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.loop_rule import SCAN, Loop, live
from adbench.tape.compiled.trace.recorded_forms import MOVES, VIEWS
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.compiled.trace.symbol import ALL, ANY, PUT, TAKE, Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.rule import Rule, Value
from adbench.tape.linalg import solving
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import products, reductions, shapes
from adbench.tape.rules.indexing import put
from adbench.tape.values import shape_of

Keys = Any
"""A sorted array of int64 without repeats."""

Reads = tuple[Any, Any]
"""Two arrays of equal length: elements of a result, and the elements of an operand that they read."""

MOST_ENTRIES = 50_000_000
"""Patterns with more entries on the way count as full."""

NONE = np.empty(0, np.int64)


class TooManyEntriesError(Exception):
    """A pattern has more than `MOST_ENTRIES` entries."""


def numbered(shape: tuple[int, ...]) -> Any:
    """The elements' numbers, 0, 1, 2, …, in this shape."""
    return np.arange(math.prod(shape)).reshape(shape)


def distinct(*keys: Keys) -> Keys:
    """The union of patterns. (numpy.unique hashes first; merging sorted parts takes a tenth of its time.)"""
    every = np.sort(np.concatenate(keys), kind="stable")
    return every[np.append(every[1:] != every[:-1], True)] if every.size else every


class Dependence:
    """Patterns of values with respect to a number of columns.

    opaque   names of the opaque rules that were met
    """

    def __init__(self, columns: int) -> None:
        self.columns = max(columns, 1)
        self.opaque: set[str] = set()
        self._steps: dict[tuple[int, tuple[int, ...]], list[Any]] = {}

    def of(
        self, trace: Trace, outputs: Sequence[Value], known: dict[int, Keys], counter: int | None = None
    ) -> list[Keys]:
        """The patterns of the outputs; `known` has those of the inputs, by the id of the symbol."""
        pattern_of = dict(known)
        for symbol, rule, inputs, params in self.steps(trace, outputs):
            if id(symbol) in pattern_of:
                continue
            patterns = [pattern_of.get(id(x), NONE) if type(x) is Symbol else NONE for x in inputs]
            if any(p.size for p in patterns):
                pattern_of[id(symbol)] = self.result(rule, symbol, inputs, patterns, params, counter)
        return [pattern_of.get(id(y), NONE) if type(y) is Symbol else NONE for y in outputs]

    def steps(self, trace: Trace, outputs: Sequence[Value]) -> list[Any]:
        """The operations that the outputs need: symbol, rule, inputs, parameters. Kept, because loops repeat them."""
        key = id(trace), tuple(map(id, outputs))
        if key not in self._steps:
            operations = [(trace[n][1], made_by(trace[n])) for n in live(trace, outputs)]
            self._steps[key] = [(symbol, *m) for symbol, m in operations if m is not None]
        return self._steps[key]

    def result(
        self, rule: Rule, symbol: Any, inputs: Sequence[Value], patterns: list[Keys], params: Any, counter: int | None
    ) -> Keys:
        """The pattern of one operation's result."""
        if rule is SCAN:
            return self.loop(inputs, patterns, params["loop"])
        if rule in (TAKE, PUT):
            return self.row(rule, symbol, inputs, patterns[0], counter)
        total = NONE
        for i, pattern in enumerate(patterns):
            if pattern.size:
                part = self.part(rule, i, symbol.shape, inputs, pattern, params)
                total = part if not total.size else distinct(total, part)
        return total

    def part(
        self, rule: Rule, i: int, shape: tuple[int, ...], inputs: Sequence[Value], pattern: Keys, params: Any
    ) -> Keys:
        """The part of a result's pattern that comes from operand i."""
        reads: Callable[..., Reads | None] | None = _elementwise if rule.elementwise else READS.get(rule)
        if reads is None:
            self.opaque.add(rule.name)
            return self.every(pattern, math.prod(shape))
        pairs = reads(rule, i, shape, inputs, params)
        return pattern if pairs is None else self.moved(pattern, *pairs)

    def moved(self, pattern: Keys, results: Any, operands: Any) -> Keys:
        """The pattern of a result whose element results[k] reads the operand's element operands[k], for all k."""
        n = self.columns
        begin = np.searchsorted(pattern, operands * n)
        counts = np.searchsorted(pattern, (operands + 1) * n) - begin
        total = int(counts.sum())
        if total == n * counts.size:  # every element that is read depends on all columns
            return (np.unique(results)[:, None] * n + np.arange(n)).ravel()
        if total > MOST_ENTRIES:
            raise TooManyEntriesError
        shift = np.repeat((results - operands) * n, counts)
        places = np.arange(total) + np.repeat(begin - (np.cumsum(counts) - counts), counts)
        keys = pattern[places] + shift
        return keys if np.all(keys[1:] > keys[:-1]) else distinct(keys)

    def every(self, pattern: Keys, size: int) -> Keys:
        """The pattern in which each of `size` elements depends on everything in a pattern."""
        columns = np.unique(pattern % self.columns)
        if size * columns.size > MOST_ENTRIES:
            raise TooManyEntriesError
        return (np.arange(size)[:, None] * self.columns + columns).ravel()

    def rows_of(self, pattern: Keys, start: int, stop: int, to: int = 0) -> Keys:
        """The pattern of the elements from start to stop, renumbered from `to`."""
        first, last = np.searchsorted(pattern, [start * self.columns, stop * self.columns])
        return pattern[first:last] + (to - start) * self.columns

    def joined(self, patterns: Sequence[Keys], sizes: Sequence[int]) -> Keys:
        """The pattern of values one after the other."""
        starts = np.cumsum([0, *sizes])[:-1]
        return np.concatenate([NONE, *(p + at * self.columns for p, at in zip(patterns, starts, strict=True))])

    # Loops

    def row(self, rule: Rule, symbol: Any, inputs: Sequence[Value], pattern: Keys, counter: int | None) -> Keys:
        """The pattern of reading, or of writing, a row at the loop's counter."""
        taken = rule is TAKE
        size = math.prod(symbol.shape if taken else shape_of(inputs[0]))
        if counter is None:  # nothing here tells which row
            return self.every(pattern, math.prod(symbol.shape))
        if taken:
            return self.rows_of(pattern, counter * size, (counter + 1) * size)
        return self.rows_of(pattern, 0, size, counter * size)

    def loop(self, inputs: Sequence[Value], patterns: list[Keys], loop: Loop) -> Keys:
        """The pattern of a loop's last state, or of its history."""
        state, rows, captures = loop.split(patterns)
        body = loop.body
        sizes = [math.prod(s) for s in loop.shapes]
        lengths = [math.prod(s.shape) for s in body.rows]
        fixed = {id(s): p for s, p in zip(body.captures, captures, strict=True) if p.size}
        steps = self.steps(body.trace, body.outputs)
        is_same = not any(p.size for p in rows) and not any(rule in (TAKE, PUT) for _, rule, _, _ in steps)
        state = list(state)
        history = [self.joined(state, sizes)]
        for i in loop.counters():
            known = fixed | {id(s): p for s, p in zip(body.state, state, strict=True) if p.size}
            for s, p, length in zip(body.rows, rows, lengths, strict=True):
                part = self.rows_of(p, i * length, (i + 1) * length)
                if part.size:
                    known[id(s)] = part
            state = self.of(body.trace, body.outputs, known, i)
            history.append(self.joined(state, sizes))
            if is_same and np.array_equal(history[-1], history[-2]):
                break  # all later iterations give the same
        if loop.keep is None:
            return history[-1]
        start, stop = loop.keep
        history += [history[-1]] * (loop.n + 1 - len(history))
        return self.joined([self.rows_of(h, start, stop) for h in history], [stop - start] * len(history))


# Which elements of an operand a result reads: (rule, operand, shape of the result, inputs, params) -> Reads, or None if
# element k reads element k


def _elementwise(rule: Rule, i: int, shape: Any, inputs: Sequence[Value], _params: Any) -> Reads | None:
    have = shape_of(inputs[i])
    active = _not_masked(rule, i, inputs)
    if active is None and have == shape:
        return None
    reads = np.broadcast_to(numbered(have), shape).ravel()
    if active is None:
        return np.arange(reads.size), reads
    chosen = np.flatnonzero(np.broadcast_to(active, shape))
    return chosen, reads[chosen]


def _not_masked(rule: Rule, i: int, inputs: Sequence[Value]) -> Any:
    """Where a factor is not a constant zero, or a constant condition selects this operand; None for everywhere."""
    if rule is e.multiply:
        return may_differ_from_zero(inputs[1 - i])
    if rule is e.divide and i == 1:
        return may_differ_from_zero(inputs[0])
    if rule is e.where and i > 0 and not isinstance(inputs[0], Symbol):
        return np.logical_not(inputs[0]) if i == 2 else np.asarray(inputs[0], bool)
    return None


def _by_numbers(rule: Rule, i: int, shape: Any, inputs: Sequence[Value], params: Any) -> Reads:
    """For rules that move elements: the value function moves the elements' numbers, and zeros for other operands."""
    parts = [numbered(shape_of(x)) + 1.0 if k == i else np.zeros(shape_of(x)) for k, x in enumerate(inputs)]
    sources = np.broadcast_to(rule.value(*(p[()] for p in parts), **params), shape).ravel().astype(np.int64)
    results = np.flatnonzero(sources)
    return results, sources[results] - 1


def _at_index(rule: Rule, i: int, shape: Any, inputs: Sequence[Value], params: Any) -> Reads | None:
    """For `put` and `add_at`: the elements at the index read those of the last operand, repeatedly."""
    if rule is ADD_AT and i == 0:
        return None
    places = numbered(shape)[params["index"]]
    return np.ravel(places), np.broadcast_to(numbered(shape_of(inputs[-1])), np.shape(places)).ravel()


def _reduced(_rule: Rule, _i: int, _shape: Any, inputs: Sequence[Value], params: Any) -> Reads:
    have = shape_of(inputs[0])
    axes = tuple(range(len(have))) if params["axes"] is None else params["axes"]
    kept = tuple(1 if a in axes else n for a, n in enumerate(have))
    return np.broadcast_to(numbered(kept), have).ravel(), np.arange(math.prod(have))


def _cumulative(_rule: Rule, _i: int, shape: Any, _inputs: Sequence[Value], params: Any) -> Reads:
    lines = np.moveaxis(numbered(shape), params["axis"], -1).reshape(-1, shape[params["axis"]])
    later, earlier = np.tril_indices(lines.shape[1])
    return lines[:, later].ravel(), lines[:, earlier].ravel()


def _contracted(labels: Sequence[str], out: str, i: int, inputs: Sequence[Value]) -> Reads:
    """Products of factors, summed over the labels that the result lacks; constant zeros count."""
    lengths = products.lengths_of(labels, inputs)
    order = "".join(dict.fromkeys([*out, *labels[i], *"".join(labels)]))
    if math.prod(lengths[name] for name in order) > MOST_ENTRIES:
        raise TooManyEntriesError
    spread, full = products.spread_over, tuple(lengths[name] for name in order)
    active = np.ones((1,) * len(order), bool)
    for k, (x, of) in enumerate(zip(inputs, labels, strict=True)):
        mask = None if k == i else may_differ_from_zero(x)
        if mask is not None:
            active = active & spread(mask, of, order)
    chosen = np.flatnonzero(np.broadcast_to(active, full))
    results = np.broadcast_to(spread(numbered(tuple(lengths[c] for c in out)), out, order), full).ravel()
    operands = np.broadcast_to(spread(numbered(shape_of(inputs[i])), labels[i], order), full).ravel()
    return results[chosen], operands[chosen]


def _product(_rule: Rule, i: int, _shape: Any, inputs: Sequence[Value], _params: Any) -> Reads | None:
    a, b = (shape_of(x) for x in inputs)
    batch = "abcdefgh"[: max(len(a) - 2, len(b) - 2, 0)]
    left = "j" if len(a) == 1 else batch[len(batch) - (len(a) - 2) :] + "ij"
    right = "j" if len(b) == 1 else batch[len(batch) - (len(b) - 2) :] + "jk"
    return _contracted([left, right], batch + left[-2:-1] * (len(a) > 1) + right[-1:] * (len(b) > 1), i, inputs)


def _einsum(_rule: Rule, i: int, _shape: Any, inputs: Sequence[Value], params: Any) -> Reads:
    return _contracted(params["labels"], params["out"], i, inputs)


def _solved(_rule: Rule, i: int, shape: Any, inputs: Sequence[Value], _params: Any) -> Reads:
    """A⁻¹ B: each column reads the whole column of B, and all of its matrix."""
    column = "k" * (len(shape_of(inputs[1])) > 1)
    batch = "abcdefgh"[: len(shape) - 1 - len(column)]
    own = "jl" if i == 0 else "j" + column
    shared = len(shape_of(inputs[i])) - len(own)
    out = batch + "i" + column
    labels = [batch[len(batch) - shared :] + own, out]
    return _contracted(labels, out, 0, [inputs[i], np.broadcast_to(1.0, shape)])


READS: dict[Rule, Callable[..., Reads | None]] = {
    **dict.fromkeys(VIEWS | MOVES, _by_numbers),
    **dict.fromkeys((put, ADD_AT), _at_index),
    **dict.fromkeys(
        (
            *(reductions._sum, reductions._max, reductions._min, reductions._prod, reductions._logsumexp),
            shapes._sum_to,
        ),
        _reduced,
    ),
    **dict.fromkeys((ANY, ALL), lambda r, i, s, x, _p: _reduced(r, i, s, x, {"axes": None})),
    **dict.fromkeys((reductions._cumsum, reductions._cumprod), _cumulative),
    **dict.fromkeys((solving._solve, solving.triangular), _solved),
    products.matmul: _product,
    products._einsum: _einsum,
}


# Factors

_KEEPS_ZEROS = frozenset(
    (
        *(rule for rule, reads in READS.items() if reads in (_by_numbers, _at_index)),
        *(e.multiply, e.add, e.negative, reductions._sum, shapes._sum_to),
    )
)
"""Rules whose value function shows, from 0 for zeros and 1 for the rest, where the result is zero."""


def may_differ_from_zero(x: Value) -> Any:
    """Where a factor may differ from zero, in its shape; None for everywhere."""
    if isinstance(x, Symbol):
        return _mask_of(x)
    if x is None or isinstance(x, float):
        return None if x is None or x != 0.0 else np.zeros((), bool)
    mask = np.asarray(x) != 0
    return None if mask.all() else mask


def _mask_of(symbol: Symbol) -> Any:
    """Where an array of the program may differ from zero: `put`, `tril` and others insert zeros."""
    waiting = [] if symbol.number in symbol.tape.masks else [symbol]
    while waiting:
        x = waiting[-1]
        masks = x.tape.masks
        operation = x.tape.producer(x)
        if operation is None or operation[0] not in _KEEPS_ZEROS or not x.shape:
            masks[x.number] = None
            waiting.pop()
            continue
        rule, inputs, params = operation
        missing = [y for y in inputs if type(y) is Symbol and y.number not in y.tape.masks]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        input_masks = [y.tape.masks[y.number] if type(y) is Symbol else may_differ_from_zero(y) for y in inputs]
        if all(m is None for m in input_masks) and rule not in (put, shapes._tril, shapes._triu, shapes._zeros):
            masks[x.number] = None
            continue
        numbers = [
            (np.ones(shape_of(y)) if m is None else m.astype(float))[()]
            for y, m in zip(inputs, input_masks, strict=True)
        ]
        mask = np.abs(rule.value(*numbers, **params)) != 0
        masks[x.number] = None if mask.all() else mask
    return symbol.tape.masks[symbol.number]
