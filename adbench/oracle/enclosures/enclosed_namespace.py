"""`xp` over enclosures: the names that translations use, over `EnclosedArray`."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.oracle.enclosures.ball_arrays import BallArray
from adbench.oracle.enclosures.enclosed_linalg import EnclosedLinalg
from adbench.oracle.enclosures.midpoint_radius import Enclosure
from adbench.oracle.enclosures.recorded import ARRANGING, EnclosedArray, WithinRadii, arranged
from adbench.oracle.series.arrays import Axes, in_rows
from adbench.oracle.series.functions import UNARY
from adbench.oracle.series.linalg import Linalg
from adbench.vocabulary import FUNCTIONS, words

OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "power": operator.pow, "pow": operator.pow, "greater": operator.gt, "greater_equal": operator.ge,
    "less": operator.lt, "less_equal": operator.le, "equal": operator.eq, "not_equal": operator.ne,
    "matmul": operator.matmul,
}  # fmt: skip


CONSTANT = words("arange eye float64 int64 newaxis ones tril_indices triu_indices")
"""numpy's names whose numbers are exact."""


class Enclosures:
    """The namespace of arrays of one arithmetic: `Enclosure`, `BallArray` or `RoundedArray`.

    array    their class
    shifts   for each call of `max`, whether its derivative does not count, as in softmax: enclosures find out, and
             numbers that are rounded at random then lose it, because most kernels have no such term
    """

    pi = math.pi

    def __init__(
        self, arithmetic: Any, array: type[EnclosedArray] = EnclosedArray, shifts: dict[int, bool] | None = None
    ) -> None:
        self.arithmetic, self.array, self.number = arithmetic, array, self
        self.shifts = {} if shifts is None else shifts
        self.linalg: Linalg = EnclosedLinalg(self)
        self.begin()

    def begin(self) -> None:
        """Count calls of `max` from 0 on."""
        self._maxima = itertools.count()

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
        if name in ARRANGING:
            return partial(arranged, getattr(np, name))
        if name in CONSTANT:
            return getattr(np, name)
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
        parents = [(a, lambda g: g.where(chosen, zero)), (b, lambda g: g.where(~chosen, zero))]
        return self.array(a.value.where(chosen, b.value), parents)

    def maximum(self, x: Any, y: Any) -> EnclosedArray:
        """The larger of two numbers. Its derivative lies between those of equal ones."""
        a, b = self.of(x), self.of(y)
        signs = (a - b).value.signs()
        is_sure = np.abs(signs) == 1
        first = self.arithmetic.of(signs > 0)
        weight = first.where(is_sure, first.between_zero_and_one())
        other = self.arithmetic.of(1.0) + -weight
        return self.array(a.value.maximum(b.value), [(a, lambda g: g * weight), (b, lambda g: g * other)])

    def xlogy(self, x: Any, y: Any) -> EnclosedArray:
        """x log y."""
        return self.of(x) * self.of(y).function("log")

    def logaddexp(self, x: Any, y: Any) -> EnclosedArray:
        """log(exp x + exp y)."""
        a, b = self.of(x), self.of(y)
        return self.maximum(a, b) + (-self.abs(a - b)).function("exp").function("log1p")

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
        kept = a.value.sum(axis)
        shape = _reduced(kept.shape, axis, keepdims)
        return self.array(kept.reshape(shape), [(a, lambda g: g.reshape(kept.shape).broadcast_to(a.shape))])

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
        shape = _reduced(kept.shape, axis, keepdims)
        number = next(self._maxima)

        def pullback(g: Any) -> Any:
            if self.arithmetic is Enclosure:
                mid, rad = g.bounds()
                self.shifts[number] = bool((np.abs(mid) <= 4 * rad).all())
            elif self.shifts.get(number) and self.arithmetic is not BallArray:
                g = self.arithmetic.of(np.zeros(g.shape))
            return g.reshape(kept.shape) * weight

        return self.array(kept.reshape(shape), [(a, pullback)])

    def min(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """The smallest numbers along an axis."""
        return -self.max(-self.of(x), axis, keepdims=keepdims)

    amax, amin = max, min

    def cumulative_sum(self, x: Any, axis: int = -1) -> EnclosedArray:
        """Running sums along an axis."""
        a = self.of(x)
        turned = np.flip(np.arange(a.size).reshape(a.shape), axis)
        return self.array(a.value.running(axis), [(a, lambda g: g.take(turned).running(axis).take(turned))])

    def running(self, join: Callable[[Any, Any], Any], x: Any, axis: int = -1) -> EnclosedArray:
        """The results of an associative operation on all numbers up to each one, along an axis."""
        rows = _running(join, arranged(np.moveaxis, self.of(x), axis, 0))
        result: EnclosedArray = arranged(np.moveaxis, rows, 0, axis)
        return result

    def cumulative_prod(self, x: Any, axis: int = -1) -> EnclosedArray:
        """Running products along an axis."""
        return self.running(operator.mul, x, axis)

    cumsum, cumprod = cumulative_sum, cumulative_prod

    def prod(self, x: Any, axis: Axes = None, *, keepdims: bool = False) -> EnclosedArray:
        """Products along axes."""
        a = self.of(x)
        places, kept = in_rows(np.arange(a.size).reshape(a.shape), axis)
        total: EnclosedArray = _running(operator.mul, a.taken(places))[-1]
        return total.reshape(kept) if keepdims else total

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
        return np.asarray(np.isfinite(mid))

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

        product = arranged_as(x, of_x, free[0], inner) @ arranged_as(y, of_y, inner, free[1])
        order = [*batch, *free[0], *free[1]]
        return product.reshape([sizes[k] for k in order]).transpose([order.index(k) for k in result])

    def vecdot(self, x: Any, y: Any, axis: int = -1) -> EnclosedArray:
        """Sums of products along an axis."""
        return self.sum(self.of(x) * y, axis)


def _reduced(kept: tuple[int, ...], axis: Axes, keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction, from that with its axes kept."""
    axes = axis if axis is None or isinstance(axis, int) else tuple(axis)
    return kept if keepdims else np.zeros(kept).any(axes).shape


def _running(join: Callable[[Any, Any], Any], rows: Any) -> Any:
    """`running` along the first axis, by pairs: twice as many operations, in a tree (Blelloch, "Prefix sums", 1990)."""
    n = len(rows)
    if n < 2:
        return rows
    odd = _running(join, join(rows[: n - 1 : 2], rows[1::2]))
    even = np.concatenate([rows[:1], join(odd[: (n - 1) // 2], rows[2::2])]) if n > 2 else rows[:1]
    return np.concatenate([even, odd])[np.argsort([*range(0, n, 2), *range(1, n, 2)])]
