"""How many operations a value and its gradient take together, as a multiple of those of the value.

A product of matrices of shapes (m, k) and (k, n) counts 2 m k n, a sum the numbers that it adds, and any other
operation or function one for each number of its result. Moving numbers counts nothing. The reverse sweep is that of a
textbook: each operand that depends on an active argument has its cotangent, computed from that of the result. So a
product of two such matrices takes three times its operations, and a function of each number twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.enclosed_row import recorded
from adbench.oracle.enclosures.midpoint_radius import Floats
from adbench.oracle.enclosures.recorded import EnclosedArray, gradient
from adbench.oracle.enclosures.rounded_arrays import RoundedArray
from adbench.oracle.precise import NotPrecise
from adbench.oracle.subject import Subject


class CountedArray(RoundedArray):
    """Numbers in float64, which are not rounded, and the operations so far."""

    operations = 0.0

    @classmethod
    def of(cls, x: Any) -> RoundedArray:
        """The numbers."""
        return cls(np.asarray(x, dtype=np.float64))

    @classmethod
    def rounded(cls, x: Any) -> RoundedArray:
        """The result of an operation: one for each number."""
        CountedArray.operations += np.size(x)
        return cls.of(x)

    @classmethod
    def _moved(cls, x: Any, sizes: Any) -> Any:
        return x

    def __neg__(self) -> RoundedArray:
        return self.rounded(-self.parts[0])

    def __matmul__(self, other: RoundedArray) -> RoundedArray:
        product = self.parts[0] @ other.parts[0]
        CountedArray.operations += 2.0 * product.size * self.shape[-1]
        return self.of(product)

    def _summed(self, total: Callable[[Floats], Any]) -> RoundedArray:
        CountedArray.operations += self.parts[0].size
        return self.of(total(self.parts[0]))


def operations_with_gradient(subject: Subject) -> float:
    """The multiple, for a subject with a source. Raises NotPrecise if that does not run on this arithmetic, which has
    no loops and factorises no matrices.
    """
    EnclosedArray.left, CountedArray.operations = np.inf, 0.0
    xp = Enclosures(CountedArray)
    del xp.linalg
    try:
        with np.errstate(all="ignore"):
            value, inputs = recorded(subject, xp)
            of_value = CountedArray.operations
            gradient(value, CountedArray.of(np.ones(value.shape)), inputs)
            return CountedArray.operations / of_value
    except Exception as error:  # an operation that takes arrays apart, or one that is unknown
        raise NotPrecise(f"its operations are not counted: {type(error).__name__}: {error}") from error
