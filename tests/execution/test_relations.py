"""Relations between calls: correct libraries break none, wrong ones do, and every relation is listed.

The wrong backends of every relation and operator are among the mutants (tests/oracle/mutants_of_relations.py).
"""

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import BadFile, Case, Namespace, Unsupported, UsageError, check
from adbench.execution.operators.prepared_point import PointReferences, point
from adbench.execution.operators.references import known_at
from adbench.execution.operators.relations import CHEAP, Setting, related, sentences
from adbench.execution.operators.relations.consistency import AllowedDifference, difference
from adbench.execution.operators.relations.preparations import choices, subsets_of
from adbench.execution.operators.relations.setting import NotApplicable, PreparedSubject
from adbench.model.backend import Backend, Operator, from_module
from adbench.model.operator import OPERATORS, OPTIONAL_RELATIONS, REQUIRED_RELATIONS
from tests.oracle.mutants_of_relations import ARRAY, RELATIONS, SCALAR

TAPE = from_module("tape", importlib.import_module("backends.tape"))
Prepare = Callable[..., Callable[..., Any]]


@cache
def known(case: Case) -> PointReferences:
    return known_at(point(case, 1, 0), second_order=True, seconds=3.0)


def setting(case: Case = SCALAR, prepare: Prepare | None = None, **more: Any) -> Setting:
    """The engine on a case, optionally with another `prepare`."""
    changed = {"prepare": prepare} if prepare else {}
    return Setting(replace(TAPE, **changed, **more), case, 1, 0, known(case))


def lacking(*operators: Operator) -> Prepare:
    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        if operator in operators:
            raise Unsupported(f"no {operator} here")
        return TAPE.prepare(operator, f, args, wrt)

    return prepare


def changing(operator: Operator, change: Callable[[Any], Any]) -> Prepare:
    def prepare(asked: Operator, f: Any, args: Any, wrt: Any) -> Any:
        call = TAPE.prepare(asked, f, args, wrt)
        return (lambda *a: change(call(*a))) if asked == operator else call

    return prepare


@pytest.mark.parametrize("case", [SCALAR, ARRAY])
def test_a_correct_backend_breaks_no_relation_and_every_relation_is_listed(case: Case) -> None:
    found = related(setting(case))
    assert sentences(found) == []
    operators = len({*case.possible_operators} & {*OPERATORS})
    left_out = sum(text.partition(")")[0].count(",") + 1 for text in found.left_out)
    modes = 1 if case is ARRAY else 2
    assert found.held + left_out >= operators * (len(CHEAP) + 4) + modes
    assert "linear (value" in "".join(found.left_out)


def test_every_relation_has_a_mutant_that_breaks_it() -> None:
    assert {mutant.relation for mutant in RELATIONS} | {"apart"} == {*REQUIRED_RELATIONS, *OPTIONAL_RELATIONS}


def test_a_result_that_shares_memory_with_an_argument_is_found_unless_declared() -> None:
    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        return (lambda *a: (a[0],)) if operator == "gradient" else lacking(*OPERATORS)(operator, f, args, wrt)

    case = Case(
        f=lambda xp, x: xp.sum(x * x) / 2, inputs=lambda n, rng: {"x": rng.normal(size=3)}, wrt=("x",), sizes=(1,)
    )
    wrong = setting(case, prepare)
    assert related(wrong).broken == ("apart (gradient): writing into the result changes its argument x",)
    declared = related(replace(wrong, backend=replace(wrong.backend, limits={"apart": "it is fast"})))
    assert (declared.broken, declared.declined) == ((), {"apart": "it is fast"})


@pytest.mark.parametrize(("limits", "reason"), [({"twice": "no"}, "LIMITS has twice; use .*"), (3, "dict")])
def test_only_optional_relations_may_be_declined(limits: Any, reason: str) -> None:
    module = type(importlib)("mine")
    module.prepare = lambda *_: None  # type: ignore[attr-defined]
    module.LIMITS = limits  # type: ignore[attr-defined]
    with pytest.raises(BadFile, match=reason):
        from_module("mine", module)


