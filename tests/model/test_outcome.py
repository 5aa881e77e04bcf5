"""The outcome of a record, by which exit codes, phases and reports decide."""

import json
from dataclasses import replace
from typing import get_args

import pytest

from adbench.execution.session import exit_code
from adbench.model.record import OUTCOMES, Job, Record, Status, Summary, Word
from adbench.model.serialization import from_plain, to_plain
from adbench.oracle.verdict import Hidden, Verdict
from adbench.reports.content.formatting import OUTCOMES as SHOWN
from tests.reports import runs

JOB = Job("case", 1, "a", "gradient")


def record(status: Status, verdict: str | None = None, **more: object) -> Record:
    return Record(JOB, status, verdict=verdict and runs.verdict(verdict), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "verdict", "word"),
    [
        *(("ok", word, word) for word in ("right", "approximate", "verified", "blind", "inconclusive", "wrong")),
        ("ok", None, "unchecked"),
        ("wrong", None, "wrong"),
        ("wrong", "right", "wrong"),  # in a launch, after a correct check
        ("crashed", "right", "crashed"),
        ("known", "wrong", "known"),
        ("surprise", "right", "surprise"),
        *((status, None, status) for status in ("unsupported", "failed", "timed_out", "skipped")),
    ],
)
def test_the_outcome_is_the_worse_of_status_and_verdict(status: Status, verdict: str | None, word: Word) -> None:
    assert record(status, verdict).outcome.word == word


def test_every_word_has_an_outcome_and_a_sign() -> None:
    assert set(OUTCOMES) == set(SHOWN) == set(get_args(Word))
    for word, outcome in OUTCOMES.items():
        assert SHOWN[word].bad == outcome.is_alarm
        assert not (outcome.is_measured and (outcome.is_fault or outcome.is_incorrect or outcome.exit_code))


def test_a_wrong_derivative_takes_precedence_over_a_crash_in_the_exit_code() -> None:
    crash, wrong = record("crashed"), record("wrong")
    assert exit_code([]) == exit_code([record("ok", "approximate"), record("known"), record("unsupported")]) == 0
    assert exit_code([record("ok", "right"), crash]) == exit_code([crash, record("skipped")]) == 4
    assert exit_code([record("ok", "right"), record("skipped")]) == 0  # too slow for a quick run
    assert exit_code([crash, wrong]) == exit_code([record("surprise"), wrong]) == 1
    assert exit_code([record("surprise")]) == 0  # a note


def test_only_checked_results_without_a_reason_are_timed() -> None:
    summary = Summary(1, 1.0, 1.0)
    assert record("ok", "right", summary=summary).may_be_timed
    assert all(record("ok", word, summary=summary).may_be_timed for word in ("verified", "blind", "inconclusive"))
    assert not record("ok", "right").may_be_timed  # relations have no call
    assert not record("ok", "right", summary=summary, reason="does not fit").may_be_timed
    assert not record("wrong", "wrong", summary=summary).may_be_timed


def test_a_known_wrong_result_still_counts_as_found_wrong() -> None:
    assert record("known", "wrong").found_wrong
    assert not record("known").found_wrong


def test_a_verdict_of_an_earlier_version_loads_and_keeps_its_word() -> None:
    new = {"blind", "digits", "proved", "hidden"}
    old = {name: value for name, value in to_plain(runs.verdict("inconclusive")).items() if name not in new}
    loaded = from_plain(old, Verdict)
    assert (loaded.word, loaded.whole_digits, loaded.hidden) == ("inconclusive", None, None)
    assert OUTCOMES[loaded.word].is_measured


def test_a_verdict_is_stored_with_its_hidden_errors() -> None:
    hidden = Hidden("x", 99_936, 3e-12, 4e-13, float("inf"))
    made = replace(runs.verdict("verified"), proved=True, hidden=hidden)
    assert from_plain(json.loads(json.dumps(to_plain(made), allow_nan=False)), Verdict) == made
    assert made.whole_digits == 6
