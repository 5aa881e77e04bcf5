"""References of second order, from the mixed coefficient of the source on power series (`adbench.oracle.series`).

H v is the gradient of x -> D_v f(x), and H the Jacobian of the gradient: both are references like those of first order.
If f's source does not run on series, second order comes from second differences in double precision, if the effort
allows that; otherwise it is unknown and the verdict blind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from adbench.oracle.differences import Line, curvature, slope
from adbench.oracle.leaves import DIRECTION, FloatArray, Point, output_weights, power_of_two
from adbench.oracle.precise import FEWEST_DRAWS, NOISY_COST, TOO_LONG, NotPrecise, SeriesExamination, on_series, unit
from adbench.oracle.reference import UNIT_ROUNDOFF, UNKNOWN, Known, Reference, Row
from adbench.oracle.series.evaluation import Curve, many_entries
from adbench.oracle.subject import SUMS, Effort, ExaminedNumbers, Subject, along_line, chosen_entries

MOST_ROWS = 64
"""The most rows of a Hessian examined individually."""

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, MOST_ROWS)

SECOND_DIFFERENCES = "nine-point second differences in double precision"
EVALUATIONS_PER_CURVATURE = 100

PATIENCE = 6.0
"""A Hessian may take this many times as long as another reference, because it has n times the numbers."""


def hvp_reference(subject: Subject, first: Row, effort: Effort) -> Reference:
    """The reference of x -> D_v f(x), whose gradient is H v; f is a scalar.

    first   f's own row
    """
    move = many_entries(subject.point.steps(effort.seed, DIRECTION))

    def examine(examination: SeriesExamination) -> Reference:
        row = examination.rows(examination.planned(), move)[0]
        # v is as large as x, so that H v is as large as the gradient.
        floor = UNIT_ROUNDOFF * _largest([*row.derivatives, *first.derivatives])
        return Reference((), ((0, row.with_derivatives(lambda known, *_: _with_floor(known, floor))),))

    try:
        return on_series(subject, effort, examine)
    except NotPrecise as error:
        reason = str(error)
    if effort.second_differences:
        return _Bends(subject, effort, reason).hvp()
    chosen = chosen_entries(subject.point.sizes, effort.max_entries, effort.seed)
    return Reference((), ((0, _unknown_row(subject.point, effort.seed, chosen, reason)),))


def hessian_reference(subject: Subject, effort: Effort) -> Reference:
    """The reference of the gradient as an array of all active entries, in order; its Jacobian is H.

    Examines some rows and columns of H individually (all up to `MOST_ROWS`, if there is time), and wᵀ H for random
    vectors w.
    """
    total = sum(subject.point.sizes)

    def examine(examination: SeriesExamination) -> Reference:
        return _hessian(examination, min(total, MOST_ROWS, _affordable_rows(examination.affordable)))

    if not total:
        return Reference((0,), (), (_unknown_row(subject.point, effort.seed, [[] for _ in subject.point.sizes], ""),))
    try:
        return on_series(subject, replace(effort, max_seconds=PATIENCE * effort.max_seconds), examine)
    except NotPrecise as error:
        reason = str(error)
    if effort.second_differences:
        return _Bends(subject, effort, reason).hessian()
    (rows,) = chosen_entries([total], MOST_ROWS, effort.seed)
    row = _unknown_row(subject.point, effort.seed, _by_leaf(subject.point, rows), reason)
    return Reference((total,), tuple((index, row) for index in rows))


class _Bends:
    """Second derivatives of a black box: uᵀ H w = ¼ (D²f(u + w) - D²f(u - w)), each from nine points along a line."""

    def __init__(self, subject: Subject, effort: Effort, reason: str) -> None:
        self.point, self.effort, self.reason = subject.point, effort, reason
        (self.f,) = ExaminedNumbers((), effort).functions(subject.plain)
        self.total, self.calls = sum(self.point.sizes), 0

    def hvp(self) -> Reference:
        """The reference of x -> D_v f(x)."""
        affordable = max(1, self.effort.max_evaluations // (2 * EVALUATIONS_PER_CURVATURE))
        chosen = chosen_entries(self.point.sizes, min(self.effort.max_entries, affordable), self.effort.seed)
        v = self.point.steps(self.effort.seed, DIRECTION)
        entries = [self.mixed(v, self.point.unit(k, index)) for k, indices in enumerate(chosen) for index in indices]
        return Reference((), ((0, self.row(self.slope(v), chosen, entries)),))

    def hessian(self) -> Reference:
        """The reference of the gradient as an array."""
        affordable = math.isqrt(self.effort.max_evaluations // EVALUATIONS_PER_CURVATURE)
        (chosen,) = chosen_entries([self.total], max(1, min(self.total, MOST_ROWS, affordable)), self.effort.seed)
        units = [self.point.unit(*place) for place in _places(self.point, chosen)]
        leaves = _by_leaf(self.point, chosen)
        pairs = {(i, j): self.mixed(units[i], units[j]) for i, j in combinations_with_replacement(range(len(units)), 2)}

        def row(i: int) -> Row:
            return self.row(self.slope(units[i]), leaves, [pairs[min(i, j), max(i, j)] for j in range(len(units))])

        rows = tuple((index, row(i)) for i, index in enumerate(chosen))
        if len(chosen) == self.total:
            return Reference((self.total,), rows)
        sums = []
        for number in range(SUMS):
            w = _parts(self.point, output_weights(self.effort.seed, number, (self.total,)))
            sums.append(self.row(self.slope(w), leaves, [self.mixed(w, u) for u in units]))
        return Reference((self.total,), rows, tuple(sums))

    def row(self, value: Known, chosen: list[list[int]], entries: list[Known]) -> Row:
        """The row of these numbers."""
        row = self.point.row(self.effort.seed, value, chosen, entries)
        return replace(row, method=SECOND_DIFFERENCES, reason=self.reason, evaluations=self.calls)

    def slope(self, direction: list[FloatArray]) -> Known:
        """The derivative along a direction."""
        length = self.length(direction)
        line = self.line([part * length for part in direction])
        derivative = slope(line, 1.0)
        self.calls += line.evaluations
        lower, upper, bar = (x / length for x in (derivative.lower, derivative.upper, derivative.bar))
        return Known(lower, upper, bar, 0.0, derivative.kind)

    def mixed(self, u: list[FloatArray], w: list[FloatArray]) -> Known:
        """uᵀ H w."""
        scales = self.length(u), self.length(w)
        ends = []
        for sign in (1.0, -1.0):
            steps = [scales[0] * a + sign * scales[1] * b for a, b in zip(u, w, strict=True)]
            if not any(step.any() for step in steps):  # u - w of two equal vectors
                ends.append((0.0, 0.0))
                continue
            line = self.line(steps)
            bend = curvature(line)
            self.calls += line.evaluations
            ends.append((bend.lower, bend.bar))
        factor = 4 * scales[0] * scales[1]
        middle, bar = (ends[0][0] - ends[1][0]) / factor, (ends[0][1] + ends[1][1]) / factor
        return UNKNOWN if math.isnan(middle) or math.isnan(bar) else Known(middle, middle, bar)

    def length(self, direction: list[FloatArray]) -> float:
        """The length of a step: an entry changes by about its own size."""
        sizes = [
            _size_of(self.point, k, int(index)) / abs(part.flat[index])
            for k, part in enumerate(direction)
            for index in np.flatnonzero(part)
        ]
        return power_of_two(min(sizes, default=1.0))

    def line(self, step: list[FloatArray]) -> Line:
        """f on the line through the point."""
        return Line(along_line(self.f, self.point, step))


def _affordable_rows(evaluations: float) -> int:
    """The number of rows and columns, in steps, so that a slightly slower machine takes the same sample."""
    pairs = evaluations / (1 + NOISY_COST * FEWEST_DRAWS)
    rows = int(math.sqrt(2 * pairs + (SUMS + 1.5) ** 2) - (SUMS + 1.5))
    if rows < 1:
        raise NotPrecise(TOO_LONG)
    return max(step for step in STEPS if step <= rows)


def _hessian(examination: SeriesExamination, count: int) -> Reference:
    """H at this many entries, each pair once, and the sums."""
    point, seed = examination.point, examination.effort.seed
    total = sum(point.sizes)
    (chosen,) = chosen_entries([total], count, seed)
    units = [unit(point, *place, examination.effort.precision) for place in _places(point, chosen)]
    sums = [(many_entries(_parts(point, output_weights(seed, number, (total,)))), 1.0) for number in range(SUMS)]
    pairs = list(combinations_with_replacement(range(len(chosen)), 2))
    pairs += [(len(chosen) + number, column) for number in range(SUMS) for column in range(len(chosen))]
    all_moves = units + sums
    wanted = [(Curve.straight(move), step) for move, step in all_moves]
    wanted += [(Curve.mixed(all_moves[i][0], all_moves[j][0]), all_moves[i][1] * all_moves[j][1]) for i, j in pairs]
    known = [of_curve[0] for of_curve in examination.known(wanted, FEWEST_DRAWS)]
    values, of_pairs = known[: len(all_moves)], dict(zip(pairs, known[len(all_moves) :], strict=True))
    leaves = _by_leaf(point, chosen)
    scales = [_size_of(point, *place) for place in _places(point, chosen)] + [1.0] * SUMS
    # Relative to x, so that entries of all inputs are comparable.
    relative = [scales[i] * scales[j] * _largest([one]) for (i, j), one in of_pairs.items()]
    floor = UNIT_ROUNDOFF * max(
        [*relative, *(scale * _largest([one]) for scale, one in zip(scales, values, strict=True))]
    )

    def row(i: int) -> Row:
        entries = [of_pairs[(i, j) if (i, j) in of_pairs else (j, i)] for j in range(len(chosen))]
        floored = [_with_floor(one, floor / scales[i] / scales[j]) for j, one in enumerate(entries)]
        return examination.named(point.row(seed, values[i], leaves, floored), FEWEST_DRAWS)

    rows = [row(i) for i in range(len(all_moves))]
    return Reference((total,), tuple(zip(chosen, rows, strict=False)), tuple(rows[len(chosen) :]))


def _with_floor(known: Known, floor: float) -> Known:
    """A true zero with the noise of the numbers around it.

    A program usually computes it as the difference of such numbers: our zeros may be cancelled rounding errors
    elsewhere.
    """
    return replace(known, noise=max(known.noise, floor)) if known.size == 0 else known


def _largest(known: Iterable[Known]) -> float:
    """The size of the largest finite number, or 0."""
    return max((one.size for one in known if math.isfinite(one.size)), default=0.0)


def _places(point: Point, chosen: list[int]) -> Iterator[tuple[int, int]]:
    """(leaf, index in it) of flat indices through all active leaves."""
    starts = np.cumsum([0, *point.sizes])
    for flat in chosen:
        leaf = int(np.searchsorted(starts, flat, side="right")) - 1
        yield leaf, flat - int(starts[leaf])


def _size_of(point: Point, leaf: int, index: int) -> float:
    """The power of two at or below |x|; 1 for zero."""
    x = float(point.leaves[leaf].values.flat[index])
    return power_of_two(x) if x != 0 and math.isfinite(x) else 1.0


def _by_leaf(point: Point, chosen: list[int]) -> list[list[int]]:
    """The chosen indices of each leaf."""
    indices: list[list[int]] = [[] for _ in point.sizes]
    for leaf, index in _places(point, chosen):
        indices[leaf].append(index)
    return indices


def _unknown_row(point: Point, seed: int, chosen: list[list[int]], reason: str) -> Row:
    row = point.row(seed, UNKNOWN, chosen, [UNKNOWN for indices in chosen for _ in indices])
    return replace(row, reason=reason)


def _parts(point: Point, weights: FloatArray) -> list[FloatArray]:
    """The weights as one array for each leaf."""
    parts = np.split(weights, np.cumsum(point.sizes)[:-1])
    return [part.reshape(leaf.values.shape) for part, leaf in zip(parts, point.leaves, strict=True)]
