"""Proofs from coefficients along a curve: a number, the two ends of a kink, an infinity, or nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flint import arb, fmpq

from adbench.oracle.reference import UNKNOWN, Known
from adbench.oracle.series.ball import Arithmetic, Ball, NeedsBits, arithmetic
from adbench.oracle.series.evaluation import LEVELS, Curve, Evaluated, Evaluations, NotTold

RESOLVED_BITS = 64
"""A ball with this many correct bits determines a float64 number."""

SMALLEST_POWER = -1200
"""A ball within ±2^-1200 is zero in float64."""

COMPARING = Arithmetic(3300)
"""The arithmetic for coefficients of any precision."""

ANYTHING = Known(-math.inf, math.inf, 0.0, 0.0, "infinite")


@dataclass(frozen=True)
class Settled:
    """A derivative, and its ball with the evaluation that gave it (None if no ball did).

    mirrored: that evaluation was along the mirrored curve, and the ball is its coefficient with the opposite sign.
    """

    known: Known
    coefficient: Any = None
    evaluated: Evaluated | None = None
    mirrored: bool = False


class Truth:
    """Derivatives of all numbers of a source along curves."""

    def __init__(self, evaluations: Evaluations) -> None:
        self.evaluations, self.failures = evaluations, 0
        try:
            self.starts = self._resolved(Curve(()))
        except NeedsBits:
            ways = [_columns(evaluations.along(Curve(()), len(LEVELS) - 1, guess=guess)) for guess in (0, 1, -1)]
            self.starts = [
                zero if _meets(zero[0], a) and _meets(zero[0], b) else (None, zero[1])
                for zero, (a, _), (b, _) in zip(*ways, strict=True)
            ]

    @arithmetic(COMPARING)
    def derivatives(self, curve: Curve, scale: float = 1.0) -> list[Settled]:
        """The coefficient of the curve's power over ``scale``, a power of two, for every number.

        Those of a curve that does not move are the numbers at the point.
        """
        if not curve.moves:
            return [_settled(start, evaluated) for start, evaluated in self.starts]
        try:
            sides = self._sides(curve)
        except (NeedsBits, NotTold):
            return [Settled(UNKNOWN) for _ in self.starts]
        if len(sides) == 1:
            return [self._near(which, *one, scale) for which, one in enumerate(sides[0])]
        settle = self._on_a_line if len(curve.moves) == 1 else self._in_a_plane
        return [settle(which, [side[which] for side in sides], scale) for which in range(len(self.starts))]

    def _sides(self, curve: Curve) -> list[list[tuple[Any, Evaluated]]]:
        """For every number its coefficient, and on an edge those along the other curves too.

        A number that no precision distinguishes from zero counts as zero: then the point is on an edge.
        """
        try:
            near = self._resolved(curve)
            edged = any(evaluated.edged for _, evaluated in near)
            return [near, *map(self._resolved, curve.others)] if edged else [near]
        except NeedsBits:
            finest = len(LEVELS) - 1
            return [_columns(self.evaluations.along(way, finest, guess=0)) for way in (curve, *curve.others)]

    def _resolved(self, curve: Curve) -> list[tuple[Any, Evaluated]]:
        """For every number its coefficient and the evaluation that resolved it, at the lowest level that does."""
        best = _columns(self.evaluations.along(curve))
        level = LEVELS.index(replace(best[0][1].how, terms=3, last=False)) if best else len(LEVELS)
        while not all(is_resolved(value) for value, _ in best) and level + 1 < len(LEVELS) and self.failures < 3:
            level += 1
            finer = _columns(self.evaluations.along(curve, level))
            best = [old if is_resolved(old[0]) else new for old, new in zip(best, finer, strict=True)]
            self.failures += level + 1 == len(LEVELS) and not all(is_resolved(value) for value, _ in best)
        return best

    def _near(self, which: int, value: Any, evaluated: Evaluated, scale: float) -> Settled:
        """A derivative on no edge; unknown where the number just after the point is another one than at the point.

        (-1) ** x is 1 at 0 and undefined next to it, and there a branch of `where` may give a number.
        """
        here, near = self.starts[which][0], evaluated.starts[which]
        if _is_ball(here) and _is_ball(near) and not _meets(here, near):
            return Settled(UNKNOWN)
        return _settled(value, evaluated, scale)

    def _on_a_line(self, which: int, sides: Sequence[tuple[Any, Evaluated]], scale: float) -> Settled:
        """A first-order derivative from both sides."""
        (value, evaluated), (turned, other_evaluated) = sides
        other = _opposite(turned)
        if _is_nan(value) or _is_nan(other) or value is None is other:
            return Settled(UNKNOWN)
        here = self.starts[which][0]
        continuous = [_meets(here, at.starts[which]) for a, at in sides if a is not None]
        if not all(continuous):
            return self._at_a_jump((value, evaluated), (other, other_evaluated), scale, alone=not any(continuous))
        if value is None or other is None:
            known = _settled(other, other_evaluated, scale) if value is None else _settled(value, evaluated, scale)
            known = replace(known, mirrored=value is None)
            one_sided = known.known.kind == "smooth"
            return replace(known, known=replace(known.known, kind="one-sided")) if one_sided else known
        if not (_is_ball(value) and _is_ball(other)):
            same = not _is_ball(value) and not _is_ball(other) and value == other
            return Settled(Known(value, value, 0.0, 0.0, "infinite") if same else ANYTHING)
        if _meets(value, other):
            return _settled(value, evaluated, scale)
        return _between(_settled(value, evaluated, scale), _settled(other, other_evaluated, scale))

    def _at_a_jump(
        self, one: tuple[Any, Evaluated], other: tuple[Any, Evaluated], scale: float, *, alone: bool
    ) -> Settled:
        """A slope between those of both sides; also 0 if the value belongs to neither, as of sign at 0."""
        if not (_is_ball(one[0]) and _is_ball(other[0])):
            return Settled(ANYTHING)
        ends = _settled(*one, scale), _settled(*other, scale)
        if not alone:
            return ends[0] if _meets(one[0], other[0]) else _between(*ends)
        slope = _between(*ends)
        known = replace(slope.known, lower=min(0.0, slope.known.lower), upper=max(0.0, slope.known.upper))
        return replace(slope, known=known)

    def _in_a_plane(self, which: int, sides: Sequence[tuple[Any, Evaluated]], scale: float) -> Settled:
        """A second-order derivative from all sides: equal on all, or nonexistent."""
        here, (value, evaluated) = self.starts[which][0], sides[0]
        near, mirrored, swapped, slanted = (at.slopes[which] for _, at in sides)
        first = [*zip(near, map(_opposite, mirrored), strict=True), *zip(near, reversed(swapped), strict=True)]
        first += zip(near, (slanted[0], _opposite(slanted[1])), strict=True)
        second = [(value, other) for other, _ in sides[1:3]] + [(value, _opposite(sides[3][0]))]
        smooth = all(_is_ball(a) and _is_ball(b) and _meets(a, b) for a, b in first + second)
        same = smooth and all(_meets(here, at.starts[which]) for _, at in sides)
        return _settled(value, evaluated, scale) if same else Settled(UNKNOWN)


def is_resolved(value: Any) -> bool:
    """Whether its float64 is certain; infinities and None are."""
    if not isinstance(value, arb):
        return True
    if value.is_zero() or value.rel_accuracy_bits() >= RESOLVED_BITS or not value.is_finite():
        return True
    return bool(value.abs_upper() < arb(2) ** SMALLEST_POWER)


def _columns(evaluated: Evaluated) -> list[tuple[Any, Evaluated]]:
    return [(value, evaluated) for value in evaluated.coefficients]


def _is_ball(value: Any) -> bool:
    return isinstance(value, (arb, fmpq))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _opposite(value: Any) -> Any:
    return None if value is None else -value


def _meets(a: Ball, b: Ball) -> bool:
    """Whether both may be equal."""
    if not (_is_ball(a) and _is_ball(b)):
        return type(a) is type(b) and getattr(a, "value", a) == getattr(b, "value", b)
    return bool(arb(a).overlaps(arb(b)))


def _settled(value: Any, evaluated: Evaluated, scale: float = 1.0) -> Settled:
    """A coefficient over a power of two, as float64 with the width of its ball."""
    if value is None or _is_nan(value) or (_is_ball(value) and not arb(value).is_finite()):
        return Settled(UNKNOWN)
    if isinstance(value, float):
        return Settled(Known(value, value, 0.0, 0.0, "infinite"), None, evaluated)
    scaled = arb(value) / arb(scale)
    if scaled.contains(0) and not scaled.is_zero():
        middle, width = 0.0, float(scaled.abs_upper())
    else:
        middle, width = float(scaled), float(scaled.rad())
    kind = "smooth" if math.isfinite(middle) else "infinite"
    return Settled(Known(middle, middle, width if kind == "smooth" else 0.0, 0.0, kind), value, evaluated)


def _between(*ends: Settled) -> Settled:
    """The interval between the derivatives of both sides of a kink."""
    known = [end.known for end in ends]
    lower, upper = min(one.lower for one in known), max(one.upper for one in known)
    return Settled(
        Known(lower, upper, max(one.bar for one in known), 0.0, "kink"), ends[0].coefficient, ends[0].evaluated
    )
