"""`@adbench.check_gradients` turns a function with a custom rule into a test."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adbench
from adbench import tape

pytest_plugins = ["pytester"]

RULES = """
import numpy as np
import pytest
import adbench
from adbench import tape

X = np.array([0.3, 1.2])
right = tape.function_gradients(lambda x: x * x, (lambda value, adjoint, x: adjoint * 2.0 * x,))
wrong = tape.function_gradients(lambda x: x * x, (lambda value, adjoint, x: adjoint * 3.0 * x,))
"""


def outcomes(pytester: pytest.Pytester, text: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=RULES + text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-v")


def test_pytest_collects_the_function_and_shows_the_table_alone(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@adbench.check_gradients(X, points=2, modes="gradient")
def test_right(x):
    return tape.sum(right(x))

@adbench.check_gradients(X, points=2, modes="gradient")
def test_wrong(x):
    return tape.sum(wrong(x))
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    table = text[text.index("_ test_wrong _") : text.index("short test summary")]
    assert all(word in table for word in ("got", "expected", "x[0]")), table
    assert not any(word in table for word in ("Traceback", ".py:", "raise ", "entries are hidden")), table
    assert "<-" not in text, "pytest says that the test is from another file"
    result.stdout.fnmatch_lines(["FAILED *test_wrong - *tape's gradient of test_wrong*"])


def test_other_parameters_are_filled_by_pytest(pytester: pytest.Pytester) -> None:
    outcomes(
        pytester,
        """
@pytest.fixture
def shift():
    return 0.5

@pytest.mark.parametrize("rule", [right, wrong])
@adbench.check_gradients(X, points=1, modes="gradient")
def test_both(x, rule, shift):
    return tape.sum(rule(x) * shift)

class TestIt:
    @adbench.check_gradients(X, points=1, modes="gradient")
    @pytest.mark.parametrize("rule", [right])
    def test_method(self, x, rule, scale=2.0):
        return tape.sum(rule(x) * scale)

@adbench.check_gradients(X, k=2, points=1, backend="tape")
def test_every_library(xp, x, k):
    return xp.sum(x**k)
""",
    ).assert_outcomes(passed=3, failed=1)


def test_the_functions_own_exception_keeps_its_traceback(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
@adbench.check_gradients(X)
def test_raises(x):
    raise ValueError("the function's own")
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_raises raises ValueError: the function's own*"])


def test_the_test_can_be_called_directly() -> None:
    def checked(factor: float, **options: Any) -> None:
        square = tape.function_gradients(lambda x: x * x, (lambda value, adjoint, x: adjoint * factor * x,))

        @adbench.check_gradients(np.array([0.3, 1.2]), **options)
        def test_square(x: Any) -> Any:
            """Squares."""
            return tape.sum(square(x))

        assert (test_square.__name__, test_square.__doc__) == ("test_square", "Squares.")
        test_square()

    checked(2.0, points=2, modes=("gradient", "jvp"))
    with pytest.raises(adbench.WrongGradient, match=r"wrong: .* of test_square by tape"):
        checked(3.0, points=1)


def test_the_tests_of_the_tutorial_pass(pytester: pytest.Pytester) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "check-a-custom-gradient.md"
    code = page.read_text("utf-8").partition("<!-- file: test_rules.py -->\n```python\n")[2].partition("```\n")[0]
    pytester.makepyfile(test_rules=code)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)


def test_unexpected_arguments_are_reported_at_once() -> None:
    with pytest.raises(adbench.UsageError, match="test_f does not take the arguments"):

        @adbench.check_gradients(1.0, 2.0)
        def test_f(x: Any) -> Any:
            return x
