"""The memory methods with known amounts, in fresh processes, and the documented table."""

import sys
from pathlib import Path
from typing import get_args

import pytest

from adbench.measure import memory, memory_truth
from adbench.measure.memory import Method
from adbench.measure.memory_truth import ALLOCATORS, AMOUNTS, MEGABYTE, SEEN, Reading, missing, readings
from adbench.measure.readings import Figure
from tests.support.marks import mostly_slow

METHODS: tuple[Method, ...] = tuple(method for method in get_args(Method) if method in SEEN)  # none on a device
PAIRS = [(allocator, method) for allocator in ALLOCATORS for method in METHODS]
CHEAP = ("numpy", "C library", "malloc by address", "untouched array")  # others import libraries, or make many objects
FAST = [pair for pair in PAIRS if pair[0] in CHEAP] + [("child process", "resident")]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the resident peak needs Linux's clear_refs")
@pytest.mark.parametrize("pair", mostly_slow(PAIRS, fast=FAST), ids="-".join)
def test_a_known_amount_is_read_within_five_percent_or_unseen_as_documented(pair: tuple[str, Method]) -> None:
    allocator, method = pair
    if (reason := missing(allocator)) is not None:
        pytest.skip(reason)
    if method == "allocated":
        pytest.importorskip("memray", reason="memray is not installed")
    found = list(readings([allocator], [method]))
    assert [reading.amount for reading in found] == list(AMOUNTS)
    assert all(reading.true for reading in found), found


def test_the_documented_table_is_the_tested_one() -> None:
    lines = [line for line in str(memory.__doc__).splitlines() if line.startswith(("Which method sees", *METHODS))]
    names = [name for name in ALLOCATORS if name in lines[0]]
    assert sorted(names) == sorted(ALLOCATORS)
    in_order = sorted(names, key=lines[0].index)
    for line in lines[1:]:
        method, *words = line.replace("(memray)", "").replace("(tracemalloc)", "").replace("(VmHWM)", "").split()
        said = frozenset(name for name, word in zip(in_order, words, strict=True) if word == "yes")
        assert said == SEEN[method]  # type: ignore[index]
    assert len(lines) == 1 + len(METHODS)
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "memory.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in page if line in lines] == lines


def test_a_method_that_wrongly_reads_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_truth, "SEEN", {**SEEN, "python": frozenset({"malloc by address"})})
    assert [reading.true for reading in readings(["malloc by address"], ["python"])] == [False, False]


def test_a_method_that_is_not_blind_as_stated_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_truth, "SEEN", {**SEEN, "python": frozenset()})
    assert [reading.true for reading in readings(["untouched array"], ["python"])] == [False, False]


@pytest.mark.parametrize(
    ("value", "seen", "true"),
    [
        (64.0, True, True),
        (67.1, True, True),
        (67.3, True, False),
        (0.0, True, False),
        (0.0, False, True),
        (64.0, False, False),
    ],
)
def test_a_reading_is_correct_within_five_percent(value: float, seen: bool, true: bool) -> None:
    figure = Figure(value * MEGABYTE)
    assert Reading("torch", "allocated", 64 * MEGABYTE, figure, seen).true is true


def test_without_a_figure_correctness_is_unknown() -> None:
    assert Reading("torch", "allocated", 1, Figure(None, "memray is not installed"), True).true is None


def test_a_process_that_fails_is_a_figure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = readings(["numpy"], ["python"], [-1])
    assert found.figure.value is None
    assert "its process ended with 1" in str(found.figure.reason)
    (late,) = readings(["numpy"], ["python"], [8], timeout=0.001)
    assert late.figure == Figure(None, "its process took longer than 0.001 s")
