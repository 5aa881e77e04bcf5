"""Making, arranging and reducing arrays of `Real`: the namespace's functions for shapes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.series import ball
from adbench.oracle.series.algebra.coefficients import products
from adbench.oracle.series.ball import Ball
from adbench.oracle.series.number import ComplexNumber, Real, lifted

Objects = NDArray[np.object_]
Axes = int | Sequence[int] | None


class RealArray(np.ndarray[Any, np.dtype[np.object_]]):
    """A numpy array of `Real`; only `@` is not numpy's own."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> Any:
        # As for plain arrays, a reduction to one number is that number.
        return array.view(RealArray) if array.ndim else array[()]

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    @property  # type: ignore[misc]  # numpy's may be assigned to
    def real(self) -> Any:
        """The real parts."""
        return _REAL_PARTS(self)

    @property  # type: ignore[misc]
    def imag(self) -> Any:
        """The imaginary parts: zeros for real numbers."""
        return _IMAGINARY_PARTS(self)


_REAL_PARTS, _IMAGINARY_PARTS = (np.frompyfunc(operator.attrgetter(part), 1, 1) for part in ("real", "imag"))
COMPLEX = np.frompyfunc(ComplexNumber, 2, 1)
"""Of arrays of real and imaginary parts."""


def holds_complex(x: Any) -> bool:
    """Whether one of these numbers is complex."""
    array = np.asarray(x)
    return array.dtype.kind == "c" or any(isinstance(element, ComplexNumber | complex) for element in array.flat)


