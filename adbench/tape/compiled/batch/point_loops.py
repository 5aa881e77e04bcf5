"""Loops over points in machine code, compiled once per process and shared by all compiled functions.

    void lanes(i64 first, i64 stop, ptr plan)     eight points at once, one in each SIMD lane
    void points(i64 first, i64 stop, ptr plan)    one point after the other
    void shares(ptr plans, i64 first, i64 last)   `lanes` for these shares of the points, which threads can compute

`lanes` copies eight points into a block, element by element as vectors over the points, runs programs of that width
(`lowering.module`), and copies the block of results back. After the last whole block, the last point fills the free
lanes. Each program in turn runs for the lanes that have no result yet.

`points` runs ordinary programs on each point's rows, where they lie.

`shares` reads the number of points, that of a share, a multiple of eight, and for each share the address of its plan.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

from adbench.tape.compiled.lowering.emission import ReturnCode
from adbench.tape.compiled.lowering.loops.loop_nest import Helpers
from adbench.tape.machine.llvm import Loaded
from adbench.tape.machine.simd import WIDTH, Code, Module, Name, Simd
from adbench.tape.machine.writer import ObjectCode

PLAN = ("inputs", "results", "programs", "arguments", "parts", "work", "status", "next")
"""The words of a plan.

inputs, results    the address of a table with the fields `FIELDS` for each; before it, their number
programs           the address of the programs' addresses; before it, their number
arguments, parts   memory for the arguments and results of one program
work               its workspace
status             the address of a byte for each point: 0, or the `ReturnCode` that left it without a result
next               the point after the last that ran: `points` stops after an error
"""
FIELDS = ("base", "size", "stride", "first", "is_number")
"""Of an input or a result: the address of the numbers of point 0, numbers per point, the distance of two points (0 if
all share it), its place among the vectors of a block, and whether the program takes a number or an address."""


class _Loops(ObjectCode):
    """Writes the functions."""

    def __init__(self) -> None:
        super().__init__(Module())
        self.one_after_the_other()
        self.in_lanes()
        self.in_shares()

    def begin(self) -> None:
        """Begin a function: read its plan."""
        self.code = Code(self.module)
        self.plan = {name: self.word("%plan", k, "ptr") for k, name in enumerate(PLAN[:-1])}
        self.counts = {name: self.word(self.plan[name], -1) for name in ("inputs", "results", "programs")}

    def end(self, name: str) -> None:
        self.code.do("ret void")
        self.module.function(f"void @{name}(i64 %first, i64 %stop, ptr %plan)", self.code)

    def word(self, pointer: Name, k: Name | int, kind: str = "i64") -> Name:
        return self.code.load(self.at(pointer, k, "i64"), kind)

    def note_next(self, i: Name) -> None:
        self.code.store(i, self.at("%plan", PLAN.index("next"), "i64"), "i64")

    def integers(self, op: str, a: Name, b: Name | int, kind: str = "i64") -> Name:
        return self.code.emit(f"{op} {kind} {a}, {b}")

    def each(self, name: str, body: Callable[[Name, dict[str, Name]], None]) -> None:
        """For each input or result: body(its number, its fields)."""

        def one(k: Name) -> None:
            entry = self.at(self.plan[name], self.integers("mul", k, len(FIELDS)), "i64")
            fields = {field: self.word(entry, j, "ptr" if field == "base" else "i64") for j, field in enumerate(FIELDS)}
            body(k, fields)

        self.code.loop(self.counts[name], one)

    # One point after the other

    def one_after_the_other(self) -> None:
        self.begin()
        code, plan = self.code, self.plan
        outcome = code.variable("i32")

        def point(i: Name) -> None:
            def argument(k: Name, fields: dict[str, Name]) -> None:
                row = code.element(fields["base"], self.integers("mul", i, fields["stride"]))
                number = code.emit(f"ptrtoint ptr {row} to i64")
                slot = self.at(plan["arguments"], k, "i64")
                self.code.either(
                    code.emit(f"icmp ne i64 {fields['is_number']}, 0"),
                    lambda: code.store(code.load(row), slot),
                    lambda: code.store(number, slot, "i64"),
                )

            def address(k: Name, fields: dict[str, Name]) -> None:
                row = code.element(fields["base"], self.integers("mul", i, fields["stride"]))
                code.store(row, self.at(plan["parts"], k, "i64"), "ptr")

            def number(k: Name, fields: dict[str, Name]) -> None:
                row = code.element(fields["base"], self.integers("mul", i, fields["stride"]))
                is_number = code.emit(f"icmp ne i64 {fields['is_number']}, 0")
                self.code.either(is_number, lambda: code.store(self.word(plan["parts"], k, "double"), row))

            def attempt(j: Name) -> None:
                def run() -> None:
                    program = self.word(plan["programs"], j, "ptr")
                    pointers = f"ptr {plan['arguments']}, ptr {plan['parts']}, ptr {plan['work']}"
                    code.store(code.emit(f"call i32 {program}({pointers})"), outcome, "i32")

                self.code.either(code.emit(f"icmp eq i32 {code.load(outcome, 'i32')}, {ReturnCode.GUARD}"), run)

            def failed() -> None:
                bits = code.emit(f"trunc i32 {code_of_outcome} to i8")
                code.do(f"store i8 {bits}, ptr {self.at(plan['status'], i)}")

            self.each("inputs", argument)
            self.each("results", address)
            code.store(str(ReturnCode.GUARD), outcome, "i32")
            code.loop(self.counts["programs"], attempt)
            code_of_outcome = code.load(outcome, "i32")
            self.code.either(
                code.emit(f"icmp eq i32 {code_of_outcome}, 0"), lambda: self.each("results", number), failed
            )
            self.note_next(self.integers("add", i, 1))
            code.leave_if(code.emit(f"icmp eq i32 {code_of_outcome}, {ReturnCode.ERROR}"), "away")

        self.note_next("%stop")
        code.loop("%stop", point, "%first")
        code.do("br label %away")
        code.begin("away")
        self.end("points")

    # Eight points at once

    def in_lanes(self) -> None:
        self.begin()
        code = self.code
        pending, nan = code.variable("i32"), code.variable("i32")

        def block(start: Name) -> None:
            rest = self.integers("sub", "%stop", start)
            is_whole = code.emit(f"icmp sge i64 {rest}, {WIDTH}")
            active = code.emit(f"select i1 {is_whole}, i64 {WIDTH}, i64 {rest}")
            last = self.integers("sub", active, 1)
            rows = [
                self.integers("add", start, code.emit(f"call i64 {least}(i64 {lane}, i64 {last})")) for lane in LANES
            ]

            def argument(_: Name, fields: dict[str, Name]) -> None:
                # An input that all points share is copied once.
                is_new = code.emit(f"icmp eq i64 {start}, %first")
                moves = code.emit(f"icmp ne i64 {fields['stride']}, 0")
                self.code.either(
                    self.integers("or", is_new, moves, "i1"),
                    lambda: self.transpose("arguments", fields, start, rows, is_whole, to_block=True),
                )

            self.each("inputs", argument)
            code.store("255", pending, "i32")
            code.store("0", nan, "i32")
            code.loop(self.counts["programs"], attempt)
            self.each("results", lambda _, f: self.transpose("parts", f, start, rows, is_whole, to_block=False))
            left, bad = code.load(pending, "i32"), code.load(nan, "i32")
            both = self.integers("or", left, bad, "i32")

            def mark(lane: Name) -> None:
                n = code.emit(f"trunc i64 {lane} to i32")
                bits = [self.integers("and", self.integers("lshr", m, n, "i32"), 1, "i32") for m in (left, bad)]
                outcome = self.integers("add", bits[0], self.integers("mul", bits[1], ReturnCode.NAN, "i32"), "i32")
                where = self.at(self.plan["status"], self.integers("add", start, lane))
                code.do(f"store i8 {code.emit(f'trunc i32 {outcome} to i8')}, ptr {where}")

            self.code.either(code.emit(f"icmp ne i32 {both}, 0"), lambda: code.loop(active, mark))

        def attempt(j: Name) -> None:
            wanted = code.load(pending, "i32")

            def run() -> None:
                code.do(f"store i8 {code.emit(f'trunc i32 {wanted} to i8')}, ptr {self.plan['work']}")
                program = self.word(self.plan["programs"], j, "ptr")
                pointers = f"ptr {self.plan['arguments']}, ptr {self.plan['parts']}, ptr {self.plan['work']}"
                masks = code.emit(f"call i32 {program}({pointers})")
                failed = self.integers("and", self.integers("lshr", masks, 8, "i32"), 255, "i32")
                decided = self.integers("or", self.integers("and", masks, 255, "i32"), failed, "i32")
                others = self.integers("xor", decided, 255, "i32")
                code.store(self.integers("and", wanted, others, "i32"), pending, "i32")
                code.store(self.integers("or", code.load(nan, "i32"), failed, "i32"), nan, "i32")

            self.code.either(code.emit(f"icmp ne i32 {wanted}, 0"), run)

        least = self.module.declare("llvm.smin.i64", "i64 {}(i64, i64)")
        code.loop("%stop", block, "%first", WIDTH)
        self.note_next("%stop")
        self.end("lanes")

    def in_shares(self) -> None:
        self.code = code = Code(self.module)
        count, size = (self.word("%plans", k) for k in range(2))

        def share(k: Name) -> None:
            start = self.integers("mul", k, size)
            end = self.integers("add", start, size)
            stop = code.emit(f"call i64 @llvm.smin.i64(i64 {end}, i64 {count})")
            plan = self.word("%plans", self.integers("add", k, 2), "ptr")
            code.do(f"call void @lanes(i64 {start}, i64 {stop}, ptr {plan})")

        code.loop("%last", share, "%first")
        code.do("ret void")
        self.module.function("void @shares(ptr %plans, i64 %first, i64 %last)", code)

    def transpose(
        self,
        block: str,
        fields: dict[str, Name],
        start: Name,
        points: Sequence[Name],
        is_whole: Name,
        *,
        to_block: bool,
    ) -> None:
        """Copy an input's rows for eight points into a block, or a result's rows out of it."""
        code = self.code
        inside = self.at(self.plan[block], fields["first"], VECTOR)
        one = self.integers("and", code.emit(f"icmp eq i64 {fields['size']}, 1"), is_whole, "i1")
        is_line = self.integers("and", one, code.emit(f"icmp eq i64 {fields['stride']}, 1"), "i1")

        def line() -> None:
            outside = code.element(fields["base"], start)
            source, target = (outside, inside) if to_block else (inside, outside)
            code.store(code.load(source, VECTOR), target, VECTOR)

        def every() -> None:
            rows = [code.element(fields["base"], self.integers("mul", i, fields["stride"])) for i in points]
            whole = self.integers("and", fields["size"], -WIDTH)

            def square(c: Name) -> None:
                columns = [self.at(inside, self.integers("add", c, lane), VECTOR) for lane in LANES]
                lines = [code.element(row, c) for row in rows]
                sources, targets = (lines, columns) if to_block else (columns, lines)
                vectors = Simd(code, WIDTH).transposed([code.load(s, VECTOR) for s in sources])
                for vector, target in zip(vectors, targets, strict=True):
                    code.store(vector, target, VECTOR)

            def column(c: Name) -> None:
                where = self.at(inside, c, VECTOR)
                vector = "poison" if to_block else code.load(where, VECTOR)
                for lane, row in zip(LANES, rows, strict=True):
                    if to_block:
                        number = code.load(code.element(row, c))
                        vector = code.emit(f"insertelement {VECTOR} {vector}, double {number}, i64 {lane}")
                    else:
                        number = code.emit(f"extractelement {VECTOR} {vector}, i64 {lane}")
                        code.store(number, code.element(row, c))
                if to_block:
                    code.store(vector, where, VECTOR)

            code.loop(whole, square, step=WIDTH)
            code.loop(fields["size"], column, whole)

        self.code.either(is_line, line, every)


LANES = range(WIDTH)
VECTOR = f"<{WIDTH} x double>"
_LOOP = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_PARALLEL = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2, ctypes.py_object)


@functools.cache
def point_loop(*, lanes: bool) -> Callable[[int, int, int], None]:
    """The function `lanes`, or `points`."""
    return _LOOP(_loaded().address("lanes" if lanes else "points"))


def run_shares(plans: int, count: int, helpers: Helpers) -> None:
    """Run this many shares of the points on several threads."""
    parallel = _PARALLEL(helpers.function)
    parallel(helpers.pool, _loaded().address("shares"), plans, count, helpers.count, helpers.start)


@functools.cache
def _loaded() -> Loaded:
    return Loaded(_Loops().module.text(), [], level=2)
