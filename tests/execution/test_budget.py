"""Plans that fit a time: the estimate counts the scheduler's work, and omissions are reported in order."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from adbench.execution.planning import costs as kept
from adbench.execution.planning.budget import FEWEST_LAUNCHES, Fit, fit
from adbench.execution.planning.costs import Costs
from adbench.execution.planning.estimate import RATES_SECONDS, Estimate
from adbench.execution.planning.forecast import Forecast
from adbench.execution.session import Session, prepare
from adbench.model.events import CellSeconds, Checked, Learned, MemoryMeasured, Started, Timed
from adbench.model.record import Figure, Job, Launch, Launched, Memory, Record, Round, Run, Summary
from adbench.model.run_progress import Head, Progress, apply
from adbench.model.settings import Settings

CASES = {"cheap": (1, 10, 100), "dear": (1, 10, 100, 1000), "single": (1,)}
JOBS = [
    Job(case, size, backend, operator)
    for case, sizes in CASES.items()
    for size in sizes
    for operator in ("value", "gradient")
    for backend in ("tape", "other")
]
SECONDS = {"cheap": 1e-4, "dear": 1e-2, "single": 1e-3}  # per call and unit of size


def known() -> Costs:
    """A machine with costs of earlier runs for everything."""
    found = Costs({"tape": 0.5, "other": 2.0})
    for job in JOBS:
        call = SECONDS[job.case] * job.size
        found.learn(job, seconds=CellSeconds(0.01, 2 * call, call))
    return found


def fitted(seconds: float, settings: Settings | None = None) -> Fit:
    return fit(JOBS, Estimate(settings or Settings(), known()), seconds)


def test_the_estimate_adds_up_the_work_of_the_scheduler() -> None:
    settings = Settings(memory=False, launches=3, rounds=4, epoch_ns=10_000_000, warm_ns=200_000_000)
    job = Job("single", 1, "other", "gradient")
    one = Estimate(settings, known()).launch(job)
    # prepare, first call, five rounds to warm up, four that are timed; and what asking takes
    assert one == pytest.approx(0.01 + 0.002 + 5 * 0.010 + 4 * 0.010, abs=0.05)
    assert one > 0.01 + 0.002 + 5 * 0.010 + 4 * 0.010
    control = Estimate(settings, known()).launch(replace(job, backend="tape"))
    assert control == pytest.approx(2 * one, rel=0.01)
    fixed = replace(settings, stop_early=False)
    few, more = (Estimate(replace(fixed, launches=n), known()).of(JOBS).time for n in (3, 6))
    assert more - RATES_SECONDS == pytest.approx(2 * (few - RATES_SECONDS))
    assert 1.3 * few < Estimate(replace(settings, launches=6), known()).of(JOBS).time < more


def test_jobs_that_an_earlier_check_found_untimeable_take_no_launch() -> None:
    costs, job = known(), JOBS[0]
    before = Estimate(Settings(), costs).launch(job)
    costs.note(Checked(Record(job, "unsupported", "no such operator"), seconds=0.1))
    assert Estimate(Settings(), costs).launch(job) == Estimate(Settings(), costs).memory(job) == 0 < before
    costs.note(Checked(Record(job, "skipped", "too slow for this run")))
    costs.note(Checked(Record(job, "ok", summary=Summary(1, 1.0, 1.0)), cost=costs.of(job), seconds=0.1))
    assert Estimate(Settings(), costs).launch(job) == before
    larger = Job("new", 10, "tape", "hvp")
    costs.note(Checked(Record(replace(larger, size=1), "unsupported", "no such operator")))
    assert Estimate(Settings(), costs).launch(larger) == 0, "nothing else is known of the cell"
    costs.note(Checked(Record(replace(larger, size=2), "ok", summary=Summary(1, 1.0, 1.0)), seconds=0.1))
    assert Estimate(Settings(), costs).launch(larger) > 0, "another size can be timed"


def test_a_check_is_expected_to_be_skipped_if_smaller_sizes_predict_that_it_takes_too_long() -> None:
    costs, small = known(), Job("dear", 10, "other", "gradient")
    large = replace(small, size=100)
    costs.learn(small, check=30.0)
    costs.learn(large, check=40.0)
    costs.learn(large, seconds=CellSeconds(0.01, 9.0, 9.0))
    only_checked, timed = (Settings(time=time, longest_call_seconds=5.0) for time in (False, True))
    assert Estimate(Settings(time=False), costs).check(large) == 40.0
    assert Estimate(only_checked, costs).check(large) == 0
    assert Estimate(only_checked, costs).check(small) == 30.0, "it is checked, which shows how long that takes"
    assert Estimate(timed, costs).check(large) == 40.0, "smaller sizes do not predict the call"
    assert Estimate(timed, costs).check(replace(small, size=1000)) == 0
    assert Estimate(timed, costs).launch(large) == 0


def test_a_slow_cell_is_bounded_by_its_share_of_a_launch() -> None:
    costs, job = Costs(), Job("slow", 1, "other", "gradient")
    costs.learn(job, seconds=CellSeconds(0.0, 5.0, 5.0))
    one = Estimate(Settings(), costs).launch(job)
    # First call; warm-up for 0.5 s and the call that ends it; one round; one call to be judged.
    assert one == pytest.approx(5 + 5.5 + 5 + 5, abs=0.1)


def test_what_a_quick_run_leaves_out_as_too_slow_takes_no_time_and_preparing_is_shared() -> None:
    costs, job = Costs(), Job("slow", 1, "other", "gradient")
    costs.learn(job, seconds=CellSeconds(4.0, 0.05, 0.05))
    whole, limited = (Estimate(Settings(longest_call_seconds=limit), costs) for limit in (None, 0.04))
    assert whole.launch(job) > 4
    assert whole.memory(job) > 4
    assert limited.launch(job) == limited.memory(job) == 0
    quick = Estimate(Settings(quick=True), costs)
    assert whole.launch(job) - quick.launch(job) == pytest.approx(4.05 * (1 - 1 / quick.workers))


def test_what_a_launch_takes_beside_its_calls_is_learned_and_counts_for_each_launch() -> None:
    costs, job = known(), Job("single", 1, "other", "gradient")
    before = Estimate(Settings(), costs).launch(job)
    costs.learn(job, beside=0.5)
    after = Estimate(Settings(), costs)
    assert after.launch(job) == pytest.approx(before + 0.5, abs=0.05)
    assert after.launch(replace(job, size=2)) > 0.5, "the nearest size is the best guess"


def test_missing_backends_and_finished_checks_take_no_time() -> None:
    every = Estimate(Settings(), known()).of(JOBS)
    assert Estimate(Settings(), known(), missing=["tape", "other"]).of(JOBS).total == 0
    checked = Estimate(Settings(), known(), checked=JOBS).of(JOBS)
    assert checked.check == 0
    assert (checked.time, checked.memory) == (every.time, every.memory)


def test_a_cost_is_guessed_from_the_nearest_size_in_proportion() -> None:
    costs = Costs()
    for size, known in {10: CellSeconds(1.0, 0.2, 0.1), 1000: CellSeconds(1.0, 2.0, 1.0)}.items():
        costs.learn(Job("a", size, "tape", "gradient"), seconds=known)
    assert costs.of(Job("a", 20, "tape", "gradient")) == CellSeconds(1.0, 0.4, 0.2)
    assert costs.of(Job("a", 2000, "tape", "gradient")) == CellSeconds(1.0, 4.0, 2.0)
    assert costs.of(Job("b", 20, "tape", "gradient")) == kept.UNKNOWN


def test_a_checks_cost_is_guessed_from_the_nearest_size_or_the_backends_other_checks() -> None:
    costs = Costs()
    for case, seconds in (("a", 1.0), ("b", 3.0), ("c", 50.0)):
        costs.learn(Job(case, 10, "tape", "gradient"), check=seconds)
    costs.learn(Job("a", 1000, "tape", "gradient"), check=2.0)
    assert costs.of_check(Job("a", 20, "tape", "gradient")) == 1.0
    assert costs.of_check(Job("a", 600, "tape", "gradient")) == 2.0
    assert costs.of_check(Job("d", 20, "tape", "gradient")) == 3.0
    assert costs.of_check(Job("d", 20, "other", "gradient")) is None
    costs.learn(Job("e", 10, "tape", "value"), check=40.0)
    costs.learn(Job("f", 10, "tape", "value"), check=60.0)
    assert costs.of_check(Job("d", 20, "tape", "gradient")) == 40.0


def test_references_of_a_checked_case_are_in_the_cache() -> None:
    costs = Costs()
    job = Job("a", 10, "tape", "gradient")
    before = Estimate(Settings(), costs).references([job])
    costs.learn(job, check=1.0)
    assert costs.knows("a", 10)
    assert not costs.knows("a", 20)
    assert not costs.knows("b", 10)
    assert Estimate(Settings(), costs).references([job]) < before / 10


@pytest.mark.slow
def test_a_check_records_its_backends_cost_for_the_next_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))  # the default cache would know other runs
    backend = tmp_path / "slow.py"
    backend.write_text(
        "import time\n"
        "import adbench.tape as xp\n"
        "def prepare(operator, f, args, wrt):\n"
        "    time.sleep(0.4)\n"
        "    return lambda *args: f(*args)\n"
    )

    def session(case: str) -> Session:
        chosen = {"cases": [case], "backends": [str(backend)], "operators": ["value"], "sizes": ["2"]}
        return prepare(**chosen, time=False, memory=False)

    def expected() -> float:
        return session("quadratic_form").estimate().check(Job("quadratic_form", 2, "slow", "value"))

    before = expected()
    for _ in session("sums").events():
        pass
    assert before < 0.1
    assert expected() > 0.4


def test_nothing_is_left_out_if_there_is_enough_time() -> None:
    found = fitted(1e6)
    assert found.fits
    assert found.jobs == tuple(JOBS)
    assert found.left_out == ()


def test_the_largest_sizes_of_the_slowest_case_are_left_out_first_and_everything_is_reported() -> None:
    """With less time more is left out, in the documented order, and backends stay."""
    whole = Estimate(Settings(), known()).of(JOBS).total
    first: dict[str, float] = {}
    before = len(JOBS)
    for share in (0.9 * 0.8**k for k in range(40)):
        found = fitted(share * whole)
        assert len(found.jobs) <= before
        before = len(found.jobs)
        assert {job.backend for job in found.jobs} == {"tape", "other"}
        assert found.fits == (found.seconds <= share * whole)
        for text in found.left_out:
            kind = "processes" if "one process" in text else text.partition(":")[0]
            first.setdefault(kind, share)
        gone = {(job.case, job.size) for job in JOBS} - {(job.case, job.size) for job in found.jobs}
        said = "; ".join(found.left_out)
        for case, size in gone:
            of_case = said.partition(f"{case} at ")[2].partition(";")[0]
            assert str(size) in of_case.split(", ") or re.search(rf"cases: .*\b{case}\b", said)
    order = ["processes", "sizes", "values", "memory", "launches", "cases"]
    assert sorted(first) == sorted(order)
    assert [first[kind] for kind in order] == sorted(first.values(), reverse=True)
    assert fitted(0.7 * whole).left_out[0].startswith("sizes: dear at 1000")


def test_a_quick_run_keeps_the_largest_sizes() -> None:
    quick = Settings().for_a_first_look()
    found = fitted(0.6 * Estimate(quick, known()).of(JOBS).total, quick)
    assert found.left_out[0].startswith("sizes: dear at 1, 10")
    assert {job.case: job.size for job in found.jobs} == {case: sizes[-1] for case, sizes in CASES.items()}


def test_enough_launches_for_an_interval_remain() -> None:
    for seconds in (100.0, 50.0, 20.0, 10.0, 1.0):
        assert fitted(seconds).settings.launches >= FEWEST_LAUNCHES
    assert fitted(1.0, Settings(launches=3)).settings.launches == 3
    assert not fitted(1.0).fits


def test_costs_are_kept_per_machine(tmp_path: Path) -> None:
    machine = {"processor": "A", "memory_bytes": 2**34, "system": "Linux 6", "python": "CPython 3.11"}
    whole = known()
    for size in (1, 10):
        whole.learn(Job("cheap", size, "tape", "hvp"), untimed=True)
    whole.learn(JOBS[0], beside=0.25)
    kept.keep(tmp_path / "new", machine, whole)
    assert kept.read(tmp_path / "new", machine) == whole
    assert kept.read(tmp_path / "new", {**machine, "processor": "B"}) == Costs()
    for text in ("", "[]", "{", '{"machine": 1}', (tmp_path / "new" / kept.FILE).read_text().replace("gradient", "")):
        (tmp_path / kept.FILE).write_text(text)
        assert isinstance(kept.read(tmp_path, machine), Costs)
    (tmp_path / "file").write_text("")
    kept.keep(tmp_path / "file" / "below", machine, known())  # not writable, which is ignored
    assert kept.read(tmp_path / "file" / "below", machine) == Costs()


def empty() -> Progress:
    run = Run(2, "", "0", 0, {}, {}, {"tape": None, "other": None}, dict.fromkeys(CASES, ""), ())
    return Progress(Head(run, tuple(JOBS)))


def right(job: Job) -> Record:
    return Record(job, "ok", summary=Summary(1, 1.0, 1.0))


def test_a_forecast_falls_to_zero_during_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Driven by a test clock on which everything takes three times the expected time."""
    now = [0.0]
    monkeypatch.setattr("adbench.execution.planning.forecast.monotonic", lambda: now[0])
    settings, progress = Settings(launches=2, reference_backend="tape"), empty()
    forecast = Forecast(Estimate(settings, known()), progress)
    total = forecast.total
    assert total > 0
    assert forecast.remaining == pytest.approx(total)
    none = Memory(Figure(None, "no"), Figure(None, "no"), Figure(None, "no"))
    launch = Launch(0, 1.0, 0.0, {}, 0.0, 3, True, (Round(1, 1),))
    expected = Estimate(settings, known()).of(JOBS)
    remaining = []

    def tell(event: Checked | Timed | MemoryMeasured | Started | Learned, seconds: float) -> None:
        now[0] += 3 * seconds
        apply(event, progress)
        forecast.note(event)
        remaining.append(forecast.remaining)

    for job in JOBS:
        tell(Started(job, "check"), 0.0)
        tell(Checked(right(job)), expected.check / len(JOBS))
    for number in range(2):
        for jobs in zip(JOBS[::2], JOBS[1::2], strict=True):
            tell(Started(jobs[0], "time", number), 0.0)
            cells = tuple(Launched(job, launch) for job in jobs)
            tell(Timed(number, cells), expected.time / len(JOBS))
    middle = remaining[-1]
    assert middle == pytest.approx(3 * expected.memory, rel=0.1)
    for job in JOBS:
        tell(Started(job, "memory"), 0.0)
        tell(MemoryMeasured(job, none), expected.memory / len(JOBS))
    assert remaining[-1] == pytest.approx(0.0, abs=1e-6)
    assert now[0] == pytest.approx(3 * total, rel=1e-6)


