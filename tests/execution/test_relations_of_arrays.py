"""The relations between calls, for functions whose value is an array: on the Jacobian, or on wᵀ J."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace, Unsupported, UsageError, check
from adbench.execution.operators.prepared_point import known_at, point
from adbench.execution.operators.relations import Setting, violations
from adbench.model.backend import WITH_VECTOR, Backend, Operator
from adbench.oracle import ArrayReference


def f(xp: Any, x: Any, b: Any, c: Any) -> Any:
    return xp.stack([xp.sin(x) * c, x * b * b])


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.normal(size=n), "b": float(rng.uniform(1, 2)), "c": rng.uniform(1, 2, n)},
    wrt=("x", "b"),
    sizes=(3,),
    operators=("value", "jacobian"),
)
KNOWN = known_at(point(CASE, 3, 0), second_order=False, seconds=3.0).first


def jacobian(x: Any, b: Any, c: Any, wrt: tuple[int, ...] = (0, 1)) -> tuple[Any, ...]:
    parts = (np.stack([np.diag(np.cos(x) * c), b * b * np.eye(3)]), np.stack([np.zeros(3), 2 * b * x]))
    return tuple(parts[i] for i in wrt)


def backend(own: Callable[..., Any], *operators: str, **more: Any) -> Backend:
    """A library whose Jacobian is what `own(args, wrt)` returns at `prepare`, and whose products are made from it."""

    def prepare(operator: Operator, g: Any, args: Any, wrt: Any) -> Any:
        if operator not in (operators or ("value", "jacobian", "jvp", "vjp")):
            raise Unsupported(operator)
        if operator == "value":
            return more.get("value", g)
        call = own(args[:-1] if operator in WITH_VECTOR else args, wrt)
        if operator == "jacobian":
            return call
        if operator == "vjp":
            return lambda *a: tuple(np.tensordot(a[-1], block, 2) for block in call(*a[:-1]))
        scale = more.get("jvp", 1.0)
        pairs = lambda a: zip(call(*a[:-1]), a[-1], strict=True)  # noqa: E731 - for one line
        return lambda *a: scale * sum(np.tensordot(block, v, np.ndim(v)) for block, v in pairs(a))

    return Backend(
        "some", Namespace(np), prepare, lambda leaf: np.array(leaf) if np.ndim(leaf) else leaf, np.asarray, None, None
    )


def right(args: Any, wrt: Any) -> Any:
    return lambda *a: jacobian(*a, wrt=wrt)


def frozen(args: Any, wrt: Any) -> Any:
    result = jacobian(*map(np.copy, args), wrt=wrt)
    return lambda *a: tuple(map(np.copy, result))


def stale(args: Any, wrt: Any) -> Any:
    total: list[Any] = []

    def call(*a: Any) -> Any:
        now = jacobian(*a, wrt=wrt)
        total[:] = [g + t for g, t in zip(now, total, strict=True)] if total else list(now)
        return tuple(map(np.copy, total))

    return call


def only_all(args: Any, wrt: Any) -> Any:
    return lambda *a: jacobian(*a, wrt=wrt) if len(wrt) == 2 else tuple(2.0 * g for g in jacobian(*a, wrt=wrt))


def setting(of: Backend) -> Setting:
    return Setting(of, CASE, 3, 0, KNOWN)


@pytest.mark.parametrize("operators", [(), ("value", "vjp")], ids=["Jacobian", "wᵀ J"])
def test_a_right_backend_breaks_no_relation(operators: tuple[str, ...]) -> None:
    assert isinstance(KNOWN, ArrayReference)
    assert violations(setting(backend(right, *operators))) == []


@pytest.mark.parametrize("operators", [(), ("value", "vjp")], ids=["Jacobian", "wᵀ J"])
@pytest.mark.parametrize(("broken", "relation"), [(frozen, "elsewhere"), (stale, "twice"), (only_all, "subsets")])
def test_who_breaks_a_relation_is_caught(broken: Any, relation: str, operators: tuple[str, ...]) -> None:
    found = violations(setting(backend(broken, *operators)))
    assert relation in {text.partition(":")[0] for text in found}, found


def test_modes_and_swallowed_nans_are_caught() -> None:
    assert violations(setting(backend(right, jvp=1.001)))[0].startswith("modes: <w, J v> = ")
    swallowing = backend(right, value=lambda x, b, c: np.nan_to_num(f(np, x, b, c)))
    assert violations(setting(swallowing))[0].startswith("NaN: x holds a NaN and plain numpy gives NaN")


def test_no_derivative_at_all_is_unsupported() -> None:
    with pytest.raises(Unsupported):
        violations(setting(backend(right, "value", "jvp")))


def test_a_pattern_that_leaves_out_what_is_not_zero_is_the_cases_fault() -> None:
    false = replace(CASE, name="mine", sparsity=lambda n: ([0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2]))
    with pytest.raises(UsageError, match=r"mine: sparsity\(3\) leaves out row 3, column 3, where the derivative is"):
        known_at(point(false, 3, 0), second_order=False, seconds=3.0)


def test_a_users_array_valued_function_is_checked_by_its_jacobian() -> None:
    def g(xp: Any, x: Any) -> Any:
        return xp.stack([x[0] * x[1], xp.sin(x[0])])

    for operator in ("jacobian", "jvp", "vjp", "value"):
        assert check(g, [0.5, 1.5], backend="autograd", operator=operator).word == "right"
    with pytest.raises(Unsupported, match="the value is an array, which has no gradient"):
        check(g, [0.5, 1.5], backend="autograd")
