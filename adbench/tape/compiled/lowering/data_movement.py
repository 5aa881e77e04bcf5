"""Operations that move elements: views where numpy would make one, register for register, or copies.

Where an element goes is not written down for each rule. The rule's own value function is run on the numbers of the
elements, 1, 2, 3, …: what comes out says where each one went; 0 stands for a zero that was put in.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.simd import Lanes, literal
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.loop_fusion import Nest, Step, loop, moved_by
from adbench.tape.compiled.lowering.storage import (
    SMALL,
    Big,
    Place,
    Shape,
    Small,
    Uniform,
    row_by_row,
    size_of,
    viewed,
)
from adbench.tape.compiled.trace.simplify import ADD_AT
from adbench.tape.core.rule import Rule
from adbench.tape.rules import shapes
from adbench.tape.rules.indexing import getitem, is_basic, put, set_at

_VIEWS = frozenset((shapes._broadcast, shapes._reshape, shapes._transpose, shapes._flip, shapes._zeros, shapes.copy))
_MOVED = frozenset(
    (
        *(shapes._tril, shapes._triu, shapes._roll, shapes._repeat, shapes._concatenate, shapes._gather_scalars),
        *(put, set_at, getitem, ADD_AT),
    )
)


def is_view(rule: Rule, params: dict[str, Any]) -> bool:
    """Whether numpy would make a view (and for zeros, nothing)."""
    return rule in _VIEWS or (rule is getitem and is_basic(params["index"]))


def is_moved(rule: Rule) -> bool:
    """Whether the rule moves elements to other places."""
    return rule in _MOVED


def seen(emission: Emission, rule: Rule, place: Place, params: dict[str, Any], shape: Shape) -> Place:
    """A view of a value."""
    if rule is shapes._zeros:
        return _unless_small(Uniform(literal(0.0), shape), shape)
    if isinstance(place, Uniform) or (isinstance(place, Small) and size_of(place.shape) == 1):
        element = place.element if isinstance(place, Uniform) else place.elements[0]
        return _unless_small(Uniform(element, shape, place.boolean), shape)
    if isinstance(place, Small) and size_of(shape) <= SMALL:
        return _by_numbers(rule, [place], params, shape)
    array = emission.in_memory(place)
    if rule is shapes._reshape:
        array = emission.contiguous(array)
        view = Big(array.base, array.offset, row_by_row(shape), shape, array.boolean)
    else:
        is_part = rule is getitem
        view = viewed(array, lambda x: _as_view(x, params["index"]) if is_part else rule.value(x, **params))
    return Small(emission.elements(view), shape, view.boolean) if size_of(shape) <= SMALL else view


def _unless_small(place: Uniform, shape: Shape) -> Place:
    if size_of(shape) > SMALL:
        return place
    return Small((place.element,) * size_of(shape), shape, place.boolean)


def moved(
    emission: Emission,
    rule: Rule,
    places: Sequence[Place],
    params: dict[str, Any],
    shape: Shape,
    target: Big | None = None,
    in_place: bool = False,
) -> Place:
    """The elements in their new places; with `in_place` in the memory of the first operand."""
    if size_of(shape) <= SMALL and all(size_of(p.shape) <= SMALL for p in places):
        if rule in (ADD_AT, put):
            return _added(emission, rule, places, params, shape)
        return _by_numbers(rule, [Small(emission.elements(p), p.shape, p.boolean) for p in places], params, shape)
    if rule in (ADD_AT, set_at, put):
        return _written(emission, rule, places, params, shape, target, in_place)
    home = target or emission.room(shape)
    if rule is shapes._concatenate:
        axis, start = params["axis"] % len(shape), 0
        for p in places:
            stop = start + p.shape[axis]
            if size_of(p.shape):
                index = (*(slice(None),) * axis, slice(start, stop))
                emission.copy(p, viewed(home, operator.itemgetter(index)))
            start = stop
        return home
    if rule is shapes._gather_scalars:
        for k, p in enumerate(places):
            emission.copy(Small(emission.elements(p), (1,)), Big(home.base, home.offset + k, (1,), (1,)))
        return home
    (place,) = places
    numbers = _numbers(rule, [place.shape], params).ravel()
    source = emission.in_memory(place)
    offsets = _offsets(source, numbers - 1)
    _gather(emission, source, np.where(numbers == 0, np.iinfo(np.int64).min, offsets), home)
    return Small(emission.elements(home), shape) if size_of(shape) <= SMALL else home


def _numbers(rule: Rule, given: Sequence[Shape], params: dict[str, Any]) -> Any:
    """Where every element of the result comes from: 1 + its place among the inputs' elements, 0 for a zero."""
    parts, start = [], 1
    for s in given:
        parts.append(np.arange(start, start + size_of(s), dtype=float).reshape(s)[()])
        start += size_of(s)
    return np.asarray(rule.value(*parts, **params)).astype(np.int64)


def _by_numbers(rule: Rule, places: Sequence[Small], params: dict[str, Any], shape: Shape) -> Small:
    names = [literal(0.0), *(name for p in places for name in p.elements)]
    order = _numbers(rule, [p.shape for p in places], params).ravel()
    return Small(tuple(names[i] for i in order), shape, places[0].boolean)


def _places_of(index: Any, shape: Shape) -> Any:
    return np.arange(size_of(shape)).reshape(shape)[index]


