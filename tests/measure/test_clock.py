"""The clock, driven by a clock of our own: no test sleeps."""

from collections.abc import Callable

import pytest

from adbench.measure import clock


@pytest.fixture(autouse=True)
def _no_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection before each of hundreds of epochs takes seconds where other tests have left a large heap."""
    monkeypatch.setattr(clock.gc, "collect", lambda: 0)


class FakeClock:
    """Nanoseconds that pass only when `call` is called: `cost` each time, or what the list says."""

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
    assert clock.epoch(fake.call, 100, clock=fake) == 700
    assert fake.calls == 100


def test_the_collector_runs_before_an_epoch_and_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeClock(1)
    collected: list[int] = []
    monkeypatch.setattr(clock.gc, "collect", lambda: collected.append(fake.calls))
    clock.epoch(fake.call, 3, clock=fake)
    assert collected == [0]
    assert clock.gc.isenabled()


def test_warming_up_takes_three_calls_at_least_and_stops_at_the_limit() -> None:
    assert clock.warm_up((fake := FakeClock(10)).call, at_least_ns=0, clock=fake) == 3
    assert clock.warm_up((fake := FakeClock(10)).call, at_least_ns=100, clock=fake) == 10
    assert clock.warm_up((fake := FakeClock(10)).call, at_least_ns=1000, at_most_ns=50, clock=fake) == 5
    assert clock.warm_up((fake := FakeClock(10**10)).call, at_least_ns=0, clock=fake) == 1


@pytest.mark.parametrize("cost", [10, 333, 10_000, 999_999])
def test_an_epoch_is_about_as_long_as_asked_for(cost: int) -> None:
    fake = FakeClock(cost)
    calls = clock.calls_per_epoch(fake.call, 1_000_000, clock=fake)
    assert calls * cost == pytest.approx(1_000_000, rel=0.5)


def test_a_call_longer_than_an_epoch_is_an_epoch() -> None:
    fake = FakeClock(10**9)
    assert clock.calls_per_epoch(fake.call, 10**6, clock=fake) == 1
    assert fake.calls == 1


def test_one_slow_call_does_not_shorten_the_epochs() -> None:
    """The first call is interrupted for 0.9 ms; calls take 1 µs."""
    fake = FakeClock([1_000, 1_000, 900_000, 1_000])
    assert clock.calls_per_epoch(fake.call, 1_000_000, clock=fake) > 500


def test_the_loop_itself_costs_little_beside_a_call() -> None:
    """A ratio inside one run: an empty call by `epoch` against the same call in a `for` over a range."""

    def nothing() -> None:
        return None

    def by_hand(call: Callable[[], object], calls: int) -> int:
        start = clock.perf_counter_ns()
        for _ in range(calls):
            call()
        return clock.perf_counter_ns() - start

    assert min(clock.epoch(nothing, 20_000) for _ in range(9)) < 2 * min(by_hand(nothing, 20_000) for _ in range(9))
