"""Complex numbers as pairs of `Real`: every operation is one of real numbers, with their noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from adbench.oracle.series import ball
from adbench.oracle.series.functions import SEVERAL, UNARY

Part = Any
"""A `Real`, which cannot be imported here."""
Operator = Callable[[Any, Any], Any]


def _operators(compute: Callable[[ComplexNumber, ComplexNumber], Any]) -> tuple[Operator, Operator]:
    """The methods `a.__op__(b)` and `b.__rop__(a)` of an operation."""

    def forward(self: ComplexNumber, other: Any) -> Any:
        right = lifted(other, type(self.real))
        return NotImplemented if right is None else compute(self, right)

    def backward(self: ComplexNumber, other: Any) -> Any:
        left = lifted(other, type(self.real))
        return NotImplemented if left is None else compute(left, self)

    return forward, backward


def _product(a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    return ComplexNumber(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _quotient(a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    numerator, size = _product(a, b.conj()), b.real * b.real + b.imag * b.imag
    return ComplexNumber(numerator.real / size, numerator.imag / size)


class ComplexNumber:
    """real + i imag. A source must not return it: derivatives are of real numbers."""

    __slots__ = ("imag", "real")
    shape: ClassVar[tuple[int, ...]] = ()
    ndim: ClassVar[int] = 0
    size: ClassVar[int] = 1

    def __init__(self, real: Part, imag: Part) -> None:
        self.real, self.imag = real, imag

    __add__, __radd__ = _operators(lambda a, b: ComplexNumber(a.real + b.real, a.imag + b.imag))
    __sub__, __rsub__ = _operators(lambda a, b: ComplexNumber(a.real - b.real, a.imag - b.imag))
    __mul__, __rmul__ = _operators(_product)
    __truediv__, __rtruediv__ = _operators(_quotient)
    __eq__, __ne__ = (
        _operators(lambda a, b: a.real == b.real and a.imag == b.imag)[0],
        _operators(lambda a, b: a.real != b.real or a.imag != b.imag)[0],
    )

    def __pow__(self, exponent: int) -> ComplexNumber:
        """For a whole exponent."""
        if not isinstance(exponent, int | np.integer):
            return NotImplemented
        power = ComplexNumber(type(self.real).of(1), type(self.real).of(0))
        for _ in range(abs(exponent)):
            power = power * self
        return power if exponent >= 0 else 1 / power

    def __hash__(self) -> int:
        return hash((self.real, self.imag))

    def __bool__(self) -> bool:
        return bool(self.real) or bool(self.imag)

    def __neg__(self) -> ComplexNumber:
        return ComplexNumber(-self.real, -self.imag)

    def __pos__(self) -> ComplexNumber:
        return self

    def __abs__(self) -> Part:
        kind = type(self.real)
        return kind(kind.computed("hypot", SEVERAL["hypot"], self.real.ball, self.imag.ball))

    def conj(self) -> ComplexNumber:
        """real - i imag."""
        return ComplexNumber(self.real, -self.imag)

    conjugate = conj

    def exp(self) -> ComplexNumber:
        """e^real (cos imag + i sin imag)."""

        def part(name: str, number: Part) -> Part:
            return type(number)(number.computed(name, UNARY[name], number.ball))

        size = part("exp", self.real)
        return ComplexNumber(size * part("cos", self.imag), size * part("sin", self.imag))

    def __repr__(self) -> str:
        return f"ComplexNumber({self.real}, {self.imag})"


def lifted(number: Any, kind: Any) -> ComplexNumber | None:
    """A number with parts of this kind of `Real`; None for arrays and anything else."""
    if isinstance(number, ComplexNumber):
        return number
    if isinstance(number, complex):
        return ComplexNumber(kind.of(number.real), kind.of(number.imag))
    if isinstance(number, kind) or (not isinstance(number, np.ndarray) and ball.constant(number) is not None):
        return ComplexNumber(number if isinstance(number, kind) else kind.of(number), kind.of(0))
    return None
