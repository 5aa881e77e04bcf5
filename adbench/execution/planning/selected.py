"""What a request selects by name: each part of it must be judged somewhere (model/run_progress.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from adbench.catalog.discovery import Catalog
from adbench.execution.planning.request import Request
from adbench.model.record import Job, Selected, grouped
from adbench.model.settings import FLOAT64, PROCESSOR, on_device

Part = tuple[str, tuple[str, ...]]
"""A pattern of the request, and the names that it selects."""


def selected(catalog: Catalog, request: Request, jobs: Sequence[Job]) -> tuple[Selected, ...]:
    """The parts of a request; patterns here are names or globs.

    Each pattern is one, and so is each case and backend of the user. Each other backend is one in a request without
    limits: a library that cannot differentiate the one case that was named was not asked for by name. A library that
    is not installed or lacks the device or the type counts only by its pattern.
    """
    cases, backends = (tuple(dict.fromkeys(getattr(job, name) for job in jobs)) for name in ("case", "backend"))
    is_elsewhere = (request.devices, request.used_type) != ((PROCESSOR,), FLOAT64)
    limits = request.cases or request.suites or request.sizes or request.operators or is_elsewhere
    patterns = () if request.backends_by_default else request.backends

    def is_one(name: str) -> bool:
        source = catalog.backends[name]
        if source.missing or source.refuses(source.device, request.used_type):
            return False
        return not (source.builtin and limits)

    own = [name for name in cases if not catalog.case_sources[name].builtin]
    parts = [
        *(Selected("backend", *part) for part in _placed(catalog, _parts(patterns, catalog.backends), backends)),
        *(Selected("backend", name, (name,)) for name in backends if is_one(name)),
        *(Selected("case", *part) for part in _parts(request.cases, catalog.cases)),
        *(Selected("case", name, (name,)) for name in own),
    ]
    return tuple({(part.kind, part.names): part for part in reversed(parts)}.values())[::-1]


def _placed(catalog: Catalog, parts: Iterable[Part], backends: Sequence[str]) -> Iterator[Part]:
    """Each part once for each device, with the names that its backends have there."""
    for asked, names in parts:
        there = [source for source in map(catalog.backends.__getitem__, backends) if source.name in names]
        for device, sources in grouped(there, lambda source: source.device).items():
            yield on_device(asked, device), tuple(source.label for source in sources)


def _parts(patterns: Iterable[str], names: Collection[str]) -> Iterator[Part]:
    """Each pattern, with the names that it matches."""
    for pattern in patterns:
        exact = pattern in names  # without a look at the others
        yield pattern, (pattern,) if exact else tuple(name for name in names if fnmatchcase(name, pattern))
