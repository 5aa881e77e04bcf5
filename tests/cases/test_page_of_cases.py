"""`adbench list cases` shows each case, and docs/reference/cases.md matches the files."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from adbench import Case
from adbench.catalog.discovery import catalog, load
from adbench.catalog.inventory import formula
from adbench.catalog.selection import resolve
from adbench.cli import cli, main
from adbench.execution.operators.fallback import prepare
from adbench.execution.operators.prepared_point import examined, point
from adbench.execution.operators.references import known_at
from adbench.model.backend import from_module
from scripts import cases_page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cases.md"


def printed(*options: str) -> str:
    done = CliRunner().invoke(cli, ["list", "cases", *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_the_page_of_cases_is_current() -> None:
    assert cases_page.page() == PAGE.read_text("utf-8"), "python -m scripts.cases_page"


def test_the_markdown_list_has_a_line_per_case_or_backend() -> None:
    lines = printed("--markdown", "--suite", "pqr").splitlines()
    assert lines[:2] == ["| case | sizes | description |", "|---|---|---|"]
    assert len(lines) == 2 + len(json.loads(printed("--json", "--suite", "pqr")))
    assert any(line.startswith("| `square_sum` | 1 … 1000 | ") for line in lines)
    done = CliRunner().invoke(cli, ["list", "backends", "--markdown"], catch_exceptions=False)
    assert "| `tape_forward` | built in | " in done.output


def test_the_page_has_every_case_once() -> None:
    properties = PAGE.read_text("utf-8").partition("## Properties\n")[2]
    first = re.findall(r"(?m)^(?:\| (`.*?`) \||\* (`.*?`): )", properties)
    named = re.findall(r"`(\w+)`", " ".join(row or trap for row, trap in first))
    assert sorted(named) == sorted(catalog().cases)


def test_a_source_has_its_title_once() -> None:
    text = 'Neal (2019), "An\nExtension": a.\n\nB.\n\nNeal (2019), "An Extension": b,\nand c.'
    assert cases_page._titles_once(text) == 'Neal (2019), "An\nExtension": a.\n\nB.\n\nNeal (2019): b, and c.'


@pytest.mark.parametrize("kind", ["cases", "backends"])
def test_the_list_has_a_line_for_each(kind: str) -> None:
    done = CliRunner().invoke(cli, ["list", kind], catch_exceptions=False, env={"COLUMNS": "80"})
    parts = [part.splitlines()[1:] for part in done.output.split("\n\n")]  # missing libraries come last
    names = [[line.split()[0] for line in part] for part in parts]
    assert all(part == sorted(part) for part in names)
    assert sorted(name for part in names for name in part) == sorted(
        resolve().catalog.cases if kind == "cases" else resolve().catalog.backends
    )
    assert max(map(len, done.output.splitlines())) <= 80


def test_the_list_shows_formula_sizes_operators_tags_and_suites() -> None:
    text = " ".join(printed("--long").split())
    assert "bundle_adjustment 1 … 10000 Reprojection errors" in text
    assert "value, jacobian in cameras, points, weights; tags: array-valued, sparse; suites: adbench" in text
    rows = {row["name"]: row for row in json.loads(printed("--json"))}
    assert rows["rosenbrock"]["operators"] == ["value", "gradient", "hvp"]
    assert rows["rosenbrock"]["formula"].startswith("f(x) = Σ_i 100 (x_(i+1) - x_i²)²")
    assert (rows["determinant_by_minors"]["least"], rows["determinant_by_minors"]["most"]) == (1, 9)


def test_the_list_of_a_suite_has_only_its_cases() -> None:
    def named(*options: str) -> list[str]:
        return [row["name"] for row in json.loads(printed(*options, "--json"))]

    cases = catalog().cases
    of_pqr = sorted(name for name, case in cases.items() if "pqr" in case.suites)
    assert len(of_pqr) > 3
    assert named("--suite", "pqr") == of_pqr
    assert named("--suite", "pqr", "--suite", "traps") == sorted(
        [*of_pqr, *(name for name in cases if name.startswith("trap_"))]
    )
    assert named("--suite", "all") == named() == sorted(cases)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["cases", "--suite", "pq"],
            "no suite 'pq'; did you mean pqr? there are: ablations, adbench, all, fastad, finance, gradbench, "
            "low-precision, machine-learning, pqr",
        ),
        (["backends", "--suite", "pqr"], "--suite selects cases, not backends"),
    ],
)
def test_an_unknown_suite_is_reported_in_one_line(
    arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["adbench", "list", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert told in line
    assert line.count("\n") == 1


def test_the_guides_array_valued_case_needs_as_few_directions_as_promised() -> None:
    page = (PAGE.parents[1] / "how-to" / "write-a-case.md").read_text("utf-8")
    block = next(part for part in page.split("```python\n")[2:] if "sparsity=" in part).partition("```")[0]
    names = {"Case": Case}
    exec(block, names)
    at = point(names["CASE"], 1_000, 0)  # type: ignore[arg-type]
    engine = from_module("tape", load(catalog().backends["tape"]))
    f, native = engine.function(at.case, at.names, at.size), engine.native_inputs(at.args)
    made = prepare(engine, "jacobian", f, native, at.wrt)
    assert f"`{made.how}`" in page
    known = known_at(at, second_order=False, seconds=1.0)
    assert examined(at, "jacobian", made.call(*native), known, None)[0].word == "right"


def test_a_formula_defines_f_and_ends_before_its_derivatives() -> None:
    assert formula("    f(x) = x²,   ∂f/∂x = 2 x\n\nA source.") == "f(x) = x²,   ∂f/∂x = 2 x"
    assert (
        formula("With\n\n    a = 1\n    b = 2\n\nthen\n\n    f(x) = a x\n\n    g(x) = 2") == "a = 1\nb = 2\nf(x) = a x"
    )
    assert formula("    y = A x\n\n    ∂y/∂x = A") == "y = A x"
    assert formula("Nothing of the kind.") == ""
