"""Two runs compared: no false alarms, real changes are found, and undecidable ones are reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from adbench.model.errors import UsageError
from adbench.model.record import Job
from adbench.reports.text.comparison import text
from adbench.results.compare import ComparedCell, Comparison, compare
from adbench.results.comparison_inputs import ComparisonInput, Sample
from adbench.results.gates import exit_code, gates_of
from tests.support.sessions import Changes, input_of, times

THREE = ("tape", "jax", "autograd")
BUSIER = 0.05
"""Standard deviation of the logarithm of one session's overall slowdown to another."""


def sessions(seed: int, backends: Sequence[str] = THREE, changes: Changes | None = None, **how: float) -> Comparison:
    """The comparison of two sessions on one machine, on different days."""
    rng = np.random.default_rng(seed)
    old, new = (
        input_of(name, times(rng, backends, session=rng.normal(0, BUSIER), changes=made, **how))
        for name, made in (("old", None), ("new", changes))
    )
    return compare(old, new)


def words(found: Comparison) -> dict[str, str]:
    return {row.name: row.word for row in found.rows}


def row(found: Comparison, name: str) -> ComparedCell:
    return next(each for each in found.rows if each.name == name)


CELL = "case0[10]-jax-gradient"


def test_two_equal_runs_raise_no_alarm_on_any_machine() -> None:
    """Family-wise at most 5 %, and far less because an alarm must exceed the margin."""
    alarms = sum(exit_code(sessions(seed), ["regression"]) == 3 for seed in range(80))
    assert alarms <= 1


