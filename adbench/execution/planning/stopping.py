"""When a group of backends has been measured in enough launches: everything that it asks is decided."""

from __future__ import annotations

import math

from adbench.model.events import Decided
from adbench.model.record import Group, Job, Run
from adbench.results.analysis import Ratio, ratios
from adbench.results.matched_samples import comparable, groups

LEADING = 10
"""A group asks for the differences between so many backends, the fastest; one that is decided slower than all of them
takes no further launch."""

TIED_AFTER = 6
"""Launches after which two backends may count as tied by the width of their interval alone."""


def decided(run: Run, launches: int, margin: float) -> Decided:
    """What takes no launch beyond these: the verdicts are those of the whole run, corrected for all looks and pairs.

    A group with a single backend asks nothing that could be decided: it takes all launches.
    """
    of_group: dict[Group, dict[frozenset[str], Ratio]] = {}
    for ratio in ratios(run, margin):
        key = (ratio.case, ratio.size, ratio.operator, ratio.seed)
        of_group.setdefault(key, {})[frozenset((ratio.a, ratio.b))] = ratio
    stopped: list[Group] = []
    slower: list[Job] = []
    for group, records in groups(comparable(run.records)).items():
        pairs = of_group.get(group, {})
        order = sorted((r for r in records if r.time), key=lambda r: r.time.seconds_per_call if r.time else 0.0)
        names = [record.job.backend for record in order]
        leading = set(names[:LEADING])
        if len(leading) > 1 and all(_settled(ratio, margin) for pair, ratio in pairs.items() if pair <= leading):
            stopped.append(group)
            continue
        slower += [
            record.job
            for record in order[LEADING:]
            if record.job.backend != run.reference_backend  # the noise floor is measured with it
            and _slower(pairs.get(frozenset((record.job.backend, names[LEADING - 1]))), record.job.backend)
        ]
    return Decided(launches, tuple(stopped), tuple(slower))


def _settled(ratio: Ratio, margin: float) -> bool:
    """Whether there is a verdict, or the two are known well enough to be tied."""
    if ratio.word != "inconclusive":
        return True
    if ratio.interval is None or ratio.launches < TIED_AFTER:
        return False
    width, edge = math.log(ratio.interval.high / ratio.interval.low) / 2, math.log1p(margin)
    return width <= edge and abs(math.log(ratio.interval.estimate)) <= edge


def _slower(ratio: Ratio | None, backend: str) -> bool:
    return ratio is not None and ratio.word == ("slower" if ratio.a == backend else "faster")
