"""Imports go one way; the parent imports no backend."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What each part of the house may import of the others. `tape`, `oracle` and `measure` import none of their neighbours.
ALLOWED: dict[str, set[str]] = {
    "adbench/tape": set(),
    "adbench/oracle": set(),
    "adbench/measure": set(),
    "adbench/suite": {"adbench.oracle", "adbench.measure", "adbench.version"},
    "adbench/neighbours": {"adbench.suite", "adbench.measure", "adbench.version"},
    "adbench/cli": {"adbench.suite", "adbench.neighbours", "adbench.version"},
    "adbench/__main__.py": {"adbench.cli"},
    "adbench/__init__.py": {"adbench.measure", "adbench.suite", "adbench.version"},
    "adbench/pytest_plugin.py": {"adbench.suite"},
    "adbench/version.py": set(),
    "cases": {"adbench"},
    "backends": {"adbench"},
    "reports": {"adbench"},
}
OUTSIDE = {"backends", "cases", "reports", "tests", "scripts"}


def files_of(part: str) -> list[Path]:
    path = ROOT / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imported(file: Path) -> Iterator[str]:
    """The absolute names that a file imports, wherever in it; relative ones stay within their folder."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            if node.module == "adbench":
                yield from (f"adbench.{alias.name}" for alias in node.names)


def stranger(part: str, name: str) -> bool:
    """Whether `part` may not import `name`."""
    top = name.partition(".")[0]
    if part.startswith("adbench") and top in OUTSIDE:
        return True
    if top != "adbench":
        return False
    own = part.removesuffix(".py").replace("/", ".")
    allowed = ALLOWED[part] | {own}
    if "adbench" in allowed:
        return False
    # `from adbench import x` names no part by itself; x does, where it is one.
    is_part = any(name.startswith(known.removesuffix(".py").replace("/", ".")) for known in ALLOWED if "/" in known)
    return is_part and not any(name == good or name.startswith(good + ".") for good in allowed)


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_go_one_way(part: str) -> None:
    wrong = [
        f"{f.relative_to(ROOT)} imports {name}" for f in files_of(part) for name in imported(f) if stranger(part, name)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rule_sees_an_import_that_goes_the_wrong_way() -> None:
    assert stranger("adbench/tape", "adbench.suite.case")
    assert stranger("adbench/suite", "adbench.tape")
    assert stranger("adbench/oracle", "cases.recurrence")
    assert not stranger("adbench/suite", "adbench.oracle.verdict")
    assert not stranger("backends", "adbench.tape")


def modules_after(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())


def test_the_version_needs_neither_numpy_nor_any_backend() -> None:
    """The 150 ms that `adbench --version` may take are spent on imports, so the imports are what is asserted."""
    loaded = modules_after(
        "from adbench.cli import main\nsys.argv = ['adbench', '--version']\ntry: main()\nexcept SystemExit: pass"
    )
    assert not loaded & {
        "numpy",
        "scipy",
        "matplotlib",
        "rich",
        "jax",
        "torch",
        "autograd",
        "cattrs",
        "optree",
        "mpmath",
    }


def test_the_parent_imports_no_backend_to_plan_a_run() -> None:
    loaded = modules_after("from adbench.suite.session import prepare\nprepare(quick=True)")
    assert not loaded & {"jax", "jaxlib", "torch", "autograd"}
