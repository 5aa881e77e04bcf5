"""An audit finds what each gradient test of a suite notices: planted tests whose answers are known."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from adbench.audit.audited import MISSED, NOT_APPLICABLE, NOT_TRIED, NOTICED, AuditedTest, sentences
from adbench.audit.handing import Handing, TestRun
from adbench.audit.spoils import SPOILS, floating
from tests.support.command import Result
from tests.support.command import adbench_in_a_process as adbench

SUITE = {
    "tests/test_jax.py": """
        import functools, unittest
        import jax, jax.numpy as jnp, numpy as np
        from jax import grad, value_and_grad
        from jax.test_util import check_grads
        from library import minimum

        X = jnp.arange(1.0, 5.0)

        def loss(x):
            return jnp.sum(x**2)

        def test_strict():
            np.testing.assert_allclose(grad(loss)(X), 2 * X, rtol=1e-6)

        def test_loose():
            np.testing.assert_allclose(grad(loss)(X), 2 * X, rtol=0.5)

        @jax.jit
        def compiled(x):
            return jax.value_and_grad(loss)(x)

        def test_compiled():
            np.testing.assert_allclose(compiled(X)[1], 2 * X, rtol=1e-6)

        def test_compiled_again():
            assert np.isfinite(compiled(X)[1]).all()

        def test_pullback_of_two():
            _, pullback = jax.vjp(lambda a, b: a * b, 2.0, 3.0)
            assert pullback(1.0) == (3.0, 2.0)

        def test_checker():
            check_grads(jnp.sin, (X,), order=1)

        def test_own_use():
            assert abs(minimum(loss, X)).max() < 1e-3

        def test_without_gradient():
            assert loss(X) == 30

        def test_that_fails():
            assert grad(loss)(1.0) == 7

        class TestCase(unittest.TestCase):
            def test_places(self):
                self.assertAlmostEqual(float(grad(jnp.sin)(1.0)), np.cos(1.0), places=1)
    """,
    "tests/test_torch.py": """
        import torch

        count = iter(range(100))

        def leaf(*values):
            return torch.tensor(values, dtype=torch.float64, requires_grad=True)

        def test_two_alike():
            x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
            torch.exp(x).sum().backward()
            torch.exp(y).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)

        def test_finite():
            x = leaf(1.0, 2.0)
            (x**3).sum().backward()
            assert torch.isfinite(x.grad).all()

        def test_added():
            x = leaf(1.0, 2.0)
            for _ in range(2):
                (x**2).sum().backward()
            torch.testing.assert_close(x.grad, 4 * x.detach())

        def test_direct():
            x = leaf(1.0, 2.0)
            (g,) = torch.autograd.grad((x**2).sum(), x)
            torch.testing.assert_close(g, 2 * x.detach())

        def test_transform():
            g = torch.func.grad(lambda x: (x**2).sum())(leaf(1.0).detach())
            assert g == 2

        def test_that_differs():
            x = leaf(float(next(count)))
            (x**2).sum().backward()
            assert x.grad >= 0

        def test_tolerance():
            x = leaf(1.0)
            (x**2).sum().backward()
            torch.testing.assert_close(x.grad, 2 * x.detach(), rtol=0.5, atol=0)

        def test_checker():
            assert torch.autograd.gradcheck(torch.sin, (leaf(1.0, 2.0),))
    """,
    "tests/test_autograd.py": """
        import unittest
        import autograd.numpy as np
        from autograd import grad

        def test_cosine():
            assert abs(grad(np.sin)(1.0) - np.cos(1.0)) < 1e-6

        class TestParts(unittest.TestCase):
            def test_part(self):
                slope = grad(np.sin)(1.0)
                with self.subTest("cosine"):
                    self.assertLess(abs(slope - np.cos(1.0)), 1e-6)

        def test_parts(subtests):
            slope = grad(np.sin)(1.0)
            with subtests.test("cosine"):
                assert abs(slope - np.cos(1.0)) < 1e-6
    """,
    "tests/test_broken.py": "import no_such_module\n",
    "library.py": """
        import jax

        def minimum(f, x):
            for _ in range(20):
                x = x - 0.4 * jax.grad(f)(x)
            return x
    """,
}
"""Files of a suite: its tests, one that cannot be imported, and the library that it tests."""

ALL = {spoil.name for spoil in SPOILS}
MISSES: dict[str, set[str]] = {
    "test_jax.py::test_strict": set(),
    "test_jax.py::test_loose": {"ten_percent", "one_in_a_thousand", "lower_precision"},
    "test_jax.py::test_compiled": {"lower_precision"},  # two, four, six and eight are numbers of every precision
    "test_jax.py::test_compiled_again": ALL - {"nan", "exchanged"},
    "test_jax.py::test_pullback_of_two": set(),
    "test_jax.py::test_checker": {"one_in_a_thousand", "lower_precision"},
    "test_jax.py::TestCase::test_places": {"one_in_a_thousand", "lower_precision"},
    "test_torch.py::test_two_alike": set(),
    "test_torch.py::test_finite": ALL - {"nan", "exchanged"},
    "test_torch.py::test_tolerance": {"ten_percent", "one_in_a_thousand", "lower_precision"},
    "test_torch.py::test_added": set(),
    "test_torch.py::test_direct": set(),
    "test_torch.py::test_transform": set(),
    "test_torch.py::test_checker": set(),
    "test_autograd.py::test_cosine": {"lower_precision"},
    "test_autograd.py::TestParts::test_part": {"lower_precision"},
    "test_autograd.py::test_parts": {"lower_precision"},
}
"""The tests with gradients, and the spoils that they pass with."""

ASIDE = {
    "test_jax.py::test_that_fails": "failed with its own gradients",
    "test_torch.py::test_that_differs": "its gradients differ from run to run",
}
"""The tests of which nothing can be said, with the reason."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    for name, text in SUITE.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture(scope="module")
def done(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """The audit of all but jax's tests, and the folder of its reports."""
    reports = tmp_path_factory.mktemp("reports")
    names = [f"--report={reports / name}" for name in ("audit.json", "audit.html", "audit.xml")]
    files = [f"tests/test_{name}.py" for name in ("torch", "autograd", "broken")]
    return adbench(suite, "audit", *names, *files, "-p", "no:xdist"), reports


def by_name(plain: str) -> dict[str, AuditedTest]:
    return {test["test"].removeprefix("tests/"): AuditedTest.of(test) for test in json.loads(plain)["tests"]}


def check_answers(audited: dict[str, AuditedTest], *files: str) -> None:
    judged = {name: set(test.missed) for name, test in audited.items() if not test.set_aside}
    assert judged == {name: missed for name, missed in MISSES.items() if name.startswith(files)}
    aside = {name: test.set_aside for name, test in audited.items() if test.set_aside}
    assert aside == {name: reason for name, reason in ASIDE.items() if name.startswith(files)}
    assert all(test.runs <= len(SPOILS) + 1 for test in audited.values())


@pytest.mark.xdist_group("audited suite")  # its audit takes seconds
def test_each_test_notices_what_it_can(done: tuple[Result, Path]) -> None:
    audited = by_name((done[1] / "audit.json").read_text())
    check_answers(audited, "test_torch", "test_autograd")
    assert audited["test_torch.py::test_direct"].answers["exchanged"] == NOT_APPLICABLE
    assert audited["test_torch.py::test_direct"].answers["ten_percent"] == NOTICED


@pytest.mark.slow
def test_so_do_jaxs_also_in_processes_of_xdist(suite: Path) -> None:
    result = adbench(suite, "audit", "--json", "tests", "-n", "2")
    audited = by_name(result.out)
    check_answers(audited, "")
    assert audited["test_jax.py::test_pullback_of_two"].answers["exchanged"] == NOTICED


@pytest.mark.xdist_group("audited suite")  # its audit takes seconds
def test_the_table_names_the_test_and_its_tolerance(done: tuple[Result, Path]) -> None:
    result, reports = done
    assert result.code == 1, result.out + result.err
    assert "10 gradient tests pass with right gradients; with gradients 10 % too large 2, negated 1" in " ".join(
        result.out.split()
    )
    assert "rtol=0.5" in result.out
    assert "ERROR tests/test_broken.py" in result.out
    assert "SUBFAIL" not in result.out, "subtests that fail in spoiled runs are no failures of the suite"
    page = (reports / "audit.html").read_text()
    assert "test_two_alike" in page.replace("<wbr>", "")
    assert page.count("<tr>") == 1 + 10
    tree = ElementTree.parse(reports / "audit.xml").getroot()
    assert (tree.get("tests"), tree.get("failures")) == ("11", "2")


@pytest.mark.xdist_group("audited suite")  # its audit takes seconds
def test_nothing_is_written_into_the_suite(done: tuple[Result, Path], suite: Path) -> None:
    assert {str(file.relative_to(suite)) for file in suite.rglob("*") if file.is_file()} == set(SUITE)


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["--report", "nowhere/audit.html", "tests"], 2, "nowhere is no directory"),
        (["--report", "audit.pdf", "tests"], 2, "ends in .html, .json and .xml"),
        (["tests/nowhere.py", "--no-such-option"], 2, "pytest refused its arguments"),
        (["tests/test_torch.py", "-k", "no_such_test"], 4, ""),
    ],
)
def test_bad_input_is_one_line(suite: Path, words: list[str], code: int, part: str) -> None:
    result = adbench(suite, "audit", *words)
    assert (result.code, part in result.err) == (code, True), result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.name)
