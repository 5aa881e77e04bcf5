"""The page: complete, sealed, the same for the same run, and it shows what the run holds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from dataclasses import replace

import pytest

from adbench.suite import catalog
from adbench.suite.plain import from_plain
from adbench.suite.record import Run
from reports import html
from tests.reports import page, runs

MIXED = runs.run(
    [
        runs.record(size=size, backend=backend, operator=operator, seconds=seconds * size, word=word, memory=memory)
        for size in (1, 10, 100)
        for operator in ("value", "gradient")
        for backend, seconds, word, memory in (
            ("tape", 2e-6, "right", runs.memory()),
            ("fast", 1e-6, "right", runs.memory(None, None, "this system has no clear_refs")),
            ("differences", 1e-8, "approximate", runs.memory()),
            ("unsure", 1e-9, "inconclusive", None),
        )
    ]
    + [runs.record(size=size, backend="liar", status="wrong", reason="sigma is off by 1 %") for size in (1, 10, 100)]
    + [runs.record(size=1, backend="frail", status="crashed", reason="killed by SIGSEGV", stderr="line 1\nline 2")]
)


@pytest.fixture(scope="module")
def text() -> str:
    return html.render(MIXED)


@pytest.fixture(scope="module")
def mixed(text: str) -> page.Element:
    return page.read(text)


def test_the_same_run_gives_the_same_bytes(text: str) -> None:
    assert html.render(MIXED) == text
    assert html.render(replace(MIXED, records=tuple(replace(r) for r in MIXED.records))) == text


def test_the_catalog_loads_the_page_as_a_report(text: str) -> None:
    assert catalog.report("html").render(MIXED) == text


def test_nothing_is_fetched_from_anywhere(mixed: page.Element, text: str) -> None:
    for element in mixed.all():
        assert element.tag not in {
            "link",
            "img",
            "iframe",
            "object",
            "embed",
            "base",
            "form",
            "audio",
            "video",
            "image",
        }
        assert not element.attributes.keys() & {"src", "srcset", "action", "data", "poster", "background", "ping"}
        for name in ("href", "xlink:href"):
            assert element.attributes.get(name, "#").startswith("#")
    style = mixed.one("style").text
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"url\((?!#)", text)


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else(mixed: page.Element) -> None:
    policy = mixed.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    running = [script for script in mixed.all("script") if script.attributes.get("type") != "application/json"]
    assert rules["default-src"] == "'none'"
    assert rules["style-src"] == _hash(mixed.one("style").text)
    assert [rules["script-src"]] == [_hash(script.text) for script in running]
    for element in mixed.all():
        assert "style" not in element.attributes
        assert not [name for name in element.attributes if name.startswith("on")]


def test_every_id_is_unique_and_every_link_has_its_target(mixed: page.Element) -> None:
    ids = [element.attributes["id"] for element in mixed.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = {element.attributes["href"].removeprefix("#") for element in mixed.all() if "href" in element.attributes}
    named = {name for e in mixed.all() for name in e.attributes.get("aria-labelledby", "").split()}
    assert links | named <= set(ids)


def test_the_sections_come_in_the_order_in_which_they_are_asked_for(mixed: page.Element) -> None:
    assert [s.attributes["id"] for s in mixed.all("section")] == [
        "verdicts",
        "time",
        "memory",
        "phases",
        "failures",
        "machine",
    ]


def test_every_table_has_a_caption_and_every_head_a_scope(mixed: page.Element) -> None:
    for table in mixed.all("table"):
        assert table.one("caption").words
        for head in table.all("th"):
            assert head.attributes["scope"] in {"col", "row", "rowgroup"}


def test_both_colour_schemes_and_paper_are_provided_for(mixed: page.Element) -> None:
    style = mixed.one("style").text
    assert "color-scheme: light dark" in style
    assert "@media (prefers-color-scheme: dark)" in style
    assert "@media print" in style


def test_a_cell_shows_the_word_and_the_time_with_its_spread(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "10", "tape")
    assert found.one(class_="figure").words == "20.0 µs"
    assert found.one(class_="spread").words == "19.0–21.0"
    assert found.one(class_="word").words == "✓ right"


def test_only_the_fastest_right_result_is_called_the_fastest(mixed: page.Element) -> None:
    crowned = {
        backend
        for backend in ("tape", "fast", "differences", "unsure", "liar")
        for size in ("1", "10", "100")
        if page.cell(mixed, "verdicts", "quadratic", size, backend).all(class_="crown")
    }
    assert crowned == {"fast"}


def test_the_quotable_sentences_rank_only_what_is_right(mixed: page.Element) -> None:
    right, fastest, failed = (p.words for p in mixed.one(class_="quotes").all("p"))
    assert right.startswith("tape and fast are right on all 3 cells")
    assert "differences is approximate and not ranked" in right
    assert fastest == "Fastest right gradient at the largest common size: fast on the only case."
    assert "Wrong: liar on 3 cells" in failed
    assert "frail crashed on 1 cell" in failed


def test_a_wrong_result_shows_no_time_even_where_it_was_timed() -> None:
    liar = replace(runs.record(backend="liar", status="wrong"), time=runs.time(1e-12), memory=runs.memory())
    found = page.read(html.render(runs.run([liar, runs.record(), runs.record(backend="other", seconds=3e-6)])))
    cell = page.cell(found, "verdicts", "quadratic", "10", "liar")
    assert cell.words.startswith("✗ wrong")
    assert not cell.all(class_="figure")
    assert page.cell(found, "resident peak", "quadratic", "10", "liar").words.startswith("—")
    assert "1.00 ps" not in found.one("main").words.replace("\u00a0", " ")


def test_a_gradient_beside_a_wrong_value_is_wrong() -> None:
    records = [
        runs.record(backend="liar", operator="value", status="wrong"),
        runs.record(backend="liar", seconds=1e-9),
        *runs.race([("tape", 2e-6), ("other", 1e-6)]),
    ]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "verdicts", "quadratic", "10", "liar").one(class_="word").words == "✗ wrong"
    assert "other on the only case" in found.one(class_="quotes").words
    assert not found.one("figure").all("g", class_="s0")


def test_an_approximate_result_is_marked_and_explained(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "1", "differences")
    assert found.one(class_="word").words == "≈ approximate"
    target = found.one("a").attributes["href"].removeprefix("#")
    assert runs.SENTENCES["approximate"] in mixed.one("li", id=target).words


def test_the_reason_of_a_failure_is_one_link_away_with_the_end_of_stderr(mixed: page.Element) -> None:
    found = page.cell(mixed, "verdicts", "quadratic", "1", "frail")
    note = mixed.one("li", id=found.one("a").attributes["href"].removeprefix("#"))
    assert note.one(class_="reason").words == "killed by SIGSEGV"
    assert note.one("pre").text.strip() == "line 1\nline 2"


def test_a_missing_figure_is_a_dash_with_its_reason_and_never_zero(mixed: page.Element) -> None:
    for kind in ("resident peak", "python-visible peak"):
        found = page.cell(mixed, kind, "quadratic", "10", "fast")
        assert found.words.startswith("—")
        assert "0" not in found.words
        reason = mixed.one("li", id=found.one("a").attributes["href"].removeprefix("#"))
        assert "this system has no clear_refs" in reason.words


def test_memory_is_shown_by_method_with_its_unit(mixed: page.Element) -> None:
    assert page.cell(mixed, "resident peak", "quadratic", "10", "tape").words == "8.19 kB"
    assert page.cell(mixed, "python-visible peak", "quadratic", "10", "tape").words == "1.02 kB"


def test_a_figure_that_is_not_ranked_carries_its_sign_in_every_table(mixed: page.Element) -> None:
    assert "≈" in page.cell(mixed, "resident peak", "quadratic", "10", "differences").words
    rows = [r for r in mixed.one("section", id="phases").all("tr") if r.words.startswith("differences")]
    assert rows
    assert all("≈" in cell.words for row in rows for cell in row.all("td")[1:])


def test_phases_stand_apart(mixed: page.Element) -> None:
    table = mixed.one("section", id="phases").all("table")[0]
    row = next(r for r in table.all("tr") if r.words.startswith("tape"))
    assert [td.words for td in row.all("td")] == ["100", "100 µs", "10.0 µs", "200 µs"]


def test_machine_versions_settings_and_seed_are_shown(mixed: page.Element) -> None:
    facts = {row.one("th").words: row.one("td").words for t in mixed.all(class_="facts") for row in t.all("tr")}
    assert facts["processor"] == "a processor"
    assert facts["memory bytes"] == "8.00 GB"
    assert facts["max mhz"] == "—"
    assert facts["epoch ns"] == "4.00 ms"
    assert facts["seed"] == "7"
    assert facts["tape"] == "1.0"


def test_the_page_holds_the_whole_run_as_json(mixed: page.Element) -> None:
    data = json.loads(mixed.one("script", id="run").text)
    assert from_plain(data, Run) == MIXED


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (runs.run(), "Nothing was measured"),
        (runs.run([runs.record()]), "tape is right on the only cell"),
        (runs.run([runs.record(status="failed")]), "No backend is right on any of 1 cell"),
        (runs.run([runs.record(seconds=None, memory=runs.memory(None, None, "no /proc"))]), "nothing is ranked"),
        (runs.run([runs.record(word=None)]), "nothing is ranked"),
        (runs.run([replace(runs.record(), time=replace(runs.time(), launches=()))]), "nothing is ranked"),
        (runs.run([runs.record(backend="a"), runs.record(backend="b")]), "their spreads overlap on the only case"),
    ],
    ids=["empty", "one backend", "failures only", "null figures", "unchecked", "no launches", "tie"],
)
def test_a_run_of_little_has_a_page_that_says_so(run: Run, says: str) -> None:
    found = page.read(html.render(run))
    assert says in found.one(class_="quotes").words
    assert len(found.all("section")) == 6


def test_a_picosecond_and_a_million_million_seconds_stand_side_by_side() -> None:
    records = [
        runs.record(size=size, backend=backend, seconds=seconds, spread=0.01)
        for size in (1, 10**9)
        for backend, seconds in (("fast", 1e-12), ("slow", 1e12))
    ]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "verdicts", "quadratic", "1", "fast").one(class_="figure").words == "1.00 ps fastest"
    assert page.cell(found, "verdicts", "quadratic", "1", "slow").one(class_="figure").words == "1.00·10¹² s"


def test_two_thousand_records_make_a_page_in_seconds() -> None:
    records = [
        runs.record(f"case{c}", n, f"backend{b}", operator, seconds=1e-6 * n * (b + 1))
        for c in range(10)
        for n in (1, 10, 100, 1000, 10000)
        for b in range(20)
        for operator in ("value", "gradient")
    ]
    start = time.perf_counter()
    found = html.render(runs.run(records))
    assert time.perf_counter() - start < 20  # about two on a quiet machine; the bound is for a busy one
    assert len(found) < 4_000_000


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
