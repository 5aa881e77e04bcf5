"""Each relation catches the backend that breaks it: on the gradient, on the Jacobian of an array, or on wᵀ J."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace, Unsupported, UsageError, check
from adbench.execution.operators.prepared_point import known_at, point
from adbench.execution.operators.relations import RELATIONS, Setting, violations
from adbench.model.backend import WITH_VECTOR, Backend, Operator


def f(xp: Any, x: Any, b: Any, c: Any) -> Any:
    return xp.sum(xp.sin(x) * c) * b


def g(xp: Any, x: Any, b: Any, c: Any) -> Any:
    return xp.stack([xp.sin(x) * c, x * b * b])


SCALAR = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.normal(size=n), "b": float(rng.uniform(1, 2)), "c": rng.uniform(1, 2, n)},
    wrt=("x", "b"),
    sizes=(3,),
)
ARRAY = replace(SCALAR, f=g, operators=("value", "jacobian"))
Derivative = Callable[..., tuple[Any, ...]]


def gradient(x: Any, b: Any, c: Any) -> tuple[Any, ...]:
    return np.cos(x) * c * b, np.float64(np.sum(np.sin(x) * c))


def jacobian(x: Any, b: Any, c: Any) -> tuple[Any, ...]:
    return np.stack([np.diag(np.cos(x) * c), b * b * np.eye(3)]), np.stack([np.zeros(3), 2 * b * x])


ABOUT: dict[str, tuple[Case, Derivative, tuple[Operator, ...]]] = {
    "gradient": (SCALAR, gradient, ("value", "gradient", "jvp", "vjp")),
    "Jacobian": (ARRAY, jacobian, ("value", "jacobian", "jvp", "vjp")),
    "wᵀ J": (ARRAY, jacobian, ("value", "vjp")),
}
KNOWN = {case: known_at(point(case, 3, 0), second_order=False, seconds=3.0).first for case in (SCALAR, ARRAY)}


def times(derivative: tuple[Any, ...], v: tuple[Any, ...]) -> Any:
    """J v."""
    products: list[Any] = [np.tensordot(block, part, np.ndim(part)) for block, part in zip(derivative, v, strict=True)]
    return sum(products)


def setting(about: str, broken: Callable[..., Any], has: tuple[Operator, ...] = (), **more: Any) -> Setting:
    """A library whose derivative is what `broken(derivative, args)` returns at `prepare`; all else is right.

    broken  takes derivative(*args), right and in the active inputs, and the arguments that `prepare` got
    has     its operators; more: its `value`, its `to_native`, and `jvp`, by what J v is multiplied
    """
    case, whole, operators = ABOUT[about]

    def prepare(operator: Operator, own: Any, args: Any, wrt: Any) -> Any:
        if operator not in (has or operators):
            raise Unsupported(f"no {operator} here")
        if operator == "value":
            return more.get("value", own)

        def derivative(*a: Any) -> tuple[Any, ...]:
            parts = whole(*a)
            return tuple(parts[i] for i in wrt)

        axes = len(KNOWN[case].shape)
        products = about == "wᵀ J" and operator == "vjp"
        inputs = args[:-1] if operator in WITH_VECTOR else args
        call = broken(derivative, inputs) if products or operator not in WITH_VECTOR else derivative
        if operator == "vjp":
            return lambda *a: tuple(np.tensordot(a[-1], block, axes) for block in call(*a[:-1]))
        if operator == "jvp":
            return lambda *a: more.get("jvp", 1.0) * times(call(*a[:-1]), a[-1])
        return call

    to_native = more.get("to_native", lambda leaf: np.array(leaf) if np.ndim(leaf) else leaf)
    return Setting(Backend("some", Namespace(np), prepare, to_native, np.asarray, None, None), case, 3, 0, KNOWN[case])


def right(derivative: Derivative, args: Any) -> Any:
    return derivative


def frozen(derivative: Derivative, args: Any) -> Any:
    """Records at `prepare`, and returns that derivative for ever."""
    result = derivative(*map(np.copy, args))
    return lambda *a: tuple(map(np.copy, result))


def stale(derivative: Derivative, args: Any) -> Any:
    """Accumulates adjoints from call to call."""
    total: list[Any] = []

    def call(*a: Any) -> Any:
        now = derivative(*a)
        total[:] = [new + old for new, old in zip(now, total, strict=True)] if total else list(now)
        return tuple(map(np.copy, total))

    return call


def writing(derivative: Derivative, args: Any) -> Any:
    """Works in the caller's arrays."""

    def call(*a: Any) -> Any:
        result = derivative(*a)
        a[2][...] = np.sqrt(a[2]) ** 2 + 1e-3
        return result

    return call


