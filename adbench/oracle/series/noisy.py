"""Noise of an arithmetic: the same series, with the rounding of values and of their derivatives.

The arithmetic is float64, or a lower one in which a library computes (`adbench.oracle.evidence.Precision`).

Values (coefficients of t^0) are float64 at every step, rounded up or down at random. The choice depends on the rounded
number, so equal computations agree, and exact float64 results stay exact. Overflow gives an infinity and underflow
loses digits, as in float64. Derivatives (other coefficients) get a relative error u ξ with every operation, ξ uniform
in [-1, 1], u the unit roundoff, because AD rounds them separately. In a product of two series, the second one's
derivatives are perturbed too: the halves of a product rule are rounded separately, and their errors remain when the
halves cancel (Parker (1997), "Monte Carlo arithmetic").

Perturbations belong to the position of an operation in the run, for every direction: a noisy vᵀHv is a quadratic form
in v, and polarisation gives one noisy H. All coefficients are exact numbers, so balls do not widen.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from flint import arb, arb_mat, arb_series
from numpy.typing import NDArray

from adbench.oracle.evidence import DOUBLE, Precision
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, Ball, Special, arithmetic
from adbench.oracle.series.functions import UNARY, exp, log
from adbench.oracle.series.number import Operator, Real, ball_of, floor_divide, modulo, with_complex
from adbench.vocabulary import FUNCTIONS

STEP_BITS = 20
TABLE = 4093
"""A prime: loops of length 2^k do not repeat the same perturbations."""

LIBRARY_ULPS = 4
"""In vectorised libraries, functions like exp and tanh have errors of a few units in the last place, not of half."""

CORRECTLY_ROUNDED = frozenset(name for name, row in FUNCTIONS.items() if row.noise == "rounded")
"""Functions that IEEE 754 requires to be correctly rounded."""

SQUARED = frozenset(name for name, row in FUNCTIONS.items() if row.noise == "squares")
"""Functions whose second derivatives have (1 + x²)² or the like in a denominator."""

Binary = Callable[[Ball, Ball], Ball]
Operators = tuple[Operator, Operator]
Rounded = Callable[["Stream", Ball, Ball], Ball]
Steps = tuple[Any, Any, Any, Any]
"""Factors 1 + u ξ: for odd and even coefficients of a result, and of an operand."""


@functools.cache
def _table(unit: float) -> tuple[list[Steps], NDArray[np.float64]]:
    """Perturbations of this size, and the ξ of the first of each."""
    rng = np.random.default_rng(0x5EED)
    steps = rng.integers(-(2**STEP_BITS), 2**STEP_BITS, (TABLE, 4), endpoint=True)
    one = int(2**STEP_BITS / unit)
    with arithmetic(Arithmetic()):  # exact because the denominator is a power of two; 53 bits are not
        perturbations: list[Steps] = [tuple(arb(one + step) / one for step in row) for row in steps.tolist()]  # type: ignore[misc]  # four each
    return perturbations, steps[:, 0] / 2.0**STEP_BITS


class Stream:
    """The perturbations of one draw in this arithmetic."""

    def __init__(self, seed: int, draw: int, form: Precision) -> None:
        self.form = form
        rng = np.random.default_rng([seed, draw, 0xA0])
        table, sizes = _table(form.unit)
        order = (int(rng.integers(TABLE)) + int(rng.integers(1, TABLE)) * np.arange(TABLE)) % TABLE
        self._steps = [table[k] for k in order.tolist()]
        self._xi = np.concatenate([sizes[order]] * 2)
        self._away = rng.integers(0, 2, TABLE).astype(bool).tolist()
        self._library = (sizes[order[::-1]] * form.inside).tolist()
        self.restart()

    def restart(self) -> None:
        """Return to the first perturbation."""
        self.next: Callable[[], Steps] = itertools.cycle(self._steps).__next__
        self._position = 0

    def number(self, c: Any, ulps: float = 0.0) -> float:
        """One of the two numbers of the arithmetic next to the ball c, or up to ``ulps`` units in the last place away.

        Exactly c if c is such a number. The result never crosses 1, because no library has |tanh x| > 1.
        """
        double = float(c)
        nearest = self.form.nearest(double)
        up = c > nearest
        if not (up or c < nearest) or math.isinf(nearest):
            return nearest
        place = hash(nearest) % TABLE
        if ulps:
            moved = double + ulps * double * self._library[place]
            moved = math.copysign(1.0, moved) if abs(moved) > 1 >= abs(double) else moved
            if self.form is DOUBLE:
                return moved
            # Of 16 bits the function is computed in float32; then its result is rounded.
            nearest, up = self.form.nearest(moved), moved > self.form.nearest(moved)
            if self.form.inside == self.form.unit:
                return nearest
        if not self._away[place]:
            return nearest
        if self.form is DOUBLE:
            return math.nextafter(nearest, math.inf if up else -math.inf)
        return self.form.nearest(nearest + (1 if up else -1) * self.form.ulp(nearest))

    def rounded(self, value: Ball, ulps: float = 0.0) -> Ball:
        """The result of one operation."""
        steps = self.next()  # always, so that the next operation gets the same perturbations in every direction
        kind = type(value)
        if kind is arb_series:
            first = self.number(value[0], ulps)
            if not math.isfinite(first):
                return Special(first)
            return arb_series([arb(first), *self._slopes(value, steps)], value.prec)
        if kind is arb:
            return ball.special(self.number(value, ulps))
        return value if kind is Special else self.rounded(ball.ball(value), ulps)

    def constant(self, value: Ball | None) -> Ball | None:
        """A number of the source: libraries round it to the type of the other operand, if that has fewer bits."""
        if self.form is DOUBLE or value is None or isinstance(value, Special):
            return value
        return ball.special(self.number(ball.ball(value)))

    def operand(self, value: Ball) -> Ball:
        """A number as an operand of a product: its derivatives are rounded once more."""
        steps = self.next()
        if type(value) is not arb_series:
            return value
        moved = [value[k] * steps[2 + k % 2] for k in range(1, value.prec)]
        return arb_series([value[0], *moved], value.prec)

    def small(self, count: int) -> NDArray[np.float64]:
        """This many values u ξ, with the unit roundoff of sums."""
        self._position = (self._position + 1237) % TABLE
        if count <= TABLE:
            return self._xi[self._position : self._position + count] * self.form.inside
        return np.resize(self._xi[self._position :], count) * self.form.inside

    def _slopes(self, value: Any, steps: Sequence[Any]) -> list[Any]:
        """The coefficients from t^1 on, perturbed. Coefficients after a lost one are lost."""
        slopes: list[Any] = []
        for k in range(1, value.prec):
            c = value[k] * steps[k % 2]
            if not self.form.smallest < abs(float(c)) < self.form.largest / 2:
                c = self._at_the_limit(c, steps)
                if c.is_nan():
                    return slopes + [c] * (value.prec - k)
            slopes.append(c.mid())
        return slopes

    def _at_the_limit(self, c: Any, steps: Sequence[Any]) -> Any:
        """A derivative that overflows is lost; one that underflows has an error of the smallest number."""
        if c.is_zero():
            return c
        if abs(float(c)) < 1:
            return c + (steps[1] - 1) * (2 * arb(self.form.smallest))
        return c if abs(float(c)) <= self.form.largest else arb.nan()


def _sum_like(function: Binary) -> Rounded:
    """An operation whose partial derivatives are ±1."""
    return lambda stream, a, b: stream.rounded(function(a, b))


def _product_like(function: Rounded, ulps: Callable[[Ball], float]) -> Rounded:
    """An operation with a product rule; ``ulps``: the error of its value, by the second operand."""

    def rounded(stream: Stream, a: Ball, b: Ball) -> Ball:
        return stream.rounded(function(stream, a, stream.operand(b)), ulps(b))

    return rounded


def _product(stream: Stream, a: Ball, b: Ball) -> Ball:
    return stream.rounded(ball.mul(a, stream.operand(b)))


def _operators(called: Operator, function: Rounded) -> Operators:
    """The methods `a.__op__(b)` and `b.__rop__(a)`."""
    new = object.__new__

    def number_of(kind: type[Noisy], a: Ball, b: Ball) -> Noisy:
        result = new(kind)
        result.ball = function(kind.stream, a, b)
        return result

    def forward(self: Noisy, other: Any) -> Any:
        right = other.ball if type(other) is type(self) else self.stream.constant(ball_of(other))
        if right is None:
            return with_complex(called, self, other, type(self))
        return number_of(type(self), self.ball, right)

    def backward(self: Noisy, other: Any) -> Any:
        left = self.stream.constant(ball_of(other))
        if left is None:
            return with_complex(called, other, self, type(self))
        return number_of(type(self), left, self.ball)

    return forward, backward


def _fused(product: Noisy, other: Any) -> Noisy:
    """The first of two products whose difference a compiled program computes by fma: rounded with the difference only.

    So a b - b a may be a rounding of a b. In a b + c d of opposite signs, each product is rounded separately anyway.
    """
    are_two = product is not other and hasattr(product, "factors") and hasattr(other, "factors")
    if not are_two or isinstance(product.ball, Special):
        return product
    return type(product)(_with_slopes(ball.mul(*product.factors), product.ball))


def _power_ulps(exponent: Ball) -> float:
    """The error of x ** n: libraries multiply, or call a function without correct rounding."""
    size = 0.0 if isinstance(exponent, Special) else abs(float(ball.start(exponent)))
    return 0.0 if size in (0.5, 1.0, 2.0) else max(LIBRARY_ULPS, size / 4)


# Derivative formulas that cancel inside --------------------------------------------------------------------------

SlopeNoise = Callable[[float, float], tuple[float, float]]


def _near_the_edge(x: float, gap: float, exponent: float) -> tuple[float, float]:
    """(1 - x²)^-p for 1/2 and 1, if 1 - x² (the gap) has an error of u x²: p gap^-(p+1), and its derivative."""
    if gap <= 0:  # the end of the domain: no finite derivative
        return 0.0, 0.0
    first = x * x * gap ** -(exponent + 1)
    return first, 3 * abs(x) * first / gap


def _logistic(x: float, y: float) -> tuple[float, float]:
    """y (1 - y), and times (1 - 2 y)."""
    return y * y, 2 * y * abs(1 - y) + 3 * y * y


SLOPE_NOISE: Mapping[str, SlopeNoise] = {
    "abs": lambda x, y: (0.0, 2.0 / y if y else 0.0),  # x / |x|, whose derivative is a difference
    "acos": lambda x, y: _near_the_edge(x, 1 - x * x, 0.5),
    "acosh": lambda x, y: _near_the_edge(x, x * x - 1, 0.5),
    "asin": lambda x, y: _near_the_edge(x, 1 - x * x, 0.5),
    "atanh": lambda x, y: _near_the_edge(x, 1 - x * x, 1.0),
    "digamma": lambda x, y: (8.0 * _trigamma_size(x), 8.0 * _trigamma_size(x) ** 1.5),
    "expit": _logistic,
    "expm1": lambda x, y: (1 + abs(y), 1 + abs(y)),
    "lgamma": lambda x, y: (8.0, 8.0 * _trigamma_size(x)),
    "sinc": lambda x, y: (math.pi * abs(math.sin(math.pi * x)), math.pi**2),  # π x is rounded
    "tanh": lambda x, y: (5 * y * y, 14 * abs(y) ** 3 + 2 * abs(y)),
}
"""Errors of the usual formulas for f' and f'', in u: (x, y = f(x)) -> both. Only formulas that cancel: 1 - tanh² has
no digits left at x = 19, even for an exact tanh. Library functions may have errors of a few units in the last
place."""


def _trigamma_size(x: float) -> float:
    """Roughly its size; by reflection left of 0."""
    if x > 0:
        return 1 / x + 1 / (x * x)
    sine = math.sin(math.pi * x)
    return math.pi**2 / (sine * sine) if sine else math.inf


def _formula_noise(name: str, x: Any, y: Any) -> tuple[float, float]:
    """The errors of the usual formulas for f' and f'' for y = f(x), in u."""
    if name not in SLOPE_NOISE:
        return 0.0, 0.0
    try:
        return SLOPE_NOISE[name](float(x[0]), float(y[0]))
    except (OverflowError, ZeroDivisionError):
        return math.inf, math.inf


