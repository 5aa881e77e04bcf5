"""What the coefficients along a curve prove: a number, the two ends of a kink, an infinity, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flint import arb, fmpq

from adbench.oracle.reference import Known
from adbench.oracle.series.ball import Arithmetic, Ball, NeedsBits, arithmetic
from adbench.oracle.series.evaluation import LEVELS, Curve, Evaluations, Found, NotTold

RESOLVED_BITS = 64
"""A ball with so many correct bits is a number of float64 for certain."""

SMALLEST_POWER = -1200
"""A ball between ±2^-1200 is zero for float64."""

COMPARING = Arithmetic(3300)
"""For what is done with coefficients of any precision."""

UNKNOWN = Known(math.nan, math.nan, math.nan, 0.0, "unknown")
ANYTHING = Known(-math.inf, math.inf, 0.0, 0.0, "infinite")


@dataclass(frozen=True)
class Settled:
    """A derivative as it is known, and as a ball with the evaluation that gave it (None where no ball did).

    mirrored: that evaluation was along the mirrored curve, and the ball is its coefficient with the other sign.
    """

    known: Known
    coefficient: Any = None
    found: Found | None = None
    mirrored: bool = False


class Truth:
    """Derivatives of all numbers of a text along curves."""

    def __init__(self, evaluations: Evaluations) -> None:
        self.evaluations, self.failures = evaluations, 0
        try:
            self.starts = self._resolved(Curve(()))
        except NeedsBits:
            one, other = map(_columns, evaluations.guessed(Curve(())))
            self.starts = [a if _meets(a[0], b[0]) else (None, a[1]) for a, b in zip(one, other, strict=True)]

    def values(self) -> list[Settled]:
        """The numbers at the point."""
        with arithmetic(COMPARING):
            return [_settled(start, found) for start, found in self.starts]

    def derivatives(self, curve: Curve, scale: float = 1.0) -> list[Settled]:
        """The coefficient of the curve's power over ``scale``, a power of two, for every number."""
        with arithmetic(COMPARING):
            return self._derivatives(curve, scale)

    def _derivatives(self, curve: Curve, scale: float) -> list[Settled]:
        try:
            near = self._resolved(curve)
        except NotTold:
            return [Settled(UNKNOWN) for _ in self.starts]
        except NeedsBits:
            return [_either(pair) for pair in zip(*map(_columns, self.evaluations.guessed(curve)), strict=True)]
        if not any(found.edged for _, found in near):
            return [_settled(value, found, scale) for value, found in near]
        sides = [near]
        for other in [curve.mirrored] + ([curve.swapped] if len(curve.moves) > 1 else []):
            try:
                sides.append(self._resolved(other))
            except (NeedsBits, NotTold):
                return [Settled(UNKNOWN) for _ in near]
        flip = -1 if curve.power % 2 and len(curve.moves) == 1 else 1
        return [self._from_sides(which, sides, flip, scale) for which in range(len(near))]

    def _resolved(self, curve: Curve) -> list[tuple[Any, Found]]:
        """For every number its coefficient and the evaluation that resolved it, at the lowest level that does."""
        best = _columns(self.evaluations.along(curve))
        level = LEVELS.index(replace(best[0][1].how, terms=3, last=False)) if best else len(LEVELS)
        while not all(is_resolved(value) for value, _ in best) and level + 1 < len(LEVELS) and self.failures < 3:
            level += 1
            finer = _columns(self.evaluations.along(curve, level))
            best = [old if is_resolved(old[0]) else new for old, new in zip(best, finer, strict=True)]
            self.failures += level + 1 == len(LEVELS) and not all(is_resolved(value) for value, _ in best)
        return best

    def _from_sides(self, which: int, sides: Sequence[Any], flip: int, scale: float) -> Settled:
        """One number from the evaluations of either side."""
        (value, found), others = sides[0][which], [side[which] for side in sides[1:]]
        here = self.starts[which][0]
        whole = [_meets(here, at.starts[which]) for _, at in ((value, found), *others) if at.starts]
        turned = [_times(other, flip) for other, _ in others]
        if len(sides) > 2:  # of second order: all alike, or it does not exist
            same = all(whole) and all(_meets(value, other) for other in turned) and _is_straight(which, found, sides[1])
            return _settled(value, found, scale) if same else Settled(UNKNOWN)
        (other,) = turned
        if value is None or other is None:
            if value is None and other is None:
                return Settled(UNKNOWN)
            single, source = (other, others[0][1]) if value is None else (value, found)
            known = replace(_settled(single, source, scale), mirrored=value is None)
            return replace(known, known=replace(known.known, kind="one-sided")) if _is_ball(single) else known
        if not all(whole):
            return Settled(ANYTHING)
        if not (_is_ball(value) and _is_ball(other)):
            same = not _is_ball(value) and not _is_ball(other) and value == other
            return Settled(Known(value, value, 0.0, 0.0, "infinite") if same else ANYTHING)
        if _meets(value, other):
            return _settled(value, found, scale)
        return _between(_settled(value, found, scale), _settled(other, others[0][1], scale))


