"""A user's rule that keeps results, by a part of its inputs or by their identity, is wrong with `modes="all"`."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench

X = np.array([0.3, 1.2, 0.7])
Slope = Callable[[Any], Any]


def kept(key: Callable[[Any], Any]) -> Slope:
    """3 x², kept by a part of x."""
    found: dict[Any, Any] = {}

    def slope(x: Any) -> Any:
        x = np.asarray(x)
        return found.setdefault(key(x), 3 * x * x)

    return slope


def by_jax(slope: Slope) -> Callable[..., Any]:
    @jax.custom_vjp
    def cubes(x: Any) -> Any:
        return jnp.sum(x**3)

    def backward(x: Any, g: Any) -> Any:
        return (g * jax.pure_callback(slope, jax.ShapeDtypeStruct(x.shape, x.dtype), x),)

    cubes.defvjp(lambda x: (jnp.sum(x**3), x), backward)
    return cubes


def by_torch(slope: Slope) -> Callable[..., Any]:
    class Cubes(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x**3).sum()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * torch.as_tensor(slope(x.detach().numpy()))

    return lambda x: Cubes.apply(x)


KEYS: dict[str, Callable[[Any], Any]] = {
    "the first entry": lambda x: float(x[0]),
    "the last entry": lambda x: float(x[-1]),
    "the shape": lambda x: x.shape,
    "all entries but the second": lambda x: (float(x[0]), float(x[2])),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("library", [by_jax, by_torch])
def test_a_rule_that_keeps_results_by_a_part_of_its_inputs_is_found(library: Any, key: str) -> None:
    x = torch.tensor(X) if library is by_torch else X
    assert adbench.check(library(kept(KEYS[key])), x).is_right  # one call has no other result
    found = adbench.check(library(kept(KEYS[key])), x, modes="all")
    assert found.is_wrong, found
    assert found.deciding.mode == "relations"
    assert "gradient" in found.sentence


@pytest.mark.parametrize("library", [by_jax, by_torch])
def test_a_rule_that_keeps_results_by_all_of_its_inputs_is_right(library: Any) -> None:
    x = torch.tensor(X) if library is by_torch else X
    found = adbench.check(library(kept(lambda x: x.tobytes())), x, modes="all")
    assert not found.is_wrong, found
    assert any(note.endswith("relations between calls hold") for note in found.notes)


def test_a_value_that_is_kept_by_its_first_entry_is_found() -> None:
    @functools.cache
    def of_first(first: float, size: int) -> float:
        return float((latest[0] ** 3).sum())

    latest = [X]

    def value(x: Any) -> Any:
        latest[0] = np.asarray(x)
        return np.asarray(of_first(float(x[0]), x.size))

    @jax.custom_jvp
    def cubes(x: Any) -> Any:
        return jax.pure_callback(value, jax.ShapeDtypeStruct((), x.dtype), x)

    cubes.defjvp(lambda p, t: (cubes(*p), jnp.sum(3 * p[0] ** 2 * t[0])))
    found = adbench.check(cubes, X, modes="all")
    assert found.is_wrong, found


@pytest.mark.parametrize(
    "f",
    [
        lambda xp, x, y: xp.sum(xp.abs(x - y)) + xp.max(x * y),
        lambda xp, x, y: xp.sum(x) * xp.sum(y),
        lambda xp, x, y: xp.sum(xp.where(x > y, x * x, y)),
        lambda xp, x, y: xp.sum(xp.log(x) / y),
    ],
)
def test_functions_with_kinks_and_domains_break_no_relation(f: Any) -> None:
    for y in (X, 2 * X):
        found = adbench.check(f, X, y, modes="all", backend="autograd")
        assert not any(row.mode == "relations" for row in found.rows), found
