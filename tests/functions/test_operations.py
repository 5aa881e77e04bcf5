"""Each operation of a function is noted with its inputs, computes the same by itself, and is judged by itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench import Case
from adbench.execution.lost_digits import lost_digits
from adbench.functions.operations import PLAIN, NotedOperation, operations
from adbench.model.errors import UsageError
from tests.support.command import adbench

M = np.array([[2.0, 1.0], [0.5, 3.0]])


def noted(f: Any, *args: Any) -> list[NotedOperation]:
    return operations(f, args, [f"x{k}" for k in range(len(args))], range(len(args)))


@pytest.mark.parametrize(
    ("f", "args", "written"),
    [
        (lambda xp, x, y: xp.exp(x) * y, (0.5, 2.0), ["exp(x0)", "v1 * x1"]),
        (lambda xp, x: 2.0 / x - x**3, (0.5,), ["2.0 / x0", "x0 ** 3", "v1 - v2"]),
        (lambda xp, a: xp.linalg.slogdet(a)[1], (M,), ["slogdet(x0)[0]", "slogdet(x0)[1]"]),
        (lambda xp, a: np.ones(2) @ a @ a.T[0], (M,), ["… @ x0", "transpose(x0)", "getitem(v2)", "v1 @ v3"]),
        (lambda xp, a: xp.sum(xp.where(a > 1.0, xp.sqrt(a), 0.0)), (M,), ["sqrt(x0)", "where(…, v1, 0.0)", "sum(v2)"]),
        (lambda xp, x: xp.stack([x, -x]), (0.5,), ["negative(x0)", "stack(x0, v1)"]),
        (lambda xp, x: xp.loop(lambda i, s: s * x, x, 2), (0.5,), ["x0 * x0", "v1 * x0"]),
        (lambda xp, x: x if x > 0 else xp.exp(x), (-0.5,), ["exp(x0)"]),
        (lambda xp, p: p["a"] + xp.sum(p["b"]), ({"a": 1.0, "b": np.ones(2)},), ["sum(x0.1)", "x0.0 + v1"]),
    ],
)
def test_operations_come_in_order_and_compute_the_same_by_themselves(f: Any, args: Any, written: list[str]) -> None:
    found = noted(f, *args)
    assert [one.written for one in found] == written
    for one in found:
        np.testing.assert_array_equal(one.text(PLAIN, *one.operands, *one.constants), one.value)


def case(f: Any, **inputs: Any) -> Case:
    return Case(f=f, inputs=lambda n, rng: inputs, wrt=tuple(inputs), sizes=(1,))


def test_the_operation_that_loses_digits_is_the_only_wrong_one() -> None:
    """torch computes the slope of sinc near 0 as a difference: five digits."""
    pytest.importorskip("torch")
    found = list(lost_digits(case(lambda xp, x: xp.exp(xp.sinc(x) * 3.0), x=1e-6), 1, 0, "torch"))
    assert [(one.operation.written, one.is_wrong) for one in found] == [
        ("sinc(x)", True),
        ("v1 * 3.0", False),
        ("exp(v2)", False),
    ]
    slope = found[0].worst["gradient"]
    assert slope.digits_correct < 9.0 < slope.digits_resolvable


def test_equal_operations_on_equal_numbers_come_once_and_arrays_are_judged_with_weights() -> None:
    found = list(lost_digits(case(lambda xp, x: xp.exp(x) + xp.exp(x), x=np.array([0.5, 1.5])), 1, 0, "tape"))
    assert [one.operation.written for one in found] == ["exp(x)", "v1 + v2"]
    assert all(set(one.worst) == {"value", "gradient", "hvp"} and not one.is_wrong for one in found)


def test_what_cannot_be_noted_is_one_line() -> None:
    with pytest.raises(UsageError, match="its operations cannot be noted: ZeroDivisionError"):
        list(lost_digits(case(lambda xp, x: x * (1 / 0), x=0.5), 1, 0, "tape"))


def test_the_command_shows_a_line_for_each_operation(tmp_path: Path) -> None:
    done = adbench(tmp_path, "explain", "hypot", "--digits", "tape")
    assert done.code == 0, done.err
    assert done.out.count("/1") >= 15
    assert done.out.endswith("no operation is wrong by itself\n")
    assert max(map(len, done.out.splitlines())) <= 100
    for wrong in (["nosuch"], ["tape", "--compiled"], ["tape", "--html", "x.html"]):
        done = adbench(tmp_path, "explain", "hypot", "--digits", *wrong)
        assert (done.code, done.out) == (2, "")
