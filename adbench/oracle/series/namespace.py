"""`xp` over balls: the array API's names over numpy arrays of `Real`.

Indexing, shapes, broadcasting and operators are numpy's; this module adds the functions that numpy lacks for objects.
Products of matrices and `xp.linalg` work on whole coefficients at once. Integers and booleans remain numpy's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from adbench.oracle.series import ball
from adbench.oracle.series.algebra.transforms import Fourier
from adbench.oracle.series.arrays import Arrays, RealArray, is_plain, matmul
from adbench.oracle.series.ball import Ball, NeedsTerms, Special
from adbench.oracle.series.functions import SEVERAL, UNARY, copysign
from adbench.oracle.series.linalg import Linalg
from adbench.oracle.series.number import ComplexNumber, Real
from adbench.vocabulary import FUNCTIONS, words

FROM_NUMPY = words(
    "add all any append argmax argmin argsort array_split atleast_1d atleast_2d broadcast_arrays broadcast_shapes "
    "broadcast_to count_nonzero cross diag diagonal diff divide einsum equal expand_dims flip floor_divide greater "
    "greater_equal hstack inner kron less less_equal logical_and logical_not logical_or logical_xor matrix_transpose "
    "meshgrid mod moveaxis multiply ndim negative nonzero not_equal outer permute_dims positive ravel remainder "
    "repeat reshape roll rot90 searchsorted shape sort split squeeze subtract swapaxes take take_along_axis "
    "tensordot tile trace transpose tril triu unstack vstack"
)
"""Names of numpy functions that already work for arrays of objects."""

SAME = ("isdtype", "result_type", "can_cast", "finfo", "iinfo")


class TooSlow(Exception):
    """The source exceeds the caller's time limit over balls."""


