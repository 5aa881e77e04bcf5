"""Functions that move elements without changing them, joining, and new arrays that may be active.

All are linear. The tangent moves as the value does; the adjoint moves back, and is summed where an element was
repeated. `linear` makes such a rule from the value function and its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, AllInputs, Rule, Value, function_gradients, own_gradients
from adbench.tape.numpy_names import PUBLIC, publish
from adbench.tape.values import any_active, shape_of
from adbench.tape.values import asarray as asarray

Shape = tuple[int, ...]
Axes = int | Sequence[int] | None


def linear(
    value: Callable[..., Value], back: Callable[..., Value], name: str | None = None, slope: float | None = None
) -> Rule:
    """The rule of a linear function of one argument: y = value(x, **params), x̄ = back(val, ȳ, x, **params)."""
    rule: Rule

    def along(_val: Value, tan: Value, _x: Value, **params: Any) -> Value:
        return rule(tan, **params)

    rule = own_gradients(value, reverse=(back,), forward=(along,), name=name, slope=slope)
    return rule


def normal_axes(axis: Axes, ndim: int) -> Shape:
    """The axes as a tuple of non-negative numbers; None means all."""
    if axis is None:
        return tuple(range(ndim))
    listed = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    for a in listed:
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(int(a), ndim)
    return tuple(int(a) % ndim for a in listed)


# Broadcasting


def spread(array: Value, shape: Shape) -> Value:
    """numpy.broadcast_to without its overhead for a plain scalar; all elements share eight bytes."""
    if isinstance(array, float):
        return np.ndarray(shape, np.float64, np.array(array), 0, (0,) * len(shape)) if shape else array
    return np.broadcast_to(array, shape)


def sum_to(adj: Value, shape: Shape) -> Value:
    """Undo broadcasting: sum `adj` over the axes along which an array of this shape was repeated."""
    have = shape_of(adj)
    if have == shape:
        return adj
    if not shape and type(adj) is np.ndarray:
        return float(np.add.reduce(adj, None))
    extra = len(have) - len(shape)
    axes = tuple(i for i, n in enumerate(have) if i < extra or (shape[i - extra] == 1 and n != 1))
    return _sum_to(adj, axes=axes, shape=shape)


_broadcast = linear(
    lambda x, shape: spread(x, shape), lambda _v, adj, _x, shape: sum_to(adj, shape_of(_x)), "broadcast_to"
)
_sum_to = linear(
    lambda x, axes, shape: np.reshape(np.add.reduce(x, axes), shape),
    lambda _v, adj, _x, axes, shape: broadcast_to(keep_axes(adj, _x, axes), shape_of(_x)),
    "sum_to",
)


def keep_axes(y: Value, x: Value, axes: Shape) -> Value:
    """A value reduced from x, with the reduced axes restored at length 1."""
    return reshape(y, tuple(1 if i in axes else n for i, n in enumerate(shape_of(x))))


def broadcast_to(x: Value, shape: int | Shape) -> Value:
    """x repeated along new axes and axes of length 1, shape (n,) -> (m, n); the adjoint is summed over them."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    return x if shape_of(x) == wanted else _broadcast(x, shape=wanted)


