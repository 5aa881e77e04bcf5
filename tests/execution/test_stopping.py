"""Groups that need no further launch, from what the launches so far say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adbench.execution.planning.stopping import LEADING, decided
from adbench.measure.statistics import looks
from adbench.model.events import Decided
from adbench.model.record import Job, Run, group_of
from adbench.model.run_progress import Head, Progress, apply
from adbench.results.analysis import ratios
from adbench.results.journal import event_of, line_of
from tests.reports import runs
from tests.support.sessions import run, times

MARGIN = 0.02


def after(launches: int, backends: int = 3, *, planned: int = 8, cases: int = 2, **about: float) -> Run:
    """A session of these backends, each twice as slow as the one before unless `changes` say otherwise."""
    names = ("tape", *(f"b{k}" for k in range(1, backends)))
    logs = times(np.random.default_rng(3), names, cases=cases, launches=planned, **about)  # type: ignore[arg-type]
    found = run({job: rows[:launches] for job, rows in logs.items()})
    return replace(found, settings=found.settings | {"launches": planned, "stop_early": True})


def test_large_differences_are_decided_after_four_launches() -> None:
    found = after(4)
    assert decided(found, 4, MARGIN) == Decided(4, tuple(dict.fromkeys(group_of(r.job) for r in found.records)))


def test_a_tie_is_measured_on_until_its_interval_is_narrow() -> None:
    equal = {"b1": np.exp(-0.7)}
    loud = {"layout": 0.06, "changes": equal}
    assert decided(after(4, 2, **loud), 4, MARGIN).groups == ()  # type: ignore[arg-type]
    assert decided(after(6, 2, **loud), 6, MARGIN).groups == ()  # type: ignore[arg-type]
    quiet = after(6, 2, layout=0.002, shared=0.001, noise=0.001, changes=equal)  # type: ignore[arg-type]
    assert len(decided(quiet, 6, MARGIN).groups) == 2


def test_a_single_backend_has_all_its_launches() -> None:
    assert decided(after(4, 1), 4, MARGIN) == Decided(4)


def stopped(found: Run, launches: int) -> set[str]:
    """The backends that take no further launch, of one case, while their group goes on."""
    event = decided(found, launches, MARGIN)
    assert event.groups == ()
    return {job.backend for job in event.jobs if job.case == "case0"}


def test_only_backends_with_an_open_difference_and_the_reference_go_on() -> None:
    equal = {"b4": np.exp(0.7)}  # as fast as b5; the others differ by a factor of two
    found = after(5, LEADING + 2, layout=0.03, changes=equal)  # type: ignore[arg-type]
    names = {"tape", *(f"b{k}" for k in range(1, LEADING + 2))}
    assert stopped(found, 5) == names - {"tape", "b4", "b5"}
    assert stopped(replace(found, reference_backend="b7"), 5) == names - {"b7", "b4", "b5"}


def test_only_an_open_difference_to_the_leading_ones_counts() -> None:
    """Ties: the tenth and the eleventh, which may change places, and beyond these."""
    edge = {f"b{LEADING}": np.exp(-0.7)}
    found = after(5, LEADING + 2, layout=0.03, changes=edge)  # type: ignore[arg-type]
    assert len(decided(found, 5, MARGIN).groups) == 2, "all differences between the leading ones are decided"
    beyond = {f"b{LEADING + 1}": np.exp(-0.7), "b2": np.exp(-0.7)}
    found = after(5, LEADING + 2, layout=0.03, changes=beyond)  # type: ignore[arg-type]
    assert {f"b{LEADING}", f"b{LEADING + 1}"} <= stopped(found, 5)


def test_an_approximate_backend_stops_at_the_first_look() -> None:
    found = after(4, 3, layout=0.06, changes={"b2": np.exp(-1.4)})  # type: ignore[arg-type]
    verdict = runs.verdict("approximate")
    records = tuple(replace(r, verdict=verdict) if r.job.backend == "b1" else r for r in found.records)
    assert stopped(replace(found, records=records), 4) == {"b1"}


def test_a_decision_stays_one_when_the_launches_stop() -> None:
    """The report judges groups of different lengths as the scheduler did."""
    four, eight = after(4), after(8)
    mixed = replace(
        eight,
        records=tuple(a if a.job.case == "case0" else b for a, b in zip(four.records, eight.records, strict=True)),
    )
    found = ratios(mixed, MARGIN)
    assert {ratio.launches for ratio in found} == {4, 8}
    assert {ratio.word for ratio in found} == {"faster"}
    assert {round(ratio.interval.level, 2) for ratio in found if ratio.interval} == {0.95, 0.96}


def test_without_early_stops_p_values_are_those_of_all_launches() -> None:
    found = after(8, changes={"b1": 0.52})  # type: ignore[arg-type]
    whole = replace(found, settings=found.settings | {"stop_early": False})
    pairs = zip(ratios(found, MARGIN), ratios(whole, MARGIN), strict=True)
    share = 0.05 / looks(8)[8]
    assert all(one.p is not None and all_.p is not None and one.p <= share * all_.p + 1e-12 for one, all_ in pairs)


def test_what_is_decided_survives_the_journal_and_ends_launches() -> None:
    found = after(4)
    jobs = tuple(record.job for record in found.records)
    event = Decided(4, (group_of(jobs[0]),), (jobs[-1],))
    line = line_of(event)
    assert line is not None
    assert event_of(line) == event
    progress = Progress(Head(found, jobs))
    apply(event, progress)
    assert progress.decided == {group_of(jobs[0]), jobs[-1]}
    assert progress.looks == {4}


def session_with_early_stops(rng: np.random.Generator, names: tuple[str, ...], **about: object) -> Run:
    """A session as the scheduler runs it: what is decided after a look takes no launch beyond it."""
    logs = times(rng, names, **about)  # type: ignore[arg-type]
    taken = dict.fromkeys(logs, 8)
    for look in [n for n in looks(8) if n < 8]:
        found = with_stops({job: logs[job][: min(look, n)] for job, n in taken.items()})
        event = decided(found, look, MARGIN)
        stop = {*event.jobs, *(job for job in logs if group_of(job) in event.groups)}
        taken |= {job: look for job in stop if taken[job] > look}
    return with_stops({job: logs[job][:n] for job, n in taken.items()})


def with_stops(logs: dict[Job, np.ndarray]) -> Run:
    found = run(logs)
    return replace(found, settings=found.settings | {"launches": 8, "stop_early": True})


@pytest.mark.slow
@pytest.mark.parametrize("layout", [0.015, 0.06])
def test_of_a_hundred_sessions_without_differences_at_most_five_have_a_false_one(layout: float) -> None:
    """Four equal backends beside a slower one, which stops early; tails heavier than a normal's."""
    rng, names = np.random.default_rng(11), ("tape", "b1", "b2", "b3", "b4")
    equal = {f"b{k}": np.exp(-0.7 * k) for k in (1, 2, 3)} | {"b4": 4.0}
    false, launches = 0, []
    for _ in range(200):
        found = session_with_early_stops(rng, names, layout=layout, changes=equal)
        verdicts = [ratio.word for ratio in ratios(found, MARGIN) if "b4" not in (ratio.a.backend, ratio.b.backend)]
        false += "faster" in verdicts or "slower" in verdicts
        launches += [len(r.time.launches) for r in found.records if r.time and r.job.backend == "b4"]
    assert false <= 17, "10 of 200 are 5 %; more than 17 have a chance of 1 in 100"
    assert np.mean(launches) < 6


@pytest.mark.parametrize("seed", range(3))
def test_no_group_stops_on_noise_alone(seed: int) -> None:
    """Equal backends on a loud machine: no verdict, and no interval that would count as a tie."""
    names = ("tape", "b1")
    logs = times(np.random.default_rng(seed), names, cases=20, launches=6, layout=0.06, changes={"b1": np.exp(-0.7)})
    found = run(logs)
    found = replace(found, settings=found.settings | {"launches": 8, "stop_early": True})
    assert len(decided(found, 6, MARGIN).groups) <= 1
