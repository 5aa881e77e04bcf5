"""The arithmetic: truncated power series in an infinitesimal t > 0, whose coefficients are balls (python-flint).

A ball is an interval that provably contains the true number. The value of a number is one of

    fmpq, arb                  a constant: exact, or a ball
    fmpq_series, arb_series    a number that depends on t: coefficients of t^0, t^1, …, up to O(t^terms)
    Special                    an infinity or NaN

t is smaller than every positive number, so the first nonzero coefficient decides a comparison, and a function with a
kink has its one-sided derivative. If a computation needs more, it raises: more bits, more terms, or t as a power of
another infinitesimal (sqrt(t) needs t = u²). `adbench.oracle.series.evaluation` then retries with these.

The precision is a global setting of python-flint: use everything here within `arithmetic`.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_series, ctx, fmpq, fmpq_series

Ball = Any
"""The value of a number: fmpq, arb, fmpq_series, arb_series or Special."""

MOST_EXACT_BITS = 4000
"""Fractions grow with every operation; longer ones become balls."""


class Insufficient(Exception):
    """The arithmetic cannot decide at this precision; the subclass names the remedy."""


class NeedsBits(Insufficient):
    """A ball is too wide for a comparison or a division."""


class NeedsTerms(Insufficient):
    """All coefficients known so far are zero."""


class NeedsRoot(Insufficient):
    """A fractional power of t; multiplied by ``root`` it is an integer."""

    def __init__(self, root: int) -> None:
        super().__init__(root)
        self.root = root


CONSTANT, POLE, LOST = 0, 1, 2


class Special:
    """An infinity or NaN, because python-flint lacks IEEE 754's arithmetic for them.

    moves   CONSTANT; POLE: a negative power of t, like 1/t; LOST: it depends on t in a way that no series expresses,
            like log t. exp(-1/t) is zero to any power of t, but 1/(1/t) and exp(log t) are unknown.
    """

    __slots__ = ("moves", "value")

    def __init__(self, value: float, moves: int = CONSTANT) -> None:
        self.value, self.moves = value, moves

    def __repr__(self) -> str:
        return f"Special({self.value})"


def is_lost(a: Ball) -> bool:
    """Whether it is unknown. A constant NaN is known: the function is undefined there."""
    return isinstance(a, Special) and a.moves != CONSTANT and math.isnan(a.value)


FLINT_ROOT_TERMS = 32
"""The most terms of a series whose root FLINT computes."""

INF, NEGATIVE_INF, NAN = Special(math.inf), Special(-math.inf), Special(math.nan)
NOT_KNOWN = Special(math.nan, LOST)
ZERO, ONE = arb(0), arb(1)


@dataclass(frozen=True)
class Arithmetic:
    """Settings of the computation.

    bits   of every ball's middle
    terms  of a series; the last known power of t is terms - 1
    exact  fractions instead of balls, for as long as they stay short
    last   no more terms are available: a series of zeros is zero
    guess  the answer of undecided comparisons: None raises NeedsBits, else the sign of the difference; 0: they are
           equal, and their dependence on t decides
    """

    bits: int = 192
    terms: int = 3
    exact: bool = False
    last: bool = False
    guess: int | None = None


@dataclass
class ArithmeticState:
    """The current arithmetic and its events.

    edged     the direction decided something: the derivative from the other side may differ
    branched  a comparison or a rounding took a number that depends on t
    flat      there is a number like exp(-1/t): a series of zeros may be one
    known     the power of t below which coefficients are known
    """

    how: Arithmetic = Arithmetic()
    edged: bool = False
    branched: bool = False
    flat: bool = False
    known: float = math.inf
    watch: Callable[[], None] | None = None


state = ArithmeticState()
_lock = threading.RLock()


@contextlib.contextmanager
def arithmetic(how: Arithmetic) -> Iterator[ArithmeticState]:
    """Compute with these settings, and record events in the state; afterwards restore python-flint's settings."""
    with _lock:
        before = vars(state).copy()
        precision = ctx.prec, ctx.cap
        ctx.prec, ctx.cap, state.how = how.bits, how.terms, how
        state.edged, state.branched, state.flat, state.known = False, False, False, math.inf
        try:
            yield state
        finally:
            ctx.prec, ctx.cap = precision
            vars(state).update(before)


