"""One source along curves through the point: the coefficients of its value, in the arithmetic that they need.

A curve is x + Σ_p t^p v_p. With v alone, the coefficient of t is the derivative along v. Along x + t² v + t³ w the only
term of t^5 is the mixed one, wᵀ H v: no other derivative must be subtracted, and a zero is exactly zero.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adbench.oracle.leaves import FloatArray, Point
from adbench.oracle.series import ball, triangles
from adbench.oracle.series.ball import Arithmetic, Ball, NeedsBits, NeedsRoot, NeedsTerms, Special, arithmetic
from adbench.oracle.series.namespace import Balls, TooSlow, namespace_of
from adbench.oracle.series.number import Real, ball_of

Move = tuple[tuple[tuple[int, float], ...], ...]
"""A direction: for every leaf exact pairs of a flat index and a step."""

LEVELS = (
    Arithmetic(192),
    Arithmetic(192, exact=True),
    Arithmetic(400),
    Arithmetic(800),
    Arithmetic(1600),
    Arithmetic(3200),
)
"""Arithmetics, tried in this order until every number is resolved."""

MOST_ROOTS = 4
MOST_TERMS = 16
"""Factors of the number of terms that suffices if no leading coefficient vanishes."""


class NotTold(Exception):
    """The series cannot determine the coefficient; the message is the reason."""


@dataclass(frozen=True)
class Curve:
    """x + Σ t^power move; the powers are those of (power, move)."""

    moves: tuple[tuple[int, Move], ...]

    @staticmethod
    def straight(move: Move) -> Curve:
        """x + t v."""
        return Curve(((1, move),))

    @staticmethod
    def mixed(first: Move, second: Move) -> Curve:
        """x + t² v + t³ w, whose t^5 has the coefficient wᵀ H v."""
        return Curve(((2, first), (3, second)))

    @property
    def power(self) -> int:
        """The power of t whose coefficient is the derivative: of first order, or the mixed one."""
        return sum(power for power, _ in self.moves)

    @property
    def mirrored(self) -> Curve:
        """The curve from the other side."""
        return Curve(tuple((power, negative(move)) for power, move in self.moves))

    @property
    def others(self) -> tuple[Curve, ...]:
        """Curves with the same derivative, up to its sign, if it exists, and with other one-sided derivatives.

        For a mixed curve: the other side, exchanged directions, and other powers with one direction reversed: |x|^2.5
        has a term of t^5 too, but not of t^7.
        """
        if len(self.moves) < 2:
            return (self.mirrored,)
        (first, v), (second, w) = self.moves
        slanted = Curve(((3, v), (4, negative(w))))
        return self.mirrored, Curve(((first, w), (second, v))), slanted


def negative(move: Move) -> Move:
    """-v."""
    return tuple(tuple((index, -step) for index, step in part) for part in move)


@dataclass(frozen=True)
class Path:
    """The path along a curve: t = u^root, and this many terms of u; ``last``: no more terms are available."""

    root: int = 1
    more: int = 1
    last: bool = False


@dataclass(frozen=True)
class Evaluated:
    """The result of one evaluation for every examined number.

    coefficients  of the wanted power of t: a ball, an infinity, or None if it does not exist
    starts        the numbers at t = 0, as limits
    slopes        along a mixed curve the first-order coefficients, for either direction
    edged         the direction decided something: the other side may differ
    path, how     the arithmetic used
    """

    coefficients: tuple[Any, ...]
    starts: tuple[Ball, ...]
    slopes: tuple[tuple[Any, ...], ...]
    edged: bool
    path: Path
    how: Arithmetic


class Evaluations:
    """``text(xp, *arguments)`` at a point.

    numbers   result -> the examined balls
    deadline  in `time.thread_time`; later it raises TooSlow
    count     number of evaluations of the source
    branched  whether the source has branched on a number that moves along a curve
    """

    def __init__(
        self,
        text: Callable[..., Any],
        point: Point,
        deadline: float,
        numbers: Callable[[Any], list[Ball]],
    ) -> None:
        self.point, self.deadline, self.count, self.branched = point, deadline, 0, False
        self._text, self._numbers = text, numbers
        Balls.deepest = 0
        self._constants: dict[tuple[bool, type[Real], int], Any] = {}

    def along(self, curve: Curve, level: int = 0, guess: int | None = None) -> Evaluated:
        """The coefficients along a curve, at this level or at the first higher one that can compute them.

        guess: the answer of undecided comparisons.
        """
        path = Path()
        while True:
            depth = Balls.deepest
            try:
                return self.followed(curve, path, replace(LEVELS[level], guess=guess))
            except NeedsBits:
                level += 1
                if level == len(LEVELS):
                    raise
            except NeedsTerms:
                if Balls.deepest > depth:
                    continue
                if path.last:
                    raise NotTold("too many leading coefficients are zero") from None
                path = replace(path, more=2 * path.more) if path.more < MOST_TERMS else replace(path, last=True)
            except NeedsRoot as needed:
                if path.root * needed.root > MOST_ROOTS:
                    raise NotTold("it varies with a power that is not a simple fraction") from None
                path = replace(path, root=path.root * needed.root)

    def followed(self, curve: Curve, path: Path, how: Arithmetic, real: type[Real] = Real) -> Evaluated:
        """The result in exactly this arithmetic. Raises Insufficient if that is not enough, TooSlow after the
        deadline."""
        if time.thread_time() > self.deadline:
            raise TooSlow
        beyond = path.root if Balls.deepest else 1  # the powers of t of inner derivatives are whole, too
        terms = path.more * (curve.power * path.root + beyond) * 4**Balls.deepest
        how = replace(how, terms=terms, last=path.last)
        with arithmetic(how) as state:
            self.count += 1
            real.begin()
            result = self._run(self._moved(curve, path.root, how.exact, real), how.exact, real)
            self.branched = self.branched or state.branched
            if state.known <= curve.power * path.root:
                raise NeedsTerms
            lower = [power for power, _ in curve.moves] if len(curve.moves) > 1 else []
            coefficients = tuple(coefficient(number, curve.power, path, lower) for number in result)
            slopes = tuple(tuple(coefficient(number, power, path, lower) for power in lower) for number in result)
            return Evaluated(coefficients, tuple(map(ball.start, result)), slopes, state.edged, path, how)

    def _run(self, leaves: Sequence[Any], exact: bool, real: type[Real]) -> list[Ball]:
        xp = namespace_of(real)
        xp.deadline = self.deadline

        def constant(leaf: Any) -> Any:
            """Inactive floats and float arrays as Reals, converted once; anything else unchanged."""
            kind = getattr(getattr(leaf, "dtype", None), "kind", "f" if isinstance(leaf, float) else "")
            return self._reals(leaf, exact, real) if kind == "f" else leaf

        with np.errstate(all="ignore"):
            return self._numbers(self._text(xp, *self.point.replaced(leaves, constant)))

    def _reals(self, leaf: Any, exact: bool, real: type[Real]) -> Any:
        """A leaf as Reals, converted once and copied, because a source may write into its arguments."""
        key = exact, real, id(leaf)
        if key not in self._constants:
            # Keep the leaf, so that its id is not reused.
            self._constants[key] = namespace_of(real).reals(leaf), leaf
        reals = self._constants[key][0]
        return reals.copy() if isinstance(reals, np.ndarray) else reals

    def _moved(self, curve: Curve, root: int, exact: bool, real: type[Real]) -> list[Any]:
        """The active leaves along the curve, as Reals."""
        moved = []
        for which, leaf in enumerate(self.point.leaves):
            slopes: dict[int, dict[int, float]] = {}
            for power, move in curve.moves:
                for index, step in move[which]:
                    slopes.setdefault(index, {})[power * root] = step
            numbers = self._reals(leaf.values, exact, real)
            if slopes and not leaf.values.ndim:
                numbers = real(ball.moving(float(leaf.values), slopes[0]))
            else:
                for index, at in slopes.items():
                    numbers.flat[index] = real(ball.moving(float(leaf.values.flat[index]), at))
            moved.append(triangles.moved(which, numbers))
        return moved


def coefficient(number: Ball, power: int, path: Path, mixed: Sequence[int] = ()) -> Any:
    """The coefficient of t^power: a ball, None if the function is undefined, NaN if it is unknown.

    An infinity if there is a lower power that smooth functions lack; NaN on a mixed curve with these powers.
    Raises NeedsTerms if the series ends earlier, unless no more terms are available.
    """
    if isinstance(number, Special):
        if math.isnan(number.value) and not ball.is_lost(number):
            return None
        return math.nan if power else number.value
    if not ball.is_series(number):
        return ball.ZERO if power else number
    if power == 1:
        for lower in range(1, min(path.root, number.prec)):
            if sign := ball.sign_of_constant(number[lower]):
                return sign * math.inf if sign != 2 else None
    smooth = [path.root * lower for lower in (*mixed, *(2 * lower for lower in mixed))]
    for lower in range(1, min(power * path.root, number.prec) if mixed else 1):
        if lower not in smooth and not ball.ball(number[lower]).contains(0):
            return math.nan
    wanted = power * path.root
    if wanted < number.prec:
        return number[wanted]
    if not path.last:
        raise NeedsTerms
    return math.nan


def one_number(result: Any) -> list[Ball]:
    """The ball of a result that is a scalar, or an array with one entry. Raises TypeError for others."""
    if isinstance(result, np.ndarray) and result.size == 1:
        result = result.reshape(())[()]
    number = ball_of(result)
    if number is None:
        raise TypeError(f"the function must return one number, got {type(result).__name__}")
    return [number]


def one_entry(point: Point, leaf: int, index: int, step: float = 1.0) -> Move:
    """The move of one entry."""
    return tuple(((index, step),) if k == leaf else () for k in range(len(point.leaves)))


def many_entries(steps: Sequence[FloatArray | None]) -> Move:
    """The move along arrays of steps; zero: not moved."""
    return tuple(
        () if part is None else tuple((int(i), float(part.flat[i])) for i in np.flatnonzero(part)) for part in steps
    )