def broadcast_arrays(*arrays: Value) -> tuple[Value, ...]:
    """All arrays broadcast to their common shape."""
    shape = np.broadcast_shapes(*map(shape_of, arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


# Rearranging

_reshape = linear(
    lambda x, shape: np.reshape(x, shape), lambda _v, adj, _x, shape: reshape(adj, shape_of(_x)), "reshape"
)
_transpose = linear(
    lambda x, axes: np.transpose(x, axes),
    lambda _v, adj, _x, axes: transpose(adj, tuple(sorted(range(len(axes)), key=axes.__getitem__))),
    "transpose",
)
_flip = linear(lambda x, axis: np.flip(x, axis), lambda _v, adj, _x, axis: flip(adj, axis), "flip")
_roll = linear(
    lambda x, shift, axis: np.roll(x, shift, axis),
    lambda _v, adj, _x, shift, axis: roll(adj, tuple(-s for s in shift) if isinstance(shift, tuple) else -shift, axis),
    "roll",
)
_tril = linear(lambda x, k: np.tril(x, k), lambda _v, adj, _x, k: tril(adj, k), "tril")
_triu = linear(lambda x, k: np.triu(x, k), lambda _v, adj, _x, k: triu(adj, k), "triu")
copy = linear(np.copy, lambda _v, adj, _x: adj, "copy")


def reshape(x: Value, *shape: Any, **kw: Any) -> Value:
    """x with the same elements, row by row, in another shape; one length may be -1."""
    wanted = kw.pop("shape", None) if not shape else shape[0] if len(shape) == 1 else shape
    if kw.pop("order", "C") != "C" or kw.pop("copy", None) is not None or kw:
        raise TypeError("reshape: only order='C' is differentiable; transpose first for another order")
    return _reshape(x, shape=(int(wanted),) if isinstance(wanted, (int, np.integer)) else tuple(wanted))


def ravel(x: Value) -> Value:
    """x as a vector, row by row: shape (x.size,)."""
    return _reshape(x, shape=(-1,))


def transpose(x: Value, axes: Sequence[int] | None = None) -> Value:
    """x with its axes permuted, reversed by default: y.shape[i] = x.shape[axes[i]]."""
    ndim = len(shape_of(x))
    return _transpose(x, axes=tuple(range(ndim))[::-1] if axes is None else normal_axes(axes, ndim))


def swapaxes(x: Value, axis1: int, axis2: int) -> Value:
    """x with two axes exchanged."""
    axes = list(range(len(shape_of(x))))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return _transpose(x, axes=tuple(axes))


def matrix_transpose(x: Value) -> Value:
    """Each matrix of a stack transposed: the last two axes exchanged."""
    return swapaxes(x, -1, -2)


def moveaxis(x: Value, source: Axes, destination: Axes) -> Value:
    """x with axes moved to other positions; the rest keep their order."""
    ndim = len(shape_of(x))
    origin, target = normal_axes(source, ndim), normal_axes(destination, ndim)
    order = [n for n in range(ndim) if n not in origin]
    for to, axis in sorted(zip(target, origin, strict=True)):
        order.insert(to, axis)
    return _transpose(x, axes=tuple(order))


def expand_dims(x: Value, axis: Axes) -> Value:
    """x with new axes of length 1 at these positions of the result."""
    shape = list(shape_of(x))
    count = len(shape) + (1 if isinstance(axis, int) else len(axis or ()))
    for a in sorted(normal_axes(axis, count)):
        shape.insert(a, 1)
    return _reshape(x, shape=tuple(shape))


def squeeze(x: Value, axis: Axes = None) -> Value:
    """x without axes of length 1: all of them, or those named."""
    shape = shape_of(x)
    gone = [i for i, n in enumerate(shape) if n == 1] if axis is None else normal_axes(axis, len(shape))
    if any(shape[i] != 1 for i in gone):
        raise ValueError(f"squeeze: cannot drop axis {axis} of shape {shape}, its length is not 1")
    return _reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in gone))


def flip(x: Value, axis: Axes = None) -> Value:
    """x reversed along the axes, by default all."""
    return _flip(x, axis=normal_axes(axis, len(shape_of(x))))


def roll(x: Value, shift: Any, axis: Any = None) -> Value:
    """x shifted cyclically: y[i + shift] = x[i]; without an axis along the flattened array."""
    return _roll(x, shift=tuple(shift) if isinstance(shift, list) else shift, axis=axis)


def tril(x: Value, k: int = 0) -> Value:
    """The lower triangles, from the k-th diagonal down; zero above."""
    return _tril(x, k=k)


def triu(x: Value, k: int = 0) -> Value:
    """The upper triangles, from the k-th diagonal up; zero below."""
    return _triu(x, k=k)


# Repeating

_repeat = linear(
    lambda x, repeats, axis: np.repeat(x, repeats, axis),
    lambda _v, adj, _x, repeats, axis: _sum_repeats(adj, shape_of(_x), repeats, axis),
    "repeat",
)


def _sum_repeats(adj: Value, shape: Shape, repeats: int, axis: int) -> Value:
    axis %= len(shape)
    return _sum_to(reshape(adj, (*shape[: axis + 1], repeats, *shape[axis + 1 :])), axes=(axis + 1,), shape=shape)


