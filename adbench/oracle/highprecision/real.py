"""Real numbers of any precision that behave like float64 in a case's text, and refuse to become one.

They are mpmath's raw numbers (its documented low-level layer, `mpmath.libmp`) with the conventions of IEEE arithmetic
where mpmath has others: 1/0 is an infinity, the logarithm of a negative number is NaN and not complex.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from mpmath import libmp

Raw = Any
"""mpmath's raw number: (sign, mantissa, exponent, bits), value = (-1)^sign mantissa 2^exponent."""

NEAREST = "n"
NAN, INF, NEGATIVE_INF, ZERO, ONE = libmp.fnan, libmp.finf, libmp.fninf, libmp.fzero, libmp.fone


class LostPrecision(TypeError):
    """The text turned a high-precision number into a float: its derivative would silently be lost."""


def raw_of(number: Any) -> Raw:
    """The exact raw form of a Real or of any real number of Python or numpy; None for everything else."""
    if isinstance(number, Real):
        return number.raw
    if isinstance(number, (float, np.floating)):
        return libmp.from_float(float(number))
    if isinstance(number, (int, np.integer, np.bool_)):
        return libmp.from_int(int(number))
    if isinstance(number, np.ndarray) and number.ndim == 0:
        return raw_of(number[()])
    return None


def ieee(function: Callable[..., Raw], *arguments: Raw, bits: int) -> Raw:
    """function(*arguments, bits, "n") with NaN outside the real domain."""
    try:
        return function(*arguments, bits, NEAREST)
    except (libmp.ComplexResult, ValueError, ZeroDivisionError):
        return NAN
    except OverflowError:
        return INF


def divide(a: Raw, b: Raw, bits: int, rounding: str = NEAREST) -> Raw:
    """a / b; x/0 is the infinity of x's sign, 0/0 is NaN."""
    if b == ZERO:
        return NAN if a in (ZERO, NAN) else (NEGATIVE_INF if libmp.mpf_sign(a) < 0 else INF)
    return libmp.mpf_div(a, b, bits, rounding)


def power(a: Raw, b: Raw, bits: int, rounding: str = NEAREST) -> Raw:
    """a ** b as C's pow has it: 1 for b = 0 or a = 1, NaN for a negative base and a broken exponent."""
    if b == ZERO or a == ONE:
        return ONE
    if a == ZERO and b != NAN:
        return ZERO if libmp.mpf_sign(b) > 0 else INF
    return ieee(libmp.mpf_pow, a, b, bits=bits)


def modulo(a: Raw, b: Raw, bits: int, rounding: str = NEAREST) -> Raw:
    """a - b floor(a / b): the sign of b, as numpy and Python have it."""
    return NAN if b == ZERO else ieee(libmp.mpf_mod, a, b, bits=bits)


def floor_divide(a: Raw, b: Raw, bits: int, rounding: str = NEAREST) -> Raw:
    """The whole part of a / b, towards minus infinity."""
    return libmp.mpf_floor(divide(a, b, bits + 64), bits, NEAREST)


Operator = Callable[[Any, Any], Any]
RawOperator = Callable[[Raw, Raw, int, str], Raw]


def plain_operators(function: RawOperator) -> tuple[Operator, Operator]:
    """The methods `a.__op__(b)` and `b.__rop__(a)` of a rounded operation, as fast as Python allows."""
    new = object.__new__

    def forward(self: Real, other: Any) -> Any:
        kind = type(self)
        raw = other.raw if type(other) is kind else raw_scalar(other)
        if raw is None:
            return NotImplemented
        result = new(kind)
        result.raw = function(self.raw, raw, kind.bits, NEAREST)
        return result

    def backward(self: Real, other: Any) -> Any:
        raw = raw_scalar(other)
        return NotImplemented if raw is None else type(self)(function(raw, self.raw, self.bits, NEAREST))

    return forward, backward


def _comparison(function: Callable[[Raw, Raw], bool]) -> Callable[[Real, object], Any]:
    def compare(self: Real, other: object) -> Any:
        raw = other.raw if isinstance(other, Real) else raw_scalar(other)
        return NotImplemented if raw is None else bool(function(self.raw, raw))

    return compare


def raw_scalar(number: Any) -> Raw:
    """`raw_of`, None for arrays."""
    # An array must answer itself, element by element.
    return None if isinstance(number, np.ndarray) else raw_of(number)


