"""`--variants`: the eager and the compiled form of a library are judged together, and where they differ is named."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adbench import tape
from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.catalog.source import Source
from adbench.execution.operators import on_device
from adbench.execution.operators.prepared_point import CasePoint, point
from adbench.findings.conform.judgement import truth_at
from adbench.findings.conform.places import Place
from adbench.findings.operations import OPERATIONS
from adbench.findings.variants.first_difference import FirstDifference, first_difference, script
from adbench.findings.variants.forms import FormResult, FormsOfCase, compared, with_both_forms
from adbench.findings.variants.forms_of_operations import compared_forms
from adbench.findings.variants.traced import numbers_of, traced
from adbench.functions.libraries import double_precision
from adbench.functions.user_function import function_case
from adbench.model.backend import Backend, from_module
from adbench.model.errors import Unsupported, UsageError
from adbench.model.namespace import Namespace
from adbench.model.record import Job, Record
from adbench.reports.text.terminal import forms_table
from tests.support.command import adbench


def backend(name: str) -> Backend:
    return from_module(name, load(resolve(backends=[name]).catalog.backends[name]))


def at_point(f: Callable[..., Any], *args: Any) -> CasePoint:
    return point(function_case(f, args), 1, 0)


def of_numpy(x: Any, y: Any) -> Any:
    z = np.sin(np.exp(x) * y)
    return np.sum(z * z) - y.sum() - (-2.0) ** 2


X, Y = np.array([0.5, 1.25]), np.array([0.75, -0.5])


def planted(wrong: Callable[[Any], Any]) -> FirstDifference:
    """The first difference of tape's eager form from one with a wrong sine."""
    eager = backend("tape")
    compiled = replace(eager, xp=Namespace(tape, sin=wrong))
    return first_difference(eager, compiled, at_point(of_numpy, X, Y), ("value", "vjp"), 60.0)


def test_the_first_operation_with_another_value_is_named() -> None:
    found = planted(lambda x: tape.sin(x) * (1 + 2.0**-50))
    assert (found.operator, found.ulp < 32) == ("value", True)
    assert "first differ in the value of v3 = sin(v2), operation 3 of" in str(found)


def test_the_first_operation_with_another_derivative_is_named_where_all_values_agree() -> None:
    found = planted(lambda x: tape.sin(x) + (x - tape.value_of(x)) * 1e-6)
    assert found.operator == "vjp"
    assert "first differ in the derivative of v3 = sin(v2)" in str(found)


def test_the_operation_in_which_a_difference_grows_is_named_too() -> None:
    def cancelling(x: Any) -> Any:
        return np.exp(x) - 1.0

    eager = backend("tape")
    compiled = replace(eager, xp=Namespace(tape, exp=lambda x: tape.exp(x) * (1 + 2.0**-30)))
    found = first_difference(eager, compiled, at_point(cancelling, 1e-6), ("value", "vjp"), 60.0)
    assert re.search(r"of v1 = exp\(x\).*; this grows to .* ulp at v2 = v1 - 1.0", str(found))


def test_forms_that_agree_and_a_search_without_time_name_no_operation() -> None:
    eager, at = backend("tape"), at_point(of_numpy, X, Y)
    with pytest.raises(Unsupported, match="agree bit for bit"):
        first_difference(eager, eager, at, ("value", "vjp"), 60.0)
    with pytest.raises(Unsupported, match="takes longer than 0 s"):
        first_difference(eager, eager, at, ("value",), 0.0)


def of_jax(x: Any, y: Any) -> Any:
    import jax

    return jax.numpy.sum(jax.nn.relu(x) * jax.numpy.where(y > 0, y, 2.0 * x)) + jax.nn.logsumexp(x)


def of_torch(x: Any, y: Any) -> Any:
    import torch

    return torch.logsumexp(torch.nn.functional.gelu(x) * torch.tensor([2.0, 3.0], dtype=x.dtype), 0) + y.max(0)[0]


@pytest.mark.parametrize(
    ("f", "name"), [(of_numpy, "tape"), (of_jax, "jax_eager"), pytest.param(of_torch, "torch", marks=pytest.mark.slow)]
)
def test_the_text_of_each_part_of_a_program_computes_the_same_as_the_part(f: Any, name: str) -> None:
    pytest.importorskip(name.partition("_")[0] if name != "tape" else "numpy")
    with double_precision():
        used, at = backend(name), at_point(f, X, Y)
        program = traced(used, at)
        leaves = numbers_of(used.native_inputs(at.args))
        assert len(program.ends) > 3
        for end in range(len(program.ends)):
            first = FirstDifference(program, "value", end, 1.0, end, 1.0)
            text = script(first, name.partition("_")[0], used, at)
            scope: dict[str, Any] = {}
            exec(text.partition("\nat = ")[0], scope)
            by_part = program.function(end, used.xp)(*used.native_inputs(at.args))
            np.testing.assert_array_equal(used.to_numpy(scope["f"](*leaves)), used.to_numpy(by_part))


