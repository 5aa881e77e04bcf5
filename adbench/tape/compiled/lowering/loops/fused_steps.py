"""The parts of fused loops: operations, reductions, results that are read later, and quotients.

Quotients have one division for several, and none where the divisor is one number. x / y is a product with 1/y. One
correction with the rest x - q y makes it exact, but for rare last bits. The source: P. Markstein (2000), "IA-64 and
elementary functions".
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from adbench.tape.compiled.kernels.mathematics.shared_functions import unless
from adbench.tape.compiled.kernels.natives import maximum, minimum
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Uniform
from adbench.tape.machine.simd import SUBNORMAL, WIDTH, ZERO_OR_NOT_FINITE, Code, Name, Simd, literal

FARTHEST = WIDTH
"""The most elements by which a value can be read later."""


@dataclass(frozen=True)
class Reduction:
    """A reduction: its initial value and its operation."""

    start: float
    join: Callable[[Simd, Name, Name], Name]


SUM = Reduction(0.0, lambda k, a, b: k.binary("fadd", a, b))
PRODUCT = Reduction(1.0, lambda k, a, b: k.binary("fmul", a, b))
MAXIMUM = Reduction(-math.inf, maximum)
MINIMUM = Reduction(math.inf, minimum)


@dataclass(frozen=True)
class Delayed:
    """Another operation's result `by` elements earlier; `fill` where it has no such element."""

    key: int
    by: int
    fill: float


Delay = tuple[int, float]  # the key and the fill of a `Delayed`
Operand = int | Delayed | Location
"""The key of an operation in the same loops, also of earlier elements, or an outside value."""


@dataclass
class FusedStep:
    """One operation of fused loops.

    key        names its result
    stores     arrays to write the result to
    divides    "" or, for a quotient x / y, how exact it must be if y is the same in all elements of the axis: "exact",
               or "product" if x · (1/y) will do, within 1.5 units in the last place
    length     of its axis, if other operations in these loops have a longer one
    multiplies whether it is a product of its operands, or the square of its operand
    """

    key: int
    write: Callable[..., Name]
    operands: Sequence[Operand]
    boolean: bool = False
    stores: list[Buffer] = field(default_factory=list)
    divides: str = ""
    length: int = 0
    multiplies: bool = False

    def reads(self) -> set[int]:
        """The keys of the operations that it reads."""
        return {x.key if isinstance(x, Delayed) else x for x in self.operands if isinstance(x, (int, Delayed))}


@dataclass
class Fold:
    """A reduction of a step's result or an array into `target`, whose strides are 0 along the reduced axes.

    counts   None, or whether to count true or false elements
    length   as of a step
    """

    how: Reduction
    operand: int | Location
    target: Buffer
    counts: bool | None = None
    length: int = 0


def joined(code: Code, how: Reduction, parts: list[Name]) -> Name:
    """The reduction of vectors of partial sums: neighbours first, then halves of the lanes."""
    k = Simd(code, WIDTH)
    while len(parts) > 1:
        parts = [how.join(k, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    (total,) = parts
    while k.width > 1:
        half = k.width // 2
        low, high = (k.shuffled(total, "poison", lanes) for lanes in (range(half), range(half, k.width)))
        if half == 1:
            low, high = (code.emit(f"extractelement <1 x double> {x}, i64 0") for x in (low, high))
        k = Simd(code, half)
        total = how.join(k, low, high)
    return total


@dataclass
class Divisor:
    """A divisor that is the same in all elements: its name, that of 1/y, and of the condition for using 1/y."""

    y: Name
    inverse: Name
    usable: Name  # "true", or a name

    def quotient(self, k: Simd, x: Name, *, exactly: bool) -> Name:
        """x / y as a product with 1/y."""
        y, inverse = k.splat(self.y), k.splat(self.inverse)
        q = k.binary("fmul", x, inverse)
        is_power_of_two = not self.y.startswith("%") and int(self.y, 16) & (2**52 - 1) == 0  # its inverse is exact
        return _corrected(k, x, y, inverse, q) if exactly and not is_power_of_two else q


def common_divisor(code: Code, y: Name) -> Divisor | None:
    """The divisor of this name; None if 1/y loses digits."""
    largest = 2.0**1021
    if not y.startswith("%"):
        number = struct.unpack(">d", int(y, 16).to_bytes(8, "big"))[0]
        return Divisor(y, literal(1.0 / number), "true") if 1.0 / largest <= abs(number) <= largest else None
    one = Simd(code, 1)
    size = one.intrinsic("fabs", y)
    low, high = (one.compare(c, size, literal(z)) for c, z in (("oge", 1.0 / largest), ("ole", largest)))
    return Divisor(y, one.binary("fdiv", literal(1.0), y), code.emit(f"and i1 {low}, {high}"))


def _corrected(k: Simd, x: Name, y: Name, inverse: Name, q: Name) -> Name:
    """The quotient q with one correction by the rest x - q y: exact, but for rare last bits."""
    rest = k.intrinsic("fmuladd", (-k.x(q)).name, y, x)
    corrected = k.intrinsic("fmuladd", rest, inverse, q)
    return k.select(k.is_one_of(ZERO_OR_NOT_FINITE, q), q, corrected)


def inverse_of(k: Simd, y: Name) -> tuple[Name, Name]:
    """1 / y of elements, and where it cannot replace the division: it is zero, subnormal, infinite or NaN."""
    inverse = k.binary("fdiv", k.constant(1.0), y)
    return inverse, k.is_one_of(ZERO_OR_NOT_FINITE | SUBNORMAL, inverse)


def by_inverse(k: Simd, step: FusedStep, names: Sequence[Name], of: tuple[Name, Name]) -> Name:
    """x / y of elements as a product with 1/y, corrected by its error; where 1/y is unusable, the quotient."""
    (x, y), (inverse, unusable) = names, of
    if _is_one(step.operands[0]):
        return inverse
    q = k.binary("fmul", x, inverse)
    if step.divides == "exact":
        q = _corrected(k, x, y, inverse, q)
    return unless(k, unusable, [q], lambda: [k.binary("fdiv", x, y)])[0]


def _is_one(x: Operand) -> bool:
    if isinstance(x, Registers):
        return x.elements == (literal(1.0),)
    return isinstance(x, Uniform) and x.element == literal(1.0)


def divisor_of(step: FusedStep) -> Any:
    """A key of a quotient's divisor, with the length of its axis."""
    y = step.operands[1]
    return y if isinstance(y, (int, Delayed)) else id(y), step.length


def inverted(steps: Sequence[FusedStep]) -> set[Any]:
    """The divisors of several quotients, one of them 1/y: one division serves all."""
    quotients = [step for step in steps if step.divides]
    counts = Counter(map(divisor_of, quotients))
    return {of for of in map(divisor_of, filter(lambda s: _is_one(s.operands[0]), quotients)) if counts[of] > 1}
