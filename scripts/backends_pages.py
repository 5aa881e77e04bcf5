"""Write docs/reference/backends-table.md and the table in docs/reference/backends.md; called by scripts/backends-pages.

With --newer, write docs/reference/backends-table-newer.md, the same page for the cases of the given runs only.

The facts about each backend come from the literals in its file, its abilities from checks.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from adbench.catalog.discovery import Catalog, catalog
from adbench.catalog.installed import packages_of_debian
from adbench.catalog.source import Source
from adbench.model.backend import HERE
from adbench.model.case import THREAD, Case
from adbench.model.operator import COMPOSITIONS, OPERATORS, definition
from adbench.model.record import Record
from adbench.results.store import read_run

ROOT = Path(__file__).parents[1]
PAGE, TABLE = ROOT / "docs" / "reference" / "backends.md", ROOT / "docs" / "reference" / "backends-table.md"
NEWER = TABLE.with_name("backends-table-newer.md")
BEGIN, END = "<!-- Made by scripts/backends-pages from the literals in the backends' files. -->\n", "<!-- made -->\n"
OURS = "adbench's own"
FAMILIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("traps", "Traps: small functions that some libraries get wrong", ("trap",)),
    ("array-valued", "Functions with array values", ("array-valued",)),
    ("data-dependent", "Loops and branches that depend on data", ("data-dependent",)),
    ("equations", "Differential equations", ("ode",)),
    ("linear algebra", "Factorisations, determinants, solutions", ("linear-algebra",)),
    ("loops", "Loops over numbers", ("scalar-loop", "nested-loops", "elements", "recursion", "loop")),
    ("nested and random", "Nested inputs and random draws", ("nested", "random")),
    ("matrices", "Matrix products", ("matrix", "network")),
    ("densities", "Probability densities", ("density",)),
    ("vectors", "Sums and products of vectors", ("vectorised", "elementwise", "smoke")),
)
"""Name, title and tags: a case belongs to the first family that shares a tag with it."""

MARKS = {"own": "✓", "made": "○", "known": "⊗", "none": "∅", "fault": "✗"}
ORDER = ("own", "made", "none", "known", "fault")  # where sizes or seeds differ, the last one is the case's


def family_of(case: Case) -> str:
    """The name of the case's family. Raises LookupError if no family has one of its tags."""
    for name, _, tags in FAMILIES:
        if set(tags) & set(case.tags):
            return name
    raise LookupError(f"{case.name}: tags {case.tags} match no family; add a tag, or a family to {Path(__file__).name}")


@dataclass(frozen=True)
class Fact:
    """One row of the table in docs/reference/backends.md: `version` was checked, `how` installs it."""

    name: str
    version: str
    licence: str
    how: str


def facts(
    sources: Mapping[str, Source], pins: Mapping[str, str], extras: Mapping[str, str], packages: Mapping[str, str]
) -> Iterator[Fact]:
    """The fact of each backend, sorted by name.

    pins      distribution -> version in constraints.txt
    extras    distribution -> our extra that installs it
    packages  Debian package -> installed version
    """
    for name, source in sorted(sources.items()):
        version, how = OURS, "built in"
        if source.requires:
            version = f"{source.requires[0]} {pins.get(normal(source.requires[0]), '—')}"
            extra = extras.get(normal(source.requires[0]))
            how = f"extra `{extra}`" if extra else f"`pip install {' '.join(source.requires)}`"
        elif source.debian:
            version = next((f"{p} {packages[p]}" for p in source.debian if p in packages), "—")
            how = f"`apt install {' '.join(source.debian)}`"
        elif source.home:
            version, how = "see below", f"`{source.home}`"
        if source.builds:
            how += ", a C++ compiler" if how != "built in" else ": a C++ compiler"
        yield Fact(name, version, source.licence or "—", how)


def facts_table(found: Iterable[Fact]) -> str:
    """The table in Markdown."""
    lines = ["| backend | checked with | licence | how to install it |", "|---|---|---|---|"]
    lines += [f"| `{fact.name}` | {fact.version} | {fact.licence} | {fact.how} |" for fact in found]
    return "\n".join(lines) + "\n"


