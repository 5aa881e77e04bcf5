"""docs/how-to/write-a-case.md and docs/how-to/write-a-backend.md show the example files, which work as described."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import pytest

from adbench import Unsupported
from adbench.catalog.discovery import catalog, load
from adbench.model.backend import from_module
from adbench.model.case import function_of
from adbench.model.operator import OF_SECOND_ORDER
from tests.backends.test_backends import CASES, assert_right, truth
from tests.cases.high_precision import gradient

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
CATALOG = catalog([EXAMPLES / "my_case.py"], [EXAMPLES / "my_backend.py"])


def lines_of_code(text: str) -> int:
    """Number of lines without comments and docstrings."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in empty]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - docstrings)


@pytest.mark.parametrize(
    ("page", "example", "lines"),
    [("how-to/write-a-case.md", "my_case.py", 10), ("how-to/write-a-backend.md", "my_backend.py", 30)],
)
def test_the_page_shows_the_example_file_which_is_as_short_as_promised(page: str, example: str, lines: int) -> None:
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    first_block = (DOCS / page).read_text(encoding="utf-8").partition("```python\n")[2].partition("```\n")[0]
    assert first_block == text
    assert lines_of_code(text) <= lines


def test_the_example_case_has_a_correct_gradient() -> None:
    case = CATALOG.cases["my_case"]
    names, args, _ = case.bind(10, 0)
    assert case.gradient is not None
    by_hand = case.gradient(**dict(zip(names, args, strict=True)))
    np.testing.assert_allclose(by_hand[0], gradient(case, 10)[0], rtol=1e-14)


def test_the_example_backend_is_correct_on_five_cases_and_refuses_three() -> None:
    used = from_module("my_backend", load(CATALOG.backends["my_backend"]))
    right, unsupported = [], {}
    for name, case in CASES.items():
        for size in case.sizes[:2]:
            names, args, wrt = case.bind(size, 0)
            try:
                call = used.prepare("value_and_gradient", function_of(case, names, used.xp), args, wrt)
                assert_right(used, "value_and_gradient", used.numpy_result(call(*args)), case, truth(name, size, 0))
            except Unsupported as reason:
                unsupported[name] = str(reason)
            else:
                right.append(name)
    assert sorted(set(right)) == [
        "matrix_product",
        "normal_log_density",
        "normal_log_density_loop",
        "product_plus_constant",
        "recurrence",
    ]
    page = (DOCS / "how-to" / "write-a-backend.md").read_text(encoding="utf-8")
    assert sorted(unsupported) == ["log_determinant", "lotka_volterra", "projectile"]
    assert all(f"∅ my_backend: {reason}\n" in page for reason in unsupported.values())


def test_the_examples_run_from_another_folder(tmp_path: Path) -> None:
    files = [str(EXAMPLES / name) for name in ("my_case.py", "my_backend.py")]
    command = [sys.executable, "-m", "adbench", "check", "-c", files[0], "-b", files[1], "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {record["job"]["case"] for record in records} == {"my_case"}
    # Dual numbers have first order, from which adbench builds other operators, and no second order.
    found = {record["job"]["operator"]: record["status"] for record in records}
    assert {operator for operator, status in found.items() if status == "unsupported"} == OF_SECOND_ORDER
    assert set(found.values()) == {"ok", "unsupported"}
