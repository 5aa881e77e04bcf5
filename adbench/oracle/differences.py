"""Central differences in double precision with an error estimate: the oracle's weaker method, for black boxes.

    f'(0) ≈ 1/h Σ_k w_k (f(kh) - f(-kh)),  k = 1..4,  w = 4/5, -1/5, 4/105, -1/280

(nine points with the centre, error h^8 f^(9) / 630; Fornberg (1988), table 1). Steps h are halved from large to small,
so that half of the points are shared. Each step has two error estimates: truncation by comparison with the neighbouring
steps, rounding by the size of f over h. The step with the smallest sum wins, but only if every smaller step agrees. If
f is smooth only nearby (an `if`, one more loop iteration), large steps agree with each other and are all wrong.

Near the end of f's domain the steps shrink until they stay inside. Where the steps do not converge, as beside a pole or
at a square root's zero, the derivative is unknown.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adbench.oracle.reference import UNIT_ROUNDOFF, UNKNOWN, Known

CENTRAL_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
SECOND_WEIGHTS = (8 / 5, -1 / 5, 8 / 315, -1 / 560)
FORWARD_WEIGHTS = (-25 / 12, 4.0, -3.0, 4 / 3, -1 / 4)

# Sum of |weights| of both signs: the factor from a rounding error of f to one of h f'.
CENTRAL_GROWTH = 2 * sum(map(abs, CENTRAL_WEIGHTS))
FORWARD_GROWTH = sum(map(abs, FORWARD_WEIGHTS))
SECOND_GROWTH = 4 * sum(map(abs, SECOND_WEIGHTS))

# The smallest step, in halvings of the scale of x; below it only rounding is left of f'.
DEEPEST = 26
LONGEST_LADDER = 64
"""The most steps that are tried, at four to eight evaluations each."""

INSIDE = 10
"""Steps that are tried inside the domain, however small, down to `CLOSEST` halvings of the scale of x."""
CLOSEST = 50

CONVERGED, STEADY, STEADY_STEPS = 1 / 25, 0.9, 5
"""Estimates have no limit if they change by more than `CONVERGED` of their size, and the changes of the following steps
have the same sign and are at least `STEADY` times the one before. Changes by rounding have random signs."""

SMALLER = 3
"""Halvings from a step to the steps that measure its noise, where differences of a smooth curve have vanished."""


class Line:
    """f along a line, t -> f(x + t d), with cached values; results that are not finite real numbers count as NaN."""

    def __init__(self, f: Callable[[float], float]) -> None:
        self._f = f
        self._values: dict[float, float] = {}

    def __call__(self, t: float) -> float:
        """f at t, evaluated once."""
        if t not in self._values:
            value = self._f(t)
            self._values[t] = value if math.isfinite(value) else math.nan
        return self._values[t]

    @property
    def evaluations(self) -> int:
        """The number of calls of f."""
        return len(self._values)


@dataclass(frozen=True)
class _Rung:
    """One step of the ladder: the estimate, and the error that rounding alone explains.

    noise: distance of the values from a smooth curve, by their highest difference; for large steps the curve's own.
    """

    step: float
    derivative: float
    rounding: float
    noise: float = 0.0


def slope(line: Line, size: float) -> Known:
    """The derivative of t -> f(t) at 0, where t is added to a number of magnitude ``size`` (0: no magnitude).

    "unknown" if no step gives a finite answer.
    """
    if not math.isfinite(line(0.0)):
        return UNKNOWN
    small = size if 0 < size < 1 else max(1.0, size)
    if _kinked(line, small):
        sides = [_chosen(_ladder(line, size, side)) for side in (-1.0, 1.0)]
        return _interval(sides, "kink")
    best = _chosen(_ladder(line, size, 0.0))
    if best is not None:
        return _interval([best], "smooth")
    sides = [_chosen(_ladder(line, size, side)) for side in (-1.0, 1.0)]
    return _interval(sides, "one-sided")


def curvature(line: Line) -> Known:
    """The second derivative of t -> f(t) at 0, from nine points, where t is added to a number of about one.

    "unknown" if f or its slope has a kink there.
    """
    if math.isfinite(line(0.0)) and not _kinked(line, 1.0) and not _bent(line):
        floor = SECOND_GROWTH * _quantum(line)
        rungs = _ladder(line, 1.0, 0.0, _second)
        best = _chosen([replace(rung, rounding=max(rung.rounding, floor / rung.step**2)) for rung in rungs])
        if best is not None:
            return _interval([best], "smooth")
    return UNKNOWN


def _interval(pairs: list[tuple[float, float] | None], kind: str) -> Known:
    finite = [pair for pair in pairs if pair is not None]
    if not finite:
        return UNKNOWN
    derivatives, bars = zip(*finite, strict=True)
    return Known(min(derivatives), max(derivatives), max(bars), kind=kind)


def _ladder(
    line: Line, size: float, side: float, central: Callable[[Line, float, float], _Rung] | None = None
) -> list[_Rung]:
    """Estimates at h = S/4, S/8, ...: central for side 0, else from that side only (side = ±1)."""
    central = central or _central
    largest = math.ldexp(1.0, math.frexp(max(1.0, size))[1] - 3)
    scale = size if size > 0 else 1.0
    rungs: list[_Rung] = []
    best_error, risen, inside = math.inf, 0, 0
    step = largest if side else _inside(line, largest, scale)
    while len(rungs) < LONGEST_LADDER:
        # Where most steps left the domain, smaller ones on both sides may stay inside.
        if step < scale * 2.0 ** -(CLOSEST if side == 0 and inside < INSIDE else DEEPEST):
            break
        rung = central(line, step, size) if side == 0 else _one_sided(line, step * side, size)
        rungs.append(rung)
        inside += math.isfinite(rung.derivative)
        if len(rungs) >= 2:
            error = abs(rung.derivative - rungs[-2].derivative) + rung.rounding
            # Smaller steps only increase rounding. But a rise that rounding does not explain is a jump nearby, and
            # smaller steps avoid it.
            worse = error > 4 * best_error and error < 1e3 * rung.rounding
            risen = risen + 1 if worse else 0
            if risen == 4 and (central is _second or _holds_below(line, rungs, side, size)):
                break
            best_error = min(best_error, error) if math.isfinite(error) else best_error
        step /= 2
    order, growth = (2, SECOND_GROWTH) if central is _second else (1, FORWARD_GROWTH if side else CENTRAL_GROWTH)
    smaller = [rungs[min(k + SMALLER, len(rungs) - SMALLER) :] for k in range(len(rungs))]
    return [_with_noise(*pair, growth, order) for pair in zip(rungs, smaller, strict=True)]


def _inside(line: Line, step: float, scale: float) -> float:
    """The first step, of this one and ever smaller ones, whose points are in the domain; else this one."""
    inside = step
    while not (math.isfinite(line(4 * inside)) and math.isfinite(line(-4 * inside))):
        inside /= 8
        if inside < scale * 2.0**-CLOSEST:
            return step
    return inside


def _with_noise(rung: _Rung, smaller: list[_Rung], growth: float, order: int) -> _Rung:
    """The rung with a rounding error that covers the noise at smaller steps.

    A function with float32 inside, or with an iteration to a tolerance, is far noisier than double precision.
    """
    noise = max((other.noise for other in smaller if math.isfinite(other.noise)), default=0.0)
    return replace(rung, rounding=max(rung.rounding, growth * noise / rung.step**order))


def _holds_below(line: Line, rungs: list[_Rung], side: float, size: float) -> bool:
    """Whether much smaller steps agree with the best of the larger ones, within rounding.

    On a smooth trend with a fine sawtooth (a loop with one more iteration every thousandth), large steps agree to
    twelve digits on the trend's slope, which is not the slope at the point.
    """
    best = min(itertools.pairwise(rungs), key=lambda pair: _gap(*pair))
    answer, error = best[1].derivative, _gap(*best)
    step = rungs[-1].step / 8
    while step > 0:
        probe = _central(line, step, size) if side == 0 else _one_sided(line, step * side, size)
        rounding = 100 * probe.rounding  # a value of thousands of operations has many rounding errors
        if not rounding < 1e-8 * abs(answer):
            return True
        if abs(probe.derivative - answer) > 10 * error + rounding:
            return False
        step /= 8
    return True


def _gap(before: _Rung, rung: _Rung) -> float:
    """Estimated error of a rung: the change from the previous step, plus rounding; infinite if NaN."""
    error = abs(rung.derivative - before.derivative) + rung.rounding
    return error if math.isfinite(error) else math.inf


def central_slope(values: Sequence[float], step: float) -> float:
    """The slope in the middle of nine equally spaced values; NaN if one of them is not finite."""
    if not all(map(math.isfinite, values)):
        return math.nan
    return math.fsum(w * (values[4 + k] - values[4 - k]) for k, w in enumerate(CENTRAL_WEIGHTS, 1)) / step


def forward_slope(values: Sequence[float], step: float) -> float:
    """The slope at the first of five equally spaced values; NaN if one of them is not finite."""
    if not all(map(math.isfinite, values)):
        return math.nan
    return math.fsum(w * value for w, value in zip(FORWARD_WEIGHTS, values, strict=True)) / step


def _central(line: Line, step: float, size: float) -> _Rung:
    values = [line(k * step) for k in range(-4, 5)]
    derivative, largest = central_slope(values, step), max(map(abs, values[:4] + values[5:]))
    return _Rung(step, derivative, _rounding(largest, derivative, step, size, CENTRAL_GROWTH), noise_of(values))


def _second(line: Line, step: float, size: float) -> _Rung:
    """A central difference for the second derivative, with its rounding error and its noise."""
    values = [line(k * step) for k in range(-4, 5)]
    if not all(map(math.isfinite, values)):
        return _Rung(step, math.nan, math.nan, math.nan)
    centre, largest = values[4], max(map(abs, values[:4] + values[5:]))
    pairs = enumerate(SECOND_WEIGHTS, 1)
    sums = math.fsum(w * ((values[4 + k] - centre) + (values[4 - k] - centre)) for k, w in pairs)
    # Includes the rounding of each point x + kh, which is a rounding of t.
    rounding = UNIT_ROUNDOFF * (SECOND_GROWTH * (largest + abs(centre)) + 4 * size * abs(sums)) / step**2
    return _Rung(step, sums / step**2, rounding, noise_of(values))


def _quantum(line: Line) -> float:
    """The smallest change of f near 0; if f is flat there, as at a minimum, small steps see no other noise."""
    centre, largest = line(0.0), 0.0
    for side in (1.0, -1.0):
        near, far = 60, 2  # exponents: f is assumed constant for t below 2^-near, and different beyond 2^-far
        while near - far > 1:
            middle = (near + far) // 2
            near, far = (near, middle) if line(side * 2.0**-middle) != centre else (middle, far)
        change = abs(line(side * 2.0**-far) - centre)
        largest = max(largest, change) if math.isfinite(change) else largest
    return largest


def _bent(line: Line) -> bool:
    """Whether f has no second derivative at 0: with small steps those of the two sides differ, or both grow."""
    gaps, middles, centre = [], [], line(0.0)
    for power in (7, 9, 11):
        step = math.ldexp(1.0, -power)
        sides = [2 * centre - 5 * line(k * step) + 4 * line(2 * k * step) - line(3 * k * step) for k in (1, -1)]
        gaps.append(abs(sides[0] - sides[1]) / step**2)
        middles.append((line(step) - 2 * centre + line(-step)) / step**2)
    if not all(map(math.isfinite, (*gaps, *middles))):
        return True
    noise = 50 * 24 * UNIT_ROUNDOFF * max(abs(line(k * step)) for k in (-3, 0, 3)) / step**2
    first, last = (abs(after - before) for before, after in itertools.pairwise(middles))
    return gaps[2] > max(noise, 0.5 * gaps[0]) or last > max(noise, 0.3 * first)


def _one_sided(line: Line, step: float, size: float) -> _Rung:
    values = [line(k * step) for k in range(5)]
    derivative, largest = forward_slope(values, step), max(map(abs, values))
    return _Rung(step, derivative, _rounding(largest, derivative, abs(step), size, FORWARD_GROWTH), noise_of(values))


def noise_of(values: Sequence[float]) -> float:
    """The standard deviation of random errors that explains the highest difference of equally spaced values.

    Hamming's difference table (Moré and Wild 2011): the k-th difference of a smooth curve vanishes with its step; that
    of independent errors has the variance (2k)! / (k!)^2.
    """
    order = len(values) - 1
    highest = math.fsum((-1) ** k * math.comb(order, k) * value for k, value in enumerate(values))
    return abs(highest) / math.sqrt(math.comb(2 * order, order))


def _rounding(largest: float, derivative: float, step: float, size: float, growth: float) -> float:
    """Error of the estimate if each f and each point x + kh has one rounding error."""
    return UNIT_ROUNDOFF * (growth * largest + abs(derivative) * (size + 4 * step)) / step


def _chosen(rungs: list[_Rung]) -> tuple[float, float] | None:
    """(derivative, bar) of the step with the least estimated error that no smaller step contradicts; None if the steps
    do not converge."""
    judged: list[tuple[float, float]] = []
    for before, rung, after in zip(rungs, rungs[1:], rungs[2:], strict=False):
        gaps = [abs(rung.derivative - near.derivative) for near in (before, after)]
        # At the edge of f's domain the larger step has no result; only the smaller neighbour counts.
        known = [gap for gap in gaps if math.isfinite(gap)]
        bar = max(known) + rung.rounding if known else math.nan
        judged.append((rung.derivative, bar))
    finite = [pair for pair in judged if all(map(math.isfinite, pair))]
    best: tuple[float, float] | None = None
    for k, (derivative, bar) in enumerate(finite):
        agrees = all(abs(derivative - other) <= 10 * (bar + error) for other, error in finite[k + 1 :])
        if agrees and (best is None or bar < best[1]):
            best = (derivative, bar)
    return None if best is not None and _diverges(rungs, best[0]) else best


def _diverges(rungs: list[_Rung], derivative: float) -> bool:
    """Whether this estimate and those of the next smaller steps change much in one direction, and no less each time."""
    which = max(k for k, rung in enumerate(rungs) if rung.derivative == derivative)
    following = [rung.derivative for rung in rungs[which : which + STEADY_STEPS + 1] if math.isfinite(rung.derivative)]
    changes = [after - before for before, after in itertools.pairwise(following)]
    return (
        len(changes) > 1
        and abs(changes[0]) > max(CONVERGED * abs(derivative), rungs[which].rounding)
        and all(last * change > 0 and abs(change) > STEADY * abs(last) for last, change in itertools.pairwise(changes))
    )


def _kinked(line: Line, scale: float) -> bool:
    """Whether f has a kink at 0: (f(h) - 2 f(0) + f(-h)) / h falls with h where f is smooth, and stays at a kink."""
    centre = line(0.0)
    jumps = []
    for power in (14, 17, 20):
        step = math.ldexp(1.0, math.frexp(scale)[1] - power)
        up, down = line(step), line(-step)
        noise = 8 * UNIT_ROUNDOFF * max(abs(up), abs(down), abs(centre)) / step
        jumps.append(((up - 2 * centre + down) / step, noise))
    (first, _), (second, _), (third, noise) = jumps
    if not all(math.isfinite(jump) for jump, _ in jumps) or abs(third) < 50 * noise:
        return False
    return abs(third) > 0.5 * abs(first) and abs(second) > 0.5 * abs(first)