def _tilted(x: Any, y: Any, sizes: tuple[float, float], steps: Steps) -> Any:
    """y = f(x), with errors of this many u in f' and f''; infinite errors lose them."""
    first, second = sizes
    if not math.isfinite(first):
        return _known(y, 1)
    if first or second:
        moved = x - x[0]
        y = y + moved * ((steps[0] - 1) * first)
        if math.isfinite(second):
            y = y + moved * moved * ((steps[1] - 1) * (second / 2))
    return y if math.isfinite(second) else _known(y, 2)


def _known(y: Any, count: int) -> Any:
    """This many coefficients; the others are lost."""
    if y.prec <= count:
        return y
    return arb_series([*(y[k] for k in range(count)), *([arb.nan()] * (y.prec - count))], y.prec)


# The range of partial derivatives --------------------------------------------------------------------------------
#
# In float64 2 / y³ overflows at 1e-150, and AD needs it for a second derivative of 1e-150 / (1e-150 x), of size 1.


def _out_of_range(form: Precision, c: Any) -> float:
    """The absolute error of a number that is stored with fewer digits, in u; infinite if it overflows."""
    size = abs(float(c))
    if not size <= form.largest:
        return math.inf
    return 0.0 if size >= form.smallest or c.is_zero() else form.smallest


