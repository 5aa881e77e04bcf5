"""What is at hand while code is written: the function, its memory, constants, and ways to copy and fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.simd import Code, Module, Name, literal
from adbench.tape.compiled.lowering.loop_fusion import Nest, Step
from adbench.tape.compiled.lowering.storage import (
    SMALL,
    Big,
    Place,
    Shape,
    Small,
    Uniform,
    Workspace,
    elements_of,
    row_by_row,
    size_of,
    store_elements,
)
from adbench.tape.core.rule import Value

LEAVING = {"on_guard": 1, "on_nan": 2, "on_error": 3}
"""Where a function is left early, and what it returns there (see `lowering.Outcome`)."""


class Emission:
    """One function in the making, and the memory that it works in.

    pieces         modules of the functions that are finished: a long program is cut
    lines          how many instructions they have
    python_calls   names of rules that are called in Python: what `explain` tells
    computed       what several operations share, as the factors of a matrix
    reading        the operands, as symbols, of the operation that is being written
    """

    def __init__(self, *, fast_math: bool) -> None:
        self.fast_math = fast_math
        self.module = Module(fast_math=fast_math)
        self.code = Code(self.module)
        self.workspace = Workspace()
        self.pieces: list[Module] = []
        self.lines = 0
        self._anchors: list[tuple[Name, Callable[[Code], Name]]] = []
        self.python_calls: list[str] = []
        self.exits: set[str] = set()
        self.computed: dict[Any, Any] = {}
        self.reading: tuple[Value, ...] = ()
        self._holes: dict[tuple[Name, int], tuple[tuple[int, int], list[int]]] = {}
        self._constants: dict[int, tuple[Any, Place]] = {}

    # Pieces

    def anchor(self, write: Callable[[Code], Name]) -> Name:
        """The name of an address that is read at the function's beginning, and again in every piece that follows."""
        name = self._at_the_beginning(write)
        self._anchors.append((name, write))
        return name

    def _at_the_beginning(self, write: Callable[[Code], Name], name: Name | None = None) -> Name:
        beginning = Code(self.module)
        beginning._count = self.code._count
        found = write(beginning)
        self.code._count = beginning._count
        if name is not None:  # under the name that it has in the pieces before
            beginning.lines = [line.replace(f"{found} = ", f"{name} = ") for line in beginning.lines]
        self.code.entry += beginning.lines
        return name or found

    def is_anchored(self, place: Place) -> bool:
        """Whether memory can be found from a following piece."""
        return not isinstance(place, Big) or place.base == "%work" or any(place.base == a for a, _ in self._anchors)

    def end_function(self, name: str) -> None:
        """Finishes the function that is being written."""
        code = self.code
        code.do("ret i32 0")
        for label, outcome in LEAVING.items():
            if label in self.exits:
                code.begin(label)
                code.do(f"ret i32 {outcome}")
        self.lines += len(code.lines)
        self.module.function(f"i32 @{name}(ptr noalias %arguments, ptr noalias %results, ptr noalias %work)", code)

    def cut(self) -> None:
        """Ends the function here, and goes on in another one, in a module of its own."""
        self.end_function("piece")
        self.pieces.append(self.module)
        self.exits = set()
        self.computed = {}
        count = self.code._count
        self.module = Module(fast_math=self.fast_math)
        self.code = Code(self.module)
        self.code._count = count
        for name, write in self._anchors:
            self._at_the_beginning(write, name)

    # Ways out

    def leave_on_guard(self) -> str:
        """The label that is gone to when a guard does not hold."""
        self.exits.add("on_guard")
        return "on_guard"

    def leave_on_error(self) -> str:
        """The label that is gone to when there is no result."""
        self.exits.add("on_error")
        return "on_error"

    # Memory

    def room(self, shape: Shape, boolean: bool = False) -> Big:
        """Memory for an array."""
        hole = self.workspace.take(max(size_of(shape), 1))
        self._holes["%work", hole[1]] = (hole, [0])
        base = "%work"
        return Big(base, hole[1], row_by_row(shape), shape, boolean)

    def hold(self, place: Place) -> None:
        """One more value lies in this memory."""
        found = self._hole_of(place)
        if found is not None:
            found[1][0] += 1

    def release(self, place: Place) -> None:
        """One less; the last gives it back."""
        found = self._hole_of(place)
        if found is not None:
            found[1][0] -= 1
            if found[1][0] == 0:
                hole = found[0]
                del self._holes["%work", hole[1]]
                self.workspace.give_back(hole)

    def is_sole(self, place: Place) -> bool:
        """Whether no other value lies in this memory, and all of it is there."""
        found = self._hole_of(place)
        return found is not None and found[1][0] == 1 and isinstance(place, Big) and place.is_contiguous

    def _hole_of(self, place: Place) -> tuple[tuple[int, int], list[int]] | None:
        if not isinstance(place, Big) or place.base != "%work":
            return None
        for hole, count in self._holes.values():
            if hole[1] <= place.offset < hole[1] + hole[0]:
                return hole, count
        return None

    def elements(self, place: Place) -> tuple[Name, ...]:
        """The elements in registers."""
        return elements_of(self.code, place)

    def in_memory(self, place: Place) -> Big:
        """The value in memory, where it may be already."""
        if isinstance(place, Big):
            return place
        if isinstance(place, Small):
            count = max(size_of(place.shape), 1)
            array = Big(
                self.code.variable(f"[{count} x double]"), 0, row_by_row(place.shape), place.shape, place.boolean
            )
            store_elements(self.code, place.elements, array, place.boolean)
            return array
        array = self.room(place.shape, place.boolean)
        self.copy(place, array)
        return array

    def contiguous(self, place: Place) -> Big:
        """The value in memory, row by row."""
        array = self.in_memory(place)
        if array.is_contiguous:
            return array
        copy = self.room(place.shape, place.boolean)
        self.copy(array, copy)
        return copy

    def copy(self, place: Place, target: Big) -> None:
        """Writes a value into memory."""
        if isinstance(place, Small):
            store_elements(self.code, place.elements, target, place.boolean)
            return
        nest = Nest(self.code, target.shape)
        nest.steps.append(Step(0, lambda k, x: x, [place], place.boolean, [target]))
        nest.emit()

    def fill(self, target: Big, number: Name) -> None:
        """Sets all elements to one number."""
        if size_of(target.shape) <= SMALL:
            store_elements(self.code, (number,) * size_of(target.shape), target)
        else:
            self.copy(Uniform(number, target.shape), target)

    # Constants

    def constant(self, value: Value) -> Place:
        """A number or an array that is known now."""
        if isinstance(value, (bool, np.bool_)):
            return Small(("true" if value else "false",), (), True)
        if isinstance(value, float):
            return Small((literal(value),), ())
        known = self._constants.get(id(value))
        if known is None:
            known = self._constants[id(value)] = (value, self._array(value))
        return known[1]

    def _array(self, value: Any) -> Place:
        boolean = value.dtype.kind == "b"

        def name(x: Any) -> Name:
            return ("true" if x else "false") if boolean else literal(float(x))

        if value.size and not any(value.strides):
            return Uniform(name(value[(0,) * value.ndim]), value.shape, boolean)
        if value.size <= SMALL:
            return Small(tuple(map(name, value.ravel())), value.shape, boolean)
        stored = np.ascontiguousarray(value, np.float64)
        base = self.anchor(lambda code: code.module.outside(code, id(stored), stored))
        return Big(base, 0, row_by_row(value.shape), value.shape, boolean)
