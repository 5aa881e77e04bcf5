"""numpy's functions that make, arrange and reduce arrays, with numpy's signatures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from adbench.functions.from_numpy.name_table import FUNCTIONS, Function, known_as, namesake, unsupported
from adbench.vocabulary import words

CREATION = frozenset(f"numpy.{name}" for name in ("array", "empty", "eye", "full", "identity", "ones", "zeros"))
"""Functions that create float64 arrays, into which a program may write active numbers."""

BY_AXIS = frozenset(f"numpy.{name}" for name in words("amax amin cumprod cumsum max mean min prod std sum var"))
"""Functions whose further arguments, after the axis, have their names here."""


@known_as("numpy.array", "numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray", "numpy.asfortranarray")
def _array(xp: Any, x: Any, dtype: Any = None, ndmin: int = 0) -> Any:
    found = xp.asarray(x, dtype) if dtype is not None else xp.reals(x)
    return np.array(found, dtype=object, ndmin=ndmin) if ndmin else found


for _name in ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like"):

    def _made(xp: Any, *args: Any, _name: str = _name, dtype: Any = None, shape: Any = None) -> Any:
        options = {} if dtype is None else {"dtype": dtype}
        if shape is not None and _name.endswith("_like"):
            return getattr(xp, _name.removesuffix("_like"))(shape, *args[1:], **options)
        return getattr(xp, _name)(*args, *(() if shape is None else (shape,)), **options)

    FUNCTIONS[f"numpy.{_name}"] = _made


@known_as("numpy.eye", "numpy.identity")
def _eye(xp: Any, N: int, M: int | None = None, k: int = 0, dtype: Any = np.float64) -> Any:
    return xp.eye(N, M, k=k, dtype=dtype)


FUNCTIONS["numpy.concatenate"] = FUNCTIONS["numpy.concat"] = namesake("concat")
FUNCTIONS["numpy.stack"] = namesake("stack")


@known_as("numpy.where")
def _where(xp: Any, condition: Any, *values: Any) -> Any:
    return xp.where(condition, *values) if values else np.nonzero(condition)


# Reductions ----


def _folded(name: str, nothing: float | None, join: str) -> Function:
    """A sum, product, maximum or minimum. ``nothing``: its value without terms; ``join``: it with one more term."""

    def found(
        xp: Any, a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        chosen = a if where is True else xp.where(where, a, initial if nothing is None else nothing)
        result = getattr(xp, name)(chosen, axis, keepdims=keepdims)
        return result if initial is None else getattr(xp, join)(result, initial)

    return found


FUNCTIONS["numpy.sum"] = _folded("sum", 0.0, "add")
FUNCTIONS["numpy.prod"] = _folded("prod", 1.0, "multiply")
FUNCTIONS["numpy.max"] = FUNCTIONS["numpy.amax"] = _folded("max", None, "maximum")
FUNCTIONS["numpy.min"] = FUNCTIONS["numpy.amin"] = _folded("min", None, "minimum")


@known_as("numpy.mean")
def _mean(xp: Any, a: Any, axis: Any = None, *, keepdims: Any = False, where: Any = True) -> Any:
    if where is True:
        return xp.mean(a, axis, keepdims=keepdims)
    count = np.sum(np.broadcast_to(where, np.shape(a)), axis=axis, keepdims=bool(keepdims))
    return xp.sum(xp.where(where, a, 0.0), axis, keepdims=keepdims) / count


def _spread(name: str) -> Function:
    def found(
        xp: Any, a: Any, axis: Any = None, *, ddof: Any = 0, keepdims: Any = False, correction: Any = None
    ) -> Any:
        return getattr(xp, name)(a, axis, keepdims=keepdims, ddof=ddof if correction is None else correction)

    return found


FUNCTIONS["numpy.var"], FUNCTIONS["numpy.std"] = _spread("var"), _spread("std")


def _running(name: str) -> Function:
    def found(xp: Any, a: Any, axis: Any = None) -> Any:
        return getattr(xp, name)(np.ravel(a) if axis is None else a, axis=0 if axis is None else axis)

    return found


FUNCTIONS["numpy.cumsum"] = _running("cumsum")
FUNCTIONS["numpy.cumprod"] = _running("cumprod")


def _ordered(a: Any, axis: Any) -> Any:
    """The numbers in ascending order, along the first axis."""
    return np.sort(np.ravel(a) if axis is None else np.moveaxis(np.asarray(a), axis, 0), axis=0)


@known_as("numpy.quantile")
def _quantile(xp: Any, a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False) -> Any:
    if method != "linear" or keepdims or np.ndim(q):
        raise unsupported("numpy.quantile with an array of quantiles, or with method= or keepdims=")
    ordered = _ordered(a, axis)
    place = float(np.asarray(q)) * (len(ordered) - 1)
    lower = min(math.floor(place), max(len(ordered) - 2, 0))
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (ordered[upper] - ordered[lower]) * (place - lower)


FUNCTIONS["numpy.percentile"] = lambda xp, a, q, *axis, **options: _quantile(
    xp, a, np.asarray(q) / 100, *axis, **options
)


@known_as("numpy.median")
def _median(xp: Any, a: Any, axis: Any = None) -> Any:
    ordered = _ordered(a, axis)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@known_as("numpy.nansum")
def _nansum(xp: Any, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return xp.sum(xp.where(xp.isnan(a), 0.0, a), axis, keepdims=keepdims)


@known_as("numpy.nanmean")
def _nanmean(xp: Any, a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _mean(xp, a, axis, keepdims=keepdims, where=~np.asarray(xp.isnan(a), dtype=np.bool_))


@known_as("numpy.nanvar")
def _nanvar(xp: Any, a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    count = np.sum(~np.asarray(xp.isnan(a), dtype=np.bool_), axis=axis, keepdims=bool(keepdims))
    gap = xp.reals(a) - _nanmean(xp, a, axis, keepdims=True)
    return _nansum(xp, gap * gap, axis, keepdims) / (count - ddof)


FUNCTIONS["numpy.nanstd"] = lambda xp, *args, **options: xp.sqrt(_nanvar(xp, *args, **options))


@known_as("numpy.cov")
def _cov(xp: Any, m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Any:
    rows = np.atleast_2d(np.asarray(xp.reals(m), dtype=object))
    rows = rows if rowvar or np.ndim(m) < 2 else rows.T
    if y is not None:
        other = np.atleast_2d(np.asarray(xp.reals(y), dtype=object))
        rows = np.concatenate([rows, other if rowvar or np.ndim(y) < 2 else other.T])
    gap = xp.centred(rows, xp.mean(rows, 1, keepdims=True))
    freedom = rows.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    return np.squeeze(np.asarray(xp.matmul(gap, np.asarray(gap).T) / freedom))


@known_as("numpy.corrcoef")
def _corrcoef(xp: Any, x: Any, y: Any = None, rowvar: bool = True) -> Any:
    found = np.asarray(_cov(xp, x, y, rowvar))
    if not found.ndim:
        return found / found
    deviation = np.asarray(xp.sqrt(np.diagonal(found)))
    return found / deviation[:, None] / deviation[None, :]


@known_as("numpy.bincount")
def _bincount(xp: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    found = np.asarray(xp.zeros(max(int(np.max(x, initial=-1)) + 1, minlength)))
    np.add.at(found, np.asarray(x), np.asarray(xp.reals(weights)))
    return found


def _truth_of(function: Any) -> Function:
    """`numpy.any` or `numpy.all`."""
    return lambda _xp, a, axis=None, keepdims=False: function(
        np.asarray(a, dtype=np.bool_), axis=axis, keepdims=bool(keepdims)
    )


FUNCTIONS["numpy.any"], FUNCTIONS["numpy.all"] = _truth_of(np.any), _truth_of(np.all)

REDUCTIONS: Mapping[str, Function] = {
    "add": FUNCTIONS["numpy.sum"],
    "logaddexp": lambda xp, a, axis=None, keepdims=False: xp.logsumexp(a, axis, keepdims=keepdims),
    "logical_and": FUNCTIONS["numpy.all"],
    "logical_or": FUNCTIONS["numpy.any"],
    "maximum": FUNCTIONS["numpy.max"],
    "minimum": FUNCTIONS["numpy.min"],
    "multiply": FUNCTIONS["numpy.prod"],
}
"""`ufunc.reduce` by the ufunc's name. By default along the first axis."""