def _overflow(form: Precision, c: Any) -> float:
    """The error of f' out of range: only of overflow, since -(a / b) / b avoids the underflow of -a / b²."""
    return math.inf if math.isinf(_out_of_range(form, c)) else 0.0


def _is_far(form: Precision, c: Any) -> bool:
    """Whether powers up to the fourth, used for partial derivatives, may be out of range."""
    edge = 1e-75 if form is DOUBLE else form.smallest**0.25
    return not edge < abs(float(c)) < 1 / edge


def _range_of_function(form: Precision, x: Any, y: Any) -> tuple[float, float]:
    """The errors of f' and f'' out of range, for y = f(x), from their coefficients."""
    if not (_is_far(form, x[0]) or _is_far(form, y[0])):
        return 0.0, 0.0
    terms = min(x.prec, y.prec)
    power = next((k for k in range(1, terms) if not x[k].is_zero()), terms)
    if power == terms:
        return 0.0, 0.0
    first, second = y[power] / x[power], ball.ZERO
    if 2 * power < terms:
        second = 2 * (y[2 * power] - first * x[2 * power]) / (x[power] * x[power])
    return _out_of_range(form, first), _out_of_range(form, second)


def _range_of_quotient(form: Precision, y: Any, b: Any) -> tuple[float, float]:
    """The errors of both derivatives of y = a / b out of range, including 2 a / b³."""
    if not _is_far(form, b[0]) or b[0].is_zero():
        return 0.0, 0.0
    by_a, edge = 1 / b[0], 1e100 if form is DOUBLE else form.largest ** (1 / 3)
    second = 0.0 if 1 / edge < abs(float(by_a)) < edge else math.inf
    return max(_overflow(form, by_a), _overflow(form, y[0] * by_a)), second


