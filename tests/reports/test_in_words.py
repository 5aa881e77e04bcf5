"""The verdict in words is true for every run: of ties, wrong results, one backend, no times, and our own engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adbench.model.backend import KnownBug, KnownBugs, Trap
from adbench.model.record import Record, Run
from adbench.reports.content.answer.in_words import fastest_in_words, summary_in_words
from adbench.reports.content.cells import Cells
from tests.reports import runs

NAMES = ("jax", "torch", "tape_compiled")


def in_words(run: Run, *, without_own: bool = False) -> str:
    return summary_in_words(Cells(run), without_own=without_own)


def races(*rows: tuple[float, float, float]) -> list[Record]:
    """One case for each row: the times of jax, torch and tape_compiled."""
    pairs = (zip(NAMES, row, strict=True) for row in rows)
    return [record for k, pair in enumerate(pairs) for record in runs.race(list(pair), case=f"case_{k}")]


def test_the_fastest_library_is_named_and_our_engine_apart() -> None:
    run = runs.run(races((2e-6, 4e-6, 1e-6), (8e-6, 9e-6, 2e-6)))
    assert in_words(run) == (
        "Of the libraries in this run, jax is fastest in all 2 cases and right in all. "
        "adbench’s own engine, tape_compiled, is 2.0 to 4.0 times as fast as the fastest library."
    )
    assert "adbench" not in in_words(run, without_own=True)


def test_the_engine_does_not_take_a_win_from_a_library() -> None:
    assert "jax is fastest in 1 of 2 cases" in in_words(runs.run(races((2e-6, 4e-6, 1e-6), (9e-6, 9e-6, 2e-6))))


def test_an_engine_that_is_faster_in_some_cases_only_is_not_praised_for_all() -> None:
    text = in_words(runs.run(races((2e-6, 4e-6, 1e-6), (2e-6, 4e-6, 3e-6))))
    assert text.endswith("is 2.0 times as fast as the fastest library in 1 of 2 cases, and slower in 1.")


def test_a_slower_engine_is_called_slower() -> None:
    text = in_words(runs.run(races((1e-6, 4e-6, 3e-6))))
    assert text.endswith("own engine, tape_compiled, is slower than the fastest library in the only case.")


def test_a_wrong_library_is_never_called_fast() -> None:
    run = runs.run(
        [
            *(runs.record(backend=b, seconds=s) for b, s in (("jax", 5e-6), ("torch", 9e-6))),
            runs.record(backend="autograd", status="wrong"),
        ]
    )
    assert in_words(run) == (
        "Of the libraries in this run, jax is fastest in the only case, and right. autograd is wrong in the only case."
    )


def test_a_library_that_wins_elsewhere_and_is_wrong_here_is_called_wrong() -> None:
    wrong = [runs.record("other", backend="jax", status="wrong"), runs.record("other", backend="torch")]
    text = in_words(runs.run([*runs.race([("jax", 1e-6), ("torch", 2e-6)]), *wrong]))
    assert "jax is fastest in 1 of 2 cases and right in 1." in text
    assert "jax is wrong in 1 of 2 cases." in text


def test_ties_have_no_winner() -> None:
    both = [runs.record(backend=name, wobble=w) for name, w in (("jax", 0.1), ("torch", -0.1), ("autograd", 0.0))]
    text = in_words(runs.run(both))
    assert text.startswith("No library is significantly faster than all others in any case: ")


def test_two_launches_decide_nothing() -> None:
    few = [
        replace(record, time=runs.time(seconds, launches=2))
        for record, seconds in zip(runs.race([("jax", 1e-6), ("torch", 5e-6)]), (1e-6, 5e-6), strict=True)
    ]
    text = in_words(runs.run(few))
    assert text == (
        "This run has too few launches to tell which library is fastest: jax has the lowest time, and is right in the "
        "only case."
    )


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([], "This run has no result."),
        ([runs.record(backend="jax")], "jax, the only library in this run, is right in the only case."),
        (
            [runs.record(backend="tape"), runs.record("other", backend="tape", status="failed")],
            "This run has no library, so there is nothing to choose from. tape is right in 1 of 2 cases. "
            "tape raises an error in 1 of 2 cases.",
        ),
        (
            [runs.record(backend="jax", status="crashed"), runs.record(backend="torch", status="timed_out")],
            "jax and torch are right in no case. jax crashes in the only case. torch gives no answer in time in the "
            "only case.",
        ),
        (
            [runs.record(backend="jax", seconds=None), runs.record(backend="torch", seconds=None)],
            "jax and torch are right in the only case.",
        ),
        (
            [runs.record(backend="jax"), runs.record(backend="torch", status="unsupported")],
            "No case has two libraries that are right and timed, so none is called the fastest. "
            "jax is right in the only case.",
        ),
    ],
)
def test_small_runs_are_told_as_they_are(records: list[Record], text: str) -> None:
    assert in_words(runs.run(records)) == text


def test_known_traps_are_counted_for_the_fastest_and_the_worst() -> None:
    traps = {f"trap_{k}": Trap("kinks", "abs(x)", "0") for k in range(3)}
    bugs = [KnownBug(name, (), "nan", "0/0", "") for name in traps]
    known = KnownBugs({"kinks": 3}, traps, {"jax": (bugs[0],), "torch": tuple(bugs), "autograd": (bugs[0],)})
    records = runs.race([("jax", 1e-6), ("torch", 2e-6), ("autograd", 4e-6)])
    assert "jax is known to be wrong on 1 of 3 classical traps, torch on 3." in in_words(
        runs.run(records, known_bugs=known)
    )


def test_a_case_is_told_by_its_fastest_at_each_size() -> None:
    def told(*times: tuple[int, str, float]) -> str:
        records = [record for n, name, seconds in times for record in runs.race([(name, seconds)], size=n)]
        return fastest_in_words(Cells(runs.run(records)), "quadratic")

    assert told((1, "a", 1e-6), (1, "b", 9e-6), (10, "a", 1e-6), (10, "b", 9e-6)) == "a is fastest at every n."
    crossing = told((1, "a", 1e-6), (1, "b", 9e-6), (10, "a", 9e-6), (10, "b", 1e-6))
    assert crossing == "a is fastest at n = 1; b is fastest at n = 10."
    assert told((1, "a", 1e-6), (1, "b", 1e-6)) == "a and b tie for fastest at n = 1."
    assert told((1, "a", 1e-6)) == "", "nothing to compare with"


def test_the_roles_of_a_run_decide_and_names_only_in_earlier_files() -> None:
    records = runs.race([("jax", 4e-6), ("torch", 8e-6), ("mine", 1e-6)])
    own = runs.run(records, roles={"jax": "library", "torch": "library", "mine": "own engine"})
    assert "adbench’s own engine, mine, is 4.0 times as fast" in in_words(own)
    assert "mine is fastest" in in_words(runs.run(records))
    assert runs.run(records).role_of("tape_compiled") == "own engine"
    files = {"backends/tape": "backends/tape.py:1", "backends/tape_mine": "tape_mine.py:1"}
    earlier = runs.run(records, sources=files)  # in this repository: with the lines of our own files too
    assert (earlier.role_of("tape"), earlier.role_of("tape_mine")) == ("own engine", "library")


def test_a_comparison_is_not_a_library() -> None:
    records = runs.race([("jax", 4e-6), ("torch", 8e-6), ("cpp_hand", 1e-6)])
    assert in_words(runs.run(records)) == ("Of the libraries in this run, jax is fastest in the only case, and right.")