def objects(elements: Sequence[Any], shape: tuple[int, ...]) -> RealArray:
    """An array of these elements, without conversion by numpy."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape).view(RealArray)


def nearest(numbers: Any) -> Any:
    """The float64 array of the numbers at t = 0; complex128 if one is complex."""
    return np.asarray(_NEAREST(numbers)).astype(np.complex128 if holds_complex(numbers) else np.float64)


def _nearest(number: Any) -> complex | float:
    if isinstance(number, ComplexNumber):
        return complex(_nearest(number.real), _nearest(number.imag))
    return ball.nearest(number.ball) if isinstance(number, Real) else number


_NEAREST = np.frompyfunc(_nearest, 1, 1)


def is_plain(real: type[Real]) -> bool:
    """Whether numbers of this type compute without noise."""
    return real.total.__func__ is Real.total.__func__  # type: ignore[attr-defined]


def _product(a: Any, b: Any) -> Any:
    left, right = np.asarray(a), np.asarray(b)
    parts = (getattr(element, "real", element) for array in (left, right) for element in array.flat)
    kinds = {type(part) for part in parts if isinstance(part, Real)}
    if len(kinds) != 1 or not left.ndim or not right.ndim:
        return np.matmul(left, right)
    (real,) = kinds

    def lifted_entry(element: Any) -> Any:
        is_complex = isinstance(element, ComplexNumber | complex)
        return lifted(element, real) if is_complex else element if isinstance(element, Real) else real.of(element)

    lift = np.frompyfunc(lifted_entry, 1, 1)
    return matmul(real, lift(left), lift(right))


def matmul(real: type[Real], a: Any, b: Any) -> Any:
    """a @ b: (…, m, k) × (…, k, n) -> (…, m, n), vectors as in numpy; entries of type ``real``, or complex ones."""
    if holds_complex(a) or holds_complex(b):
        (x, u), (y, v) = ([part(np.asarray(z)) for part in (_REAL_PARTS, _IMAGINARY_PARTS)] for z in (a, b))
        return COMPLEX(matmul(real, x, y) - matmul(real, u, v), matmul(real, x, v) + matmul(real, u, y))
    left, right = np.asarray(a, dtype=object), np.asarray(b, dtype=object)
    rows = left[None, :] if left.ndim == 1 else left
    columns = right[:, None] if right.ndim == 1 else right
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(f"matmul: the shapes {left.shape} and {right.shape} do not match")
    batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows = np.broadcast_to(rows, batch + rows.shape[-2:])
    columns = np.broadcast_to(columns, batch + columns.shape[-2:])
    product = np.empty((*batch, rows.shape[-2], columns.shape[-1]), dtype=object)
    for place in np.ndindex(*batch):
        product[place] = _rows_times_columns(real, rows[place], columns[place])
    if left.ndim == 1:
        product = product[..., 0, :]
    result = product[..., 0] if right.ndim == 1 else product
    return result.view(RealArray) if result.ndim else result[()]


def _rows_times_columns(real: type[Real], left: Any, right: Any) -> Any:
    if is_plain(real) and left.size and right.size and left.shape[0] * right.shape[1] > 1:
        entries = products(balls_of(left), balls_of(right))
        if entries is not None:
            return objects([real(entry) for row in entries for entry in row], (left.shape[0], right.shape[1]))
    product = np.empty((left.shape[0], right.shape[1]), dtype=object)
    for i, row in enumerate(left):
        for j, column in enumerate(right.T):
            terms = [real.term(x, y) for x, y in zip(row, column, strict=True)]
            product[i, j] = real(real.total(terms))
    return product


def balls_of(matrix: Any) -> list[list[Ball]]:
    """The rows of a matrix of Reals as values."""
    return [[element.ball for element in row] for row in matrix]


def in_rows(x: NDArray[Any], axis: Axes) -> tuple[NDArray[Any], tuple[int, ...]]:
    """The array with these axes as its first one, and its shape with one entry along each of them."""
    axes = range(x.ndim) if axis is None else [k % max(1, x.ndim) for k in np.atleast_1d(axis).astype(int).tolist()]
    kept = [n for k, n in enumerate(x.shape) if k not in axes]
    rows = np.moveaxis(x, axes, range(len(axes))).reshape(math.prod(x.shape[k] for k in axes), *kept)
    return rows, tuple(1 if k in axes else n for k, n in enumerate(x.shape))


class Arrays:
    """Arrays of numbers of the type ``number``; subclasses add elementwise functions."""

    number: type[Real]
    if TYPE_CHECKING:
        exp: Callable[[Any], Any]
        log: Callable[[Any], Any]
        sqrt: Callable[[Any], Any]
        centred: Callable[[Any, Any], Any]
        squares: Callable[[Any, Any, Any], Any]

        def check_time(self) -> None:
            """Raises TooSlow once the deadline has passed."""

    # Creation --------------------------------------------------------------------------------------------------

    def reals(self, x: Any) -> Any:
        """x with every number as a Real, or as a ComplexNumber; also for arrays of integers and booleans."""
        if isinstance(x, Real | ComplexNumber):
            return x
        array = np.array(x, dtype=object)
        if array.ndim == 0:
            return self.one_number(array[()])
        flat = [element if isinstance(element, Real) else self.one_number(element) for element in array.ravel()]
        return objects(flat, array.shape)

    def one_number(self, x: Any) -> Any:
        """A number as Real or ComplexNumber. Raises TypeError for anything else."""
        return lifted(x, self.number) if isinstance(x, ComplexNumber | complex) else self.number.of(x)

    def asarray(self, x: Any, dtype: Any = None, **_: Any) -> Any:
        """A scalar or an array: floats become Reals, whole numbers and booleans stay."""
        if dtype is None and not isinstance(x, Real):
            array = np.asarray(x) if not _holds_reals(x) else np.array(x, dtype=object)
            return array if array.dtype.kind in "iub" else self.reals(x)
        return self.astype(x, dtype)

    array = asarray

    def astype(self, x: Any, dtype: Any, **_: Any) -> Any:
        """Integers by truncation, as in numpy; every float type means Real."""
        kind = np.dtype(dtype).kind if dtype is not None else "O"
        if kind in "fOc":
            return self.reals(x)
        convert = np.frompyfunc(bool if kind == "b" else int, 1, 1)
        result = convert(x)
        return result.astype(dtype) if isinstance(result, np.ndarray) else result

    def full(self, shape: Any, fill: Any, dtype: Any = None, **_: Any) -> Any:
        """An array of one number."""
        return self.asarray(np.full(shape, fill if not isinstance(fill, float) else self.number.of(fill)), dtype)

    def zeros(self, shape: Any, dtype: Any = np.float64, **_: Any) -> Any:
        """Zeros; Real unless dtype is an integer or boolean type."""
        return self.astype(np.zeros(shape, dtype=np.int64), dtype)

    def ones(self, shape: Any, dtype: Any = np.float64, **_: Any) -> Any:
        """Ones."""
        return self.astype(np.ones(shape, dtype=np.int64), dtype)

    empty = zeros

    def zeros_like(self, x: Any, dtype: Any = None, **_: Any) -> Any:
        """Zeros of x's shape."""
        return self.zeros(np.shape(x), _kind_of(x, dtype))

    def ones_like(self, x: Any, dtype: Any = None, **_: Any) -> Any:
        """Ones of x's shape."""
        return self.ones(np.shape(x), _kind_of(x, dtype))

    def full_like(self, x: Any, fill: Any, dtype: Any = None, **_: Any) -> Any:
        """An array of one number, of x's shape."""
        return self.full(np.shape(x), fill, _kind_of(x, dtype))

    empty_like = zeros_like

    def eye(self, rows: int, columns: int | None = None, *, k: int = 0, dtype: Any = np.float64, **_: Any) -> Any:
        """The identity."""
        return self.astype(np.eye(rows, columns, k=k, dtype=np.int64), dtype)

    identity = eye

    def _arange(self, *bounds: Any, dtype: Any = None, **_: Any) -> Any:
        return self.asarray(np.arange(*bounds), dtype)

    def linspace(self, start: Any, stop: Any, num: int, endpoint: Any = True, **_: Any) -> Any:
        """num numbers from start to stop; float64 numbers if both are floats."""
        if not _holds_reals(start) and not _holds_reals(stop):
            return self.reals(np.linspace(start, stop, num, endpoint=endpoint))
        parts = max(1, num - 1 if endpoint else num)
        return self.stack([start + (stop - start) * k / parts for k in range(num)])

    # Arrangement -----------------------------------------------------------------------------------------------

    def stack(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Join arrays of one shape along a new axis."""
        return np.stack([np.asarray(self.reals(part)) for part in arrays], axis=axis).view(RealArray)

    def concat(self, arrays: Sequence[Any], axis: int | None = 0) -> Any:
        """Join arrays along an existing axis."""
        return np.concatenate([np.asarray(self.reals(part)) for part in arrays], axis=axis).view(RealArray)

    # Reductions ------------------------------------------------------------------------------------------------

    def _reduce(self, function: Callable[[list[Ball]], Ball], x: Any, axis: Any, keepdims: Any) -> Any:
        """``function`` over rows of values along ``axis`` (all of them for None)."""
        self.check_time()
        array = np.asarray(self.reals(x), dtype=object)
        rows, shape = in_rows(array, axis)
        flat = rows.reshape(len(rows), math.prod(rows.shape[1:])).T
        results = [self.number(function([element.ball for element in row])) for row in flat]
        return objects(results, shape if keepdims else rows.shape[1:])[()]

    def sum(self, x: Any, axis: Any = None, *, keepdims: Any = False, dtype: Any = None, **_: Any) -> Any:
        """Σ x."""
        if isinstance(x, np.ndarray) and x.dtype.kind in "iub":
            return np.sum(x, axis=axis, keepdims=bool(keepdims))
        if holds_complex(x):
            parts = [self.sum(part(self.reals(x)), axis, keepdims=keepdims) for part in (np.real, np.imag)]
            return COMPLEX(*parts)
        return self._reduce(self.number.total, x, axis, keepdims)

    def prod(self, x: Any, axis: Any = None, *, keepdims: Any = False, **_: Any) -> Any:
        """Π x; 1 for no factors."""
        if holds_complex(x):
            return np.prod(np.asarray(self.reals(x)), axis=axis, keepdims=bool(keepdims))
        return self._reduce(self.number.product, x, axis, keepdims)

    def mean(self, x: Any, axis: Any = None, *, keepdims: Any = False, **_: Any) -> Any:
        """Σ x / n."""
        total = self.sum(self.reals(x), axis, keepdims=keepdims)
        return total / (np.size(x) // max(1, np.size(total)))

    def var(self, x: Any, axis: Any = None, *, correction: Any = 0, keepdims: Any = False, ddof: Any = None) -> Any:
        """Σ (x - mean)² / (n - correction)."""
        mean = self.mean(x, axis, keepdims=True)
        gap = self.centred(self.reals(x), mean)
        count = np.size(x) // max(1, np.size(mean))
        total = self.squares(self.sum(gap * gap, axis, keepdims=True), mean, count)
        total = total if keepdims else self.reals(np.squeeze(np.asarray(total, dtype=object), axis))
        return total / (count - (correction if ddof is None else ddof))

    def std(self, x: Any, axis: Any = None, *, correction: Any = 0, keepdims: Any = False, ddof: Any = None) -> Any:
        """The square root of `var`."""
        squared = self.var(x, axis, correction=correction, keepdims=keepdims, ddof=ddof)
        return self.sqrt(squared)

    def max(self, x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        """The largest."""
        return self._reduce(lambda values: _fold(values, ball.larger), x, axis, keepdims)

    def min(self, x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        """The smallest."""
        return self._reduce(lambda values: _fold(values, ball.smaller), x, axis, keepdims)

    def cumulative_sum(self, x: Any, axis: int = -1, **_: Any) -> Any:
        """Running sums."""
        return np.cumsum(np.asarray(self.reals(x), dtype=object), axis=axis).view(RealArray)

    def cumulative_prod(self, x: Any, axis: int = -1, **_: Any) -> Any:
        """Running products."""
        return np.cumprod(np.asarray(self.reals(x), dtype=object), axis=axis).view(RealArray)

    cumsum, cumprod = cumulative_sum, cumulative_prod

    def running(self, join: Callable[[Any, Any], Any], x: Any, axis: int = -1) -> Any:
        """The results of an operation on all numbers up to each one, one after the other."""
        numbers = np.asarray(self.reals(x), dtype=object)
        return np.frompyfunc(join, 2, 1).accumulate(numbers, axis=axis, dtype=object).view(RealArray)

    def logsumexp(self, x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        """log Σ exp x: by the plain formula, because balls do not overflow."""
        grown = self.exp(x)
        return self.log(self.sum(grown, axis, keepdims=keepdims))

    log_sum_exp = logsumexp

    def softmax(self, x: Any, axis: Any = None) -> Any:
        """exp x / Σ exp x."""
        grown = self.exp(x)
        return grown / self.sum(grown, axis, keepdims=True)


def _fold(values: list[Ball], better: Callable[[Ball, Ball], Ball]) -> Ball:
    if not values:
        raise ValueError("the maximum or minimum of an empty array is undefined")
    return functools.reduce(better, values)


def _holds_reals(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return any(_holds_reals(part) for part in x)
    return isinstance(x, Real) or (isinstance(x, np.ndarray) and x.dtype == object)


def _kind_of(x: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    kind = np.asarray(x).dtype
    return kind if kind.kind in "iub" else np.float64