def test_a_script_computes_both_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used, at = backend("tape"), at_point(of_numpy, X, Y)
    program = traced(used, at)
    last = len(program.ends) - 1
    text = script(FirstDifference(program, "vjp", last, 1.0, last, 1.0), "tape", used, at)
    with pytest.raises(SystemExit):
        exec(text, {})
    assert capsys.readouterr().out.startswith("result 0: ")
    assert "import adbench.findings" not in text


def test_on_a_device_both_forms_compute_there_and_so_does_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager, places = backend("tape"), []

    def loaded(source: Source, device: str, transfers: str) -> Backend:
        places.append((source.name, device))
        wrong = Namespace(tape, sin=lambda x: tape.sin(x) * (1 + 2.0**-30))
        return replace(eager, xp=wrong) if source.name == "tape_compiled" else eager

    def record(name: str, digits: float) -> Record:
        verdict: Any = SimpleNamespace(worst=SimpleNamespace(digits_correct=digits), value=None, ulp=None)
        return Record(Job("f", 1, f"{name} (cuda)", "value"), "ok", verdict=verdict)

    monkeypatch.setattr(on_device, "loaded", loaded)
    catalog = replace(resolve(backends=["tape*"]).catalog, cases={"f": function_case(of_numpy, (X, Y))})
    records = [record("tape", 15.0), record("tape_compiled", 9.0)]
    (found,) = compared(records, catalog, every=True, scripts=tmp_path)
    assert places == [("tape", "cuda"), ("tape_compiled", "cuda")]
    assert "first differ in the value of v3 = sin(v2)" in str(found.first)
    assert found.to_dict()["device"] == "cuda"
    assert "f by tape (cuda)" in forms_table.text([found], {}, width=200, colour=False)
    with double_precision():
        used, at = backend("jax_eager"), at_point(of_jax, X, Y)
        first = FirstDifference(traced(used, at), "value", 2, 1.0, 2, 1.0)
        assert '"jax_platforms", "cuda,cpu"' in script(first, "jax", used, at, "cuda")
        assert "cuda" not in script(first, "jax", used, at)


def forms(eager: float | None, compiled: float | None) -> FormsOfCase:
    pair = [FormResult("x", digits, None if digits is None else 3.0, "it refuses") for digits in (eager, compiled)]
    return FormsOfCase("f", 1, 0, "tape", {"value": (pair[0], pair[1])}, "first")


@pytest.mark.parametrize(
    ("eager", "compiled", "says"),
    [
        (6.9, 17.0, "compiled is closer (3 ulp), eager loses 9 digits of the value"),
        (15.0, 11.0, "eager is closer (3 ulp), compiled loses 4 digits of the value"),
        (15.0, 15.5, "both forms are equally close to the truth, to 0.5 digits"),
        (None, 15.0, "only compiled has a value: eager has none (it refuses)"),
        (None, None, "neither form has a result: it refuses"),
    ],
)
def test_a_sentence_says_which_form_is_closer(eager: float | None, compiled: float | None, says: str) -> None:
    found = forms(eager, compiled)
    assert found.sentence == found.to_dict()["sentence"] == says
    assert says in forms_table.text([found], {"tape": "1.0"}, width=200, colour=False)


def test_an_operation_of_which_one_form_loses_digits_is_found_among_those_that_agree() -> None:
    operation = OPERATIONS["exp"]
    truths = [truth_at(operation, Place((x,), None, "special")) for x in (0.5, 2.0)]
    right = [{"value": {"value": np.exp(x)}, "gradient": {"value": (np.exp(x),)}} for x in (0.5, 2.0)]
    wrong = [right[0], right[1] | {"gradient": {"value": (np.exp(2.0) * (1 + 1e-6),)}}]
    (found,) = compared_forms(truths, {"jax_eager": wrong, "jax": right, "torch": right}, None)
    assert (found.library, found.widest[0]) == ("jax", "gradient")
    assert "eager loses 10 digits of the gradient" in found.sentence
    assert "at x = 2.0" in str(found.first)


@pytest.mark.parametrize("name", ["autograd", "mygrad", "torch_func"])
def test_a_library_without_a_second_form_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} has no second form; choose from torch, jax, tape"):
        with_both_forms([name])
    assert with_both_forms(["jax", "autograd"], named=False) == ("jax_eager", "jax")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["check", "-b", "autograd", "--variants"], "no second form"),
        (["check", "--scripts", "x"], "--scripts needs --variants"),
        (["check", "-b", "jax", "--variants", "--device", "cpu,cuda"], "--variants computes on one device"),
        (["conform", "-b", "autograd", "--variants"], "no second form"),
        (["conform", "-b", "jax", "--scripts", "x"], "--scripts needs --variants"),
        (["conform", "-b", "jax", "--every-input", "--variants"], "--variants has no meaning with --every-input"),
    ],
)
def test_a_wrong_use_is_one_clear_line(words: list[str], says: str, tmp_path: Path) -> None:
    result = adbench(tmp_path, *words)
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert says in result.err
