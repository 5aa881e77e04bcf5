"""Functions of float64 numbers that compute in a lower type on the way: its tolerance counts, and a note names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench
from adbench.functions.low_precision import lowest_inside
from adbench.oracle.evidence import PRECISIONS

X = np.array([0.3, 1.7])


@jax.jit
def half_inside(x: Any) -> Any:
    return jnp.sin(x.astype(jnp.float16)).astype(jnp.float64)


def into_a_buffer(x: Any) -> Any:
    buffer = torch.zeros(2, dtype=torch.float32)
    buffer[0], buffer[1] = x[0], x[1] ** 2
    return buffer.double().sum()


LOW: dict[str, tuple[Callable[[Any], Any], str]] = {
    "jax, on the way": (lambda x: jnp.sum(jnp.sin(x.astype(jnp.float32)).astype(jnp.float64)), "float32"),
    "jax, at the end": (lambda x: jnp.sum(jnp.sin(x)).astype(jnp.float32), "float32"),
    "jax, bfloat16": (lambda x: jnp.sum(jnp.sin(x.astype(jnp.bfloat16)).astype(jnp.float64)), "bfloat16"),
    "jax, the lowest of two": (lambda x: jnp.sum(x.astype(jnp.float32).astype(jnp.bfloat16)), "bfloat16"),
    "jax, in a jitted call": (lambda x: jnp.sum(half_inside(x) * x), "float16"),
    "jax, in a loop": (
        lambda x: jax.lax.scan(lambda c, y: (c * y.astype(jnp.float16).astype(float), None), 1.0, x)[0], "float16"),
    "torch, on the way": (lambda x: torch.sin(x.to(torch.float32)).double().sum(), "float32"),
    "torch, at the end": (lambda x: torch.sin(x).sum().float(), "float32"),
    "torch, bfloat16 and float": (lambda x: torch.sin(x.bfloat16()).sum().float(), "bfloat16"),
    "torch, half": (lambda x: torch.sin(x.half()).sum(), "float16"),
    "torch, into a buffer": (into_a_buffer, "float32"),
    "torch, with weights": (
        lambda x: torch.nn.functional.linear(x.float(), torch.ones(2, 2, dtype=torch.float32)).sum(), "float32"),
    "autograd, on the way": (lambda x: anp.sum(anp.sin(x.astype(np.float32)).astype(np.float64)), "float32"),
    "autograd, at the end": (lambda x: anp.sum(anp.sin(x.astype(np.float32))), "float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOW)
def test_a_right_derivative_is_right_by_the_lowest_type_on_the_way(name: str) -> None:
    f, low = LOW[name]
    found = adbench.check(f, X, modes="all", points=2)
    assert {row.verdict.word for row in (*found.rows, *found.values) if row.verdict} <= {"right", "verified", "blind"}
    assert adbench.check(f, X).word == "right"
    assert found.proved
    note = next(note for note in found.notes if "on the way" in note)
    assert note.startswith(f"computes in {low} on the way (test_low_precision.py, line ")
    assert note.endswith(f"judged with {low}'s tolerance")


CONSTANT: dict[str, Callable[[Any], Any]] = {
    "jax": lambda x: jnp.sum(x * jnp.array([0.1, 0.2], dtype=jnp.float32) + jnp.zeros(2, jnp.bfloat16)),
    "torch": lambda x: (x * torch.tensor([0.1, 0.2], dtype=torch.float32)).sum() + torch.zeros(2).half().sum(),
    "numpy": lambda x: np.sum(np.sin(x) * np.float32(0.1) + np.array([0.1, 0.2], dtype=np.float32)),
    "a count": lambda x: jnp.sum(x) * jnp.sum(x > 1).astype(jnp.float32),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_low_types_that_hold_only_constants_change_no_tolerance(name: str) -> None:
    found = adbench.check(CONSTANT[name], X)
    assert (found.word, found.notes) == ("right", ())
    assert found.digits > 12


def sine(low: Any, factor: float) -> Callable[[Any], Any]:
    """A sum of sines computed in this type, with a rule for its derivative that is wrong by a factor."""
    if isinstance(low, torch.dtype):

        class Sine(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return torch.sin(x.to(low)).double()

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return factor * g * torch.cos(ctx.saved_tensors[0])

        return lambda x: Sine.apply(x).sum()

    @jax.custom_vjp
    def rule(x: Any) -> Any:
        return jnp.sin(x.astype(low)).astype(jnp.float64)

    rule.defvjp(lambda x: (rule(x), x), lambda x, g: (factor * g * jnp.cos(x),))
    return lambda x: jnp.sum(rule(x))


@pytest.mark.parametrize(
    ("low", "factor"),
    [(jnp.float32, 1.0001), (jnp.float16, 1.1), (jnp.bfloat16, 1.5), (jnp.bfloat16, -1.0), (jnp.bfloat16, 0.0),
     (torch.float32, 1.0001), (torch.float16, 1.1), (torch.bfloat16, 1.5), (torch.bfloat16, -1.0)],
)  # fmt: skip
def test_a_wrong_formula_is_wrong_in_every_type(low: Any, factor: float) -> None:
    assert adbench.check(sine(low, 1.0), X).word == "right"
    assert adbench.check(sine(low, factor), X).is_wrong


@pytest.mark.parametrize(
    ("kind", "factor", "word"), [("float32", 1, "right"), ("float32", 2, "wrong"), ("float64", 1, "right")]
)
def test_autocast_sets_the_tolerance_of_arguments_that_it_lowers(kind: str, factor: int, word: str) -> None:
    class Scaled(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        forward = staticmethod(lambda ctx, x: 1 * x)
        backward = staticmethod(lambda ctx, w: factor * w)

    def mixed(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return torch.tanh(torch.outer(Scaled.apply(x), x) @ x).float().sum()

    found = adbench.check(mixed, torch.tensor(X, dtype=getattr(torch, kind)))
    assert found.word in (word, "verified" if word == "right" else word), found
    assert any("bfloat16 on the way" in note for note in found.notes) == (kind == "float32")


def test_a_low_type_without_a_translation_is_never_wrong() -> None:
    """Differences of values in bfloat16 are 0 or far off."""

    def branches(x: Any) -> Any:  # jax cannot trace it
        return jnp.sum(jnp.sin(x.astype(jnp.bfloat16))) if x[0] > 0 else jnp.sum(x)

    found = adbench.check(branches, X)
    assert (found.word, found.backend) == ("blind", "jax_eager")
    assert "differences of its values in bfloat16 resolve nothing" in found.reason
    assert "computes in bfloat16 on the way: judged with bfloat16's tolerance" in found.notes


def test_the_unit_roundoff_is_that_of_the_type() -> None:
    for name, digits in {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}.items():
        assert PRECISIONS[name].unit == 2.0**-digits
        info = jnp.finfo(name)
        assert PRECISIONS[name].unit == float(info.eps) / 2
        assert (PRECISIONS[name].smallest, PRECISIONS[name].largest) == (float(info.smallest_normal), float(info.max))


def test_the_watch_sees_only_numbers_that_depend_on_the_inputs() -> None:
    seen = lowest_inside("torch", lambda leaves: leaves[0] * torch.ones(2).half().sum(), [X])
    assert seen is None
    seen = lowest_inside("numpy", lambda leaves: leaves[0].astype(np.float16).sum(), [X])
    assert seen is not None
    assert seen.name == "float16"