def _added(emission: Emission, rule: Rule, places: Sequence[Place], params: dict[str, Any], shape: Shape) -> Small:
    """x with v added in places, in registers; of x = 0 the first addition is none."""
    lane = Lanes(emission.code, 1)
    x: list[str | None] = [None] * size_of(shape) if rule is put else list(emission.elements(places[0]))
    into = _places_of(params["index"], shape)
    v = emission.elements(places[-1])
    order = np.broadcast_to(np.arange(len(v)).reshape(places[-1].shape), into.shape)
    for i, k in zip(into.ravel(), order.ravel(), strict=True):
        have = x[i]
        x[i] = v[k] if have is None else lane.binary("fadd", have, v[k])
    return Small(tuple(literal(0.0) if name is None else name for name in x), shape)


def _written(
    emission: Emission,
    rule: Rule,
    places: Sequence[Place],
    params: dict[str, Any],
    shape: Shape,
    target: Big | None,
    in_place: bool,
) -> Place:
    """x with v written or added in places, in memory."""
    index, v = params["index"], places[-1]
    if in_place and isinstance(places[0], Big):
        home = places[0]
    else:
        home = target or emission.room(shape)
        emission.copy(Uniform(literal(0.0), shape) if rule is put else places[0], home)
    if is_basic(index):
        part = viewed(home, lambda x: _as_view(x, index))
        _write_into(emission, part, v, add=rule is not set_at)
    else:
        into = _places_of(index, shape)
        source = emission.in_memory(v)
        order = np.broadcast_to(np.arange(size_of(v.shape)).reshape(v.shape), into.shape).ravel()
        _scatter(emission, source, _offsets(source, order), home, _offsets(home, into.ravel()), add=rule is not set_at)
    return Small(emission.elements(home), shape) if size_of(shape) <= SMALL else home


def _as_view(x: Any, index: Any) -> Any:
    """x[index] as an array also for one element."""
    index = index if isinstance(index, tuple) else (index,)
    return x[index] if any(i is Ellipsis for i in index) else x[(*index, ...)]


def _write_into(emission: Emission, part: Big, v: Place, *, add: bool) -> None:
    if size_of(part.shape) == 0:
        return
    if len(v.shape) > len(part.shape):  # numpy drops leading axes of length 1
        v = _reshaped(emission, v, v.shape[len(v.shape) - len(part.shape) :])
    source: Place = emission.in_memory(v) if isinstance(v, Small) and size_of(v.shape) > 1 else v
    shape = part.shape or (1,)
    if not part.shape:
        part = Big(part.base, part.offset, (1,), (1,))
    nest = Nest(emission.code, shape)
    operands: list[int | Place] = [source]
    if add:
        before = Big(part.base, part.offset, part.strides, part.shape)
        operands = [before, source]
    nest.steps.append(
        Step(0, (lambda k, a, b: k.binary("fadd", a, b)) if add else (lambda k, a: a), operands, False, [part])
    )
    nest.emit()


def _reshaped(emission: Emission, place: Place, shape: Shape) -> Place:
    if isinstance(place, Big):
        array = emission.contiguous(place)
        return Big(array.base, array.offset, row_by_row(shape), shape, array.boolean)
    if isinstance(place, Uniform):
        return Uniform(place.element, shape, place.boolean)
    return Small(place.elements, shape, place.boolean)


def _offsets(array: Big, numbers: Any) -> Any:
    """Offsets, in doubles from the array's base, of the elements with these flat numbers."""
    places = np.unravel_index(np.maximum(numbers, 0), array.shape) if array.shape else ()
    return array.offset + sum(
        (i * s for i, s in zip(places, array.strides, strict=True)), np.zeros(numbers.shape, np.int64)
    )


def _table(emission: Emission, offsets: Any) -> str:
    stored = np.ascontiguousarray(offsets, np.int64)
    return emission.module.outside(emission.code, id(stored), stored)


def _gather(emission: Emission, source: Big, offsets: Any, target: Big) -> None:
    """target[j] = source[offsets[j]], and 0 for a negative offset; the target is contiguous."""
    code = emission.code
    flat = emission.contiguous(target) if not target.is_contiguous else target
    table = _table(emission, offsets)

    def body(j: str) -> None:
        offset = code.emit(f"load i64, ptr {code.emit(f'getelementptr inbounds i64, ptr {table}, i64 {j}')}, align 8")
        is_zero = code.emit(f"icmp slt i64 {offset}, 0")
        safe = code.emit(f"select i1 {is_zero}, i64 {source.offset}, i64 {offset}")
        read = code.emit(f"load double, ptr {moved_by(code, source.base, safe, 1)}, align 8")
        value = code.emit(f"select i1 {is_zero}, double {literal(0.0)}, double {read}")
        place = code.emit(f"add i64 {j}, {flat.offset}")
        code.do(f"store double {value}, ptr {moved_by(code, flat.base, place, 1)}, align 8")

    loop(code, "0", str(len(offsets)), 1, body)
    if flat is not target:
        emission.copy(flat, target)


def _scatter(emission: Emission, source: Big, read: Any, target: Big, written: Any, *, add: bool) -> None:
    """target[written[j]] = source[read[j]], or += it, in this order."""
    code = emission.code
    from_table, to_table = _table(emission, read), _table(emission, written)

    def body(j: str) -> None:
        a = code.emit(f"load i64, ptr {code.emit(f'getelementptr inbounds i64, ptr {from_table}, i64 {j}')}, align 8")
        b = code.emit(f"load i64, ptr {code.emit(f'getelementptr inbounds i64, ptr {to_table}, i64 {j}')}, align 8")
        value = code.emit(f"load double, ptr {moved_by(code, source.base, a, 1)}, align 8")
        place = moved_by(code, target.base, b, 1)
        if add:
            value = code.emit(f"fadd double {code.emit(f'load double, ptr {place}, align 8')}, {value}")
        code.do(f"store double {value}, ptr {place}, align 8")

    loop(code, "0", str(len(read)), 1, body)
