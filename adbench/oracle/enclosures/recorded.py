"""Enclosed numbers that record how they were computed, and the gradient by the reverse sweep over enclosures.

In translated functions, `EnclosedArray` takes the place of numpy's arrays of the oracle's numbers, and `Enclosures`
that of their namespace. The arithmetic is `Enclosure`, `BallArray` to confirm it, or `RoundedArray`.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.vocabulary import words

Value = Any
"""An `Enclosure` or a `BallArray`: mypy knows no type of both whose operators take it."""

Pullback = Callable[[Value], Value]
ORDERING = ("argmax", "argmin", "argsort")
ARRANGING = words(
    "array_split atleast_1d atleast_2d broadcast_to concatenate diag diagonal expand_dims flip hstack matrix_transpose "
    "moveaxis permute_dims ravel repeat reshape roll rot90 split squeeze stack swapaxes take take_along_axis tile "
    "transpose tril triu unstack vstack"
)
"""numpy's functions that only move numbers, or fill in zeros."""

MOST_FACTORS = 64
"""Larger powers are exp(n log x)."""

_NUMBERS = itertools.count()


class WithinRadii(Exception):
    """A comparison depends on numbers within their radii."""


class TooManyNumbers(Exception):
    """The numbers on the way exceed the limit."""


def _comparison(holds: Callable[[Any, int], Any]) -> Callable[[EnclosedArray, object], Any]:
    return lambda a, b: holds(a._sure(b), 0)