def test_a_wrong_operator_is_reported_once() -> None:
    found = related(setting(prepare=changing("gradient", lambda g: tuple(-part for part in g))))
    assert found.broken == ()
    assert list(found.repeats) == ["gradient"]
    assert "it looks like this: sign flipped" in found.repeats["gradient"]


def test_an_operator_that_raises_is_reported_once() -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError("the tape is gone\nand more")

    found = related(setting(prepare=changing("hvp", fail)))
    assert (found.broken, found.repeats) == ((), {"hvp": "RuntimeError: the tape is gone"})


def test_a_library_that_fails_after_its_first_call_is_reported() -> None:
    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        calls: list[Any] = []

        def call(*a: Any) -> Any:
            calls.append(a)
            if len(calls) > 2:
                raise RuntimeError("the tape is gone")
            return TAPE.prepare(operator, f, args, wrt)(*a)

        return call

    broken = related(setting(prepare=prepare)).broken
    assert any(
        text.startswith("twice (value, gradient") and "RuntimeError: the tape is gone" in text for text in broken
    )


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_forward_and_reverse_may_follow_two_conventions_of_symmetric_matrices(factor: float) -> None:
    """torch's jvp of cholesky is not symmetrised, and its vjp is."""
    torches = from_module("torch", importlib.import_module("backends.torch"))

    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        call = torches.prepare(operator, f, args, wrt)
        return (lambda *a: factor * call(*a)) if operator == "jvp" else call

    def inputs(n: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"A": np.array([[4.0, 1.0, -0.5], [1.0, 3.0, 0.7], [-0.5, 0.7, 5.0 + rng.random()]])}

    case = Case(f=lambda xp, A: xp.sum(xp.linalg.cholesky(A)), inputs=inputs, wrt=("A",), sizes=(1,), name="factor")
    found = related(Setting(replace(torches, prepare=prepare), case, 1, 0, known(case)))
    assert found.broken == ()
    assert list(found.repeats) == ([] if factor == 1.0 else ["jvp"])


def test_no_derivative_at_all_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="no gradient here"):
        related(setting(prepare=lacking(*OPERATORS[1:])))


def test_relations_of_operators_that_the_backend_lacks_are_left_out_with_the_reason() -> None:
    found = related(setting(prepare=lacking("vjp", "hessian")))
    assert "modes (jvp, vjp): the backend itself has no vjp" in found.left_out
    assert "symmetric (hvp, hessian): the backend itself has no hessian" in found.left_out
    assert found.broken == ()


def test_relations_beyond_the_time_limit_are_left_out_with_the_reason() -> None:
    found = related(setting(), seconds=0.0)
    assert found.held == 0
    assert "twice (value, gradient" in found.left_out[0] + found.left_out[1]
    assert all("the time for relations was over" in text for text in found.left_out)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_cheap_relations_prepare_nothing(operator: Operator) -> None:
    ready = setting()
    call = ready.prepare(operator, ready.native((*ready.at.args, *ready.at.vector(operator))), ready.at.wrt)

    def refuse(*_: Any) -> Any:
        raise AssertionError("nothing is to be prepared")

    subject, held = PreparedSubject(replace(ready, backend=replace(ready.backend, prepare=refuse)), operator, call), 0
    for probe in CHEAP.values():
        with suppress(NotApplicable):
            assert list(probe(subject)) == []
            held += 1
    assert held >= 10


def test_prepared_operators_are_not_prepared_again() -> None:
    ready, prepared = setting(), []

    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        prepared.append((operator, wrt))
        return TAPE.prepare(operator, f, args, wrt)

    from adbench.execution.operators.relations import Interruption

    interruption = Interruption()
    f = interruption.of(TAPE.function(SCALAR, ready.at.names, 1))
    args = ready.native(ready.at.args)
    kept = {"gradient": (TAPE.prepare("gradient", f, args, ready.at.wrt), interruption)}
    found = related(replace(setting(prepare=prepare), kept=kept))
    assert sentences(found) == []
    assert ("gradient", ready.at.wrt) not in prepared
    assert ("vjp", ready.at.wrt) in prepared


