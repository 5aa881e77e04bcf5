"""Arrays of enclosures by midpoint and radius in float64: each number lies within `rad` of `mid`.

Midpoints are computed by numpy and BLAS. Radii bound what these round: u is 2^-53, and a sum of k products of any order
is off by at most (k + 2) u Σ|a b| (Rump, "Fast and parallel interval arithmetic", BIT 39, 1999). Radii are themselves
computed in float64, and widened by `UP`, which covers 16 roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.enclosures import taylor
from adbench.oracle.enclosures.taylor import TINY, UP, U
from adbench.oracle.series.arrays import Axes, in_rows

Floats = NDArray[np.float64]

NO_UNDERFLOW = 2.0**-900


class Parts:
    """An array of numbers that several arrays of its shape describe."""

    def __init__(self, *parts: NDArray[Any]) -> None:
        self.parts = parts

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.parts[0].shape

    def mapped(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """The same numbers, arranged in another way."""
        return type(self)(*map(change, self.parts))

    def reshape(self, shape: Sequence[int]) -> Self:
        """As numpy's."""
        return self.mapped(lambda x: x.reshape(shape))

    def broadcast_to(self, shape: Sequence[int]) -> Self:
        """As numpy's."""
        return self.mapped(lambda x: np.broadcast_to(x, shape))

    def take(self, places: NDArray[np.int64]) -> Self:
        """The numbers at flat indices."""
        return self.mapped(lambda x: np.asarray(x.reshape(-1)[places], dtype=x.dtype))

    def where(self, condition: Any, other: Self) -> Self:
        """These numbers where the condition holds, else the others."""
        return type(self)(*(np.where(condition, *each) for each in zip(self.parts, other.parts, strict=True)))

    @classmethod
    def joined(cls, arrays: Sequence[Self]) -> Self:
        """One-dimensional arrays after each other."""
        return cls(*(np.concatenate(each) for each in zip(*(one.parts for one in arrays), strict=True)))


