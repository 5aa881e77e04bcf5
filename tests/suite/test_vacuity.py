"""An input whose derivative is negligible everywhere is said."""

from typing import Any

import numpy as np
import pytest

from adbench import Case, Job
from adbench.suite.catalog import Catalog, Source
from adbench.suite.vacuity import dead_inputs, warnings


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
    "drowned": lambda xp, x, b: xp.sum(x * x) + 1e-12 * b,
    "underflowed": lambda xp, x, b: xp.sum(x * x) + xp.exp(-800 * b),
    "a step": lambda xp, x, b: xp.sum(x * x) + xp.floor(b),
}


@pytest.mark.parametrize("name", DEAD)
@pytest.mark.parametrize("size", [1, 10])
def test_an_input_that_does_nothing_is_said(name: str, size: int) -> None:
    (sentence,) = dead_inputs(case(DEAD[name]), size)
    assert sentence.startswith(f"input b does nothing at size {size}: ")


def test_inputs_that_do_something_are_alive() -> None:
    assert dead_inputs(case(lambda xp, x, b: xp.sum(x * x) * b), 10) == []
    # small beside the value, and still nine digits of it
    assert dead_inputs(case(lambda xp, x, b: xp.sum(x * x) + 1e-6 * b), 10) == []


def test_outputs_count_one_by_one() -> None:
    alive = case(lambda xp, x, b: xp.concat([x, 0.5 * b + x[:1]]), operators=("value", "jacobian"))
    assert dead_inputs(alive, 10) == []
    dead = case(lambda xp, x, b: xp.concat([x, x[:1]]), operators=("value", "jacobian"))
    assert len(dead_inputs(dead, 10)) == 1


def test_a_leaf_of_a_nested_input_is_named() -> None:
    nested = Case(
        f=lambda xp, p: xp.sum(p["w"]),
        inputs=lambda n, rng: {"p": {"w": rng.uniform(1, 2, n), "b": 1.5}},
        wrt=("p",),
        sizes=(3,),
    )
    (sentence,) = dead_inputs(nested, 3)
    assert sentence.startswith("input p['b'] does nothing")


def test_a_value_that_is_not_finite_is_said() -> None:
    assert dead_inputs(case(lambda xp, x, b: xp.sum(x) / (0 * b)), 1) == ["the value at size 1 is inf"]


def test_a_users_cases_are_warned_about_and_what_does_not_run_on_numpy_is_left_alone() -> None:
    cases = {
        "mine": case(DEAD["not used"]),
        "ours": case(DEAD["not used"]),
        "other": case(lambda xp, x, b: xp.no_such(x)),
    }
    sources = {name: Source("cases", name, f"{name}.py", builtin=name == "ours") for name in cases}
    jobs = [Job(name, n, "tape", "value") for name in cases for n in (1, 10)]
    (line,) = warnings(Catalog(cases, sources), jobs, 0)
    assert line.startswith("mine: input b does nothing at size 1")
    assert np.isfinite(float(line.partition("moves by ")[2].split()[0]))
