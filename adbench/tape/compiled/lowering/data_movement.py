"""Operations that move elements: as views where numpy makes one, register by register, or as copies.

The rule's own value function shows where elements move: it runs on their numbers 1, 2, 3, …, and 0 marks an inserted
zero. So no table is needed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.tape.compiled.lowering.emission import Emission, KernelOperation
from adbench.tape.compiled.lowering.loop_fusion import FusedLoops
from adbench.tape.compiled.lowering.loops.fused_steps import FusedStep
from adbench.tape.compiled.lowering.storage import REGISTER_LIMIT, Buffer, Location, Registers, Shape, Uniform, view_of
from adbench.tape.compiled.trace.recorded_forms import VIEWS
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.core.rule import Rule
from adbench.tape.machine.simd import Simd, literal
from adbench.tape.rules import shapes
from adbench.tape.rules.indexing import getitem, is_basic, put, set_at


def is_view(rule: Rule, params: dict[str, Any]) -> bool:
    """Whether numpy would return a view; True also for zeros, which need no memory."""
    return rule in VIEWS or (rule is getitem and is_basic(params["index"]))


def view(operation: KernelOperation) -> Location:
    """A view of a value."""
    emission, rule, location, shape = operation.emission, operation.rule, operation.operands[0], operation.shape
    if rule is shapes._zeros:
        return Uniform(emission.code.constant(0.0), shape).settled()
    if isinstance(location, Uniform) or (isinstance(location, Registers) and location.size == 1):
        return Uniform(location.element, shape, location.boolean).settled()
    if isinstance(location, Registers) and operation.size <= REGISTER_LIMIT:
        return _by_numbers(operation)
    array = emission.in_memory(location)
    if rule is shapes._reshape:
        return emission.result(_reshaped(emission, array, shape))
    if rule is getitem:
        return emission.result(view_of(array, lambda x: _as_view(x, operation.params["index"])))
    return emission.result(view_of(array, lambda x: rule.value(x, **operation.params)))


def move(operation: KernelOperation, in_place: bool = False) -> Location:
    """The elements in their new positions; with `in_place`, in the memory of the first operand."""
    emission, rule, locations, shape = operation.emission, operation.rule, operation.operands, operation.shape
    if operation.size <= REGISTER_LIMIT and all(p.size <= REGISTER_LIMIT for p in locations):
        return _added(operation) if rule in (ADD_AT, put) else _by_numbers(operation)
    if rule in (ADD_AT, set_at, put):
        return _written(operation, in_place)
    out = operation.target or emission.allocate(shape)
    if rule is shapes._concatenate:
        axis, start = operation.params["axis"] % len(shape), 0
        for p in locations:
            stop = start + p.shape[axis]
            if p.size:
                index = (*(slice(None),) * axis, slice(start, stop))
                emission.copy(p, view_of(out, operator.itemgetter(index)))
            start = stop
        return out
    if rule is shapes._gather_scalars:
        for k, p in enumerate(locations):
            emission.copy(Registers(emission.elements(p), (1,)), Buffer(out.base, out.offset + k, (1,), (1,)))
        return out
    numbers = _numbers(operation).ravel()
    places = np.flatnonzero(numbers)
    if places.size < numbers.size:
        emission.fill(out, literal(0.0))
    _scatter(emission, emission.in_memory(locations[0]), numbers[places] - 1, out, places, add=False)
    return emission.result(out)


def _numbers(operation: KernelOperation) -> Any:
    """The source of every element of the result: 1 + its position among the inputs' elements, or 0 for a zero."""
    parts, start = [], 1
    for p in operation.operands:
        parts.append(np.arange(start, start + p.size, dtype=float).reshape(p.shape)[()])
        start += p.size
    return np.asarray(operation.rule.value(*parts, **operation.params)).astype(np.int64)


def _by_numbers(operation: KernelOperation) -> Registers:
    emission, operands = operation.emission, operation.operands
    names = [emission.code.constant(0.0), *(name for p in operands for name in emission.elements(p))]
    return Registers(tuple(names[i] for i in _numbers(operation).ravel()), operation.shape, operands[0].boolean)


def _positions_of(index: Any, shape: Shape) -> Any:
    return np.arange(math.prod(shape)).reshape(shape)[index]


def _added(operation: KernelOperation) -> Registers:
    """x in registers with v added at some positions; the first addition to x = 0 needs no instruction."""
    emission, locations, shape = operation.emission, operation.operands, operation.shape
    x: list[str | None] = [None] * operation.size if operation.rule is put else list(emission.elements(locations[0]))
    into = _positions_of(operation.params["index"], shape)
    v = emission.elements(locations[-1])
    order = np.broadcast_to(np.arange(len(v)).reshape(locations[-1].shape), into.shape)
    simd, zero = Simd(emission.code, emission.width), emission.code.constant(0.0)
    for i, k in zip(into.ravel(), order.ravel(), strict=True):
        before = x[i]
        x[i] = v[k] if before is None else simd.binary("fadd", before, v[k])
    return Registers(tuple(zero if name is None else name for name in x), shape)


