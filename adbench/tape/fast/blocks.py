"""Memory for large arrays that goes round instead of going back to the system.

A large array that is freed is unmapped, and the next one of its size is mapped again, page by page. For arrays of 10⁶
numbers that takes longer than the arithmetic on them. Large arrays that the engine makes (values of operators,
adjoints, copies of constants) lie in blocks that are used again. A block returns when the last array that looks at it
is gone, so that numbers in use are never overwritten. The second and later gradients of a program take no new memory
from the system, and callers may keep their results.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

from adbench.tape.values import can_change

LARGE = 2**15
"""Arrays of at least so many numbers (256 kB) are kept in blocks; malloc does well with smaller ones."""

KEPT_AT_MOST = 2**28
"""Bytes in blocks that wait for use. A block that would exceed it goes back to the system."""

# A block belongs to its process: by default the memory would be shared with processes forked later.
_OWN: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
_count = {"made": 0}
_waiting: dict[int, list[mmap.mmap]] = {}  # by length in bytes; list.append and list.pop are safe between threads


class _Lease(np.ndarray[Any, Any]):
    """The array behind an array from `room`: when it goes, no other array looks at its block any more."""

    def __del__(self) -> None:
        block: Any = self.base
        if type(block) is mmap.mmap and kept() + len(block) <= KEPT_AT_MOST:
            _waiting.setdefault(len(block), []).append(block)


def room(shape: tuple[int, ...]) -> Any:
    """An array of this shape, not initialised, in a block if it is large."""
    size = math.prod(shape)
    if size < LARGE:
        return np.empty(shape)
    try:
        block = _waiting[8 * size].pop()
    except LookupError:
        try:
            block = mmap.mmap(-1, 8 * size, **_OWN)
        except OSError:
            return np.empty(shape)  # numpy may find memory, or raises an error with the size
        _count["made"] += 1
        if hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)  # as numpy does for its arrays
    return _Lease(shape, np.float64, block).view(np.ndarray)


def full(shape: tuple[int, ...], number: float) -> Any:
    """An array of this shape with the same number everywhere."""
    if number == 0.0 and math.prod(shape) < LARGE:
        return np.zeros(shape)
    array = room(shape)
    array.fill(number)
    return array


def snapshot(array: Any) -> Any:
    """`values.snapshot`, in a block if it is large."""
    if array.size < LARGE:
        return array.copy()  # quicker than the question
    if not can_change(array):
        return array
    copy = room(array.shape)
    copy[...] = array
    return copy


def product(a: Any, b: Any) -> Any:
    """a · b, a large array in a block; of anything else (small arrays, numbers, active values) the plain product."""
    array = a if type(a) is np.ndarray else b
    other = b if array is a else a
    if type(array) is np.ndarray and array.size >= LARGE and type(other) in (float, np.ndarray):
        return np.multiply(a, b, room(array.shape))
    return a * b


def kept() -> int:
    """Bytes in blocks that wait for use."""
    return sum(length * len(blocks) for length, blocks in list(_waiting.items()))


def made() -> int:
    """How many blocks the system has given so far. It stops growing once a program has been differentiated."""
    return _count["made"]


def release() -> None:
    """Gives the blocks that wait for use back to the system."""
    _waiting.clear()
