"""Arrays of numbers of a low precision, each operation rounded at random, with the operations of `Enclosure`.

Rounding explains the errors of these values and of their reverse sweep. Numbers of the precision stay exact. Sums and
products of matrices are added in float32, as libraries do for this type and those of 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.enclosures.midpoint_radius import Enclosure, Floats, Parts
from adbench.oracle.evidence import Precision
from adbench.oracle.series.arrays import Axes
from adbench.oracle.series.noisy import LIBRARY_ULPS


class RoundedArray(Parts):
    """Numbers of `form` in float64, rounded with `rng`."""

    form: ClassVar[Precision]
    rng: ClassVar[np.random.Generator]

    @classmethod
    def drawn(cls, form: Precision, seed: Sequence[int]) -> type[RoundedArray]:
        """The arithmetic with the roundings of this seed."""
        return type("Rounded", (cls,), {"form": form, "rng": np.random.default_rng(seed)})

    @classmethod
    def of(cls, x: Any) -> RoundedArray:
        """The numbers next to these in float32."""
        return cls(np.asarray(x, dtype=np.float32).astype(np.float64))

    @classmethod
    def rounded(cls, x: Any) -> RoundedArray:
        """The results of an operation, each rounded up or down, the nearer number more often."""
        array = np.asarray(x, dtype=np.float64)
        steps = cls.form.ulps(array)
        near = np.rint(array / steps + (cls.rng.random(array.shape) - 0.5)) * steps
        near = np.where(np.abs(near) > cls.form.largest, np.copysign(np.inf, array), near)
        return cls(np.asarray(np.where(np.isfinite(array), near, array)))

    @classmethod
    def added(cls, total: Any, sizes: Any) -> RoundedArray:
        """Sums in float32 of terms with these sums of sizes, in any order."""
        return cls.rounded(cls._moved(total, sizes))

    @classmethod
    def _moved(cls, x: Any, sizes: Any) -> Any:
        """Numbers between those of float32, moved by up to a rounding of these sizes in float32."""
        moved = x + sizes * cls.form.inside * (cls.rng.random(np.shape(x)) - 0.5)
        return np.where(x == np.asarray(x, dtype=np.float32), x, moved)

    @property
    def approximate(self) -> Floats:
        """The numbers."""
        return self.parts[0]

    def bounds(self) -> tuple[Floats, Floats]:
        """The numbers, and zeros."""
        return self.parts[0], np.zeros(self.shape)

    def __neg__(self) -> RoundedArray:
        return type(self)(-self.parts[0])

    def __add__(self, other: RoundedArray) -> RoundedArray:
        return self.rounded(self.parts[0] + other.parts[0])

    def __mul__(self, other: RoundedArray) -> RoundedArray:
        return self.rounded(self.parts[0] * other.parts[0])

    def __truediv__(self, other: RoundedArray) -> RoundedArray:
        return self.rounded(self.parts[0] / other.parts[0])

    def maximum(self, other: RoundedArray) -> RoundedArray:
        """The larger of two numbers."""
        return type(self)(np.maximum(self.parts[0], other.parts[0]))

    def signs(self) -> NDArray[np.int8]:
        """1, -1 or 0."""
        return np.asarray(np.sign(self.parts[0]), dtype=np.int8)

    def between_zero_and_one(self) -> RoundedArray:
        """As many halves."""
        return type(self)(np.full(self.shape, 0.5))

    def function(self, name: str) -> tuple[RoundedArray, Callable[[], RoundedArray]]:
        """A smooth function of the vocabulary, and its derivative."""
        value, slope = Enclosure.of(self.parts[0]).function(name)

        def near(x: Floats) -> RoundedArray:
            return self.rounded(self._moved(x, 2 * LIBRARY_ULPS * np.abs(x)))

        return near(value.mid), lambda: near(slope().mid)

    def __matmul__(self, other: RoundedArray) -> RoundedArray:
        a, b = self.parts[0], other.parts[0]
        return self.added(a @ b, np.abs(a) @ np.abs(b))

    def _summed(self, total: Callable[[Floats], Any]) -> RoundedArray:
        return self.added(total(self.parts[0]), total(np.abs(self.parts[0])))

    def sum(self, axis: Axes) -> RoundedArray:
        """Sums along axes."""
        axes: Any = axis if axis is None or isinstance(axis, int) else tuple(axis)
        return self._summed(lambda x: x.sum(axes, keepdims=True))

    def running(self, axis: int) -> RoundedArray:
        """Running sums along an axis."""
        return self._summed(lambda x: np.cumsum(x, axis))

    def largest(self, axis: Any) -> RoundedArray:
        """The largest numbers along axes, which are kept."""
        return type(self)(self.parts[0].max(axis, keepdims=True))

    def put(self, places: NDArray[np.int64], shape: Sequence[int]) -> RoundedArray:
        """An array of zeros to whose flat indices these numbers are added."""
        return self._summed(lambda x: Enclosure.of(x).put(places, shape).mid)


class UnroundedArray(RoundedArray):
    """Numbers in float64, whose operations are those of numpy."""

    @classmethod
    def of(cls, x: Any) -> RoundedArray:
        """The numbers."""
        return cls(np.asarray(x, dtype=np.float64))

    @classmethod
    def rounded(cls, x: Any) -> RoundedArray:
        """The result of an operation."""
        return cls(np.asarray(x))

    @classmethod
    def _moved(cls, x: Any, sizes: Any) -> Any:
        return x

    def __matmul__(self, other: RoundedArray) -> RoundedArray:
        return self.rounded(self.parts[0] @ other.parts[0])

    def _summed(self, total: Callable[[Floats], Any]) -> RoundedArray:
        return self.rounded(total(self.parts[0]))