def repeat(x: Value, repeats: int, axis: int | None = None) -> Value:
    """Each element `repeats` times in a row: [a, b] -> [a, a, b, b]."""
    if not isinstance(repeats, (int, np.integer)):
        raise TypeError("repeat: give one count for all elements; for several counts, index: x[[0, 0, 1]]")
    return _repeat(ravel(x) if axis is None else x, repeats=int(repeats), axis=-1 if axis is None else axis)


def tile(x: Value, reps: int | Sequence[int]) -> Value:
    """x repeated `reps` times along each axis: [a, b] -> [a, b, a, b]."""
    counts = (reps,) if isinstance(reps, (int, np.integer)) else tuple(reps)
    shape = shape_of(x)
    ndim = max(len(counts), len(shape))
    counts, shape = (1,) * (ndim - len(counts)) + counts, (1,) * (ndim - len(shape)) + shape
    spaced = _reshape(x, shape=tuple(n for length in shape for n in (1, length)))
    pairs = tuple(n for count, length in zip(counts, shape, strict=True) for n in (count, length))
    return _reshape(broadcast_to(spaced, pairs), shape=tuple(c * n for c, n in zip(counts, shape, strict=True)))


# Joining and splitting


def _pieces(wanted: Sequence[bool], _val: Value, adj: Value, *inputs: Value, axis: int) -> list[Value]:
    pieces, start = [], 0
    before = (slice(None),) * (axis % len(shape_of(adj)))
    for is_wanted, x in zip(wanted, inputs, strict=True):
        stop = start + shape_of(x)[axis]
        pieces.append(adj[(*before, slice(start, stop))] if is_wanted else None)
        start = stop
    return pieces


def _join_tangents(_val: Value, tans: Sequence[Value], *inputs: Value, axis: int) -> Value:
    parts = (np.zeros(shape_of(x)) if t is None else t for t, x in zip(tans, inputs, strict=True))
    return _concatenate(*parts, axis=axis)


_concatenate = own_gradients(
    lambda *arrays, axis: np.concatenate(arrays, axis),
    reverse=AllInputs(_pieces),
    forward=AllInputs(_join_tangents),
    name="concatenate",
)


def concatenate(arrays: Sequence[Value], axis: int | None = 0) -> Value:
    """The arrays joined along an axis; their lengths add up, and all other axes must agree."""
    parts = [asarray(a) for a in arrays]
    if axis is None:
        return _concatenate(*map(ravel, parts), axis=0)
    return _concatenate(*parts, axis=axis)


def stack(arrays: Sequence[Value], axis: int = 0) -> Value:
    """Arrays of one shape, or numbers, side by side along a new axis."""
    parts = [asarray(a) for a in arrays]
    shapes = {shape_of(p) for p in parts}
    if len(shapes) != 1:
        raise ValueError(f"stack: all shapes must be the same, got {sorted(shapes)}")
    if shapes == {()}:
        return _gather_scalars(*parts)
    return _concatenate(*(expand_dims(p, axis) for p in parts), axis=axis)


def _numbers(_wanted: Sequence[bool], _val: Value, adj: Value, *_inputs: Value) -> Sequence[Value]:
    return adj.tolist() if isinstance(adj, np.ndarray) else unstack(adj)


_gather_scalars: Rule = own_gradients(
    lambda *numbers: np.array(numbers, float),
    reverse=AllInputs(_numbers),
    forward=AllInputs(lambda _val, tans, *_numbers: _gather_scalars(*(0.0 if t is None else t for t in tans))),
    name="stack",
)