LEGEND = """\
Each section covers one family of cases. A row holds the backends with equal results, a column one operator. The cell
`✓83 ∅18 ⊗13` means: 83 cases are correct, 18 are unsupported and 13 show a known bug. A mark without a number holds for
all cases of the family. An empty cell was not checked.

| mark | meaning |
|---|---|
| ✓ | correct, or within the error that an approximate method claims, by the library's own operator |
| ○ | correct, built by adbench from other operators of the library, and labelled so when timed |
| ∅ | unsupported; search for the backend in [Reasons](#reasons) |
| ⊗ | a known bug, listed in [Known bugs](#known-bugs) |

Functions with array values have a Jacobian instead of a gradient. Traps are checked for their gradient and second
derivatives only. *relations* means [relations between calls](../how-to/write-a-backend.md#relations-between-calls).
"""
HEAD = f"""# What each backend can do

This page shows which operators of each backend are correct on which cases. [Backends](backends.md) explains how adbench
calls each backend. [Newer cases and backends](backends-table-newer.md) have their own page.

{LEGEND}
`scripts/backends-pages` makes this page from checks of every case at up to three seeds.
"""
NEWER_HEAD = f"""# Newer cases and backends

This page continues [What each backend can do](backends-table.md): newer cases with every backend, and traps with newer
backends.

{LEGEND}
`scripts/backends-pages --newer` makes this page from checks of these cases, most at their smallest size and one seed.
"""


ABSENT = "Not checked for this page: "
ABSENT_CASES = "Cases not checked for this page: "
UNABLE = "Every operator unsupported: "
PART = "Checked in part, of {} pairs of case and operator: "


def page(records: Sequence[Record], cases: Mapping[str, Case], names: Iterable[str] = (), head: str = HEAD) -> str:
    """docs/reference/backends-table.md, from the records of checks; `names` are those of all backends."""
    found = _outcomes(records, cases)
    parts = [head]
    if absent := sorted(set(names) - {backend for backend, _, _ in found}):
        parts.append(f"{ABSENT}{_named(absent)}.\n")
    checked = {record.job.case for record in records}
    if unchecked := sorted(set(cases) - checked):
        parts.append(f"{ABSENT_CASES}{_named(unchecked)}.\n")
        cases = {name: case for name, case in cases.items() if name in checked}
    parts += [*_in_part(records), *_sections(found, cases), *_composed(found), _reasons(found), _known(records, cases)]
    return "\n".join(parts)


def _sections(found: Found, cases: Mapping[str, Case]) -> Iterator[str]:
    """One table per family; backends with equal cells share a row."""
    for name, title, _ in FAMILIES:
        members = [case for case in sorted(cases) if family_of(cases[case]) == name]
        if not members:
            continue
        asked = {operator for _, family, operator in found if family == name}
        own = tuple(operator for operator in (*OPERATORS, "relations") if operator in asked)
        lines = [f"## {title}", "", _listed(members, name), ""]
        lines += [f"| | {' | '.join(own)} |", "|---" * (len(own) + 1) + "|"]
        unable: list[str] = []
        rows: dict[str, list[str]] = {}
        for backend in sorted({backend for backend, _, _ in found}):
            places = [found.get((backend, name, operator), {}) for operator in own]
            cells = [_cell(place, _checked(found, name, one)) for place, one in zip(places, own, strict=True)]
            if {kind for place in places for kind, _ in place.values()} == {"none"}:
                unable.append(backend)
            elif any(places):
                rows.setdefault(" | ".join(cells), []).append(backend)
        lines += [f"| {_names(backends)} | {row} |" for row, backends in rows.items()]
        if unable:
            lines += ["", f"{UNABLE}{_names(unable)}."]
        yield "\n".join([*lines, ""])


