"""The parts of fused loops: operations, reductions, and results that are read later."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adbench.tape.compiled.kernels.natives import maximum, minimum
from adbench.tape.compiled.lowering.storage import Buffer, Location
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd

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
