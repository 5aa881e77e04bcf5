"""Derivatives that a program's branches hide: the proved derivative against the change of the values.

A power series follows one branch of a program. Where each branch is constant, as in a bisection, a search in a table or
a quantised number, the derivative along the branch is 0, while the function that the program computes is smooth to
rounding. So every proved derivative of a program that compares or rounds active numbers is held against differences of
its values at steps far above rounding.

The values decide if three coarse steps in a row, none a multiple of another, agree to three digits, and so do the
slopes from both sides: at a kink or a step, as of relu or round, they do not. The proved derivative stays if the values
follow it at small steps and do not jump: then the coarse steps only miss how f oscillates, or a flat part of it.

An iteration that stops at a tolerance jumps, too. Its own derivative and that of the exact solution differ by about the
tolerance, and both count as right. A loop in a function with its own derivative rule shows the second one if it
continues: see `with_continued`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise

from adbench.oracle.differences import CENTRAL_GROWTH, Line, central_slope, forward_slope, noise_of
from adbench.oracle.evidence import SIGMAS, entry_name
from adbench.oracle.leaves import Point
from adbench.oracle.reference import UNIT_ROUNDOFF, Known, Row
from adbench.oracle.series.truth import ANYTHING
from adbench.oracle.subject import along_line

COARSE = (0.02 * math.e, 0.007 * math.pi, 0.006 * math.sqrt(2), 0.002 * math.sqrt(3), 0.0004 * math.pi)
SMALL = tuple(2.0**-power for power in (20, 25, 30, 35, 38))
"""Steps relative to the number that moves. The coarse ones are on no binary or decimal grid of rounded numbers, and
the small ones far above rounding."""

FOUR_POINTS = (2 / 3, -1 / 12)
AGREE, ALIKE, NEARER = 1e-3, 1e-2, 0.1
"""Relative distances: of the coarse steps' slopes, of the slopes from both sides, and of a small step's slope from the
proved one, in distances of the coarse steps' slope."""

SCREENED = 1e-5
"""A four-point slope this near to the proved derivative, of a value without jumps, needs no other step."""

QUIET = 1e-9
"""A slope of the values whose relative error is less comes from steps without jumps: these are farther away."""

ROUGH = 1e4 * UNIT_ROUNDOFF
"""A value whose distance from a smooth curve is a larger share of it has a jump, a kink, or changes fast."""

ZOOMS, SETTLED, LATER, PERSISTS = 30, 12, 4, 0.25
"""Halvings of an interval around a jump. From `SETTLED` of them on, `LATER` more must leave this share of it; of a kink
they leave 2^-4, of a curve less."""

TOLERANCE = 1e-2
"""The largest relative difference of the two derivatives of an iteration that stops at a tolerance."""

BARS = 10.0


@dataclass
class StoppedLoops:
    """Loops that stop at a tolerance inside a function with its own derivative rule, which is that of the solution.

    met        one has run
    continued  how many times they run for as many steps again
    """

    met: bool = False
    continued: int = 0


STOPPED: ContextVar[StoppedLoops | None] = ContextVar("stopped", default=None)


def with_continued(row: Row, continued: Row, twice: Row) -> Row:
    """The row whose derivatives may also be those of the solution, to which the continued loops are closer.

    Without convergence, as of a loop over time, the row is unchanged. A derivative may be as far from the continued
    one, relative to the largest, as the loop's own of any entry is.
    """
    known, others = row.derivatives, [one.lower for one in continued.derivatives]
    distances = [max(abs(one.lower - x), abs(one.upper - x)) for one, x in zip(known, others, strict=True)]
    most, largest = max(distances, default=0.0), max(map(abs, others), default=0.0)
    resolved = any(apart > SIGMAS * one.noise for apart, one in zip(distances, known, strict=True))
    later = max((abs(one.lower - x) for one, x in zip(twice.derivatives, others, strict=True)), default=0.0)
    if not (resolved and most <= TOLERANCE * largest and later <= NEARER * most):
        return row
    near = iter((x, max(apart, most * abs(x) / largest)) for x, apart in zip(others, distances, strict=True))

    def widened(one: Known, *_: int) -> Known:
        x, apart = next(near)
        return replace(one, lower=min(one.lower, x - apart), upper=max(one.upper, x + apart))

    return row.with_derivatives(widened)


@dataclass(frozen=True)
class ContradictedDerivative:
    """A derivative that the values contradict: its leaf and entry, its name, the proved number, that of the values."""

    leaf: int
    index: int
    where: str
    along_branch: float
    of_values: float

    def __str__(self) -> str:
        along = "does not exist" if math.isnan(self.along_branch) else f"is {self.along_branch:.8g}"
        return f"along a branch the derivative in {self.where} {along}, that of the values is {self.of_values:.8g}"


