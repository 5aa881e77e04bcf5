"""docs/backends.md and docs/backends-table.md say what the files say, and a new library is as short as is promised."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from adbench import Case
from adbench.catalog.discovery import LITERALS, catalog
from adbench.model import backend as contract
from adbench.model.operator import OPERATORS
from adbench.model.record import Job, Record
from scripts import backends_pages as pages
from tests.backends import test_native_calling, test_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE, TABLE = ((DOCS / name).read_text(encoding="utf-8") for name in ("backends.md", "backends-table.md"))
BACKENDS, CASES = catalog().backends, catalog().cases


def facts_shown() -> dict[str, list[str]]:
    table = PAGE.partition(pages.BEGIN)[2].partition(pages.END)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_the_facts_are_those_of_the_files_and_of_what_ci_tests() -> None:
    shown = facts_shown()
    expected = {fact.name: fact for fact in pages.facts(BACKENDS, pages.pins(), pages.extras(), {})}
    assert list(shown) == list(expected), "./scripts/backends-pages --facts"
    for name, (version, licence, how) in shown.items():
        assert (licence, how) == (expected[name].licence, expected[name].how), name
        if not BACKENDS[name].debian:  # what Debian has, the page knows from the machine it was made on
            assert version == expected[name].version, name


def test_ci_installs_every_library_that_can_be_had() -> None:
    pins, extras = pages.pins(), pages.extras()
    wanted = {pages.normal(name) for source in BACKENDS.values() for name in source.requires}
    assert not [name for name in wanted if name not in pins or name not in extras]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    everything = re.findall(r"[\w-]+", project["optional-dependencies"]["all"][0].partition("[")[2])
    assert {extras[name] for name in wanted} <= {*everything, "test"}
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
    rows = set(re.findall(r"^\| `(\w+)` \|", TABLE, re.M)) - set(CASES)
    rows |= {name for line in TABLE.splitlines() if line.startswith(pages.UNABLE) for name in named(line)}
    absent = named(TABLE.partition(pages.ABSENT)[2].partition("\n")[0])
    assert sorted([*rows, *absent]) == sorted(BACKENDS), "./scripts/backends-pages"
    heads = [line for line in TABLE.splitlines() if line.startswith("| | value |")]
    assert len(heads) == len(pages.FAMILIES) - 1
    assert all(line.startswith(f"| | {' | '.join(OPERATORS)} | ") and line.endswith(" relations |") for line in heads)
    for name, title, _ in pages.FAMILIES:
        section = TABLE.partition(f"## {title}\n")[2].partition("\n## ")[0]
        members = [case for case in CASES if pages.family_of(CASES[case]) == name]
        assert section, title
        assert name == "traps" or all(f"`{member}`" in section for member in members), title


def test_no_cell_of_the_table_is_a_fault_and_each_that_cannot_has_its_reason() -> None:
    cells = [cell for line in TABLE.splitlines() if line.startswith("| `") for cell in line.split("|")[2:-1]]
    unable = [line for line in TABLE.splitlines() if line.startswith(pages.UNABLE)]
    assert not [part for line in unable for part in line.split(";") if "<sup>" not in part]
    assert not [cell for cell in cells if "✗" in cell]
    assert not [cell for cell in cells if "∅" in cell and "<sup>" not in cell.partition("∅")[2]]
    reasons = TABLE.partition("## Reasons\n")[2].partition("\n## ")[0]
    numbers = {
        int(n) for cell in [*cells, *unable] for of in re.findall(r"<sup>([\d, ]+)</sup>", cell) for n in of.split(", ")
    }
    assert numbers == {int(number) for number in re.findall(r"^(\d+)\. \S", reasons, re.M)}


def case(name: str, *tags: str) -> Case:
    return Case(f=lambda xp, x: x, inputs=lambda n, rng: {"x": 1.0}, wrt=("x",), sizes=(1,), tags=tags, name=name)


def test_a_table_counts_cases_and_tells_own_made_unable_known_and_wrong() -> None:
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
    assert f"{pages.PART.format(9)}`other` 1.\n" in pages.page([*records, in_part], cases)
    (row,) = [line for line in text.splitlines() if line.startswith("| `lib` |")]
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells[:2] == ["✓", "✓ 1 · ○ 1 · ∅ 1 <sup>1</sup>"]
    assert cells[OPERATORS.index("hvp")] == "✓"
    assert cells[OPERATORS.index("jvp")].startswith("✗")
    assert cells[OPERATORS.index("vjp")] == "⊗"
    assert "1. the case has … trips of CASE.hpp" in text
    none = [record(name, "unsupported", reason=why) for name, why in (("a", "no twin"), ("b", "too old"))]
    none = [replace(one, job=replace(one.job, backend=who)) for who in ("far", "near") for one in none]
    text = pages.page([*records, *none], cases)
    assert f"{pages.UNABLE}`far`, `near` <sup>1, 2</sup>.\n" in text
    assert not [line for line in text.splitlines() if line.startswith(("| `far` |", "| `near` |"))]
    assert "| `b` | `lib` | nan: why | x/y#1 |" in text


def test_compositions_have_columns_where_they_were_asked() -> None:
    cases = {"a": case("a", "ode"), "t": case("t", "trap")}
    asked = [("a", "hvp_reverse_over_forward"), ("t", "gradient"), ("t", "hvp")]
    text = pages.page([Record(Job(name, 1, "lib", operator), "ok", how="native") for name, operator in asked], cases)
    assert f"| | {' | '.join(OPERATORS)} | reverse ∘ forward | relations |" in text
    assert "| | gradient | hvp |" in text


def test_a_reason_keeps_no_path_and_no_place() -> None:
    said = "cppad of lstm: lstm.hpp:3:5: error: no erf; the whole of it is in /home/me/.cache/x.log"
    assert pages.general(said, case("lstm")) == "cppad: error: no erf"
    said = "lib.h was not found in $LIB_HOME, /usr/include/c++/12, /usr/include; apt install lib"
    assert pages.general(said, case("lstm")) == "lib.h was not found; apt install lib"


def test_every_part_of_the_contract_is_on_the_page() -> None:
    page = (DOCS / "write-a-backend.md").read_text(encoding="utf-8")
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


def without_known(text: str) -> str:
    """The text of a backend's file but for the faults that it is known for."""
    skipped = {
        line
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["KNOWN"]
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return "\n".join(line for number, line in enumerate(text.splitlines(), 1) if number not in skipped)


@pytest.mark.parametrize("name", ["autograd", "torch"])
def test_a_python_library_takes_forty_lines(name: str) -> None:
    text = without_known(Path(BACKENDS[name].path).read_text(encoding="utf-8"))
    assert "prepare" in text
    assert 20 < test_page.lines_of_code(text) <= 40


def test_a_cpp_library_takes_sixty_lines_in_two_files() -> None:
    files = [Path(BACKENDS["adept"].path), Path(BACKENDS["adept"].path).parent / "native" / "adept.hpp"]
    assert 20 < sum(map(test_native_calling.lines_of_code, files)) <= 60