def keeping(derivative: Derivative, args: Any) -> Any:
    """Keeps the constant that it saw at `prepare` by reference."""
    return lambda x, b, c: derivative(x, b, args[2])


def buffered(derivative: Derivative, args: Any) -> Any:
    """Returns the same buffer each time, and reads it again."""
    buffer = np.zeros_like(derivative(*args)[0])

    def call(*a: Any) -> Any:
        first, *others = derivative(*a)
        buffer[...] = first + (buffer * 0.0 if np.isnan(buffer).any() else 0.0)
        return (buffer, *others)

    return call


def only_all(derivative: Derivative, args: Any) -> Any:
    """Forgets that the rest is constant: right for all active inputs, not for some."""
    return lambda *a: parts if len(parts := derivative(*a)) == 2 else tuple(2.0 * part for part in parts)


BROKEN: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "frozen": (frozen, {}, "elsewhere"),
    "stale": (stale, {}, "twice"),
    "writing": (writing, {}, "untouched"),
    "keeping": (keeping, {"to_native": lambda leaf: leaf}, "overwritten"),
    "buffered": (buffered, {}, "own"),
    "only_all": (only_all, {}, "subsets"),
    "one-sided": (right, {"jvp": 1.001}, "modes"),
    "swallowing": (right, {"value": lambda x, b, c: np.nansum(np.sin(x) * c) * b}, "NaN"),
}
HIDDEN = {("wᵀ J", "buffered"), ("wᵀ J", "one-sided")}  # a product is an array of its own; there is no J v


@pytest.mark.parametrize("about", ABOUT)
def test_a_right_backend_breaks_no_relation(about: str) -> None:
    assert violations(setting(about, right)) == []


@pytest.mark.parametrize(("about", "name"), [(a, n) for a in ABOUT for n in BROKEN if (a, n) not in HIDDEN])
def test_each_relation_catches_who_breaks_it(about: str, name: str) -> None:
    broken, more, relation = BROKEN[name]
    found = violations(setting(about, broken, **more))
    assert relation in {text.partition(":")[0] for text in found}, found


def test_every_relation_is_shown_to_catch_something() -> None:
    assert {relation for *_, relation in BROKEN.values()} == set(RELATIONS)


def test_of_an_array_modes_and_nans_are_all_that_is_said() -> None:
    assert violations(setting("Jacobian", right, jvp=1.001))[0].startswith("modes: <w, J v> = ")
    swallowing = setting("Jacobian", right, value=lambda x, b, c: np.nan_to_num(g(np, x, b, c)))
    assert violations(swallowing)[0].startswith("NaN: x holds a NaN and plain numpy gives NaN")


def test_what_raises_in_a_relation_is_said_and_the_others_go_on() -> None:
    def second_call_fails(derivative: Derivative, args: Any) -> Any:
        calls: list[int] = []

        def call(*a: Any) -> Any:
            calls.append(1)
            if len(calls) > 1:
                raise RuntimeError("the tape is gone\nand more")
            return derivative(*a)

        return call

    assert "twice: RuntimeError: the tape is gone" in violations(setting("gradient", second_call_fails))


@pytest.mark.parametrize("about", ["gradient", "Jacobian"])
def test_no_derivative_at_all_is_unsupported_not_a_violation(about: str) -> None:
    with pytest.raises(Unsupported, match=r"no (gradient|vjp) here"):
        violations(setting(about, right, has=("value", "jvp")))


def test_a_pattern_that_leaves_out_what_is_not_zero_is_the_cases_fault() -> None:
    false = replace(ARRAY, name="mine", sparsity=lambda n: ([0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2]))
    with pytest.raises(UsageError, match=r"mine: sparsity\(3\) leaves out row 3, column 3, where the derivative is"):
        known_at(point(false, 3, 0), second_order=False, seconds=3.0)


def test_a_users_array_valued_function_is_checked_by_its_jacobian() -> None:
    def mine(xp: Any, x: Any) -> Any:
        return xp.stack([x[0] * x[1], xp.sin(x[0])])

    for operator in ("jacobian", "jvp", "vjp", "value"):
        assert check(mine, [0.5, 1.5], backend="autograd", operator=operator).word == "right"
    with pytest.raises(Unsupported, match="the value is an array, which has no gradient"):
        check(mine, [0.5, 1.5], backend="autograd")
