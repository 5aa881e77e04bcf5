"""Parallel tasks: every item arrives, in its task's order, and no task is left waiting."""

import threading
from collections.abc import Iterator

import pytest

from adbench.execution.parallel import parallel


def numbers(lane: int, count: int) -> Iterator[tuple[int, int]]:
    for k in range(count):
        yield lane, k


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_items_arrive_in_the_order_of_their_task(at_once: int) -> None:
    found = list(parallel([numbers(lane, 5) for lane in range(4)], at_once, lambda: None))
    assert sorted(found) == [(lane, k) for lane in range(4) for k in range(5)]
    for lane in range(4):
        assert [k for which, k in found if which == lane] == list(range(5))
    assert list(parallel([], at_once, lambda: None)) == []


def test_an_exception_of_a_task_is_raised_and_stops_the_others() -> None:
    let_go = threading.Event()

    def waits() -> Iterator[tuple[int, int]]:
        yield 0, 0
        let_go.wait(60)

    def breaks() -> Iterator[tuple[int, int]]:
        yield 1, 0
        raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        list(parallel([waits(), breaks()], 2, let_go.set))
    assert let_go.is_set()
    assert threading.active_count() < 50


def test_ending_early_releases_waiting_tasks() -> None:
    let_go = threading.Event()

    def waits() -> Iterator[tuple[int, int]]:
        yield 0, 0
        let_go.wait(60)

    running = parallel([waits(), waits()], 2, let_go.set)
    assert next(running) == (0, 0)
    running.close()
    assert let_go.is_set()


def test_ending_early_ends_a_task_that_another_waits_for() -> None:
    ended = threading.Event()

    def works() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            ended.set()

    def waits() -> Iterator[int]:
        assert ended.wait(60)
        yield 1

    running = parallel([works(), waits()], 2, lambda: None)
    assert next(running) == 0
    running.close()
    assert ended.is_set()
