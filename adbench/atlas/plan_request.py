"""From the words of a user to a plan, its environments, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from adbench.atlas.survey import Supported, SurveyPlan
from adbench.atlas.table import TABLES
from adbench.bisection import interpreters, releases
from adbench.bisection.environments import Environments, Installer, environments_of
from adbench.bisection.interpreters import Interpreter
from adbench.bisection.question import backend_of, whole
from adbench.catalog.discovery import select
from adbench.catalog.selection import resolve
from adbench.model.errors import BadFile, UnknownName, UsageError
from adbench.results.run_files import files_of

NEWEST = 12
"""Without a range: so many of the newest releases."""


def asked(
    library: str,
    *,
    span: str | None = None,
    backend: str | None = None,
    cases: Sequence[str] = (),
    full: int = 6,
    wheels: Path | None = None,
    extras: Sequence[str] = (),
    installer: Installer | None = None,
    keep: int = 10 * 2**30,
) -> tuple[SurveyPlan, Environments]:
    """The plan and the environments of a user's options. Raises UsageError, also as UnknownName and BadFile."""
    used = whole(backend) if backend else backend_of(library)
    requested = list(map(whole, cases))
    chosen = resolve(cases=requested, backends=[used])
    (name,) = select("backend", chosen.catalog.backends, chosen.backends)
    source, known = chosen.catalog.backends[name], chosen.catalog.cases
    names = (
        select("case", known, chosen.cases) if requested else tuple(sorted(one for one in known if known[one].is_trap))
    )
    own = {one: known[one].file for one in names if not chosen.catalog.case_sources[one].builtin}
    available = of_index(library) if wheels is None else of_wheels(library, wheels)
    digests = tuple(sorted(files_of(chosen.catalog, [name], names)["digests"].values()))
    plan = SurveyPlan(library, name, used, tuple(within(available, span)), names, full, digests, own)
    return plan, environments_of(library, source.requires, extras, installer, keep)


def of_wheels(library: str, folder: Path) -> list[Supported]:
    """The wheels of a folder, for the running Python. Raises UsageError."""
    return [(release, (interpreters.RUNNING,)) for release in releases.of_wheels(library, folder)]


def of_index(library: str) -> list[Supported]:
    """The releases that pip finds for each Python of this machine, oldest first. Raises UsageError for none."""
    supported: dict[str, list[Interpreter]] = {}
    for python in interpreters.every():
        target = () if python.runs_this else ("--python-version", python.minor, "--only-binary=:all:")
        for name in releases.indexed(library, *target):
            supported.setdefault(Version(name).public, []).append(python)
    if not supported:
        raise UsageError(f"{library}: pip lists no releases; check the name, or give --wheels")
    every = releases.of_list(library, supported)
    return [(release, tuple(dict.fromkeys(supported[release.name]))) for release in every]


def within(every: Sequence[Supported], span: str | None) -> list[Supported]:
    """The releases from A to B, those of a list V,V,…, or the newest. A listed one may be absent, and is then a cell
    of the table with this reason. Raises UsageError if none is left.
    """
    if span is None:
        return list(every[-NEWEST:])
    if ":" not in span:
        there = {release.name: (release, pythons) for release, pythons in every}
        library = every[0][0].requirement.partition("==")[0]
        asked = releases.of_list(library, span.split(","))
        return [there.get(release.name, (release, ())) for release in asked]
    low, _, high = span.partition(":")
    first, last = (releases.version(end) if end.strip() else None for end in (low, high))
    chosen = [
        one
        for one in every
        if (first is None or first <= Version(one[0].name)) and (last is None or Version(one[0].name) <= last)
    ]
    if not chosen:
        raise UsageError(f"--releases {span}: no release lies there; the oldest is {every[0][0].name}, the newest "
                         f"{every[-1][0].name}")  # fmt: skip
    return chosen


def key_of(plan: SurveyPlan, environments: Environments) -> list[object]:
    """What the results of a plan depend on: its journal continues an earlier one with the same key."""
    return [plan.library, plan.backend, plan.files, environments.installer, str(environments.extras)]


def table_file(library: str, is_new: bool = False) -> Path:
    """The table that comes with adbench. Raises UnknownName for a library without a table, unless it is to be made."""
    names = sorted(path.stem for path in TABLES.glob("*.json"))
    name = canonicalize_name(library)
    if name not in names and not is_new:
        if not names:
            raise BadFile("adbench comes with no table; give one with --table")
        raise UnknownName("atlas", library, names)
    return TABLES / f"{name}.json"