def constant(number: Any) -> Ball | None:
    """A real number of Python or numpy as a constant, exactly; None for anything else."""
    if isinstance(number, float):
        if not math.isfinite(number):
            return Special(float(number))  # numpy's float64 is a float too, but its comparisons are no ints
        return fmpq(*number.as_integer_ratio()) if state.how.exact else arb(number)
    if isinstance(number, int):
        return fmpq(number) if state.how.exact else arb(number)
    kind = getattr(getattr(number, "dtype", None), "kind", None)
    if kind in ("f", "i", "u", "b") and number.ndim == 0:
        return constant(float(number) if kind == "f" else int(number))
    return None


def moving(start: float, slopes: Mapping[int, float]) -> Ball:
    """start + Σ slope t^power, for every power and its slope."""
    if not math.isfinite(start):
        return Special(start)
    numbers = [0.0] * (max(slopes) + 1)
    numbers[0] = start
    for power, slope in slopes.items():
        numbers[power] = slope
    if state.how.exact:
        return series([constant(number) for number in numbers], state.how.terms)
    return arb_series(numbers, state.how.terms)


@contextlib.contextmanager
def watching(watch: Callable[[], None]) -> Iterator[None]:
    """Call ``watch`` whenever the source branches on a number that depends on t."""
    before, state.watch = state.watch, watch
    try:
        yield
    finally:
        state.watch = before


def _branch_on(*numbers: Ball) -> None:
    if any(map(is_series, numbers)):
        state.branched = True
        if state.watch is not None:
            state.watch()


def _take_for_zero(a: Ball) -> None:
    """Raises NeedsTerms for a series of zeros that need not be zero: truncated, or like exp(-1/t)."""
    if not state.how.last or state.flat or 2 * a.prec < state.how.terms:
        raise NeedsTerms


def is_series(a: Ball) -> bool:
    """Whether it depends on t."""
    return type(a) is arb_series or type(a) is fmpq_series


def ball(a: Ball) -> Ball:
    """The number or series as balls instead of fractions."""
    kind = type(a)
    if kind is fmpq:
        return arb(a)
    if kind is fmpq_series:
        return arb_series(a, a.prec)
    return a


def coefficients(a: Ball) -> list[Any]:
    """The known coefficients of a series, from t^0."""
    return [a[k] for k in range(a.prec)]


def series(coefficients: list[Any], terms: int) -> Ball:
    """Σ c_k t^k + O(t^terms)."""
    if all(type(c) is fmpq for c in coefficients):
        return fmpq_series(coefficients, prec=terms)  # the second positional argument is a denominator
    return arb_series(coefficients, terms)


def start(a: Ball) -> Ball:
    """The coefficient of t^0."""
    return a[0] if is_series(a) else a


def nearest(a: Ball) -> float:
    """The float nearest to the number at t = 0; infinities and NaN as they are."""
    first = start(a)
    return first.value if isinstance(first, Special) else float(ball(first).mid())


# Signs and comparisons --------------------------------------------------------------------------------------------


def sign_of_constant(c: Any) -> int:
    """-1, 0 or 1; 2 for NaN. Raises NeedsBits if the ball is too wide to decide."""
    if c > 0:
        return 1
    if c < 0:
        return -1
    if type(c) is fmpq or c.is_zero():
        return 0
    if c.is_nan():
        return 2
    if state.how.guess is None:
        raise NeedsBits
    state.edged = True
    return state.how.guess


def sign(a: Ball) -> int:
    """-1, 0 or 1; 2 for NaN. For a series: just after t = 0."""
    if isinstance(a, Special):
        return 2 if math.isnan(a.value) else int(math.copysign(1, a.value))
    if not is_series(a):
        return sign_of_constant(a)
    for k in range(a.prec):
        if first := sign_of_constant(a[k]):
            if k:
                state.edged = True
            return first
    state.edged = True
    _take_for_zero(a)
    return 0


def compared(a: Ball, b: Ball) -> int:
    """The sign of a - b; 2 if one is NaN. The source branches on it."""
    _branch_on(a, b)
    return order(a, b)


def order(a: Ball, b: Ball) -> int:
    """The sign of a - b; 2 if one is NaN. For what is continuous where they are equal: no branch."""
    if isinstance(a, Special) or isinstance(b, Special):
        if is_lost(a) or is_lost(b):
            raise NeedsTerms
        left = a.value if isinstance(a, Special) else 0.0
        right = b.value if isinstance(b, Special) else 0.0
        if math.isnan(left) or math.isnan(right):
            return 2
        if left == right and a is not b and CONSTANT not in (getattr(a, "moves", 0), getattr(b, "moves", 0)):
            raise NeedsTerms  # 1/t and 2/t
        return (left > right) - (left < right)
    return 0 if a is b else sign(sub(a, b))


