"""The perfect backend: derivatives from differences at 4000 bits, rounded once to double.

It shares nothing with the oracle: numbers are mpmath's, and steps are 2^-340 of each entry.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np

STEPS = (-300, -340)
"""log2 of the two steps, relative to each entry: a derivative that decreases with the step is zero."""

MP = mpmath.MPContext()
MP.prec = 4000


def _elementwise(name: str) -> Callable[[Any], Any]:
    called = getattr(MP, name)
    return np.frompyfunc(called, 1, 1)


class Linalg:
    """On square matrices of mpmath's numbers."""

    def solve(self, a: Any, b: Any) -> Any:
        return np.array(list(MP.lu_solve(MP.matrix(a.tolist()), MP.matrix(b.tolist()))), dtype=object)

    def det(self, a: Any) -> Any:
        return MP.det(MP.matrix(a.tolist()))

    def slogdet(self, a: Any) -> Any:
        found = self.det(a)
        return MP.sign(found), MP.log(abs(found))

    def inv(self, a: Any) -> Any:
        return np.array(MP.inverse(MP.matrix(a.tolist())).tolist(), dtype=object)


def _asarray(x: Any) -> Any:
    return np.frompyfunc(MP.mpf, 1, 1)(np.array(x, dtype=object))


ELEMENTWISE = {name: _elementwise(name) for name in ("sin", "cos", "exp", "log", "sqrt", "atan", "tanh")}
DIGITS = SimpleNamespace(
    **ELEMENTWISE,
    sum=np.sum,
    mean=np.mean,
    max=np.max,
    prod=np.prod,
    abs=np.abs,
    maximum=np.maximum,
    cumulative_sum=np.cumsum,
    asarray=_asarray,
    linalg=Linalg(),
)
"""`xp` on numpy arrays of mpmath's numbers: the names that `difficult.py` uses."""


class Exact:
    """A function text(xp, x) of one vector at a point: its value, gradient, Hessian and products."""

    def __init__(self, text: Callable[[Any, Any], Any], x: Any) -> None:
        self._text, self._x = text, [MP.mpf(float(entry)) for entry in x]
        exponents = [int(np.frexp(entry)[1]) if entry else 0 for entry in x]
        self._steps = [[MP.ldexp(MP.one, e + power) for e in exponents] for power in STEPS]
        self._found: dict[Any, Any] = {}
        self._level = 0

    def value(self) -> float:
        return float(self._at())

    def gradient(self) -> Any:
        return np.array([self._limit(self._slope, i) for i in range(len(self._x))])

    def hessian(self) -> Any:
        n = len(self._x)
        found = np.zeros((n, n))
        for i in range(n):
            for j in range(i, n):
                found[i, j] = found[j, i] = self._limit(self._curvature, i, j)
        return found

    def along(self, v: Any) -> tuple[float, Any]:
        """∂f·v and H v, summed before they are rounded."""
        steps = [MP.mpf(float(entry)) for entry in v]

        def slope() -> Any:
            return MP.fsum(self._slope(i) * step for i, step in enumerate(steps))

        def product(i: int) -> Any:
            return MP.fsum(self._curvature(i, j) * step for j, step in enumerate(steps))

        return self._limit(slope), np.array([self._limit(product, i) for i in range(len(steps))])

    def _limit(self, quotient: Callable[..., Any], *which: int) -> float:
        found = []
        for self._level in range(len(STEPS)):
            found.append(quotient(*which))
        wide, narrow = map(abs, found)
        return 0.0 if narrow <= MP.ldexp(wide, -30) else float(found[1])

    def _slope(self, i: int) -> Any:
        return (self._at((i, 1)) - self._at((i, -1))) / (2 * self._steps[self._level][i])

    def _curvature(self, i: int, j: int) -> Any:
        h = self._steps[self._level]
        if i == j:
            return (self._at((i, 1)) - 2 * self._at() + self._at((i, -1))) / h[i] ** 2
        corners = [(a * b, self._at((i, a), (j, b))) for a in (1, -1) for b in (1, -1)]
        return MP.fsum(sign * value for sign, value in corners) / (4 * h[i] * h[j])

    def _at(self, *moves: tuple[int, int]) -> Any:
        """f with entry i moved by its step times the sign, for every (i, sign)."""
        key = (self._level if moves else 0, moves)
        if key not in self._found:
            x = list(self._x)
            for i, sign in moves:
                x[i] += sign * self._steps[self._level][i]
            found = np.asarray(self._text(DIGITS, np.array(x, dtype=object)), dtype=object)
            self._found[key] = found.reshape(())[()]
        return self._found[key]