def split(x: Value, sections: int | Sequence[int], axis: int = 0) -> list[Value]:
    """x cut along an axis, into this many equal parts or before each of these positions."""
    length = shape_of(x)[axis]
    if isinstance(sections, (int, np.integer)):
        if length % sections:
            raise ValueError(f"split: length {length} does not divide in {sections} equal parts")
        cuts = [length // int(sections) * i for i in range(1, int(sections))]
    else:
        cuts = list(sections)
    before = (slice(None),) * (axis % len(shape_of(x)))
    return [x[(*before, slice(a, b))] for a, b in zip([0, *cuts], [*cuts, length], strict=True)]


def unstack(x: Value, axis: int = 0) -> tuple[Value, ...]:
    """The slices of x along an axis, as a tuple."""
    first = x if axis == 0 else moveaxis(x, axis, 0)
    return tuple(first[i] for i in range(shape_of(first)[0]))


def atleast_1d(x: Value) -> Value:
    """x, or a vector of length one if x is a scalar."""
    return x if shape_of(x) else _reshape(x, shape=(1,))


def atleast_2d(x: Value) -> Value:
    """x, or a matrix of one row if x is a vector or a scalar."""
    return x if len(shape_of(x)) > 1 else _reshape(x, shape=(1, -1))


def vstack(arrays: Sequence[Value]) -> Value:
    """The arrays one below the other; a vector is a row."""
    return concatenate([atleast_2d(asarray(a)) for a in arrays])


def hstack(arrays: Sequence[Value]) -> Value:
    """The arrays side by side; vectors one after the other."""
    parts = [atleast_1d(asarray(a)) for a in arrays]
    return concatenate(parts, 0 if len(shape_of(parts[0])) == 1 else 1)


def pad(x: Value, pad_width: Any, mode: str = "constant", constant_values: float = 0.0) -> Value:
    """x with a border of one constant value; pad_width as in numpy."""
    if mode != "constant":
        raise NotImplementedError(
            f"pad: mode {mode!r} has no derivative here; use mode 'constant', or an index with repeats"
        )
    shape = shape_of(x)
    widths = np.broadcast_to(np.asarray(pad_width, int), (len(shape), 2)).tolist()
    for axis, (before, after) in enumerate(widths):
        sides = [np.full((*shape[:axis], n, *shape[axis + 1 :]), constant_values) for n in (before, after)]
        x = _concatenate(sides[0], x, sides[1], axis=axis)
        shape = shape_of(x)
    return x


# New arrays. One made like an active value is active too, so you can write values computed from it into the array.

_zeros = function_gradients(
    lambda _x, shape: np.zeros(shape)[()],
    reverse=(lambda _v, _adj, _x, shape: 0.0,),
    forward=(lambda _v, _tan, _x, shape: np.zeros(shape)[()],),
    name="zeros_like",
)


def zeros_like(x: Value, shape: Shape | None = None) -> Value:
    """Zeros, to fill by y[i] = v with values computed from x; active if x is."""
    return _zeros(x, shape=shape_of(x) if shape is None else shape)


def full(shape: int | Shape, fill_value: Value, dtype: Any = None) -> Value:
    """An array filled with one number; active if the number is."""
    if isinstance(fill_value, Active):
        return broadcast_to(fill_value, shape)
    return np.full(shape, fill_value, np.float64 if dtype is None else dtype)


def linspace(start: Value, stop: Value, num: int = 50, endpoint: bool = True) -> Value:
    """`num` evenly spaced numbers from start to stop; the ends may be active."""
    if not any_active((start, stop)):
        return np.linspace(start, stop, num, endpoint)
    parts = np.linspace(0.0, 1.0, num, endpoint)
    return start * (1.0 - parts) + stop * parts


def ones_like(x: Value, shape: Shape | None = None) -> Value:
    """Ones in the shape of x; active if x is."""
    return zeros_like(x, shape) + 1.0


def full_like(x: Value, fill_value: Value, shape: Shape | None = None) -> Value:
    """An array in the shape of x filled with one number; active if either is."""
    return zeros_like(x, shape) + fill_value


def meshgrid(*arrays: Value, indexing: str = "xy") -> list[Value]:
    """The coordinates of a grid: vectors of lengths n, m, … become arrays of shape (m, n, …), or (n, m, …) for "ij"."""
    vectors = [asarray(a) for a in arrays]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = 1, 0
    lengths: Sequence[int] = [shape_of(vectors[i])[0] for i in order]
    return [
        broadcast_to(reshape(v, tuple(-1 if order[axis] == i else 1 for axis in range(len(order)))), tuple(lengths))
        for i, v in enumerate(vectors)
    ]


def astype(x: Value, dtype: Any) -> Value:
    """x in another type. An active value allows only float64: any other type would lose the derivative."""
    return x.astype(dtype) if isinstance(x, Active) else np.asarray(x).astype(dtype)  # type: ignore[attr-defined]  # every active type is an Operand


# The array API's names

concat = concatenate
empty_like = zeros_like  # without noise in elements that are never filled
flatten = ravel
permute_dims = transpose

PUBLIC["asarray"] = asarray
publish(globals(), helpers="keep_axes linear normal_axes spread sum_to")
