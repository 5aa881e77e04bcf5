"""Enclosed numbers that record how they were computed, and the gradient by the reverse sweep over enclosures.

In translated functions, `EnclosedArray` takes the place of numpy's arrays of the oracle's numbers, and `Enclosures`
that of their namespace. The arithmetic is `Enclosure`, or `BallArray` to confirm it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.enclosures.midpoint_radius import Axes
from adbench.oracle.series.functions import UNARY
from adbench.vocabulary import FUNCTIONS

Value = Any
"""An `Enclosure` or a `BallArray`: mypy knows no type of both whose operators take it."""

Pullback = Callable[[Value], Value]
_NUMBERS = itertools.count()


class WithinRadii(Exception):
    """A comparison depends on numbers within their radii."""


class TooManyNumbers(Exception):
    """The numbers on the way exceed the limit."""


class EnclosedArray:
    """An array of enclosures. parents: the operands that depend on inputs, each with its pullback."""

    dtype = np.dtype(object)
    __array_ufunc__ = None
    left = math.inf
    """How many more numbers may be made: they are kept for the reverse sweep."""

    def __init__(
        self, value: Value, parents: Sequence[tuple[EnclosedArray, Pullback]] = (), is_input: bool = False
    ) -> None:
        self.value, self.number = value, next(_NUMBERS)
        self.parents = tuple((parent, pullback) for parent, pullback in parents if parent.moves)
        self.moves: bool = is_input or bool(self.parents)
        EnclosedArray.left -= self.size
        if EnclosedArray.left < 0:
            raise TooManyNumbers

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an operation takes numbers apart")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        shape: tuple[int, ...] = self.value.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def approximate(self) -> NDArray[np.float64]:
        """The numbers in float64."""
        approximate: NDArray[np.float64] = self.value.approximate
        return approximate

    def constant(self) -> EnclosedArray:
        """The same numbers, which depend on nothing."""
        return EnclosedArray(self.value)

    def _of(self, other: Any) -> EnclosedArray:
        return other if isinstance(other, EnclosedArray) else EnclosedArray(type(self.value).of(other))

    # Operators ---------------------------------------------------------------------------------------------------

    def __neg__(self) -> EnclosedArray:
        return EnclosedArray(-self.value, [(self, lambda g: -g)])

    def __add__(self, other: Any) -> EnclosedArray:
        b = self._of(other)
        return EnclosedArray(self.value + b.value, [(one, partial(_fitted, shape=one.shape)) for one in (self, b)])

    __radd__ = __add__

    def __sub__(self, other: Any) -> EnclosedArray:
        return self + -self._of(other)

    def __rsub__(self, other: Any) -> EnclosedArray:
        return self._of(other) - self

    def __mul__(self, other: Any) -> EnclosedArray:
        a, b = self.value, self._of(other)
        parents = [
            (self, lambda g: _fitted(g * b.value, a.shape)),
            (b, lambda g: _fitted(g * a, b.shape)),
        ]
        return EnclosedArray(a * b.value, parents)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> EnclosedArray:
        a, b = self.value, self._of(other)
        quotient = a / b.value
        parents = [
            (self, lambda g: _fitted(g / b.value, a.shape)),
            (b, lambda g: _fitted(-(g * quotient) / b.value, b.shape)),
        ]
        return EnclosedArray(quotient, parents)

    def __rtruediv__(self, other: Any) -> EnclosedArray:
        return self._of(other) / self

    def __pow__(self, other: Any) -> EnclosedArray:
        power = float(other) if np.ndim(other) == 0 and not isinstance(other, EnclosedArray) else math.nan
        if power in (0.5, 1.0, 2.0, 3.0):
            return (self.function("sqrt"), self, self * self, self * self * self)[math.ceil(power) - (power < 1)]
        if power in (-0.5, -1.0, -2.0):
            return 1.0 / self**-power
        return (self._of(other) * self.function("log")).function("exp")

    def function(self, name: str) -> EnclosedArray:
        """A smooth function of one variable."""
        value, slope = self.value.function(name)
        return EnclosedArray(value, [(self, lambda g: g * slope())])

    def _sure(self, other: Any) -> NDArray[np.int8]:
        signs: NDArray[np.int8] = (self - other).value.signs()
        if (signs == 2).any():
            raise WithinRadii("a comparison depends on rounding")
        return signs

    def __gt__(self, other: Any) -> Any:
        return self._sure(other) > 0

    def __ge__(self, other: Any) -> Any:
        return self._sure(other) >= 0

    def __lt__(self, other: Any) -> Any:
        return self._sure(other) < 0

    def __le__(self, other: Any) -> Any:
        return self._sure(other) <= 0

    def __eq__(self, other: object) -> Any:
        return self._sure(other) == 0

    def __ne__(self, other: object) -> Any:
        return self._sure(other) != 0

    __hash__ = object.__hash__

    # Places ------------------------------------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> EnclosedArray:
        """As numpy's."""
        sizes = np.empty(self.shape, dtype=np.bool_).reshape(*shape).shape
        return EnclosedArray(self.value.reshape(sizes), [(self, lambda g: g.reshape(self.shape))])

    def __getitem__(self, key: Any) -> EnclosedArray:
        places = np.arange(self.size).reshape(self.shape)[key]
        if places.size == self.size and np.array_equal(places.reshape(-1), np.arange(self.size)):
            return self.reshape(places.shape)
        return EnclosedArray(self.value.take(places), [(self, lambda g: g.put(places, self.shape))])

    def squeeze(self, axis: Any = None) -> EnclosedArray:
        """Without axes of one entry."""
        return self.reshape(np.empty(self.shape, dtype=np.bool_).squeeze(axis).shape)


