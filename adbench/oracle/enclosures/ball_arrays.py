"""Arrays of balls with many bits, with the operations of `Enclosure`: they confirm it, a thousand times slower."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, arb_series
from numpy.typing import NDArray

from adbench.oracle.enclosures.midpoint_radius import Floats, Parts
from adbench.oracle.enclosures.taylor import UP, by_name
from adbench.oracle.series.arrays import Axes, in_rows
from adbench.oracle.series.ball import is_series
from adbench.oracle.series.number import Real

BITS = 64
UNIT = arb(0.5, 0.5)

_exact = np.frompyfunc(arb, 1, 1)
_larger = np.frompyfunc(lambda a, b: a.max(b), 2, 1)
_exp = np.frompyfunc(lambda a: a.exp() if a.is_finite() or a > 0 else arb(0) if a < 0 else a.exp(), 1, 1)
_wider = np.frompyfunc(lambda a, radius: a + arb(0, radius), 2, 1)
_signs = np.frompyfunc(lambda a: 1 if a > 0 else -1 if a < 0 else 0 if a == 0 else 2, 1, 1)
_middles = np.frompyfunc(lambda a: float(a.mid()), 1, 1)
_radii = np.frompyfunc(lambda a: float(a.rad()), 1, 1)


class BallArray(Parts):
    """An array of `arb`."""

    def __init__(self, balls: Any) -> None:
        super().__init__(np.asarray(balls, dtype=object))

    @property
    def balls(self) -> Any:
        """The numbers in numpy: mypy knows no array of `arb`."""
        return self.parts[0]

    @staticmethod
    def of(x: Any) -> BallArray:
        """Exact numbers."""
        return BallArray(_exact(np.asarray(x, dtype=np.float64)))

    @property
    def approximate(self) -> Floats:
        """The numbers in float64."""
        return np.asarray(_middles(self.balls), dtype=np.float64)

    def bounds(self) -> tuple[Floats, Floats]:
        """Midpoints and radii in float64."""
        mid = self.approximate
        return mid, np.asarray(_radii(self.balls), dtype=np.float64) * UP + np.abs(mid) * 2.0**-52

    def widened(self, radii: Floats) -> BallArray:
        """With these radii added."""
        return BallArray(_wider(self.balls, radii))

    def __neg__(self) -> BallArray:
        return BallArray(-self.balls)

    def __add__(self, other: BallArray) -> BallArray:
        return BallArray(self.balls + other.balls)

    def __mul__(self, other: BallArray) -> BallArray:
        return BallArray(self.balls * other.balls)

    def __truediv__(self, other: BallArray) -> BallArray:
        return BallArray(self.balls / other.balls)

    def maximum(self, other: BallArray) -> BallArray:
        """The larger of two numbers."""
        return BallArray(_larger(self.balls, other.balls))

    def signs(self) -> NDArray[np.int8]:
        """1, -1 or 0 where the sign is certain, else 2."""
        return np.asarray(_signs(self.balls), dtype=np.int8)

    def between_zero_and_one(self) -> BallArray:
        """As many intervals [0, 1]."""
        return BallArray(np.full(self.shape, UNIT, dtype=object))

    def function(self, name: str) -> tuple[BallArray, Callable[[], BallArray]]:
        """A smooth function of the vocabulary, and its derivative."""
        if name == "exp":
            value = BallArray(_exp(self.balls))
            return value, lambda: value
        function, _ = by_name(name)

        def both(a: Any) -> tuple[Any, Any]:
            result = function(Real(arb_series([a, 1], 2))).ball
            return (result[0], result[1]) if is_series(result) else (arb(math.nan), arb(math.nan))

        found = np.frompyfunc(both, 1, 2)(self.balls)
        return BallArray(found[0]), lambda: BallArray(found[1])

    def __matmul__(self, other: BallArray) -> BallArray:
        batch = np.broadcast_shapes(self.shape[:-2], other.shape[:-2])
        rows, columns = self.shape[-2], other.shape[-1]
        left, right = (np.broadcast_to(x.balls, batch + x.shape[-2:]) for x in (self, other))
        product = np.empty((*batch, rows, columns), dtype=object)
        for place in np.ndindex(*batch):
            a, b = (arb_mat(x[place].tolist()) for x in (left, right))
            product[place] = np.array((a * b).entries(), dtype=object).reshape(rows, columns)
        return BallArray(product)

    def less_product(self, a: BallArray, b: BallArray) -> BallArray:
        """These numbers less a @ b."""
        return self + -(a @ b)

    def sum(self, axis: Axes) -> BallArray:
        """Sums along axes."""
        axes: Any = axis if axis is None or isinstance(axis, int) else tuple(axis)
        return BallArray(self.balls.sum(axes, keepdims=True, initial=arb(0)))

    def running(self, axis: int) -> BallArray:
        """Running sums along an axis."""
        return BallArray(np.add.accumulate(self.balls, axis))

    def largest(self, axis: Any) -> BallArray:
        """The largest numbers along axes, which are kept."""
        rows, shape = in_rows(self.balls, axis)
        return BallArray(_larger.reduce(rows)).reshape(shape)

    def put(self, places: NDArray[np.int64], shape: Sequence[int]) -> BallArray:
        """An array of zeros to whose flat indices these numbers are added."""
        total = np.full(math.prod(shape), arb(0), dtype=object)
        np.add.at(total, places.reshape(-1), np.broadcast_to(self.balls, places.shape).reshape(-1))
        return BallArray(total.reshape(shape))