def test_a_spoil_changes_numbers_alike_in_each_library(spoil: Any) -> None:
    import jax.numpy as jnp
    import numpy as np
    import torch

    arrays = [np.array([[0.1, 0.2], [0.3, 0.4]], "f4"), np.array([[5.1, 6.3], [7.7, 8.9]], "f4")]
    made: list[Callable[[Any], Any]] = [np.asarray, jnp.asarray, torch.asarray]
    results = [
        [np.asarray(array) for array in spoil.apply([make(array) for array in arrays], xp)]
        for make, xp in zip(made, (np, jnp, torch), strict=True)
    ]
    for found in results[1:]:
        rough = {"atol": 0.05} if spoil.name == "lower_precision" else {"rtol": 1e-6}  # float16, bfloat16
        for one, other in zip(found, results[0], strict=True):
            np.testing.assert_allclose(one, other, **rough)
    assert any((one != array).any() for one, array in zip(results[0], arrays, strict=True))


def test_only_sparse_tensors_are_left_alone() -> None:
    import torch

    class Traced:  # as jax's are since 0.12
        dtype, layout = "float32", "AutoLayout"

    dense = torch.ones(2)
    assert floating([dense, dense.to_sparse(), Traced()]) == [0, 2]


def test_a_callable_may_have_a_name_that_is_no_text_and_any_keyword() -> None:
    class Named:
        __name__ = None

        def __call__(self, x: float, place: float = 0.0) -> float:
            return 2 * x + place

    handing = Handing(lambda file: True)
    handing.run = TestRun(SPOILS[0])
    assert handing._handing(Named(), None, "autograd")(1.0, place=1.0) == 3.0  # a number of Python's is no array


def test_the_words_count_each_kind() -> None:
    tests = [
        AuditedTest("a", "a.py", 1, {"zero": NOTICED, "ten_percent": MISSED, "nan": NOT_TRIED}, 1, 5),
        AuditedTest("b", "a.py", 2, {"zero": MISSED, "ten_percent": MISSED}, 1, 7),
    ]
    assert sentences(tests) == [
        "2 gradient tests pass with right gradients; with gradients 10 % too large 2, negated 0, zero 1, NaN 0. Tests "
        "that notice nothing: 1.",
        "Each test ran 6.0 times on average, at most 7 times.",
    ]
    assert "No test of this suite was handed a gradient" in sentences([])[0]


@pytest.mark.parametrize(
    ("option", "part"), [("--adbench-audit-report=x.pdf", "ends in .html"), ("--adbench-audit-limit=0", "no duration")]
)
def test_pytest_refuses_bad_options_in_one_line(suite: Path, option: str, part: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--adbench-audit", option, "tests"]
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True)
    assert (done.returncode, part in done.stderr, "Traceback" in done.stderr) == (4, True, False), done.stderr
