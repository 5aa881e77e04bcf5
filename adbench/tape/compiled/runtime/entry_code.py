"""Write the code of an entry point: check arguments, create the result, try the recordings, fall back to Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.compiled.lowering.storage import Shape
from adbench.tape.machine import layout
from adbench.tape.machine.llvm import Object
from adbench.tape.machine.simd import Module, Name
from adbench.tape.machine.writer import ObjectCode


@dataclass(frozen=True)
class StaticArgument:
    """An argument that is part of the program, such as an integer or a text."""

    value: Any


class _EntryWriter(ObjectCode):
    """Writes the entry's code, part by part. Cases that it does not handle go to the label `otherwise`.

    arguments   a word for each: the number, or the address of an array's data
    parts       a word for each part of the result, likewise
    state       the dispatch table, see `DispatchTable`
    """

    def __init__(self, module: Module, inputs: int, results: Sequence[Shape], memory: np.ndarray) -> None:
        super().__init__(module)
        code = self.code
        self.results = results
        self.arguments = code.variable(f"[{max(inputs, 1)} x i64]")
        self.parts = code.variable(f"[{max(len(results), 1)} x i64]")
        self.float_type = module.outside(code, "float", float)
        self.double_type = module.outside(code, "double", np.float64)
        self.array_type = module.outside(code, "array", np.ndarray)
        self.descr = module.outside(code, "descr", np.dtype(np.float64))
        self.state = module.outside(code, "dispatch", memory)
        self.arrays: dict[int, Name] = {}

    def check_setting(self, thing: Name, value: Any) -> None:
        """Leave unless the argument is this object, or an integer of this value."""
        known = self.module.outside(self.code, ("setting", id(value)), Object(value))
        same = self.same(thing, known)
        if type(value) is not int or not -(2**62) < value < 2**62:
            self.code.leave_unless(same, "otherwise")
            return
        good = self.code.label()
        self.code.leave_if(same, good)
        int_type = self.module.outside(self.code, "int", int)
        self.code.leave_unless(self.same(self.part(thing, layout.TYPE), int_type), "otherwise")
        overflow = self.code.variable("i32")
        number = self.call("PyLong_AsLongLongAndOverflow", thing, overflow)
        self.code.leave_unless(self.same(number, value, "i64"), "otherwise")
        self.go(good)
        self.code.begin(good)

    def check_arguments(self, inputs: Sequence[Shape | StaticArgument]) -> None:
        """Leave unless each argument fits the recordings; store numbers and addresses."""
        self.code.leave_unless(self.same("%count", len(inputs), "i64"), "otherwise")
        slots = iter(range(len(inputs)))
        for k, shape in enumerate(inputs):
            thing = self.part("%given", 8 * k)
            if isinstance(shape, StaticArgument):
                self.check_setting(thing, shape.value)
                continue
            kind = self.part(thing, layout.TYPE)
            slot = self.at(self.arguments, 8 * next(slots))
            if shape == ():
                is_float, is_double = (self.same(kind, known) for known in (self.float_type, self.double_type))
                self.code.leave_unless(self.code.emit(f"or i1 {is_float}, {is_double}"), "otherwise")
                self.code.store(self.part(thing, layout.FLOAT_VALUE, "double"), slot)
            else:
                self.check_array(thing, kind, shape)
                self.code.store(self.part(thing, layout.DATA), slot, "ptr")

    def check_array(self, thing: Name, kind: Name, shape: Shape) -> None:
        """Leave unless it is a contiguous float64 array of this shape."""
        emit = self.code.emit
        self.code.leave_unless(self.same(kind, self.array_type), "otherwise")
        flags = emit(f"and i32 {self.part(thing, layout.FLAGS, 'i32')}, {layout.IN_ORDER}")
        axes = self.same(self.part(thing, layout.NDIM, "i32"), len(shape), "i32")
        conditions = [
            self.same(self.part(thing, layout.DESCR), self.descr),
            self.same(flags, layout.IN_ORDER, "i32"),
        ]
        self.code.leave_unless(axes, "otherwise")
        dimensions = self.part(thing, layout.DIMENSIONS)
        conditions += [self.same(self.part(dimensions, 8 * axis, "i64"), n, "i64") for axis, n in enumerate(shape)]
        total = conditions[0]
        for condition in conditions[1:]:
            total = emit(f"and i1 {total}, {condition}")
        self.code.leave_unless(total, "otherwise")

    def borrow(self) -> None:
        self.free = self.part(self.state, 16)
        self.code.leave_unless(self.exists(self.free), "otherwise")
        enough = f"icmp sge i64 {self.part(self.free, 8, 'i64')}, {self.part(self.state, 8, 'i64')}"
        self.code.leave_unless(self.code.emit(enough), "otherwise")
        self.put(self.state, 16, self.part(self.free))
        self.work = self.at(self.free, 64)

    def give_back(self) -> None:
        self.code.store(self.part(self.state, 16), self.free, "ptr")
        self.put(self.state, 16, self.free)

    def make_arrays(self) -> None:
        """Create all arrays of the result, then check them."""
        code, new = self.code, self.module.outside(self.code, "new_array", layout.new_array_address())
        for k, shape in enumerate(self.results):
            if shape:
                dims = self.module.constant(f"[{len(shape)} x i64] [{', '.join(f'i64 {n}' for n in shape)}]")
                self.arrays[k] = code.emit(
                    f"call ptr {new}(ptr {self.array_type}, i32 {len(shape)}, ptr {dims}, i32 {layout.DOUBLE}, "
                    f"ptr null, ptr null, i32 0, i32 0, ptr null)"
                )
        for k, array in self.arrays.items():
            self.code.leave_unless(self.exists(array), "no_memory")
            self.put(self.parts, 8 * k, self.part(array, layout.DATA))

    def release_arrays(self) -> None:
        """Release the result's arrays. Py_DecRef skips arrays that could not be created."""
        for array in self.arrays.values():
            self.call("Py_DecRef", array)

    def try_recordings(self) -> str:
        """Run recordings until the guards of one hold, and move it to the front. Returns the label for failure."""
        code = self.code
        failed, success = code.label(), code.label()
        valid: list[Name] = []

        def attempt(i: Name) -> None:
            slot = self.at(self.state, code.emit(f"add i64 {code.emit(f'mul i64 {i}, 8')}, 64"))
            run = code.load(slot, "ptr")
            outcome = code.emit(f"call i32 {run}(ptr {self.arguments}, ptr {self.parts}, ptr {self.work})")
            code.leave_if(self.same(outcome, 0, "i32"), success)
            code.leave_unless(self.same(outcome, 1, "i32"), failed)
            valid[:] = i, slot, run

        def to_front() -> None:
            code.store(self.part(self.state, 64), slot, "ptr")
            self.put(self.state, 64, run)

        code.loop(self.part(self.state, 0, "i64"), attempt)
        self.go(failed)
        code.begin(success)
        i, slot, run = valid
        code.either(self.same(i, 0, "i64"), lambda: None, to_front)
        return failed

    def assembled(self, template: Any) -> Name:
        """Create the result: a part by its number, or a tuple, which takes over the references."""
        if isinstance(template, int):
            array = self.arrays.get(template)
            return array or self.call("PyFloat_FromDouble", self.part(self.parts, 8 * template, "double"))
        things = [self.assembled(part) for part in template]
        new = self.call("PyTuple_New", len(things))
        for k, thing in enumerate(things):
            self.call("PyTuple_SetItem", new, k, thing)
        return new


