"""Wrong gradients of many points: each point's place, its neighbours or its numbers change the result."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from adbench.model.operator import BATCH
from tests.oracle import subjects as at
from tests.oracle.mutant import SIZES, Mutant
from tests.oracle.planting import Broken, in_prepare

POINTS = 67  # no multiple of eight
MIDDLE = 33


def changed(change: Callable[[Any, Any], Any]) -> Broken:
    """change(x, gradients) of the first input, both with a row for each point."""

    def broken(prepare: Any, args: Any, wrt: Any) -> Any:
        call = prepare(args, wrt)
        return lambda *a: tuple(change(a[0], np.array(leaf)) for leaf in call(*a))

    return broken


def at_row(row: int, factor: float) -> Broken:
    def change(x: Any, g: Any) -> Any:
        g[row] *= factor
        return g

    return changed(change)


def swapped(x: Any, g: Any) -> Any:
    g[[MIDDLE, MIDDLE + 1]] = g[[MIDDLE + 1, MIDDLE]]
    return g


def last_of_eight(x: Any, g: Any) -> Any:
    g[len(g) // 8 * 8 :] = g[len(g) // 8 * 8 - 1]
    return g


def at_largest(x: Any, g: Any) -> Any:
    g[np.argmax(x[:, 0])] *= 1.01
    return g


def of_the_batch_before(prepare: Any, args: Any, wrt: Any) -> Any:
    call = prepare(args, wrt)
    before = [args]

    def wrong(*a: Any) -> Any:
        result = call(*before[0])
        before[0] = a
        return result

    return wrong


def batches() -> Iterator[Mutant]:
    def mutant(name: str, broken: Broken, size: str = "gross") -> Mutant:
        return Mutant(
            name=name, kind="many points", size=size, case=at.sines, operator=f"{BATCH}_{POINTS}",
            plant=in_prepare(BATCH, broken),
        )  # fmt: skip

    for label in ("1", "1e-2", "1e-4", "1e-6", "1e-8"):
        yield mutant("one point in the middle", at_row(MIDDLE, 1 + SIZES[label]), label)
    yield mutant("NaN at the last point but one", at_row(POINTS - 2, np.nan))
    yield mutant("two points swapped", changed(swapped))
    yield mutant("points in reverse", changed(lambda x, g: g[::-1]))
    yield mutant("points moved by one", changed(lambda x, g: np.roll(g, 1, axis=0)))
    yield mutant("the first point at all", changed(lambda x, g: np.broadcast_to(g[0], g.shape)))
    yield mutant("the last points after whole blocks of eight", changed(last_of_eight))
    yield mutant("the point with the largest number", changed(at_largest))
    yield mutant("the mean of all points", changed(lambda x, g: np.broadcast_to(g.mean(axis=0), g.shape)))
    yield mutant("one point missing", changed(lambda x, g: g[:-1]))
    yield mutant("the points last", changed(lambda x, g: g.T))
    yield mutant("the batch of the call before", of_the_batch_before)


BATCHES: list[Mutant] = [*batches()]
