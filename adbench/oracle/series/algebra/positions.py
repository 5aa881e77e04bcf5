"""Operations that only move numbers, for any array: a library runs them once on positions.

A position is an index into the operands' entries, one operand after the other. `FILLED` marks an entry from
no operand: padding, or an index out of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]

FILLED = -1


def boxed(value: Any) -> Any:
    """The value as an array; a number unknown to numpy becomes an array of shape ()."""
    if isinstance(value, np.ndarray) or hasattr(value, "approximate"):  # enclosures are an array
        return value
    if isinstance(value, np.generic | bool | int | float | complex):
        return np.asarray(value)
    made = np.empty((), dtype=object)
    made[()] = value
    return made


def unboxed(array: Any) -> Any:
    """The number of an array of shape (); other arrays unchanged."""
    return array[()] if isinstance(array, np.ndarray) else array


def sources(operation: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    """The positions of the entries of ``operation(*operands)``, for operands of these shapes.

    The operation is run on arrays of int64. It returns one array or a list, and so does this.
    """
    sizes = [math.prod(shape) for shape in shapes]
    firsts = np.cumsum([0, *sizes])
    numbered = [
        np.arange(first, first + size, dtype=np.int64).reshape(shape)
        for first, size, shape in zip(firsts, sizes, shapes, strict=False)
    ]
    found = operation(*numbered)
    return [np.asarray(part) for part in found] if isinstance(found, list | tuple) else np.asarray(found)


def taken(where: Positions, operands: Sequence[Any], fill: Any = None) -> Any:
    """The entries at these positions; ``fill`` if the position is `FILLED`. A scalar for the shape ()."""
    parts = [boxed(operand).ravel() for operand in operands]
    if fill is not None:
        parts.append(boxed(fill).ravel())  # the last entry: that of the index -1
    entries = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return entries[where]


def combined(target: Any, where: Positions, updates: Any, total: Callable[[list[Any]], Any]) -> Any:
    """target with ``total([entry, update, …])`` in each target entry of updates; `FILLED` ones are ignored."""
    made = np.array(boxed(target), dtype=object)
    entries = made.reshape(-1)
    landing: dict[int, list[Any]] = {}
    for position, update in zip(where.ravel().tolist(), boxed(updates).ravel(), strict=True):
        if position != FILLED:
            landing.setdefault(position, []).append(update)
    for position, numbers in landing.items():
        entries[position] = total([entries[position], *numbers])
    return made[()]


def padded(shape: tuple[int, ...], widths: Sequence[tuple[int, int, int]]) -> Positions:
    """Positions of an array with (before, after, between) entries of padding on each axis; negative: cut off."""
    where: Positions = sources(lambda x: x, shape)
    for axis, (before, after, between) in enumerate(widths):
        size = where.shape[axis]
        spread = np.full(size + between * max(0, size - 1), FILLED)
        spread[:: between + 1] = np.arange(size)
        rows = np.pad(spread, (max(0, before), max(0, after)), constant_values=FILLED)
        rows = rows[max(0, -before) : len(rows) - max(0, -after)]
        nothing = np.full((*where.shape[:axis], 1, *where.shape[axis + 1 :]), FILLED)  # the row of the index -1
        where = np.take(np.concatenate([where, nothing], axis=axis), rows, axis=axis)
    return where


def row_exchanges(order: Positions) -> Positions:
    """LAPACK's pivots of matrices whose rows come in this order: row k was exchanged with row pivots[k]."""
    pivots = np.empty_like(order)
    for place in np.ndindex(order.shape[:-1]):
        rows = list(range(order.shape[-1]))
        for k, row in enumerate(order[place]):
            pivots[(*place, k)] = other = rows.index(row)
            rows[k], rows[other] = rows[other], rows[k]
    return pivots


def rows_after(pivots: Positions) -> Positions:
    """The inverse: the order of the rows after these exchanges."""
    order = np.broadcast_to(np.arange(pivots.shape[-1]), pivots.shape).copy()
    for place in np.ndindex(pivots.shape[:-1]):
        for k, other in enumerate(pivots[place]):
            order[(*place, [k, other])] = order[(*place, [other, k])]
    return order


def windows(
    shape: tuple[int, ...],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Positions:
    """Positions of the entries in a window at each location: (location …, entry of the window …)."""
    where = padded(shape, [(low, high, d - 1) for (low, high), d in zip(padding, dilation, strict=True)])
    reach = tuple((size - 1) * d + 1 for size, d in zip(window, window_dilation, strict=True))
    if any(n < r for n, r in zip(where.shape, reach, strict=True)):
        return np.zeros((*(max(0, n - r + 1) for n, r in zip(where.shape, reach, strict=True)), *window), np.int64)
    views = np.lib.stride_tricks.sliding_window_view(where, reach)
    return views[tuple(slice(None, None, step) for step in (*strides, *window_dilation))]


def product(xp: Any, a: Any, b: Any) -> Any:
    """a @ b."""
    return boxed(xp.matmul(a, b))


def convolution(xp: Any, x: Any, kernel: Any, where: Positions, groups: int) -> Any:
    """Σ over channels and window of x times kernel, as a product of the matrix of windows.

    x        (n, channel, …) and kernel (out, channel of the group, …); the result is (n, out, location …)
    where    the positions of each window (`windows`)
    """
    axes = where.ndim // 2
    places, count, channels, out = where.shape[:axes], x.shape[0], kernel.shape[1], kernel.shape[0] // groups
    zeros = np.broadcast_to(xp.number.of(0), (*x.shape[:2], 1))
    seen = np.concatenate([x.reshape(*x.shape[:2], -1), zeros], axis=2)[:, :, where]
    made = []
    for group in range(groups):
        part = np.moveaxis(seen[:, group * channels : (group + 1) * channels], 1, axes + 1)
        weights = kernel[group * out : (group + 1) * out].reshape(out, -1)
        made.append(product(xp, part.reshape(-1, weights.shape[1]), weights.T).reshape(count, *places, out))
    return np.moveaxis(np.concatenate(made, axis=-1), -1, 1)
