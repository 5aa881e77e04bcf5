"""The perfect backend: derivatives from differences at 4000 bits, rounded once to double.

It shares the arithmetic of the second opinion, not the steps, and none of the series.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import libmp

from adbench.oracle.highprecision.namespace import namespace_of
from adbench.oracle.highprecision.real import real_type

BITS = 4000
STEPS = (-300, -340)
"""log2 of the two steps, relative to each entry: a derivative that falls with the step is zero."""


class Exact:
    """A function text(xp, x) of one vector at a point: its value, gradient and Hessian."""

    def __init__(self, text: Callable[[Any, Any], Any], x: Any) -> None:
        self._text, self._real = text, real_type(BITS)
        self._xp = namespace_of(self._real)
        self._x = [Fraction(float(entry)) for entry in x]
        exponents = [np.frexp(entry)[1] if entry else 0 for entry in x]
        self._steps = [[Fraction(2) ** (int(e) + power) for e in exponents] for power in STEPS]
        self._known: dict[tuple[tuple[int, int], ...], Fraction] = {}
        self._level = 0

    def value(self) -> float:
        return float(_rounded(self._at()))

    def gradient(self) -> Any:
        return np.array([self._limit(lambda i=i: self._slope(i)) for i in range(len(self._x))])

    def hessian(self) -> Any:
        n = len(self._x)
        found = np.zeros((n, n))
        for i in range(n):
            for j in range(i, n):
                found[i, j] = found[j, i] = self._limit(lambda i=i, j=j: self._curvature(i, j))
        return found

    def along(self, v: Any) -> Any:
        """(g · v, H v), exact sums of what is rounded last."""
        v = [Fraction(float(entry)) for entry in v]
        n = range(len(v))
        slope = self._limit(lambda: sum((self._slope(i) * v[i] for i in n), Fraction(0)))
        product = [
            self._limit(lambda i=i: sum((self._curvature(i, j) * v[j] for j in n), Fraction(0)))  # type: ignore[misc]
            for i in n
        ]
        return slope, np.array(product)

    def _limit(self, quotient: Callable[[], Fraction]) -> float:
        found = []
        for self._level in range(len(STEPS)):
            found.append(quotient())
        wide, narrow = map(abs, found)
        return 0.0 if narrow <= wide * Fraction(1, 2**30) else _rounded(found[1])

    def _slope(self, i: int) -> Fraction:
        return (self._at((i, 1)) - self._at((i, -1))) / (2 * self._steps[self._level][i])

    def _curvature(self, i: int, j: int) -> Fraction:
        h = self._steps[self._level]
        if i == j:
            return (self._at((i, 1)) - 2 * self._at() + self._at((i, -1))) / h[i] ** 2
        corners = [(a * b, self._at((i, a), (j, b))) for a in (1, -1) for b in (1, -1)]
        return sum((sign * value for sign, value in corners), Fraction(0)) / (4 * h[i] * h[j])

    def _at(self, *moves: tuple[int, int]) -> Fraction:
        """f with entry i moved by its step times the sign, for every (i, sign)."""
        key = ((self._level, 0), *moves) if moves else ()
        if key not in self._known:
            x = list(self._x)
            for i, sign in moves:
                x[i] += sign * self._steps[self._level][i]
            numbers = [self._real(libmp.from_rational(e.numerator, e.denominator, 3 * BITS)) for e in x]
            array = np.empty(len(numbers), dtype=object)
            array[:] = numbers
            value = self._text(self._xp, array.view(type(self._xp.reals(np.ones(1)))))
            value = value.reshape(())[()] if isinstance(value, np.ndarray) else value
            self._known[key] = Fraction(*libmp.to_rational(value.raw))
        return self._known[key]


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
