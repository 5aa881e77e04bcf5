"""Rules without native code: called in Python when the compiled function runs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.compiled.lowering.emission import KernelOperation
from adbench.tape.compiled.lowering.storage import Location, Shape, size_of
from adbench.tape.core.rule import Rule


def python_call(operation: KernelOperation, rule: Rule, boolean: bool = False) -> Location:
    """Write a call of the rule's own function, on arrays that view the operands' memory."""
    emission, locations, shape = operation.emission, operation.operands, operation.shape
    code, module = emission.code, emission.module
    arrays = [None if p is None else emission.contiguous(p) for p in locations]
    out = emission.allocate(shape, boolean)
    emission.python_calls.append(rule.name)
    count = len(arrays) + 1
    table = code.variable(f"[{count} x ptr]")
    for k, array in enumerate([*arrays, out]):
        slot = code.emit(f"getelementptr inbounds ptr, ptr {table}, i64 {k}")
        code.store("null" if array is None else emission.pointer(array), slot, "ptr")
    call = PythonCall(
        rule, operation.params, tuple(None if p is None else (p.shape, p.boolean) for p in locations), shape
    )
    function = module.outside(code, id(call), call)
    to_int = module.declare("PyLong_FromVoidPtr", "ptr {}(ptr)")
    to_call = module.declare("PyObject_CallOneArg", "ptr {}(ptr, ptr)")
    drop = module.declare("Py_DecRef", "void {}(ptr)")
    where = code.emit(f"call ptr {to_int}(ptr {table})")
    answer = code.emit(f"call ptr {to_call}(ptr {function}, ptr {where})")
    code.do(f"call void {drop}(ptr {where})")
    code.leave_if(code.emit(f"icmp eq ptr {answer}, null"), emission.leave_on_error())
    code.do(f"call void {drop}(ptr {answer})")
    return emission.result(out)


@dataclass(eq=False)
class PythonCall:
    """Native code calls it with the address of a table of pointers; it writes the rule's value to the last."""

    rule: Rule
    params: dict[str, Any]
    given: Sequence[Any]
    shape: Shape

    def __call__(self, table: int) -> None:
        """Compute and write the value; exceptions of the rule pass through."""
        pointers = (ctypes.c_void_p * (len(self.given) + 1)).from_address(table)
        inputs = [
            None if about is None else _look(pointer, about[0], about[1])
            for pointer, about in zip(pointers, self.given, strict=False)
        ]
        with np.errstate(all="ignore"):
            value = self.rule.value(*inputs, **self.params)
        _array_at(pointers[len(self.given)], self.shape)[...] = np.asarray(value, np.float64)


def _array_at(pointer: int | None, shape: Shape) -> Any:
    count = max(size_of(shape), 1)
    memory = (ctypes.c_double * count).from_address(pointer or 0)
    every = np.ctypeslib.as_array(memory)
    return every[: size_of(shape)].reshape(shape)


def _look(pointer: int | None, shape: Shape, boolean: bool) -> Any:
    array = _array_at(pointer, shape)
    if boolean:
        array = array != 0.0
    return array.copy() if shape else (bool(array[()]) if boolean else float(array[()]))