class EnclosedArray:
    """An array of enclosures. parents: the operands that depend on inputs, each with its pullback.

    The sweep sums the result of a pullback over the axes along which the operand was broadcast.
    """

    dtype = np.dtype(object)
    __array_ufunc__ = None
    most = left = math.inf
    """How many numbers may be made, and how many more: they are kept for the reverse sweep."""
    branched = False
    """Whether single numbers that depend on inputs were compared, as by an `if`."""

    def __init__(
        self, value: Value, parents: Sequence[tuple[EnclosedArray, Pullback]] = (), is_input: bool = False
    ) -> None:
        self.value, self.number = value, next(_NUMBERS)
        self.parents = tuple((parent, pullback) for parent, pullback in parents if parent.moves)
        self.moves: bool = is_input or bool(self.parents)
        EnclosedArray.left -= self.size
        if EnclosedArray.left < 0:
            raise TooManyNumbers(f"there are more than {EnclosedArray.most:,} numbers on the way")

    @staticmethod
    def begin(most: float) -> None:
        """A new calculation may make so many numbers."""
        EnclosedArray.most, EnclosedArray.left, EnclosedArray.branched = most, most, False

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an operation takes numbers apart")

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        name = function.__name__
        if name in ORDERING:
            return getattr(self, name)(*args[1:], **options)
        return arranged(function, *args, **options) if name in ARRANGING else function._implementation(*args, **options)

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
        return type(self)(self.value)

    def _of(self, other: Any) -> EnclosedArray:
        return other if isinstance(other, EnclosedArray) else type(self)(type(self.value).of(other))

    # Operators ---------------------------------------------------------------------------------------------------

    def __neg__(self) -> EnclosedArray:
        return type(self)(-self.value, [(self, lambda g: -g)])

    def __add__(self, other: Any) -> EnclosedArray:
        b = self._of(other)
        return type(self)(self.value + b.value, [(self, lambda g: g), (b, lambda g: g)])

    __radd__ = __add__

    def __sub__(self, other: Any) -> EnclosedArray:
        return self + -self._of(other)

    def __rsub__(self, other: Any) -> EnclosedArray:
        return self._of(other) - self

    def __mul__(self, other: Any) -> EnclosedArray:
        a, b = self.value, self._of(other)
        return type(self)(a * b.value, [(self, lambda g: g * b.value), (b, lambda g: g * a)])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> EnclosedArray:
        a, b = self.value, self._of(other)
        quotient = a / b.value
        return type(self)(quotient, [(self, lambda g: g / b.value), (b, lambda g: -(g * quotient) / b.value)])

    def __rtruediv__(self, other: Any) -> EnclosedArray:
        return self._of(other) / self

    def __pow__(self, other: Any) -> EnclosedArray:
        power = math.nan if isinstance(other, EnclosedArray) or np.ndim(other) else float(other)
        if power in (0.5, 1.0):
            return self if power == 1 else self.function("sqrt")
        if 0 < abs(power) <= MOST_FACTORS and (power.is_integer() or power == -0.5):
            if power < 0:
                return 1.0 / self**-power
            half = self ** (power // 2)
            return half * half * self if power % 2 else half * half
        return (self._of(other) * self.function("log")).function("exp")

    def __matmul__(self, other: Any) -> EnclosedArray:
        b = self._of(other)
        if self.ndim == 1:
            return (self.reshape(1, -1) @ b).squeeze(-2 if b.ndim > 1 else -1)
        if b.ndim == 1:
            return (self @ b.reshape(-1, 1)).squeeze(-1)
        left, right = self.value, b.value
        parents = [(self, lambda g: g @ _transposed(right)), (b, lambda g: _transposed(left) @ g)]
        return type(self)(left @ right, parents)

    def __rmatmul__(self, other: Any) -> EnclosedArray:
        return self._of(other) @ self

    def function(self, name: str) -> EnclosedArray:
        """A smooth function of one variable."""
        value, slope = self.value.function(name)
        return type(self)(value, [(self, lambda g: g * slope())])

    def _sure(self, other: Any) -> NDArray[np.int8]:
        if other is self and np.isfinite(self.value.bounds()[1]).all():
            return np.zeros(self.shape, dtype=np.int8)
        gap = self - other
        EnclosedArray.branched |= gap.moves and gap.size == 1
        signs: NDArray[np.int8] = gap.value.signs()
        if (signs == 2).any():
            raise WithinRadii("a comparison depends on rounding")
        return signs

    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __hash__ = object.__hash__

    # Places ------------------------------------------------------------------------------------------------------

    @property
    def T(self) -> EnclosedArray:  # noqa: N802 - numpy's name
        """As numpy's."""
        return self.transpose()

    def transpose(self, *axes: Any) -> EnclosedArray:
        """As numpy's."""
        result: EnclosedArray = arranged(lambda x: x.transpose(*axes), self)
        return result

    def ravel(self, *_: Any) -> EnclosedArray:
        """As numpy's."""
        return self.reshape(-1)

    def broadcast_to(self, shape: Any) -> EnclosedArray:
        """As numpy's."""
        return type(self)(self.value.broadcast_to(tuple(shape)), [(self, lambda g: g)])

    def argmax(self, axis: Any = None, keepdims: bool = False) -> NDArray[np.int64]:
        """As numpy's. Raises WithinRadii if two may be the largest."""
        places = np.argmax(self.approximate, axis, keepdims=keepdims)
        if ((self.value + -self.value.largest(axis)).signs() >= 0).sum() > np.size(places):
            raise WithinRadii("two numbers may be the largest")
        return np.asarray(places)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> NDArray[np.int64]:
        """As numpy's."""
        return (-self).argmax(axis, keepdims)

    def argsort(self, axis: int = -1, **_: Any) -> NDArray[np.int64]:
        """As numpy's. Raises WithinRadii if two neighbours may be in another order."""
        places = np.argsort(self.approximate, axis, kind="stable")
        ordered = np.moveaxis(np.take_along_axis(np.arange(self.size).reshape(self.shape), places, axis), axis, 0)
        if ((self.value.take(ordered[1:]) + -self.value.take(ordered[:-1])).signs() != 1).any():
            raise WithinRadii("an order depends on rounding, or numbers are equal")
        return places

    def reshape(self, *shape: Any) -> EnclosedArray:
        """As numpy's."""
        sizes = np.empty(self.shape, dtype=np.bool_).reshape(*shape).shape
        return type(self)(self.value.reshape(sizes), [(self, lambda g: g.reshape(self.shape))])

    def __getitem__(self, key: Any) -> EnclosedArray:
        return self.taken(np.asarray(np.arange(self.size).reshape(self.shape)[key]))

    def taken(self, places: NDArray[np.int64]) -> EnclosedArray:
        """The numbers at flat indices."""
        if places.size == self.size and np.array_equal(places.reshape(-1), np.arange(self.size)):
            return self.reshape(places.shape)
        return type(self)(self.value.take(places), [(self, lambda g: g.put(places, self.shape))])

    def squeeze(self, axis: Any = None) -> EnclosedArray:
        """Without axes of one entry."""
        return self.reshape(np.empty(self.shape, dtype=np.bool_).squeeze(axis).shape)


def arranged(operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of an operation that only moves numbers, or fills in zeros: it is run on positions."""
    parts: list[EnclosedArray] = []

    def places(x: Any) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            x = first._of(x)
        if not isinstance(x, EnclosedArray):
            return x
        start = 1 + sum(part.size for part in parts)
        parts.append(x)
        return np.arange(start, start + x.size).reshape(x.shape)

    operands: Any = args
    first: EnclosedArray = next(x for x in optree.tree_leaves(operands) if isinstance(x, EnclosedArray))
    if operation is np.broadcast_to:
        return first.broadcast_to(*args[1:], **options)
    if isinstance(args[0], list | tuple):  # of arrays: whole numbers among them are numbers, not indices
        operands = ([first._of(x) for x in args[0]], *args[1:])
    at = operation(*optree.tree_map(places, operands), **options)
    if len(parts) == 1 and all(np.all(part) for part in optree.tree_leaves(at)):
        return optree.tree_map(lambda part: first.taken(part - 1), at)
    return optree.tree_map(joined([first._of(np.zeros(1)), *(part.reshape(-1) for part in parts)]).taken, at)


def joined(parts: Sequence[EnclosedArray]) -> EnclosedArray:
    """One-dimensional arrays after each other."""
    ends = np.cumsum([0, *(part.size for part in parts)])

    def part_of(start: int, end: int) -> Pullback:
        return lambda g: g.take(np.arange(start, end))

    parents = [(part, part_of(*each)) for part, each in zip(parts, itertools.pairwise(ends.tolist()), strict=True)]
    return type(parts[0])(type(parts[0].value).joined([part.value for part in parts]), parents)


def _fitted(g: Value, shape: tuple[int, ...]) -> Value:
    """A cotangent summed over the axes along which an operand was broadcast."""
    if g.shape == shape:
        return g
    extra = len(g.shape) - len(shape)
    axes = [*range(extra), *(k + extra for k, n in enumerate(shape) if n == 1 and g.shape[k + extra] != 1)]
    return (g.sum(axes) if axes else g).reshape(shape)


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
            part = _fitted(pullback(g), parent.shape)
            if parent.number in cotangents:
                cotangents[parent.number] = cotangents[parent.number] + part
            else:
                cotangents[parent.number], nodes[parent.number] = part, parent
                heapq.heappush(order, -parent.number)
    zero = type(weights).of(0.0)
    return [cotangents.get(one.number, zero).broadcast_to(one.shape) for one in inputs]
