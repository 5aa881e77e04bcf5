"""The files that a site is made from: runs, and results of `adbench conform`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from adbench.findings.conform import conformance
from adbench.findings.conform.conformance import Conformance
from adbench.model.errors import UsageError
from adbench.model.record import Run
from adbench.results.store import from_data, is_journal, is_present, loaded, read_bytes, read_run, run_of


def read(paths: Iterable[Path]) -> tuple[list[tuple[str, Run]], list[Conformance]]:
    """((file, run), …) and the results of `adbench conform`, each for one library and precision.

    Raises BadFile for a file that is neither, and UsageError for two results of one library.
    """
    runs: list[tuple[str, Run]] = []
    results: dict[tuple[str, str], Conformance] = {}
    for path in paths:
        found = _read(path)
        if isinstance(found, Run):
            runs.append((str(path), found))
            continue
        for name, version in found.libraries.items():
            if (name, found.precision) in results:
                raise UsageError(f"{path}: a second result of {name} in {found.precision}; leave one out")
            cells = tuple(cell for cell in found.cells if cell.library == name)
            results[name, found.precision] = Conformance(
                {name: version}, cells, found.seed, found.precision, found.missing
            )
    return runs, list(results.values())


def _read(path: Path) -> Run | Conformance:
    if path.is_dir() or is_journal(path):
        return read_run(path)
    text = read_bytes(path)
    if is_present(text):
        return run_of(text, path)
    data = loaded(text, path)
    if isinstance(data, dict) and "adbench conform" in data:
        return conformance.from_plain(data, path)
    return from_data(data, path)