def test_by_the_clock_alone_the_same_sessions_raise_many_alarms() -> None:
    """Why other backends matter: launches of one day agree too well with each other."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        old, new = (input_of(name, times(rng, THREE, session=rng.normal(0, BUSIER))) for name in ("old", "new"))
        alarms += exit_code(compare(old, new, absolute=True), ["regression"]) == 3
    assert alarms >= 6


def test_a_slowdown_by_a_tenth_is_found() -> None:
    """In one backend of three, on four cases; 84 % of the cells, and so nearly always one of them."""
    found = [sessions(seed, changes={"jax": 1.1}) for seed in range(40)]
    assert sum(exit_code(each, ["regression"]) == 3 for each in found) >= 38
    seen = [each.word for comparison in found for each in comparison.rows if "-jax-" in each.name]
    assert seen.count("regression") >= 0.7 * len(seen)
    others = {each.word for comparison in found for each in comparison.rows if "-jax-" not in each.name}
    assert others <= {"same", "inconclusive"}


def test_a_slowdown_within_the_margin_is_not_a_regression() -> None:
    """At the margin itself, where it is hardest, at most one session in twenty calls any cell a regression."""
    codes = [exit_code(sessions(seed, changes={"jax": 1.05}), ["regression"]) for seed in range(30)]
    assert codes.count(3) <= 4


def test_one_slow_cell_of_thirty_is_found() -> None:
    found = [sessions(seed, changes={(3, "jax"): 1.15}, cases=10) for seed in range(12)]
    assert sum(row(each, "case3[10]-jax-gradient").word == "regression" for each in found) >= 10


@pytest.mark.parametrize("factor", [1.15, 1 / 1.15])
def test_a_changed_reference_is_identified_and_others_are_not_blamed(factor: float) -> None:
    found = [sessions(seed, changes={"tape": factor}) for seed in range(15)]
    expected = "regression" if factor > 1 else "improvement"
    for each in found:
        assert words(each)["case0[10]-tape-gradient"] == expected
        assert {word for name, word in words(each).items() if "-tape-" not in name} <= {"inconclusive", "same"}


def test_with_two_backends_a_faster_one_does_not_make_the_other_a_regression() -> None:
    codes = [exit_code(sessions(seed, ("tape", "jax"), {"jax": 1 / 1.15}), ["regression"]) for seed in range(40)]
    assert codes.count(3) <= 6  # if the machine slowed by as much; a third backend decides
    three = [exit_code(sessions(seed, THREE, {"jax": 1 / 1.15}), ["regression"]) for seed in range(20)]
    assert three == [0] * 20


def test_with_two_backends_an_unclear_change_is_undecided() -> None:
    """A slower reference makes the other seem faster: either may have changed, so the gate must not pass."""
    codes = [exit_code(sessions(seed, ("tape", "jax"), {"tape": 1.2}), ["regression"]) for seed in range(30)]
    assert codes.count(0) <= 3
    slower = [exit_code(sessions(seed, ("tape", "jax"), {"jax": 1.2}), ["regression"]) for seed in range(30)]
    assert slower.count(0) == 0
    assert slower.count(3) >= 24


def test_a_backend_measured_alone_is_not_judged_unless_by_the_clock() -> None:
    rng = np.random.default_rng(0)
    old, new = (
        input_of("old", times(rng, ("jax",)), reference="jax"),
        input_of("new", times(rng, ("jax",), changes={"jax": 2})),
    )
    alone = compare(old, new)
    assert set(words(alone).values()) == {"inconclusive"}
    assert "no other backend was measured in the same run" in str(alone.undecided)
    assert exit_code(alone, ["regression"]) == 5
    assert exit_code(compare(old, new, absolute=True), ["regression"]) == 3


def test_same_is_reported_only_if_certain() -> None:
    assert set(words(sessions(1, layout=0.004)).values()) == {"same"}
    assert "same" not in set(words(sessions(1, layout=0.2)).values())


def test_a_faster_cell_is_an_improvement_with_an_interval() -> None:
    cell = row(sessions(3, changes={"jax": 0.5}), CELL)
    assert cell.word == "improvement"
    assert cell.ratio is not None
    assert cell.ratio.low < 0.5 < cell.ratio.high
    assert cell.ratio.level >= 0.95
    assert cell.p is not None
    assert cell.p < 0.05


def test_a_slower_day_is_reported_as_drift() -> None:
    rng = np.random.default_rng(0)
    old, new = (
        input_of("old", times(rng, THREE)),
        input_of("new", times(rng, THREE, session=math.log(1.3))),
    )
    found = compare(old, new)
    assert found.drift is not None
    assert found.drift.backend == "tape"
    assert found.drift.median == pytest.approx(1.3, rel=0.02)
    assert exit_code(found, ["regression"]) == 0


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"floor": 0.08}, "too noisy: in new two runs of identical code differed by 8.0 %, more than the margin"),
        (
            {"quick": True, "again": "adbench run -c f"},
            "new: measured with --quick, too short for a decision; measure again: adbench run -c f",
        ),
    ],
)
def test_a_noisy_or_quick_run_never_fails(about: dict[str, object], reason: str) -> None:
    rng = np.random.default_rng(0)
    old, new = (
        input_of("old", times(rng, THREE)),
        input_of("new", times(rng, THREE, changes={"jax": 2.0}), **about),
    )
    found = compare(old, new)
    assert words(found)[CELL] == "regression"
    assert reason in str(found.undecided)
    assert exit_code(found, ["regression", "correctness"]) == 5
    assert exit_code(found, ["correctness"]) == 0
    quiet = compare(old, replace(new, floor=0.01, quick=False))
    assert exit_code(quiet, ["regression"]) == 3


@pytest.mark.parametrize("launches", [1, 3, 4])
def test_too_few_launches_decide_nothing_and_are_reported(launches: int) -> None:
    rng = np.random.default_rng(0)
    old, new = (
        input_of(name, times(rng, THREE, launches=launches, changes=made))
        for name, made in (("o", {}), ("n", {"jax": 3.0}))
    )
    found = compare(old, new)
    assert exit_code(found, ["regression"]) == 5
    slower = [each for each in found.rows if "-jax-" in each.name]
    assert {each.word for each in slower} == {"inconclusive"}
    assert all("launches" in str(each.reason) for each in slower)


def test_across_machines_only_ratios_are_compared() -> None:
    rng = np.random.default_rng(0)
    slower = math.log(1.7)
    old = input_of("old", times(rng, THREE))
    new = input_of("new", times(rng, THREE, session=slower), machine="processor q; cores 8; threads 1")
    found = compare(old, new)
    assert not found.same
    assert found.differ == ("processor: p → q", "cores: 2 → 8")
    assert found.drift is None
    assert exit_code(found, ["regression"]) == 0
    assert all(each.old_seconds is None and each.clock is None and each.prepare is None for each in found.rows)
    worse = input_of("new", times(rng, THREE, session=slower, changes={"jax": 1.3}), machine="processor q")
    assert words(compare(old, worse))[CELL] == "regression"
    forced = compare(old, new, absolute=True)
    assert set(words(forced).values()) == {"regression"}
    assert row(forced, CELL).clock == pytest.approx(1.7, rel=0.05)


def test_more_threads_or_an_unknown_processor_are_another_machine() -> None:
    rng = np.random.default_rng(0)
    old = input_of("old", times(rng, THREE))
    assert compare(old, replace(old, machine="processor p; cores 2; threads 4")).differ == ("threads: 1 → 4",)
    assert compare(old, replace(old, machine="processor —; cores 2; threads 1")).differ == (
        "a processor that is not recorded",
    )
    assert compare(old, replace(old, machine="processor p; cores —")).same


def states(name: str, found: dict[str, tuple[str, str | None]]) -> ComparisonInput:
    jobs = {backend: Job("case", 1, backend, "gradient") for backend in found}
    samples = {jobs[b]: Sample(jobs[b], state, reason) for b, (state, reason) in found.items()}  # type: ignore[arg-type]
    return replace(input_of(name, {}), samples=samples)


@pytest.mark.parametrize(
    ("before", "after", "word", "code"),
    [
        ("right", "wrong", "now wrong", 1),
        ("failing", "wrong", "now wrong", 1),
        (None, "wrong", "now wrong", 1),
        ("absent", "wrong", "now wrong", 1),
        ("wrong", "wrong", "still wrong", 0),
        ("known", "known", "still wrong", 0),
        ("right", "known", "now wrong", 0),
        (None, "known", None, 0),
        ("wrong", "right", "now right", 0),
        ("failing", "right", "now right", 0),
        ("right", "failing", "now failing", 1),
        ("wrong", "failing", "now failing", 1),
        ("failing", "failing", "still failing", 0),
        (None, "failing", "new", 0),
        (None, "right", "new", 0),
        ("absent", "right", "new", 0),
        ("right", None, "gone", 0),
        ("right", "absent", "gone", 0),
        ("absent", "absent", None, 0),
        ("right", "right", None, 0),
    ],
)
def test_changes_of_verdicts(before: str | None, after: str | None, word: str | None, code: int) -> None:
    both = {"other": ("right", None)}
    old = states("old", both | ({"b": (before, "before")} if before else {}))
    new = states("new", both | ({"b": (after, "after")} if after else {}))
    found = compare(old, new)
    assert words(found).get("case[1]-b-gradient") == word
    assert exit_code(found, ["correctness"]) == code


def test_memory_counts_beyond_its_margin_and_a_few_pages() -> None:
    rng = np.random.default_rng(0)
    logs = times(rng, THREE, cases=1)

    def weighing(name: str, **memory: float) -> ComparisonInput:
        made = input_of(name, logs)
        return replace(made, samples={job: replace(sample, memory=memory) for job, sample in made.samples.items()})

    old = weighing("old", allocated=4e6, resident=1e6, python=1e5)
    assert exit_code(compare(old, weighing("new", allocated=4.3e6, resident=3e6, python=9e6)), ["memory"]) == 0
    seen = compare(old, weighing("new", allocated=4e6, resident=9e6, python=1e5))
    assert exit_code(seen, ["memory"]) == 3, "the resident figure saw what memray cannot see"
    more = compare(old, weighing("new", allocated=4.8e6, resident=1e6, python=1e5))
    assert exit_code(more, ["memory"]) == 3
    assert exit_code(more, ["regression"]) == 0
    assert [change.word for change in more.rows[0].memory] == ["more", "same", "same"]
    small = weighing("old", allocated=100.0)
    assert exit_code(compare(small, weighing("new", allocated=60_000.0)), ["memory"]) == 0
    native = weighing("old", resident=1e6, python=1e5)
    assert exit_code(compare(native, weighing("new", resident=2e6, python=1e5)), ["memory"]) == 3
    assert exit_code(compare(native, weighing("new", resident=1e6, python=9e6)), ["memory"]) == 0


def test_instructions_count_beyond_one_per_cent_if_one_counter_counted_both() -> None:
    rng = np.random.default_rng(0)
    logs = times(rng, THREE, cases=1)

    def counting(name: str, count: float | None, counter: str = "callgrind 3.19.0") -> ComparisonInput:
        made = input_of(name, logs)
        samples = {job: replace(sample, instructions=count) for job, sample in made.samples.items()}
        return replace(made, samples=samples, counter=counter)

    old = counting("old", 1e6)
    for count, code, word in ((1.02e6, 3, "more"), (1.005e6, 0, "same"), (0.98e6, 0, "less")):
        found = compare(old, counting("new", count))
        assert exit_code(found, ["instructions"]) == code
        assert {row.instructions and row.instructions.word for row in found.rows} == {word}
    more = text(compare(old, counting("new", 1.02e6)), width=100, colour=False)
    assert "Instructions of a call (callgrind 3.19.0): more in 3, fewer in 0, within 1 % in 0 of 3 cells." in more
    assert "1,000,000 → 1,020,000 (+2.0 %)" in more
    for new in (counting("new", None), counting("new", 1.02e6, "callgrind 3.25.0")):
        assert exit_code(compare(old, new), ["instructions"]) == 4


def test_a_cell_timed_in_only_one_run_is_reported() -> None:
    rng = np.random.default_rng(0)
    old = input_of("old", times(rng, THREE, cases=1))
    job = Job("case0", 10, "jax", "gradient")
    new = replace(old, name="new", samples={**old.samples, job: Sample(job, "right")})
    assert row(compare(old, new), CELL).reason == "timed in the old run only"
    nothing = {key: Sample(key, "right") for key in old.samples}
    untimed = compare(replace(old, samples=nothing), replace(old, samples=nothing))
    assert (untimed.rows, untimed.untimed) == ((), 3)
    assert exit_code(untimed, ["regression"]) == 5
    assert exit_code(untimed, []) == 0


def test_changed_versions_are_reported_and_the_references_twice() -> None:
    rng = np.random.default_rng(0)
    old = input_of("old", times(rng, THREE), conditions={"adbench": "0.1", "tape": "1", "jax": "2"})
    new = replace(old, name="new", conditions={"adbench": "0.1", "tape": "2", "torch": "3"})
    assert compare(old, new).notes == (
        "changed versions: tape 1 → 2, jax 2 → —, torch — → 3",
        "the reference backend tape has changed its version",
    )


def test_runs_without_common_cells_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match=r"a and b have no cell in common .* and 'case0\[10\]-y-gradient'\)"):
        compare(input_of("a", times(rng, ("x",))), input_of("b", times(rng, ("y",))))
    with pytest.raises(UsageError, match="it has no cells"):
        compare(input_of("a", times(rng, ("x",))), input_of("b", {}))


def test_gates_have_names() -> None:
    assert gates_of(None) == ()
    assert gates_of("regression, correctness,regression") == ("regression", "correctness")
    for bad in ("speed", "", "regression,", "regression;memory"):
        with pytest.raises(UsageError, match="choose from regression, correctness, memory"):
            gates_of(bad)
