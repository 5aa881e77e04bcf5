"""Writes the generated parts of docs/backends.md and docs/backends-table.md; called by scripts/backends-pages.

The facts about each backend come from the literals in its file, what it can do from checks.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adbench.catalog.discovery import Catalog, Source, catalog
from adbench.catalog.installed import packages_of_debian
from adbench.model.backend import HERE
from adbench.model.case import THREAD, Case
from adbench.model.operator import COMPOSITIONS, OPERATORS
from adbench.model.record import Record
from adbench.results.store import read_run

ROOT = Path(__file__).parents[1]
PAGE, TABLE = ROOT / "docs" / "backends.md", ROOT / "docs" / "backends-table.md"
BEGIN, END = "<!-- Made by scripts/backends-pages from the literals in the backends' files. -->\n", "<!-- made -->\n"
OURS = "adbench's own"
FAMILIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("traps", "Traps: small functions that some library gets wrong", ("trap",)),
    ("array-valued", "Functions whose value is an array", ("array-valued",)),
    ("data-dependent", "Loops and branches that the data decide", ("data-dependent",)),
    ("equations", "Differential equations, step by step", ("ode",)),
    ("linear algebra", "Factorisations, determinants, solutions", ("linear-algebra",)),
    ("loops", "Loops over numbers", ("scalar-loop", "nested-loops", "elements", "recursion", "loop")),
    ("nested and random", "Nested inputs, and draws", ("nested", "random")),
    ("matrices", "Products of matrices", ("matrix",)),
    ("densities", "Densities of vectors", ("density",)),
    ("vectors", "Sums and products of vectors", ("vectorised", "elementwise", "smoke")),
)
"""Name, title and tags: a case is of the first family of which it has a tag."""

MARKS = {"own": "✓", "made": "○", "known": "⊗", "none": "∅", "fault": "✗"}
ORDER = ("own", "made", "none", "known", "fault")  # where sizes or seeds differ, the last one is the case's


def family_of(case: Case) -> str:
    """The family's name. Raises LookupError for a case with none of the tags: it needs one, or a family."""
    for name, _, tags in FAMILIES:
        if set(tags) & set(case.tags):
            return name
    raise LookupError(f"{case.name}: none of its tags {case.tags} is that of a family in scripts/backends_pages.py")


@dataclass(frozen=True)
class Fact:
    """One backend as the page shows it; `version` is what it was checked with, `how` what installs it."""

    name: str
    version: str
    licence: str
    how: str


def facts(
    sources: Mapping[str, Source], pins: Mapping[str, str], extras: Mapping[str, str], packages: Mapping[str, str]
) -> Iterator[Fact]:
    """A fact for each backend by name.

    pins      distribution -> version, as constraints.txt has them
    extras    distribution -> the extra of ours that installs it
    packages  package of Debian -> installed version
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
    """Markdown."""
    lines = ["| backend | checked with | licence | what installs it |", "|---|---|---|---|"]
    lines += [f"| `{fact.name}` | {fact.version} | {fact.licence} | {fact.how} |" for fact in found]
    return "\n".join(lines) + "\n"


HEAD = """# What each backend can do

Made by `scripts/backends-pages` from checks of every case at up to three seeds; [Backends](backends.md) says how each
one is called.

| | |
|---|---|
| ✓ | the library's own operator, right |
| ○ | made from other operators of the library by adbench, right, and labelled so where it is timed |
| ∅ | it cannot, for the reason of that number |
| ⊗ | wrong or failing, as its file says it is known to be: listed at the end |

