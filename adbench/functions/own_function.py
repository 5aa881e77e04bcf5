"""The check of a user's function: value and derivatives next to the truth, a table for each backend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adbench.catalog.ad_hoc import at_size
from adbench.functions.derivative_table import NOT_HAD, WIDTH, CheckedMode, FunctionCheck
from adbench.functions.user_function import UserFunction
from adbench.model.case import Case
from adbench.model.record import Record, Run, grouped

WORST_FIRST = ("wrong", "blind", "verified", "right", "approximate")


@dataclass(frozen=True)
class OwnFunction:
    """A user's function on the command line, in this process.

    outside   the seeds of points that are left out, because the function has no finite value there
    missing   the number of points that no others replace
    """

    case: Case
    outside: tuple[int, ...]
    missing: int = 0

    @property
    def function(self) -> UserFunction:
        """The function, of a case of several sizes at the first."""
        found = at_size(self.case, self.case.sizes[0]).f
        assert isinstance(found, UserFunction)
        return found


def checks(run: Run, own: OwnFunction) -> list[FunctionCheck]:
    """What a run found of a user's function, by backend. Backends that checked no derivative are left out."""
    found = []
    made = own.function
    for backend, records in grouped(run.records, lambda record: record.job.backend).items():
        rows = [_row(record, made, len(own.case.sizes) > 1) for record in records if record.relations is None]
        derivatives = [row for row in rows if row.mode != "value"]
        relations = [record for record in records if record.relations is not None]
        derivatives += [
            CheckedMode.wrong("relations", made.point_name(record.job.seed), record.reason or "")
            for record in relations
            if record.found_wrong
        ]
        if not any(row.verdict for row in derivatives):
            continue
        notes = [f"{record.relations.held} relations between calls hold" for record in relations if record.relations]
        version = run.versions.get(backend)
        found.append(
            FunctionCheck.of(
                made,
                own.outside,
                notes,
                backend=backend,
                library=f"{backend} {version}" if version else backend,
                rows=tuple(derivatives),
                values=tuple(row for row in rows if row.mode == "value" and row.verdict),
                missing=own.missing,
            )
        )
    return found


def text(run: Run, own: OwnFunction, found: Sequence[FunctionCheck]) -> str:
    """A line about all backends where there are several, each one's table, and the reasons of those without one."""
    return "\n\n".join(_parts(run, own.function, found))


def _parts(run: Run, made: UserFunction, found: Sequence[FunctionCheck]) -> Iterator[str]:
    if len(found) > 1:
        yield _wrapped(_summary(made.__name__, found))
    yield from map(str, found)
    checked = {check.backend for check in found}
    reasons = {record.job.backend: record.reason for record in reversed(run.records) if record.reason}
    lacking = [
        f"{NOT_HAD} {backend}: {reason}{made.library.hint(backend)}"
        for backend, reason in reasons.items()
        if backend not in checked
    ]
    if lacking:
        yield "\n".join(map(_wrapped, lacking))


def _summary(name: str, found: Sequence[FunctionCheck]) -> str:
    """The worst word first: "f: wrong with off; right with jax, tape; truth proved"."""
    words = grouped(sorted(found, key=lambda check: WORST_FIRST.index(check.word)), lambda check: check.word)
    by_word = [f"{word} with {', '.join(check.backend for check in these)}" for word, these in words.items()]
    proved = all(check.proved for check in found)
    why = "" if proved else ": " + next(check.reason for check in found if not check.proved)
    return f"{name}: {'; '.join(by_word)}; truth {'proved' if proved else f'not proved{why}'}"


def _row(record: Record, made: UserFunction, sized: bool) -> CheckedMode:
    job = record.job
    where = made.point_name(job.seed)
    if sized:
        where = f"n = {job.size}" if job.seed == 0 else f"n = {job.size}, {where}"
    more = max(0, record.verdict.checked - len(record.entries)) if record.verdict else 0
    reason = record.reason or record.status
    return CheckedMode(job.operator, where, record.verdict, record.entries, record.how, reason, more)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
