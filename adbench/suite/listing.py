"""What there is, as rows for `adbench list`: plain data, printed by reports/listing.py or as JSON."""

from __future__ import annotations

from typing import Any

from adbench.suite.catalog import Catalog


def rows(kind: str, catalog: Catalog) -> list[dict[str, Any]]:
    """One dict for each case or backend, by name. Imports no backend."""
    return case_rows(catalog) if kind == "cases" else backend_rows(catalog)


def case_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """name, sizes, wrt, tags, summary and file of each case."""
    return [
        {
            "name": name,
            "sizes": list(case.sizes),
            "wrt": list(case.wrt),
            "tags": list(case.tags),
            "summary": catalog.case_sources[name].summary,
            "file": catalog.case_sources[name].path,
        }
        for name, case in sorted(catalog.cases.items())
    ]


def backend_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """name, version, what to install if something is missing, whose variant it is, licence, summary and file of each
    backend."""
    return [
        {
            "name": name,
            "version": source.version,
            "missing": list(source.missing),
            "install": f"pip install {' '.join(source.missing)}" if source.missing else None,
            "variant_of": source.variant_of,
            "licence": source.licence,
            "builtin": source.builtin,
            "summary": source.summary,
            "file": source.path,
        }
        for name, source in sorted(catalog.backends.items())
    ]
