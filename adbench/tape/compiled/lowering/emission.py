"""The state of code generation: the current function, its memory, constants, copies and fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.simd import Code, Module, Name, literal
from adbench.tape.compiled.lowering.loop_fusion import FusedLoops
from adbench.tape.compiled.lowering.loops.fused_steps import Step
from adbench.tape.compiled.lowering.loops.parallel_loop import Helpers
from adbench.tape.compiled.lowering.storage import (
    REGISTER_LIMIT,
    Buffer,
    Location,
    Registers,
    Shape,
    Uniform,
    Workspace,
    elements_of,
    size_of,
    store_elements,
)
from adbench.tape.core.rule import Value

LEAVING = {"on_guard": 1, "on_nan": 2, "on_error": 3}
"""Label of an early exit -> the function's return value (see `lowering.Outcome`)."""


@dataclass(frozen=True)
class Operation:
    """An operation for which a kernel writes the code.

    operands   the locations of the inputs; None for an argument that is None
    shape      of the result
    target     the preferred memory for the result, if any
    """

    emission: Emission
    operands: Sequence[Any]
    params: dict[str, Any]
    shape: Shape
    target: Buffer | None = None

    @property
    def size(self) -> int:
        """The number of the result's elements."""
        return size_of(self.shape)

    def output(self) -> Buffer:
        """Contiguous memory for the result: the target, if that is contiguous."""
        wanted = self.target is not None and self.target.is_contiguous
        return self.target if wanted else self.emission.allocate(self.shape)  # type: ignore[return-value]


