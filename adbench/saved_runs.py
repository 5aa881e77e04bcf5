"""Runs on disk, from Python: `adbench.load` and `adbench.compare`."""

from __future__ import annotations

from pathlib import Path

from adbench.model.record import Run
from adbench.results import compare as comparing
from adbench.results.importers.timing_files import read_input
from adbench.results.store import read_run


def load(path: str | Path) -> Run:
    """The run in a folder that `adbench run` wrote, in a `run.json`, or in the journal of a run that is not finished.

    Raises BadFile, in one line, for anything else.
    """
    return read_run(Path(path))


def compare(
    old: str | Path, new: str | Path, *, margin: float = 0.05, memory_margin: float = 0.1, absolute: bool = False
) -> comparing.Comparison:
    """What changed between two runs, cell by cell, as `adbench compare` says: `rows`, each with its `word`.

    old, new        what `load` reads, a log of gradbench's, or a JSON file of pytest-benchmark or pyperf
    margin          cells that are slower by less are no regression; memory_margin: the same for memory
    absolute        compare times by the clock alone, even of two machines

    Raises BadFile for what cannot be read, UsageError where the two have no cell in common.
    """
    inputs = read_input(Path(old)), read_input(Path(new))
    return comparing.compare(*inputs, margin=margin, memory_margin=memory_margin, absolute=absolute)
