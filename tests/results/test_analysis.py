"""Conclusions from runs with known results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from adbench.model.record import Figure, Job, Launch, Memory, Record, Round, Run, Status, Time
from adbench.oracle.verdict import Verdict
from adbench.results.analysis import break_even, floor, ratios
from adbench.results.scaling import Quantity, bytes_per_operation, cost, growth

CALLS = 1000


def verdict(word: str = "right") -> Verdict:
    return Verdict(word, word, None, None, 2, 2, 0, 0, "by hand", "")  # type: ignore[arg-type]


def time(
    seconds: float,
    rng: np.random.Generator,
    *,
    launches: int = 8,
    rounds: int = 12,
    layout: float = 0.008,
    prepare: float = 1e-3,
    first: float = 1e-4,
) -> Time:
    """`seconds` per call, plus noise of each process and each round."""
    log = layout * rng.normal(size=(launches, 1)) + 0.01 * rng.normal(size=(launches, rounds))
    ns = np.round(seconds * 1e9 * CALLS * np.exp(log)).astype(int).tolist()
    return Time(
        tuple(
            Launch(number, 0.5, prepare, {}, first, 3, True, tuple(Round(CALLS, each) for each in row))
            for number, row in enumerate(ns)
        )
    )


def record(
    backend: str,
    seconds: Time | None = None,
    *,
    case: str = "quadratic",
    size: int = 10,
    operator: str = "gradient",
    status: Status = "ok",
    word: str | None = "right",
    control: Time | None = None,
    memory: Memory | None = None,
) -> Record:
    judged = None if word is None else verdict(word)
    return Record(Job(case, size, backend, operator), status, None, judged, seconds, control, memory)


def peak(value: float | None) -> Memory:
    figure = Figure(value, None if value is not None else "memray is not installed")
    return Memory(figure, figure, figure)


def run(records: Iterable[Record] = ()) -> Run:
    return Run(2, "2025-01-02T03:04:05+00:00", "0", 7, {}, {}, {}, {}, tuple(records))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


# Ratios.


def test_every_pair_of_correct_backends_in_a_group_is_compared_once(rng: np.random.Generator) -> None:
    records = [record(b, time(1e-6, rng), size=n) for n in (1, 10) for b in ("jax", "tape", "torch")]
    found = ratios(run(records))
    pairs = [("jax", "tape"), ("jax", "torch"), ("tape", "torch")]
    assert [(r.a.size, r.a.backend, r.b.backend) for r in found] == [(n, *pair) for n in (1, 10) for pair in pairs]


def test_a_ratio_is_time_of_a_over_time_of_b(rng: np.random.Generator) -> None:
    (found,) = ratios(run([record("jax", time(1e-6, rng)), record("tape", time(2e-6, rng))]))
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx(0.5, rel=0.02)
    assert found.interval.low < 0.5 < found.interval.high
    assert found.interval.level == pytest.approx(0.9609375)
    assert (found.word, found.launches, found.reason) == ("faster", 8, None)
    (other,) = ratios(run([record("tape", time(2e-6, rng)), record("jax", time(1e-6, rng))]))
    assert other.word == "slower"


def test_swapping_a_and_b_only_inverts_the_ratio(rng: np.random.Generator) -> None:
    two = [record("jax", time(1e-6, rng)), record("tape", time(1.03e-6, rng))]
    (one,), (other,) = ratios(run(two)), ratios(run(two[::-1]))
    assert one.interval is not None
    assert other.interval is not None
    assert one.interval.low == pytest.approx(1 / other.interval.high)
    assert one.p == other.p


def test_a_certain_difference_below_the_noise_floor_is_inconclusive(rng: np.random.Generator) -> None:
    """The floor is the larger one of the group's own and the run's: only the groups at 10 and 20 have a control."""

    def group(size: int, control: float | None) -> list[Record]:
        twice = None if control is None else time(control, rng, layout=0.001)
        slow = record("slow", time(1.1e-6, rng, layout=0.001), size=size)
        return [record("fast", time(1e-6, rng, layout=0.001), size=size, control=twice), slow]

    quiet = ratios(run([*group(10, 1e-6), *group(20, 1e-6), *group(30, None)]))
    assert [found.word for found in quiet] == ["faster"] * 3
    own = ratios(run([*group(10, 1.3e-6), *group(20, 1e-6), *group(30, 1e-6)]))
    assert [found.word for found in own] == ["inconclusive", "faster", "faster"]
    assert own[0].reason is not None
    assert own[0].reason.startswith("the difference is smaller than the noise floor of ")
    noisy = ratios(run([*group(10, 1.3e-6), *group(20, 1e-6), *group(30, None)]))
    assert [found.word for found in noisy] == ["inconclusive"] * 3


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("wrong", "wrong"),
        ("ok", "wrong"),
        ("known", "wrong"),
        ("ok", "approximate"),
        ("ok", "verified"),
        ("ok", "blind"),
        ("ok", "inconclusive"),
        ("ok", None),
        ("unsupported", None),
        ("timed_out", "right"),
    ],
)
def test_only_correct_results_are_compared(status: Status, word: str | None, rng: np.random.Generator) -> None:
    right = [record("jax", time(1e-6, rng)), record("tape", time(1e-6, rng))]
    other = record("torch", time(1e-9, rng), status=status, word=word)
    assert ratios(run([*right, other])) == ratios(run(right))


def test_a_backend_with_a_wrong_value_is_not_compared_by_its_gradient(rng: np.random.Generator) -> None:
    right = [record("jax", time(1e-6, rng)), record("tape", time(1e-6, rng))]
    assert ratios(run([*right, record("tape", status="wrong", word="wrong", operator="value")])) == ()
    assert len(ratios(run([*right, record("tape", status="wrong", word="wrong", operator="value", size=11)]))) == 1


@pytest.mark.parametrize("launches", [1, 3])
def test_with_few_launches_there_is_a_reason_instead_of_an_interval(launches: int, rng: np.random.Generator) -> None:
    (found,) = ratios(run([record(b, time(1e-6, rng, launches=launches)) for b in ("jax", "tape")]))
    assert (found.interval, found.p, found.word) == (None, None, "inconclusive")
    assert found.reason == f"an interval needs 4 common launches; there are {launches}"


def test_launches_pair_by_number_and_missing_ones_are_left_out(rng: np.random.Generator) -> None:
    a, b = time(1e-6, rng, layout=0.5), time(1e-6, rng)
    b = Time(tuple(replace(launch, rounds=a.launches[launch.number].rounds) for launch in b.launches))
    shuffled = Time((b.launches[5], b.launches[0], *b.launches[6:], *b.launches[1:4]))  # without number 4
    (found,) = ratios(run([record("jax", a), record("tape", shuffled)]))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high, found.launches) == (1.0, 1.0, 7)
    assert found.word == "equivalent"


def test_rounds_pair_by_position_and_zero_durations_are_left_out(rng: np.random.Generator) -> None:
    a = time(1e-6, rng)
    fewer = Time(tuple(replace(launch, rounds=launch.rounds[:5]) for launch in a.launches))
    broken = Time(tuple(replace(launch, rounds=(Round(CALLS, 0), *launch.rounds[1:])) for launch in a.launches))
    for other in (fewer, broken):
        (found,) = ratios(run([record("jax", a), record("tape", other)]))
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == (1.0, 1.0)


def test_launches_without_a_single_good_round_do_not_count(rng: np.random.Generator) -> None:
    a = time(1e-6, rng)
    dead = Time(tuple(replace(launch, rounds=(Round(CALLS, 0),)) for launch in a.launches))
    (found,) = ratios(run([record("jax", a), record("tape", dead)]))
    assert found.reason == "an interval needs 4 common launches; there are 0"


def test_holm_counts_every_comparison_of_the_run(rng: np.random.Generator) -> None:
    pair = [record("jax", time(1e-6, rng)), record("tape", time(1.02e-6, rng))]
    equals = [record(b, time(1e-6, rng), size=n) for n in range(20, 60) for b in ("jax", "tape")]
    (alone,), among = ratios(run(pair)), ratios(run([*pair, *equals]))[0]
    assert alone.p is not None
    assert among.p is not None
    assert alone.p < among.p <= 41 * alone.p
    assert alone.interval == among.interval


def test_a_run_of_equal_backends_is_equivalent(rng: np.random.Generator) -> None:
    records = [record(b, time(1e-6, rng, launches=20), size=n) for n in range(1, 30) for b in ("jax", "tape", "torch")]
    words = [found.word for found in ratios(run(records))]
    assert set(words) <= {"equivalent", "inconclusive"}
    assert words.count("equivalent") > 0.9 * len(words)


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan])
def test_a_margin_must_be_positive(margin: float) -> None:
    for ask in (ratios, floor):
        with pytest.raises(ValueError, match="a margin must be positive"):
            ask(run(), margin)


# The floor.


def controlled(rng: np.random.Generator, *layouts: float) -> Run:
    """The reference in several groups, measured twice, each with a launch's noise."""
    return run(
        record("jax", time(1e-6, rng, layout=layout), control=time(1e-6, rng, layout=layout), size=n)
        for n, layout in enumerate(layouts, 1)
    )