def write_entry(
    inputs: Sequence[Shape | StaticArgument],
    results: Sequence[Shape],
    template: Any,
    memory: np.ndarray,
    otherwise: Callable[..., Any],
) -> tuple[str, list[Any]]:
    """The source of a module with `entry`, and the objects that it needs.

    template   the result, with the number of each part in its place: one number, or a tuple of templates
    memory     of the dispatch table
    """
    module = Module()
    w = _EntryWriter(module, len(inputs), results, memory)
    code = w.code
    w.check_arguments(inputs)
    w.borrow()
    w.make_arrays()
    failed = w.try_recordings()
    w.give_back()
    code.do(f"ret ptr {w.assembled(template)}")
    code.begin(failed)
    w.give_back()
    w.call("PyErr_Clear")  # the eager engine raises an error from Python again
    w.release_arrays()
    w.go("otherwise")
    if w.arrays:
        code.begin("no_memory")  # MemoryError is set; release arrays and workspace
        w.give_back()
        w.release_arrays()
        code.do("ret ptr null")
    code.begin("otherwise")
    target = module.outside(code, "otherwise", otherwise)
    answer = w.call("PyObject_Vectorcall", target, "%given", "%count", "null")
    code.do(f"ret ptr {answer}")
    module.function("ptr @entry(ptr %self, ptr %given, i64 %count)", code)
    _write_vectorcall(module, otherwise)
    return module.text(), module.environment


def _write_vectorcall(module: Module, otherwise: Callable[..., Any]) -> None:
    """The entry for CPython's vectorcall, whose count has a flag in its highest bit. Names go to Python's function."""
    w = ObjectCode(module)
    code = w.code
    code.leave_unless(w.same("%names", "null"), "named")
    count = code.emit(f"and i64 %count, {2**63 - 1}")
    code.do(f"ret ptr {code.emit(f'tail call ptr @entry(ptr %self, ptr %given, i64 {count})')}")
    code.begin("named")
    target = module.outside(code, "otherwise", otherwise)
    code.do(f"ret ptr {w.call('PyObject_Vectorcall', target, '%given', '%count', '%names')}")
    module.function("ptr @vectorcall(ptr %self, ptr %given, i64 %count, ptr %names)", code)
