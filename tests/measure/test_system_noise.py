"""The noise of a machine, on a test clock."""

from collections.abc import Callable, Iterator
from itertools import accumulate, chain, repeat

import pytest

from adbench.measure.machine.disturbance import Counters
from adbench.measure.machine.system_noise import PIECE, clock_step_ns, measure_noise


def clock_of(steps: Iterator[int]) -> Callable[[], int]:
    """A clock that advances by these nanoseconds between readings."""
    return accumulate(steps).__next__


def test_a_quiet_machine_gives_all_its_time() -> None:
    found = measure_noise(10**6, clock=clock_of(repeat(100)), watch=lambda: Counters(0))
    assert (found.gaps, found.taken, found.longest_ns, found.spread, found.stolen_ms) == (0, 0.0, 0, 0.0, None)
    assert found.ns == 10**6


def test_time_taken_by_others_is_counted() -> None:
    steps = chain(repeat(100, 500), [300_000], repeat(100, 500), [700_000], repeat(100))
    readings = iter([Counters(1, stolen_ms=10.0), Counters(4, stolen_ms=11.0)])
    found = measure_noise(2 * 10**6, clock=clock_of(steps), watch=lambda: next(readings))
    assert (found.gaps, found.taken_ns, found.longest_ns) == (2, 10**6, 700_000)
    assert found.taken == pytest.approx(0.5, rel=0.05)
    assert (found.switches, found.stolen_ms) == (3, 1.0)


def test_different_times_of_equal_work_are_a_spread() -> None:
    """Half of the pieces take a tenth longer."""
    piece = list(chain(repeat(100, PIECE), repeat(110, PIECE)))
    found = measure_noise(10**7, clock=clock_of(chain.from_iterable(repeat(piece))), watch=lambda: Counters(0))
    assert found.spread == pytest.approx(0.095, rel=0.1)
    assert found.gaps == 0


def test_the_step_of_a_clock_is_its_smallest_increment() -> None:
    assert clock_step_ns(clock=clock_of(chain.from_iterable(repeat([0, 0, 40, 80])))) == 40
    assert clock_step_ns(clock=lambda: 7) is None
    step = clock_step_ns()
    assert step is not None
    assert 0 < step < 10**8
