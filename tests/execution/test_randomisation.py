"""Every launch has another randomisation, the same for the same seed; turns are balanced for succession."""

from collections import Counter
from itertools import pairwise

import pytest

from adbench.execution.workers.randomisation import WorkerKey, randomise, turns

SEATS = [WorkerKey("tape"), WorkerKey("tape", control=True), WorkerKey("jax"), WorkerKey("autograd")]


def test_launches_differ_in_everything_random() -> None:
    drawn = [randomise(0, number, SEATS, 20) for number in range(8)]
    assert len({tuple(made.starts) for made in drawn}) > 1
    assert len({made.groups for made in drawn}) == 8
    for name in ("PYTHONHASHSEED", "ADBENCH_PADDING"):
        assert len({start.environment[name] for made in drawn for start in made.starts.values()}) > 28
    assert len({start.heap_bytes for made in drawn for start in made.starts.values()}) > 28


def test_the_same_seed_gives_the_same_launch_in_any_order_of_workers() -> None:
    assert randomise(3, 5, SEATS, 20) == randomise(3, 5, SEATS[::-1], 20)
    assert randomise(3, 5, SEATS, 20) != randomise(4, 5, SEATS, 20)
    assert randomise(3, 5, SEATS, 20) != randomise(3, 6, SEATS, 20)


def test_a_randomisation_has_every_worker_and_group_once() -> None:
    made = randomise(1, 2, SEATS, 9)
    assert sorted(made.starts) == sorted(SEATS)
    assert sorted(made.groups) == list(range(9))


@pytest.mark.parametrize("cells", range(1, 9))
def test_turns_are_a_latin_square_balanced_for_succession(cells: int) -> None:
    square = [turns(cells, number) for number in range(cells)]
    assert all(sorted(row) == list(range(cells)) for row in square)
    assert all(len({row[place] for row in square}) == cells for place in range(cells))
    rows = square if cells % 2 == 0 else [turns(cells, number) for number in range(2 * cells)]
    followers = Counter(pair for row in rows for pair in pairwise(row))
    assert len(followers) == cells * (cells - 1)
    assert len(set(followers.values())) <= 1