def test_the_floor_is_the_controls_largest_distance_from_equal(rng: np.random.Generator) -> None:
    found = floor(controlled(rng, *[0.005] * 30, *[0.1] * 9))
    reach = sorted(group.reach for group in found.groups if group.reach is not None)
    assert found.reach == reach[19]
    for group in found.groups:
        assert group.interval is not None
        assert group.reach == pytest.approx(max(group.interval.high, 1 / group.interval.low) - 1)
    assert found.interval in [group.interval for group in found.groups]
    assert found.noisy is False
    assert found.above >= 9
    assert found.off <= 6  # one in twenty of 39, and chance


def test_a_run_whose_floor_is_over_the_margin_is_noisy(rng: np.random.Generator) -> None:
    loud = controlled(rng, *[0.03] * 9)
    assert floor(loud).noisy is True
    assert floor(loud, margin=0.5).noisy is False


def test_each_ratio_has_the_floor_of_its_group(rng: np.random.Generator) -> None:
    quiet = controlled(rng, 0.005, 0.05)
    others = [record("tape", time(1e-6, rng), size=n) for n in (1, 2, 3)]
    alone = record("jax", time(1e-6, rng), size=3)
    found = ratios(run([*quiet.records, *others, alone]))
    assert [r.floor for r in found] == [*(group.reach for group in floor(quiet).groups), None]


