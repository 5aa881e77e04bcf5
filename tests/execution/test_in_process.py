"""Checks from Python: a cell again, a user's function, and from pytest."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adbench
from adbench.execution.in_process import ready
from adbench.execution.session import prepare
from tests.support.files import CASE, RIGHT, write

pytest_plugins = ["pytester"]
X = np.array([0.3, -1.2, 0.7])


def test_a_users_function_is_checked_on_any_backend() -> None:
    for backend in ("tape", "jax", "torch", "autograd"):
        verdict = adbench.check(lambda xp, x: xp.sum(xp.sin(x) * x), X, backend=backend)
        assert verdict.word == "right", (backend, verdict.sentence)
        assert verdict.method.startswith("power series")


def test_a_function_that_does_not_run_on_series_is_checked_by_differences() -> None:
    def opaque(x: Any) -> Any:
        return np.sum(x * x) if type(x).__module__.startswith(("numpy", "adbench.tape")) else 1 / 0

    verdict = adbench.check(opaque, X)
    assert verdict.word in ("right", "verified")
    assert verdict.method.startswith("nine-point differences")
    assert "ZeroDivisionError" in verdict.reason


@pytest.mark.parametrize("operator", ["value", "gradient", "jvp", "vjp", "hvp", "hessian", "jacobian"])
def test_every_operator_of_a_users_function_can_be_checked(operator: str) -> None:
    assert adbench.check(lambda xp, x: xp.sum(xp.exp(x) * x), X, operator=operator).word == "right"


def test_several_arguments_and_nested_ones_can_be_active() -> None:
    def f(xp: Any, p: Any, b: float) -> Any:
        return xp.sum(p["w"] * p["w"]) * b

    assert adbench.check(f, {"w": X}, 1.5, wrt=(0, 1)).word == "right"


def test_an_assertion_on_a_wrong_ninth_digit_names_the_entry(tmp_path: Path) -> None:
    folder = write(tmp_path, off=RIGHT.replace("return 1 / (1", "return (1 + 3e-9 * (x == 0.7)) / (1"))

    def softplus(xp: Any, x: Any) -> Any:
        return xp.sum(xp.log1p(xp.exp(x)))

    with pytest.raises(adbench.WrongGradient, match=r"(?s)gradient of softplus.*✗ x\[2\].*1 of 3 wrong"):
        adbench.assert_gradients(softplus, X, backend=str(folder / "off.py"))
    adbench.assert_gradients(softplus, X)


def test_the_line_of_a_failure_reproduces_it(tmp_path: Path) -> None:
    write(tmp_path, softplus=CASE, off=RIGHT.replace("return 1 / (1", "return 1.01 / (1"))
    case, backend = f"{tmp_path / 'softplus.py'}:softplus", str(tmp_path / "off.py")
    assert "10 of 10 wrong" in adbench.check_cell(case, 10, backend, "gradient", seed=3)
    assert "compared numbers are right" in adbench.check_cell("product_plus_constant", 1, "tape", "hessian")
    assert adbench.check_cell("product_plus_constant", 1, "tape", "relations") == "every relation holds"
    # Its H v is 0 with rounding errors, which grow a million times with a vector a million times as long.
    assert adbench.check_cell("speelpenning", 1, "tape", "relations") == "every relation holds"
    with pytest.raises(adbench.UnknownName):
        adbench.check_cell("product_plus_constant", 1, "tape", "integral")
    with pytest.raises(adbench.UnknownName):
        adbench.check_cell("nope", 1, "tape")


def test_a_cell_of_a_library_that_refuses_only_in_the_call_is_repeated_by_the_fallback(tmp_path: Path) -> None:
    by_hand = 'lambda x, w: (w * right(x),)\n    if operator == "gradient":\n        return refused'
    text = RIGHT.replace("lambda x: (right(x),)", by_hand).replace('operator == "gradient":', 'operator == "vjp":', 1)
    text += '\n\ndef refused(x):\n    raise NotImplementedError("no gradient")\n'
    write(tmp_path, softplus=CASE, late=text)
    case, backend = f"{tmp_path / 'softplus.py'}:softplus", str(tmp_path / "late.py")
    assert "10 compared numbers are right" in adbench.check_cell(case, 10, backend, "gradient")
    assert ready(case, 10, backend).how == "from vjp"


def test_positions_out_of_range_are_refused() -> None:
    with pytest.raises(adbench.UsageError, match=r"wrt is \(1,\), but there are 1 arguments"):
        adbench.check(lambda x: x, 1.0, wrt=(1,))


def test_installing_adbench_installs_the_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import numpy as np

        def test_right(assert_gradients):
            assert_gradients(lambda xp, x: xp.sum(xp.sin(x)), np.array([0.3, 1.2]))
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_a_gradient_that_is_wrong_at_some_points_is_found_with_many_points(tmp_path: Path) -> None:
    """Wrong where x > 1.5: right at most seeds, wrong at some of forty."""
    write(tmp_path, softplus=CASE, rare=RIGHT.replace("return 1 / (1", "return (1 + 0.1 * (x > 1.5)) / (1"))
    made = prepare(
        cases=[str(tmp_path / "softplus.py")],
        backends=[str(tmp_path / "rare.py")],
        sizes=["1"],
        operators=["gradient"],
        points=40,
        time=False,
        memory=False,
    )
    for _ in made.events():
        pass
    statuses = [record.status for record in made.result().records]
    assert len(statuses) == 40
    assert set(statuses) == {"ok", "wrong"}
