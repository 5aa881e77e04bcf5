"""H v by all four compositions of a library's modes: correct if it nests them, else a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import Case, Unsupported, tape
from adbench.catalog.discovery import catalog, load
from adbench.execution.known_faults import KnownFaults
from adbench.execution.operators import compositions
from adbench.execution.operators.fallback import prepare
from adbench.execution.operators.prepared_point import examined, point
from adbench.execution.operators.references import known_at
from adbench.execution.phases.check_phase import _as_known
from adbench.model import tree
from adbench.model.backend import Backend, KnownBug, from_module, known_bug
from adbench.model.case import function_of
from adbench.model.errors import BadFile
from adbench.model.operator import BATCH, COMPOSITIONS, EVERY_OPERATOR, OPERATORS, Operator
from adbench.model.record import Job, Record
from adbench.oracle.verdict import Verdict
from tests.backends.loaded import backend
from tests.support.files import RIGHT, write

FORWARD_FIRST: tuple[Operator, ...] = ("hvp_forward_over_forward", "hvp_reverse_over_forward")


def f(xp: Any, x: Any, b: Any, c: Any) -> Any:
    """Σ c sin x · b³ + x₀ Σ w, of an array, an inactive number, and a nested input."""
    return xp.sum(xp.sin(x) * c["c"]) * c["b"] ** 3 + x[0] * xp.sum(c["w"]) * b


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "x": rng.normal(size=n),
        "b": 0.75,
        "c": {"b": 0.5, "c": rng.uniform(1, 2, n), "w": rng.normal(size=(2, 2))},
    },
    wrt=("c", "x"),
    sizes=(3,),
    name="nested",
)


def second(x: Any, b: Any, c: Any, v: tuple[Any, Any]) -> tuple[Any, Any]:
    """H v by hand."""
    by_c, by_x = v
    cubed, slope, curve = c["b"] ** 3, 3 * c["b"] ** 2, 6 * c["b"]
    along = np.sum(np.cos(x) * by_x * c["c"]) + np.sum(np.sin(x) * by_c["c"])
    first = np.zeros(3)
    first[0] = np.sum(by_c["w"]) * b
    return (
        {
            "b": curve * by_c["b"] * np.sum(np.sin(x) * c["c"]) + slope * along,
            "c": np.cos(x) * by_x * cubed + np.sin(x) * slope * by_c["b"],
            "w": np.full((2, 2), by_x[0] * b),
        },
        (-np.sin(x) * by_x * c["c"] + np.cos(x) * by_c["c"]) * cubed + np.cos(x) * c["c"] * slope * by_c["b"] + first,
    )


def composed(used: Backend, composition: Operator, case: Case = CASE) -> tuple[Any, Verdict]:
    """H v, called twice, with its verdict."""
    at = point(case, case.sizes[0], 0)
    elsewhere, native = at.native(used, composition)
    made = prepare(used, composition, used.function(case, at.names, 3), elsewhere, at.wrt)
    assert made.how == "native"
    made.call(*native)
    result = used.numpy_result(made.call(*native))
    return result, examined(at, composition, result, known_at(at, second_order=True, seconds=5.0), None)[0]


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("name", ["autograd", "jax", "tape", "torch"])
def test_every_composition_is_the_closed_form_in_the_structure_of_the_inputs(name: str, composition: Operator) -> None:
    if (name, composition) == ("torch", "hvp_forward_over_forward"):
        with pytest.raises(Unsupported, match="torch's dual tensors cannot be nested"):
            composed(backend(name), composition)
        return
    result, verdict = composed(backend(name), composition)
    at = point(CASE, 3, 0)
    expected = second(*at.args, at.direction(0))
    assert list(result[0]) == ["b", "c", "w"]
    for got, right in zip(tree.leaves(result), tree.leaves(expected), strict=True):
        assert np.shape(got) == np.shape(right)
        np.testing.assert_allclose(got, right, rtol=1e-13, atol=1e-15)
    assert verdict.word == "right"


def test_a_tangent_treated_as_constant_shows_if_it_is_the_inner_one() -> None:
    right = backend("tape")
    wrong = replace(right, nested={**right.nested, "jvp": detached_inside})
    words = {composition: composed(wrong, composition)[1].word for composition in COMPOSITIONS}
    assert words == {name: "wrong" if name in FORWARD_FIRST else "right" for name in COMPOSITIONS}


def detached_inside(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """J v, constant for an outer derivative."""
    found = tape.jvp(g, x, v)[1]
    while isinstance(found, tape.Scalar) or hasattr(found, "val"):
        found = found.val
    return found


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_modes_that_do_not_nest_are_unsupported_with_the_reason(composition: Operator) -> None:
    tape_only = backend("tape")
    at = point(CASE, 3, 0)
    args = (*at.args, at.direction(0))
    plain = function_of(CASE, at.names, tape_only.xp)
    with pytest.raises(Unsupported, match="a difference of differences"):
        prepare(backend("finite_differences"), composition, plain, args, at.wrt)
    silent = replace(tape_only, nested={}, not_nested="a gradient is a plain array")
    with pytest.raises(Unsupported, match=r"^a gradient is a plain array$"):
        prepare(silent, composition, plain, args, at.wrt)
    one = replace(tape_only, nested={"jvp": tape_only.nested["jvp"]}, name="one")
    if composition == "hvp_forward_over_forward":
        assert composed(one, composition)[1].word == "right"
    else:
        with pytest.raises(Unsupported, match=r"^one has no nestable vjp in NESTED$"):
            prepare(one, composition, plain, args, at.wrt)


def test_forward_over_forward_has_a_limit_on_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compositions, "MOST_PASSES", 7)
    with pytest.raises(Unsupported, match="forward over forward would run 11 times"):
        composed(backend("tape"), "hvp_forward_over_forward")


def test_a_case_without_entries_has_an_empty_product() -> None:
    empty = Case(
        f=lambda xp, x: xp.sum(x), inputs=lambda n, rng: {"x": np.zeros(0)}, wrt=("x",), sizes=(3,), name="empty"
    )
    for composition in COMPOSITIONS:
        (result,), _ = composed(backend("tape"), composition, empty)
        assert result.shape == (0,)


def test_an_array_valued_function_has_no_compositions() -> None:
    array = replace(CASE, operators=("value", "jacobian"))
    assert not {*COMPOSITIONS} & {*array.possible_operators}
    assert {*COMPOSITIONS} < {*CASE.possible_operators}
    with pytest.raises(Unsupported, match="an array-valued function has no hvp_reverse_over_reverse"):
        composed(backend("tape"), "hvp_reverse_over_reverse", array)


def test_prepare_is_never_asked_for_a_composition() -> None:
    assert (*OPERATORS, BATCH, *COMPOSITIONS) == EVERY_OPERATOR
    asked: list[str] = []
    right = backend("tape")

    def noted(operator: Operator, *rest: Any) -> Any:
        asked.append(operator)
        return right.prepare(operator, *rest)

    for composition in COMPOSITIONS:
        composed(replace(right, prepare=noted), composition)
    assert asked == ["value"] * len(COMPOSITIONS)


def loaded(folder: Path, text: str) -> Backend:
    return from_module("mine", load(catalog(backend_paths=[write(folder, mine=text)]).backends["mine"]))


def test_a_file_lists_its_nesting_modes_or_gives_the_reason(tmp_path: Path) -> None:
    assert loaded(tmp_path / "a", RIGHT).nested == {}
    assert list(loaded(tmp_path / "b", RIGHT + "\nNESTED = {'jvp': len}\n").nested) == ["jvp"]
    assert loaded(tmp_path / "c", RIGHT + "\nNESTED = 'numbers only'\n").not_nested == "numbers only"
    for k, value in enumerate(["3", "{'hvp': len}", "{'jvp': 1}"]):
        with pytest.raises(BadFile, match="NESTED must be a dict with functions for 'jvp' and 'vjp'"):
            loaded(tmp_path / str(k), RIGHT + f"\nNESTED = {value}\n")


def test_with_a_declared_gradient_a_composition_is_blind() -> None:
    at = point(catalog().cases["trap_stop_gradient"], 1, 0)
    known = known_at(at, second_order=True, seconds=1.0)
    assert {examined(at, operator, (1.0,), known, None)[0].word for operator in COMPOSITIONS} == {"blind"}


KNOWN = (
    KnownBug("a", (), "nan", "always", ""),
    KnownBug("a", ("hvp", "hvp_reverse_*"), "0", "twice", ""),
    KnownBug("b", ("hessian",), "raises", "there", ""),
)


@pytest.mark.parametrize(
    ("case", "operator", "reason", "is_certain"),
    [
        ("a", "gradient", "nan: always", True),
        ("a", "hessian", "nan: always", False),
        ("a", "hvp", "0: twice", True),
        ("a", "hvp_reverse_over_forward", "0: twice", False),
        ("a", "hvp_forward_over_forward", "nan: always", False),
        ("b", "hessian", "raises: there", True),
    ],
)
def test_a_known_fault_covers_a_case_or_some_operators(
    case: str, operator: str, reason: str, *, is_certain: bool
) -> None:
    found = known_bug(KNOWN, case, operator)
    assert found is not None
    assert (found.text, found.is_certain(operator)) == (reason, is_certain)


def test_a_known_fault_of_second_order_does_not_excuse_a_wrong_gradient() -> None:
    assert known_bug(KNOWN, "b", "gradient") is None
    assert known_bug(KNOWN, "c", "hessian") is None
    case, known = replace(CASE, sizes=(1,)), KnownFaults(KNOWN)

    def status(operator: str, word: str, device: str = "cpu") -> str:
        verdict = Verdict(word, "", None, None, 1, 0, 0, 0, "", "")  # type: ignore[arg-type]
        record = Record(Job("b", 1, "some", operator), "wrong" if word == "wrong" else "ok", "off", verdict)
        return _as_known(record, known, case, "float64", device).status

    assert status("gradient", "wrong") == "wrong"
    assert status("hessian", "wrong") == "known"
    assert status("hessian", "right") == "surprise"
    assert status("hessian", "wrong", "cuda") == "known"
    assert status("hessian", "right", "cuda") == "ok"  # it was seen on the CPU
    assert status("hessian", "blind") == "ok"
    assert status("hvp", "right") == "ok"
