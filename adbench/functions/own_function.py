"""The check of a user's function: value and derivatives next to the truth, a table for each backend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adbench.catalog.ad_hoc import ad_hoc, at_size
from adbench.catalog.discovery import select
from adbench.catalog.selection import resolve
from adbench.functions.derivative_table import NOT_HAD, WIDTH, CheckedMode, FunctionCheck
from adbench.functions.points import points_inside
from adbench.functions.recognition import only_family
from adbench.functions.user_function import UserFunction, function_case
from adbench.model.case import Case
from adbench.model.record import Record, Run, grouped

WORST_FIRST = ("wrong", "blind", "verified", "right", "approximate")
CANNOT_TELL = 5  # exit code where nothing is wrong, but rounding hides an answer


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


def requested(name: str, arguments: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[dict[str, Any], OwnFunction]:
    """The request for a function by its name: its case, its operators, its points and the backends of its library.

    arguments   the other arguments of `ad_hoc`
    asked       fields of the request, without its cases

    Raises UsageError, in one line, for a fault in the function, its arguments or the backends.
    """
    named = _named_backends(asked)
    ad_hoc_case = ad_hoc(name, **arguments, backend=only_family(named))
    case = ad_hoc_case.case(function_case)
    first, count = asked["seed"], asked.get("points", 1)
    inside, outside = points_inside(case, first, count)
    own = OwnFunction(case, tuple(outside), missing=count - len(inside))
    request = {
        **asked,
        "cases": (str(ad_hoc_case.case_file()),),
        "backends": _backends(own.function, named, asked),
        "backends_by_default": not asked["backends"],
        "operators": () if "all" in asked["operators"] else asked["operators"] or case.operators,
        "seeds_left_out": own.outside,
    }
    if "points" in asked:
        request["points"] = inside[-1] + 1 - first  # the numbers between that are outside are left out
    return request, own


def _named_backends(asked: Mapping[str, Any]) -> Sequence[str]:
    """The backends that the request names, by patterns; none if it names none."""
    if not asked["backends"]:
        return []
    chosen = resolve(backends=asked["backends"], backend_folders=asked["backend_folders"])
    return select("backend", chosen.catalog.backends, chosen.backends)


def _backends(function: UserFunction, named: Sequence[str], asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The named backends, or those of the function's library: all installed ones of a function that takes `xp`.

    Raises UsageError for a backend of another library.
    """
    if named:
        for backend in named:
            function.library.refuse_backend(backend, function.__name__)
        return tuple(asked["backends"])
    if function.library.name != "xp":
        return (function.library.backend,)
    every = resolve(backend_folders=asked["backend_folders"]).catalog.backends.items()
    return tuple(name for name, source in every if source.is_default and not source.missing)


def exit_code(found: Sequence[FunctionCheck], code: int, *, allow_nothing: bool) -> int:
    """That of the run; else 5 where nothing is wrong but rounding hides an answer, and 4 where no derivative could be
    checked, unless `allow_nothing`."""
    if code or not found:
        return code or (0 if allow_nothing else 4)
    return CANNOT_TELL if any(check.word == "blind" for check in found) else 0


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
