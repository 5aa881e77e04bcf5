"""The truth of a definition with many numbers, proved: every entry by midpoint and radius in float64, and by balls.

Both evaluate the definition and its reverse sweep as a whole. The enclosures bound every number to about 2^-40. Balls
of 64 bits bound them again, independently of BLAS and of float64, up to as many numbers on the way as take half a
minute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.execution.precision.called_kernel import Numbers
from adbench.functions.declared_constants import declaring
from adbench.functions.user_function import UserFunction, told
from adbench.model.errors import Unsupported, contained
from adbench.oracle.enclosures.ball_arrays import BITS, BallArray
from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.enclosed_row import METHOD
from adbench.oracle.enclosures.midpoint_radius import Enclosure
from adbench.oracle.enclosures.recorded import EnclosedArray, TooManyNumbers, gradient
from adbench.oracle.enclosures.rounded_arrays import RoundedArray
from adbench.oracle.series import triangles
from adbench.oracle.series.ball import Arithmetic, arithmetic

MOST: Mapping[Any, int] = {Enclosure: 200_000_000, BallArray: 25_000_000}
"""Numbers on the way to the value: with more, enclosures take too much memory, and balls too much time."""

CONVENTIONS: Mapping[str, Mapping[str, triangles.Convention]] = {
    "torch": {"cholesky": "symmetrised"},
    "jax": {"cholesky": "unsymmetrised"},
}
"""How the gradients of libraries read symmetric matrices; the others read one triangle."""

Bounds = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


@dataclass(frozen=True)
class Enclosed:
    """The value and the gradient: midpoints, and radii; how balls bound the same numbers, in words.

    shifts      see `Enclosures`
    of_balls    midpoints and radii by balls; none if there are too many numbers
    """

    mids: Numbers
    radii: Numbers
    balls: str
    shifts: dict[int, bool]
    of_balls: Bounds = field(default_factory=list)

    @property
    def tightest(self) -> tuple[Numbers, Numbers]:
        """Midpoints and radii by enclosures or by balls, whichever bound the number more tightly."""
        pairs = list(zip(self.mids, self.radii, strict=True))
        tight = [
            (np.where(radius < rad, middle, mid), np.minimum(radius, rad))
            for (mid, rad), (middle, radius) in zip(pairs, self.of_balls or pairs, strict=True)
        ]
        return tuple(mid for mid, _ in tight), tuple(rad for _, rad in tight)

    @staticmethod
    def of(definition: UserFunction, leaves: Sequence[Any], weights: Any) -> Enclosed:
        """Raises Unsupported with the reason if some number is not enclosed."""
        shifts = dict[int, bool]()
        try:
            found = evaluated(Enclosure, definition, leaves, weights, shifts)
        except TooManyNumbers as error:
            raise Unsupported(str(error)) from error
        mids, radii = (tuple(each) for each in zip(*found, strict=True))
        total, lacking = sum(map(np.size, mids)), sum(int((~np.isfinite(part)).sum()) for part in radii)
        if lacking:
            raise Unsupported(f"{lacking:,} of {total:,} numbers are not enclosed")
        try:
            with arithmetic(Arithmetic(BITS)):
                again = evaluated(BallArray, definition, leaves, weights)
        except TooManyNumbers as error:
            return Enclosed(mids, radii, f"balls confirm none: {error}", shifts)
        if not all(np.isfinite(radius).all() for _, radius in again):
            return Enclosed(mids, radii, "balls confirm none: some of their radii are infinite", shifts)
        if not _meet(found, again):
            raise Unsupported("enclosures in float64 contradict balls: BLAS does not add as IEEE 754 does")
        return Enclosed(mids, radii, f"balls of {BITS} bits confirm them all", shifts, again)

    def told(self, names: Sequence[str]) -> str:
        """Which numbers are proved how, for a note below the table."""
        parts = zip(("the value", *names), self.mids, self.radii, strict=True)
        sizes = ", ".join(f"{np.size(mid):,} of {name}" for name, mid, _ in parts)
        pairs = [(rad[mid != 0], np.abs(mid[mid != 0])) for mid, rad in zip(self.mids, self.radii, strict=True)]
        typical = np.median(np.concatenate([[2.0**-53], *(rad / size for rad, size in pairs)]))
        return f"{METHOD} prove {sizes}, to 2^{np.log2(typical):.0f} in the median; {self.balls}"


def evaluated(
    kind: Any, definition: UserFunction, leaves: Sequence[Any], weights: Any, shifts: dict[int, bool] | None = None
) -> Bounds:
    """Midpoints and radii of the value, and of the gradient by each active leaf, in this arithmetic.

    Raises Unsupported if numbers that the definition declares constant change them, unlike the largest in a softmax, or
    if a matrix of which it reads one triangle is not symmetric.
    """
    conventions = CONVENTIONS.get(definition.library.name, {})
    with declaring(str, held=True) as declared, triangles.watching() as read, triangles.reading(conventions):
        bounds = _evaluated(kind, definition, leaves, weights, shifts)
    if declared.met and kind is Enclosure:
        with declaring(str, held=False), triangles.reading(conventions):
            moving = _evaluated(kind, definition, leaves, weights, None)
        if not _meet(bounds, moving):
            raise Unsupported(f"it declares numbers constant: {declared}")
    if not all(read.values()) and kind is Enclosure:
        raise Unsupported(f"it reads one triangle of a matrix that is not symmetric: {', '.join(read)}")
    return bounds


def rounded(
    f: UserFunction, leaves: Sequence[Any], weights: Any, seed: Sequence[int], shifts: dict[int, bool]
) -> Numbers:
    """The value and the gradient with each operation rounded at random in the precision of the function."""
    bounds = evaluated(RoundedArray.drawn(f.precision, seed), f, leaves, weights, shifts)
    return tuple(mid for mid, _ in bounds)


def _meet(some: Bounds, others: Bounds) -> bool:
    pairs = zip(some, others, strict=True)
    return all((np.abs(mid - middle) <= rad + radius).all() for (mid, rad), (middle, radius) in pairs)


def _evaluated(
    kind: Any, definition: UserFunction, leaves: Sequence[Any], weights: Any, shifts: dict[int, bool] | None
) -> Bounds:
    EnclosedArray.begin(MOST.get(kind, math.inf))
    active = definition.arguments.active
    numbers: list[Any] = [EnclosedArray(kind.of(leaf), is_input=True) if name in active else leaf
                          for name, leaf in zip(definition.arguments.names, leaves, strict=True)]  # fmt: skip
    inputs = [one for one in numbers if isinstance(one, EnclosedArray)]
    try:
        with contained(), np.errstate(all="ignore"):
            xp = Enclosures(kind, shifts=shifts)
            value = xp.of(definition.text(leaves)(xp, *numbers))
            parts = gradient(value, kind.of(np.broadcast_to(weights, value.shape)), inputs)
            return [part.bounds() for part in (value.value, *parts)]
    except (TooManyNumbers, Unsupported):
        raise
    except Exception as error:  # an operation that takes arrays apart, or one that is unknown
        raise Unsupported(told(error)) from error