class Emission:
    """The function being generated, and its workspace.

    level          of optimisation
    pieces         modules of the finished functions: a long program is cut
    lines          their number of instructions
    python_calls   names of rules called in Python, which `explain` reports
    computed       results that several operations share, such as the factors of a matrix
    reading        the current operation's operands, as symbols
    """

    def __init__(self, *, fast_math: bool, level: int = 2, helpers: Helpers | None = None) -> None:
        self.fast_math, self.level, self.helpers = fast_math, level, helpers
        self.module = Module(fast_math=fast_math, shares_kernels=level == 0)
        self.code = Code(self.module)
        self.workspace = Workspace()
        self.pieces: list[Module] = []
        self.lines = 0
        self._anchors: list[tuple[Name, Callable[[Code], Name]]] = []
        self.python_calls: list[str] = []
        self.exits: set[str] = set()
        self.computed: dict[Any, Any] = {}
        self.reading: tuple[Value, ...] = ()
        self._allocations: dict[tuple[Name, int], tuple[tuple[int, int], list[int]]] = {}
        self._constants: dict[int, tuple[Any, Location]] = {}

    # Pieces

    def anchor(self, write: Callable[[Code], Name]) -> Name:
        """The name of an address, read at the beginning of the function and of every later piece."""
        name = self._at_the_beginning(write)
        self._anchors.append((name, write))
        return name

    def _at_the_beginning(self, write: Callable[[Code], Name], name: Name | None = None) -> Name:
        beginning = Code(self.module)
        beginning._count = self.code._count
        found = write(beginning)
        self.code._count = beginning._count
        if name is not None:  # under its name in the earlier pieces
            beginning.lines = [line.replace(f"{found} = ", f"{name} = ") for line in beginning.lines]
        self.code.entry += beginning.lines
        return name or found

    def is_anchored(self, location: Location) -> bool:
        """Whether later pieces can reach the memory."""
        return (
            not isinstance(location, Buffer)
            or location.base == "%work"
            or any(location.base == a for a, _ in self._anchors)
        )

    def end_function(self, name: str) -> None:
        """Finish the current function."""
        code = self.code
        code.do("ret i32 0")
        for label, outcome in LEAVING.items():
            if label in self.exits:
                code.begin(label)
                code.do(f"ret i32 {outcome}")
        self.lines += len(code.lines)
        self.module.function(f"i32 @{name}(ptr noalias %arguments, ptr noalias %results, ptr noalias %work)", code)

    def cut(self) -> None:
        """End the function here and continue in a new one, in a separate module."""
        self.end_function("piece")
        self.pieces.append(self.module)
        self.exits = set()
        self.computed = {}
        count = self.code._count
        self.module = Module(fast_math=self.fast_math, shares_kernels=self.level == 0)
        self.code = Code(self.module)
        self.code._count = count
        for name, write in self._anchors:
            self._at_the_beginning(write, name)

    # Ways out

    def leave_on_guard(self) -> str:
        """The label of the exit for a failed guard."""
        self.exits.add("on_guard")
        return "on_guard"

    def leave_on_error(self) -> str:
        """The label of the exit without a result."""
        self.exits.add("on_error")
        return "on_error"

    # Memory

    def allocate(self, shape: Shape, boolean: bool = False, *, for_vectors: bool = False) -> Buffer:
        """Memory for an array; with `for_vectors`, in the order in which fused loops read it best."""
        block = self.workspace.take(max(size_of(shape), 1))
        self._allocations["%work", block[1]] = (block, [0])
        return (Buffer.for_vectors if for_vectors else Buffer.packed)("%work", block[1], shape, boolean)

    def retain(self, location: Location) -> None:
        """Count one more value in this memory."""
        found = self._allocation_of(location)
        if found is not None:
            found[1][0] += 1

    def release(self, location: Location) -> None:
        """Count one value less; free the memory after the last."""
        found = self._allocation_of(location)
        if found is not None:
            found[1][0] -= 1
            if found[1][0] == 0:
                block = found[0]
                del self._allocations["%work", block[1]]
                self.workspace.give_back(block)

    def is_unshared(self, location: Location) -> bool:
        """Whether this value is contiguous and alone in its memory."""
        found = self._allocation_of(location)
        return found is not None and found[1][0] == 1 and isinstance(location, Buffer) and location.is_contiguous

    def _allocation_of(self, location: Location) -> tuple[tuple[int, int], list[int]] | None:
        if not isinstance(location, Buffer) or location.base != "%work":
            return None
        for block, count in self._allocations.values():
            if block[1] <= location.offset < block[1] + block[0]:
                return block, count
        return None

    def fused_loops(self, shape: Shape) -> FusedLoops:
        """Loops over an index space, which threads may share."""

        def scratch(count: int) -> Name:
            block = self.workspace.take(count)
            self.workspace.give_back(block)  # the loop is over before another operation can take it
            return Buffer.packed("%work", block[1], (count,)).pointer(self.code)

        return FusedLoops(self.code, shape, self.helpers, scratch)

    def pointer(self, array: Buffer) -> Name:
        """The address of an array's first element."""
        return array.pointer(self.code)

    def result(self, array: Buffer) -> Location:
        """A result in memory, or in registers if it is small."""
        return Registers(self.elements(array), array.shape, array.boolean) if array.size <= REGISTER_LIMIT else array

    def elements(self, location: Location) -> tuple[Name, ...]:
        """The elements in registers."""
        return elements_of(self.code, location)

    def in_memory(self, location: Location) -> Buffer:
        """The value in memory, copied there if necessary."""
        if isinstance(location, Buffer):
            return location
        if isinstance(location, Registers):
            variable = self.code.variable(f"[{max(location.size, 1)} x double]")
            array = Buffer.packed(variable, 0, location.shape, location.boolean)
            store_elements(self.code, location.elements, array, location.boolean)
            return array
        array = self.allocate(location.shape, location.boolean)
        self.copy(location, array)
        return array

    def contiguous(self, location: Location) -> Buffer:
        """The value in memory, row by row."""
        array = self.in_memory(location)
        if array.is_contiguous:
            return array
        copy = self.allocate(location.shape, location.boolean)
        self.copy(array, copy)
        return copy

    def copy(self, location: Location, target: Buffer) -> None:
        """Write a value into memory."""
        if isinstance(location, Registers):
            store_elements(self.code, location.elements, target, location.boolean)
            return
        fused = self.fused_loops(target.shape)
        fused.steps.append(Step(0, lambda k, x: x, [location], location.boolean, [target]))
        fused.emit()

    def fill(self, target: Buffer, number: Name) -> None:
        """Set all elements to one number."""
        if target.size <= REGISTER_LIMIT:
            store_elements(self.code, (number,) * target.size, target)
        else:
            self.copy(Uniform(number, target.shape), target)

    # Constants

    def constant(self, value: Value) -> Location:
        """The location of a constant number or array."""
        if isinstance(value, (bool, np.bool_)):
            return Registers(("true" if value else "false",), (), True)
        if isinstance(value, float):
            return Registers((literal(value),), ())
        known = self._constants.get(id(value))
        if known is None:
            known = self._constants[id(value)] = (value, self._array(value))
        return known[1]

    def _array(self, value: Any) -> Location:
        boolean = value.dtype.kind == "b"

        def name(x: Any) -> Name:
            return ("true" if x else "false") if boolean else literal(float(x))

        if value.size and not any(value.strides):
            return Uniform(name(value[(0,) * value.ndim]), value.shape, boolean)
        if value.size <= REGISTER_LIMIT:
            return Registers(tuple(map(name, value.ravel())), value.shape, boolean)
        stored = np.ascontiguousarray(value, np.float64)
        base = self.anchor(lambda code: code.module.outside(code, id(stored), stored))
        return Buffer.packed(base, 0, value.shape, boolean)