def settled_by_values(
    row: Row, f: Callable[..., float], point: Point, most: int
) -> tuple[Row, list[ContradictedDerivative]]:
    """The row with the derivative of the values wherever they contradict the proved one, and these places.

    f      the row's number, in double precision
    most   the most evaluations of f
    """
    hidden: list[ContradictedDerivative] = []
    lines: list[Line] = []

    def values(leaf: int, index: int) -> _Values:
        step, size = point.step(row.seed, leaf, index)
        lines.append(Line(along_line(f, point, step)))
        return _Values(lines[-1], size or 1.0)

    jumps = values(-1, 0).jump

    def decided(known: Known, leaf: int, index: int) -> Known:
        is_decidable = known.kind in ("smooth", "kink") or known == ANYTHING
        if not is_decidable or sum(line.evaluations for line in lines) >= most:
            return known
        settled = values(leaf, index).settled(known, jumps=jumps)
        if settled is not known and settled.lower == settled.upper:  # in an interval both count
            place = row.leaves[leaf]
            where = entry_name(place.path, index, place.shape) if leaf >= 0 else f"direction {index}"
            along = known.lower if known.upper - known.lower < AGREE * known.size or known.size == 0 else math.nan
            hidden.append(ContradictedDerivative(leaf, index, where, along, settled.lower))
        return settled

    return row.with_derivatives(decided), hidden


def slope_of_values(line: Line, size: float) -> tuple[float, float] | None:
    """The slope at 0 of values along a line, and its error; None if coarse steps do not decide it."""
    return _Values(line, size or 1.0)._slope(math.nan)


@dataclass(frozen=True)
class _Values:
    """The values along a line, where t is added to a number of this size."""

    line: Line
    size: float

    def settled(self, known: Known, *, jumps: bool) -> Known:
        """The proved derivative, or that of the values if they contradict it; an interval of both if they jump."""
        proved = math.nan if known == ANYTHING else (known.lower + known.upper) / 2
        if not jumps and abs(self._screened() - proved) <= SCREENED * abs(proved):
            return known
        seen = self._slope(proved)
        if seen is None:
            return known
        of_values, bar = seen
        if known.kind == "kink" and known.lower <= of_values <= known.upper:
            return known
        differ = abs(of_values - proved)
        if jumps and differ <= BARS * bar <= QUIET * abs(proved):
            return known
        if jumps and differ <= TOLERANCE * max(abs(of_values), abs(proved)):
            return replace(known, lower=min(of_values, proved), upper=max(of_values, proved), bar=bar, kind="unsure")
        if differ <= BARS * bar or (self._follow(proved, differ) and not self.jump):
            return known
        return Known(of_values, of_values, bar, 0.0, "unsure")

    @property
    def jump(self) -> bool:
        """Whether the values jump near the point, by more than rounding explains."""
        return any(self._jumps_within(step) for step in COARSE)

    def _jumps_within(self, step: float) -> bool:
        """Whether a jump is left in the part with the largest fourth difference, halved again and again."""
        middle, sizes = 0.0, list[float]()
        for zoom in range(ZOOMS):
            values = self._nine(step, middle)
            fourth = [abs(sum(math.comb(4, j) * (-1) ** j * values[k + j] for j in range(5))) for k in range(5)]
            sizes.append(largest := max(fourth))
            if not largest > max(ROUGH * abs(values[4]), PERSISTS * sizes[-1 - LATER] if zoom >= SETTLED else 0.0):
                return False
            middle += (fourth.index(largest) - 2) * step
            step /= 2
        return True

    def _nine(self, step: float, middle: float = 0.0) -> list[float]:
        return [self.line((middle + k * step) * self.size) for k in range(-4, 5)]

    def _screened(self) -> float:
        h = COARSE[1] * self.size
        return sum(w * (self.line(k * h) - self.line(-k * h)) for k, w in enumerate(FOUR_POINTS, 1)) / h

    def _slope(self, proved: float) -> tuple[float, float] | None:
        """The slope of the values and its error, from three coarse steps in a row; None if they do not decide."""
        slopes: list[tuple[float, float]] = []  # and their rounding errors
        for step in COARSE:
            values, h = self._nine(step), step * self.size
            if not all(map(math.isfinite, values)):
                slopes.clear()
                continue
            rounding = max(noise_of(values), UNIT_ROUNDOFF * max(map(abs, values)))
            slopes.append((central_slope(values, h), CENTRAL_GROWTH * rounding / h))
            last, sides = slopes[-3:], abs(forward_slope(values[4:], h) - forward_slope(values[4::-1], -h))
            size = max(*(abs(slope) for slope, _ in last), 0.0 if math.isnan(proved) else abs(proved))
            if len(last) == 3 and max(last)[0] - min(last)[0] <= AGREE * size and sides <= ALIKE * size:
                bars = [(abs(slope - before) + error, slope) for (before, _), (slope, error) in pairwise(last)]
                bar, slope = min(bars)
                return slope, bar
        return None

    def _follow(self, proved: float, differ: float) -> bool:
        """Whether the values change by the proved derivative at two small steps, which differs so much from theirs.

        Around the point, or on one side of it, as at a node of a table.
        """
        here, before = self.line(0.0), [False] * 3
        for share in SMALL:
            step = share * self.size
            up, down = self.line(step) - here, here - self.line(-step)
            resolved = UNIT_ROUNDOFF * abs(here) / step < NEARER * differ
            slopes = (up + down) / (2 * step), up / step, down / step
            near = [resolved and abs(slope - proved) < NEARER * differ for slope in slopes]
            if any(one and other for one, other in zip(before, near, strict=True)):
                return True
            before = near
        return False
