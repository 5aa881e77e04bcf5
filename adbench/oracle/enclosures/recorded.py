"""Enclosed numbers that record how they were computed, and the gradient by the reverse sweep over enclosures.

In translated functions, `EnclosedArray` takes the place of numpy's arrays of the oracle's numbers, and `Enclosures`
that of their namespace. The arithmetic is `Enclosure`, or `BallArray` to confirm it.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.oracle.enclosures.midpoint_radius import Axes
from adbench.oracle.series.functions import UNARY
from adbench.vocabulary import FUNCTIONS, words

Value = Any
"""An `Enclosure` or a `BallArray`: mypy knows no type of both whose operators take it."""

Pullback = Callable[[Value], Value]
OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "power": operator.pow, "pow": operator.pow, "greater": operator.gt, "greater_equal": operator.ge,
    "less": operator.lt, "less_equal": operator.le, "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
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
        return type(self)(self.value + b.value, [(one, partial(_fitted, shape=one.shape)) for one in (self, b)])

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
        return type(self)(a * b.value, parents)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> EnclosedArray:
        a, b = self.value, self._of(other)
        quotient = a / b.value
        parents = [
            (self, lambda g: _fitted(g / b.value, a.shape)),
            (b, lambda g: _fitted(-(g * quotient) / b.value, b.shape)),
        ]
        return type(self)(quotient, parents)

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
        return Enclosures(type(self.value), type(self)).matmul(self, other)

    def __rmatmul__(self, other: Any) -> EnclosedArray:
        return Enclosures(type(self.value), type(self)).matmul(other, self)

    def function(self, name: str) -> EnclosedArray:
        """A smooth function of one variable."""
        value, slope = self.value.function(name)
        return type(self)(value, [(self, lambda g: g * slope())])

    def _sure(self, other: Any) -> NDArray[np.int8]:
        if other is self and np.isfinite(self.value.bounds()[1]).all():
            return np.zeros(self.shape, dtype=np.int8)
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

    @property
    def T(self) -> EnclosedArray:
        """As numpy's."""
        return self.transpose()

    def transpose(self, *axes: Any) -> EnclosedArray:
        """As numpy's."""
        return arranged(lambda x: x.transpose(*axes), self)

    def ravel(self, *_: Any) -> EnclosedArray:
        """As numpy's."""
        return self.reshape(-1)

    def broadcast_to(self, shape: Any) -> EnclosedArray:
        """As numpy's."""
        return type(self)(self.value.broadcast_to(tuple(shape)), [(self, lambda g: _fitted(g, self.shape))])

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

    first = next(x for x in optree.tree_leaves(args) if isinstance(x, EnclosedArray))  # type: ignore[arg-type]
    if operation is np.broadcast_to:
        return first.broadcast_to(*args[1:], **options)
    at = operation(*optree.tree_map(places, args), **options)
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
    return (g.sum(axes, False) if axes else g).reshape(shape)


