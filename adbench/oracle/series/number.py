"""Numbers that act like float64 and complex128 in a case's source, compute with balls, and refuse conversion to float.

Complex numbers are pairs of `Real`: every operation is one of real numbers, with their noise.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from adbench.oracle.series import ball
from adbench.oracle.series.ball import Ball
from adbench.oracle.series.functions import SEVERAL, UNARY


class LostPrecision(TypeError):
    """The source converted an active number to a float, which would silently lose its derivative."""


def ball_of(number: Any) -> Ball | None:
    """The value of a Real, or of a real number of Python or numpy; None for anything else, also for arrays."""
    if isinstance(number, Real):
        return number.ball
    return ball.constant(number) if not isinstance(number, np.ndarray) else None


Operator = Callable[[Any, Any], Any]


def with_complex(called: Operator, a: Any, b: Any, kind: type[Real]) -> Any:
    """The operation of a Real of this kind and Python's complex number; NotImplemented if neither is complex.

    A `Complex` has the operation itself.
    """
    if not (isinstance(a, complex) or isinstance(b, complex)):
        return NotImplemented
    return called(lifted(a, kind), lifted(b, kind))


def operators(called: Operator, function: Callable[[Ball, Ball], Ball]) -> tuple[Operator, Operator]:
    """The methods `a.__op__(b)` and `b.__rop__(a)` of an operation, as fast as Python allows."""
    new = object.__new__

    def forward(self: Real, other: Any) -> Any:
        kind = type(self)
        right = other.ball if type(other) is kind else ball_of(other)
        if right is None:
            return with_complex(called, self, other, kind)
        result = new(kind)
        result.ball = function(self.ball, right)
        return result

    def backward(self: Real, other: Any) -> Any:
        left = ball_of(other)
        if left is None:
            return with_complex(called, other, self, type(self))
        return type(self)(function(left, self.ball))

    return forward, backward


def _comparison(holds: Callable[[int, int], bool]) -> Callable[[Real, object], Any]:
    def compare(self: Real, other: object) -> Any:
        right = ball_of(other)
        if right is None:
            return NotImplemented
        sign = ball.compared(self.ball, right)
        return sign != 2 and holds(sign, 0)

    return compare


def floor_divide(a: Ball, b: Ball) -> Ball:
    """floor(a / b)."""
    return ball.floor(ball.div(a, b))


def modulo(a: Ball, b: Ball) -> Ball:
    """a - b floor(a / b): with the sign of b, as in numpy and Python."""
    if isinstance(b, ball.Special) and not isinstance(a, ball.Special):
        return a if ball.sign(a) in (0, ball.sign(b)) else b
    return ball.NAN if ball.sign(b) == 0 else ball.sub(a, ball.mul(b, floor_divide(a, b)))


class Real:
    """A number in a source. It has the attributes of a 0-dimensional float64 array: shape, ndim, size, T."""

    __slots__ = ("ball",)
    shape: ClassVar[tuple[int, ...]] = ()
    ndim: ClassVar[int] = 0
    size: ClassVar[int] = 1
    dtype: ClassVar[Any] = np.dtype(object)

    def __init__(self, value: Ball) -> None:
        self.ball = value

    @classmethod
    def of(cls, number: Any) -> Self:
        """A number of Python or numpy, exactly. Raises TypeError for others."""
        value = ball_of(number[()] if isinstance(number, np.ndarray) and number.ndim == 0 else number)
        if value is None:
            raise TypeError(f"{type(number).__name__} is not a real number")
        return cls(value)

    @classmethod
    def begin(cls) -> None:
        """Start an evaluation of the source; its noise is the same as in every other."""

    @classmethod
    def computed(cls, name: str, function: Callable[..., Ball], *operands: Ball) -> Ball:
        """function(*operands), the library function ``name``. Subclasses add the noise of its rounding."""
        return function(*operands)

    @classmethod
    def term(cls, x: Self, y: Self) -> Ball:
        """A product that is added to others, as in a matrix product."""
        return (x * y).ball

    @classmethod
    def total(cls, terms: Sequence[Ball]) -> Ball:
        """The sum of numbers. Subclasses add the noise of partial sums."""
        return functools.reduce(ball.add, terms) if terms else ball.constant(0)

    @classmethod
    def product(cls, terms: Sequence[Ball]) -> Ball:
        """The product of numbers. Subclasses add the noise of its derivatives."""
        return functools.reduce(ball.mul, terms) if terms else ball.constant(1)

    @classmethod
    def matrix(cls, rows: list[list[Ball]], *, symmetric: bool, mixing: bool) -> list[list[Ball]]:
        """The matrix that a backward stable algorithm decomposes. Subclasses add the noise of the decomposition.

        symmetric: only the lower triangle is read. mixing: rotations and reflections mix rows of different scale.
        """
        return rows

    @classmethod
    def rounded(cls, value: Ball) -> Ball:
        """One entry of the result of a decomposition. Subclasses add the noise of its rounding."""
        return value

    __add__, __radd__ = operators(operator.add, ball.add)
    __sub__, __rsub__ = operators(operator.sub, ball.sub)
    __mul__, __rmul__ = operators(operator.mul, ball.mul)
    __truediv__, __rtruediv__ = operators(operator.truediv, ball.div)
    __floordiv__, __rfloordiv__ = operators(operator.floordiv, floor_divide)
    __mod__, __rmod__ = operators(operator.mod, modulo)
    __pow__, __rpow__ = operators(operator.pow, ball.power)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __eq__ = _comparison(operator.eq)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(str(self.ball))

    def __neg__(self) -> Self:
        return type(self)(ball.neg(self.ball))

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return type(self)(ball.absolute(self.ball))

    @property
    def real(self) -> Self:
        """The number."""
        return self

    @property
    def imag(self) -> Self:
        """Zero."""
        return type(self).of(0)

    def conj(self) -> Self:
        """The number."""
        return self

    conjugate = conj

    def __bool__(self) -> bool:
        return ball.compared(self.ball, ball.ZERO) != 0

    def __int__(self) -> int:
        # Piecewise constant, so no derivative is lost: a step count or an index.
        whole = ball.floor(ball.absolute(self.ball))
        if isinstance(whole, ball.Special):
            raise ValueError(f"{whole.value} is not an integer")
        return ball.whole_number(whole) * (-1 if ball.sign(self.ball) < 0 else 1)

    __trunc__ = __int__

    def __floor__(self) -> int:
        return int(type(self)(ball.floor(self.ball)))

    def __ceil__(self) -> int:
        return -int(type(self)(ball.floor(ball.neg(self.ball))))

    def __float__(self) -> float:
        raise LostPrecision("the function converts an active number to a float (float(), math.*, or a float64 array)")

    def __complex__(self) -> complex:
        raise LostPrecision("the function converts an active number to a complex number")

    @property
    def T(self) -> Self:  # noqa: N802  the array API's name
        """The transpose of a scalar."""
        return self

    def __repr__(self) -> str:
        return f"Real({self.ball})"


# Complex numbers ----------------------------------------------------------------------------------------------------


def _complex_operators(compute: Callable[[ComplexNumber, ComplexNumber], Any]) -> tuple[Operator, Operator]:
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

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    __add__, __radd__ = _complex_operators(lambda a, b: ComplexNumber(a.real + b.real, a.imag + b.imag))
    __sub__, __rsub__ = _complex_operators(lambda a, b: ComplexNumber(a.real - b.real, a.imag - b.imag))
    __mul__, __rmul__ = _complex_operators(_product)
    __truediv__, __rtruediv__ = _complex_operators(_quotient)
    __eq__, __ne__ = (
        _complex_operators(lambda a, b: a.real == b.real and a.imag == b.imag)[0],
        _complex_operators(lambda a, b: a.real != b.real or a.imag != b.imag)[0],
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

    def __abs__(self) -> Any:
        return self._of("hypot", self.real, self.imag)

    def conj(self) -> ComplexNumber:
        """real - i imag."""
        return ComplexNumber(self.real, -self.imag)

    conjugate = conj

    def _of(self, name: str, *numbers: Any) -> Any:
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
