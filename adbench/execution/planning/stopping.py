"""When a group of backends has been measured in enough launches: everything that it asks is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from adbench.model.events import Decided
from adbench.model.record import Group, Job, Run, group_of
from adbench.results.analysis import Ratio, ratios
from adbench.results.matched_samples import comparable, groups

LEADING = 10
"""A group asks for the differences between so many backends, the fastest. One that is decided slower than all of them
takes no further launch, and neither does a leading one whose differences to the others are decided."""

TIED_AFTER = 6
"""Launches after which two backends may count as tied by the width of their interval alone."""

_Pairs = dict[frozenset[str], Ratio]


def decided(run: Run, launches: int, margin: float) -> Decided:
    """What takes no launch beyond these: the verdicts are those of the whole run, corrected for all looks and pairs.

    The reference backend goes on as long as its group, because the noise floor is measured with it. A backend that is
    compared with nobody, such as an approximate one, stops at the first look; a single correct one takes all launches.
    """
    of_group: dict[Group, _Pairs] = {}
    for ratio in ratios(run, margin):
        of_group.setdefault(group_of(ratio.a), {})[frozenset((ratio.a.backend, ratio.b.backend))] = ratio
    right = {record.job for record in comparable(run.records)}
    stopped: list[Group] = []
    done: list[Job] = []
    for group, records in groups(record for record in run.records if record.time).items():
        order = sorted(records, key=lambda record: record.time.seconds_per_call if record.time else 0.0)
        ranked = [record.job.backend for record in order if record.job in right]
        pairs, leading = of_group.get(group, {}), ranked[:LEADING]
        open_ = {name for name in leading if not _all_settled(name, leading, pairs, margin)}
        open_ |= {name for name in ranked[LEADING:] if not _slower(pairs.get(frozenset((name, leading[-1]))), name)}
        if leading and open_.isdisjoint(leading):
            stopped.append(group)
        else:
            kept = open_ | {run.reference_backend}
            done += [record.job for record in records if record.job.backend not in kept]
    stopped_jobs = set(done)
    done += [r.job for r in run.threaded if replace(r.job, threads=0) in stopped_jobs]  # as long as it has a partner
    return Decided(launches, tuple(stopped), tuple(done))


def _all_settled(name: str, leading: Sequence[str], pairs: _Pairs, margin: float) -> bool:
    """Whether its differences to the others are decided; there must be others."""
    others = [pairs.get(frozenset((name, other))) for other in leading if other != name]
    return bool(others) and all(ratio is not None and _settled(ratio, margin) for ratio in others)


def _settled(ratio: Ratio, margin: float) -> bool:
    """Whether there is a verdict, or the two are known well enough to be tied."""
    if ratio.word != "inconclusive":
        return True
    if ratio.interval is None or ratio.launches < TIED_AFTER:
        return False
    width, edge = math.log(ratio.interval.high / ratio.interval.low) / 2, math.log1p(margin)
    return width <= edge and abs(math.log(ratio.interval.estimate)) <= edge


def _slower(ratio: Ratio | None, backend: str) -> bool:
    return ratio is not None and ratio.word == ("slower" if ratio.a.backend == backend else "faster")
