"""Expand rules without native code into rules with native code.

Derivatives are recorded already, so only values remain. Most value functions are numpy code that also runs on symbols,
and running one records its operations. If the function needs actual numbers (a function of scipy, a loop until
convergence), this fails, and the rule is called in Python.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.kernels import KERNELS, multiplies
from adbench.tape.compiled.kernels.natives import native
from adbench.tape.compiled.lowering.emission import KernelOperation
from adbench.tape.compiled.lowering.loop_fusion import REDUCTIONS
from adbench.tape.compiled.lowering.storage import Location, Shape
from adbench.tape.compiled.trace.loop_rule import SCAN, replay
from adbench.tape.compiled.trace.recorded_forms import MOVES, VIEWS
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.recording import LEAF
from adbench.tape.core.rule import Rule, Value
from adbench.tape.densities.density import Density
from adbench.tape.rules import products, reductions, shapes
from adbench.tape.values import shape_of

LARGEST_CONTRACTION = 10_000_000
"""The most products in a contraction that is expanded into loops."""


def has_code(rule: Rule, inputs: Sequence[Value], _params: Any = None) -> bool:
    """Whether the rule has native code."""
    if rule is products.matmul:
        a, b = map(shape_of, inputs)
        return multiplies(a, b)
    known = native(rule) is not None or rule in KERNELS or rule in REDUCTIONS or rule in (SCAN, LEAF)
    return known or rule in VIEWS or rule in MOVES


def expanded(
    trace: Trace, inputs: Sequence[Symbol], outputs: Sequence[Value]
) -> tuple[Trace, list[Symbol], list[Value]]:
    """The program on a new trace with as many native rules as possible, or the trace itself if all are native."""
    if all(m is None or native(m[0]) is not None or has_code(*m) for m in map(made_by, trace)):
        return trace, list(inputs), list(outputs)
    new = Trace(outer=True)
    leaves = [new.leaf(s.shape) for s in inputs]
    for old, leaf in zip(inputs, leaves, strict=True):
        if old.tape.counter is old:
            new.counter = leaf
    values = dict(zip(map(id, inputs), leaves, strict=True))
    return new, leaves, replay(trace, outputs, values, _expanded)


def _expanded(rule: Rule, args: list[Value], params: dict[str, Any], symbol: Symbol) -> Value:
    if not has_code(rule, args):
        density = getattr(rule.value, "__self__", None)
        write = partial(_log_density, density) if isinstance(density, Density) else _FORMULAS.get(rule, rule.value)
        try:
            value = write(*args, **params)
        except Exception:  # the value function needs numbers, so the rule is called in Python
            value = None
        if type(value) is Symbol and value.shape == symbol.shape and value.boolean == symbol.boolean:
            return value
    return rule(*args, **params)


def _log_density(density: Density, *inputs: Value) -> Value:
    """The sum of the log densities, as `Density` forms it."""
    terms = density.value(density.shared(*inputs), *inputs)
    if not density.elementwise:
        return terms
    full = density.common_shape(inputs)
    return reductions.sum(shapes.broadcast_to(terms, full)) if full else terms


def _matmul(a: Value, b: Value) -> Value:
    """Products of stacks of small matrices, as sums over an additional axis."""
    a = a if len(shape_of(a)) > 1 else shapes.reshape(a, (1, -1))
    vector = len(shape_of(b)) == 1
    b = shapes.reshape(b, (-1, 1)) if vector else b
    left, right = shapes.expand_dims(a, -1), shapes.expand_dims(b, -3)
    return reductions.sum(left * right, -2)


def _einsum(*inputs: Value, labels: tuple[str, ...], out: str) -> Value:
    """One product for each combination of labels; for two matrices, their product."""
    a, b = labels if len(labels) == 2 else ("", "")
    if len(a) == len(b) == 2 and a[1] == b[0] and out == a[0] + b[1] and len({*a, *b}) == 3:
        return products.matmul(*inputs)
    names = out + "".join(dict.fromkeys(c for s in labels for c in s if c not in out))
    lengths = products.lengths_of(labels, inputs)
    if np.prod([lengths[c] for c in names], dtype=float) > LARGEST_CONTRACTION:
        raise ValueError("numpy is faster for a contraction of this size")
    total: Value = None
    for x, s in zip(inputs, labels, strict=True):
        spread = products.spread_over(x, s, names)
        total = spread if total is None else total * spread
    full = shapes.broadcast_to(total, tuple(lengths[c] for c in names))
    rest = tuple(range(len(out), len(names)))
    return reductions.sum(full, rest) if rest else full


_FORMULAS: dict[Rule, Callable[..., Value]] = {products.matmul: _matmul, products._einsum: _einsum}
"""Values of rules whose value functions do not run on symbols."""


def python_call(operation: KernelOperation) -> Location:
    """Write a call of the rule's own function, on arrays that view the operands' memory."""
    emission, rule, locations, shape = operation.emission, operation.rule, operation.operands, operation.shape
    code, module = emission.code, emission.module
    arrays = [None if p is None else emission.contiguous(p) for p in locations]
    out = emission.allocate(shape, operation.boolean)
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
    return np.ctypeslib.as_array((ctypes.c_double * math.prod(shape)).from_address(pointer or 0)).reshape(shape)


def _look(pointer: int | None, shape: Shape, boolean: bool) -> Any:
    array = _array_at(pointer, shape)
    if boolean:
        array = array != 0.0
    return array.copy() if shape else (bool(array[()]) if boolean else float(array[()]))
