"""The fixture `adbench_cell`: checked first, timed by pytest-benchmark, with memory."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import CASE, RIGHT, misbehaving, write

pytest_plugins = ["pytester"]

QUICK = ("--benchmark-max-time=0.02", "--benchmark-min-rounds=3", "--benchmark-warmup=off")


def a_test(case: str, backend: str, more: str = "") -> str:
    return f"def test_cell(adbench_cell):\n    adbench_cell({case!r}, 10, {backend!r}{more})\n"


@pytest.fixture(autouse=True)
def outside_of_xdist(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-benchmark measures nothing in a pytest-xdist worker, so inner sessions must not see it."""
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write(tmp_path, softplus=CASE, right=RIGHT, off=RIGHT.replace("return 1 / (1", "return 1.01 / (1"))


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> tuple[pytest.RunResult, dict[str, Any]]:
    pytester.makepyfile(text)
    result = pytester.runpytest_subprocess(*QUICK, "--benchmark-json=out.json", "-p", "no:cacheprovider", *arguments)
    text = (pytester.path / "out.json").read_text() if (pytester.path / "out.json").exists() else ""
    return result, json.loads(text) if text else {}


def test_a_correct_cell_is_timed_with_verdict_and_memory(pytester: pytest.Pytester, files: Path) -> None:
    result, data = run(pytester, a_test(str(files / "softplus.py"), str(files / "right.py")))
    result.assert_outcomes(passed=1)
    (benchmark,) = data["benchmarks"]
    info = benchmark["extra_info"]
    assert (info["case"], info["size"], info["backend"], info["operator"]) == ("softplus", 10, "right", "gradient")
    assert info["verdict"] == "right"
    assert info["first_call_seconds"] > 0
    for method in ("allocated_peak_bytes", "python_peak_bytes", "resident_peak_bytes"):
        figure = info["memory"][method]
        assert figure["value"] is not None or figure["reason"]
    assert benchmark["group"] == "softplus 10 gradient"
    assert benchmark["stats"]["rounds"] >= 3


def test_a_wrong_derivative_fails_and_is_not_timed(pytester: pytest.Pytester, files: Path) -> None:
    result, data = run(pytester, a_test(str(files / "softplus.py"), str(files / "off.py")))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*off on softplus: 10 of 10 wrong*"])
    assert not data.get("benchmarks")


@pytest.mark.slow
def test_an_unsupported_operator_is_skipped_with_its_reason(pytester: pytest.Pytester, files: Path) -> None:
    result, _ = run(pytester, a_test("projectile", "jax"), "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*jax on projectile: *"])


@pytest.mark.parametrize(
    ("listed", "outcome"), [("KNOWN = {'softplus': 'raises: no derivative'}", "skipped"), ("", "failed")]
)
def test_a_known_bug_that_raises_is_skipped_and_another_exception_fails(
    pytester: pytest.Pytester, files: Path, listed: str, outcome: str
) -> None:
    write(files, raises=misbehaving("raise ZeroDivisionError('of x')") + f"\n{listed}\n")
    result, _ = run(pytester, a_test(str(files / "softplus.py"), str(files / "raises.py")), "-rs")
    result.assert_outcomes(**{outcome: 1})
    if listed:
        result.stdout.fnmatch_lines(["*known bug: raises: no derivative; here: ZeroDivisionError: of x*"])


def test_an_unknown_name_is_a_one_line_error(pytester: pytest.Pytester, files: Path) -> None:
    result, _ = run(pytester, a_test("softmin", "tape"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*adbench_cell: *softmin*"])


def test_without_pytest_benchmark_the_fixture_names_the_package(pytester: pytest.Pytester, files: Path) -> None:
    pytester.makepyfile(a_test("softplus", "tape"))
    result = pytester.runpytest_subprocess("-p", "no:benchmark")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install 'autodiff-bench?benchmark?'*"])


@pytest.mark.slow
def test_compare_and_histogram_of_pytest_benchmark_work_on_cases(pytester: pytest.Pytester, files: Path) -> None:
    text = a_test(str(files / "softplus.py"), str(files / "right.py"), ", memory=False")
    run(pytester, text, "--benchmark-save=before")
    result, _ = run(pytester, text, "--benchmark-compare", "--benchmark-histogram=picture")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*softplus 10 gradient*"])
    assert "0001_before" in result.stdout.str()
    assert list(pytester.path.glob("picture*.svg"))