def _quotient(stream: Stream, a: Ball, b: Ball) -> Ball:
    quotient, steps = ball.div(a, b), stream.next()
    if type(quotient) is not arb_series or type(b) is not arb_series:
        return quotient
    return _tilted(b, quotient, _range_of_quotient(stream.form, quotient, b), steps)


def _power(stream: Stream, a: Ball, b: Ball) -> Ball:
    power, steps = ball.power(a, b), stream.next()
    if type(power) is not arb_series or type(a) is not arb_series:
        return power
    power = _tilted(a, power, _exponent_noise(a, b, power), steps)
    return _tilted(a, power, _range_of_function(stream.form, a, power), steps)


def _exponent_noise(a: Any, b: Any, y: Any) -> tuple[float, float]:
    """The errors of b a^(b-1) and b (b-1) a^(b-2), in u, from the roundings of b - 1 and b - 2."""
    start, p = float(a[0]), float(ball.start(b))
    if start <= 0 or (4 * p).is_integer():
        return 0.0, 0.0
    relative = (abs(p) + 2) * abs(math.log(start))
    first = abs(p * float(y[0] / a[0])) * relative
    return first, abs((p - 1) * float(first / a[0]))


# The numbers -----------------------------------------------------------------------------------------------------


class Noisy(Real):
    """A real number whose every operation is rounded by the type's ``stream``."""

    __slots__ = ("factors", "negated")
    stream: ClassVar[Stream]
    factors: tuple[Ball, Ball]
    negated: bool

    _add, __radd__ = _operators(operator.add, _sum_like(ball.add))
    _subtract, __rsub__ = _operators(operator.sub, _sum_like(ball.sub))
    _multiply, __rmul__ = _operators(operator.mul, _product)
    __truediv__, __rtruediv__ = _operators(operator.truediv, _product_like(_quotient, lambda _: 0.0))
    __floordiv__, __rfloordiv__ = _operators(operator.floordiv, _sum_like(floor_divide))
    __mod__, __rmod__ = _operators(operator.mod, _sum_like(modulo))
    __pow__, __rpow__ = _operators(operator.pow, _product_like(_power, _power_ulps))

    def __add__(self, other: Any) -> Any:
        # A sum with a product that was negated is a difference.
        is_difference = self.stream.form is not DOUBLE and hasattr(self, "negated") != hasattr(other, "negated")
        return (_fused(self, other) if is_difference else self)._add(other)

    def __sub__(self, other: Any) -> Any:
        return (_fused(self, other) if self.stream.form is not DOUBLE else self)._subtract(other)

    def __mul__(self, other: Any) -> Any:
        product = self._multiply(other)
        if type(other) is type(self):
            product.factors = self.ball, other.ball
        return product

    def __abs__(self) -> Self:
        return type(self)(self.computed("abs", ball.absolute, self.ball))

    @classmethod
    def begin(cls) -> None:
        """Restart the perturbations, which belong to the positions of operations."""
        cls.stream.restart()

    @classmethod
    def computed(cls, name: str, function: Callable[..., Ball], *operands: Ball) -> Ball:
        """The result of a library function."""
        stream, x = cls.stream, operands[0]
        if name in SPECIAL:
            return SPECIAL[name](stream, function, *operands)
        if name in COMPOSED:
            result = _with_slopes(function(*operands), COMPOSED[name](*map(cls, operands)).ball)
        else:
            result, steps = function(x, *map(stream.operand, operands[1:])), stream.next()
            if len(operands) == 1 and type(result) is arb_series and type(x) is arb_series:
                result = _tilted(x, result, _formula_noise(name, x, result), steps)
                result = _tilted(x, result, _range_of_function(stream.form, x, result), steps)
        far = functools.partial(_is_far, stream.form)
        if name in SQUARED and type(result) is arb_series and any(map(far, map(ball.start, operands))):
            result = _known(result, 2)
        return stream.rounded(result, 0.0 if name in CORRECTLY_ROUNDED else LIBRARY_ULPS)

    @classmethod
    def term(cls, x: Self, y: Self) -> Ball:
        """A product that is added to others. Types of 16 bits multiply and add in float32, where it is exact."""
        stream = cls.stream
        return (x * y).ball if stream.form.inside == stream.form.unit else ball.mul(x.ball, y.ball)

    @classmethod
    def total(cls, terms: Sequence[Ball]) -> Ball:
        """The sum, with partial sums rounded in any order."""
        terms = [ball.ball(term) for term in terms]
        if len(terms) < 3 or any(type(term) is Special for term in terms):
            return functools.reduce(lambda a, b: cls.stream.rounded(ball.add(a, b)), terms) if terms else ball.ZERO
        return _total(cls.stream, terms)

    @classmethod
    def product(cls, terms: Sequence[Ball]) -> Ball:
        """The product. Libraries divide it by x_i twice: the zero d²/dx_i² is a difference of such quotients."""
        terms = [ball.ball(term) for term in terms]
        product = functools.reduce(functools.partial(_product, cls.stream), terms, ball.ONE)
        return product if isinstance(product, Special) else _divided_product(cls.stream, terms, product)

    @classmethod
    def matrix(cls, rows: list[list[Ball]], *, symmetric: bool, mixing: bool) -> list[list[Ball]]:
        """A + E, each entry of E u ξ times its scale: the geometric mean of the largest of its row and of its column.

        mixing: the largest of all. An entry alone in its row and column is exact. Derivatives dA are (1 + E A^-1) dA,
        as in another solution in double precision: AD solves again for each term, with other rounding.
        """
        return _backward_error(cls.stream, [[ball.ball(value) for value in row] for row in rows], symmetric, mixing)

    def __neg__(self) -> Self:
        product = super().__neg__()
        if hasattr(self, "factors"):
            product.factors, product.negated = (ball.neg(self.factors[0]), self.factors[1]), True
        return product

    @classmethod
    def rounded(cls, value: Ball) -> Ball:
        """One entry of the result of a decomposition."""
        return cls.stream.rounded(value)


