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

    def __pow__(self, exponent: Any) -> ComplexNumber:
        """By products for a whole exponent, else exp(exponent log self)."""
        whole = _whole(exponent)
        if whole is None:
            power = lifted(exponent, type(self.real))
            return NotImplemented if power is None else (power * self.log()).exp()
        result = ComplexNumber(type(self.real).of(1), type(self.real).of(0))
        for _ in range(abs(whole)):
            result = result * self
        return result if whole >= 0 else 1 / result

    def __rpow__(self, base: Any) -> ComplexNumber:
        number = lifted(base, type(self.real))
        return NotImplemented if number is None else number**self

    def __hash__(self) -> int:
        return hash((self.real, self.imag))

    def __bool__(self) -> bool:
        return bool(self.real) or bool(self.imag)

    def __neg__(self) -> ComplexNumber:
        return ComplexNumber(-self.real, -self.imag)

    def __pos__(self) -> ComplexNumber:
        return self

    def __abs__(self) -> Part:
        return self._of("hypot", self.real, self.imag)

    def conj(self) -> ComplexNumber:
        """real - i imag."""
        return ComplexNumber(self.real, -self.imag)

    conjugate = conj

    def _of(self, name: str, *numbers: Part) -> Part:
        """The real function of this name."""
        kind = type(self.real)
        function = UNARY[name] if name in UNARY else SEVERAL[name]
        return kind(kind.computed(name, function, *(number.ball for number in numbers)))

    def exp(self) -> ComplexNumber:
        """e^real (cos imag + i sin imag)."""
        size = self._of("exp", self.real)
        return ComplexNumber(size * self._of("cos", self.imag), size * self._of("sin", self.imag))

    def log(self) -> ComplexNumber:
        """log |z| + i arg z, with arg z in (-π, π]."""
        return ComplexNumber(self._of("log", abs(self)), self._of("atan2", self.imag, self.real))

    def sqrt(self) -> ComplexNumber:
        """The root with a real part that is not negative."""
        is_left = ball.nearest(self.real.ball) < 0
        larger = self._of("sqrt", (abs(self) + (-self.real if is_left else self.real)) / 2)
        if ball.nearest(larger.ball) == 0 and not larger:
            return ComplexNumber(larger, larger)
        if not is_left:
            return ComplexNumber(larger, self.imag / (larger * 2))
        above = ball.nearest(self.imag.ball)
        is_below = above < 0 if above else self.imag < 0  # on the cut the direction decides
        return ComplexNumber(abs(self.imag) / (larger * 2), -larger if is_below else larger)

    def sinh(self) -> ComplexNumber:
        """sinh real cos imag + i cosh real sin imag."""
        parts = ("sinh", "cos"), ("cosh", "sin")
        return ComplexNumber(*(self._of(a, self.real) * self._of(b, self.imag) for a, b in parts))

    def cosh(self) -> ComplexNumber:
        """cosh real cos imag + i sinh real sin imag."""
        parts = ("cosh", "cos"), ("sinh", "sin")
        return ComplexNumber(*(self._of(a, self.real) * self._of(b, self.imag) for a, b in parts))

    def tanh(self) -> ComplexNumber:
        """(sinh 2 real + i sin 2 imag) / (cosh 2 real + cos 2 imag)."""
        x, y = self.real * 2, self.imag * 2
        size = self._of("cosh", x) + self._of("cos", y)
        return ComplexNumber(self._of("sinh", x) / size, self._of("sin", y) / size)

    def _turned(self, name: str) -> ComplexNumber:
        """-i f(i z)."""
        found = getattr(ComplexNumber(-self.imag, self.real), name)()
        return ComplexNumber(found.imag, -found.real)

    def sin(self) -> ComplexNumber:
        """-i sinh(i z)."""
        return self._turned("sinh")

    def tan(self) -> ComplexNumber:
        """-i tanh(i z)."""
        return self._turned("tanh")

    def cos(self) -> ComplexNumber:
        """cosh(i z)."""
        return ComplexNumber(-self.imag, self.real).cosh()

    def log1p(self) -> ComplexNumber:
        """log(1 + z)."""
        return ComplexNumber(self.real + 1, self.imag).log()

    def square(self) -> ComplexNumber:
        """z²."""
        return _product(self, self)

    def reciprocal(self) -> ComplexNumber:
        """1 / z."""
        return _quotient(ComplexNumber(type(self.real).of(1), type(self.real).of(0)), self)

    def sign(self) -> ComplexNumber:
        """z / |z|, 0 for 0."""
        size = abs(self)
        return ComplexNumber(self.real / size, self.imag / size) if self else self

    def __repr__(self) -> str:
        return f"ComplexNumber({self.real}, {self.imag})"


def _whole(exponent: Any) -> int | None:
    """A whole exponent; None for others."""
    if isinstance(exponent, float) and exponent.is_integer():
        return int(exponent)
    return int(exponent) if isinstance(exponent, int | np.integer) else None


def lifted(number: Any, kind: Any) -> ComplexNumber | None:
    """A number with parts of this kind of `Real`; None for arrays and anything else."""
    if isinstance(number, ComplexNumber):
        return number
    if isinstance(number, complex):
        return ComplexNumber(kind.of(number.real), kind.of(number.imag))
    if isinstance(number, kind) or (not isinstance(number, np.ndarray) and ball.constant(number) is not None):
        return ComplexNumber(number if isinstance(number, kind) else kind.of(number), kind.of(0))
    return None