class Enclosures:
    """The namespace of arrays of one arithmetic: `Enclosure`, `BallArray` or `RoundedArray`.

    array: their class
    """

    pi = math.pi

    def __init__(self, arithmetic: Any, array: type[EnclosedArray] = EnclosedArray) -> None:
        self.arithmetic, self.array, self.number = arithmetic, array, self

    def check_time(self) -> None:
        """For translations: `TooManyNumbers` limits the time."""

    def of(self, x: Any) -> EnclosedArray:
        """Exact numbers, or recorded ones unchanged."""
        return x if isinstance(x, EnclosedArray) else self.array(self.arithmetic.of(x))

    reals = asarray = of

    def __getattr__(self, name: str) -> Any:
        if name in OPERATORS:
            return lambda x, y: OPERATORS[name](self.of(x), y)
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
        return self.array(a.value.where(chosen, b.value), parents)

    def maximum(self, x: Any, y: Any) -> EnclosedArray:
        """The larger of two numbers. Its derivative lies between those of equal ones."""
        a, b = self.of(x), self.of(y)
        signs = (a - b).value.signs()
        is_sure = np.abs(signs) == 1
        first = self.arithmetic.of(signs > 0)
        weight = first.where(is_sure, first.between_zero_and_one())
        other = self.arithmetic.of(1.0) + -weight
        parents = [(a, lambda g: _fitted(g * weight, a.shape)), (b, lambda g: _fitted(g * other, b.shape))]
        return self.array(a.value.maximum(b.value), parents)

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
        return self.array(total, [(a, lambda g: g.reshape(kept.shape).broadcast_to(a.shape))])

    def mean(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """Means along axes."""
        total = self.sum(x, axis, keepdims=keepdims)
        return total / (self.of(x).size / max(total.size, 1))

    def var(
        self, x: Any, axis: Axes = None, *, correction: float = 0, keepdims: bool = False, ddof: float | None = None
    ) -> EnclosedArray:
        """Variances along axes."""
        gap = self.of(x) - self.mean(x, axis, keepdims=True)
        total = self.sum(gap * gap, axis, keepdims=keepdims)
        return total / (gap.size / max(total.size, 1) - (correction if ddof is None else ddof))

    def std(self, x: Any, axis: Axes = None, **more: Any) -> EnclosedArray:
        """Standard deviations along axes."""
        return self.var(x, axis, **more).function("sqrt")

    def max(self, x: Any, axis: Any = None, *, keepdims: bool = False) -> EnclosedArray:
        """The largest numbers along axes. Where several may be it, each has a derivative between 0 and 1."""
        a = self.of(x)
        kept = a.value.largest(axis)
        may_be = (a.value + -kept).signs() >= 0
        is_sure = ~may_be | (may_be.sum(axis, keepdims=True) == 1)
        weight = self.arithmetic.of(may_be).where(is_sure, a.value.between_zero_and_one())
        shape = kept.shape if keepdims else may_be.any(axis).shape
        return self.array(kept.reshape(shape), [(a, lambda g: g.reshape(kept.shape) * weight)])

    def min(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """The smallest numbers along an axis."""
        return -self.max(-self.of(x), axis, keepdims=keepdims)

    amax, amin = max, min

    def cumulative_sum(self, x: Any, axis: int = -1) -> EnclosedArray:
        """Running sums along an axis."""
        a = self.of(x)
        turned = np.flip(np.arange(a.size).reshape(a.shape), axis)
        return self.array(a.value.running(axis), [(a, lambda g: g.take(turned).running(axis).take(turned))])

    cumsum = cumulative_sum

    def put(self, x: Any, places: NDArray[np.int64], updates: Any) -> EnclosedArray:
        """x with the updates added at flat indices; none at those below 0."""
        a, chosen = self.of(x), places >= 0
        added = self.of(updates)[chosen]
        at = places[chosen]
        total = self.array(added.value.put(at, a.shape), [(added, lambda g: g.take(at))])
        return a + total

    def sign(self, x: Any) -> EnclosedArray:
        """-1, 0 or 1, a constant."""
        return self.of(self.of(x)._sure(0.0))

    def isfinite(self, x: Any) -> NDArray[np.bool_]:
        """Whether numbers are finite. Raises WithinRadii where that is unknown."""
        mid, rad = self.of(x).value.bounds()
        if not np.isfinite(rad).all():
            raise WithinRadii("a number may be infinite")
        return np.isfinite(mid)

    def isinf(self, x: Any) -> NDArray[np.bool_]:
        """Whether numbers are infinite."""
        return ~self.isfinite(x)

    def isnan(self, x: Any) -> NDArray[np.bool_]:
        """Never, where it is known."""
        return self.isfinite(x) & False

    def full(self, shape: Any, fill: Any, **_: Any) -> EnclosedArray:
        """An array of one number."""
        return self.of(fill).broadcast_to(shape if np.ndim(shape) else (shape,))

    def zeros_like(self, x: Any, **_: Any) -> EnclosedArray:
        """An array of zeros."""
        return self.zeros(np.shape(x))

    def ones_like(self, x: Any, **_: Any) -> EnclosedArray:
        """An array of ones."""
        return self.zeros(np.shape(x)) + 1.0

    def concat(self, arrays: Sequence[Any], axis: int | None = 0) -> Any:
        """As numpy's."""
        return arranged(np.concatenate, list(map(self.of, arrays)), axis=axis)

    def stack(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """As numpy's."""
        return arranged(np.stack, list(map(self.of, arrays)), axis=axis)

    def einsum(self, subscripts: str, x: Any, y: Any) -> EnclosedArray:
        """A sum of products of two arrays, as numpy's with an arrow."""
        of_x, of_y, result = subscripts.replace(" ", "").replace("->", ",").split(",")
        batch = [k for k in of_x if k in of_y and k in result]
        inner = [k for k in of_x if k in of_y and k not in result]
        free = [[k for k in of if k not in (*batch, *inner)] for of in (of_x, of_y)]
        if set(result) != {*batch, *free[0], *free[1]}:
            raise TypeError(f"einsum of {subscripts}")
        sizes = dict(zip(of_x + of_y, self.of(x).shape + self.of(y).shape, strict=True))

        def arranged_as(array: Any, of: str, *groups: list[str]) -> EnclosedArray:
            axes = [of.index(k) for group in (batch, *groups) for k in group]
            shape = [sizes[k] for k in batch] + [math.prod(sizes[k] for k in group) for group in groups]
            return self.of(array).transpose(axes).reshape(shape)

        product = self.matmul(arranged_as(x, of_x, free[0], inner), arranged_as(y, of_y, inner, free[1]))
        order = [*batch, *free[0], *free[1]]
        return product.reshape([sizes[k] for k in order]).transpose([order.index(k) for k in result])

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
        return self.array(left @ right, parents)


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
