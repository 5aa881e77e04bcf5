"""Test the tester: wrong rules, planted one at a time in the reference engine, are caught by the commands that users
run."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import adbench
from adbench.execution.operators import fallback
from adbench.execution.operators.other_points import with_other_points
from adbench.execution.operators.prepared_point import PointReferences, examined, point
from adbench.execution.operators.references import known_at, with_points
from adbench.execution.operators.relations import Setting, related, sentences
from adbench.execution.python_check import WrongGradient, assert_gradients
from adbench.model.case import Case, function_of
from adbench.model.operator import batch_points, definition, needs_second_order
from adbench.oracle.precise import METHOD
from adbench.tape.fast import switch
from tests.backends.loaded import backend
from tests.oracle.mutant import Mutant
from tests.oracle.mutants import MUTANTS
from tests.oracle.planting import in_reverse, scaled, with_planted
from tests.oracle.subjects import sines
from tests.support.marks import one_in

TAPE, COMPILED = (with_planted(backend(name)) for name in ("tape", "tape_compiled"))
UNRESOLVED = ("verified", "blind")
NIGHTLY_SEED = 1_000  # the first seed of the points; the next ones follow


@pytest.fixture(autouse=True)
def in_python() -> Iterator[None]:
    """The faults are planted in Python, so the engine must run it."""
    with switch.python_only():
        yield


@cache
def known(case: Case, seed: int, second_order: bool) -> PointReferences:
    """From the case's source alone: one reference for all mutants at a point."""
    found = known_at(point(case, 1, seed), second_order=second_order, seconds=3.0)
    assert found.first.all_outputs.method == METHOD, found.first.all_outputs.reason
    return found


def word(mutant: Mutant, seed: int) -> tuple[str, str]:
    """The verdict on the current engine, by the mutant's operator or relation."""
    at = point(mutant.case, 1, seed)
    if mutant.relation:
        found = sentences(related(Setting(TAPE, mutant.case, 1, seed, known(mutant.case, seed, True))))
        names = [text.partition("):")[0].split(" (") for text in found]
        broken = [
            mutant.operator for name, *of in names if name == mutant.relation and mutant.operator in of[0].split(", ")
        ]
        return ("wrong" if broken else "right"), "; ".join(found)
    count = batch_points(mutant.operator)
    used = COMPILED if count else TAPE
    truth = with_points(known(mutant.case, seed, needs_second_order(mutant.operator)), at, count, seconds=3.0)
    elsewhere, native = at.native(used, mutant.operator)
    f = function_of(mutant.case, at.names, used.xp)
    made = fallback.prepare(used, definition(mutant.operator).name, f, elsewhere, at.wrt)
    verdict, entries = examined(at, mutant.operator, used.numpy_result(made.call(*native)), truth, None)
    if count:
        verdict = with_other_points(verdict, entries, at, used, f, made, count)
    return verdict.word, verdict.sentence


def parameters(mutant: Mutant) -> Any:
    marks = [pytest.mark.xfail(raises=AssertionError, reason=f"survives: {mutant.survives}")] if mutant.survives else []
    return pytest.param(mutant, id=str(mutant), marks=marks)


@pytest.mark.parametrize("mutant", one_in(4, [parameters(mutant) for mutant in MUTANTS]))
def test_a_wrong_rule_is_caught_and_the_right_one_is_not(
    mutant: Mutant, nightly: int, record_property: Callable[[str, object], None]
) -> None:
    seeds = range(NIGHTLY_SEED, NIGHTLY_SEED + nightly + mutant.points - 1)
    before = UNRESOLVED if mutant.kind in ("beyond resolution", "hard point") else ("right",)
    for seed in seeds:
        found, sentence = word(mutant, seed)
        assert found in before, sentence
    runs: list[None] = []
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch, lambda: runs.append(None))
        verdicts = [word(mutant, seed) for seed in seeds][mutant.points - 1 :]
    assert runs, "the planted code did not run: the engine takes another path now"
    kept = sum(found != mutant.expected for found, _ in verdicts)
    record_property("mutant", [mutant.kind, mutant.size, len(verdicts), len(verdicts) - kept])
    for seed, (found, sentence) in zip(seeds, verdicts, strict=False):
        assert found == mutant.expected, f"seed {seed}: {sentence}"


def test_there_are_enough_mutants_of_every_size_and_no_two_are_the_same() -> None:
    assert len(set(map(str, MUTANTS))) == len(MUTANTS) >= 60
    assert set(Counter(mutant.size for mutant in MUTANTS)) == {"1", "1e-2", "1e-4", "1e-6", "1e-8", "1e-9", "gross"}


def sum_of_sines(xp: Any, x: Any) -> Any:
    return xp.sum(xp.sin(x))


@pytest.mark.parametrize("error", [1.0, 1e-4, 1e-9])
def test_check_and_assert_gradients_find_a_wrong_rule_in_a_users_function(
    error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array([0.5, 0.7, 0.9])
    assert adbench.check(sum_of_sines, x).word == "right"
    assert_gradients(sum_of_sines, x)
    in_reverse("sin", scaled(error, one=True))(monkeypatch, lambda: None)
    verdict = adbench.check(sum_of_sines, x)
    assert (verdict.word, verdict.wrong) == ("wrong", 1)
    assert "x[1]" in verdict.sentence
    with pytest.raises(WrongGradient, match=r"x\[1\]"):
        assert_gradients(sum_of_sines, x)


def test_planted_faults_are_removed_afterwards() -> None:
    mutant = next(m for m in MUTANTS if m.case is sines)
    before = word(mutant, NIGHTLY_SEED)
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch, lambda: None)
        assert word(mutant, NIGHTLY_SEED)[0] == "wrong"
    assert word(mutant, NIGHTLY_SEED) == before