def _root_of_squares(x: Noisy, y: Noisy) -> Any:
    """√(x² + y²), scaled by a power of two: libraries overflow only if the result does."""
    largest = max(abs(float(ball.start(ball.ball(number.ball)))) for number in (x, y))
    form = type(x).stream.form
    scale = 2.0 ** -math.frexp(largest)[1] if form.smallest < largest < form.largest / 2 else 1.0
    a, b = x * scale, y * scale
    return (a * a + b * b) ** 0.5 / scale


def _log_of_sum(x: Noisy, y: Noisy) -> Any:
    """m + log(exp(x - m) + exp(y - m)): its second derivative is p (1 - p), whatever p."""
    real, high = type(x), ball.larger(*(ball.ball(ball.start(number.ball)) for number in (x, y)))
    grown = [real.computed("exp", exp, (number - real(high)).ball) for number in (x, y)]
    return real(real.computed("log", log, real.total(grown))) + real(high)


def _angle(y: Noisy, x: Noisy) -> Any:
    """atan(y / x) or -atan(x / y): its second derivative by x and y cancels near the diagonal."""
    real = type(x)
    if abs(float(ball.start(ball.ball(y.ball)))) > abs(float(ball.start(ball.ball(x.ball)))):
        return -real(real.computed("atan", UNARY["atan"], (x / y).ball))
    return real(real.computed("atan", UNARY["atan"], (y / x).ball))


