"""Derivatives of a text to the last digit of float64: central differences at fifty digits, confirmed at seventy-five.

With h = 2^-56 |x| the truncation error is h² f''' / 6, relatively 1e-34, and rounding at 170 bits leaves 1e-33: the
float64 nearest to the quotient is the float64 nearest to the derivative. What could go wrong is tested, not assumed:

* digits cancelled inside the text: the value at 253 bits says how wrong the one at 170 bits is;
* steps that see another branch: the derivative along random directions, at 253 bits with h = 2^-83, must equal the
  sum of the entries to 18 digits; where not, every entry is taken again by itself;
* kinks: the one-sided quotients differ at both steps;
* power laws (x sqrt(x) at 0): the limit of four steps by Aitken's Δ².
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mpmath import libmp

from adbench.oracle.highprecision.evaluation import (
    COARSE,
    FINE,
    Move,
    Precision,
    Quotients,
    Runs,
    Text,
    one_entry,
)
from adbench.oracle.highprecision.real import NAN, ZERO, Raw
from adbench.oracle.reference import Known

UNSURE = Known(float("nan"), float("nan"), float("nan"), 0.0, "unsure")
LIMIT_POWERS = (60, 80, 100, 120)
LIMIT_BITS = 600
FINEST = (Precision(400, 130), Precision(1000, 300))


@dataclass(frozen=True)
class Settled:
    """A derivative, with the one-sided quotients (per unit) and the precision that could resolve it."""

    known: Known
    quotients: Quotients
    precision: Precision = COARSE


class Truth:
    """A text at both precisions, and what its differences say.

    which: which of the numbers that the runs examine. subtracts: the size of the numbers whose difference the text
    is, where it is known to be one.
    """

    def __init__(self, runs: Runs, which: int = 0, subtracts: float = 0.0) -> None:
        self.point = runs.point
        self._runs, self._which = runs, which
        self._subtracts = libmp.from_float(subtracts)
        self._texts: dict[Precision, Text] = {}

    @property
    def coarse(self) -> Text:
        """The text at the lower of the two precisions."""
        return self.text(COARSE)

    def text(self, precision: Precision) -> Text:
        """The text at any precision, made when first needed."""
        if precision not in self._texts:
            self._texts[precision] = Text(self._runs.plain(precision), self._which)
        return self._texts[precision]

    def value(self) -> Known:
        """f(x); its bar is what the last two precisions differ by."""
        before = self.coarse.centre
        for precision in (FINE, *FINEST):
            now = self.text(precision).centre
            if now == before or _bits_above(now, _gap(now, before)) >= 80:
                break
            before = now
        number = nearest(now)
        if not math.isfinite(number):
            return Known(number, number, 0.0, 0.0, "unknown" if math.isnan(number) else "infinite")
        return Known(number, number, nearest(_gap(now, before)))

    def entries(self, sample: Sequence[tuple[int, int]], seed: int) -> list[Settled]:
        """The derivatives in these (leaf, flat index)."""
        found: list[Settled | None] = []
        quotients: list[Quotients] = []
        moves = [one_entry(self.point, leaf, index) for leaf, index in sample]
        for move, exponent in moves:
            sides = _per_unit(self.coarse.quotients(move, COARSE.power), exponent)
            quotients.append(sides)
            special = self._special(move, exponent, sides)
            found.append(None if special is None else Settled(special, sides))
        # Left as None so far: entries that look smooth. They are confirmed together.
        smooth = [k for k, known in enumerate(found) if known is None]
        confirmed = self._confirmed([moves[k] for k in smooth], [quotients[k].central for k in smooth], seed)
        nothing = self._nothing([moves[k][0] for k in smooth if quotients[k].central == ZERO], seed)
        for k in smooth:
            central, resolution = quotients[k].central, self._resolution(moves[k][1])
            digits_left = _bits_above(central, resolution) >= 40 or (central == ZERO and nothing)
            if confirmed and digits_left:
                known = Known(nearest(central), nearest(central), 0.0 if central == ZERO else nearest(resolution))
                found[k] = Settled(known, quotients[k])
            else:
                found[k] = self._by_itself(*moves[k], quotients[k])
        return [settled for settled in found if settled is not None]

    def direction(self, move: Move) -> Settled:
        """The derivative along a move."""
        coarse = self.coarse.quotients(move, COARSE.power)
        fine = self.text(FINE).quotients(move, FINE.power)
        if NAN in (coarse.central, fine.central):
            return Settled(UNSURE, coarse)
        if _is_kink(coarse, fine):
            return Settled(_interval(fine, coarse), coarse)
        gap = _gap(coarse.central, fine.central)
        if _bits_above(fine.central, gap) < 40 and _bits_above(gap, self._resolution(0)) > 0:
            return Settled(UNSURE, coarse)
        # The truncation error falls with h²; the coarse one is 2^54 times the fine one, 2^10 is claimed.
        bar = nearest(libmp.mpf_add(libmp.mpf_shift(gap, -10), self._resolution(0, FINE)))
        return Settled(Known(nearest(fine.central), nearest(fine.central), bar), coarse)

    def _special(self, move: Move, exponent: int, sides: Quotients) -> Known | None:
        """The derivative where it is anything but plainly smooth; None where it looks smooth."""
        left, right = sides.left, sides.right
        if NAN in (left, right):
            return UNSURE if left == right else self._limit(move, exponent, 1 if left == NAN else -1)
        gap, resolution = _gap(left, right), self._resolution(exponent)
        if _bits_above(_larger(left, right), gap) >= 33 or not _bits_above(gap, resolution) > 3:
            return None
        fine = _per_unit(self.text(FINE).quotients(move, FINE.power), exponent)
        if NAN in (fine.left, fine.right):
            return UNSURE
        if not _is_kink(sides, fine):
            return None
        # Wiggles between the two steps look like a kink too; a kink is there at any step.
        finest = _per_unit(self.text(FINEST[0]).quotients(move, FINEST[0].power), exponent)
        return _interval(finest, fine) if _is_kink(fine, finest) else None

    def _confirmed(self, moves: Sequence[tuple[Move, int]], derivatives: Sequence[Raw], seed: int) -> bool:
        """Whether D_v f at the fine step is Σ D_i v_i for two random directions over the moved entries."""
        rng = np.random.default_rng([seed, 0xC0])
        for _ in range(min(2, len(moves))):
            flips = [bool(flip) for flip in rng.integers(0, 2, len(moves))]
            predicted = total = ZERO
            for (_, exponent), derivative, flip in zip(moves, derivatives, flips, strict=True):
                term = libmp.mpf_shift(libmp.mpf_neg(derivative) if flip else derivative, exponent)
                predicted = libmp.mpf_add(predicted, term)
                total = libmp.mpf_add(total, libmp.mpf_abs(term))
            together = _together([move for move, _ in moves], flips)
            found = self.text(FINE).quotients(together, FINE.power).central
            if found == NAN:
                return False
            gap = _gap(found, predicted)
            resolution = libmp.mpf_mul(libmp.from_int(len(moves)), self._resolution(0))
            if _bits_above(gap, resolution) > 0 and _bits_above(total, gap) < 60:
                return False
        return True

    def _nothing(self, moves: Sequence[Move], seed: int) -> bool:
        """Whether the moves together leave f unchanged to the last of three hundred digits.

        A zero at fifty digits may be a small derivative beside a large value.
        """
        if not moves:
            return True
        rng = np.random.default_rng([seed, 0x0])
        together = _together(moves, [bool(flip) for flip in rng.integers(0, 2, len(moves))])
        sides = self.text(FINEST[-1]).quotients(together, FINEST[-1].power)
        return bool(sides.left == ZERO and sides.right == ZERO)

    def _by_itself(self, move: Move, exponent: int, coarse: Quotients) -> Settled:
        """An entry that was not confirmed, or has few digits left: finer and finer, until two steps agree."""
        before, precision, sides = coarse.central, COARSE, coarse
        for precision in (FINE, *FINEST):
            sides = _per_unit(self.text(precision).quotients(move, precision.power), exponent)
            now = sides.central
            if now == NAN:
                return Settled(UNSURE, coarse)
            gap, resolution = _gap(before, now), self._resolution(exponent, precision)
            if _bits_above(now, resolution) >= 40 and _bits_above(now, gap) >= 40:
                bar = nearest(libmp.mpf_add(libmp.mpf_shift(gap, -10), resolution))
                return Settled(Known(nearest(now), nearest(now), bar), sides, precision)
            before = now
        if _bits_above(before, resolution) <= 3:  # nothing but rounding, however fine: a zero
            return Settled(Known(0.0, 0.0, nearest(resolution)), sides, precision)
        return Settled(self._limit(move, exponent, 0), coarse)

    def _limit(self, move: Move, exponent: int, side: int) -> Known:
        """The limit of quotients with ever smaller steps, from one side (±1) or central (0)."""
        text = self.text(Precision(LIMIT_BITS, LIMIT_POWERS[-1]))
        found = []
        for power in LIMIT_POWERS:
            if side:
                found.append(libmp.mpf_shift(text.quotient(move, power, side), -exponent))
            else:
                found.append(_per_unit(text.quotients(move, power), exponent).central)
        kind = "one-sided" if side else "smooth"
        if NAN in found:
            return UNSURE
        sizes = [libmp.mpf_abs(raw) for raw in found]
        if all(_bits_above(b, a) >= 2 for a, b in itertools.pairwise(sizes)):
            infinite = float("inf") * libmp.mpf_sign(found[-1])
            return Known(infinite, infinite, 0.0, 0.0, "infinite")
        first, second = _aitken(*found[:3]), _aitken(*found[1:])
        gap, left = _gap(first, second), _gap(second, found[-1])
        if gap != ZERO and _bits_above(left, gap) < 10:
            return UNSURE
        return Known(nearest(second), nearest(second), nearest(gap), 0.0, kind)

    def _resolution(self, exponent: int, precision: Precision = COARSE) -> Raw:
        """What rounding leaves of a quotient: 16 errors of a value, over h.

        The error of a value is measured: the coarse value against the fine one. A finer one has 2^-bits of it each.
        A difference may be exact there by luck, so the rounding of what it subtracts counts in any case.
        """
        rounded = _larger(self.coarse.centre, self._subtracts)
        error = _larger(libmp.mpf_shift(rounded, 1 - self.coarse.bits), self._error())
        return libmp.mpf_shift(error, COARSE.bits - precision.bits + 4 + precision.power - exponent)

    def _error(self) -> Raw:
        """The error of the coarse value, as the fine one shows it."""
        return _gap(self.coarse.centre, self.text(FINE).centre)


def _together(moves: Sequence[Move], flips: Sequence[bool]) -> Move:
    """The sum of moves of different entries, some with the other sign."""
    parts: list[dict[int, Raw]] = [{} for _ in moves[0]]
    for move, flip in zip(moves, flips, strict=True):
        for part, single in zip(parts, move, strict=True):
            for index, unit in (single or {}).items():
                part[index] = libmp.mpf_neg(unit) if flip else unit
    return tuple(part or None for part in parts)


def nearest(raw: Raw) -> float:
    """The nearest float64."""
    return float(libmp.to_float(raw, rnd="n"))


def _per_unit(sides: Quotients, exponent: int) -> Quotients:
    """Quotients per scale 2^exponent, turned into derivatives."""
    return Quotients(libmp.mpf_shift(sides.left, -exponent), libmp.mpf_shift(sides.right, -exponent))


def _gap(a: Raw, b: Raw) -> Raw:
    return libmp.mpf_abs(libmp.mpf_sub(a, b))


def _larger(a: Raw, b: Raw) -> Raw:
    a, b = libmp.mpf_abs(a), libmp.mpf_abs(b)
    return b if libmp.mpf_lt(a, b) else a


def _bits_above(a: Raw, b: Raw) -> float:
    """log2 |a / b|, to one bit; infinite for b = 0."""
    if b == ZERO:
        return float("inf") if a != ZERO else float("-inf")
    return float("-inf") if a == ZERO else (a[2] + a[3]) - (b[2] + b[3])


def _is_kink(coarse: Quotients, fine: Quotients) -> bool:
    """The gap of the one-sided quotients falls with h where f is smooth, by 2^-27 from coarse to fine."""
    before, after = _gap(coarse.left, coarse.right), _gap(fine.left, fine.right)
    seen = _bits_above(_larger(coarse.left, coarse.right), before) < 33
    return seen and _bits_above(before, after) < 3


def _interval(fine: Quotients, coarse: Quotients) -> Known:
    """[D-, D+] in order; infinite where the quotients grow from the coarse to the fine step."""
    if _bits_above(_larger(fine.left, fine.right), _larger(coarse.left, coarse.right)) > 8:
        return Known(float("-inf"), float("inf"), 0.0, 0.0, "infinite")
    ends = sorted((nearest(fine.left), nearest(fine.right)))
    moved = max(nearest(_gap(fine.left, coarse.left)), nearest(_gap(fine.right, coarse.right)))
    # One-sided quotients are off by h f'' / 2: 2^-27 or less of the coarser one's error.
    return Known(ends[0], ends[1], moved * 2.0**-20, 0.0, "kink")


def _aitken(a: Raw, b: Raw, c: Raw) -> Raw:
    """The limit of a geometric approach: c - (c - b)² / ((c - b) - (b - a))."""
    last, first = libmp.mpf_sub(c, b), libmp.mpf_sub(b, a)
    bend = libmp.mpf_sub(last, first)
    if bend == ZERO:
        return c
    return libmp.mpf_sub(c, libmp.mpf_div(libmp.mpf_mul(last, last), bend, LIMIT_BITS, "n"))
