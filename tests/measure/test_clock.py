"""The clock, driven by a test clock: no test sleeps."""

import gc
from collections.abc import Callable
from itertools import repeat

import pytest

from adbench.measure import clock
from adbench.measure.clock import WarmUp
from adbench.measure.machine.disturbance import Counters


@pytest.fixture
def _no_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collections before hundreds of epochs take seconds with a large heap from other tests."""
    monkeypatch.setattr(clock.gc, "collect", lambda: 0)


class FakeClock:
    """Nanoseconds that pass only in calls of `call`: `cost` each time, or the next of the list."""

    def __init__(self, cost: int | list[int]) -> None:
        self.now = 0
        self.calls = 0
        self._cost = cost

    def __call__(self) -> int:
        return self.now

    def call(self) -> str:
        self.calls += 1
        self.now += self._cost if isinstance(self._cost, int) else self._cost[min(self.calls, len(self._cost)) - 1]
        return "result"


def test_once_gives_the_result_and_its_duration() -> None:
    fake = FakeClock(5)
    assert clock.once(fake.call, clock=fake) == ("result", 5)


def test_an_epoch_takes_as_long_as_its_calls_together() -> None:
    fake = FakeClock(7)
    found = clock.epoch(fake.call, 100, clock=fake)
    assert (found.calls, found.ns, fake.calls) == (100, 700, 100)


def test_the_collector_runs_before_an_epoch_and_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeClock(1)
    collected: list[int] = []
    monkeypatch.setattr(clock.gc, "collect", lambda: collected.append(fake.calls))
    clock.epoch(fake.call, 3, clock=fake)
    assert collected == [0]
    assert clock.gc.isenabled()


def test_only_collections_within_an_epoch_are_timed() -> None:
    fake = FakeClock(10)

    class Garbage:
        """Part of a cycle; takes 400 ns to be collected."""

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            fake.now += 400

    def call() -> None:
        fake.call()
        Garbage()
        gc.collect()

    Garbage()  # collected before the epoch
    found = clock.epoch(call, 2, clock=fake)
    assert (found.ns, found.gc_ns) == (2 * 410, 800)
    assert not any("note" in callback.__name__ for callback in gc.callbacks if hasattr(callback, "__name__"))


def test_a_disturbed_epoch_names_the_disturbance() -> None:
    readings = iter([Counters(switches=5, held_back=2), Counters(switches=8, held_back=3)])
    fake = FakeClock(7)
    found = clock.epoch(fake.call, 10, clock=fake, watch=lambda: next(readings))
    assert found.ns == 70
    assert found.disturbed == "3 involuntary switches; throttled 1× by the control group"


def test_a_call_that_ends_the_loop_is_not_mistaken_for_a_fast_one() -> None:
    def call() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        clock.epoch(call, 10)


@pytest.mark.usefixtures("_no_collections")
class TestWarmingUp:
    """The duration, and whether it was steady at the end."""

    def test_ends_when_three_rounds_agree(self) -> None:
        fake = FakeClock([5_000_000, 1_000])  # the first call is slow
        found, calls = clock.warm_up(fake.call, round_ns=100_000, clock=fake)
        assert found.steady
        assert found.calls == fake.calls
        assert found.seconds < 0.006
        assert calls == 100

    def test_ends_at_its_limit_where_they_do_not(self) -> None:
        fake = FakeClock([1_000_000, 1_100_000] * 500)
        found, calls = clock.warm_up(fake.call, round_ns=1_000_000, enough_ns=50_000_000, clock=fake)
        assert not found.steady
        assert found.seconds == pytest.approx(0.05, rel=0.05)
        assert calls == 1

    @pytest.mark.parametrize(
        ("costs", "steady"),
        [([100, 100, 100], True), ([100, 101, 102], True), ([100, 100, 103], False), ([1000, 500, 250], False)],
    )
    def test_agreement_is_within_two_per_cent_of_the_smallest(self, costs: list[int], steady: bool) -> None:
        fake = FakeClock(costs)
        found, calls = clock.warm_up(fake.call, round_ns=100, enough_ns=0, clock=fake)
        assert found == WarmUp(3, sum(costs) * 1e-9, steady)
        assert calls == 1

    def test_takes_three_calls_unless_they_take_too_long(self) -> None:
        assert clock.warm_up((fake := FakeClock(10**9)).call, clock=fake)[0].calls == 2
        assert clock.warm_up((fake := FakeClock(10**8)).call, clock=fake)[0].calls == 3
        assert clock.warm_up((fake := FakeClock(10**10)).call, clock=fake)[0] == WarmUp(1, 10.0, steady=False)

    @pytest.mark.parametrize("cost", [10, 333, 10_000, 999_999, 10**7])
    def test_finds_how_many_calls_make_a_round(self, cost: int) -> None:
        fake = FakeClock(cost)
        _, calls = clock.warm_up(fake.call, round_ns=1_000_000, clock=fake)
        assert calls == max(1, round(1_000_000 / cost))

    def test_one_interrupted_call_does_not_shorten_the_rounds(self) -> None:
        """The third call is interrupted for 0.9 ms; calls take 1 µs."""
        fake = FakeClock([1_000, 1_000, 900_000, 1_000])
        assert clock.warm_up(fake.call, round_ns=1_000_000, clock=fake)[1] == 1_000

    def test_a_call_that_takes_no_time_by_the_clock_ends_it_too(self) -> None:
        fake = FakeClock([0] * 1000 + [1])
        assert clock.warm_up(fake.call, round_ns=100, enough_ns=10_000, clock=fake)[1] > 1


def test_a_bound_call_gets_its_inputs_and_is_waited_for_before_it_returns() -> None:
    done: list[object] = []
    assert clock.bind(max, (2, 3))() == 3
    assert clock.bind(max, (2, 3), done.append)() == 3
    assert done == [3]


def test_without_inputs_and_waiting_a_call_is_not_wrapped() -> None:
    assert clock.bind(FakeClock, ()) is FakeClock


def of_epochs(time: Callable[[], float]) -> float:
    return min(time() for _ in range(25))


def ratio(time: Callable[[], float], other: Callable[[], float]) -> float:
    """The shortest time of each, in turns, so that a change of speed affects both."""
    pairs = [(time(), other()) for _ in range(40)]
    return min(a for a, _ in pairs) / min(b for _, b in pairs)


def test_the_loop_costs_no_more_than_a_plain_one() -> None:
    """A ratio within one run: an empty call in `epoch`'s loop, and in a `for` over a range."""

    def by_hand(call: Callable[[], object], calls: int) -> float:
        start = clock.perf_counter_ns()
        for _ in range(calls):
            call()
        return (clock.perf_counter_ns() - start) / calls

    assert ratio(lambda: clock.loop_overhead_ns(epochs=1, calls=20_000), lambda: by_hand(tuple, 20_000)) < 1.1