def test_without_a_control_noisiness_is_unknown(rng: np.random.Generator) -> None:
    found = floor(run([record("jax", time(1e-6, rng))]))
    assert (found.noisy, found.reach, found.groups) == (None, None, ())
    assert found.reason == "no correct result was measured twice in the same rounds"


def test_a_control_of_one_launch_has_a_reason_instead_of_a_floor(rng: np.random.Generator) -> None:
    one = record("jax", time(1e-6, rng, launches=1), control=time(1e-6, rng, launches=1))
    found = floor(run([one]))
    assert (found.noisy, found.groups[0].interval) == (None, None)
    assert found.reason == found.groups[0].reason == "an interval needs 4 common launches; there are 1"


def test_the_control_of_a_wrong_cell_does_not_count(rng: np.random.Generator) -> None:
    wrong = record("jax", time(1e-6, rng), control=time(1e-6, rng), word="wrong")
    assert floor(run([wrong])).groups == ()


# Growth.

SIZES = (1, 10, 100, 1_000)


def grown(
    rng: np.random.Generator,
    backend: str = "jax",
    *,
    gradient: Sequence[float] = (20e-6, 4e-7, 1.0),
    primal: Sequence[float] = (5e-6, 1e-7, 1.0),
    word: str = "right",
    launches: int = 8,
) -> list[Record]:
    """Value and gradient at every size, each of floor + slope n^exponent, and 100 + 8 n bytes."""
    curves = {"gradient": gradient, "value": primal}
    return [
        record(
            backend,
            time(base + slope * n**b, rng, launches=launches),
            size=n,
            operator=operator,
            word=word,
            memory=peak(100.0 + 8 * n),
        )
        for n in SIZES
        for operator, (base, slope, b) in curves.items()
    ]


def test_time_and_memory_of_value_and_gradient_have_exponents(rng: np.random.Generator) -> None:
    found = {key[2:]: fitted for key, fitted in growth(run(grown(rng, gradient=(1e-6, 1e-8, 2.0)))).items()}
    assert set(found) == {(op, q) for op in ("value", "gradient") for q in get_args(Quantity)}
    for key, b in ((("gradient", "seconds"), 2), (("value", "seconds"), 1), (("value", "allocated_peak_bytes"), 1)):
        exponent = found[key].exponent
        assert exponent is not None
        assert exponent.low - 0.02 <= b <= exponent.high + 0.02
    assert found["value", "seconds"].basis == "launches"
    assert found["value", "allocated_peak_bytes"].basis == "sizes"
    assert found["value", "allocated_peak_bytes"].constant == pytest.approx(100, rel=0.01)