ACCUMULATIONS: Mapping[str, Function] = {
    "add": FUNCTIONS["numpy.cumsum"],
    "multiply": FUNCTIONS["numpy.cumprod"],
    "maximum": lambda xp, a, axis=0: xp.running(xp.maximum, a, axis),
    "minimum": lambda xp, a, axis=0: xp.running(xp.minimum, a, axis),
}
"""`ufunc.accumulate` by the ufunc's name."""


# Values and intervals ----


@known_as("numpy.clip")
def _clip(xp: Any, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Any:
    return xp.clip(a, a_min if min is None else min, a_max if max is None else max)


for _name in ("angle", "around", "fabs", "fix", "i0", "imag", "nan_to_num", "real", "round", "sinc"):
    FUNCTIONS[f"numpy.{_name}"] = namesake(_name)


@known_as("numpy.isclose")
def _isclose(xp: Any, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
    a, b = xp.reals(a), xp.reals(b)
    return np.asarray(abs(a - b) <= atol + rtol * abs(b), dtype=np.bool_)[()]


FUNCTIONS["numpy.allclose"] = lambda xp, *args, **options: bool(np.all(_isclose(xp, *args, **options)))


for _name in ("result_type", "common_type"):
    FUNCTIONS[f"numpy.{_name}"] = lambda _xp, *_arrays: np.dtype(np.float64)


@known_as("numpy.interp")
def _interp(xp: Any, x: Any, at: Any, values: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None:
        raise unsupported("numpy.interp with period=")
    x, at, values = (np.asarray(xp.reals(part), dtype=object) for part in (x, at, values))
    upper = np.clip(np.searchsorted(at, x, side="right"), 1, len(at) - 1)
    lower = upper - 1
    found = values[lower] + (values[upper] - values[lower]) / (at[upper] - at[lower]) * (x - at[lower])
    found = xp.where(x < at[0], values[0] if left is None else left, found)
    found = xp.where(x > at[-1], values[-1] if right is None else right, found)
    return xp.where(x == at[-1], values[-1], found)
