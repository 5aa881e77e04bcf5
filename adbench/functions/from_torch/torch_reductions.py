"""ATen's reductions, sorting and scattered sums on arrays of the oracle's numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adbench.functions.declared_constants import PADDING, constant, stops
from adbench.functions.from_torch.torch_linalg import axes, reals
from adbench.oracle.enclosures.recorded import EnclosedArray
from adbench.oracle.series.algebra.positions import boxed, combined
from adbench.oracle.series.arrays import nearest

Function = Callable[..., Any]


def reduction(name: str) -> Function:
    """The namespace's reduction of this name."""

    def reduced(xp: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return getattr(xp, name)(reals(xp, x), axes(dim) if np.ndim(x) else None, keepdims=keepdim)

    return reduced


def var(
    xp: Any, x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """The variance. torch's decomposition into sums lacks the noise of its derivative."""
    correction = int(unbiased) if correction is None else correction
    return xp.var(x, axes(dim), correction=correction, keepdims=keepdim)


def taken(x: Any, places: Any, dim: int) -> Any:
    """Entries at these indices along an axis."""
    return np.take_along_axis(boxed(x), places, dim) if np.ndim(x) else x


def best(largest: bool) -> Function:
    """The largest or smallest number, alone or along a dimension with its index."""

    def computed(xp: Any, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return (xp.max if largest else xp.min)(x)
        places = np.asarray((np.argmax if largest else np.argmin)(np.atleast_1d(boxed(x)), axis=dim))
        kept = np.expand_dims(places, dim) if np.ndim(x) else places
        found = taken(x, kept, dim)
        return (found, kept) if keepdim or not np.ndim(x) else (np.squeeze(found, dim), places)

    return computed


def place_of_best(largest: bool) -> Function:
    """The index of the largest or smallest number."""

    def computed(xp: Any, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        array = boxed(x)
        rows = array.reshape(-1) if dim is None else np.atleast_1d(array)
        found = (np.argmax if largest else np.argmin)(rows, axis=dim)
        if keepdim and array.ndim:
            found = np.reshape(found, (1,) * array.ndim) if dim is None else np.expand_dims(found, dim)
        return np.asarray(found, dtype=np.int64).reshape(() if not array.ndim else np.shape(found))

    return computed


def order(x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort the numbers along an axis, stably."""
    return np.argsort(-boxed(x) if descending else boxed(x), axis=dim, kind="stable")


def sort(xp: Any, x: Any, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    """The sorted numbers, and their indices."""
    if not np.ndim(x):
        return x, np.zeros((), dtype=np.int64)
    places = order(x, dim, descending)
    return taken(x, places, dim), places


def topk(xp: Any, x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest or smallest numbers, and their indices."""
    places = np.take(order(x, dim, largest), np.arange(k), axis=dim) if np.ndim(x) else np.zeros((), dtype=np.int64)
    return taken(x, places, dim), places


def kthvalue(xp: Any, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest number, and its index."""
    if not np.ndim(x):
        return x, np.zeros((), dtype=np.int64)
    places = np.take(order(x, dim, False), [k - 1], axis=dim)
    found = taken(x, places, dim)
    return (found, places) if keepdim else (np.squeeze(found, dim), np.squeeze(places, dim))


def median(xp: Any, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median."""
    if dim is None:
        flat = np.reshape(x, -1)
        return kthvalue(xp, flat, (flat.size + 1) // 2)[0]
    return kthvalue(xp, x, (np.shape(x)[dim] + 1) // 2 if np.ndim(x) else 1, dim, keepdim)


def running_best(largest: bool) -> Function:
    """The largest or smallest number so far, and its index."""

    def computed(xp: Any, x: Any, dim: int) -> Any:
        if not np.ndim(x):
            return x, np.zeros((), dtype=np.int64)
        rows = np.moveaxis(np.asarray(x), dim, -1)
        places = np.zeros(rows.shape, dtype=np.int64)
        for row in np.ndindex(rows.shape[:-1]):
            for k in range(1, rows.shape[-1]):
                before = rows[row][places[row][k - 1]]
                better = rows[row][k] >= before if largest else rows[row][k] <= before
                places[row][k] = k if better else places[row][k - 1]
        places = np.moveaxis(places, -1, dim)
        return taken(x, places, dim), places

    return computed


def anchor(x: Any, dim: int) -> Any:
    """The approximate largest number along an axis, as a float, which keeps exp(x - c) in range."""
    sizes = x.approximate if isinstance(x, EnclosedArray) else nearest(np.asarray(x))
    return sizes.max(axis=dim, keepdims=True, initial=-math.inf) if sizes.ndim else sizes


def softmax(xp: Any, x: Any, dim: int, half_to_float: bool = False) -> Any:
    """exp x / Σ exp x."""
    grown = xp.exp(x - xp.reals(anchor(x, dim)))
    return grown / xp.sum(grown, dim, keepdims=True) if np.ndim(x) else grown / grown


def log_softmax(xp: Any, x: Any, dim: int, half_to_float: bool = False) -> Any:
    """x - log Σ exp x."""
    gap = x - xp.reals(anchor(x, dim))
    return gap - xp.log(xp.sum(xp.exp(gap), dim, keepdims=True)) if np.ndim(x) else x - x


def logsumexp(xp: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    """log Σ exp x."""
    x = reals(xp, x)
    if not np.ndim(x):
        return x
    largest = anchor(x, axes(dim))
    largest = xp.reals(np.where(np.isinf(largest), 0.0, largest))
    found = xp.log(xp.sum(xp.exp(x - largest), axes(dim), keepdims=True)) + largest
    return found if keepdim else np.squeeze(found, axes(dim))


def logcumsumexp(xp: Any, x: Any, dim: int) -> Any:
    """log of running sums of exp x, one by one as torch adds them: exp(x - 800) of the first would underflow."""
    return xp.running(xp.logaddexp, x, dim) if np.ndim(x) else x


def running(name: str) -> Function:
    """Running sums or products."""

    def computed(xp: Any, x: Any, dim: int, *, dtype: Any = None) -> Any:
        return getattr(xp, name)(reals(xp, x), dim) if np.ndim(x) else x

    return computed


def allclose(xp: Any, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |a - b| ≤ atol + rtol |b| everywhere."""
    near = np.asarray(xp.abs(a - b) <= atol + rtol * xp.abs(b)) | np.asarray(a == b)
    both_nan = np.asarray(xp.isnan(a)) & np.asarray(xp.isnan(b))
    return bool(np.all(near | both_nan if equal_nan else near))


def nonzero(xp: Any, x: Any) -> Any:
    """The indices of nonzero numbers, one per row."""
    return np.argwhere(np.asarray(np.asarray(x) != 0).astype(np.bool_))


def searchsorted(xp: Any, x: Any, values: Any, *, right: bool = False, side: str | None = None, **_: Any) -> Any:
    """The insertion indices of the values in sorted one-dimensional numbers."""
    if np.ndim(x) != 1:
        raise NotImplementedError("searchsorted in a batch of sequences")
    step = operator.le if right or side == "right" else operator.lt
    return np.asarray(step(np.asarray(x), np.asarray(values)[..., None])).astype(np.int64).sum(-1)


REDUCTIONS: Mapping[str, Function] = {
    "_log_softmax": log_softmax,
    "_softmax": softmax,
    "allclose": allclose,
    "amax": reduction("max"),
    "amin": reduction("min"),
    "argmax": place_of_best(True),
    "argmin": place_of_best(False),
    "cummax": running_best(True),
    "cummin": running_best(False),
    "cumprod": running("cumulative_prod"),
    "cumsum": running("cumulative_sum"),
    "equal": lambda xp, a, b: np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b))),
    "kthvalue": kthvalue,
    "logcumsumexp": logcumsumexp,
    "logsumexp": logsumexp,
    "max": best(True),
    "mean": reduction("mean"),
    "median": median,
    "min": best(False),
    "nonzero": nonzero,
    "prod": reduction("prod"),
    "searchsorted": searchsorted,
    "sort": sort,
    "sum": reduction("sum"),
    "topk": topk,
    "var": var,
}


# Sums into places -------------------------------------------------------------------------------------------------


def put(xp: Any, x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """x with source written, or added, to flat indices."""
    places = np.asarray(index) % max(1, np.size(x))
    return written(xp, x, places, np.reshape(source, np.shape(places)), accumulate)


def written(xp: Any, x: Any, places: Any, values: Any, accumulate: bool) -> Any:
    """x with values written, or added, to flat indices."""
    if accumulate:
        return accumulated(xp, x, places, values)
    flat = np.array(reals(xp, x), dtype=object).reshape(-1)
    flat[places] = np.broadcast_to(np.asarray(reals(xp, values), dtype=object), np.shape(places))
    return flat.reshape(np.shape(x))


def accumulated(xp: Any, base: Any, places: Any, values: Any, how: str = "sum", include_self: bool = True) -> Any:
    """``base`` with the sum (product, mean, largest, smallest) of all values with the same flat index there."""
    values = np.broadcast_to(np.asarray(reals(xp, values), dtype=object), np.shape(places))
    function = {"sum": xp.sum, "prod": xp.prod, "mean": xp.mean, "amax": xp.max, "amin": xp.min}[how]

    def total(group: list[Any]) -> Any:
        return function(np.array(group if include_self else group[1:], dtype=object))

    return combined(reals(xp, base), np.asarray(places), values, total)


def flat_places(x: Any) -> Any:
    """The flat index of every entry."""
    return np.arange(np.size(x)).reshape(np.shape(x))


def places_along(x: Any, dim: int, index: Any) -> Any:
    """The flat indices that `scatter` writes to."""
    places = flat_places(x)
    if not places.ndim:
        return np.zeros(np.shape(index), dtype=np.int64)
    chosen = list(np.ogrid[tuple(slice(n) for n in np.shape(index))])
    chosen[dim] = index
    return places[tuple(chosen)]


def scatter_reduce(
    xp: Any, x: Any, dim: int, index: Any, src: Any, reduce: str = "sum", *, include_self: bool = True
) -> Any:
    """x with src reduced into the entries at ``index``."""
    how = {"add": "sum", "multiply": "prod"}.get(reduce, reduce)
    part = src[tuple(slice(n) for n in np.shape(index))] if np.ndim(src) else src
    return accumulated(xp, x, places_along(x, dim, index), part, how, include_self)


def index_reduce(xp: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    """x with source reduced into the slices at ``index``."""
    places = np.take(flat_places(x), np.atleast_1d(index), axis=dim) if np.ndim(x) else np.zeros(np.shape(source), int)
    return accumulated(xp, x, places.reshape(np.shape(source)), source, reduce, include_self)


def segment_reduce(
    xp: Any, data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
    unsafe: bool = False, initial: Any = None,
) -> Any:  # fmt: skip
    """Sums (products, means, largest, smallest) of consecutive slices."""
    ends = np.cumsum(lengths) if lengths is not None else np.asarray(offsets)[1:]
    if np.ndim(ends) != 1 or axis:
        raise NotImplementedError("segment_reduce in a batch")
    function = {"sum": xp.sum, "prod": xp.prod, "mean": xp.sum, "max": xp.max, "min": xp.min}[reduce]
    parts = np.split(np.asarray(data), ends)[: len(ends)]
    empty = {"sum": 0.0, "prod": 1.0, "mean": math.nan, "max": -math.inf, "min": math.inf}[reduce]
    first = () if initial is None else np.full((1, *np.shape(data)[1:]), xp.number.of(initial), dtype=object)

    def reduced(part: Any) -> Any:
        if not len(part):
            return xp.full(np.shape(data)[1:], empty if initial is None else float(initial))
        found = function(np.concatenate([first, part]) if len(first) else part, 0)
        return found / len(part) if reduce == "mean" else found

    return np.stack([np.asarray(reduced(part), dtype=object) for part in parts])


def embedding(xp: Any, weight: Any, indices: Any, padding_idx: int = -1, *_: Any) -> Any:
    """Rows of the weight, with the padding as constants."""
    rows, padded = weight[indices], indices == padding_idx
    return xp.where(padded[..., None], constant(rows), rows) if stops(rows[padded], PADDING) else rows


def embedding_bag(
    xp: Any, weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> Any:  # fmt: skip
    """Sums, means or largest entries of rows of weight, one for each bag; the other results are for torch."""
    starts = np.asarray(offsets).tolist()
    ends = starts[1:] if include_last_offset else [*starts[1:], len(indices)]
    rows = []
    for start, end in zip(starts, ends, strict=False):
        inside = [k for k in range(start, end) if indices[k] != padding_idx]
        part = np.asarray(weight)[np.asarray(indices)[inside]]
        if per_sample_weights is not None:
            part = part * np.asarray(per_sample_weights)[inside][:, None]
        function = (xp.sum, xp.mean, xp.max)[mode]
        rows.append(np.asarray(function(part, 0) if inside else xp.zeros(np.shape(weight)[1:]), dtype=object))
    places = np.zeros(0, dtype=np.int64)
    return np.stack(rows), places, places, places


def index_put(
    xp: Any, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    """x with values written, or added, to the entries at ``indices``."""
    at = tuple(slice(None) if index is None else np.asarray(index) for index in indices)
    return written(xp, x, flat_places(x)[at], values, accumulate)


def bincount(xp: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Sums of weights for every integer."""
    size = max(minlength, int(np.max(x, initial=-1)) + 1)
    return accumulated(xp, xp.zeros(size), x, weights)


SUMS: Mapping[str, Function] = {
    "_embedding_bag": embedding_bag,
    "_embedding_bag_forward_only": embedding_bag,
    "bincount": bincount,
    "embedding": embedding,
    "index_put": index_put,
    "index_reduce": index_reduce,
    "put": put,
    "scatter.reduce": scatter_reduce,
    "scatter.value_reduce": scatter_reduce,
    "scatter_add": scatter_reduce,
    "scatter_reduce": scatter_reduce,
    "segment_reduce": segment_reduce,
}
