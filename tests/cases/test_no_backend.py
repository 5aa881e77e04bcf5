"""Cases are independent of backends: no import, name or string in their code names a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from adbench.catalog.discovery import builtin_folder, catalog

FOLDER = builtin_folder("cases")
NAMES = set(catalog().backends) | {
    *("stan", "httpstan", "cmeel", "eigen", "trilinos", "adouble", "codi"),
    *("tensorflow", "theano", "enzyme", "jaxlib", "numpyro", "casadi", "sympy", "pytensor", "mygrad", "heyoka"),
}


def words(source: str) -> Iterator[str]:
    """Identifiers, imported names and strings of a Python file, without citations: docstrings, suites, faults."""
    tree = ast.parse(source)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            left_out.add(id(node.body[0].value))  # type: ignore[attr-defined]
        if isinstance(node, ast.keyword) and node.arg in ("suites", "summary", "faults"):  # citations
            left_out |= {id(inner) for inner in ast.walk(node.value)}
        if id(node) in left_out:
            continue
        match node:
            case ast.Name(name) | ast.Attribute(attr=name) | ast.arg(name) | ast.FunctionDef(name):
                yield name
            case ast.Constant(str() as text):
                yield from re.findall(r"\w+", text)
            case ast.Import(names):
                yield from (part for alias in names for part in alias.name.split("."))
            case ast.ImportFrom(module, names):
                yield from [*(module or "").split("."), *(alias.name for alias in names)]


def code_of(twin: str) -> str:
    """A C++ file without comments."""
    return re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", twin, flags=re.S))


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_a_case_names_no_backend(file: Path) -> None:
    assert not {word.lower() for word in words(file.read_text("utf-8"))} & NAMES


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.hpp")), ids=lambda file: file.stem)
def test_a_cpp_implementation_names_no_backend(file: Path) -> None:
    assert not set(re.findall(r"[a-z]\w*", code_of(file.read_text("utf-8")).lower())) & NAMES


@pytest.mark.parametrize(
    "text",
    ["import jax", "from torch import nn", "y = xp.jax(x)", "if which == 'tape': pass", "import jax.numpy as jnp"],
)
def test_a_case_that_names_a_backend_is_found(text: str) -> None:
    assert {word.lower() for word in words(text)} & NAMES


def test_a_docstring_may_name_any_library() -> None:
    assert not {word.lower() for word in words('"""As in jax."""\nCASE = Case(suites=("fastad",))')} & NAMES