class Real:
    """A number with ``bits`` binary digits. Subclasses made by `real_type` differ in ``bits`` only.

    It answers what a text may ask of a 0-dimensional float64 array: shape, ndim, size, T.
    """

    __slots__ = ("raw",)
    bits: ClassVar[int] = 53
    shape: ClassVar[tuple[int, ...]] = ()
    ndim: ClassVar[int] = 0
    size: ClassVar[int] = 1
    dtype: ClassVar[Any] = np.dtype(object)

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    @classmethod
    def made(cls, raw: Raw) -> Self:
        """The result of an operation that rounds: the place where Monte Carlo arithmetic comes in."""
        return cls(raw)

    @classmethod
    def operand(cls, raw: Raw) -> Raw:
        """``raw`` as one operation sees it: the place where noise of adjoints comes in."""
        return raw

    @classmethod
    def looked_up(cls, raw: Raw) -> Self:
        """The result of a function that libraries do not round correctly: exp, but not sqrt."""
        return cls(raw)

    @classmethod
    def bent(cls, name: str, x: Raw, y: Raw) -> Raw:
        """y = f(x) for the function ``name``: the place where noise of derivative formulas comes in."""
        return y

    @classmethod
    def term_factors(cls, count: int) -> tuple[list[int], int] | None:
        """Integers f_k and bits b: sums are taken as Σ f_k 2^-b x_k. None: plainly."""
        return None

    @classmethod
    def rounding(cls) -> Raw | None:
        """One relative rounding error, u ξ; None where there are none."""
        return None

    @classmethod
    def summed(cls, noisy: Raw, plain: Raw, exact: bool) -> Self:
        """The sum Σ x_k from the one with factors and the plain one."""
        return cls(plain)

    @classmethod
    def of(cls, number: Any) -> Self:
        """A number of Python, numpy or another precision, exactly."""
        raw = raw_of(number)
        if raw is None:
            raise TypeError(f"{type(number).__name__} is no real number")
        return cls(raw)

    __add__, __radd__ = plain_operators(libmp.mpf_add)
    __sub__, __rsub__ = plain_operators(libmp.mpf_sub)
    __mul__, __rmul__ = plain_operators(libmp.mpf_mul)
    __truediv__, __rtruediv__ = plain_operators(divide)
    __floordiv__, __rfloordiv__ = plain_operators(floor_divide)
    __mod__, __rmod__ = plain_operators(modulo)
    __pow__, __rpow__ = plain_operators(power)
    __lt__ = _comparison(libmp.mpf_lt)
    __le__ = _comparison(libmp.mpf_le)
    __gt__ = _comparison(libmp.mpf_gt)
    __ge__ = _comparison(libmp.mpf_ge)
    __eq__ = _comparison(libmp.mpf_eq)
    __ne__ = _comparison(lambda a, b: not libmp.mpf_eq(a, b))

    def __hash__(self) -> int:
        return int(libmp.mpf_hash(self.raw))

    def __neg__(self) -> Self:
        return type(self)(libmp.mpf_neg(self.raw))

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return type(self)(libmp.mpf_abs(self.raw))

    def __bool__(self) -> bool:
        return bool(self.raw != ZERO)

    def __int__(self) -> int:
        # Piecewise constant, so nothing is lost: a step count or an index.
        return int(libmp.to_int(self.raw))

    __trunc__ = __int__

    def __floor__(self) -> int:
        return int(libmp.to_int(libmp.mpf_floor(self.raw, self.bits, NEAREST)))

    def __ceil__(self) -> int:
        return int(libmp.to_int(libmp.mpf_ceil(self.raw, self.bits, NEAREST)))

    def __float__(self) -> float:
        raise LostPrecision("the text turns an active number into a float (float(), math.*, or a float64 array)")

    def __complex__(self) -> complex:
        raise LostPrecision("the text turns an active number into a complex number")

    @property
    def T(self) -> Self:  # noqa: N802  the array API's name
        """The transpose of a scalar."""
        return self

    def nearest_float(self) -> float:
        """The nearest float64: the only way out, for the oracle itself."""
        return float(libmp.to_float(self.raw, rnd=NEAREST))

    def __repr__(self) -> str:
        return f"Real({libmp.to_str(self.raw, 20)})"


@functools.cache
def real_type(bits: int) -> type[Real]:
    """The numbers of this many binary digits (170 are 51 decimal ones)."""
    return type(f"Real{bits}", (Real,), {"__slots__": (), "bits": bits})


def common_integers(raws: list[Raw], widest: int = 6000) -> tuple[list[int], int] | None:
    """Integers m_k and one exponent e with raws[k] = m_k 2^e exactly.

    Sums and products of these are exact and several times faster than rounded ones. None where an infinity or NaN is
    among them, or where the magnitudes spread over more than ``widest`` bits.
    """
    exponents = [exponent for _, mantissa, exponent, _ in raws if mantissa]
    if not exponents:
        return None if any(raw != ZERO for raw in raws) else ([0] * len(raws), 0)
    lowest = min(exponents)
    if max(exponents) - lowest > widest or any(not raw[1] and raw != ZERO for raw in raws):
        return None
    return [
        (-(mantissa << (exponent - lowest)) if sign else mantissa << (exponent - lowest)) if mantissa else 0
        for sign, mantissa, exponent, _ in raws
    ], lowest


def exact_dot(a: list[int], b: list[int]) -> int:
    """Σ_k a_k b_k, no rounding."""
    return sum(map(operator.mul, a, b))
