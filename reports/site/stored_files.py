"""The files that a site is made from: runs, results of `adbench conform`, also with --every-input, and same bits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from adbench.findings.conform import conformance
from adbench.findings.conform.conformance import Conformance
from adbench.findings.every_input.input_sweep import INPUT_SWEEP, InputSweep
from adbench.findings.same_bits.bits_matrix import FORMAT, BitsMatrix
from adbench.model.errors import UsageError
from adbench.model.record import Run
from adbench.results.store import from_data, read_any

Examined = tuple[list[tuple[str, Run]], list[Conformance], list[InputSweep], BitsMatrix | None]


def read(paths: Iterable[Path]) -> Examined:
    """((file, run), …), the results of `adbench conform`, each for one library and precision, those of --every-input,
    and the matrix of same bits.

    Raises BadFile for a file that is none of these, and UsageError for two results of one library or two matrices.
    """
    bits: BitsMatrix | None = None
    runs: list[tuple[str, Run]] = []
    sweeps: list[InputSweep] = []
    results: dict[tuple[str, str], Conformance] = {}
    for path in paths:
        found = read_any(path, _other)
        if isinstance(found, Run):
            runs.append((str(path), found))
        elif isinstance(found, InputSweep):
            if again := [name for name in found.libraries if any(name in other.libraries for other in sweeps)]:
                raise UsageError(f"{path}: a second result of {again[0]} at every input; leave one out")
            sweeps.append(found)
        elif isinstance(found, BitsMatrix):
            if bits is not None:
                raise UsageError(f"{path}: a second matrix of same bits; leave one out")
            bits = found
        else:
            for name, version in found.libraries.items():
                key = name, found.precision
                if key in results:
                    raise UsageError(f"{path}: a second result of {name} in {found.precision}; leave one out")
                cells = tuple(cell for cell in found.cells if cell.library == name)
                results[key] = replace(found, libraries={name: version}, cells=cells)
    return runs, list(results.values()), sweeps, bits


def _other(data: Any, path: Path) -> Run | Conformance | InputSweep | BitsMatrix:
    """What a file holds that does not begin as a run."""
    if isinstance(data, dict) and INPUT_SWEEP in data:
        return InputSweep.from_plain(data, path)
    if isinstance(data, dict) and "adbench conform" in data:
        return conformance.from_plain(data, path)
    if isinstance(data, dict) and FORMAT in data:
        return BitsMatrix.from_plain(data, path)
    return from_data(data, path)
