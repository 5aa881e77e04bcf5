"""Checks of all points of `batch_gradient`; the verdict on points with a reference comes first.

* All points in another order, which the backend cannot foresee: each result must move with its point. So no result
  depends on its place, or on the points next to it.
* One call of the backend's own `gradient` at each point, in random order, for as many points as a second allows.

Both have the tolerance of the points with a reference, because a library may add up in another order. So a mistake that
all single gradients share, at none of those points, is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import SystemRandom
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.execution.operators import many_points
from adbench.execution.operators.fallback import NATIVE, Prepared, prepare
from adbench.execution.operators.many_points import named
from adbench.execution.operators.prepared_point import CasePoint
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.oracle.evidence import DOUBLE, ROUNDINGS, EntryEvidence
from adbench.oracle.verdict import Verdict

SINGLE_CALL_SECONDS = 1.0
TOLERANCE = 1e-9
LOOSE_TOLERANCE = 1e-6  # in float32, or if the noise at the points with a reference is unknown

Leaves = Sequence[NDArray[np.float64]]


def with_other_points(
    verdict: Verdict,
    entries: Sequence[EntryEvidence],
    at: CasePoint,
    backend: Backend,
    f: Callable[..., Any],
    prepared: Prepared,
    count: int,
) -> Verdict:
    """The verdict of the sampled points, or wrong if another of the `count` points is.

    entries   compared numbers of the sampled points, which give the tolerance
    prepared  the operator, prepared
    """
    if verdict.word == "wrong" or count == 1:
        return verdict
    call, stack = prepared.call, at.stacked(count)
    allowed = _tolerances(at, entries, backend.claimed_relative_error)
    result = _result(backend, call(*backend.native_inputs(stack)))
    order = np.array(SystemRandom().sample(range(count), count))
    shuffled = tuple(
        tree.map_leaves(lambda leaf: leaf[order], arg) if k in at.wrt else arg for k, arg in enumerate(stack)
    )
    moved = _result(backend, call(*backend.native_inputs(shuffled)))
    place = _differs([leaf[order] for leaf in result], moved, allowed)
    if place is not None:
        why = f"{named(int(order[place]), count)}: its result is another one if the points are in another order"
        return _wrong(verdict, why)
    single = None
    if prepared.how == NATIVE:
        single = prepare(backend, "gradient", f, backend.native_inputs(at.args), at.wrt).call
    begun, compared = perf_counter(), 0
    for index in order.tolist():
        if single is None or perf_counter() - begun > SINGLE_CALL_SECONDS:
            break
        one = _result(backend, single(*backend.native_inputs(many_points.point_of(stack, at.wrt, index))))
        if _differs([leaf[index : index + 1] for leaf in result], [leaf[None] for leaf in one], allowed) is not None:
            return _wrong(verdict, f"{named(index, count)}: its result is another one than that of a single call")
        compared += 1
    how = f", and {compared:,} agree with single calls" if compared else ""
    return replace(verdict, sentence=f"{verdict.sentence}; all {count:,} are the same in another order{how}")


def _tolerances(at: CasePoint, entries: Sequence[EntryEvidence], claim: float | None) -> list[tuple[float, float]]:
    """(relative, absolute) tolerance for each leaf: a library may add up in another order."""
    tolerances = []
    for leaf in at.arguments.leaves:
        bounds = [item.bound for item in entries if item.where.partition(": ")[2] == leaf.path]
        known = all(map(np.isfinite, bounds)) and at.arithmetic is DOUBLE
        relative = max(TOLERANCE if known else LOOSE_TOLERANCE, 2 * (claim or 0.0), ROUNDINGS * at.arithmetic.unit)
        tolerances.append((relative, 4 * max(filter(np.isfinite, bounds), default=0.0)))
    return tolerances


def _differs(a: Leaves, b: Leaves, allowed: Sequence[tuple[float, float]]) -> int | None:
    """The first row in which two results differ, or None."""
    for p, q, (relative, absolute) in zip(a, b, allowed, strict=True):
        same = np.isclose(p, q, rtol=relative, atol=absolute, equal_nan=True)
        if not same.all():
            return int(np.argwhere(~same)[0][0])
    return None


def _result(backend: Backend, result: Any) -> Leaves:
    leaves = tree.leaves(backend.numpy_result(backend.waited(result)))
    return [np.array(leaf, dtype=np.float64) for leaf in leaves]


def _wrong(verdict: Verdict, fault: str) -> Verdict:
    return replace(verdict, word="wrong", sentence=fault, wrong=verdict.wrong + 1, digits=None)