def _composed(found: Found) -> Iterator[str]:
    """A table of the compositions that were checked; backends and families with equal cells share a row."""
    own = tuple(name for name in COMPOSITIONS if any(operator == name for _, _, operator in found))
    lines = ["## Second derivatives by composition of modes", ""]
    lines += ["H v, for example by forward over reverse mode, where the library can nest its modes.", ""]
    lines += [f"| | cases | {' | '.join(map(_heading, own))} |", "|---" * (len(own) + 2) + "|"]
    families: dict[tuple[str, str], list[str]] = {}
    for family, _, _ in FAMILIES:
        for backend in sorted({who for who, of, operator in found if of == family and operator in own}):
            cells = " | ".join(
                _cell(found.get((backend, family, operator), {}), _checked(found, family, operator)) for operator in own
            )
            families.setdefault((backend, cells), []).append(family)
    rows: dict[tuple[str, str], list[str]] = {}
    for (backend, cells), of in families.items():
        rows.setdefault((", ".join(of), cells), []).append(backend)
    lines += [f"| {_names(backends)} | {of} | {cells} |" for (of, cells), backends in rows.items()]
    if own:
        yield "\n".join([*lines, ""])


def _names(backends: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in backends)


def _columns(found: Found) -> tuple[str, ...]:
    """All checked operators, in order."""
    asked = {operator for _, _, operator in found}
    return (*OPERATORS, *(name for name in COMPOSITIONS if name in asked), "relations")


def _heading(operator: str) -> str:
    """The operator; a composition in short, as "reverse ∘ forward"."""
    return definition(operator).label if operator in COMPOSITIONS else operator


def _in_part(records: Iterable[Record]) -> list[str]:
    """A line with the backends that were checked in part."""
    asked: dict[str, set[tuple[str, str]]] = {}
    for record in records:
        asked.setdefault(record.job.backend, set()).add((record.job.case, record.job.operator))
    whole = max(asked.values(), key=len, default=set())
    part = [f"`{name}` {len(of & whole):,}" for name, of in sorted(asked.items()) if whole - of]
    return [f"{PART.format(f'{len(whole):,}')}{', '.join(part)}.\n"] if part else []


def _listed(members: Sequence[str], name: str) -> str:
    if name == "traps":
        return f"The {len(members)} traps that were checked, of those at the end of [Cases](cases.md)."
    return f"{_named(members)}."


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


Outcome = tuple[str, str]  # a key of MARKS, and the reason
Found = dict[tuple[str, str, str], dict[str, Outcome]]  # (backend, family, operator) -> case -> its outcome


def _outcomes(records: Iterable[Record], cases: Mapping[str, Case]) -> Found:
    """The outcomes of all cases in the records."""
    found: Found = {}
    for record in records:
        job = record.job
        if job.case not in cases or record.status == "skipped":
            continue
        place = found.setdefault((job.backend, family_of(cases[job.case]), job.operator), {})
        outcome = _outcome(record, cases[job.case])
        before = place.get(job.case, outcome)
        # Success at one size counts, even if another size is unsupported, for example because its program is too long.
        if {before[0], outcome[0]} in ({"own", "none"}, {"made", "none"}):
            place[job.case] = min(before, outcome, key=lambda one: one[0] == "none")
        else:
            place[job.case] = max(before, outcome, key=lambda one: ORDER.index(one[0]))
    return found


def _outcome(record: Record, case: Case) -> Outcome:
    if record.status == "ok":
        return ("own" if record.how in ("native", None) else "made"), ""
    if record.status == "unsupported":
        return "none", general((record.reason or "").replace(f" no {record.job.operator}", " no such operator"), case)
    if record.status == "known":
        return "known", ""
    return "fault", general(record.reason or record.status, case)


