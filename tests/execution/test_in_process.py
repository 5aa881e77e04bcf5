"""Checks from Python: a cell again, a function of the user's own, and from pytest."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adbench
from adbench.catalog import ad_hoc
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
        return np.sum(x * x) if isinstance(getattr(x, "val", x), np.ndarray) and x.dtype == float else 1 / 0

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


def test_a_wrong_ninth_digit_fails_an_assertion_that_names_the_entry(tmp_path: Path) -> None:
    folder = write(tmp_path, off=RIGHT.replace("return 1 / (1", "return (1 + 3e-9 * (x == 0.7)) / (1"))

    def softplus(xp: Any, x: Any) -> Any:
        return xp.sum(xp.log1p(xp.exp(x)))

    with pytest.raises(adbench.WrongGradient, match=r"gradient of softplus: 1 of 3 wrong.*x0\[2\].*digits correct"):
        adbench.assert_gradients(softplus, X, backend=str(folder / "off.py"))
    adbench.assert_gradients(softplus, X)


def test_the_line_of_a_failure_reproduces_it(tmp_path: Path) -> None:
    write(tmp_path, softplus=CASE, off=RIGHT.replace("return 1 / (1", "return 1.01 / (1"))
    case, backend = f"{tmp_path / 'softplus.py'}:softplus", str(tmp_path / "off.py")
    assert "10 of 10 wrong" in adbench.check_cell(case, 10, backend, "gradient", seed=3)
    assert "compared numbers are right" in adbench.check_cell("product_plus_constant", 1, "tape", "hessian")
    assert adbench.check_cell("product_plus_constant", 1, "tape", "relations") == "every relation holds"
    # Its H v is 0, and rounding in a result: a million times the vector gives a million times the rounding.
    assert adbench.check_cell("speelpenning", 1, "tape", "relations") == "every relation holds"
    with pytest.raises(adbench.UnknownName):
        adbench.check_cell("product_plus_constant", 1, "tape", "integral")
    with pytest.raises(adbench.UnknownName):
        adbench.check_cell("nope", 1, "tape")


def test_positions_that_there_are_not_are_refused() -> None:
    with pytest.raises(adbench.UsageError, match=r"wrt is \(1,\), but there are 1 arguments"):
        adbench.check(lambda x: x, 1.0, wrt=(1,))


def test_the_fixture_is_there_wherever_adbench_is_installed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import numpy as np

        def test_right(assert_gradients):
            assert_gradients(lambda xp, x: xp.sum(xp.sin(x)), np.array([0.3, 1.2]))
        """
    )
    pytester.runpytest_subprocess("-q").assert_outcomes(passed=1)


ASKED: list[tuple[tuple[str | None, str | None, tuple[str, ...], dict[str, Any]], str]] = [
    (("f", "1", (), {}), "not of the form module:function"),
    (("m:f", None, (), {}), "needs a point"),
    (("m:f", "x", (), {}), "'x' is none"),
    ((None, "1", (), {}), "name it with --function"),
    ((None, None, ("--frob",), {}), "no option or argument '--frob'"),
    (("m:f", "1", (), {"cases": ("a",)}), "does not go with --case"),
]


@pytest.mark.parametrize(("asked", "message"), ASKED)
def test_a_function_asked_for_wrongly_says_what_to_write(asked: Any, message: str) -> None:
    with pytest.raises(adbench.UsageError, match=message), ad_hoc.asking_for(*asked):
        pass


def test_the_command_checks_a_users_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import numpy as np\ndef f(a, b): return a * np.sin(b)\ndef g(x): return np.sum(np.exp(x) * x)\n"
    write(tmp_path, mine=text)
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> int:
        from adbench.cli import main

        monkeypatch.setattr("sys.argv", ["adbench", "check", *args])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0)

    assert run("--function", "mine:f", "--at", "1.0", "-2.0") == 0
    assert run("--function", "mine:g", "--at", "1.0", "2.0", "--operator", "gradient", "--junit", "j.xml") == 0
    assert 'tests="1" failures="0"' in (tmp_path / "j.xml").read_text()
    assert run("--function", "mine:nope", "--at", "1") == 2
    assert "has no attribute 'nope'" in capsys.readouterr().err


def test_a_gradient_that_is_wrong_here_and_there_is_found_at_many_points(tmp_path: Path) -> None:
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