def valuation(a: Ball) -> int:
    """The power of the first nonzero coefficient; 0 for a nonzero constant, -1 for zero."""
    if not is_series(a):
        return -1 if sign(a) == 0 else 0
    for k in range(a.prec):
        if sign_of_constant(a[k]):
            return k
    _take_for_zero(a)
    return -1


def shifted(a: Ball, power: int) -> Ball:
    """t^power a of a series; for a negative power the first coefficients must be zero."""
    numbers = coefficients(a)
    if power < 0:
        return series(numbers[-power:], max(1, a.prec + power))
    return series([0] * power + numbers, a.prec + power)


def slope(change: Ball, power: int, strict: bool = True) -> Ball:
    """c of c t^power, with as many terms as no square of t^power reaches.

    strict: unknown if a lower power remains. This limits the known terms of all later numbers.
    """
    if not is_series(change):
        return change if isinstance(change, Special) else ZERO
    known = min(power, change.prec - power)
    if known < 1:
        raise NeedsTerms
    if strict and any(not c.overlaps(ZERO) for c in coefficients(ball(change))[:power]):
        return NOT_KNOWN
    state.known = min(state.known, known)
    return series(coefficients(change)[power : power + known], state.how.terms)


def meet(a: Ball, b: Ball) -> bool:
    """Whether two numbers may be equal, coefficient by coefficient."""
    if isinstance(a, Special) or isinstance(b, Special):
        return False
    if not (is_series(a) or is_series(b)):
        return bool(ball(a).overlaps(ball(b)))
    shorter = min(x.prec for x in (a, b) if is_series(x))
    return all(c.overlaps(ZERO) for c in coefficients(ball(sub(a, b)))[:shorter])


# The four operations ----------------------------------------------------------------------------------------------


def add(a: Ball, b: Ball) -> Ball:
    """a + b."""
    try:
        return a + b
    except TypeError:
        return _mixed(add, lambda x, y: x + y, a, b)


def sub(a: Ball, b: Ball) -> Ball:
    """a - b."""
    try:
        return a - b
    except TypeError:
        return _mixed(sub, lambda x, y: x - y, a, b)


def mul(a: Ball, b: Ball) -> Ball:
    """a b."""
    try:
        product = a * b
    except TypeError:
        return _mixed(mul, lambda x, y: x * y, a, b)
    return shortened(product) if state.how.exact else product


def neg(a: Ball) -> Ball:
    """-a."""
    return Special(-a.value, a.moves) if isinstance(a, Special) else -a


def div(a: Ball, b: Ball) -> Ball:
    """a / b; x / 0 is the infinity of x's sign, 0 / 0 is NaN. t² / t is t, 1 / t is infinite."""
    if isinstance(a, Special) or isinstance(b, Special):
        return _mixed(div, _divided, a, b)
    lost = valuation(b)
    if lost < 0:
        quotient = (NAN, INF, NAN, NEGATIVE_INF)[sign(a)]
        return Special(quotient.value, LOST) if is_series(b) else quotient
    if lost == 0:
        if is_series(b) and not b[0] > 0 and not b[0] < 0:  # not zero only by a guess
            return NOT_KNOWN
        quotient = a / b if type(a) is type(b) else _quotient(a, b)
        return shortened(quotient) if state.how.exact else quotient
    state.edged = True
    if valuation(a) < 0:  # zero for any number of terms
        return ZERO
    if not is_series(a) or valuation(a) < lost:
        return Special(math.copysign(math.inf, sign(a) * sign(b)), POLE)
    return div(shifted(a, -lost), shifted(b, -lost))


def _quotient(a: Ball, b: Ball) -> Ball:
    try:
        return a / b
    except TypeError:
        return ball(a) / ball(b)