def joined(parts: Sequence[EnclosedArray]) -> EnclosedArray:
    """One-dimensional arrays after each other."""
    ends = np.cumsum([0, *(part.size for part in parts)])

    def part_of(start: int, end: int) -> Pullback:
        return lambda g: g.take(np.arange(start, end))

    parents = [(part, part_of(*each)) for part, each in zip(parts, itertools.pairwise(ends.tolist()), strict=True)]
    return EnclosedArray(type(parts[0].value).joined([part.value for part in parts]), parents)


def _fitted(g: Value, shape: tuple[int, ...]) -> Value:
    """A cotangent summed over the axes along which an operand was broadcast."""
    if g.shape == shape:
        return g
    extra = len(g.shape) - len(shape)
    axes = [*range(extra), *(k + extra for k, n in enumerate(shape) if n == 1 and g.shape[k + extra] != 1)]
    return (g.sum(axes, False) if axes else g).reshape(shape)


class Enclosures:
    """The namespace of `EnclosedArray` arrays of one arithmetic: `Enclosure` or `BallArray`."""

    pi = math.pi

    def __init__(self, arithmetic: Any) -> None:
        self.arithmetic, self.number = arithmetic, self

    def check_time(self) -> None:
        """For translations: `TooManyNumbers` limits the time."""

    def of(self, x: Any) -> EnclosedArray:
        """Exact numbers, or recorded ones unchanged."""
        return x if isinstance(x, EnclosedArray) else EnclosedArray(self.arithmetic.of(x))

    reals = asarray = of

    def __getattr__(self, name: str) -> Any:
        if name in UNARY:
            return lambda x: self.of(x).function(name)
        row = FUNCTIONS.get(name)
        if row is None or row.definition is None:
            raise AttributeError(f"enclosures have no {name}")
        return partial(row.definition, self)

    def zeros(self, shape: Any) -> EnclosedArray:
        """An array of zeros."""
        return self.of(np.zeros(shape))

    def where(self, condition: Any, x: Any, y: Any) -> EnclosedArray:
        """x where the condition holds, else y."""
        chosen, a, b = np.asarray(condition, dtype=np.bool_), self.of(x), self.of(y)
        zero = self.arithmetic.of(0.0)
        parents = [
            (a, lambda g: _fitted(g.where(chosen, zero), a.shape)),
            (b, lambda g: _fitted(g.where(~chosen, zero), b.shape)),
        ]
        return EnclosedArray(a.value.where(chosen, b.value), parents)

    def maximum(self, x: Any, y: Any) -> EnclosedArray:
        """The larger of two numbers. Its derivative lies between those of equal ones."""
        a, b = self.of(x), self.of(y)
        signs = (a - b).value.signs()
        is_sure = np.abs(signs) == 1
        first = self.arithmetic.of(signs > 0)
        weight = first.where(is_sure, first.between_zero_and_one())
        other = self.arithmetic.of(1.0) + -weight
        parents = [(a, lambda g: _fitted(g * weight, a.shape)), (b, lambda g: _fitted(g * other, b.shape))]
        return EnclosedArray(a.value.maximum(b.value), parents)

    def negative(self, x: Any) -> EnclosedArray:
        """-x."""
        return -self.of(x)

    def minimum(self, x: Any, y: Any) -> EnclosedArray:
        """The smaller of two numbers."""
        return -self.maximum(-self.of(x), -self.of(y))

    def clip(self, x: Any, min: Any = None, max: Any = None) -> EnclosedArray:
        """x limited to [min, max]."""
        x = self.of(x) if min is None else self.maximum(x, min)
        return x if max is None else self.minimum(x, max)

    def abs(self, x: Any) -> EnclosedArray:
        """|x|."""
        return self.maximum(x, -self.of(x))

    def sum(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """Sums along axes."""
        a = self.of(x)
        kept = a.value.sum(axis, True)
        total = a.value.sum(axis, keepdims) if not keepdims else kept
        return EnclosedArray(total, [(a, lambda g: g.reshape(kept.shape).broadcast_to(a.shape))])

    def mean(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """Means along axes."""
        total = self.sum(x, axis, keepdims=keepdims)
        return total / (self.of(x).size / max(total.size, 1))

    def var(self, x: Any, axis: Axes = None, *, correction: float = 0, keepdims: bool = False) -> EnclosedArray:
        """Variances along axes."""
        gap = self.of(x) - self.mean(x, axis, keepdims=True)
        total = self.sum(gap * gap, axis, keepdims=keepdims)
        return total / (gap.size / max(total.size, 1) - correction)

    def std(self, x: Any, axis: Axes = None, **more: Any) -> EnclosedArray:
        """Standard deviations along axes."""
        return self.var(x, axis, **more).function("sqrt")

    def max(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """The largest numbers along an axis. Raises WithinRadii if two may be the largest."""
        a = self.of(x)
        if isinstance(axis, Sequence):
            (axis,) = axis
        places = self.argmax(a, axis)
        largest = a.reshape(-1)[places]
        if ((a - largest).value.signs() >= 0).sum() > largest.size:
            raise WithinRadii("two numbers may be the largest")
        return largest if keepdims else largest.reshape(np.empty(places.shape).squeeze(axis).shape)

    @staticmethod
    def argmax(x: EnclosedArray, axis: int | None) -> NDArray[np.int64]:
        """The flat indices of the largest numbers along an axis, which is kept."""
        place = np.argmax(x.approximate, axis, keepdims=True)
        flat = np.arange(x.size).reshape(x.shape)
        return place if axis is None else np.take_along_axis(flat, place, axis)

    def min(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """The smallest numbers along an axis."""
        return -self.max(-self.of(x), axis, keepdims=keepdims)

    def matmul(self, x: Any, y: Any) -> EnclosedArray:
        """The product of matrices, as `x @ y`."""
        a, b = self.of(x), self.of(y)
        if a.ndim == 1:
            return self.matmul(a.reshape(1, -1), b).squeeze(-2 if b.ndim > 1 else -1)
        if b.ndim == 1:
            return self.matmul(a, b.reshape(-1, 1)).squeeze(-1)
        left, right = a.value, b.value
        parents = [
            (a, lambda g: _fitted(g @ _transposed(right), a.shape)),
            (b, lambda g: _fitted(_transposed(left) @ g, b.shape)),
        ]
        return EnclosedArray(left @ right, parents)


def _transposed(x: Value) -> Value:
    return x.take(np.swapaxes(np.arange(math.prod(x.shape)).reshape(x.shape), -1, -2))


def gradient(result: EnclosedArray, weights: Value, inputs: Sequence[EnclosedArray]) -> list[Value]:
    """The gradient of the sum of the result's entries with these weights."""
    cotangents, nodes = {result.number: weights}, {result.number: result}
    order = [-result.number]
    while order:
        number = -heapq.heappop(order)
        node = nodes[number]
        if not node.parents:
            continue
        g = cotangents.pop(number)
        for parent, pullback in node.parents:
            part = pullback(g)
            if parent.number in cotangents:
                cotangents[parent.number] = cotangents[parent.number] + part
            else:
                cotangents[parent.number], nodes[parent.number] = part, parent
                heapq.heappush(order, -parent.number)
    zero = type(weights).of(0.0)
    return [cotangents.get(one.number, zero).broadcast_to(one.shape) for one in inputs]