class Balls(Arrays):
    """The namespace for one type of numbers. ``deadline``: a `time.thread_time` after which it raises TooSlow."""

    deepest: ClassVar[int] = 0
    """The known nesting depth of `derivative` in the source; each level takes four times as many terms."""

    pi, e, inf, nan, newaxis, euler_gamma = math.pi, math.e, math.inf, math.nan, None, 0.5772156649015329
    float64 = float32 = np.float64
    int64 = int32 = np.int64
    bool_ = np.bool_

    def __init__(self, real: type[Real], deadline: float = math.inf) -> None:
        self._depth = 0
        self.number, self.deadline = real, deadline
        self.linalg, self.fft = Linalg(self), Fourier(self)
        self.special = self
        self.__dict__["bool"] = np.bool_  # in the class body it would hide the builtin
        for name in (*FROM_NUMPY, *SAME):
            if (function := getattr(np, name, None)) is not None:
                setattr(self, name, function)
        for name, unary in UNARY.items():
            setattr(self, name, self._one(self._computed(name, unary), name))
        for name, several in SEVERAL.items():
            setattr(self, name, self._several(self._computed(name, several)))
        self.real = self._broadcast(lambda element: self.one_number(element).real)
        self.imag = self._broadcast(lambda element: self.one_number(element).imag)
        self.conj = self._broadcast(lambda element: self.one_number(element).conj())
        self.abs = self._one(self._computed("abs", ball.absolute), "__abs__")
        self.maximum = self._several(self._computed("maximum", ball.larger))
        self.minimum = self._several(self._computed("minimum", ball.smaller))
        self.centred = self._several(self._computed("centred", ball.sub))
        self.squares = self._several(self._computed("squares", lambda total, *_: total))
        self.copysign = self._several(copysign)
        self.sign, self.floor = self._one(ball.sign_of, "sign"), self._one(ball.floor, "floor")
        self.ceil = self._one(lambda a: ball.neg(ball.floor(ball.neg(a))))
        self.rint = self._one(_nearest)
        self.isnan = self._test(lambda a: math.isnan(_size(a)))
        self.isinf = self._test(lambda a: math.isinf(_size(a)))
        self.isfinite = self._test(lambda a: math.isfinite(_size(a)), all)
        self.signbit = self._test(lambda a: ball.compared(a, ball.ZERO) == -1)
        self.concatenate, self.pow = self.concat, self._power
        self.arange, self.amax, self.amin = self._arange, self.max, self.min
        for name, row in FUNCTIONS.items():
            if row.definition is not None:
                setattr(self, name, partial(row.definition, self))
            for alias in row.names:
                setattr(self, alias, getattr(self, name))

    # Elementwise -----------------------------------------------------------------------------------------------

    def check_time(self) -> None:
        """Raises TooSlow once the deadline has passed."""
        if time.thread_time() > self.deadline:
            raise TooSlow

    def _computed(self, name: str, function: Callable[..., Ball]) -> Callable[..., Ball]:
        """The function as a library computes it: with noise if the type has any."""
        computed = self.number.computed
        return function if is_plain(self.number) else lambda *operands: computed(name, function, *operands)

    def _one(self, function: Callable[[Ball], Ball], name: str = "") -> Callable[[Any], Any]:
        """Extend a function of one value to scalars, arrays and lists; for complex numbers use their method
        ``name``."""
        real, new = self.number, object.__new__

        def on_element(element: Any) -> Any:
            if type(element) is not real:
                element = self.one_number(element)
                if isinstance(element, ComplexNumber):
                    return of_complex(element)
            result = new(real)
            result.ball = function(element.ball)
            return result

        def of_complex(number: ComplexNumber) -> Any:
            if not hasattr(number, name):
                raise TypeError(f"the namespace over balls has no {name} of complex numbers")
            return getattr(number, name)()

        return self._broadcast(on_element)

    def _several(self, function: Callable[..., Ball]) -> Callable[..., Any]:
        """Extend a function of several values to scalars, arrays and lists, broadcast by numpy."""
        real, new = self.number, object.__new__

        def on_elements(*elements: Any) -> Real:
            result = new(real)
            result.ball = function(*[e.ball if type(e) is real else real.of(e).ball for e in elements])
            return result

        of_count = cache(partial(self._broadcast, on_elements))
        return lambda *arguments: of_count(len(arguments))(*arguments)

    def _broadcast(self, on_elements: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
        vectorised = np.frompyfunc(on_elements, count, 1)

        def apply(*arguments: Any) -> Any:
            self.check_time()
            result = vectorised(*arguments)
            return result.view(RealArray) if isinstance(result, np.ndarray) else result

        return apply

    def _test(
        self, function: Callable[[Ball], bool], over: Callable[[Iterable[bool]], bool] = any
    ) -> Callable[[Any], Any]:
        """Whether this holds for a number; over: for the parts of a complex one."""
        real = self.number

        def on_element(element: Any) -> bool:
            if isinstance(element, ComplexNumber):
                return over(function(part.ball) for part in (element.real, element.imag))
            return function(real.of(element).ball)

        vectorised = np.frompyfunc(on_element, 1, 1)
        return lambda x: np.asarray(vectorised(x), dtype=np.bool_)[()]

    def trunc(self, x: Any) -> Any:
        """The integer part, towards zero."""
        return self.where(np.asarray(x) < 0, self.ceil(x), self.floor(x))

    def _power(self, x: Any, y: Any) -> Any:
        return self.asarray(x) ** y

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition holds, else y."""
        x, y = self.reals(x), self.reals(y)
        chosen = np.where(
            np.asarray(condition, dtype=np.bool_), np.asarray(x, dtype=object), np.asarray(y, dtype=object)
        )
        return chosen.view(RealArray) if chosen.ndim else chosen[()]

    def clip(self, x: Any, min: Any = None, max: Any = None) -> Any:
        """x limited to [min, max]."""
        x = x if min is None else self.maximum(x, min)
        return x if max is None else self.minimum(x, max)

    def pad(self, x: Any, widths: Any, mode: Any = "constant", **more: Any) -> Any:
        """x with a border, as in numpy."""
        return self.reals(np.pad(np.asarray(self.reals(x), dtype=object), widths, mode, **more))

    def copy(self, x: Any) -> Any:
        """A copy of x."""
        return self.asarray(x).copy()

    # Products and loops ----------------------------------------------------------------------------------------

    def matmul(self, a: Any, b: Any) -> Any:
        """The matrix product, as `a @ b`."""
        self.check_time()
        return matmul(self.number, self.reals(a), self.reals(b))

    def dot(self, a: Any, b: Any) -> Any:
        """The matrix product, or the product with a scalar."""
        return self.matmul(a, b) if np.ndim(a) and np.ndim(b) else self.reals(a) * b

    def vdot(self, a: Any, b: Any) -> Any:
        """Σ conj(a) b over all entries."""
        return self.dot(np.ravel(self.conj(a)), np.ravel(self.reals(b)))

    def vecdot(self, a: Any, b: Any, axis: int = -1) -> Any:
        """Σ conj(a) b along ``axis``."""
        return self.sum(self.conj(a) * b, axis)

    def loop(self, step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
        """state ← step(i, state) for i = 0 .. n-1."""
        for i in range(n):
            if i % 16 == 0:
                self.check_time()
            state = step(i, state)
        return state

    def derivative(self, g: Callable[[Any], Any], x: Any) -> Any:
        """g'(x), of the shape of x, from a second infinitesimal: a power of t beyond all other terms.

        Derivatives nested in g use higher powers. Unknown if the two sides of x differ.
        """
        self._depth += 1
        try:
            if self._depth > Balls.deepest:
                Balls.deepest = self._depth
                raise NeedsTerms
            power = ball.state.how.terms >> 2 * (Balls.deepest - self._depth + 1)  # sin(t) / t has lost a term
            if not power:
                raise NeedsTerms
            slopes = np.empty(np.shape(x), dtype=object)
            for place in np.ndindex(slopes.shape):
                slopes[place] = self._slope(g, self.reals(x), place, power)
            return slopes.view(RealArray) if slopes.ndim else slopes[()]
        finally:
            self._depth -= 1

    def _slope(self, g: Callable[[Any], Any], x: Any, place: tuple[int, ...], power: int) -> Real:
        """The derivative of g in one entry of x."""

        def moved(side: float) -> Any:
            there = np.array(x, dtype=object)
            there[place] = there[place] + self.number(ball.moving(0.0, {power: side}))
            return there.view(RealArray) if there.ndim else there[()]

        here = self.number.of(g(x)).ball
        changes = [ball.sub(self.number.of(g(moved(side))).ball, here) for side in (1.0, -1.0)]
        if not is_plain(self.number):  # its rounding differs between calls, and the truth covers both sides
            return self.number(ball.slope(changes[0], power, strict=False))
        right, left = ball.slope(changes[0], power), ball.slope(ball.neg(changes[1]), power)
        return self.number(right if ball.meet(right, left) else ball.NOT_KNOWN)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the namespace over balls has no {name}")


def _size(a: Ball) -> float:
    """NaN, an infinity, or 1 for finite numbers, like 1/t just after t = 0."""
    if ball.is_lost(a):
        raise NeedsTerms
    return a.value if isinstance(a, Special) and a.moves == ball.CONSTANT else 1.0


def _nearest(a: Ball) -> Ball:
    """The nearest integer; ties go to the even one."""
    if isinstance(a, Special):
        return a
    half = ball.constant(0.5)
    above = ball.floor(ball.add(a, half))
    tie = ball.compared(ball.sub(above, half), a) == 0
    return ball.sub(above, ball.constant(ball.whole_number(above) % 2)) if tie else above


_MADE: dict[type[Real], Balls] = {}


def namespace_of(real: type[Real]) -> Balls:
    """The cached namespace of a number type, to avoid creating a hundred functions for every reference."""
    if real not in _MADE:
        _MADE[real] = Balls(real)
    return _MADE[real]


def lift_deadlines() -> None:
    """Remove the deadlines of all namespaces; a deadline belongs to one reference."""
    for xp in _MADE.values():
        xp.deadline = math.inf