@pytest.mark.usefixtures("_no_collections")
def test_the_loop_overhead_is_that_of_the_loop_that_times() -> None:
    timed = of_epochs(lambda: clock.epoch(tuple, 20_000).ns / 20_000)
    assert clock.loop_overhead_ns(epochs=25, calls=20_000) == pytest.approx(timed, rel=1.0)


@pytest.mark.usefixtures("_no_collections")
def test_the_fastest_binding_is_used() -> None:
    """Compared with a lambda that unpacks its arguments; both in the timing loop."""
    args = (1.0, 2.0)
    calls = 20_000
    bound, spread = clock.bind(divmod, args), lambda: divmod(*args)
    assert ratio(lambda: clock.epoch(bound, calls).ns, lambda: clock.epoch(spread, calls).ns) < 1.1


def test_an_empty_repeat_is_an_empty_epoch() -> None:
    assert list(repeat(None, 0)) == []
    fake = FakeClock(3)
    assert clock.epoch(fake.call, 0, clock=fake).ns == 0


def test_inputs_take_turns_and_a_result_of_each_is_kept() -> None:
    seen: list[int] = []

    def call(x: int) -> int:
        seen.append(x)
        return 10 * x

    found, results = clock.epoch_with_results(call, 7, [(1,), (2,), (3,)], clock=FakeClock(0))
    assert found.calls == 7
    assert seen == [1, 2, 3, 1, 2, 3, 1]
    assert results == {0: 10, 1: 20, 2: 30}


def test_results_are_kept_from_any_place_in_an_epoch() -> None:
    """The number of the call is its result: in 200 epochs of eight calls, each position is chosen."""
    places = set()
    for _ in range(200):
        calls: list[None] = []

        def call(_: int, calls: list[None] = calls) -> int:
            calls.append(None)
            return len(calls)

        _, results = clock.epoch_with_results(call, 8, [(0,), (1,)], clock=FakeClock(0))
        assert sorted(results) == [0, 1]
        assert all((place - 1) % 2 == which for which, place in results.items())
        places |= set(results.values())
    assert places == set(range(1, 9))


def test_fewer_calls_than_inputs_keep_fewer_results() -> None:
    _, results = clock.epoch_with_results(lambda x: x, 1, [(5,), (6,)], clock=FakeClock(0))
    assert results == {0: 5}


@pytest.mark.parametrize("bad", [1, 4, 8])
def test_an_epoch_with_stop_iteration_is_not_cut_short_silently(bad: int) -> None:
    calls: list[int] = []

    def call(x: int) -> int:
        calls.append(x)
        if len(calls) == bad:
            raise StopIteration
        return x

    for _ in range(20):
        calls.clear()
        try:
            _, results = clock.epoch_with_results(call, 9, [(0,), (1,)], clock=FakeClock(0))
        except RuntimeError:  # it raises
            continue
        assert len(calls) == 9  # the last call of a part of the loop
        assert sorted(results) == [0, 1]


@pytest.mark.usefixtures("_no_collections")
def test_alternating_inputs_cost_no_more_than_bound_ones() -> None:
    calls, sets = 20_000, [(1.0, 2.0), (3.0, 4.0)]
    bound = clock.bind(divmod, sets[0])
    turns = ratio(lambda: clock.epoch_with_results(divmod, calls, sets)[0].ns, lambda: clock.epoch(bound, calls).ns)
    assert turns < 1.35  # 0.96 alone, up to 1.22 in a process of thousands of tests; with steps in Python 1.43