class Enclosure(Parts):
    """Numbers in [mid - rad, mid + rad]. An infinity is exact; a radius that is NaN or infinite says nothing."""

    def __init__(self, mid: Floats, rad: Floats) -> None:
        super().__init__(mid, rad)
        self.mid, self.rad = mid, rad

    @staticmethod
    def of(x: Any) -> Enclosure:
        """Exact numbers."""
        mid = np.asarray(x, dtype=np.float64)
        return Enclosure(mid, np.broadcast_to(0.0, mid.shape))

    @property
    def approximate(self) -> Floats:
        """The numbers in float64."""
        return self.mid

    def bounds(self) -> tuple[Floats, Floats]:
        """Midpoints and radii."""
        return self.mid, self.rad

    def widened(self, radii: Floats) -> Enclosure:
        """With these radii added."""
        return Enclosure(self.mid, (self.rad + radii) * UP)

    # Elementwise, with numpy's broadcasting ------------------------------------------------------------------------

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.mid, self.rad)

    def __add__(self, other: Enclosure) -> Enclosure:
        mid = self.mid + other.mid
        lost = U * np.abs(mid)
        if np.isinf(mid).any():  # exact if a term is infinite
            lost = np.where(np.isinf(self.mid) | np.isinf(other.mid), 0.0, lost)
        return Enclosure(mid, (self.rad + other.rad + lost) * UP)

    def __mul__(self, other: Enclosure) -> Enclosure:
        a, b = np.abs(self.mid), np.abs(other.mid)
        mid = self.mid * other.mid
        size = np.abs(mid)
        rad = (a * other.rad + self.rad * (b + other.rad) + U * size) * UP
        if not (size > NO_UNDERFLOW).all():
            is_zero = (a + self.rad == 0) | (b + other.rad == 0)
            rad = np.where(is_zero | (size > NO_UNDERFLOW), rad, rad + TINY)
        if np.isinf(mid).any():
            rad = np.where(np.isinf(a) & (b > other.rad) | np.isinf(b) & (a > self.rad), 0.0, rad)
        return Enclosure(mid, rad)

    def __truediv__(self, other: Enclosure) -> Enclosure:
        mid = self.mid / other.mid
        least = np.abs(other.mid) * (1 - 2.0**-50) - other.rad * UP
        rad = np.abs(mid) * (other.rad / least + U) + self.rad / least
        rad = rad * UP + np.where(np.abs(mid) > NO_UNDERFLOW, 0.0, TINY)
        return Enclosure(mid, np.where(least > 0, rad, math.inf))

    def maximum(self, other: Enclosure) -> Enclosure:
        """The larger of two numbers."""
        return Enclosure(np.maximum(self.mid, other.mid), np.maximum(self.rad, other.rad))

    def signs(self) -> NDArray[np.int8]:
        """1, -1 or 0 where the sign is certain, else 2."""
        certain = np.abs(self.mid) > self.rad
        is_zero = (self.mid == 0) & (self.rad == 0)
        return np.where(certain, np.sign(self.mid), np.where(is_zero, 0, 2)).astype(np.int8)

    def between_zero_and_one(self) -> Enclosure:
        """As many intervals [0, 1]."""
        return Enclosure(np.full(self.shape, 0.5), np.full(self.shape, 0.5))

    def function(self, name: str) -> tuple[Enclosure, Callable[[], Enclosure]]:
        """A smooth function of the vocabulary, and its derivative."""
        pieces = taylor.Pieces.of(*taylor.by_name(name), self.mid, self.rad)
        return Enclosure(*pieces.value()), lambda: Enclosure(*pieces.slope())

    # Products and sums -------------------------------------------------------------------------------------------

    def __matmul__(self, other: Enclosure) -> Enclosure:
        a, b, terms = np.abs(self.mid), np.abs(other.mid), self.shape[-1]
        gamma = 1.01 * (terms + 2) * U
        rad = a @ (other.rad + gamma * b)
        if self.rad.any():
            rad = rad + self.rad @ (b + other.rad)
        rad = rad * ((1 + 3 * gamma) * UP)
        if _least(a) * _least(b) * gamma < NO_UNDERFLOW:
            rad = rad + terms * TINY
        return Enclosure(self.mid @ other.mid, rad)

    def less_product(self, a: Enclosure, b: Enclosure) -> Enclosure:
        """These numbers less a @ b, whose midpoints have about twice the precision of float64.

        Slices of the factors have so few bits that products of slices are exact (Ozaki, Ogita, Oishi and Rump,
        "Error-free transformations of matrix multiplication", Numerical Algorithms 59, 2012).
        """
        x, y, terms = np.abs(a.mid), np.abs(b.mid), a.shape[-1]
        bits = (53 - max(terms - 1, 0).bit_length()) // 2
        (a1, a2, a3), (b1, b2, b3) = _slices(a.mid, bits, -1), _slices(b.mid, bits, -2)
        high, low = self.mid, np.zeros(())
        for product in (a1 @ b1, a1 @ b2, a2 @ b1, a2 @ b2, (a1 + a2) @ b3, a3 @ b.mid):
            total = high - product
            part = total - high
            high, low = total, low + ((high - (total - part)) - (product + part))
        mid = high + low
        sizes, gamma = x @ y, 1.01 * (terms + 2) * U
        lost = 2 * gamma * (x @ np.abs(b3) + np.abs(a3) @ y) + 1024 * U * U * (sizes + np.abs(self.mid))
        rad = self.rad + x @ b.rad + a.rad @ (y + b.rad) + lost + U * np.abs(mid)
        return Enclosure(mid, rad * ((1 + 3 * gamma) * UP) + terms * TINY)

    def sum(self, axis: Axes) -> Enclosure:
        """Sums along axes, by halves: each is off by at most a rounding for every doubling of the number of terms."""

        def total(x: Floats) -> Floats:
            rows, shape = in_rows(x, axis)
            return _by_halves(rows).reshape(shape)

        mid = total(self.mid)
        lost = max(self.mid.size // max(mid.size, 1) - 1, 0).bit_length() * U
        rad = (total(self.rad) + lost * total(np.abs(self.mid))) * ((1 + 3 * lost) * UP)
        return Enclosure(mid, rad)

    def running(self, axis: int) -> Enclosure:
        """Running sums along an axis, off by at most a rounding for every term."""
        lost = max(self.shape[axis] - 1, 0) * U
        rad = np.cumsum(self.rad, axis) + lost * np.cumsum(np.abs(self.mid), axis)
        return Enclosure(np.cumsum(self.mid, axis), rad * ((1 + 3 * lost) * UP))

    def largest(self, axis: Any) -> Enclosure:
        """The largest numbers along axes, which are kept."""
        return Enclosure(*(part.max(axis, keepdims=True) for part in self.parts))

    def put(self, places: NDArray[np.int64], shape: Sequence[int]) -> Enclosure:
        """An array of zeros to whose flat indices these numbers are added."""
        flat, size = places.reshape(-1), math.prod(shape)
        most = int(np.bincount(flat, minlength=1).max(initial=0))

        def added(x: Floats) -> Floats:
            sums = np.bincount(flat, np.broadcast_to(x, places.shape).reshape(-1), size)
            return np.asarray(sums, dtype=np.float64).reshape(shape)

        lost = max(most - 1, 0) * U
        rad = (added(self.rad) + lost * added(np.abs(self.mid))) * ((1 + 3 * lost) * UP)
        return Enclosure(added(self.mid), rad)


def _slices(x: Floats, bits: int, axis: int) -> tuple[Floats, Floats, Floats]:
    """Three parts of numbers: two of so many bits, below the exponent of the largest along the axis, and the rest."""
    exponents = np.frexp(np.abs(x).max(axis, keepdims=True, initial=0.0))[1]
    first = np.ldexp(np.rint(np.ldexp(x, bits - exponents)), exponents - bits)
    second = np.ldexp(np.rint(np.ldexp(x - first, 2 * bits - exponents)), exponents - 2 * bits)
    return first, second, x - first - second


def _by_halves(x: Floats) -> Floats:
    """The sum along the first axis."""
    if not len(x):
        return np.zeros(x.shape[1:])
    while len(x) > 1:
        half = (len(x) + 1) // 2
        head = x[:half].copy()
        head[: len(x) - half] += x[half:]
        x = head
    return np.asarray(x[0])


def _least(sizes: Floats) -> float:
    """The least nonzero size."""
    return float(np.min(sizes, where=sizes > 0, initial=math.inf))
