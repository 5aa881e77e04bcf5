"""The points of `adbench.check`: other signs first, and as many as asked for."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench
from adbench.functions.points import SIGNS, points_inside
from adbench.functions.user_function import UserFunction, function_case
from adbench.oracle.subject import nearby_value


def points(f: Any, *args: Any, count: int = 12) -> dict[str, list[Any]]:
    """The name of each point -> the numbers there, in the order in which they are checked."""
    case = function_case(f, args, seed=3)
    assert isinstance(case.f, UserFunction)
    numbers, _ = points_inside(case, 0, count)
    inputs = [case.inputs(1, np.random.default_rng([number, 1])) for number in numbers]
    return {
        case.f.point_name(number): np.concatenate([np.ravel(leaf) for leaf in at.values()]).tolist()
        for number, at in zip(numbers, inputs, strict=True)
    }


def test_points_have_other_signs_first_then_special_and_random_ones() -> None:
    found = points(lambda x: np.sum(x * x), np.array([1.1, 2.3, 0.4, 2.0]))
    assert list(found) == [
        "the given point", "mixed signs", "zero entries", "negative entries", "zeros", "random point 5", "ones",
        "random point 7", "minus the given point", "random point 9", "equal entries", "random point 11",
    ]  # fmt: skip
    assert sorted(np.sign(found["mixed signs"])) == [-1, -1, 1, 1]
    assert max(found["negative entries"]) < 0
    assert sorted(np.abs(np.sign(found["zero entries"]))) == [0, 0, 1, 1]
    assert (found["zeros"], found["ones"], found["equal entries"]) == ([0] * 4, [1] * 4, [1.1] * 4)
    assert min(found["random point 5"]) > 0
    assert found == points(lambda x: np.sum(x * x), np.array([1.1, 2.3, 0.4, 2.0]))


def test_each_entry_changes_its_sign_if_the_signs_are_mixed_already() -> None:
    found = points(lambda x, y: x * np.sum(y * y), -1.5, np.array([1.1, 2.3, -0.4]), count=4)
    assert np.sign(found["mixed signs"]).tolist() == [1, -1, -1, 1]
    assert max(found["negative entries"]) < 0
    assert found["zero entries"].count(0) == 2


def test_the_points_of_a_single_number_are_its_other_sign_zero_and_another_number() -> None:
    for given in (2.0, -2.0):
        _, other, zero, same = (numbers for (numbers,) in points(lambda x: x * x, given, count=4).values())
        assert (other * given < 0, zero, same * given > 0, same != given) == (True, 0, True, True)


def test_as_many_points_are_checked_as_asked_for_even_in_a_narrow_domain() -> None:
    def narrow(x: Any) -> Any:
        return np.sum(np.sqrt(x - 1.0) + np.sqrt(1.001 - x))

    assert len(points(narrow, np.array([1.0005, 1.0003]), count=6)) == 6
    assert list(points(lambda x: np.sum(np.arccos(x)), np.array([0.1, 0.999]), count=4))[1:] == list(SIGNS)

    def raises(x: float) -> float:
        return math.sqrt(x) if x > 0 else math.nan

    assert len(points(raises, 2.0, count=5)) == 5


def test_a_point_without_neighbours_in_the_domain_is_checked_alone_and_the_others_are_missing() -> None:
    def one_point(xp: Any, x: Any) -> Any:
        return xp.sqrt(x - 1.3) + xp.sqrt(1.3 + 2e-12 - x)

    found = adbench.check(one_point, 1.3 + 1e-12, points=3)
    assert (len(found.rows), found.missing) == (1, 2)
    assert " ".join(str(found).split()).endswith("15 more; 2 of them without replacement")


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_a_rule_that_is_wrong_for_negative_numbers_is_found_from_a_positive_point(library: str) -> None:
    cube: Any
    if library == "jax":
        cube = jax.custom_vjp(lambda x: jnp.sum(x**3))
        cube.defvjp(lambda x: (jnp.sum(x**3), x), lambda x, g: (3 * x * jnp.abs(x) * g,))
    else:
        cube = CubeOfPositives.apply
    assert adbench.check(cube, torch.tensor([1.1, 2.3]) if library == "torch" else [1.1, 2.3]).is_right
    for given in ([1.1, 2.3], [1.1], 1.1):
        found = adbench.check(cube, torch.tensor(given) if library == "torch" else given, points=2)
        assert found.is_wrong
        assert found.deciding.point in ("mixed signs", "the other sign")


class CubeOfPositives(torch.autograd.Function):
    """x³ with a derivative that is right for positive numbers only."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x**3).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x.abs() * g


# A step out of the domain, where a callback raises


@jax.custom_jvp
def root(x: Any) -> Any:
    """√x by a callback into Python, which raises for negative numbers."""
    return jax.pure_callback(lambda v: np.asarray(math.sqrt(v)), jax.ShapeDtypeStruct((), x.dtype), x)


@root.defjvp
def _slope_of_root(x: Any, v: Any) -> Any:
    y = root(*x)
    return y, v[0] / (2 * y)


def test_a_step_out_of_the_domain_of_a_callback_is_no_value_and_prints_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for x in (1e-12, 0.3):
        found = adbench.check(root, x)
        assert found.word in ("right", "verified"), found
    found = adbench.check(lambda x: 1 / root(x), 2.0, points=3)
    assert (found.word, found.outside) == ("right", ("the other sign", "zeros"))
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_callback_that_raises_at_the_given_point_is_told_in_one_line() -> None:
    with pytest.raises(adbench.UsageError) as caught:
        adbench.check(root, -1.0)
    assert str(caught.value).startswith("root raises ValueError: math domain error (test_points.py, line ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "raised"), [(KeyboardInterrupt, adbench.UsageError), (MemoryError, MemoryError)])
def test_an_interruption_or_a_lack_of_memory_at_a_moved_point_is_not_taken_for_the_edge_of_the_domain(
    kind: type[BaseException], raised: type[BaseException]
) -> None:
    def stop(v: Any) -> Any:
        if v < 1:
            raise kind("now")
        return np.asarray(v * v)

    def square(x: Any) -> Any:
        return jax.pure_callback(stop, jax.ShapeDtypeStruct((), x.dtype), x)

    with pytest.raises(raised):
        adbench.check(square, 1.0)
    with pytest.raises(raised):
        adbench.check(lambda x: float(stop(float(x))), 1.0)


def test_an_error_of_adbench_at_a_moved_point_stays_an_error() -> None:
    def refuse(x: float) -> float:
        raise adbench.Unsupported("no such function here")

    with pytest.raises(adbench.Unsupported):
        nearby_value(refuse, (1.0,))

    def raises(x: float) -> float:
        raise RuntimeError("outside")

    assert math.isnan(nearby_value(raises, (1.0,)))
