"""Storage of values in lowered code: registers or strided memory.

Elements of small arrays are in registers, so joining, cutting and transposing them takes no instructions. Larger arrays
are in memory. Slices, transposes and broadcasts are views with other strides, never copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.machine.simd import WIDTH, Code, Name

REGISTER_LIMIT = 16
"""Arrays of at most this many elements are kept in registers."""

Shape = tuple[int, ...]


class _Located:
    shape: Shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Registers(_Located):
    """Elements by name, row by row."""

    elements: tuple[Name, ...]
    shape: Shape
    boolean: bool = False

    @property
    def element(self) -> Name:
        """The first."""
        return self.elements[0]


@dataclass(frozen=True)
class Uniform(_Located):
    """The same number in all elements."""

    element: Name
    shape: Shape
    boolean: bool = False

    @property
    def elements(self) -> tuple[Name, ...]:
        """The number, as often as there are elements."""
        return (self.element,) * self.size

    def settled(self) -> Location:
        """In registers, if the elements are few."""
        return self if self.size > REGISTER_LIMIT else Registers(self.elements, self.shape, self.boolean)


@dataclass(frozen=True)
class Buffer(_Located):
    """Doubles in memory: element (i, j, …) at base + offset + i strides[0] + j strides[1] + …; booleans as 1.0, 0.0."""

    base: Name
    offset: int
    strides: tuple[int, ...]
    shape: Shape
    boolean: bool = False

    @classmethod
    def packed(cls, base: Name, offset: int, shape: Shape, boolean: bool = False) -> Buffer:
        """An array whose elements lie row by row without gaps."""
        return cls(base, offset, row_by_row(shape), shape, boolean)

    @classmethod
    def for_vectors(cls, base: Name, offset: int, shape: Shape, boolean: bool = False) -> Buffer:
        """An array without gaps whose elements are next to each other along `last_axis`."""
        axis = last_axis(shape) if shape else 0
        steps = list(row_by_row((*shape[:axis], *shape[axis + 1 :], *shape[axis : axis + 1])))
        steps.insert(axis, steps.pop()) if steps else None
        return cls(base, offset, tuple(steps), shape, boolean)

    def flat(self) -> Buffer:
        """A contiguous array as a vector."""
        return Buffer(self.base, self.offset, (1,), (self.size,))

    def pointer(self, code: Code, offset: int = 0) -> Name:
        """The address of the first element, plus this many doubles."""
        total = self.offset + offset
        return self.base if total == 0 else code.element(self.base, str(total))

    def offset_of(self, index: int) -> int:
        """The offset, in doubles, of the element with this flat index."""
        return sum(int(i) * s for i, s in zip(np.unravel_index(index, self.shape), self.strides, strict=True))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row by row without gaps."""
        return all(n == 1 or s == t for n, s, t in zip(self.shape, self.strides, row_by_row(self.shape), strict=True))


Location = Registers | Uniform | Buffer


def row_by_row(shape: Shape) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def last_axis(lengths: Sequence[int]) -> int:
    """The axis for vectors: the last, or the longest if the last is shorter than a vector and the longest is not."""
    longest = max(range(len(lengths)), key=lambda a: lengths[a])
    return longest if lengths[-1] < WIDTH and lengths[longest] >= 2 * WIDTH else len(lengths) - 1


def view_of(array: Buffer, look: Callable[[Any], Any]) -> Buffer:
    """The view that numpy would make. `look` may only make views (slices, transpose, broadcast_to)."""
    # numpy computes a view's offset and strides without reading, so one number of memory suffices.
    stand_in = np.lib.stride_tricks.as_strided(np.zeros(1), array.shape, tuple(8 * s for s in array.strides))
    view = look(stand_in)
    moved = (view.__array_interface__["data"][0] - stand_in.__array_interface__["data"][0]) // 8
    strides = tuple(s // 8 for s in view.strides)
    return Buffer(array.base, array.offset + moved, strides, view.shape, array.boolean)


class Workspace:
    """The memory of a compiled function, laid out during lowering; freed blocks are reused."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (size, start), in doubles

    def take(self, count: int) -> tuple[int, int]:
        """(size, start) of a block of this many doubles, aligned to 64 bytes."""
        size = -(-count // 8) * 8
        fitting = [block for block in self._free if block[0] >= size]
        if fitting:
            best = min(fitting)
            self._free.remove(best)
            if best[0] > size:
                self._free.append((best[0] - size, best[1] + size))
            return size, best[1]
        start = self.size = -(-self.size // 8) * 8
        self.size += size
        return size, start

    def unused(self, count: int) -> int:
        """The start of this many doubles for a single use."""
        start = self.size
        self.size += count
        return start

    def give_back(self, block: tuple[int, int]) -> None:
        """Free a block."""
        self._free.append(block)