A number after a mark counts cases where those of a family differ. An empty place was not asked: only a function whose
value is a number has a gradient, and a trap is asked for it and for what is of second order. What can do none of a
family is named below its table. *reverse ∘ forward* and the like are H v by that composition of the library's modes.
The last column holds the [relations](../README.md#what-the-verdicts-mean) between calls. *Right* includes methods that
are approximate by nature and keep to what they claim.
"""


ABSENT = "Not checked when this was made, and so not in it: "
UNABLE = "Able to do none of these: "
PART = "Checked in part when this was made, of {} pairs of a case and an operator: "


def page(records: Sequence[Record], cases: Mapping[str, Case], names: Iterable[str] = ()) -> str:
    """docs/backends-table.md, from the records of checks; `names` are those of all backends there are."""
    reasons: dict[str, int] = {}
    found = _outcomes(records, cases)
    backends = sorted({backend for backend, _, _ in found})
    parts = [HEAD]
    if absent := sorted(set(names) - set(backends)):
        parts.append(f"{ABSENT}{', '.join(f'`{name}`' for name in absent)}.\n")
    parts += _in_part(records)
    asked = {operator for _, _, operator in found}
    columns = (*OPERATORS, *(name for name in COMPOSITIONS if name in asked), "relations")
    for name, title, _ in FAMILIES:
        members = [case for case in sorted(cases) if family_of(cases[case]) == name]
        of_family = {operator for _, family, operator in found if family == name}
        own = tuple(one for one in columns if one in of_family) if name == "traps" else columns
        lines = [f"## {title}", "", _listed(members, name), ""]
        lines += [f"| | {' | '.join(map(_heading, own))} |", "|---" * (len(own) + 1) + "|"]
        unable: dict[str, list[str]] = {}
        for backend in backends:
            places = [found.get((backend, name, operator), {}) for operator in own]
            if {kind for place in places for kind, _ in place.values()} == {"none"}:
                said = [reason for place in places for _, reason in place.values()]
                unable.setdefault(_notes(said, reasons), []).append(f"`{backend}`")
            elif any(places):
                lines.append(f"| `{backend}` | {' | '.join(_cell(place, reasons) for place in places)} |")
        if unable:
            lines += ["", UNABLE + "; ".join(f"{', '.join(who)}{why}" for why, who in unable.items()) + "."]
        parts.append("\n".join([*lines, ""]))
    parts.append(_reasons(reasons))
    parts.append(_known(records, cases))
    return "\n".join(parts)


def _heading(operator: str) -> str:
    """The operator; a composition in short, as "reverse ∘ forward"."""
    return operator.removeprefix("hvp_").replace("_over_", " ∘ ") if operator in COMPOSITIONS else operator


def _in_part(records: Iterable[Record]) -> list[str]:
    """The backends that were checked in part, and how many of the pairs."""
    asked: dict[str, set[tuple[str, str]]] = {}
    for record in records:
        asked.setdefault(record.job.backend, set()).add((record.job.case, record.job.operator))
    whole = max(asked.values(), key=len, default=set())
    part = [f"`{name}` {len(of & whole):,}" for name, of in sorted(asked.items()) if whole - of]
    return [f"{PART.format(f'{len(whole):,}')}{', '.join(part)}.\n"] if part else []


def _listed(members: Sequence[str], name: str) -> str:
    if name == "traps":
        return f"{len(members)} cases, listed at the end of [Cases](cases.md)."
    return ", ".join(f"`{member}`" for member in members) + "."


Outcome = tuple[str, str]  # a key of MARKS, and the reason


def _outcomes(records: Iterable[Record], cases: Mapping[str, Case]) -> dict[tuple[str, str, str], dict[str, Outcome]]:
    """(backend, family, operator) -> case -> its outcome."""
    found: dict[tuple[str, str, str], dict[str, Outcome]] = {}
    for record in records:
        job = record.job
        if job.case not in cases or record.status == "skipped":
            continue
        place = found.setdefault((job.backend, family_of(cases[job.case]), job.operator), {})
        outcome = _outcome(record, cases[job.case])
        before = place.get(job.case, outcome)
        # A library that can at one size can; that it does not at another (too long a program, say) is no `cannot`.
        if {before[0], outcome[0]} in ({"own", "none"}, {"made", "none"}):
            place[job.case] = min(before, outcome, key=lambda one: one[0] == "none")
        else:
            place[job.case] = max(before, outcome, key=lambda one: ORDER.index(one[0]))
    return found


def _outcome(record: Record, case: Case) -> Outcome:
    if record.status == "ok":
        return ("own" if record.how in ("native", None) else "made"), ""
    if record.status == "unsupported":
        return "none", general(record.reason or "", case)
    if record.status == "known":
        return "known", ""
    return "fault", general(record.reason or record.status, case)


def general(reason: str, case: Case) -> str:
    """A reason without what belongs to one case: its names, counts, places in files, and paths."""
    reason = re.sub(r" was not found in [^;]*; ", " was not found; ", reason.partition("; the whole of it is in ")[0])
    reason = re.sub(r"\b(native|\w+) of \w+: \w+\.hpp:\d+:\d+: ", r"\1: ", reason)
    reason = re.sub(r" has its own text of .* only$", " has texts of its own, of other cases only", reason)
    file = case.file.rpartition("/")[2].removesuffix(".py")
    for own in (case.name, case.same_twin or "", file):
        if own:
            reason = re.sub(rf"\b{re.escape(own)}\b(?=\.(hpp|py)\b)", "CASE", reason)
            reason = re.sub(rf"\b{re.escape(own)}\b", "the case", reason)
    reason = reason.replace(" on CASE.hpp has no ", " has no ")
    return re.sub(r"(?<![\w.^-])\d[\d,]*(?![\w.])", "…", reason).replace("|", r"\|")


def _cell(outcomes: Mapping[str, Outcome], reasons: dict[str, int]) -> str:
    kinds = {kind: [reason for k, reason in outcomes.values() if k == kind] for kind in ORDER}
    there = {kind: said for kind, said in kinds.items() if said}
    texts = []
    for kind, said in there.items():
        count = f" {len(said)}" if len(there) > 1 else ""
        texts.append(f"{MARKS[kind]}{count}{_notes(said, reasons)}")
    return " · ".join(texts)


def _notes(said: Iterable[str], reasons: dict[str, int]) -> str:
    """The numbers of these reasons, of which new ones get the next."""
    numbers = sorted({reasons.setdefault(reason, len(reasons) + 1) for reason in said if reason})
    return f" <sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""


def _reasons(reasons: Mapping[str, int]) -> str:
    lines = ["## Reasons", ""]
    lines += [
        f"{number}. {reason.replace('*', chr(92) + '*').replace('<', '&lt;')}" for reason, number in reasons.items()
    ]
    return "\n".join([*lines, ""])


def _known(records: Iterable[Record], cases: Mapping[str, Case]) -> str:
    """Every known fault with where it is discussed: in the reason, or in the record of the trap."""
    lines = [
        "## Known faults",
        "",
        "Each is expected: a check that finds none turns red. The traps say what the truth is, and why.",
        "",
        "| case | backend | what it does there | discussed in |",
        "|---|---|---|---|",
    ]
    expected = [record for record in records if record.status == "known" and record.job.case in cases]
    shared: dict[tuple[str, str], set[str]] = {}
    for record in expected:
        shared.setdefault((record.job.case, (record.reason or "").partition(HERE)[0]), set()).add(
            f"`{record.job.backend}`"
        )
    for (case, text), backends in sorted(shared.items()):
        where = THREAD.findall(text) or THREAD.findall(cases[case].f.__doc__ or "")
        said = re.sub(r" \((as )?[\w.-]+/[\w.-]+#\d+\)$", "", text).replace("|", r"\|").replace("*", r"\*")
        lines.append(
            f"| `{case}` | {', '.join(sorted(backends))} | {said} | {', '.join(dict.fromkeys(where)) or 'the trap'} |"
        )
    return "\n".join([*lines, ""])


def pins() -> dict[str, str]:
    """Distribution, as the index spells it -> version."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("#")[0].strip().partition("==") for line in lines)
    return {normal(name): version for name, _, version in pairs if version}


def extras() -> dict[str, str]:
    """Distribution -> the first extra that has it."""
    found: dict[str, str] = {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, wanted in project["optional-dependencies"].items():
        for one in wanted:
            found.setdefault(normal(re.split(r"[\[<>=!~;\s]", one, maxsplit=1)[0]), extra)
    return found


def normal(distribution: str) -> str:
    """As PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def table_of_facts(there: Catalog) -> str:
    """The table of facts, with the versions of Debian's packages that are installed here."""
    packages = packages_of_debian({name for source in there.backends.values() for name in source.debian})
    found = facts(there.backends, pins(), extras(), packages)
    return facts_table(found)


def main(runs: list[str]) -> None:
    """Write both pages from these checks, of which later ones count; with none, the facts alone."""
    there = catalog()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table_of_facts(there)}{END}{rest.partition(END)[2]}", encoding="utf-8")
    if runs:
        latest = {record.job: record for run in runs for record in read_run(Path(run)).records}
        records = [record for job, record in latest.items() if job.backend in there.backends]
        TABLE.write_text(page(records, there.cases, there.backends), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
