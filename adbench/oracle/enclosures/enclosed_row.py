"""The reference of a scalar with more numbers than series can follow: enclosures in float64 of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.midpoint_radius import Enclosure, Floats
from adbench.oracle.enclosures.recorded import EnclosedArray, TooManyNumbers, gradient
from adbench.oracle.enclosures.rounded_arrays import RoundedArray
from adbench.oracle.evidence import BARS, DOUBLE, SINGLE
from adbench.oracle.precise import FEWEST_DRAWS, NotPrecise
from adbench.oracle.reference import Known, Row
from adbench.oracle.subject import Effort, Subject, chosen_entries

METHOD = "enclosures by midpoint and radius in float64"
NOISE = "the same program with random roundings in float32, scaled to float64"

MOST = 100_000_000
"""Numbers on the way to the value."""

SUMMED = 64 * DOUBLE.unit
"""Times the terms' sizes, at least the error of numpy's sum, which adds up to 16 terms one by one, and then pairs."""


class RoundedOnTheWay(RoundedArray):
    """Numbers whose inputs are not rounded, because float64 holds them."""

    @classmethod
    def of(cls, x: Any) -> RoundedArray:
        """The numbers."""
        return cls(np.asarray(x, dtype=np.float64))


def recorded(subject: Subject, xp: Enclosures) -> tuple[EnclosedArray, list[EnclosedArray]]:
    """The value of a subject with a source, and its active leaves."""
    inputs = [xp.array(xp.arithmetic.of(leaf.values), is_input=True) for leaf in subject.point.leaves]

    def constant(leaf: Any) -> Any:
        return xp.of(leaf) if np.asarray(leaf).dtype.kind == "f" else leaf

    assert subject.text is not None
    return xp.of(subject.text(xp, *subject.point.replaced(inputs, constant))), inputs


def enclosed_row(subject: Subject, effort: Effort) -> Row:
    """The value, a sample of the gradient's entries, and its sums along directions.

    Raises NotPrecise with the reason if one of all numbers is not enclosed.
    """
    point, seed = subject.point, effort.seed
    value, *parts = _bounds(subject, Enclosure)
    if EnclosedArray.branched and effort.against_values():
        raise NotPrecise("it branches on numbers that depend on its arguments")
    if not all(np.isfinite(rad).all() for _, rad in (value, *parts)):
        raise NotPrecise("enclosures do not bound all of its numbers")
    rounded = [_bounds(subject, RoundedOnTheWay.drawn(SINGLE, [seed, draw])) for draw in range(FEWEST_DRAWS)]

    def known(middle: float, radius: float, again: Sequence[float]) -> Known:
        """A radius is proved, so it is tolerated once, and not as often as the bar of an estimate."""
        noise = float(np.sqrt(np.mean(np.square(np.subtract(again, middle))))) * DOUBLE.unit / SINGLE.unit
        return Known(middle, middle, radius / BARS, noise)

    def entry(which: int, index: int) -> Known:
        mid, rad = (array.flat[index] for array in parts[which])
        return known(float(mid), float(rad), [float(numbers[1 + which][0].flat[index]) for numbers in rounded])

    def along(steps: Sequence[Floats]) -> Known:
        def total(gradient: Sequence[Floats]) -> float:
            return sum(float(np.sum(array * step)) for array, step in zip(gradient, steps, strict=True))

        mids = [mid for mid, _ in parts]
        sizes = [rad + SUMMED * np.abs(mid) for mid, rad in parts]
        bar = sum(float(np.sum(size * np.abs(step))) for size, step in zip(sizes, steps, strict=True))
        return known(total(mids), 1.01 * bar, [total([mid for mid, _ in numbers[1:]]) for numbers in rounded])

    chosen = chosen_entries(point.sizes, effort.max_entries, seed)
    derivatives = [entry(which, index) for which, indices in enumerate(chosen) for index in indices]
    if sum(point.sizes) > effort.max_entries:
        derivatives += [along(point.steps(seed, number)) for number in range(effort.directions_of(()))]
    of_value = known(float(value[0]), float(value[1]), [float(numbers[0][0]) for numbers in rounded])
    row = point.row(seed, of_value, chosen, derivatives)
    return replace(row, method=METHOD, evaluations=1 + FEWEST_DRAWS, noise=NOISE, proved=True)


def _bounds(subject: Subject, arithmetic: Any) -> list[tuple[Floats, Floats]]:
    """Midpoints and radii of the value, then of the gradient by each active leaf."""
    EnclosedArray.begin(MOST)
    try:
        with np.errstate(all="ignore"):
            value, inputs = recorded(subject, Enclosures(arithmetic))
            parts = gradient(value, arithmetic.of(np.ones(value.shape)), inputs)
            return [part.bounds() for part in (value.value, *parts)]
    except TooManyNumbers as error:
        raise NotPrecise(str(error)) from None
    except Exception as error:  # an operation that takes arrays apart, or one that is unknown
        raise NotPrecise(f"it does not run on enclosures: {type(error).__name__}: {error}") from error