def test_a_size_missing_in_some_launches_uses_the_others(rng: np.random.Generator) -> None:
    records = grown(rng)
    short = records[-1].time
    assert short is not None
    records[-1] = replace(records[-1], time=Time(short.launches[2:]))
    (found,) = (fitted for key, fitted in growth(run(records)).items() if key[2:] == ("value", "seconds"))
    assert len(found.by_launch) == 6
    records[-1] = replace(records[-1], time=Time(short.launches[6:]))
    (found,) = (fitted for key, fitted in growth(run(records)).items() if key[2:] == ("value", "seconds"))
    assert (found.basis, found.sizes) == ("sizes", SIZES)


def test_costs_of_approximate_results_count_and_of_wrong_ones_do_not(rng: np.random.Generator) -> None:
    assert len(growth(run(grown(rng, word="approximate")))) == 2 * len(get_args(Quantity))
    assert growth(run(grown(rng, word="wrong"))) == {}
    assert cost(run(grown(rng, word="wrong"))) == ()


@pytest.mark.parametrize(
    ("peaks", "reason"),
    [
        ([None] * 4, "an exponent needs 3 sizes; there are figures at 0; memray is not installed"),
        ([0.0, 0.0, 10.0, 100.0], "there are figures at 2; the peak at n = 1 is 0.0 bytes"),
        ([0.0, 1.0, 10.0, 100.0], None),
        ([50.0, 50.0, 50.0, 50.0], "n = 1000 takes only 1 times as long as n = 1"),
    ],
)
def test_memory_without_an_exponent_has_a_reason(
    peaks: list[float | None], reason: str | None, rng: np.random.Generator
) -> None:
    records = [record("jax", size=n, memory=peak(value)) for n, value in zip(SIZES, peaks, strict=True)]
    found = {quantity: fitted for (*_, quantity), fitted in growth(run(records)).items()}
    assert found["seconds"].reason == "nothing was timed"
    if reason is None:
        assert found["allocated_peak_bytes"].exponent is not None
    else:
        assert found["allocated_peak_bytes"].exponent is None
        assert reason in str(found["allocated_peak_bytes"].reason)


def test_each_memory_method_has_its_exponent(rng: np.random.Generator) -> None:
    (found, _) = (fitted for key, fitted in growth(run(grown(rng))).items() if key[3] == "resident_peak_bytes")
    assert found.exponent is not None


# The price of a gradient.


def test_the_gradient_cost_is_relative_to_the_function(rng: np.random.Generator) -> None:
    (found,) = cost(run(grown(rng)))
    assert [at.size for at in found.at] == list(SIZES)
    for at in found.at:
        assert at.ratio is not None
        assert at.ratio.low - 0.02 <= 4 <= at.ratio.high + 0.02
    assert found.basis == "exponents"
    assert found.grows is False


def test_a_growing_gradient_cost_is_flagged(rng: np.random.Generator) -> None:
    """One evaluation for each input: the cost of finite differences."""
    (found,) = cost(run(grown(rng, gradient=(5e-6, 1e-7, 2.0), word="approximate")))
    assert found.grows is True
    assert found.trend is not None
    assert found.trend.estimate == pytest.approx(1, abs=0.05)


def test_different_constant_parts_do_not_make_a_cost_grow(rng: np.random.Generator) -> None:
    """From 1.2 times at n = 1, only constant parts, to 4 times: bounded, so not growing."""
    sessions = 60
    bounded = [grown(rng, gradient=(60e-6, 4e-7, 1.0), primal=(50e-6, 1e-7, 1.0)) for _ in range(sessions)]
    found = [price for records in bounded for price in cost(run(records))]
    assert {price.basis for price in found} == {"exponents"}
    first, last = found[0].at[0].ratio, found[0].at[-1].ratio
    assert first is not None
    assert last is not None
    assert last.low > 2 * first.high
    assert sum(bool(price.grows) for price in found) <= 0.05 * sessions


def test_a_cost_grows_even_if_the_function_is_all_constant_part(rng: np.random.Generator) -> None:
    (found,) = cost(run(grown(rng, gradient=(1e-6, 5e-6, 1.0), primal=(5e-6, 1e-10, 1.0))))
    assert (found.basis, found.grows) == ("largest", True)
    (found,) = cost(run(grown(rng, gradient=(20e-6, 1e-10, 1.0), primal=(5e-6, 1e-10, 1.0))))
    assert (found.basis, found.grows) == ("largest", False)


def test_a_cost_without_a_trend_has_a_reason(rng: np.random.Generator) -> None:
    records = grown(rng, launches=1)
    (found,) = cost(run(records))
    assert (found.trend, found.grows, found.at[0].ratio) == (None, None, None)
    assert "4 launches with both at each; there are 4 and 1" in str(found.reason)
    assert found.at[0].reason == "an interval needs 4 launches with both; there are 1"
    assert cost(run(r for r in records if r.job.operator == "gradient")) == ()