def general(reason: str, case: Case) -> str:
    """A reason without the details of one case: names, counts, positions in files, and paths."""
    reason = re.sub(
        r" was not found in [^;]*; ", " was not found; ", re.sub(r"; (the whole of it is in|see) /.*", "", reason)
    )
    reason = re.sub(r"\b(native|\w+) of \w+: \w+\.hpp:\d+:\d+: ", r"\1: ", reason)
    reason = re.sub(r" implements only .*$", " implements other cases only", reason)
    file = case.file.rpartition("/")[2].removesuffix(".py")
    for own in (case.name, case.same_twin or "", file):
        if own:
            reason = re.sub(rf"\b{re.escape(own)}\b(?=\.(hpp|py)\b)", "CASE", reason)
            reason = re.sub(rf"(?<!has no )\b{re.escape(own)}\b", "the case", reason)
    reason = reason.replace(" on CASE.hpp has no ", " has no ")
    return re.sub(r"(?<![\w.^-])\d[\d,]*(?![\w.])", "…", reason).replace("|", r"\|")


def _checked(found: Found, family: str, operator: str) -> int:
    """The number of the family's cases on which some backend's operator was checked."""
    return len({case for (_, of, one), cases in found.items() if (of, one) == (family, operator) for case in cases})


def _cell(outcomes: Mapping[str, Outcome], of: int) -> str:
    """The marks with their numbers; a mark alone if it holds for all of so many cases."""
    kinds = [kind for kind, _ in outcomes.values()]
    there = [kind for kind in ORDER if kind in kinds]
    whole = len(there) == 1 and len(kinds) == of
    return " ".join(MARKS[kind] if whole else f"{MARKS[kind]}{kinds.count(kind)}" for kind in there)


def _reasons(found: Found) -> str:
    """A row for each set of backends and places, with all reasons that hold there."""
    lines = [
        "## Reasons",
        "",
        "Why operators are unsupported. Each row gives the backends, the families of cases with the affected operators",
        "(all if none is named), and the reasons. `…` and `the case` stand for numbers and names that vary.",
        "",
        "| backend | where | reasons |",
        "|---|---|---|",
    ]
    places: dict[tuple[str, str], dict[str, set[str]]] = {}
    for (backend, family, operator), outcomes in found.items():
        for reason in {reason for _, reason in outcomes.values() if reason}:
            places.setdefault((backend, reason), {}).setdefault(family, set()).add(operator)
    shared: dict[tuple[str, str], list[str]] = {}
    for backend, reason in sorted(places):
        shared.setdefault((_where(places[backend, reason], backend, found), reason), []).append(backend)
    rows: dict[tuple[str, str], list[str]] = {}
    for (where, reason), backends in sorted(shared.items(), key=lambda item: (item[1], item[0])):
        rows.setdefault((_names(backends), where), []).append(reason)
    for (names, where), reasons in rows.items():
        lines.append(f"| {names} | {where} | {_joined(reasons)} |")
    return "\n".join([*lines, ""])


START = re.compile(r"(?P<start>[^:]+? has no (?:rule for )?|.+?: )(?P<what>[^;]+?)(?P<rest>, (?:and|which) .*)?")


def _joined(reasons: Iterable[str]) -> str:
    """The reasons as sentences; reasons that start and end alike share one, as in "casadi has no einsum, fft"."""
    found: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        parts = START.fullmatch(reason)
        start, what, rest = parts.group("start", "what", "rest") if parts else ("", reason, "")
        found.setdefault((start, rest or ""), []).append(what.removesuffix("."))
    sentences = [
        f"{s}{('; ' if s.endswith(': ') else ', ').join(w)}{r}" if s else ". ".join(w) for (s, r), w in found.items()
    ]
    return ". ".join(sentences).replace("*", r"\*").replace("<", "&lt;")


def _where(of_families: Mapping[str, set[str]], backend: str, found: Found) -> str:
    """The families, with their operators unless all are affected: "traps; loops: hvp, hessian"."""
    parts: dict[str, list[str]] = {}
    for name, _, _ in FAMILIES:
        asked = {operator for who, family, operator in found if (who, family) == (backend, name)}
        if operators := of_families.get(name):
            parts.setdefault(_operators(operators, asked, _columns(found)), []).append(name)
    if len(parts) == 1 and set(of_families) == {family for who, family, _ in found if who == backend}:
        return f"all cases{next(iter(parts))}"
    return "; ".join(f"{', '.join(families)}{operators}" for operators, families in parts.items())


