"""Runs made by hand: a small factory, so that each test says only what matters to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adbench.model.record import Figure, Job, Launch, Memory, Record, Round, Run, Status, Time
from adbench.oracle.verdict import Verdict

SENTENCES = {
    "right": "all 2 compared numbers are right",
    "wrong": "1 of 2 wrong, the worst is sigma: got 3.0, expected 2.0 (0.3 digits correct, 12.0 resolvable)",
    "verified": "verified to 6 digits: 1 of 2 numbers cannot be resolved to nine",
    "blind": "blind for 1 of 2 numbers: rounding hides the answer, and zero would pass too",
    "inconclusive": "nothing wrong, but 1 of 2 cannot be resolved to nine digits",
    "approximate": "within the claimed relative error of 1e-06",
}


DIGITS = {"right": 12.0, "verified": 6.5, "blind": 0.0}


def verdict(word: str = "right") -> Verdict:
    """A verdict with nothing but its word, its digits and a sentence."""
    counts = {"right": 2, "wrong": 0, "inconclusive": 0}
    return Verdict(word, SENTENCES[word], None, None, 2, **counts, method="by hand", reason="", digits=DIGITS.get(word))  # type: ignore[arg-type]


STEPS = (2, -2, 1, -1, 0, 1, -1, 2, -2)
"""Launch by launch, in spreads: the quartiles over launches are one spread away from the median."""


def time(
    seconds: float = 1e-6,
    *,
    spread: float = 0.05,
    prepare: float = 1e-4,
    first: float = 1e-5,
    launches: int = 9,
    wobble: float = 0.0,
) -> Time:
    """Launches around `seconds` per call; the quartiles are `spread` away from it, up and down.

    All times move together, launch by launch, so that ratios are exact, and any ratio other than 1 is significant.
    `wobble` moves this cell alone, up and down in turn.
    """

    def one(number: int) -> Launch:
        factor = (1 + STEPS[number % len(STEPS)] * spread) * (1 + (-1) ** number * wobble)
        calls = 10**6
        round_ = Round(calls, max(1, round(seconds * 1e9 * calls * factor)))
        return Launch(number, 0.5, prepare, {}, first, 3, True, (round_,))

    return Time(tuple(map(one, range(launches))))


def memory(python: float | None = 1024.0, resident: float | None = 8192.0, reason: str | None = None) -> Memory:
    """Python's and the resident peak; None needs the reason. No allocated peak."""
    return Memory(
        Figure(None, "memray is not installed"),
        Figure(python, reason if python is None else None),
        Figure(resident, reason if resident is None else None),
    )


def record(
    case: str = "quadratic",
    size: int = 10,
    backend: str = "tape",
    operator: str = "gradient",
    *,
    status: Status = "ok",
    word: str | None = "right",
    seconds: float | None = 1e-6,
    spread: float = 0.05,
    reason: str | None = None,
    stderr: str | None = None,
    memory: Memory | None = None,
    wobble: float = 0.0,
) -> Record:
    """A record; one that is not `ok` has neither verdict nor figures."""
    job = Job(case, size, backend, operator)
    if status != "ok":
        judged = verdict("wrong") if status == "wrong" else None
        return Record(job, status, reason or f"{backend} {status}", judged, stderr=stderr)
    timed = None if seconds is None else time(seconds, spread=spread, wobble=wobble)
    return Record(job, "ok", reason, None if word is None else verdict(word), timed, memory=memory, stderr=stderr)


def run(records: Iterable[Record] = (), **changes: object) -> Run:
    """A run of these records, on a machine of no name."""
    found = tuple(records)
    about: dict[str, object] = {
        "schema_version": 2,
        "created": "2025-01-02T03:04:05+00:00",
        "adbench_version": "0.0.0",
        "seed": 7,
        "settings": {"seed": 7, "rounds": 5, "epoch_ns": 4_000_000, "time": True},
        "machine": {"processor": "a processor", "cores": 2, "memory_bytes": 8_000_000_000, "max_mhz": None},
        "versions": {r.job.backend: "1.0" for r in found},
        "cases": {r.job.case: f"What {r.job.case} is." for r in found},
        "records": found,
    }
    return Run(**(about | changes))  # type: ignore[arg-type]


def race(times: Sequence[tuple[str, float]], *, case: str = "quadratic", size: int = 10) -> list[Record]:
    """Right gradients of several backends at one place."""
    return [record(case, size, backend, seconds=seconds) for backend, seconds in times]