COMPOSED: Mapping[str, Callable[..., Any]] = {"atan2": _angle, "hypot": _root_of_squares, "logaddexp": _log_of_sum}
"""Functions whose derivatives cancel like those of their constituent operations."""


def _chosen(stream: Stream, function: Binary, a: Ball, b: Ball) -> Ball:
    """The larger or smaller of two, whose derivative may come as b' + (a' - b')."""
    chosen, gap, steps = function(a, b), ball.sub(a, b), stream.next()
    if isinstance(chosen, Special) or type(gap) is not arb_series:
        return chosen
    return ball.add(chosen, (gap - gap[0]) * (steps[0] - 1))


def _centred(stream: Stream, function: Binary, x: Ball, mean: Ball) -> Ball:
    """x - mean. The mean varies between elements, because the derivative formula of a variance drops Σ (x - mean)."""
    error = ball.mul(ball.start(mean), LIBRARY_ULPS * (stream.next()[0] - 1))
    return stream.rounded(ball.sub(function(x, mean), error))


def _squares(stream: Stream, function: Callable[..., Ball], total: Ball, mean: Ball, count: Ball) -> Ball:
    """Σ (x - mean)². Its derivative formula 2 Σ (x - mean) x' keeps 2 n mean' times the rounding of the mean."""
    if stream.form is DOUBLE:
        return total
    error = ball.mul(ball.start(mean), 2 * LIBRARY_ULPS * count * (stream.next()[0] - 1))
    return ball.add(total, ball.mul(ball.sub(mean, ball.start(mean)), error))