# When a preparation has paid.


def test_break_even_is_the_call_with_equal_total_cost(rng: np.random.Generator) -> None:
    fast = time(1e-5, rng, prepare=0.9, first=0.1)
    slow = time(1e-3, rng, prepare=0.0, first=1e-3)
    for order in (1, -1):
        (found,) = break_even(run([record("jax", fast), record("autograd", slow)][::order]))
        assert (found.a.backend, found.b.backend, found.reason) == ("jax", "autograd", None)
        assert found.calls is not None
        total = [
            t.prepare_seconds + t.first_call_seconds + (found.calls - 1) * t.seconds_per_call for t in (fast, slow)
        ]
        assert total[0] == pytest.approx(total[1])
        assert found.calls == pytest.approx(1 + 0.999 / 0.99e-3, rel=0.02)


def test_a_slower_preparation_with_slower_calls_never_breaks_even(rng: np.random.Generator) -> None:
    (found,) = break_even(run([record("jax", time(1e-3, rng, prepare=1)), record("tape", time(1e-6, rng))]))
    assert (found.a.backend, found.calls) == ("jax", None)
    assert found.reason == "never: jax costs more until its first result, and for each call"


def test_calls_without_a_significant_difference_have_no_break_even(rng: np.random.Generator) -> None:
    (found,) = break_even(run([record("jax", time(1e-6, rng, prepare=1)), record("tape", time(1e-6, rng))]))
    assert (found.a.backend, found.calls) == ("jax", None)
    assert found.reason == "the calls of the two do not differ significantly"


def test_given_ratios_are_used(rng: np.random.Generator) -> None:
    two = run([record("jax", time(1e-6, rng, prepare=1)), record("tape", time(2e-6, rng))])
    assert break_even(two, ratios(two)) == break_even(two)
    assert break_even(two, ()) == ()


# Bytes per operation.


def test_bytes_are_divided_by_the_operations_of_the_case() -> None:
    flops = {"quadratic": {"10": 40.0}}
    assert bytes_per_operation(record("jax", memory=peak(800.0)), flops) == Figure(20.0)
    assert bytes_per_operation(record("jax", memory=peak(0.0)), flops) == Figure(0.0)


@pytest.mark.parametrize(
    ("change", "flops", "reason"),
    [
        ({"memory": None}, 40.0, "memory was not measured"),
        ({"memory": peak(None)}, 40.0, "memray is not installed"),
        ({}, None, "the number of operations is unknown; define `flops` in the file of the case quadratic"),
        ({}, 0.0, "the case quadratic states 0.0 operations; correct its `flops`"),
        ({}, math.nan, "the case quadratic states nan operations; correct its `flops`"),
        ({"status": "wrong", "verdict": verdict("wrong")}, 40.0, "the result is wrong"),
    ],
)
def test_missing_bytes_per_operation_have_a_reason(change: dict[str, object], flops: float | None, reason: str) -> None:
    known = {} if flops is None else {"quadratic": {"10": flops}}
    changed = replace(record("jax", memory=peak(800.0)), **change)  # type: ignore[arg-type]
    assert bytes_per_operation(changed, known) == Figure(None, reason)


# Runs that hold little, or anything.


def test_an_empty_run_and_a_check_give_no_conclusions() -> None:
    for nothing in (run(), run([record("jax"), record("tape", status="failed", word=None)])):
        assert ratios(nothing) == cost(nothing) == break_even(nothing) == ()
        assert growth(nothing) == {}
        assert floor(nothing).noisy is None


def test_a_file_may_hold_any_numbers(rng: np.random.Generator) -> None:
    zero = Time((Launch(0, 0.0, 0.0, {}, 0.0, 0, True, (Round(1, 0),)),))
    twice = Time(time(1e-6, rng).launches * 2)
    odd = [zero, twice, time(1e-6, rng, rounds=1), time(1e-6, rng, launches=2)]
    records = [
        record(f"b{k}", each, size=n, operator=op, control=zero, memory=peak(math.inf))
        for k, each in enumerate(odd)
        for n in (-1, 0, 1, 10**30)
        for op in ("value", "gradient")
    ]
    hostile = run(records)
    assert len(ratios(hostile)) == 6 * 8
    assert floor(hostile).noisy is None
    assert len(break_even(hostile)) == 6 * 8
    assert all(found.exponent is None and found.reason for found in growth(hostile).values())
    assert all(found.trend is None and found.reason for found in cost(hostile))