def _written(operation: KernelOperation, in_place: bool) -> Location:
    """x in memory with v written or added at some positions."""
    emission, rule, locations, shape = operation.emission, operation.rule, operation.operands, operation.shape
    index, v, adds = operation.params["index"], locations[-1], rule is not set_at
    if in_place and isinstance(locations[0], Buffer):
        out = locations[0]
    else:
        out = operation.target or emission.allocate(shape)
        emission.copy(Uniform(literal(0.0), shape) if rule is put else locations[0], out)
    if is_basic(index):
        _write_into(emission, view_of(out, lambda x: _as_view(x, index)), v, add=adds)
    else:
        into = _positions_of(index, shape)
        order = np.broadcast_to(np.arange(v.size).reshape(v.shape), into.shape).ravel()
        _scatter(emission, emission.in_memory(v), order, out, into.ravel(), add=adds)
    return emission.result(out)


def _as_view(x: Any, index: Any) -> Any:
    """x[index], as an array even for one element."""
    index = index if isinstance(index, tuple) else (index,)
    return x[index] if any(i is Ellipsis for i in index) else x[(*index, ...)]


def _write_into(emission: Emission, part: Buffer, v: Location, *, add: bool) -> None:
    if part.size == 0:
        return
    if len(v.shape) > len(part.shape):  # numpy drops leading axes of length 1
        v = _reshaped(emission, v, v.shape[len(v.shape) - len(part.shape) :])
    source: Location = emission.in_memory(v) if isinstance(v, Registers) and v.size > 1 else v
    shape = part.shape or (1,)
    if not part.shape:
        part = Buffer(part.base, part.offset, (1,), (1,))
    emission.one_point_only("loops over arrays")
    fused = FusedLoops(emission.code, shape)
    if add:
        step = FusedStep(0, lambda k, a, b: k.binary("fadd", a, b), [part, source], stores=[part])
    else:
        step = FusedStep(0, lambda k, a: a, [source], stores=[part])
    fused.steps.append(step)
    fused.emit()


def keeps_axes(old: Shape, new: Shape) -> bool:
    """Whether two shapes differ only in axes of length 1."""
    return [n for n in old if n != 1] == [n for n in new if n != 1]


def _reshaped(emission: Emission, location: Any, shape: Shape) -> Any:
    if isinstance(location, Buffer):
        if keeps_axes(location.shape, shape):
            long = iter([step for step, n in zip(location.strides, location.shape, strict=True) if n != 1])
            strides = tuple(0 if n == 1 else next(long) for n in shape)
            return Buffer(location.base, location.offset, strides, shape, location.boolean)
        array = emission.contiguous(location)
        return Buffer.packed(array.base, array.offset, shape, array.boolean)
    return replace(location, shape=shape)


def _offsets(emission: Emission, array: Buffer, numbers: Any) -> Callable[[str], str]:
    """Write code that gives the offset, in doubles from the array's base, of the element with flat index numbers[j]."""
    code, places = emission.code, np.unravel_index(numbers, array.shape) if array.shape else ()
    start = np.full(numbers.shape, array.offset)
    offsets = sum((i * s for i, s in zip(places, array.strides, strict=True)), start)
    first = int(offsets[0]) if offsets.size else 0
    if np.array_equal(offsets, np.arange(first, first + offsets.size)):
        return lambda j: code.emit(f"add i64 {j}, {first}")
    is_short = offsets.max() < 2**31
    kind = "i32" if is_short else "i64"
    stored = np.ascontiguousarray(offsets, np.int32 if is_short else np.int64)
    table = emission.module.outside(code, id(stored), stored)

    def at(j: str) -> str:
        entry = code.load(code.emit(f"getelementptr inbounds {kind}, ptr {table}, i64 {j}"), kind)
        return code.emit(f"sext i32 {entry} to i64") if is_short else entry

    return at


def _scatter(emission: Emission, source: Buffer, read: Any, target: Buffer, written: Any, *, add: bool) -> None:
    """target[written[j]] = source[read[j]], or += it, in this order, by flat indices."""
    emission.one_point_only("positions in large arrays")
    code = emission.code
    from_offset, to_offset = _offsets(emission, source, read), _offsets(emission, target, written)

    def body(j: str) -> None:
        value = code.load(code.element(source.base, from_offset(j)))
        location = code.element(target.base, to_offset(j))
        if add:
            value = code.emit(f"fadd double {code.load(location)}, {value}")
        code.store(value, location)

    code.loop(len(read), body)
