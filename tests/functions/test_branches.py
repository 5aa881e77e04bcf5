"""Programs whose branches hide a derivative: a bisection's gradient is that of the root, not 0."""

import math
from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench
from adbench import tape
from adbench.oracle.compute import reference
from adbench.oracle.subject import Effort
from tests.oracle.scalars import subject_of

Y = 1.7
HALF_ROOT = 0.5 / math.sqrt(Y)
EFFORT = Effort(against_values=lambda: True)


def bisection(where: Callable[..., Any], y: Any) -> Any:
    """√y by halving [0, 10]."""
    low, high = 0 * y, 0 * y + 10
    for _ in range(60):
        middle = (low + high) / 2
        below = middle * middle < y
        low, high = where(below, middle, low), where(below, high, middle)
    return low


def with_if(y: Any) -> Any:
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle * middle < y:
            low = middle
        else:
            high = middle
    return low + 0 * y


def in_jax(y: Any) -> Any:
    return bisection(jnp.where, y)


def in_torch(y: Any) -> Any:
    return bisection(torch.where, y)


def in_autograd(y: Any) -> Any:
    return bisection(anp.where, y)


def in_tape(y: Any) -> Any:
    return bisection(tape.where, y)


def in_loop(y: Any) -> Any:
    def halved(_: Any, ends: Any) -> Any:
        middle = (ends[0] + ends[1]) / 2
        below = middle * middle < y
        return jnp.where(below, middle, ends[0]), jnp.where(below, ends[1], middle)

    return jax.lax.fori_loop(0, 60, halved, (0.0 * y, 0.0 * y + 10))[0]


BISECTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "jax": (in_jax, Y),
    "a loop of jax": (in_loop, Y),
    "torch": (in_torch, torch.tensor(Y, dtype=torch.float64)),
    "autograd": (in_autograd, Y),
    "tape": (in_tape, Y),
    "branches of Python": (with_if, Y),
}


@pytest.mark.parametrize("name", BISECTIONS)
def test_the_zero_gradient_of_a_bisection_is_wrong(name: str) -> None:
    f, y = BISECTIONS[name]
    found = adbench.check(f, y)
    assert found.is_wrong
    assert not found.proved
    assert found.entries[0].expected == pytest.approx(HALF_ROOT, rel=1e-9)
    assert "the program's branches depend on y (test_branches.py, line " in str(found).replace("\n    ", " ")


def test_a_user_may_mean_the_derivative_along_a_branch() -> None:
    found = adbench.check(in_jax, Y, branchwise=True)
    assert (found.word, found.proved) == ("right", True)


def test_second_derivatives_follow_the_values_too() -> None:
    found = adbench.check(in_jax, Y, modes="hessian")
    assert found.is_wrong
    assert found.entries[0].expected == pytest.approx(-0.25 * Y**-1.5, rel=1e-6)


@pytest.mark.parametrize(("factor", "word"), [(1.0, "right"), (1 + 1e-8, "wrong"), (0.0, "wrong")])
def test_a_custom_rule_of_a_bisection_is_judged_by_the_values(factor: float, word: str) -> None:
    root = jax.custom_vjp(in_jax)
    root.defvjp(lambda y: (in_jax(y), y), lambda y, c: (factor * c * 0.5 / jnp.sqrt(y),))
    assert adbench.check(root, Y).word == word

    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return in_torch(y)

        @staticmethod
        def backward(ctx: Any, c: Any) -> Any:
            (y,) = ctx.saved_tensors
            return factor * c * 0.5 / torch.sqrt(y)

    assert adbench.check(Root.apply, torch.tensor(Y, dtype=torch.float64)).word == word


TABLE = np.linspace(0.0, 2.0, 2001)
FINE = np.linspace(0.0, 3.0, 100_001)


def stopped(y: Any) -> Any:
    """√y by halving half of the error until it is below 1e-6."""

    def better(state: Any) -> Any:
        root, _ = state
        return 0.25 * (root + y / root) + 0.5 * root, root

    return jax.lax.while_loop(lambda s: abs(s[0] - s[1]) > 1e-6, better, (0 * y + 1, 0 * y + 2))[0]


