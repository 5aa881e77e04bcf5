"""Reading and writing parts of an array: slices, integers, masks, integer arrays with repeats, sorting.

Reading is linear: y = x[index]. Its adjoint adds ȳ to the elements that were read, once for each reading. The sweep
does so in place (`scatter`), so reading n elements one by one costs n, not n². Writing, x[index] = v, makes a new value
(copy on write). The adjoint of x is ȳ with the overwritten elements set to zero; the adjoint of v is ȳ at these
elements. If an index array names an element twice, the last write wins, in the adjoint too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Rule, Value, own_gradients
from adbench.tape.numpy_names import publish
from adbench.tape.rules.shapes import Shape, linear, moveaxis, ravel, sum_to
from adbench.tape.values import shape_of, value_of

Index = Any


def normal_index(index: Index) -> Index:
    """The index as plain data: lists become arrays. Raises an error for a number being differentiated."""
    if isinstance(index, tuple):
        return tuple(map(normal_index, index))
    if isinstance(index, Active):
        raise TypeError("an index cannot be differentiated; take its plain number with .val")
    if isinstance(index, list):
        return np.asarray(index, dtype=None if index else int)
    return index.copy() if isinstance(index, np.ndarray) else index


def read(x: Value, index: Index) -> Value:
    """x[index] for an active x, where the index may be the counter of a loop that is being compiled."""
    if isinstance(index, Active) and index.symbolic:
        return index.read_from(x)  # type: ignore[attr-defined]  # symbols have it
    return getitem(x, index=normal_index(index))


def is_basic(index: Index) -> bool:
    """Whether the index only slices. Then it names no element twice, and numpy reads it without a copy."""
    if isinstance(index, tuple):
        return all(map(is_basic, index))
    return index is None or index is Ellipsis or isinstance(index, (int, slice, np.integer))


def _scatter(buffer: Value, adj: Value, index: Index) -> None:
    """buffer[index] += adj, where repeated elements count as often as they occur."""
    if type(index) is not slice and type(index) is not int and not is_basic(index):
        np.add.at(buffer, index, adj)
        return
    part = buffer[index]
    if type(part) is np.ndarray:  # a view: `buffer[index] += adj` would also copy it onto itself
        part += adj
    else:
        buffer[index] = part + adj


def _put(x: Value, index: Index, shape: Shape) -> Value:
    buffer = np.zeros(shape)
    _scatter(buffer, x, index)
    return buffer


put = linear(_put, lambda _v, adj, _x, index, shape: adj[index], "put")
"""put(x, index=, shape=): zeros of this shape, with x added at the index."""

getitem = own_gradients(
    lambda x, index: x[index],
    reverse=(lambda _v, adj, _x, index: put(adj, index=index, shape=shape_of(_x)),),
    forward=(lambda _v, tan, _x, index: tan[index],),
    name="getitem",
    scatter=_scatter,
)


def _written(x: Value, v: Value, index: Index) -> Value:
    y = np.array(x, float)
    y[index] = v
    return y


def _last_write(index: Index, shape: Shape) -> Value:
    """For each of v's elements (broadcast), whether its write survived."""
    places = np.arange(int(np.prod(shape))).reshape(shape)[index]
    order = np.full(int(np.prod(shape)), -1)
    flat = np.ravel(places)
    order[flat] = np.arange(flat.size)
    return (order[flat] == np.arange(flat.size)).reshape(np.shape(places))


def _adjoint_of_written(_val: Value, adj: Value, _x: Value, _v: Value, index: Index) -> Value:
    part = adj[index]
    if not is_basic(index):
        part = part * _last_write(index, shape_of(adj))
    shape = shape_of(_v)
    return sum_to(part, shape[max(0, len(shape) - len(shape_of(part))) :])  # v may have more axes, of length 1


set_at: Rule = own_gradients(
    _written,
    reverse=(lambda _val, adj, _x, _v, index: set_at(adj, 0.0, index=index), _adjoint_of_written),
    forward=(
        lambda _val, tan, _x, _v, index: set_at(tan, 0.0, index=index),
        lambda _val, tan, x, _v, index: set_at(np.zeros(shape_of(x)), tan, index=index),
    ),
    name="set_at",
)
"""set_at(x, v, index=): x with x[index] = v, as a new value."""


def take(x: Value, indices: Any, axis: int | None = None) -> Value:
    """The entries at these positions, repeats allowed, along an axis or of the flattened array."""
    picked = np.asarray(value_of(indices))
    if axis is None:
        return ravel(x)[picked]
    return x[(slice(None),) * (axis % len(shape_of(x))) + (picked,)]


def take_along_axis(x: Value, indices: Any, axis: int) -> Value:
    """y[..., i, ...] = x[..., indices[..., i, ...], ...]."""
    picked = np.asarray(indices)
    grid = list(np.ogrid[tuple(map(slice, picked.shape))])
    grid[axis] = picked
    return x[tuple(grid)]


def diagonal(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The diagonal of each matrix in the two axes, as the last axis of the result."""
    moved = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = shape_of(moved)[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    i = np.arange(length)
    return moved[..., i - min(offset, 0), i + max(offset, 0)]


def diag(x: Value, k: int = 0) -> Value:
    """The k-th diagonal of a matrix, or the matrix with x on its k-th diagonal and zeros elsewhere."""
    if len(shape_of(x)) != 1:
        return diagonal(x, k)
    n = shape_of(x)[0]
    i = np.arange(n)
    return put(x, index=(i - min(k, 0), i + max(k, 0)), shape=(n + abs(k), n + abs(k)))


def argsort(x: Value, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Value:
    """The positions that sort x: a plain integer array, because positions have no derivative."""
    plain = value_of(x)
    return np.argsort(-plain if descending else plain, axis=axis, kind="stable" if stable else None)


def searchsorted(x1: Value, x2: Value, side: Any = "left", sorter: Any = None) -> Any:
    """The positions of x2's elements in the sorted x1: plain integers without derivative."""
    return np.searchsorted(value_of(x1), value_of(x2), side, sorter)


def sort(x: Value, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Value:
    """x in ascending order along an axis. Equal elements keep one position each in the derivative (row sums are 1)."""
    if axis is None:
        x, axis = ravel(x), -1
    return take_along_axis(x, argsort(x, axis, descending=descending, stable=stable), axis)


def cummax(x: Value, axis: int = -1) -> Value:
    """The running maximum; among equal elements, the first counts."""
    plain = value_of(x)
    axis %= plain.ndim
    places = np.arange(plain.shape[axis]).reshape([-1 if i == axis else 1 for i in range(plain.ndim)])
    before = np.roll(np.maximum.accumulate(plain, axis), 1, axis)
    is_new = (plain > before) | (places == 0)
    return take_along_axis(x, np.maximum.accumulate(np.where(is_new, places, 0), axis), axis)


publish(globals(), helpers="normal_index is_basic read", unlike_numpy="put")