SPECIAL: Mapping[str, Callable[..., Ball]] = {
    "centred": _centred,
    "maximum": _chosen,
    "minimum": _chosen,
    "squares": _squares,
}


def _with_slopes(value: Ball, slopes: Ball) -> Ball:
    """The first coefficient of the one, the others of the other."""
    if type(value) is not arb_series or type(slopes) is not arb_series:
        return value
    terms = min(value.prec, slopes.prec)
    return arb_series([value[0], *(slopes[k] for k in range(1, terms))], terms)


# Sums and matrices -----------------------------------------------------------------------------------------------


def _total(stream: Stream, terms: Sequence[Any]) -> Ball:
    """Σ terms, plus Σ u ξ S over partial sums S of three or more numbers in double precision, added in a random order.

    SIMD partial sums of libraries are smaller by the number of lanes; those of loops are not. A quarter is between.
    """
    values = [float(ball.start(term)) for term in terms]  # they are numbers of the arithmetic already
    if not math.isfinite(sum(values)):
        return Special(sum(values))
    ranks, steps = stream.small(2 * len(terms)).reshape(2, -1).tolist()
    order = sorted(range(len(terms)), key=ranks.__getitem__)
    share = 1 if len(terms) < 16 else 2 if len(terms) < 64 else 4
    partial = list(itertools.accumulate(values[j] for j in order))
    stored = partial if stream.form is DOUBLE else np.asarray(partial, dtype=np.float32).tolist()
    noise = 0.0
    for before, whole, near, j, step in zip(partial, partial[1:], stored[1:], order[1:], steps[1:], strict=False):
        part = whole - before
        if near != whole or (before - (whole - part)) + (values[j] - part) != 0:  # Knuth's error of a sum
            noise += whole * step
    sums = [sum(map(arb, values), ball.ZERO) + noise / share]
    moving = [(place, terms[j]) for place, j in enumerate(order) if type(terms[j]) is arb_series]
    # A term is in all later partial sums. Those of odd and of even coefficients have other roundings.
    later = [list(itertools.accumulate(reversed(way)))[::-1] for way in (steps[::-1], steps)] if moving else []
    for k in range(1, min((term.prec for _, term in moving), default=1)):
        total, noise = ball.ZERO, 0.0
        for place, term in moving:
            total += term[k]
            noise += float(term[k]) * later[k % 2][place]
        sums.append(total + noise / share)
    return stream.rounded(arb_series(sums, len(sums)) if moving else sums[0])


def _divided_product(stream: Stream, terms: Sequence[Any], product: Any) -> Ball:
    """A product with derivatives from its quotients by its factors; none if it underflows."""
    starts = [ball.start(term) for term in terms]
    underflows = abs(float(ball.start(product))) < stream.form.smallest and not any(start.is_zero() for start in starts)
    for term, start in zip(terms, starts, strict=True):
        steps = stream.next()
        if type(term) is arb_series and not start.is_zero():
            moved = (term - start) / start
            product += moved * moved * (ball.start(product) * (steps[1] - 1) * 2)
    return _known(product, 1) if underflows and type(product) is arb_series else product