def _mixed(function: Any, on_floats: Any, a: Ball, b: Ball) -> Ball:
    """An operation on a fraction and a ball, which python-flint refuses, or on special values."""
    if isinstance(a, Special) or isinstance(b, Special):
        if function is mul and any(is_series(x) and sign_of_constant(x[0]) == 0 for x in (a, b)):
            other = b if isinstance(b, Special) else a
            return other if math.isnan(other.value) else NOT_KNOWN  # t (1 / t), or t log t
        return special(on_floats(_as_float(a), _as_float(b)), a, b)
    if isinstance(a, fmpq_series) or isinstance(b, fmpq_series):
        return function(ball(a), ball(b))
    raise TypeError(f"no arithmetic for {type(a).__name__} and {type(b).__name__}")


def _as_float(a: Ball) -> float:
    """A float with the number's sign; next to an infinity the size of a number is irrelevant."""
    if isinstance(a, Special):
        return a.value
    number = sign(a)
    return math.nan if number == 2 else float(number)


def _divided(x: float, y: float) -> float:
    return x / y if y else (x * math.inf)


def special(number: float, *operands: Ball) -> Ball:
    """A result of these operands, one of them special, from their values alone."""
    moves = max((operand.moves for operand in operands if isinstance(operand, Special)), default=CONSTANT)
    if not math.isfinite(number):
        return Special(number, moves)
    return NOT_KNOWN if moves else arb(number)


def shortened(a: Ball) -> Ball:
    """The same number, as a ball if its fractions have become long."""
    if type(a) is fmpq:
        return arb(a) if a.q.bit_length() > MOST_EXACT_BITS or a.p.bit_length() > MOST_EXACT_BITS else a
    if type(a) is fmpq_series and any(
        c.q.bit_length() > MOST_EXACT_BITS or c.p.bit_length() > MOST_EXACT_BITS for c in coefficients(a)
    ):
        return ball(a)
    return a


# Powers -----------------------------------------------------------------------------------------------------------


