"""A run as JSON: all that `run.json` has, for a run whose folder has a journal only, or to keep one file of it."""

from __future__ import annotations

from adbench.model.record import Run
from adbench.results.store import dumps


def render(run: Run) -> str:
    """The text of `run.json`."""
    return dumps(run)