def _operators(affected: set[str], asked: set[str], columns: Sequence[str]) -> str:
    """The affected operators after a colon, or the unaffected ones after "all but"; "" if all are affected."""
    if not (spared := asked - affected):
        return ""
    fewer = affected if len(affected) <= len(spared) + 1 else spared
    return f":{' all but' if fewer is spared else ''} {', '.join(_heading(one) for one in columns if one in fewer)}"


def _known(records: Iterable[Record], cases: Mapping[str, Case]) -> str:
    """A row for each case and result, with its thread in the reason or in the trap's docstring."""
    lines = [
        "## Known bugs",
        "",
        "Each row gives the cases, their wrong result with its cause, the backends and, in brackets, the threads that",
        "discuss it. [Cases](cases.md#traps) gives the correct result of each trap. A check fails if one of these bugs",
        "no longer occurs.",
        "",
        "| case | result | backends |",
        "|---|---|---|",
    ]
    backends: dict[tuple[str, str], dict[str, set[str]]] = {}
    for record in records:
        if record.status == "known" and record.job.case in cases:
            case, text, threads = _known_row(record.job.case, (record.reason or "").partition(HERE)[0], cases)
            backends.setdefault((case, text), {}).setdefault(threads, set()).add(record.job.backend)
    rows: dict[tuple[str, str], list[str]] = {}
    for (case, text), by in sorted(backends.items()):
        groups = sorted((sorted(names), threads) for threads, names in by.items())
        who = "; ".join(_names(names) + (f" ({threads})" if threads else "") for names, threads in groups)
        rows.setdefault((text, who), []).append(case)
    lines += [f"| {_names(of)} | {text} | {who} |" for (text, who), of in rows.items()]
    return "\n".join([*lines, ""])


def _known_row(name: str, reason: str, cases: Mapping[str, Case]) -> tuple[str, str, str]:
    """(case, result with its cause, threads)."""
    where = THREAD.findall(reason) or THREAD.findall(cases[name].f.__doc__ or "")
    text = re.sub(r" \((as )?[\w.-]+/[\w.-]+#\d+\)$", "", reason).replace("|", r"\|").replace("*", r"\*")
    return name, text, ", ".join(dict.fromkeys(where))


def pins() -> dict[str, str]:
    """Distribution, normalised -> version, on this Python."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    asked = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {normal(r.name): str(r.specifier)[2:] for r in asked if r.marker is None or r.marker.evaluate()}


def extras() -> dict[str, str]:
    """Distribution, normalised -> the first extra that contains it."""
    found: dict[str, str] = {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, wanted in project["optional-dependencies"].items():
        for one in wanted:
            found.setdefault(normal(re.split(r"[\[<>=!~;\s]", one, maxsplit=1)[0]), extra)
    return found


def normal(distribution: str) -> str:
    """The name normalised as in PEP 503."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def table_of_facts(there: Catalog) -> str:
    """The table of facts, with the Debian packages' versions on this machine."""
    packages = packages_of_debian({name for source in there.backends.values() for name in source.debian})
    found = facts(there.backends, pins(), extras(), packages)
    return facts_table(found)


def main(arguments: Sequence[str]) -> None:
    """Write the pages; later runs override earlier ones. Without runs, write the facts only."""
    there = catalog()
    newer, runs = "--newer" in arguments, [one for one in arguments if one != "--newer"]
    latest = {record.job: record for run in runs for record in read_run(Path(run)).records}
    records = [record for job, record in latest.items() if job.backend in there.backends and job.case in there.cases]
    if newer:
        checked = {job.case for job in latest}
        cases = {name: case for name, case in there.cases.items() if name in checked}
        NEWER.write_text(page(records, cases, there.backends, NEWER_HEAD), encoding="utf-8")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table_of_facts(there)}{END}{rest.partition(END)[2]}", encoding="utf-8")
    if runs:
        TABLE.write_text(page(records, there.cases, there.backends), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
