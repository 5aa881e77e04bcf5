"""The sweep over records of scalars and of elements of arrays, in machine code; see `fast.quick_sweep`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from adbench.tape.core.node import Scalar
from adbench.tape.core.recording import ASK, Cell
from adbench.tape.machine import layout
from adbench.tape.machine.object_layouts import FLOAT_VALUE
from adbench.tape.machine.writer import BYTE, INT, NUMBER, POINTER, SHORT, Module, Writer, integer, number
from adbench.tape.rules.indexing import getitem

FAR, NEAR, NEXT = 24, 12, 6
"""How many records ahead the sweep asks for a record, for its objects, and for the numbers of its result."""


def write_sweep(module: Module) -> None:
    """sweep(self, records): sweep the next records of a reversed tape, up to one that Python must treat."""
    w = Writer(module, "sweep", POINTER, POINTER)
    build, (_, records) = w.build, w.made.args
    known, begin, turn, body, compact, asks, of_scalars, of_element, after, done = (w.block() for _ in range(10))
    build.cbranch(w.is_a(records, type(reversed([]))), known, done)

    w.write(known)
    listed = w.part(records, layout.LISTED)
    build.cbranch(w.exists(listed), begin, done)
    w.write(begin)
    items = w.part(listed, layout.ITEMS_OF_LIST)
    start = w.part(records, layout.PLACE, INT)
    build.branch(turn)

    w.write(turn)
    place = build.phi(INT)
    place.add_incoming(start, begin)
    w.put(records, layout.PLACE, place)
    build.cbranch(build.icmp_signed(">=", place, integer(0)), body, done)

    w.write(body)
    _ask_early(w, items, place)
    record = build.load(build.gep(items, [place], source_etype=POINTER), typ=POINTER)
    w.require(w.is_a(record, tuple))
    rule, out, a, b, p, q = (w.item(record, k) for k in range(6))
    w.require(w.is_a(out, Scalar))
    held = w.slot(out, "adj")
    w.require(w.is_a(held, float))
    adj = w.part(held, FLOAT_VALUE, NUMBER)
    is_zero = build.fcmp_ordered("==", adj, number(0.0))
    build.cbranch(w.same(q, w.literal(ASK)), asks, compact)
    w.write(compact)
    build.cbranch(is_zero, after, of_scalars)
    w.write(asks)
    w.require(w.same(rule, w.literal(getitem)))
    build.cbranch(is_zero, after, of_element)

    w.write(of_scalars)
    slopes = [_slope(w, cell, slope) for cell, slope in ((a, p), (b, q))]
    for cell, slope in zip((a, b), slopes, strict=True):
        add, on = w.block(), w.block()
        build.cbranch(w.same(cell, w.literal(None)), on, add)
        w.write(add)
        _accumulate(w, cell, build.fmul(adj, slope), on)
        w.write(on)
    build.branch(after)

    w.write(of_element)
    _add_to_element(w, a, p, adj)
    build.branch(after)

    w.write(after)
    place.add_incoming(build.sub(place, integer(1)), after)
    build.branch(turn)

    w.write(w.leave)
    w.call("PyErr_Clear")
    build.branch(done)
    w.write(done)
    build.ret(w.own_literal(None))


def write_release(module: Module) -> None:
    """release(self, tape): drop the records of a tape, last to first."""
    w = Writer(module, "release", POINTER, POINTER)
    build, (_, tape) = w.build, w.made.args
    begin, turn, body = build.block, w.block(), w.block()
    size = w.part(tape, layout.SIZE, INT)
    build.branch(turn)

    w.write(turn)
    left = build.phi(INT)
    left.add_incoming(size, begin)
    build.cbranch(build.icmp_signed(">", left, integer(0)), body, w.leave)

    w.write(body)
    place = build.sub(left, integer(1))
    items = w.part(tape, layout.ITEMS_OF_LIST)
    _ask_early(w, items, place)
    record = build.load(build.gep(items, [place], source_etype=POINTER), typ=POINTER)
    w.put(tape, layout.SIZE, place)  # before the record goes, which may run a finalizer that reads the tape
    w.call("Py_DecRef", record)
    now = w.part(tape, layout.SIZE, INT)
    left.add_incoming(now, build.block)
    build.branch(turn)

    w.write(w.leave)
    build.ret(w.own_literal(None))


def _ask_early(w: Writer, items: Any, place: Any) -> None:
    """Ask for later records and their objects, because long tapes leave the cache."""
    build = w.build

    def ahead(steps: int) -> Any:
        there = build.sub(place, integer(steps))
        there = build.select(build.icmp_signed(">", there, integer(0)), there, integer(0))
        return build.load(build.gep(items, [there], source_etype=POINTER), typ=POINTER)

    far = ahead(FAR)
    for offset in (0, 64):
        w.prefetch(build.gep(far, [integer(offset)], source_etype=BYTE))
    near = ahead(NEAR)
    for k in (1, 2, 4, 5):
        w.prefetch(w.item(near, k))
    next_, numbers, on = ahead(NEXT), w.block(), w.block()
    out = w.item(next_, 1)
    build.cbranch(w.is_a(out, Scalar), numbers, on)
    w.write(numbers)
    for name in ("val", "adj"):
        w.prefetch(w.slot(out, name))
    build.branch(on)
    w.write(on)


def _slope(w: Writer, cell: Any, slope: Any) -> Any:
    """The number of a partial; the cell must be None, or a scalar whose adjoint is a float."""
    build, there, done = w.build, w.block(), w.block()
    before = build.block
    build.cbranch(w.same(cell, w.literal(None)), done, there)
    w.write(there)
    w.require(w.is_a(cell, Scalar))
    w.require(w.is_a(w.slot(cell, "adj"), float))
    found = w.constant(slope)
    end = build.block
    build.branch(done)
    w.write(done)
    return w.either(NUMBER, (number(0.0), before), (found, end))


def _accumulate(w: Writer, cell: Any, part: Any, on: Any) -> None:
    """cell.adj += part; within the float if nothing else refers to it. Goes on to the block `on`."""
    build, within, anew = w.build, w.block(), w.block()
    held = w.slot(cell, "adj")
    total = build.fadd(w.part(held, FLOAT_VALUE, NUMBER), part)
    build.cbranch(build.icmp_signed("==", w.part(held, layout.COUNT, SHORT), ir.Constant(SHORT, 1)), within, anew)
    w.write(within)
    w.put(held, FLOAT_VALUE, total)
    build.branch(on)
    w.write(anew)
    new = w.new_float(total)
    w.require(w.exists(new))
    w.put_slot(cell, "adj", new)
    w.call("Py_DecRef", held)
    build.branch(on)


def _add_to_element(w: Writer, cells: Any, params: Any, adj: Any) -> None:
    """Add to an element of an adjoint, which must be a vector or a matrix that no one else holds."""
    for part, kind in ((cells, list), (params, dict)):
        w.require(w.is_a(part, kind))
    cell = w.part(w.part(cells, layout.ITEMS_OF_LIST), 0)
    w.require(w.is_a(cell, Cell))
    array = w.slot(cell, "adj", Cell)
    w.require(w.same(w.slot(cell, "own", Cell), w.literal(True)))
    index = w.call("PyDict_GetItem", params, w.literal("index"))
    w.require(w.exists(index))
    _, offset = w.offset(array, index)
    w.put_element_at(array, offset, w.build.fadd(w.element_at(array, offset), adj))
