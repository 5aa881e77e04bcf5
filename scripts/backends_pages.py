"""docs/backends-table.md and the table of facts in docs/backends.md; see backends-pages."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from adbench.catalog.discovery import Catalog, catalog, report_module
from adbench.catalog.installed import packages_of_debian
from adbench.results.store import read_run

ROOT = Path(__file__).parents[1]
PAGE, TABLE = ROOT / "docs" / "backends.md", ROOT / "docs" / "backends-table.md"
BEGIN, END = "<!-- Made by scripts/backends-pages from the literals in the backends' files. -->\n", "<!-- made -->\n"
pages = report_module("backend_pages")


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


def facts(there: Catalog) -> str:
    """The table of facts, with the versions of Debian's packages that are installed here."""
    packages = packages_of_debian({name for source in there.backends.values() for name in source.debian})
    found = pages.facts(there.backends, pins(), extras(), packages)
    return str(pages.facts_table(found))


def main(runs: list[str]) -> None:
    """Write both pages from these checks, of which later ones count; with none, the facts alone."""
    there = catalog()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{facts(there)}{END}{rest.partition(END)[2]}", encoding="utf-8")
    if runs:
        latest = {record.job: record for run in runs for record in read_run(Path(run)).records}
        records = [record for job, record in latest.items() if job.backend in there.backends]
        TABLE.write_text(pages.page(records, there.cases, there.backends), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