def test_a_forecast_counts_the_control_of_a_run_without_the_preferred_backend() -> None:
    progress, settings = empty(), Settings(launches=2)
    others = [job for job in JOBS if job.backend == "other"]
    progress.head = replace(progress.head, plan=tuple(others))
    expected = Estimate(settings, known()).of(others)
    assert Forecast(Estimate(settings, known()), progress).total == pytest.approx(expected.total)
    by_case = Estimate(settings, known()).by(others, frozenset(), "case").values()
    assert sum(one.time for one in by_case) == pytest.approx(expected.time, rel=0.1)


def test_a_forecast_that_is_first_asked_for_during_a_run_falls_to_zero() -> None:
    session = prepare(
        cases=["hypot"], backends=["tape"], operators=["gradient", "jvp", "hvp"], sizes=["1"], time=False, memory=False
    )
    remaining = [session.forecast.remaining for _ in session.events()]
    assert remaining[0] > remaining[-1] == 0


def test_a_forecast_counts_finished_and_omitted_work() -> None:
    progress = empty()
    whole = Forecast(Estimate(Settings(), known()), progress).total
    for job in JOBS:
        apply(Checked(right(job) if job.case == "cheap" else Record(job, "wrong", "no")), progress)
    rest = Forecast(Estimate(Settings(), known()), progress).total
    cheap = [job for job in JOBS if job.case == "cheap"]
    assert rest == pytest.approx(Estimate(Settings(), known(), checked=cheap).of(cheap).total, rel=0.01)
    assert rest < whole / 4
    assert Forecast(Estimate(Settings(), known(), missing=["tape", "other"]), empty()).total == 0
