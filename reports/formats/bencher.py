"""A run in Bencher Metric Format, https://bencher.dev/docs/reference/bencher-metric-format/: JSON for `bencher run`.

{"case[size]-backend-operator": {"latency": {"value": …, "lower_value": …, "upper_value": …}}}. "latency" is Bencher's
own measure, in nanoseconds; the others are bytes. The format holds numbers only, so missing figures are left out.
"""

from __future__ import annotations

import json

from adbench.model.record import Run

from ..content.cells import Cell
from ..figures.panels import MEMORY_METHODS, memory_bytes
from . import timed_cells
from .timed_cells import left_out as left_out


def render(run: Run) -> str:
    """The JSON text. `lower_value` and `upper_value` are the quartiles over launches."""
    found = {name: _measures(cell) for name, cell in timed_cells.timed_cells(run)}
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _measures(cell: Cell) -> dict[str, dict[str, float]]:
    assert cell.spread is not None  # a timed cell
    value, low, high = (seconds * 1e9 for seconds in (cell.spread.median, cell.spread.low, cell.spread.high))
    found = {"latency": {"value": value, "lower_value": low, "upper_value": high}}
    for method, _ in MEMORY_METHODS:
        size, _ = memory_bytes(cell, method)
        if size is not None:
            found[method.replace("_", "-")] = {"value": size}
    return found
