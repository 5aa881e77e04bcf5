"""Where values are while a program is lowered: in registers, or in memory under strides.

Small arrays are taken apart into their elements, each in a register: joining, cutting and transposing them is then no
work at all. Others lie in memory. A part, a transposed or a repeated array is a view with other strides, never a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.simd import Code, Name, literal

SMALL = 16
"""Arrays of at most so many elements live in registers."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Small:
    """Elements by name, row by row."""

    elements: tuple[Name, ...]
    shape: Shape
    boolean: bool = False


@dataclass(frozen=True)
class Uniform:
    """The same number in all elements."""

    element: Name
    shape: Shape
    boolean: bool = False


@dataclass(frozen=True)
class Big:
    """Doubles in memory: element (i, j, …) at base + offset + i strides[0] + j strides[1] + …; booleans as 1.0, 0.0."""

    base: Name
    offset: int
    strides: tuple[int, ...]
    shape: Shape
    boolean: bool = False

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row by row without gaps."""
        return all(n == 1 or s == t for n, s, t in zip(self.shape, self.strides, row_by_row(self.shape), strict=True))


Place = Small | Uniform | Big


def row_by_row(shape: Shape) -> tuple[int, ...]:
    """Strides of an array without gaps."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def size_of(shape: Shape) -> int:
    """How many elements."""
    return math.prod(shape)


def viewed(array: Big, look: Callable[[Any], Any]) -> Big:
    """The view that numpy would make; `look` must do nothing but make one (slices, transpose, broadcast_to)."""
    # numpy computes offset and strides of a view without reading: one byte stands for the whole memory.
    stand_in = np.lib.stride_tricks.as_strided(np.zeros(1), array.shape, tuple(8 * s for s in array.strides))
    view = look(stand_in)
    moved = (view.__array_interface__["data"][0] - stand_in.__array_interface__["data"][0]) // 8
    strides = tuple(s // 8 for s in view.strides)
    return Big(array.base, array.offset + moved, strides, view.shape, array.boolean)


class Workspace:
    """Memory of a compiled function, laid out while it is lowered; what is no longer needed is used again."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (size, start), in doubles

    def take(self, count: int) -> tuple[int, int]:
        """(size, start) of room for so many doubles, at a multiple of 64 bytes."""
        size = -(-count // 8) * 8
        fitting = [hole for hole in self._free if hole[0] >= size]
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
        """Where so many doubles lie that nothing else ever used, nor will."""
        start = self.size
        self.size += count
        return start

    def give_back(self, hole: tuple[int, int]) -> None:
        """The room may be used again."""
        self._free.append(hole)


def element_at(code: Code, array: Big, index: int) -> Name:
    """Loads the element with this flat index."""
    place = array.offset + sum(i * s for i, s in zip(np.unravel_index(index, array.shape), array.strides, strict=True))
    value = code.emit(f"load double, ptr {address(code, array.base, int(place))}, align 8")
    return code.emit(f"fcmp une double {value}, {literal(0.0)}") if array.boolean else value


def address(code: Code, base: Name, offset: int) -> Name:
    """base + offset doubles."""
    return base if offset == 0 else code.emit(f"getelementptr inbounds double, ptr {base}, i64 {offset}")


def elements_of(code: Code, place: Place) -> tuple[Name, ...]:
    """The elements in registers."""
    if isinstance(place, Small):
        return place.elements
    if isinstance(place, Uniform):
        return (place.element,) * size_of(place.shape)
    return tuple(element_at(code, place, k) for k in range(size_of(place.shape)))


def as_double(code: Code, name: Name, boolean: bool) -> Name:
    """A boolean as the double that stands for it in memory."""
    return code.emit(f"uitofp i1 {name} to double") if boolean else name


def store_elements(code: Code, names: Sequence[Name], target: Big, boolean: bool = False) -> None:
    """Writes elements, row by row."""
    for k, name in enumerate(names):
        place = target.offset + sum(
            int(i) * s for i, s in zip(np.unravel_index(k, target.shape), target.strides, strict=True)
        )
        value = as_double(code, name, boolean)
        code.do(f"store double {value}, ptr {address(code, target.base, place)}, align 8")
