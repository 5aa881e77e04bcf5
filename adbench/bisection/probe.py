"""Check or measure one cell with the packages of another environment, and take the result from there.

python -P -m adbench.bisection.probe < REQUEST      writes the run as JSON to stdout
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from adbench.bisection.environments import environment_of, ran, reason_in
from adbench.execution import interrupt
from adbench.execution.session import prepare
from adbench.measure.statistics import log_ratios
from adbench.model.errors import AdbenchError
from adbench.model.record import Record, Run
from adbench.results.changes import log_ratio_of_launches
from adbench.results.comparison_inputs import of_run
from adbench.results.store import dumps, run_of

CONTROL = "tape"
"""The backend that does not change from release to release: it comes with adbench."""

DECIDED = ("right", "approximate", "verified", "surprise", "unsupported")
"""Outcomes of a cell without a wrong derivative, a failure or an open question."""


class Undecided(Exception):
    """A release cannot be judged; the message is one line with the reason."""


def main() -> None:
    """Execute the request of stdin."""
    interrupt.listen()
    with redirect_stdout(sys.stderr):  # the output of a user's function is not a result
        try:
            session = prepare(**json.load(sys.stdin))
            with closing(session.events()) as events:
                for _ in events:
                    pass
        except AdbenchError as error:
            sys.exit(f"error: {' '.join(str(error).split())}")
        except interrupt.Interrupted as interrupted:
            sys.exit(interrupted.code)
    sys.stdout.write(dumps(session.result()))


def run_in(python: Path, request: dict[str, Any]) -> Run:
    """The run of this request (fields of `Request`) in the environment of this Python. Raises Undecided."""
    variables = environment_of({"PYTHONUTF8": "1"})
    code, out, err = ran([str(python), "-P", "-m", __name__], asked=json.dumps(request), env=variables)
    if code:
        raise Undecided(f"adbench cannot run there: {reason_in('', err) or f'exit code {code}'}")
    return run_of(out.encode(), Path(os.devnull))


def judged(run: Run) -> tuple[bool, str]:
    """Whether any checked derivative is wrong, predicted by the backend's file or not, and the wrong entry.

    Raises Undecided if none is wrong, but one failed or could not be checked.
    """
    for record in run.records:
        if record.found_wrong:
            return True, f"{record.job.operator}: {_sentence(record)}"
    for record in run.records:
        if record.relations is None and record.outcome.word not in DECIDED:
            raise Undecided(f"{record.job.operator}: {record.outcome.word}: {record.reason or _sentence(record)}")
    if all(record.outcome.word == "unsupported" for record in run.records):
        raise Undecided(run.records[0].reason or "unsupported")
    return False, ""


def measured(run: Run, backend: str, *, first_result: bool) -> list[float]:
    """One number for each launch: log of the time relative to the control's calls in the same launch.

    first_result   the time until the first result, instead of that of later calls
    Raises Undecided if there is none.
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


if __name__ == "__main__":
    main()