HIDDEN: dict[str, tuple[Callable[..., Any], float, float]] = {
    "a bisection next to a large term": (lambda x: 1000 * x + in_jax(x), Y, 1000 + HALF_ROOT),
    "fine quantising": (lambda x: jnp.round(x * 2**24) / 2**24, 1.1, 1.0),
    "a quantised factor": (lambda x: jnp.round(x * 2**24) / 2**24 * x, 1.1, 2.2),
    "a cast to an integer and back": (lambda x: (x * 2**22).astype(jnp.int64) / 2**22, 1.1, 1.0),
    "a search in a table": (lambda x: jnp.asarray(FINE)[jnp.searchsorted(jnp.asarray(FINE), x**2)], 1.1, 2.2),
}
VISIBLE: dict[str, tuple[Callable[..., Any], Any]] = {
    "relu near its kink": (lambda x: jnp.sum(jnp.where(x > 0, x, 0.1 * x) ** 2), np.array([1.0, -0.5, 1e-3])),
    "a kink at a distance of 1e-12": (lambda x: jnp.where(x > 1, x - 1, 0.0), 1 + 1e-12),
    "round": (lambda x: jnp.round(x) + x, 1.3),
    "floor": (jnp.floor, 2.7),
    "sign": (lambda x: jnp.sign(x) * x * x, 0.3),
    "eight bits": (lambda x: jnp.round(x * 127) / 127, 0.3),
    "a fast oscillation": (lambda x: jnp.where(x > 0, jnp.sin(1e6 * jnp.pi * x), x), 1.25),
    "linear interpolation": (lambda x: jnp.interp(x, TABLE, np.sin(TABLE)), 0.7123456),
    "a node of a fine table": (lambda x: jnp.interp(x, TABLE, np.sin(TABLE)), float(np.nextafter(TABLE[300], 9))),
    "a narrow flat part": (lambda x: jnp.sign(x) * jnp.where(abs(x) > 1e-6, abs(x) - 1e-6, 0.0), 1e-7),
    "a large step nearby": (lambda x: jnp.fmod(x, 0.7), 1.54),
    "a step far away": (lambda x: jnp.where(x > 0, 5.0, 0.0) + x**2, 0.2),
    "the largest entry": (lambda x: x[jnp.argmax(x)] ** 2, np.array([0.3, 1.2, 1.1])),
    "a sum in order of size": (lambda x: jnp.sum(jnp.sort(x) * jnp.arange(3.0)), np.array([0.3, 1.2, 1.1])),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_the_values_decide_where_branches_hide_a_derivative(name: str) -> None:
    f, x, derivative = HIDDEN[name]
    found = adbench.check(f, x)
    assert found.is_wrong
    assert found.entries[0].expected == pytest.approx(derivative, rel=1e-3)


@pytest.mark.parametrize("name", VISIBLE)
def test_kinks_steps_and_plateaus_keep_their_proved_derivative(name: str) -> None:
    f, x = VISIBLE[name]
    found = adbench.check(f, x)
    assert (found.word, found.proved) == ("right", True), found


@pytest.mark.slow
def test_an_iteration_with_a_tolerance_accepts_both_of_its_derivatives() -> None:
    exact = jax.custom_vjp(stopped)
    exact.defvjp(lambda y: (stopped(y), y), lambda y, c: (c * 0.5 / jnp.sqrt(y),))
    wrong = jax.custom_vjp(stopped)
    wrong.defvjp(lambda y: (stopped(y), y), lambda y, c: (c * 0.505 / jnp.sqrt(y),))
    jvp = adbench.check(stopped, 2.0, modes="jvp")
    assert [one.is_right for one in (adbench.check(exact, 2.0), jvp)] == [True, True]
    assert adbench.check(wrong, 2.0).is_wrong


@pytest.mark.parametrize(("factor", "is_right"), [(1.0, True), (1.001, False)])
def test_the_rule_of_a_fixed_point_may_be_that_of_the_solution(factor: float, is_right: bool) -> None:
    """The iteration stops at a distance of 1e-8 from the solution, and so does its derivative."""
    weights = jnp.array([[0.4, -0.3], [0.2, 0.5]])

    def solved(x: Any) -> Any:
        better = lambda s: (s[1], jnp.tanh(weights @ s[1] + x))  # noqa: E731
        return jax.lax.while_loop(lambda s: jnp.max(abs(s[0] - s[1])) > 1e-8, better, (0 * x, 0 * x + 1))[1]

    def backward(z: Any, c: Any) -> Any:
        slopes = 1 - z**2
        return (factor * slopes * jnp.linalg.solve(jnp.eye(2) - weights.T * slopes, c),)

    rule = jax.custom_vjp(solved)
    rule.defvjp(lambda x: (solved(x),) * 2, backward)
    found = adbench.check(lambda x: jnp.sum(rule(x) ** 2), np.array([0.3, -0.2]))
    assert found.is_right is is_right
    assert "stops at a tolerance" in " ".join(str(found).split())


@pytest.mark.parametrize(("factor", "is_right"), [(1.0, True), (1.0001, False)])
def test_the_rule_of_a_loop_over_time_is_not_that_of_more_steps(factor: float, is_right: bool) -> None:
    """Each further step changes the derivative by 1e-4 of it, and they do not converge."""

    def at_end(x: Any) -> Any:
        step = lambda s: (s[0] + 0.1, s[1] * (1 + 1e-4 * jnp.cos(s[0])))  # noqa: E731
        return jax.lax.while_loop(lambda s: s[0] < 0.35, step, (0 * x, x))[1]

    growth = math.prod(1 + 1e-4 * math.cos(0.1 * k) for k in range(4))
    rule = jax.custom_vjp(at_end)
    rule.defvjp(lambda x: (at_end(x), None), lambda _, c: (factor * growth * c,))
    assert adbench.check(rule, 1.2).is_right is is_right


def test_jumps_away_from_the_point_leave_the_truth_proved() -> None:
    found = adbench.check(lambda x: jnp.floor(8 * x) * x, 1.3)
    assert (found.word, found.proved) == ("right", True), found


def test_a_program_without_branches_is_not_held_against_its_values() -> None:
    calls = 0

    def counted(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * x

    def text(xp: Any, x: Any) -> Any:
        return x * x

    reference(subject_of(counted, (1.3,), (0,), text=text), EFFORT)
    assert calls < 2


@pytest.mark.parametrize(("slope", "word"), [(0.0, "right"), (12345.0, "wrong"), (-1.0, "wrong")])
def test_a_jump_at_the_point_does_not_make_every_number_right(slope: float, word: str) -> None:
    whole = jax.custom_jvp(jnp.floor)
    whole.defjvp(lambda x, v: (jnp.floor(x[0]), slope * v[0]))
    assert adbench.check(whole, 2.0).word == word