def _backward_error(stream: Stream, rows: list[list[Any]], symmetric: bool, mixing: bool) -> list[list[Ball]]:
    """The matrix that a stable algorithm in double precision decomposes, with the derivatives it uses."""
    if any(type(value) is Special for row in rows for value in row):
        return rows
    terms = min((value.prec for row in rows for value in row if type(value) is arb_series), default=1)
    lower = [[rows[max(i, j)][min(i, j)] for j in range(len(rows))] for i in range(len(rows))] if symmetric else rows
    start = _part(lower, 0)
    sizes = np.array([[abs(float(c)) for c in row] for row in start.tolist()])
    scale = np.sqrt(sizes.max(axis=1)[:, None] * sizes.max(axis=0)[None, :])
    scale = np.full_like(scale, sizes.max()) if mixing else scale
    scale *= _connected(sizes != 0)
    inverse = None if mixing or terms == 1 else _inverse(start)
    moved = [start + _random(stream, scale)]
    for k in range(1, terms):
        part, ones = _part(lower, k), np.ones_like(scale)
        if inverse is not None:
            error = _random(stream, scale) * inverse
            part += error * part + (part * error.transpose() if symmetric else part * 0)
        else:
            left, right = _random(stream, ones[:, :1] + ones[:, :1].T), _random(stream, ones[:1].T + ones[:1])
            part += left * part + part * right
        moved.append(part)
    tables = [part.mid().tolist() for part in moved]
    perturbed = [[_series_of([table[i][j] for table in tables]) for j in range(len(row))] for i, row in enumerate(rows)]
    return [
        [f if not symmetric or j <= i else r for j, (f, r) in enumerate(zip(*pair, strict=True))]
        for i, pair in enumerate(zip(perturbed, rows, strict=True))
    ]


def _part(rows: list[list[Any]], k: int) -> Any:
    """The coefficients of t^k."""
    return arb_mat([[(v[k] if type(v) is arb_series else ball.ZERO if k else v) for v in row] for row in rows])


def _random(stream: Stream, scale: NDArray[np.float64]) -> Any:
    """u ξ times the scale of each entry."""
    return arb_mat((LIBRARY_ULPS * scale * stream.small(scale.size).reshape(scale.shape)).tolist())


def _inverse(matrix: Any) -> Any:
    """The inverse of a square matrix; None if it is singular or not square."""
    if matrix.nrows() != matrix.ncols():
        return None
    try:
        return matrix.inv()
    except ZeroDivisionError:
        return None


def _series_of(parts: list[Any]) -> Any:
    return arb_series(parts, len(parts)) if any(not part.is_zero() for part in parts[1:]) else parts[0]


def _connected(something: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The entries that elimination may fill or change: in a block of at least two rows or columns."""
    rows, columns = something.shape
    label = np.arange(rows + columns)
    for i, j in np.argwhere(something):
        ours, theirs = label[i], label[rows + j]
        label[label == theirs] = ours
    same: NDArray[np.bool_] = label[:rows, None] == label[None, rows:]
    alone = np.bincount(label, minlength=rows + columns) <= 2
    return same & ~alone[label[:rows, None]]


def spread(errors: Sequence[float]) -> float:
    """The root mean square error, including bias. Infinite if an error is not finite."""
    largest = max(map(abs, errors), default=0.0)
    if any(map(math.isnan, errors)) or math.isinf(largest):
        return math.inf
    return largest and largest * math.sqrt(math.fsum((e / largest) ** 2 for e in errors) / len(errors))


@functools.cache
def _type_of_draw(draw: int) -> type[Noisy]:
    kind: Any = type(f"Noisy{draw}", (Noisy,), {"__slots__": ()})
    return kind  # type: ignore[no-any-return]


def noisy_type(seed: int, draw: int, form: Precision = DOUBLE) -> type[Noisy]:
    """The number type of this draw. Only one seed and arithmetic of a draw is in use at a time."""
    kind = _type_of_draw(draw)
    kind.stream = Stream(seed, draw, form)
    return kind
