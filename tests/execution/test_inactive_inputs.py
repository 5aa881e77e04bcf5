"""adbench reports an input whose derivative is negligible everywhere."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from adbench import Case
from adbench.catalog.discovery import Catalog
from adbench.catalog.source import Source
from adbench.cli import cli
from adbench.execution.planning.inactive_inputs import inactive_inputs, of_own_cases


def case(f: Any, **more: Any) -> Case:
    return Case(
        f=f,
        inputs=lambda n, rng: {"x": rng.uniform(1, 2, n), "b": rng.uniform(1, 2)},
        wrt=("x", "b"),
        sizes=(1, 10),
        **more,
    )


DEAD = {
    "not used": lambda xp, x, b: xp.sum(x * x),
    "times zero": lambda xp, x, b: xp.sum(x * x) + 0 * b,
    "underflowed": lambda xp, x, b: xp.sum(x * x) + xp.exp(-800 * b),
    "a step": lambda xp, x, b: xp.sum(x * x) + xp.floor(b),
}


@pytest.mark.parametrize("name", DEAD)
@pytest.mark.parametrize("size", [1, 10])
def test_an_input_that_does_nothing_is_said(name: str, size: int) -> None:
    (sentence,) = inactive_inputs(case(DEAD[name]), size)
    assert sentence.startswith(f"input b does nothing at size {size}: ")


def test_inputs_that_do_something_are_alive() -> None:
    assert inactive_inputs(case(lambda xp, x, b: xp.sum(x * x) * b), 10) == []
    # small beside the value, and still nine digits of it
    assert inactive_inputs(case(lambda xp, x, b: xp.sum(x * x) + 1e-6 * b), 10) == []


@pytest.mark.parametrize(
    ("text", "x"),
    [
        (lambda xp, x: xp.exp(x / 2), 5e-324),
        (lambda xp, x: xp.tanh(x), 20.0),
        (lambda xp, x: 1 + 1e-12 * x, 1.0),
        (lambda xp, x: xp.where(x > 1e6, x, 2 * x) + 1e30, 1.0),
    ],
)
def test_an_input_with_a_derivative_is_alive_however_little_the_value_moves(text: Any, x: float) -> None:
    alone = Case(f=text, inputs=lambda n, rng: {"x": x}, wrt=("x",), sizes=(1,))
    assert inactive_inputs(alone, 1) == []


def test_outputs_count_one_by_one() -> None:
    alive = case(lambda xp, x, b: xp.concat([x, 0.5 * b + x[:1]]), operators=("value", "jacobian"))
    assert inactive_inputs(alive, 10) == []
    dead = case(lambda xp, x, b: xp.concat([x, x[:1]]), operators=("value", "jacobian"))
    assert len(inactive_inputs(dead, 10)) == 1


def test_a_leaf_of_a_nested_input_is_named() -> None:
    nested = Case(
        f=lambda xp, p: xp.sum(p["w"]),
        inputs=lambda n, rng: {"p": {"w": rng.uniform(1, 2, n), "b": 1.5}},
        wrt=("p",),
        sizes=(3,),
    )
    (sentence,) = inactive_inputs(nested, 3)
    assert sentence.startswith("input p['b'] does nothing")


def test_a_value_that_is_not_finite_is_said() -> None:
    assert inactive_inputs(case(lambda xp, x, b: xp.sum(x) / (0 * b)), 1) == ["the value at size 1 is inf"]


def catalog_of(**cases: Case) -> Catalog:
    return Catalog(cases, {name: Source("cases", name, f"{name}.py", builtin=name == "ours") for name in cases})


def test_a_users_cases_are_remarked_upon_and_what_does_not_run_on_numpy_is_left_alone() -> None:
    cases = {
        "mine": case(DEAD["not used"]),
        "ours": case(DEAD["not used"]),
        "other": case(lambda xp, x, b: xp.no_such(x)),
    }
    first, second = of_own_cases(catalog_of(**cases), dict.fromkeys(cases, (10, 1)), 0)
    assert first.inactive
    assert second.inactive
    assert first.text.startswith("mine: input b does nothing at size 1: ")
    assert second.text.startswith("mine: input b does nothing at size 10: ")
    assert "size 1: the value does not change, so a wrong derivative would go unnoticed" in first.text


def test_an_input_that_is_dead_at_the_largest_size_only_is_found() -> None:
    fades = case(lambda xp, x, b: xp.sum(x * x) + b * (x.shape[0] < 10))
    (remark,) = of_own_cases(catalog_of(mine=fades), {"mine": fades.sizes}, 0)
    assert remark.text.startswith("mine: input b does nothing at size 10: ")


def test_a_case_that_takes_too_long_says_where_nobody_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adbench.execution.planning.inactive_inputs.MOST_SECONDS", 0.0)
    (remark,) = of_own_cases(catalog_of(mine=case(lambda xp, x, b: b * xp.sum(x))), {"mine": (1, 10)}, 0)
    assert not remark.inactive
    assert remark.text.startswith("mine: inputs that do nothing were searched only below size 1:")


OWN = """
from adbench import Case

def fades(xp, x, b):
    return xp.sum(x * x) + b * (x.shape[0] < 10)

CASE = Case(
    f=fades,
    inputs=lambda n, rng: {"x": rng.uniform(1, 2, n), "b": rng.uniform(1, 2)},
    wrt=("x", "b"),
    sizes=(1, 2, 3, 4, 10),
    quick=(1,),
)
"""


@pytest.mark.slow
def test_a_check_looks_at_every_size_that_a_run_times_and_fails(tmp_path: Path) -> None:
    """No checked size is dead, but one size of a run is."""
    (tmp_path / "fading.py").write_text(OWN, encoding="utf-8")
    asked = ["check", "-c", str(tmp_path / "fading.py"), "-b", "tape", "--operator", "gradient"]
    found = CliRunner().invoke(cli, asked)
    assert found.exit_code == 1
    assert "adbench: dead input: fading: input b does nothing at size 10: " in found.output
    at_one = CliRunner().invoke(cli, [*asked, "-n", "1"])
    assert at_one.exit_code == 0
    assert "dead input" not in at_one.output


@pytest.mark.slow
def test_a_function_that_happens_to_be_flat_where_it_is_checked_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flat_here.py").write_text("def f(xp, x):\n    return xp.maximum(x, 0.0)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(cli, ["check", "--function", "flat_here:f", "--at", "-1.0", "--operator", "gradient"])
    assert found.exit_code == 0, found.output
    assert "adbench: warning: " in found.output
    assert "does nothing" in found.output
