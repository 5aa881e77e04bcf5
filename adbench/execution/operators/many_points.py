"""The gradient at N points: the points, the verdict on a sample of them, and a check of all others.

The first point is the case's, the others are around it. The first, the last and a few random points have references;
other_points.py checks the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.model import tree
from adbench.model.errors import Unsupported
from adbench.oracle.evidence import EntryEvidence, ErrorSpread, Precision
from adbench.oracle.reference import Reference
from adbench.oracle.verdict import Verdict

STEP = 2.0**-7
"""The largest relative change of an entry: so large that results of different points differ in their third digit."""

MOST_NUMBERS = 10_000_000
"""The most entries of all points."""

SAMPLED = 6
"""The points with a reference; all of them if there are no more."""

LOOKED_AFTER = 0.1  # seconds, for an estimate of a loop's time
MOST_LOOP_SECONDS = 5.0

SEED = 7_000_003
WORDS = ("right", "approximate", "verified", "blind", "wrong")  # of verdicts, the worst last
COUNTS = ("checked", "right", "wrong", "inconclusive", "blind")


def stacked(
    args: tuple[Any, ...], wrt: Sequence[int], count: int, seed: Sequence[int], form: Precision
) -> tuple[Any, ...]:
    """The inputs of `count` points: each float of an active input becomes an array with a leading axis.

    The first point has these `args`; the others have every active entry changed by a random share of itself, at most
    `STEP`, or by a few roundings of the type `form`, whose numbers they are.
    """
    rng = np.random.default_rng([*seed, SEED])

    def leaf(value: Any) -> Any:
        base = np.asarray(value, dtype=np.float64)
        factors = 1 + max(STEP, 4 * form.unit) * rng.uniform(-1, 1, (count, *base.shape))
        factors[0] = 1
        moved = base * factors
        rounded: NDArray[np.float64] = form.rounded(moved)
        return rounded

    return tuple(tree.map_leaves(leaf, arg) if k in wrt else arg for k, arg in enumerate(args))


def sample(count: int, seed: int) -> list[int]:
    """The points with a reference, ascending."""
    if count <= SAMPLED:
        return list(range(count))
    between = np.random.default_rng([seed, count]).integers(count, size=SAMPLED - 2)
    return sorted({0, count - 1, *between.tolist()})


def point_of(stack: tuple[Any, ...], wrt: Sequence[int], index: int) -> tuple[Any, ...]:
    """The inputs of one point."""
    return tuple(
        tree.map_leaves(lambda leaf: _row(leaf, index), arg) if k in wrt else arg for k, arg in enumerate(stack)
    )


def in_time(count: int) -> Iterator[int]:
    """0 … count - 1, for a loop. Raises Unsupported if the first turns show that it takes too long."""
    yield 0  # may include one-time work
    begun, following = perf_counter(), iter(range(1, count))
    for index in following:
        yield index
        if (elapsed := perf_counter() - begun) > LOOKED_AFTER:
            if (seconds := elapsed * count / index) > MOST_LOOP_SECONDS:
                raise Unsupported(f"a loop over {count:,} points takes about {seconds:.0f} s; use fewer points")
            break
    yield from following


def judged(
    x: tuple[Any, ...],
    count: int,
    result: Any,
    references: Mapping[int, Reference],
    claim: float | None,
    judge: Callable[..., tuple[Verdict, tuple[EntryEvidence, ...]]],
    *,
    spread: ErrorSpread | None = None,
) -> tuple[Verdict, tuple[EntryEvidence, ...]]:
    """The verdict on the points that have a reference, in one, and every compared number.

    x       the active inputs of one point
    judge   `judge_entries` in the arithmetic of the function
    """
    if fault := misshapen(x, count, result):
        first = next(iter(references.values())).all_outputs
        return Verdict("wrong", fault, None, None, 0, 0, 0, 0, first.method, first.reason), ()
    judgements = {}
    for index, known in references.items():
        row = tree.map_leaves(itemgetter(index), result)
        own = replace(spread, within=_place(index, "")) if spread else None
        judgements[index] = judge("gradient", row, known, claimed_relative_error=claim, spread=own)
    verdicts = {index: verdict for index, (verdict, _) in judgements.items()}
    worst = max(verdicts, key=lambda index: WORDS.index(verdicts[index].word))
    total = {name: sum(getattr(one, name) for one in verdicts.values()) for name in COUNTS}
    digits = [one.digits for one in verdicts.values() if one.digits is not None]
    verdict = replace(
        verdicts[worst],
        sentence=f"{named(worst, count)}: {verdicts[worst].sentence}; {len(judgements)} points have a reference",
        conventions=tuple(item for one in verdicts.values() for item in one.conventions),
        digits=None if verdicts[worst].digits is None else min(digits),
        proved=all(one.proved for one in verdicts.values()),
        **total,
    )
    named_entries = (
        replace(item, where=_place(index, item.where)) for index, (_, own) in judgements.items() for item in own
    )
    return verdict, tuple(named_entries)


def _place(index: int, place: str) -> str:
    return f"point {index + 1:,}: {place}"


def misshapen(x: tuple[Any, ...], count: int, result: Any) -> str:
    """Why the result has no row for each point; "" if it has."""
    leaves, wanted = tree.leaves(result), [(count, *np.shape(leaf)) for leaf in tree.leaves(x)]
    if not isinstance(result, tuple) or len(leaves) != len(wanted):
        returned = f"{type(result).__name__} with {len(leaves)} arrays"
        return f"batch_gradient must return a tuple with an entry for each of {len(x)} inputs; it returned {returned}"
    shapes = [np.shape(leaf) for leaf in leaves]
    return "" if shapes == wanted else f"the arrays have the shapes {shapes}; {count:,} points need {wanted}"


def named(index: int, count: int) -> str:
    """A point in messages."""
    return f"point {index + 1:,} of {count:,}"


def _row(leaf: Any, index: int) -> Any:
    """A leaf of one point: a float or an array, as inputs are."""
    return float(leaf[index]) if np.ndim(leaf) == 1 else leaf[index]
