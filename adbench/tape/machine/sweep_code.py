"""The sweep over records of scalars and of elements of arrays, in machine code; see `fast.quick_sweep`."""

from __future__ import annotations

from functools import partial

from adbench.tape.core.node import Scalar
from adbench.tape.core.recording import ASK, AdjointCell
from adbench.tape.machine import layout
from adbench.tape.machine.layout import FLOAT_VALUE
from adbench.tape.machine.simd import Module, Name, X
from adbench.tape.machine.writer import Writer
from adbench.tape.rules.indexing import getitem

FAR, NEAR, NEXT = 24, 12, 6
"""How many records ahead the sweep asks for a record, for its objects, and for the numbers of its result."""


def write_sweep(module: Module) -> None:
    """sweep(self, records): sweep the next records of a reversed tape, up to one that Python must treat."""
    w = Writer(module, "sweep", "ptr", "ptr")
    code, (_, records) = w.code, w.arguments
    known, begin, turn, body, compact, asks, of_scalars, of_element, after, done = w.blocks(10)
    w.branch(w.is_a(records, type(reversed([]))), known, done)

    code.begin(known)
    listed = w.part(records, layout.LISTED)
    w.branch(w.exists(listed), begin, done)
    code.begin(begin)
    items = w.part(listed, layout.ITEMS_OF_LIST)
    w.go(turn)

    code.begin(turn)
    place = w.part(records, layout.PLACE, "i64")
    w.branch(code.emit(f"icmp sge i64 {place}, 0"), body, done)

    code.begin(body)
    _ask_early(w, items, place)
    record = w.part(w.at(items, place, "ptr"))
    w.require(w.is_a(record, tuple))
    rule, out, a, b, p, q = (w.item(record, k) for k in range(6))
    w.require(w.is_a(out, Scalar))
    held = w.slot(out, "adj")
    w.require(w.is_a(held, float))
    adj = w.number(held)
    is_zero = adj.is_("oeq", 0.0)
    w.branch(w.same(q, w.literal(ASK)), asks, compact)
    code.begin(compact)
    w.branch(is_zero, after, of_scalars)
    code.begin(asks)
    w.require(w.same(rule, w.literal(getitem)))
    w.branch(is_zero, after, of_element)

    code.begin(of_scalars)
    slopes = [_slope(w, cell, slope) for cell, slope in ((a, p), (b, q))]
    for cell, slope in zip((a, b), slopes, strict=True):
        code.either(w.same(cell, w.literal(None)), lambda: None, partial(_accumulate, w, cell, slope, adj))
    w.go(after)

    code.begin(of_element)
    _add_to_element(w, a, p, adj)
    w.go(after)

    code.begin(after)
    w.put(records, layout.PLACE, code.emit(f"sub i64 {place}, 1"), "i64")
    w.go(turn)

    w.leave()
    w.call("PyErr_Clear")
    w.go(done)
    code.begin(done)
    w.ret(w.own_literal(None))
    w.end()


def _ask_early(w: Writer, items: Name, place: Name) -> None:
    """Ask for later records and their objects, because long tapes leave the cache."""
    emit = w.code.emit

    def ahead(steps: int) -> Name:
        there = emit(f"sub i64 {place}, {steps}")
        there = emit(f"select i1 {emit(f'icmp sgt i64 {there}, 0')}, i64 {there}, i64 0")
        return w.part(w.at(items, there, "ptr"))

    far = ahead(FAR)
    for offset in (0, 64):
        w.prefetch(w.at(far, offset))
    near = ahead(NEAR)
    for k in (1, 2, 4, 5):
        w.prefetch(w.item(near, k))
    out = w.item(ahead(NEXT), 1)

    def numbers() -> None:
        for name in ("val", "adj"):
            w.prefetch(w.slot(out, name))

    w.code.either(w.is_a(out, Scalar), numbers)


def _slope(w: Writer, cell: Name, slope: Name) -> X:
    """The number of a partial; the cell must be None, or a scalar whose adjoint is a float."""

    def factor() -> Name:
        w.require(w.is_a(cell, Scalar))
        w.require(w.is_a(w.slot(cell, "adj"), float))
        return w.constant(slope).name

    is_none = w.same(cell, w.literal(None))
    return w.numbers.x(w.code.either(is_none, lambda: w.numbers.constant(0.0), factor, "double"))


def _accumulate(w: Writer, cell: Name, slope: X, adj: X) -> None:
    """cell.adj += adj · slope; within the float if nothing else refers to it."""
    held = w.slot(cell, "adj")
    total = w.number(held) + adj * slope

    def anew() -> None:
        new = w.new_float(total)
        w.require(w.exists(new))
        w.put_slot(cell, "adj", new)
        w.call("Py_DecRef", held)

    is_only = w.same(w.part(held, layout.COUNT, "i32"), 1, "i32")
    w.code.either(is_only, lambda: w.put(held, FLOAT_VALUE, total.name, "double"), anew)


def _add_to_element(w: Writer, cells: Name, params: Name, adj: X) -> None:
    """Add to an element of an adjoint, which must be a vector or a matrix that no one else holds."""
    for part, kind in ((cells, list), (params, dict)):
        w.require(w.is_a(part, kind))
    cell = w.part(w.part(cells, layout.ITEMS_OF_LIST), 0)
    w.require(w.is_a(cell, AdjointCell))
    array = w.slot(cell, "adj", AdjointCell)
    w.require(w.same(w.slot(cell, "own", AdjointCell), w.literal(True)))
    index = w.call("PyDict_GetItem", params, w.literal("index"))
    w.require(w.exists(index))
    _, offset = w.offset(array, index)
    element = w.element(array, offset)
    w.code.store((w.numbers.x(w.code.load(element)) + adj).name, element)