def _is_straight(which: int, found: Found, mirrored: Sequence[tuple[Any, Found]]) -> bool:
    """Whether the derivatives of first order along a mixed curve are the same from both sides."""
    pairs = zip(found.slopes[which], mirrored[which][1].slopes[which], strict=True)
    return all(_meets(slope, _times(other, -1)) for slope, other in pairs)


def is_resolved(value: Any) -> bool:
    """Whether its float64 is certain; an infinity and None are what they are."""
    if not isinstance(value, arb):
        return True
    if value.is_zero() or value.rel_accuracy_bits() >= RESOLVED_BITS or not value.is_finite():
        return True
    return bool(value.abs_upper() < arb(2) ** SMALLEST_POWER)


def _columns(found: Found) -> list[tuple[Any, Found]]:
    return [(value, found) for value in found.coefficients]


def _is_ball(value: Any) -> bool:
    return isinstance(value, (arb, fmpq))


def _times(value: Any, factor: int) -> Any:
    return None if value is None else value * factor


def _meets(a: Ball, b: Ball) -> bool:
    """Whether both may be the same number."""
    if not (_is_ball(a) and _is_ball(b)):
        return type(a) is type(b) and getattr(a, "value", a) == getattr(b, "value", b)
    return bool(arb(a).overlaps(arb(b)))


def _settled(value: Any, found: Found, scale: float = 1.0) -> Settled:
    """A coefficient over a power of two, as float64 with the width of its ball."""
    if value is None or (_is_ball(value) and not arb(value).is_finite()):
        return Settled(UNKNOWN)
    if isinstance(value, float):
        return Settled(Known(value, value, 0.0, 0.0, "infinite"), None, found)
    scaled = arb(value) / arb(scale)
    if scaled.contains(0) and not scaled.is_zero():
        middle, width = 0.0, float(scaled.abs_upper())
    else:
        middle, width = float(scaled), float(scaled.rad())
    kind = "smooth" if math.isfinite(middle) else "infinite"
    return Settled(Known(middle, middle, width if kind == "smooth" else 0.0, 0.0, kind), value, found)


def _between(*ends: Settled) -> Settled:
    """Anything between: the derivatives of both sides of a kink."""
    known = [end.known for end in ends]
    lower, upper = min(one.lower for one in known), max(one.upper for one in known)
    return Settled(Known(lower, upper, max(one.bar for one in known), 0.0, "kink"), ends[0].coefficient, ends[0].found)


def _either(ways: Sequence[tuple[Any, Found]]) -> Settled:
    """From both answers to a comparison that no precision decides: the point is on a kink, if they differ."""
    found = [_settled(value, way) for value, way in ways]
    if any(math.isnan(one.known.size) for one in found):
        return Settled(UNKNOWN)
    return found[0] if found[0].known == found[1].known else _between(*found)
