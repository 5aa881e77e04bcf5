"""Random sessions, which look like runs on one machine.

A time is the product of the cell's cost and of random factors of a session (the machine is busier today), a launch
(each process has a random memory layout, and all workers of a launch share a factor) and a round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from adbench.model.record import Figure, Job, Launch, Memory, Record, Round, Run, Time
from adbench.results.comparison_inputs import ComparisonInput, Sample
from tests.reports import runs

Changes = Mapping[tuple[int, str] | str, float]
"""Backend, or (number of the case, backend) -> factor of its time."""

MACHINE = "processor p; cores 2; threads 1"


def times(
    rng: np.random.Generator,
    backends: Sequence[str],
    *,
    cases: int = 4,
    launches: int = 8,
    rounds: int = 12,
    layout: float = 0.015,
    shared: float = 0.01,
    noise: float = 0.01,
    session: float = 0.0,
    changes: Changes | None = None,
) -> dict[Job, np.ndarray]:
    """Log seconds per call, shape (launches, rounds), of each cell.

    layout   scatter of a process, with tails heavier than a normal's
    shared   scatter of a launch that all its processes have in common
    noise    scatter of a round, upwards only
    session  what the whole session is slower by, as a logarithm
    """
    found: dict[Job, np.ndarray] = {}
    for case in range(cases):
        common = rng.normal(0, shared, (launches, 1))
        for place, backend in enumerate(backends):
            factor = (changes or {}).get((case, backend), (changes or {}).get(backend, 1.0))
            own = rng.standard_t(4, (launches, 1)) * layout / np.sqrt(2)
            rough = np.abs(rng.normal(0, noise, (launches, rounds)))
            level = -9.0 + case + 0.7 * place + np.log(factor) + session
            found[Job(f"case{case}", 10, backend, "gradient")] = level + common + own + rough
    return found


def input_of(
    name: str, logs: Mapping[Job, np.ndarray], *, reference: str | None = "tape", **about: object
) -> ComparisonInput:
    """A side of a comparison with these times."""
    samples = {job: Sample(job, "right", None, dict(enumerate(rows))) for job, rows in logs.items()}
    facts: dict[str, object] = {"made_by": "adbench", "created": "2026-01-01T00:00:00+00:00", "machine": MACHINE}
    return ComparisonInput(name=name, samples=samples, reference=reference, **(facts | about))  # type: ignore[arg-type]


def run(logs: Mapping[Job, np.ndarray], *, seed: int = 0, **about: object) -> Run:
    """A run with these times; the reference backend, "tape", has a control that differs by a thousandth at most."""
    rng = np.random.default_rng(seed)
    records = []
    for job, rows in logs.items():
        control = _time(rows + rng.normal(0, 3e-4, rows.shape)) if job.backend == "tape" else None
        memory = Memory(Figure(1e6), Figure(2e5), Figure(4e6))
        records.append(Record(job, "ok", None, runs.verdict(), _time(rows), control, memory))
    return replace(runs.run(records), reference_backend="tape", **about)  # type: ignore[arg-type]


def _time(rows: np.ndarray) -> Time:
    """A hundred calls a round, more for short ones: a whole number of nanoseconds is rough."""
    return Time(
        tuple(
            Launch(number, 0.5, 0.01, {}, 0.001, 3, True, tuple(_round(float(np.exp(log))) for log in row))
            for number, row in enumerate(rows)
        )
    )


def _round(seconds: float) -> Round:
    calls = max(1, round(0.01 / seconds))
    return Round(calls, round(seconds * calls * 1e9))