def sqrt(a: Ball) -> Ball:
    """√a, of t² as t; NaN below zero."""
    if isinstance(a, Special):
        return a if a.value > 0 else NAN
    power = valuation(a)
    if power < 0:
        return ZERO
    if sign(a) != 1:
        return NAN
    if power == 0:
        return _root(ball(a))
    state.edged = True
    if power % 2:
        raise NeedsRoot(2)
    root = _root(ball(shifted(a, -power)))
    return root if isinstance(root, Special) else shifted(root, power // 2)


def _root(a: Any) -> Any:
    """√a of a ball or a series that begins with a positive ball.

    FLINT 3.6 ends the process for a series of 128 terms whose second half alone follows a constant. So further terms
    come from Newton's iteration y = (y + a / y) / 2.
    """
    if type(a) is arb or a.prec <= FLINT_ROOT_TERMS:
        return a.sqrt()
    if not a[0] > 0:  # positive only by a guess
        return NOT_KNOWN
    terms = FLINT_ROOT_TERMS
    root = coefficients(arb_series(coefficients(a)[:terms], terms).sqrt())
    while terms < a.prec:
        terms = min(2 * terms, a.prec)
        near = arb_series(root, terms)
        root = coefficients((near + arb_series(coefficients(a)[:terms], terms) / near) / 2)
    return arb_series(root, a.prec)


def power(a: Ball, b: Ball) -> Ball:
    """a ** b as in C's pow: 1 for b = 0 or a = 1, NaN for a negative base and a fractional exponent."""
    if isinstance(a, Special) or isinstance(b, Special):
        return _special_power(a, b)
    whole = _whole(b)
    if whole is not None:
        return _whole_power(a, whole)
    first = valuation(a)
    if first < 0:
        if sign(start(b)) == 0:  # 0 ** 0 is 1, and jumps
            return arb_series([1], 1)
        if is_series(a) and sign(b) < 0:
            return Special(math.inf, LOST)
        return (ONE, ZERO, NAN, INF)[sign(b)]
    if sign(a) != 1:
        return NAN
    if first == 0:
        if is_series(a) or is_series(b):
            base = ball(a) if is_series(a) else arb_series([ball(a)], state.how.terms)
            return (base.log() * ball(b)).exp()
        return ball(a) ** ball(b)
    return _power_of_small(a, b, first)


def _power_of_small(a: Ball, b: Ball, first: int) -> Ball:
    """(t^first u) ** b, u not small: t^(first b) u^b. If that is not a power of t, as many terms as are known."""
    state.edged = True
    exponent = ball(start(b)) * first
    if sign(exponent) < 0:
        return Special(math.inf, POLE)
    if sign(exponent) == 0:
        return arb_series([1], 1)
    if not is_series(b):
        twice = (exponent * 2).unique_fmpz()
        if twice is not None and exponent * 2 == twice:
            if int(twice) % 2:
                raise NeedsRoot(2)
            return shifted(power(shifted(a, -first), b), int(twice) // 2)
    known = math.ceil(float(exponent.mid()))
    return arb_series([0], max(1, min(known, state.how.terms)))


def _whole(b: Ball) -> int | None:
    """The value of a constant that is a whole number."""
    if is_series(b):
        return None
    if type(b) is fmpq:
        return int(b.p) if b.q == 1 else None
    if not b.is_exact() or not b.is_integer():
        return None
    integer = b.unique_fmpz()
    return None if integer is None else int(integer)


def _whole_power(a: Ball, exponent: int) -> Ball:
    if exponent < 0:
        return div(ONE, _whole_power(a, -exponent))
    if abs(exponent) > 2**20:  # fractions of thousands of bits gain nothing
        a = ball(a)
    if type(a) is arb and a.contains(0):  # python-flint's power of such a ball is NaN
        return _product_power(a, exponent)
    raised = a**exponent
    return shortened(raised) if state.how.exact else raised


def _product_power(a: Any, exponent: int) -> Any:
    """a ** exponent by squaring, for exponent >= 0."""
    product = ONE
    while exponent:
        if exponent & 1:
            product = product * a
        a, exponent = a * a, exponent >> 1
    return product


def _special_power(a: Ball, b: Ball) -> Ball:
    if is_series(a) and sign(sub(start(a), ONE)) == 0:  # (1 + t) ** (1 / t)
        return NOT_KNOWN
    base = a.value if isinstance(a, Special) else _representative(a)
    exponent = b.value if isinstance(b, Special) else _representative(b)
    try:
        return special(math.pow(base, exponent), a, b)
    except (OverflowError, ValueError):
        return NAN if base < 0 else INF


def _representative(a: Ball) -> float:
    """A float that behaves like the number in `math.pow` with an infinity: the same sign, and the same order relative
    to ±1."""
    size = compared(a if sign(a) >= 0 else neg(a), ONE)
    near = 1.0 + 0.5 * size if sign(a) else 0.0
    whole = _whole(a)
    if whole is not None and abs(whole) > 1:
        near = 3.0 if whole % 2 else 2.0
    return math.copysign(near, sign(a))


# Parts ------------------------------------------------------------------------------------------------------------


def absolute(a: Ball) -> Ball:
    """|a|."""
    return neg(a) if sign(a) < 0 else a


def _chosen(better: int, a: Ball, b: Ball) -> Ball:
    """b if the sign of a - b is ``better``, else a."""
    if is_lost(a) or is_lost(b):
        return NOT_KNOWN
    which = order(a, b)
    return NAN if which == 2 else b if which == better else a


def larger(a: Ball, b: Ball) -> Ball:
    """The larger number; a if they are equal; NaN if one is."""
    return _chosen(-1, a, b)


def smaller(a: Ball, b: Ball) -> Ball:
    """The smaller number; a if they are equal; NaN if one is."""
    return _chosen(1, a, b)


def floor(a: Ball) -> Ball:
    """The largest integer at or below a."""
    if isinstance(a, Special):
        return a
    _branch_on(a)
    first = ball(start(a))
    below = first.floor()
    if not below.is_exact():
        if state.how.guess is None:
            raise NeedsBits
        below = arb(round(float(first.mid())) - (state.how.guess < 0))
    if is_series(a) and sign(sub(a, below)) < 0:
        below = below - 1
    return constant(int(below.unique_fmpz()))


def sign_of(a: Ball) -> Ball:
    """-1, 0 or 1."""
    if is_lost(a):
        return a
    _branch_on(a)
    number = sign(a)
    return NAN if number == 2 else constant(number)


def whole_number(a: Ball) -> int:
    """An integer constant as an int. Raises TypeError for others."""
    integer = None if isinstance(a, Special) else _whole(a)
    if integer is None:
        raise TypeError("expected a constant integer")
    return integer


def fixed(a: Ball, name: str) -> Any:
    """A constant as a ball. Raises NotImplementedError for a series: that derivative of the function is unknown."""
    if is_series(a) or isinstance(a, Special):
        raise NotImplementedError(f"the derivative of {name} in that argument is unknown here")
    return ball(a)
