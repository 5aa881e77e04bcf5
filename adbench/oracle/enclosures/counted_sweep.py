"""How many operations a value and its gradient take together, as a multiple of those of the value.

A product of matrices of shapes (m, k) and (k, n) counts 2 m k n, a sum the numbers that it adds, linear algebra what
`CountingLinalg` says, and any other operation or function one for each number of its result. Moving numbers counts
nothing. The reverse sweep is that of a textbook: each operand that depends on an active argument has its cotangent,
computed from that of the result. So a product of two such matrices takes three times its operations, and a function of
each number twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.enclosed_row import recorded
from adbench.oracle.enclosures.midpoint_radius import Floats
from adbench.oracle.enclosures.recorded import EnclosedArray, gradient
from adbench.oracle.enclosures.rounded_arrays import RoundedArray, UnroundedArray
from adbench.oracle.precise import NotPrecise
from adbench.oracle.series.linalg import Linalg, SlogdetSeries
from adbench.oracle.subject import Subject


class CountedArray(UnroundedArray):
    """Numbers in float64, and the operations so far."""

    operations = 0.0

    @classmethod
    def rounded(cls, x: Any) -> RoundedArray:
        """The result of an operation: one for each number."""
        CountedArray.operations += np.size(x)
        return cls.of(x)

    def __neg__(self) -> RoundedArray:
        return self.rounded(-self.parts[0])

    def __matmul__(self, other: RoundedArray) -> RoundedArray:
        product = self.parts[0] @ other.parts[0]
        CountedArray.operations += 2.0 * product.size * self.shape[-1]
        return self.of(product)

    def _summed(self, total: Callable[[Floats], Any]) -> RoundedArray:
        CountedArray.operations += self.parts[0].size
        return self.of(total(self.parts[0]))


class CountingLinalg(Linalg):
    """Factors of n × n matrices, and systems with them: LAPACK's operations (Higham, "Functions of matrices" (2008),
    appendix C), and those of their cotangents by the factors of the value. Cotangents are zeros, which count alike.
    """

    def solve(self, a: Any, b: Any) -> Any:
        """2/3 n³, and 2 n² for each right side, each of its cotangents and each column of the matrix's."""
        return self._solved(self._xp.of(a), self._xp.of(b), 2.0, 2 / 3)

    def solve_triangular(self, a: Any, b: Any, *, lower: Any = False, trans: Any = 0) -> Any:
        """Half of each, without factors."""
        triangle = (np.tril if lower else np.triu)(self._xp.of(a))
        return self._solved(np.swapaxes(triangle, -1, -2) if trans else triangle, self._xp.of(b), 1.0, 0.0)

    def inv(self, a: Any) -> Any:
        """2 n³, and two products."""
        return self._counted(np.linalg.inv, a, 2.0, 4.0)

    def cholesky(self, a: Any, *, upper: Any = False) -> Any:
        """1/3 n³, and twice as many (Smith, "Differentiation of the Cholesky algorithm", 1995)."""
        return self._counted(functools.partial(np.linalg.cholesky, upper=bool(upper)), a, 1 / 3, 2 / 3)

    def det(self, a: Any) -> Any:
        """2/3 n³, and those of an inverse."""
        return self._counted(np.linalg.det, a, 2 / 3, 4 / 3)

    def slogdet(self, a: Any) -> SlogdetSeries:
        """2/3 n³, and those of an inverse."""
        sign = self._xp.of(np.linalg.slogdet(self._xp.of(a).value.parts[0]).sign)
        return SlogdetSeries(sign, self._counted(lambda x: np.linalg.slogdet(x).logabsdet, a, 2 / 3, 4 / 3))

    def _solved(self, a: Any, b: Any, of_substitution: float, of_factors: float) -> Any:
        x = np.linalg.solve(a.value.parts[0], b.value.parts[0])
        each = of_substitution * a.shape[-1] * x.size
        _count(of_factors * a.shape[-1] * a.size + each)
        substituted = functools.cache(lambda g: _count(each))  # once for both cotangents

        def of_matrix(g: Any) -> RoundedArray:
            substituted(g)
            _count(each)
            return CountedArray.of(np.zeros(a.shape))

        def of_right_side(g: Any) -> RoundedArray:
            substituted(g)
            return CountedArray.of(np.zeros(b.shape))

        return self._xp.array(CountedArray.of(x), [(a, of_matrix), (b, of_right_side)])

    def _counted(self, function: Callable[[Floats], Any], a: Any, of_value: float, of_cotangent: float) -> Any:
        matrices = self._xp.of(a)
        cubes = matrices.shape[-1] * matrices.size
        _count(of_value * cubes)

        def cotangent(_: Any) -> RoundedArray:
            _count(of_cotangent * cubes)
            return CountedArray.of(np.zeros(matrices.shape))

        return self._xp.array(CountedArray.of(function(matrices.value.parts[0])), [(matrices, cotangent)])


def _count(operations: float) -> None:
    CountedArray.operations += operations


def operations_with_gradient(subject: Subject) -> float:
    """The multiple, for a subject with a source. Raises NotPrecise if that does not run on this arithmetic, which has
    no loops and no spectra.
    """
    EnclosedArray.begin(np.inf)
    CountedArray.operations = 0.0
    xp = Enclosures(CountedArray)
    xp.linalg = CountingLinalg(xp)
    try:
        with np.errstate(all="ignore"):
            value, inputs = recorded(subject, xp)
            of_value = CountedArray.operations
            gradient(value, CountedArray.of(np.ones(value.shape)), inputs)
            return CountedArray.operations / of_value
    except Exception as error:  # an operation that takes arrays apart, or one that is unknown
        raise NotPrecise(f"its operations are not counted: {type(error).__name__}: {error}") from error