def test_every_operator_gets_other_active_inputs_and_another_order() -> None:
    assert subsets_of((0, 1)) == [(0,), (1,), (1, 0)]
    two = setting()
    for number, operator in enumerate(OPERATORS[1:]):
        chosen = choices(two, operator, number)
        assert two.at.wrt[::-1] in chosen
        assert any(len(wrt) == 1 for wrt in chosen)
    assert choices(two, "value", 3) == [two.at.wrt]
    builds = replace(two, backend=replace(two.backend, build=lambda f, args, wrt: None))
    assert choices(builds, "hvp", 3) == [(1, 0)]


@pytest.mark.parametrize(
    ("got", "expected", "reason"),
    [
        ((np.ones(2),), (np.ones(2) + 1e-10,), ""),
        ((np.ones(2),), (np.ones(2) + 1e-8,), "[0][0] is 1.0; expected 1.00000001"),
        ((np.array([1.0, 1e-12]),), (np.array([1.0, 2e-12]),), "[0][1] is 1e-12; expected 2e-12"),
        ((np.array([np.nan, np.inf]),), (np.array([np.nan, np.inf]),), ""),
        ((np.array([np.nan]),), (np.zeros(1),), "[0][0] is nan; expected 0.0"),
        ((np.ones(2),), (np.ones(3),), "got an array of shape (2,); expected (3,)"),
        ((np.ones(2),), (np.ones(2), 1.0), "got (array); expected (array, array)"),
        ({"b": 1.0}, {"b": 2.0}, "['b'] is 1.0; expected 2.0"),
        (1.0, 1.0, ""),
    ],
)
def test_two_results_agree_up_to_rounding(got: Any, expected: Any, reason: str) -> None:
    assert difference(got, expected, AllowedDifference()) == reason


def test_the_noise_of_the_point_is_tolerated() -> None:
    noisy = AllowedDifference(share=1e-6, floor=1e-3)
    assert difference(np.array([1e6, 0.5]), np.array([1e6, 0.0]), noisy) == ""
    assert difference(0.1, 0.0, noisy) == "it is 0.1; expected 0.0"


def test_a_pattern_without_a_nonzero_entry_is_the_cases_fault() -> None:
    false = replace(ARRAY, name="mine", sparsity=lambda n: (list(range(6)), list(range(6))))
    with pytest.raises(UsageError, match=r"mine: sparsity\(1\) leaves out row 0, column 6, where the derivative is"):
        known_at(point(false, 1, 0), second_order=False, seconds=3.0)


def test_a_users_array_valued_function_is_checked_by_its_jacobian() -> None:
    def mine(xp: Any, x: Any) -> Any:
        return xp.stack([x[0] * x[1], xp.sin(x[0])])

    for operator in ("jacobian", "jvp", "vjp", "value"):
        assert check(mine, [0.5, 1.5], backend="autograd", operator=operator).word == "right"
    assert check(mine, [0.5, 1.5], backend="autograd").deciding.mode == "jacobian"
    with pytest.raises(UsageError, match="an array-valued function has no gradient"):
        check(mine, [0.5, 1.5], backend="autograd", operator="gradient")


def test_numpy_alone_is_a_backend_of_values() -> None:
    alone = Backend("alone", Namespace(np), lacking(*OPERATORS), lambda leaf: leaf, np.asarray, None, None)
    with pytest.raises(Unsupported, match="no gradient here"):
        related(Setting(alone, SCALAR, 1, 0, known(SCALAR)))


def test_the_documented_contract_has_every_relation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-backend.md").read_text(encoding="utf-8")
    for relation, law in {**REQUIRED_RELATIONS, **OPTIONAL_RELATIONS}.items():
        assert f"* **{relation}**: {law}\n" in page
