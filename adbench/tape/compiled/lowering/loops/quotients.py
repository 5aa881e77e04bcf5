"""Quotients in the innermost loop with one division for several, and with none where the divisor is one number.

x / y is a product with 1/y. One correction with the rest x - q y makes it exact, but for rare last bits. The source:
P. Markstein (2000), "IA-64 and elementary functions".
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adbench.tape.compiled.kernels.mathematics.shared_functions import unless
from adbench.tape.compiled.lowering.loops.fused_steps import Delayed, FusedStep, Operand
from adbench.tape.compiled.lowering.storage import Registers, Uniform
from adbench.tape.machine.simd import SUBNORMAL, ZERO_OR_NOT_FINITE, Code, Name, Simd, literal


@dataclass
class Divisor:
    """A divisor that is the same in all elements: its name, that of 1/y, and of the condition for using 1/y."""

    y: Name
    inverse: Name
    usable: Name  # "true", or a name


class Quotients:
    """The part of `InnermostAxis` that writes quotients.

    divisors   the key of a quotient -> its divisor that is the same in all elements
    inverted   keys of other divisors whose inverse serves several quotients
    """

    code: Code
    divisors: dict[int, Divisor]
    inverted: set[Any]

    def _fixed(self, x: Operand) -> Name | None:
        raise NotImplementedError

    def _divisor(self, x: Operand) -> Divisor | None:
        y = self._fixed(x)
        if y is None:
            return None
        code, largest = self.code, 2.0**1021  # beyond it, 1/y loses digits
        if not y.startswith("%"):
            number = struct.unpack(">d", int(y, 16).to_bytes(8, "big"))[0]
            if not 1.0 / largest <= abs(number) <= largest:
                return None
            return Divisor(y, literal(1.0 / number), "true")
        one = Simd(code, 1)
        size = one.intrinsic("fabs", y)
        low, high = (one.compare(c, size, literal(z)) for c, z in (("oge", 1.0 / largest), ("ole", largest)))
        return Divisor(y, one.binary("fdiv", literal(1.0), y), code.emit(f"and i1 {low}, {high}"))

    def _quotient(self, k: Simd, step: FusedStep, x: Name) -> Name:
        """x / y as a product with 1/y. One correction with the rest x - q y makes it exact, but for rare last bits."""
        by = self.divisors[step.key]
        y, inverse = k.splat(by.y), k.splat(by.inverse)
        q = k.binary("fmul", x, inverse)
        if step.divides != "exact" or _is_power_of_two(by.y):
            return q
        return self._corrected(k, x, y, inverse, q)

    def _corrected(self, k: Simd, x: Name, y: Name, inverse: Name, q: Name) -> Name:
        rest = k.intrinsic("fmuladd", (-k.x(q)).name, y, x)
        corrected = k.intrinsic("fmuladd", rest, inverse, q)
        return k.select(k.is_one_of(ZERO_OR_NOT_FINITE, q), q, corrected)

    def _inverse(self, k: Simd, y: Name) -> tuple[Name, Name]:
        """1 / y of elements, and where it cannot replace the division: it is zero, subnormal, infinite or NaN."""
        inverse = k.binary("fdiv", k.constant(1.0), y)
        return inverse, k.is_one_of(ZERO_OR_NOT_FINITE | SUBNORMAL, inverse)

    def _by_inverse(self, k: Simd, step: FusedStep, names: Sequence[Name], of: tuple[Name, Name]) -> Name:
        """x / y of elements as a product with 1/y, corrected by its error; where 1/y is unusable, the quotient."""
        (x, y), (inverse, unusable) = names, of
        if _is_one(step.operands[0]):
            return inverse
        q = k.binary("fmul", x, inverse)
        if step.divides == "exact":
            q = self._corrected(k, x, y, inverse, q)
        return unless(k, unusable, [q], lambda: [k.binary("fdiv", x, y)])[0]


def _is_power_of_two(name: Name) -> bool:
    """Whether the name is a literal power of two, whose inverse is exact."""
    return not name.startswith("%") and int(name, 16) & (2**52 - 1) == 0


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
