"""Custom rules in each library: correct ones pass in every mode, wrong ones are found."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from itertools import product, starmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adbench
from adbench import tape
from tests.functions import custom_rules
from tests.functions.custom_rules import SLOPES
from tests.support.command import adbench as command
from tests.support.marks import one_in

X = np.array([0.3, 1.2])
Rule = Callable[[custom_rules.Slope], Callable[[Any], Any]]

ONE_MODE: dict[str, Rule] = {
    "torch": custom_rules.torch_function,
    "autograd": custom_rules.autograd_vjp,
    "tape": custom_rules.tape_reverse_only,
    "jax": custom_rules.jax_custom_vjp,
}
BOTH_MODES: dict[str, Rule] = {
    "torch": custom_rules.torch_function_of_both_modes,
    "autograd": custom_rules.autograd_of_both_modes,
    "tape": custom_rules.tape_function_gradients,
    "jax": custom_rules.jax_custom_jvp,
}
MODES = ("gradient", "jvp", "hvp_forward_over_reverse", "hvp_reverse_over_reverse", "hvp_reverse_over_forward")
REFUSALS = {
    "torch": "implement the jvp",
    "autograd": "JVP of softplus .* not defined",
    "tape": "has no derivative in argument 0 in forward mode",
    "jax": "custom_vjp|custom_lin",
}


@pytest.fixture(autouse=True)
def _no_warnings_of_libraries() -> Iterator[None]:
    """autograd warns if a result does not depend on an input, numpy for planted 0 / 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("library", BOTH_MODES)
def test_a_correct_rule_is_correct_in_each_of_its_modes(library: str) -> None:
    points = 1 if library == "jax" else 3  # it compiles each mode at each point
    found = adbench.check(BOTH_MODES[library](SLOPES["right"]), X, modes=MODES, points=points)
    assert found.word == "right", found
    assert found.proved
    assert not found.lacking
    assert len(found.rows) == points * len(MODES)


@pytest.mark.parametrize("library", ONE_MODE)
def test_a_mode_that_a_rule_lacks_is_listed_with_the_reason(library: str) -> None:
    found = adbench.check(ONE_MODE[library](SLOPES["right"]), X, modes=MODES)
    assert found.word == "right", found
    lacking = {row.mode: row.reason for row in found.lacking}
    assert {"jvp", "hvp_reverse_over_forward"} <= set(lacking)
    assert re.search(REFUSALS[library], lacking["hvp_reverse_over_forward"])
    assert {"gradient", "hvp_reverse_over_reverse"} <= {row.mode for row in found.rows if row.verdict}


@pytest.mark.parametrize("library", ONE_MODE)
@pytest.mark.parametrize("rules", [ONE_MODE, BOTH_MODES], ids=["one mode", "both modes"])
def test_a_rule_that_is_wrong_in_first_order_is_found(library: str, rules: dict[str, Rule]) -> None:
    found = adbench.check(rules[library](SLOPES["wrong in first order"]), X)
    assert found.is_wrong, found
    assert found.proved
    assert found.worst.place == "x[1]"


@pytest.mark.parametrize("library", ONE_MODE)
@pytest.mark.parametrize("rules", [ONE_MODE, BOTH_MODES], ids=["one mode", "both modes"])
def test_a_rule_that_is_wrong_only_in_second_order_is_found(library: str, rules: dict[str, Rule]) -> None:
    modes = ("gradient", "hvp_reverse_over_reverse")
    found = adbench.check(rules[library](SLOPES["wrong in second order"]), X, modes=modes)
    assert {row.mode: row.verdict.word for row in found.rows if row.verdict} == dict(
        zip(modes, ("right", "wrong"), strict=True)
    )


@pytest.mark.parametrize("library", ONE_MODE)
def test_a_rule_that_is_wrong_only_at_zero_is_found_with_several_points(library: str) -> None:
    f = ONE_MODE[library](SLOPES["wrong at zero"])
    assert adbench.check(f, X).word == "right"
    found = adbench.check(f, X, points=3)
    assert found.is_wrong
    assert found.deciding.point == "zero entries"


