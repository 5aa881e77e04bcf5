"""Operations that move elements: as views where numpy makes one, register by register, or as copies.

The rule's own value function shows where elements move: it runs on their numbers 1, 2, 3, …, and 0 marks an inserted
zero. So no table is needed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
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


def view(emission: Emission, rule: Rule, location: Location, params: dict[str, Any], shape: Shape) -> Location:
    """A view of a value."""
    if rule is shapes._zeros:
        return Uniform(emission.code.constant(0.0), shape).settled()
    if isinstance(location, Uniform) or (isinstance(location, Registers) and location.size == 1):
        element = location.element if isinstance(location, Uniform) else location.elements[0]
        return Uniform(element, shape, location.boolean).settled()
    if isinstance(location, Registers) and math.prod(shape) <= REGISTER_LIMIT:
        return _by_numbers(emission, rule, [location], params, shape)
    array = emission.in_memory(location)
    if rule is shapes._reshape:
        result = _reshaped(emission, array, shape)
    else:
        is_part = rule is getitem
        result = view_of(array, lambda x: _as_view(x, params["index"]) if is_part else rule.value(x, **params))
    return emission.result(result)


def move(operation: KernelOperation, rule: Rule, in_place: bool = False) -> Location:
    """The elements in their new positions; with `in_place`, in the memory of the first operand."""
    emission, locations, params, shape = operation.emission, operation.operands, operation.params, operation.shape
    if operation.size <= REGISTER_LIMIT and all(p.size <= REGISTER_LIMIT for p in locations):
        if rule in (ADD_AT, put):
            return _added(operation, rule)
        return _by_numbers(
            emission, rule, [Registers(emission.elements(p), p.shape, p.boolean) for p in locations], params, shape
        )
    if rule in (ADD_AT, set_at, put):
        return _written(operation, rule, in_place)
    out = operation.target or emission.allocate(shape)
    if rule is shapes._concatenate:
        axis, start = params["axis"] % len(shape), 0
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
    (location,) = locations
    numbers = _numbers(rule, [location.shape], params).ravel()
    source = emission.in_memory(location)
    offsets = _offsets(source, numbers - 1)
    _gather(emission, source, np.where(numbers == 0, -1, offsets), out)
    return emission.result(out)


def _numbers(rule: Rule, shapes_of_inputs: Sequence[Shape], params: dict[str, Any]) -> Any:
    """The source of every element of the result: 1 + its position among the inputs' elements, or 0 for a zero."""
    parts, start = [], 1
    for s in shapes_of_inputs:
        parts.append(np.arange(start, start + math.prod(s), dtype=float).reshape(s)[()])
        start += math.prod(s)
    return np.asarray(rule.value(*parts, **params)).astype(np.int64)


def _by_numbers(
    emission: Emission, rule: Rule, locations: Sequence[Registers], params: dict[str, Any], shape: Shape
) -> Registers:
    names = [emission.code.constant(0.0), *(name for p in locations for name in p.elements)]
    order = _numbers(rule, [p.shape for p in locations], params).ravel()
    return Registers(tuple(names[i] for i in order), shape, locations[0].boolean)


def _positions_of(index: Any, shape: Shape) -> Any:
    return np.arange(math.prod(shape)).reshape(shape)[index]


def _added(operation: KernelOperation, rule: Rule) -> Registers:
    """x in registers with v added at some positions; the first addition to x = 0 needs no instruction."""
    emission, locations, shape = operation.emission, operation.operands, operation.shape
    x: list[str | None] = [None] * math.prod(shape) if rule is put else list(emission.elements(locations[0]))
    into = _positions_of(operation.params["index"], shape)
    v = emission.elements(locations[-1])
    order = np.broadcast_to(np.arange(len(v)).reshape(locations[-1].shape), into.shape)
    simd, zero = Simd(emission.code, emission.width), emission.code.constant(0.0)
    for i, k in zip(into.ravel(), order.ravel(), strict=True):
        before = x[i]
        x[i] = v[k] if before is None else simd.binary("fadd", before, v[k])
    return Registers(tuple(zero if name is None else name for name in x), shape)


