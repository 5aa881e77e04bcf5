"""Have one cell checked or measured in another environment, and judge the run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adbench.bisection.environments import environment_of, ran, reason_in
from adbench.measure.statistics import log_ratios
from adbench.model.record import Record, Run
from adbench.results.changes import log_ratio_of_launches
from adbench.results.comparison_inputs import of_run
from adbench.results.store import run_of

CONTROL = "tape"
"""The backend that does not change from release to release: it comes with adbench."""

DECIDED = ("right", "approximate", "verified", "surprise", "unsupported")
"""Outcomes of a cell without a wrong derivative, a failure or an open question."""


class Undecided(Exception):
    """A release cannot be judged; the message is one line with the reason."""


@dataclass(frozen=True)
class CellJudge:
    """Judges one cell in the environment of a Python.

    request       fields of `Request`: the cell, and the control if it is timed
    first_result  time the first result instead of later calls
    """

    request: Mapping[str, Any]
    backend: str
    first_result: bool = False

    def wrong(self, python: Path) -> str | None:
        """The wrong entry; None if everything is correct. Raises Undecided."""
        return judged(run_in(python, self.request))

    def launches(self, python: Path, count: int) -> list[float]:
        """Of each launch the log of the time relative to the control. Raises Undecided if there are fewer."""
        run = run_in(python, {**self.request, "launches": count})
        times = measured(run, self.backend, first_result=self.first_result)
        if len(times) < count:
            raise Undecided(f"only {len(times)} of {count} launches were measured")
        return times


def run_in(python: Path, request: Mapping[str, Any]) -> Run:
    """The run of this request (fields of `Request`) in the environment of this Python. Raises Undecided."""
    command = [str(python), "-P", "-m", "adbench.bisection.probe"]
    code, out, err = ran(command, asked=json.dumps(dict(request)), env=environment_of(PYTHONUTF8="1"))
    if code:
        raise Undecided(f"adbench cannot run there: {reason_in('', err) or f'exit code {code}'}")
    return run_of(out.encode(), Path(os.devnull))


def judged(run: Run) -> str | None:
    """The first wrong derivative, known to be or not; None if all are correct.

    Raises Undecided if none is wrong, but one failed or could not be checked.
    """
    for record in run.records:
        if record.found_wrong:
            return f"{record.job.operator}: {_sentence(record)}"
    for record in run.records:
        if record.relations is None and record.outcome.word not in DECIDED:
            raise Undecided(f"{record.job.operator}: {record.outcome.word}: {record.reason or _sentence(record)}")
    if all(record.outcome.word == "unsupported" for record in run.records):
        raise Undecided(run.records[0].reason or "unsupported")
    return None


def measured(run: Run, backend: str, *, first_result: bool) -> list[float]:
    """One number for each launch: log of the time relative to the control's calls in the same launch.

    first_result   the time until the first result, instead of that of later calls
    Raises Undecided if one of the two was not timed.
    """
    samples = {sample.key.backend: sample for sample in of_run(run, "").samples.values()}  # type: ignore[union-attr]
    for name in (CONTROL, backend):
        if not samples[name].timed:
            raise Undecided(f"{name} was not timed: {samples[name].reason or samples[name].state}")
    library, control = samples[backend], samples[CONTROL]
    if not first_result:
        return list(log_ratio_of_launches(library, control).values())
    calls = {number: float(log_ratios(row, np.zeros_like(row))) for number, row in control.logs.items()}
    return [library.prepare[number] - calls[number] for number in sorted(library.prepare.keys() & calls.keys())]


def _sentence(record: Record) -> str:
    return record.verdict.sentence if record.verdict is not None else record.reason or record.status
