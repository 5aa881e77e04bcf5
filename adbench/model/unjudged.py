"""A check that checked nothing is no success: the selected backends and cases of which no derivative was judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from adbench.model.operator import RELATIONS
from adbench.model.record import Record, Run, Selected, grouped

JUDGES_NOTHING = ("unsupported", "skipped", "not_run", "unchecked")
"""Words of records that judge nothing. Failures have an exit code of their own, and a known bug was expected."""


def unjudged(run: Run) -> tuple[str, ...]:
    """A sentence with the most frequent reason for the selected parts of which nothing was judged.

    Values and relations count only if no derivative was requested.
    """
    every = run.every_record
    told = {part: reason for part in run.selected if (reason := _reason(part, every))}
    alone = {(part.kind, part.names[0]) for part in told if len(part.names) == 1}
    listed = [part for part in told if len(part.names) == 1 or not alone.issuperset((part.kind, n) for n in part.names)]
    by_reason = grouped(listed, lambda part: told[part])
    return tuple(f"nothing was checked {' and '.join(_subjects(parts))}: {why}" for why, parts in by_reason.items())


def _subjects(parts: Sequence[Selected]) -> Iterator[str]:
    """ "with the backends jax, torch", "of the case hypot"."""
    for kind, of_kind in grouped(parts, lambda part: part.kind).items():
        several = len(of_kind) > 1 or len(of_kind[0].names) > 1
        names = ", ".join(part.names[0] if len(part.names) == 1 else part.asked for part in of_kind)
        yield f"{'with' if kind == 'backend' else 'of'} the {kind}{'s' if several else ''} {names}"


def _reason(part: Selected, every: Sequence[Record]) -> str:
    """Why nothing was judged; "" if something was."""
    own = [record for record in every if getattr(record.job, part.kind) in part.names]
    found = [record for record in own if record.job.operator not in ("value", RELATIONS)] or own
    if any(map(_is_judged, found)):
        return ""
    if not found:
        return "none of its cells was planned and reached"
    (word, reason), count = Counter((record.outcome.word, _told(record)) for record in found).most_common(1)[0]
    return f"{count} of {len(found)} {word}: {reason}"


def _is_judged(record: Record) -> bool:
    if record.relations is not None and not record.relations.held:
        return record.found_wrong
    return record.outcome.word not in JUDGES_NOTHING


def _told(record: Record) -> str:
    left_out = record.relations.left_out if record.relations is not None else ()
    return record.reason or "; ".join(left_out) or "no reason given"