def test_a_rule_that_raises_is_wrong_even_if_another_mode_is_correct() -> None:
    def backward(value: Any, adjoint: Any, x: Any) -> Any:
        raise ValueError("planted")

    square = tape.function_gradients(
        lambda x: x * x, reverse=(backward,), forward=(lambda value, tangent, x: tangent * 2.0 * x,)
    )
    found = adbench.check(lambda x: tape.sum(square(x)), X, modes=("gradient", "jvp"))
    assert found.is_wrong
    assert "the gradient raises ValueError: planted" in found.sentence
    assert str(found).startswith("✗ wrong: 1 of 2")
    with pytest.raises(adbench.WrongGradient, match="planted"):
        adbench.assert_gradients(lambda x: tape.sum(square(x)), X, modes="all")


def test_a_backward_without_second_derivative_is_reported() -> None:
    """torch counts the second derivative of such a function as 0 if nothing else depends on it."""
    import torch

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, w: Any) -> Any:
            (x,) = ctx.saved_tensors
            return w * 3 * x**2

    found = adbench.check(lambda x: torch.sum(Cube.apply(x)), X, modes=("gradient", "hvp_reverse_over_reverse"))
    assert found.word == "right", found
    assert [row.reason for row in found.lacking] == ["the backward of Cube is marked once_differentiable"]


@pytest.mark.parametrize(
    ("mode", "detaches"), one_in(4, starmap(pytest.param, product(["hvp", "hessian"], [True, False])))
)
def test_an_old_style_function_of_torch_is_checked_by_double_backward(
    mode: Any, detaches: bool, tmp_path: Path
) -> None:
    """torch.func refuses a function whose `forward` takes the context; autograd does not."""
    (tmp_path / "old_style.py").write_text(OLD_STYLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        f = getattr(importlib.import_module("old_style"), "detaching" if detaches else "recorded")
    found = adbench.check(f, X, modes=mode)
    assert (found.word, found.proved) == ("wrong" if detaches else "right", True), found
    assert found.deciding.how == "from hvp_reverse_over_reverse"
    in_all = adbench.check(f, X, modes="all")
    assert {row.verdict.word for row in in_all.rows if row.verdict and row.mode.startswith("h")} == {found.word}
    done = command(
        tmp_path, "check", "--function", f"old_style.py:{f.__name__}", "--at", "[0.3, 2]", "--operator", mode
    )
    assert found.title.partition(" by ")[0] in done.out, done.out


OLD_STYLE = """
import torch
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**3).sum()
    @staticmethod
    def backward(ctx, w):
        return w * 3 * ctx.saved_tensors[0] ** 2
class Detaching(Cube):
    @staticmethod
    def backward(ctx, w):
        return w * 3 * ctx.saved_tensors[0].detach() ** 2
def recorded(x): return Cube.apply(x)
def detaching(x): return Detaching.apply(x)
"""


def test_a_custom_rule_for_reverse_mode_has_a_hessian_by_columns() -> None:
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def cube(x: Any) -> Any:
        return jnp.sum(x**3)

    cube.defvjp(lambda x: (cube(x), x), lambda x, w: (w * 3 * x**2,))
    found = adbench.check(cube, X, modes="hessian")
    assert (found.word, found.deciding.how) == ("right", "from hvp")


def test_a_rule_that_is_not_linear_in_the_vector_is_found() -> None:
    """jvp is correct only for vectors of positive numbers."""
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def softplus(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    softplus.defjvps(lambda v, value, x: jnp.abs(v) / (1 + jnp.exp(-x)))
    assert adbench.check(lambda x: jnp.sum(softplus(x)), X, modes="jvp", points=2).is_wrong


def test_a_translation_without_a_value_passes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_value(flat: Any, examples: Any) -> Any:
        return lambda xp, x: xp.sum(x) * float("nan")

    monkeypatch.setattr("adbench.functions.from_numpy.numpy_calls.numpy_text", no_value)
    found = adbench.check(custom_rules.tape_reverse_only(SLOPES["wrong in first order"]), X)
    assert found.is_wrong, found
    assert "its translation has no value here" in found.reason
