"""Reused memory for large arrays.

The system unmaps a large array when it is freed, and maps the next one again, page by page. For arrays of 10⁶ numbers
that takes longer than the arithmetic on them. So the engine keeps its large arrays (values of operators, adjoints,
copies of constants) in blocks and reuses them. A block becomes free when no array uses it any more, so numbers in use
are never overwritten. The second gradient of a program takes no new memory from the system, and callers can keep their
results.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.values import can_change

LARGE = 2**15
"""Arrays of at least this many numbers (256 kB) use blocks; malloc handles smaller ones well."""

PIECE = 2**15
"""Numbers in a piece (256 kB) that stays in the second cache between the loops of a compound function."""

KEPT_AT_MOST = 2**28
"""The most bytes kept in free blocks. Beyond it, blocks go back to the system."""

# Private to this process: by default, forked processes would share the memory.
_OWN: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
_count = {"made": 0}
_waiting: dict[int, list[mmap.mmap]] = {}  # free blocks by length in bytes; list.append and list.pop are thread-safe


class _Lease(np.ndarray[Any, Any]):
    """The base of an array from `room`: when it is deleted, no array uses its block any more."""

    def __del__(self) -> None:
        block: Any = self.base
        if type(block) is mmap.mmap and kept() + len(block) <= KEPT_AT_MOST:
            _waiting.setdefault(len(block), []).append(block)


def room(shape: tuple[int, ...]) -> Any:
    """An uninitialised array of this shape, in a block if it is large."""
    size = math.prod(shape)
    if size < LARGE:
        return np.empty(shape)
    try:
        block = _waiting[8 * size].pop()
    except LookupError:
        try:
            block = mmap.mmap(-1, 8 * size, **_OWN)
        except OSError:
            return np.empty(shape)  # numpy may find memory; if not, its error gives the size
        _count["made"] += 1
        if hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)  # as numpy does
    return _Lease(shape, np.float64, block).view(np.ndarray)


def full(shape: tuple[int, ...], number: float) -> Any:
    """An array of this shape filled with one number."""
    if number == 0.0 and math.prod(shape) < LARGE:
        return np.zeros(shape)
    array = room(shape)
    array.fill(number)
    return array


def snapshot(array: Any) -> Any:
    """`values.snapshot`, in a block if it is large."""
    if array.size < LARGE:
        return array.copy()  # quicker than checking
    if not can_change(array):
        return array
    copy = room(array.shape)
    copy[...] = array
    return copy


def in_pieces(compute: Callable[..., None], *inputs: Any) -> Any:
    """A new array, filled by compute(piece, *pieces of the inputs) elementwise, in pieces that stay in the cache."""
    shape = np.broadcast_shapes(*map(np.shape, inputs))
    result = room(shape)
    flat = result.reshape(-1)
    flats = [x if np.ndim(x) == 0 else np.broadcast_to(x, shape).reshape(-1) for x in inputs]
    for i in range(0, flat.size, PIECE):
        here = slice(i, i + PIECE)
        compute(flat[here], *[x if np.ndim(x) == 0 else x[here] for x in flats])
    return result


def scaled(new: Any, factor: Any) -> Any:
    """new · factor, in the memory of `new` if it is a large array."""
    if type(new) is not np.ndarray or new.size < LARGE or type(factor) not in (float, np.ndarray):
        return factor * new
    if type(factor) is float:
        return new if factor == 1.0 else np.multiply(new, factor, new)
    return np.multiply(new, factor, new) if factor.shape == new.shape else factor * new


def product(a: Any, b: Any) -> Any:
    """a · b, in a block if it is a large array; otherwise the plain product."""
    array = a if type(a) is np.ndarray else b
    other = b if array is a else a
    if type(array) is np.ndarray and array.size >= LARGE and type(other) in (float, np.ndarray):
        return np.multiply(a, b, room(array.shape))
    return a * b


def kept() -> int:
    """The number of bytes in free blocks."""
    return sum(length * len(blocks) for length, blocks in list(_waiting.items()))


def made() -> int:
    """The number of blocks taken from the system so far. It stops growing after a program's first gradient."""
    return _count["made"]


def release() -> None:
    """Give the free blocks back to the system."""
    _waiting.clear()
