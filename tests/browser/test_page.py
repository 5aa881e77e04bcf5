"""The page does what it promises where people read it: sorting, filtering, themes, the download, and for everybody."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adbench.model.record import Run
from adbench.model.serialization import from_plain
from adbench.reports.html import page as html
from tests.browser.conftest import Opened
from tests.reports import runs
from tests.reports.test_hostile import HOSTILE
from tests.support.marks import mostly_slow, one_in

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Open = Callable[..., Opened]

TIMES = {"alpha": 3e-6, "beta": 1e-6, "gamma": 2e-6}
BOTH = runs.run(
    [
        replace(
            runs.record(case, n, backend, op, seconds=seconds * n * (3 - c), memory=runs.memory()),
            control=runs.time(1e-6) if backend == "alpha" else None,
        )
        for (c, case), n, op, (backend, seconds) in product(
            enumerate(("first", "second")), (1, 10, 100), ("value", "gradient"), TIMES.items()
        )
    ]
    + [
        runs.record("first", 1, "frail", status="crashed", reason="killed by SIGSEGV", stderr="line 1\nline 2"),
        runs.record("first", 10, "frail", seconds=9e-6),
        runs.record("first", 1, "unsure", word="verified"),
    ],
    reference_backend="alpha",
)


@pytest.fixture(scope="module")
def text() -> str:
    return html.render(BOTH)


def _rows(page: Page) -> list[tuple[str, str]]:
    """(case, n) of each line of the table of verdicts, in the order in which they stand."""
    return [tuple(pair) for pair in page.locator("table.verdicts tbody").evaluate(
        "body => [...body.rows].filter(r => !r.hidden).map(r => [r.cells[0].innerText.trim(), r.cells[1].innerText])"
    )]  # fmt: skip


def _head(page: Page, name: str) -> Locator:
    return page.locator("table.verdicts thead th").filter(has_text=name)


@pytest.mark.slow
def test_a_click_sorts_up_a_second_one_down_and_what_has_no_figure_stays_last(opened: Open, text: str) -> None:
    page = opened(text).page
    before = _rows(page)
    head = _head(page, "beta")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = [("second", "1"), ("first", "1"), ("second", "10"), ("first", "10"), ("second", "100"), ("first", "100")]
    assert _rows(page) == up != before
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert _rows(page) == up[::-1]
    frail = _head(page, "frail")
    for _ in range(2):
        frail.get_by_role("button").click()
        assert _rows(page)[0] == ("first", "10")  # the only one that has a figure
    assert head.get_attribute("aria-sort") == "none"


SORTED = """() => [...document.querySelectorAll("table.verdicts thead button")].slice(0, 4).map(button => {
    const start = performance.now();
    button.click();
    document.body.offsetHeight;  // lays the page out
    return performance.now() - start;
}).reduce((a, b) => a + b)"""


@pytest.mark.slow
def test_ten_thousand_records_open_and_sort_in_a_time_that_goes_with_their_number(opened: Open) -> None:
    def of(sizes: int) -> Run:
        places = product(range(10), range(1, sizes + 1), range(5), ("value", "gradient"))
        return runs.run(
            [runs.record(f"c{c}", n, f"b{b}", op, seconds=1e-6 * (1 + (c + b + n) % 7)) for c, n, b, op in places]
        )

    taken = {}
    for sizes in (10, 100):
        page = opened(html.render(of(sizes))).page
        if page.locator("details[data-fold=verdicts]").count():
            page.locator("details[data-fold=verdicts] summary").click()
            page.locator("table.verdicts").wait_for()
        assert len(_rows(page)) == 10 * sizes
        taken[sizes] = min(page.evaluate(SORTED) for _ in range(3))
        assert (
            page.locator("table.verdicts th[aria-sort=ascending], table.verdicts th[aria-sort=descending]").count() == 1
        )
    assert taken[100] < 50 * taken[10]  # a quadratic algorithm takes a hundred times


def test_the_keyboard_sorts_as_well(opened: Open, text: str) -> None:
    page = opened(text).page
    _head(page, "case").get_by_role("button").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert _head(page, "n").last.page.locator("table.verdicts th.size").get_attribute("aria-sort") == "ascending"
    assert [n for _, n in _rows(page)] == ["1", "1", "10", "10", "100", "100"]
    page.keyboard.press("Space")
    assert [n for _, n in _rows(page)] == ["100", "100", "10", "10", "1", "1"]


def test_filters_take_parts_of_names_and_escape_clears_them(opened: Open, text: str) -> None:
    page = opened(text).page
    page.get_by_role("searchbox", name="Cases").fill("SEC")
    assert {case for case, _ in _rows(page)} == {"second"}
    assert page.locator("article.card:visible h3").all_inner_texts() == ["second"]
    assert page.locator("table.map tbody tr:visible").count() == 1
    page.get_by_role("searchbox", name="Backends").fill("alpha, gam")
    shown = page.locator("table.verdicts thead th:visible").all_inner_texts()
    assert [name.split()[0] for name in shown] == ["case", "n", "gamma", "alpha"]
    assert page.get_by_role("status").inner_text() == "1 of 2 cases, 2 of 5 backends"
    page.keyboard.press("Escape")
    page.get_by_role("searchbox", name="Cases").press("Escape")
    assert len(_rows(page)) == 6
    assert page.locator("table.verdicts thead th:visible").count() == 7
    assert page.get_by_role("status").inner_text() == ""


@pytest.mark.parametrize("key", one_in(3, ["click", "Enter", "Space"]))
def test_the_theme_follows_the_system_until_it_is_chosen(opened: Open, text: str, key: str) -> None:
    page = opened(text, color_scheme="dark").page

    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    button = page.get_by_role("button", name="Theme")
    dark = paper()
    colours = [dark]
    for _ in range(3):
        button.click() if key == "click" else button.press(key)
        colours.append(paper())
    light = colours[1]
    assert light != dark
    assert colours == [dark, light, dark, dark]
    assert opened(text, color_scheme="light").page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_the_download_is_the_run(opened: Open, text: str, tmp_path: Path) -> None:
    page = opened(text).page
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download").click()
    assert downloading.value.suggested_filename == "run.json"
    downloading.value.save_as(tmp_path / "run.json")
    assert from_plain(json.loads((tmp_path / "run.json").read_text()), Run) == BOTH


def test_a_link_to_a_reason_opens_what_hides_it(opened: Open, text: str) -> None:
    page = opened(text).page
    reason = page.locator("#remarks li").first
    assert not reason.is_visible()
    page.locator("table.verdicts td.verified a.note").first.click()
    assert reason.is_visible()


def test_without_script_everything_is_there_to_read(opened: Open, text: str) -> None:
    page = opened(text, java_script_enabled=False).page
    assert not page.locator("#tools").is_visible()
    assert page.locator("table.map tbody tr:visible").count() == 2
    assert page.locator("article.card .small svg.plot:visible").count() == 2
    page.locator("details.curves summary").first.click()
    assert page.locator("article.card .static svg.plot:visible").count() == 3
    assert page.locator("table.verdicts tbody tr").count() == 6
    assert page.locator("table.verdicts thead button").count() == 0


@pytest.mark.parametrize("name", one_in(9, [pytest.param(name, id=key) for key, name in HOSTILE.items()]))
def test_hostile_names_are_text(opened: Open, name: str) -> None:
    records = [
        runs.record(case, n, b, memory=runs.memory()) for case in (name, "p") for n in (1, 2) for b in (name, "q")
    ]
    failing = runs.record("p", 3, name, status="failed", reason=name or "none", stderr=name)
    page = opened(html.render(runs.run([*records, failing], versions={name: name}))).page
    if name.isprintable():
        assert page.locator("table.verdicts tbody th").first.evaluate("cell => cell.textContent") == name
    for button in page.locator("table.verdicts thead button").all():
        button.click()
    page.get_by_role("searchbox", name="Cases").fill("p")
    assert page.evaluate("document.querySelectorAll('script').length") == 4
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_first_screen_holds_the_state_the_map_and_the_way_on(opened: Open, text: str) -> None:
    page = opened(text, viewport={"width": 1280, "height": 900}).page
    for part in (".state", ".verdict-in-words", "table.map", ".how", "nav", "#tools"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, part


def test_what_is_wrong_stands_above_everything_else(opened: Open) -> None:
    liar = runs.record(backend="liar", status="wrong", reason="sigma is off")
    page = opened(html.render(runs.run([runs.record(), liar])), viewport={"width": 400, "height": 800}).page
    tops = [page.locator(part).first.bounding_box() for part in (".alarm", ".state", "table.ranks")]
    assert sorted(box["y"] for box in tops if box) == [box["y"] for box in tops if box]
    assert "liar" in page.get_by_role("alert").inner_text()


def _printed(page: Page) -> int:
    """How many pages of paper it takes."""
    return len(re.findall(rb"/Type\s*/Page[^s]", page.pdf(prefer_css_page_size=True)))


def _open_charts(page: Page) -> Locator:
    """The charts of the first case, opened by the keyboard."""
    page.locator("details.curves summary").first.press("Enter")
    charts = page.locator("article.card").first.locator(".live-charts")
    charts.locator("svg.plot").first.wait_for()
    return charts


def test_an_opened_case_reads_values_toggles_backends_and_switches_axes(opened: Open, text: str) -> None:
    page = opened(text, viewport={"width": 1280, "height": 1000}).page
    charts = _open_charts(page)
    assert not page.locator("article.card .small").first.is_visible()
    plot, told = charts.locator("svg.plot").first, charts.locator("output").first
    plot.hover(position={"x": 60, "y": 100})
    assert re.match(r"n = 1\n ?unsure 1 µs \(950 ns–1.05 µs\), not ranked\n ?beta 3 µs", told.inner_text())
    plot.press("ArrowRight")
    assert told.inner_text().startswith("n = 10")
    lines = plot.locator("g.series").count()
    charts.get_by_role("button", name="beta").press("Enter")
    assert charts.get_by_role("button", name="beta").get_attribute("aria-pressed") == "false"
    assert charts.locator("svg.plot").first.locator("g.series").count() == lines - 1
    labels = "svg => [...svg.querySelectorAll('text')].map(t => t.textContent)"
    logarithmic = charts.locator("svg.plot").first.evaluate(labels)
    charts.get_by_role("button", name="value", exact=True).click()
    linear = charts.locator("svg.plot").first.evaluate(labels)
    assert "0" in linear
    assert "0" not in logarithmic
    page.locator("details.curves summary").first.click()
    page.locator("article.card .small").first.wait_for()


def test_a_cell_of_the_map_leads_to_its_case_or_its_reason_by_keyboard(opened: Open) -> None:
    records = [runs.record(), runs.record(backend="unsure", word="verified")]
    page = opened(html.render(runs.run(records))).page
    page.locator("table.map td.h0 a").first.press("Enter")
    assert page.evaluate("location.hash") == "#case-0"
    page.locator("table.map td.verified a").first.press("Enter")
    page.locator("#remarks li:target").wait_for()


def test_the_tables_of_a_large_run_unfold_and_a_packed_reason_is_found(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "LARGE", 1)
    page = opened(html.render(BOTH)).page
    assert page.locator("table.verdicts").count() == 0
    page.locator("details[data-fold=verdicts] summary").click()
    page.locator("table.verdicts").wait_for()
    assert len(_rows(page)) == 6
    _head(page, "beta").get_by_role("button").click()
    assert _head(page, "beta").get_attribute("aria-sort") == "ascending"
    page.locator("table.verdicts td.verified a.note").first.click()
    page.locator("#remarks li").first.wait_for()
    assert _open_charts(page).locator("svg.plot").count() == 4


def test_a_phone_shows_every_backend_without_a_move_sideways(opened: Open, text: str) -> None:
    page = opened(text, viewport={"width": 400, "height": 800}).page
    assert not page.locator("table.map").first.is_visible()
    table = page.locator("table.ranks").first
    assert table.locator("tbody tr:visible").count() == 5
    ends = table.locator("tbody td:first-of-type").evaluate_all(
        "all => all.map(td => td.getBoundingClientRect().right)"
    )
    assert max(ends) < 400


def test_the_switch_ranks_without_our_own_engine_also_without_script(opened: Open) -> None:
    run = runs.run(runs.race([("tape", 1e-6), ("jax", 4e-6), ("torch", 8e-6)]))
    page = opened(html.render(run), java_script_enabled=False).page
    assert page.locator("table.map:visible td.first").inner_text() == "★ 1.0"
    assert "own engine" in page.locator(".verdict-in-words:visible").inner_text()
    page.get_by_label("Rank without adbench’s own engine").check()
    heads = page.locator("table.map:visible thead th.backend").all_inner_texts()
    assert heads == ["jax", "torch"]
    assert "own engine" not in page.locator(".verdict-in-words:visible").inner_text()


def test_a_tables_first_column_stays_in_sight(opened: Open, text: str) -> None:
    page = opened(text, viewport={"width": 400, "height": 800}).page
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    for table in ("table.verdicts", "table.memory", "table.matrix"):
        shift = """table => {
            const frame = table.closest(".scroll"), head = table.querySelector("tbody th");
            frame.scrollLeft = 200;
            return [frame.scrollLeft, head.getBoundingClientRect().left - frame.getBoundingClientRect().left];
        }"""
        scrolled, left = page.locator(table).first.evaluate(shift)
        assert scrolled > 0, table
        assert abs(left) < 2, table


def test_the_printed_page_is_short_and_shows_the_map_and_the_charts(opened: Open, text: str) -> None:
    page = opened(text).page
    _open_charts(page)
    assert 0 < _printed(page) <= 6
    page.emulate_media(media="print")
    assert page.locator("article.card .small svg.plot:visible").count() == 2
    assert page.locator(".live-charts:visible").count() == 0


@pytest.mark.exhaustive
def test_forty_backends_and_thirty_cases_print_on_fifteen_pages(opened: Open) -> None:
    places = product(range(30), (1, 10, 100), range(40), ("value", "gradient"))
    records = [runs.record(f"case_{c}", n, f"b{b}", op, seconds=1e-6 * n * (1 + b)) for c, n, b, op in places]
    page = opened(html.render(runs.run(records))).page
    assert page.evaluate("document.querySelectorAll('*').length") < 20_000
    assert 0 < _printed(page) <= 15


@pytest.mark.parametrize("width", mostly_slow([320, 400, 1280], fast=(320,)))
def test_the_page_itself_never_scrolls_sideways(opened: Open, text: str, width: int) -> None:
    page = opened(text, viewport={"width": width, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", mostly_slow(["light", "dark"], fast=("dark",)))
@pytest.mark.parametrize("width", mostly_slow([400, 1280], fast=(400,)))
def test_axe_finds_no_serious_violation(opened: Open, text: str, axe: str, scheme: str, width: int) -> None:
    page = opened(text, color_scheme=scheme, viewport={"width": width, "height": 900}).page
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    page.locator(".live-charts").last.wait_for()
    page.evaluate(axe)  # by the debugger: the page's own policy lets no other script in
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert not [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0]["failureSummary"]) for v in serious]


def test_axe_would_find_one(opened: Open, text: str, axe: str) -> None:
    page = opened(text).page
    page.evaluate("document.getElementById('filter-cases').parentElement.firstChild.remove()")  # its label
    page.get_by_role("searchbox", name="Backends").evaluate("field => field.removeAttribute('placeholder')")
    page.evaluate("document.getElementById('filter-cases').removeAttribute('placeholder')")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { runOnly: ['label'] })")
    assert [v["id"] for v in found["violations"]] == ["label"]


OVERLAPS = """() => [...document.querySelectorAll("svg.plot")].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom - 3 && b.top + 3 < a.bottom - 3;
  const before = ([, p], k) => boxes.slice(0, k).filter(([, q]) => p.width && touch(p, q));
  return boxes.flatMap((box, k) => before(box, k).map(([b]) => `${box[0]} / ${b}`));
})"""


@pytest.mark.parametrize("width", mostly_slow([1280, 400], fast=(400,)))
def test_no_labels_of_charts_touch(opened: Open, width: int) -> None:
    sizes = {"crowded": (1000, 2000, 2600, 3000, 1_048_576), "wide": (1, 10**6), "single": (100,)}
    records = [
        runs.record(case, n, backend, seconds=seconds * n)
        for case, every in sizes.items()
        for n in every
        for backend, seconds in (("finite_differences", 1e-9), ("tape_compiled_fast_math", 3e-6), ("b", 4e-3))
    ]
    page = opened(html.render(runs.run(records)), viewport={"width": width, "height": 900}).page
    assert page.locator("article.card .small svg.plot").count() == 3
    assert page.evaluate(OVERLAPS) == []
    for summary in page.locator("details.curves summary").all():
        summary.click()
    page.locator("article.card:last-child .live-charts").wait_for()
    assert page.evaluate(OVERLAPS) == []
