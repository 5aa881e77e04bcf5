"""The timing protocol of a cell in one launch, from top to bottom.

    prepare   prepare the operator in the launch's process and call it once; the result must be the checked one
    warm up   call until three rounds in a row agree, which also tells how many calls make an epoch
    round     time one epoch while the other workers wait; the cells of a group take turns, round after round.
              On a device, time also calls that follow each other without a wait for their results
    judge     after the last round: results of timed calls, at the case's inputs and at perturbed ones, must be right
    memory    in other processes, without a clock (memory_phase.py), because its methods slow calls down

Who starts the processes and gives turns is in time_phase.py, the loop under the clock in measure/clock.py, and the
inputs that alternate in it in workers/timed_call.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from adbench.execution.workers.background import Background, in_words
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.randomisation import WorkerKey
from adbench.execution.workers.resident_worker import References, ResidentWorker
from adbench.execution.workers.timed_call import SLOW_NS
from adbench.measure.clock import FASTEST_GROWTH, WarmUp
from adbench.measure.readings import Round
from adbench.model.record import Launch, Record, Summary
from adbench.model.serialization import from_plain
from adbench.oracle.verdict import Verdict

ROUNDING = 1e-6
"""The allowed difference of two correct results, relative to the summed magnitudes: far above summation order."""


LATENCIES = 8
"""Calls that follow each other without a wait should take together so many times the latency of one."""


@dataclass
class TimedCell:
    """A cell in a launch: its worker, its preparation, its rounds so far; `lost` if something went wrong.

    beside   seconds beside its preparation and its calls
    """

    context: Context
    references: References
    record: Record
    key: WorkerKey
    worker: ResidentWorker
    prepared: dict[str, Any] = field(default_factory=dict)
    warmed_up: WarmUp | None = None
    calls: int = 1
    rounds: list[Round] = field(default_factory=list)
    unwaited: list[Round] = field(default_factory=list)
    lost: Record | None = None
    beside: float = 0.0

    def prepare(self) -> None:
        """Prepare and call once; the result must be the checked one."""
        job = self.record.job
        rotate = self.references.near(job)[0] is not None
        begun = monotonic()
        self.prepared = self.worker.ask(self.context.prepare_request(job, rotate=rotate))
        clocked = self.prepared["prepare_seconds"] + self.prepared["first_call_seconds"]
        self.beside = max(0.0, monotonic() - begun - clocked)
        allowed = rounding(self.record.verdict, self.prepared["claimed"])
        fault = differs(self.record.summary, from_plain(self.prepared["summary"], Summary), allowed)
        if fault is not None:
            self.lost = Record(job, "wrong", fault)

    def warm_up(self) -> None:
        """Warm up, and find out how many calls make an epoch."""
        asked = {name: getattr(self.context.settings, name) for name in ("warm_ns", "warm_at_most_ns", "epoch_ns")}
        response = self.worker.ask({"do": "warm_up", **asked})
        self.warmed_up, self.calls = from_plain(response["warm_up"], WarmUp), response["calls"]

    @property
    def wants_more(self) -> bool:
        """Whether it takes part in the next round."""
        return self.lost is None and sum(r.ns for r in self.rounds) < self.context.settings.cell_ns

    def round(self) -> None:
        """Time one epoch."""
        self.rounds.append(from_plain(self.worker.ask({"do": "epoch", "calls": self.calls}), Round))
        if self.prepared["unwaited"]:
            request = {"do": "epoch", "calls": self._unwaited_calls(), "unwaited": True}
            self.unwaited.append(from_plain(self.worker.ask(request), Round))

    def _unwaited_calls(self) -> int:
        """As many as fill an epoch, and take several times as long as one call whose result is waited for."""
        latency_ns = self.rounds[-1].ns // self.rounds[-1].calls
        if not self.unwaited:
            return self.calls if latency_ns > SLOW_NS else max(self.calls, LATENCIES)
        last = self.unwaited[-1]
        enough_ns = max(self.context.settings.epoch_ns, LATENCIES * latency_ns)
        return last.calls * max(1, min(FASTEST_GROWTH, enough_ns // max(1, last.ns)))

    def judge(self) -> None:
        """Judge results of timed calls. A backend may detect a check; it cannot detect which round is judged."""
        job = self.record.job
        if self.record.verdict is None:  # its reference takes too long
            return
        near, _ = self.references.near(job)
        known = [self.references.of(job), *([] if near is None else [near])]
        begun = monotonic()
        fault = self.worker.ask(self.context.request(job, "judge", operator=job.operator, references=known))
        self.beside += monotonic() - begun
        if fault is not None:
            self.lost = Record(job, "wrong", fault)

    def attempt(self, step: Callable[[], None]) -> None:
        """Take a step; if the worker gives no answer, the cell is lost."""
        try:
            step()
        except NoAnswer as no:
            self.lost = no.record(self.record.job)

    def take_turn(self, background: Background, step: Callable[[], None]) -> None:
        """Take a step while the others wait. A round in which they do not is flagged."""
        before = len(self.rounds)
        with background.turn(self.worker) as meanwhile:
            self.attempt(step)
        if meanwhile and len(self.rounds) > before:
            last = self.rounds[-1]
            reasons = [last.disturbed, in_words(meanwhile)]
            self.rounds[-1] = replace(last, disturbed="; ".join(filter(None, reasons)))

    def launch(self, number: int, background: float | None = None) -> Launch:
        """All measurements of the cell; `background`: what its worker used outside its turns."""
        assert self.warmed_up is not None
        return Launch(
            number=number,
            import_seconds=self.worker.import_seconds,
            prepare_seconds=self.prepared["prepare_seconds"],
            phases=self.prepared["phases"],
            first_call_seconds=self.prepared["first_call_seconds"],
            warm_up_calls=self.warmed_up.calls,
            steady=self.warmed_up.steady,
            rounds=tuple(self.rounds),
            background=background,
            unwaited=tuple(self.unwaited),
            reuses_programs=self.worker.reuses_programs,
        )


def rounding(verdict: Verdict | None, claimed_relative_error: float | None) -> float:
    """The allowed difference between results of two processes, relative to the summed magnitudes.

    It is larger if the method claims less, or if fewer digits can be resolved, because both amplify rounding.
    """
    allowed = max(ROUNDING, 10 * (claimed_relative_error or 0.0))
    if verdict is None or verdict.word not in ("verified", "blind", "inconclusive"):
        return allowed
    return max(allowed, 10.0 ** (1 - verdict.worst.digits_resolvable)) if verdict.worst is not None else math.inf


def differs(checked: Summary | None, now: Summary, allowed: float = ROUNDING) -> str | None:
    """Why a result differs from the checked one of another process; None if they agree up to rounding."""
    if checked is None or ((apart := checked.distance(now)) <= allowed and math.isfinite(apart)):
        return None
    was, here = (f"{s.count} with the sum {s.total!r} and the sum of sizes {s.magnitude!r}" for s in (checked, now))
    return f"differs between processes: the checked result had {was} numbers, this one {here}"