def _written(operation: KernelOperation, rule: Rule, in_place: bool) -> Location:
    """x in memory with v written or added at some positions."""
    emission, locations, shape = operation.emission, operation.operands, operation.shape
    index, v = operation.params["index"], locations[-1]
    if in_place and isinstance(locations[0], Buffer):
        out = locations[0]
    else:
        out = operation.target or emission.allocate(shape)
        emission.copy(Uniform(literal(0.0), shape) if rule is put else locations[0], out)
    if is_basic(index):
        part = view_of(out, lambda x: _as_view(x, index))
        _write_into(emission, part, v, add=rule is not set_at)
    else:
        into = _positions_of(index, shape)
        source = emission.in_memory(v)
        order = np.broadcast_to(np.arange(v.size).reshape(v.shape), into.shape).ravel()
        _scatter(emission, source, _offsets(source, order), out, _offsets(out, into.ravel()), add=rule is not set_at)
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
    operands: list[int | Location] = [source]
    if add:
        before = Buffer(part.base, part.offset, part.strides, part.shape)
        operands = [before, source]
    fused.steps.append(
        FusedStep(0, (lambda k, a, b: k.binary("fadd", a, b)) if add else (lambda k, a: a), operands, False, [part])
    )
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


def _offsets(array: Buffer, numbers: Any) -> Any:
    """The offsets, in doubles from the array's base, of the elements with these flat indices."""
    locations = np.unravel_index(np.maximum(numbers, 0), array.shape) if array.shape else ()
    return array.offset + sum(
        (i * s for i, s in zip(locations, array.strides, strict=True)), np.zeros(numbers.shape, np.int64)
    )


def _table(emission: Emission, offsets: Any) -> Callable[[str], str]:
    """Write code that reads offset j from a table of constants."""
    emission.one_point_only("positions in large arrays")
    is_short = np.abs(offsets).max(initial=0) < 2**31
    kind = "i32" if is_short else "i64"
    stored = np.ascontiguousarray(offsets, np.int32 if is_short else np.int64)
    code = emission.code
    table = emission.module.outside(code, id(stored), stored)

    def at(j: str) -> str:
        entry = code.load(code.emit(f"getelementptr inbounds {kind}, ptr {table}, i64 {j}"), kind)
        return code.emit(f"sext i32 {entry} to i64") if is_short else entry

    return at


def _gather(emission: Emission, source: Buffer, offsets: Any, target: Buffer) -> None:
    """target[j] = source[offsets[j]], and 0 for a negative offset; the target is contiguous."""
    code = emission.code
    flat = emission.contiguous(target) if not target.is_contiguous else target
    offset_at = _table(emission, offsets)
    inserts_zeros = bool(np.any(offsets < 0))

    def body(j: str) -> None:
        offset = offset_at(j)
        if inserts_zeros:
            is_zero = code.emit(f"icmp slt i64 {offset}, 0")
            safe = code.emit(f"select i1 {is_zero}, i64 {source.offset}, i64 {offset}")
            read = code.load(code.element(source.base, safe))
            value = code.emit(f"select i1 {is_zero}, double {literal(0.0)}, double {read}")
        else:
            value = code.load(code.element(source.base, offset))
        code.store(value, code.element(flat.base, code.emit(f"add i64 {j}, {flat.offset}")))

    code.loop(len(offsets), body)
    if flat is not target:
        emission.copy(flat, target)


def _scatter(emission: Emission, source: Buffer, read: Any, target: Buffer, written: Any, *, add: bool) -> None:
    """target[written[j]] = source[read[j]], or += it, in this order."""
    code = emission.code
    from_offset, to_offset = _table(emission, read), _table(emission, written)

    def body(j: str) -> None:
        a, b = from_offset(j), to_offset(j)
        value = code.load(code.element(source.base, a))
        location = code.element(target.base, b)
        if add:
            value = code.emit(f"fadd double {code.load(location)}, {value}")
        code.store(value, location)

    code.loop(len(read), body)
