"""The pages of backends match the backend files, and new backends are as short as promised."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from adbench import Case
from adbench.catalog.discovery import catalog
from adbench.catalog.source import LITERALS
from adbench.model import backend as contract
from adbench.model.operator import OPERATORS
from adbench.model.record import Job, Record
from scripts import backends_pages as pages
from tests.backends import test_native_calling, test_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = ("backends.md", "backends-table.md", "backends-table-newer.md")
PAGE, TABLE, NEWER = ((DOCS / "reference" / name).read_text(encoding="utf-8") for name in NAMES)
BACKENDS, CASES = catalog().backends, catalog().cases


def facts_shown() -> dict[str, list[str]]:
    table = PAGE.partition(pages.BEGIN)[2].partition(pages.END)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_the_page_shows_the_licences_and_versions_of_files_and_constraints() -> None:
    shown = facts_shown()
    expected = {fact.name: fact for fact in pages.facts(BACKENDS, pages.pins(), pages.extras(), {})}
    assert list(shown) == list(expected), "./scripts/backends-pages --facts"
    for name, (version, licence, how) in shown.items():
        assert (licence, how) == (expected[name].licence, expected[name].how), name
        if not BACKENDS[name].debian:  # Debian versions come from the machine that made the page
            assert version == expected[name].version, name


NOT_IN_CI = {"aadc": "its free licence is non-commercial", "drjit": "it can end a process", "tensorflow": "570 MB"}


def test_ci_installs_every_available_library_with_few_exceptions() -> None:
    pins, extras = pages.pins(), pages.extras()
    wanted = {pages.normal(name) for source in BACKENDS.values() for name in source.requires}
    assert not [name for name in wanted if name not in pins or name not in extras]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = re.findall(r"[\w-]+", project["optional-dependencies"]["all"][0].partition("[")[2])
    assert {extras[name] for name in wanted} - {*everything, "test"} == set(NOT_IN_CI)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert not [name for source in BACKENDS.values() for name in source.debian if name not in ci]


def test_each_backend_has_a_licence_and_a_paragraph() -> None:
    assert not [name for name, row in facts_shown().items() if row[1] == "—"]
    prose = PAGE.partition(pages.END)[2]
    named = {name: {name, "_" + name.removeprefix(f"{source.variant_of}_")} for name, source in BACKENDS.items()}
    assert not [name for name, as_ in named.items() if not any(f"`{n}`" in prose or f"**{n}**" in prose for n in as_)]
    of_libraries = [name for name, source in BACKENDS.items() if source.variant_of is None and not source.builds]
    assert not [name for name in of_libraries if f"**{name}**" not in prose]


def named(line: str) -> list[str]:
    return re.findall(r"`(\w+)`", line)


def test_the_table_has_every_backend_operator_and_family() -> None:
    first = [line.split("|")[1] for line in TABLE.splitlines() if line.startswith("| `")]
    rows = {name for cell in first for name in named(cell)} - {*CASES}
    rows |= {name for line in TABLE.splitlines() if line.startswith(pages.UNABLE) for name in named(line)}
    absent = named(TABLE.partition(pages.ABSENT)[2].partition("\n")[0])
    assert sorted([*rows, *absent]) == sorted(BACKENDS), "./scripts/backends-pages"
    heads = [line for line in TABLE.splitlines() if line.startswith("| | value |")]
    full = f"| | {' | '.join(OPERATORS)} | relations |"
    assert heads == ["| | value | jacobian | jvp | vjp | relations |", *[full] * (len(pages.FAMILIES) - 2)]
    unchecked = named(TABLE.partition(pages.ABSENT_CASES)[2].partition("\n")[0])
    assert set(unchecked) <= set(CASES)
    for name, title, _ in pages.FAMILIES:
        section = TABLE.partition(f"## {title}\n")[2].partition("\n## ")[0]
        members = [case for case in CASES if case not in unchecked and pages.family_of(CASES[case]) == name]
        assert section, title
        assert name == "traps" or all(f"`{member}`" in section for member in members), title


def test_the_newer_page_has_every_case_and_backend_that_the_table_lacks() -> None:
    sections = NEWER.partition("\n## ")[2].partition("\n## Reasons")[0]
    cases = named(TABLE.partition(pages.ABSENT_CASES)[2].partition("\n")[0])
    assert not [case for case in cases if f"`{case}`" not in sections], "./scripts/backends-pages --newer"
    absent = named(TABLE.partition(pages.ABSENT)[2].partition("\n")[0])
    assert [name for name in absent if f"`{name}`" not in sections] == ["aadc", "drjit"]  # the reason is in NOT_IN_CI


def test_a_page_of_some_cases_has_no_empty_section() -> None:
    cases = {"a": case("a", "ode")}
    text = pages.page([Record(Job("a", 1, "lib", "value"), "ok", how="native")], cases, head=pages.NEWER_HEAD)
    assert text.startswith("# Newer cases and backends\n")
    assert re.findall(r"^## (.*)", text, re.M)[:2] == ["Differential equations", "Reasons"]


@pytest.mark.parametrize("page", [TABLE, NEWER], ids=["table", "newer"])
def test_no_cell_is_wrong_and_every_backend_with_an_unsupported_cell_has_a_reason(page: str) -> None:
    tables, _, rest = page.partition("## Reasons\n")
    rows = [line.split("|")[1:-1] for line in tables.splitlines() if line.startswith("| `")]
    assert not [row for row in rows if any("✗" in cell for cell in row)]
    unable = {name for row in rows if any("∅" in cell for cell in row) for name in named(row[0])}
    unable |= {name for line in tables.splitlines() if line.startswith(pages.UNABLE) for name in named(line)}
    reasons = [line.split("|")[1:-1] for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert {name for who, *_ in reasons for name in named(who)} == unable
    assert not [row for row in reasons if not all(cell.strip() for cell in row)]


def case(name: str, *tags: str) -> Case:
    return Case(f=lambda xp, x: x, inputs=lambda n, rng: {"x": 1.0}, wrt=("x",), sizes=(1,), tags=tags, name=name)


def test_a_table_counts_correct_built_unsupported_known_and_wrong_cases() -> None:
    cases = {name: case(name, "ode") for name in ("a", "b", "c")}

    def record(
        name: str, status: str, operator: str = "gradient", how: str | None = "native", **more: object
    ) -> Record:
        job = Job(name, more.pop("size", 1), "lib", operator, more.pop("seed", 0))  # type: ignore[arg-type]
        return Record(job, status, how=how, **more)  # type: ignore[arg-type]

    records = [
        record("a", "ok"),
        record("b", "ok", how="from jvp"),
        record("c", "unsupported", reason="c has 12 trips of c.hpp"),
        record("a", "ok", "value"),
        record("b", "ok", "value"),
        record("c", "ok", "value"),
        record("a", "unsupported", "hvp", reason="too long", size=100),
        record("a", "ok", "hvp"),
        record("a", "ok", "jvp"),
        record("a", "wrong", "jvp", seed=1, reason="off"),
        record("b", "known", "vjp", reason="nan: why (x/y#1). Here: 1 of 1 wrong"),
    ]
    text = pages.page(records, cases, ["lib", "later"])
    assert f"{pages.ABSENT}`later`.\n" in text
    assert "in part" not in text
    in_part = replace(records[0], job=replace(records[0].job, backend="other"))
    beside = pages.page([*records, in_part], cases)
    assert f"{pages.PART.format(9)}`other` 1.\n" in beside
    assert "| `other` |  | ✓1 |" in beside  # a mark alone would stand for all three cases
    tables = text.partition("## Reasons")[0]
    (row,) = [line for line in tables.splitlines() if line.startswith("| `lib` |")]
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells[:2] == ["✓", "✓1 ○1 ∅1"]
    assert cells[2:] == ["✗", "⊗", "✓"]
    assert "| | value | gradient | jvp | vjp | hvp |" in tables
    assert "| `lib` | all cases: gradient | the case has … trips of CASE.hpp |" in text
    none = [record(name, "unsupported", reason=why) for name, why in (("a", "no twin"), ("b", "too old"))]
    none = [replace(one, job=replace(one.job, backend=who)) for who in ("far", "near") for one in none]
    text = pages.page([*records, *none], cases)
    assert f"{pages.UNABLE}`far`, `near`.\n" in text
    assert "| `far`, `near` | all cases | no twin. too old |" in text
    tables = text.partition("## Reasons")[0]
    assert not [line for line in tables.splitlines() if line.startswith(("| `far` |", "| `near` |"))]
    assert "| `b` | nan: why | `lib` (x/y#1) |" in text


def test_checked_compositions_have_columns() -> None:
    cases = {"a": case("a", "ode"), "t": case("t", "trap")}
    asked = [("a", "hvp_reverse_over_forward"), ("t", "gradient"), ("t", "hvp")]
    text = pages.page([Record(Job(name, 1, "lib", operator), "ok", how="native") for name, operator in asked], cases)
    assert "| | cases | reverse ∘ forward |\n|---|---|---|\n| `lib` | equations | ✓ |\n" in text
    assert "| | gradient | hvp |" in text


def test_a_reason_keeps_no_paths_names_or_operators() -> None:
    said = "cppad of lstm: lstm.hpp:3:5: error: no erf; see /home/me/.cache/x.log"
    assert pages.general(said, case("lstm")) == "cppad: error: no erf"
    said = "lib.h was not found in $LIB_HOME, /usr/include/c++/12, /usr/include; apt install lib"
    assert pages.general(said, case("lstm")) == "lib.h was not found; apt install lib"
    job = Job("solve", 1, "lib", "hvp")
    text = pages.page([Record(job, "unsupported", reason="lib has no hvp of solve")], {"solve": case("solve", "ode")})
    assert "| `lib` | all cases | lib has no such operator of the case |" in text
    assert pages.general("lib has no solve", case("solve")) == "lib has no solve"


def test_a_family_or_trap_with_equal_reasons_or_results_has_one_row() -> None:
    cases = {name: case(name, "trap") for name in ("a", "b", "c", "d", "e")}
    lacks = [
        Record(Job(name, 1, "lib", operator), "unsupported", reason=f"lib has no {what}, and numpy has none")
        for name, what in (("a", "svd"), ("b", "det"))
        for operator in ("gradient", "hvp", "hessian")
    ]
    why = Record(Job("c", 1, "lib", "hvp"), "unsupported", reason="first order only")
    known = [
        Record(Job(name, 1, who, "gradient"), "known", reason=f"nan: why ({thread}). Here: 1 of 1 wrong")
        for name in ("d", "e")
        for who, thread in (("lib", "x/y#1"), ("other", "x/y#2"))
    ]
    text = pages.page([*lacks, why, *known], cases)
    assert "| `lib` | all cases | lib has no det, svd, and numpy has none |" in text
    assert "| `lib` | all cases: hvp | first order only |" in text
    assert "| `d`, `e` | nan: why | `lib` (x/y#1); `other` (x/y#2) |" in text


def test_the_page_describes_every_part_of_the_contract() -> None:
    page = (DOCS / "how-to" / "write-a-backend.md").read_text(encoding="utf-8")
    read = ast.walk(ast.parse(Path(contract.__file__).read_text(encoding="utf-8")))
    asked = {
        node.args[1].value
        for node in read
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "getattr"
        and getattr(node.args[0], "id", "") == "module"
        and isinstance(node.args[1], ast.Constant)
    }
    parts = {*asked, *LITERALS} - {"__file__"}
    assert {"KNOWN", "FUNCTIONS", "VARIANT_OF", "prepare", "build"} <= parts
    assert not [part for part in parts if not re.search(rf"`{part}\b", page)]
    assert not [operator for operator in OPERATORS if f"| `{operator}` |" not in page]


@pytest.mark.parametrize("name", ["autograd", "torch"])
def test_a_python_library_takes_fifty_lines(name: str) -> None:
    text = Path(BACKENDS[name].path).read_text(encoding="utf-8")
    assert "prepare" in text
    assert 20 < test_page.lines_of_code(text) <= 50


def test_a_cpp_library_takes_sixty_lines_in_two_files() -> None:
    files = [Path(BACKENDS["adept"].path), Path(BACKENDS["adept"].path).parent / "native" / "adept.hpp"]
    assert 20 < sum(map(test_native_calling.lines_of_code, files)) <= 60
