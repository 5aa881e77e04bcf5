"""The site where people read it: from disk, with search, on a narrow screen, in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adbench.reports.site import addresses
from tests.browser.conftest import Opened
from tests.reports import site

Open = Callable[..., Opened]
pytestmark = pytest.mark.slow  # the page of a run stands for the others
PAGES = (
    "index.html",
    "backends/jax.html",
    "cases/matrix_product.html",
    addresses.page("machines", addresses.machine_id(site.FIRST)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.write(tmp_path_factory.mktemp("sites") / "site")


def test_the_search_leads_to_a_page_from_the_start_and_from_deeper_pages(opened: Open, folder: Path) -> None:
    page = opened(folder / "index.html").page
    page.fill("#search", "mat prod")
    page.get_by_role("link", name="matrix_product", exact=True).first.wait_for()
    page.fill("#search", "jax")
    page.press("#search", "Enter")
    page.wait_for_url("**/backends/jax.html")
    page.fill("#search", "another one")
    page.locator("#found a").first.click()
    page.wait_for_url("**/machines/*.html")
    assert "another one" in page.locator("h1").inner_text()
    page.fill("#search", "nothing like it")
    assert page.locator("#found").inner_text() == "Nothing has this name."
    page.press("#search", "Escape")
    assert page.locator("#found").is_hidden()


def test_a_link_to_a_bug_opens_the_list_and_tables_sort(opened: Open, folder: Path) -> None:
    page = opened(folder / "index.html").page
    page.locator("#traps table a").last.press("Enter")
    page.locator("#traps li").first.wait_for(state="visible")
    page.goto((folder / "backends/jax.html").as_uri())
    page.get_by_role("button", name="slowdown").click()
    assert page.locator("#speed th[aria-sort=ascending]").count() == 1


def test_times_are_those_of_the_reader_and_sort_by_age(opened: Open, folder: Path) -> None:
    page = opened(folder / "index.html", timezone_id="Asia/Tokyo", locale="en-GB").page
    assert page.locator(".eyebrow").inner_text() == "4 runs on 2 machines, 1 Jan 2026 to 1 Mar 2026"
    column = page.locator("#machines tbody th time")
    assert column.all_inner_texts()[0] == "1 Mar 2026, 19:00"
    page.locator("#machines thead button").first.click()
    months = [text.split()[1] for text in column.all_inner_texts()]
    assert months == ["Jan", "Jan", "Feb", "Mar"], "not in the order of the letters"


def test_every_page_opens_without_an_error_and_is_no_wider_than_a_phone(opened: Open, folder: Path) -> None:
    page = opened(folder / "index.html", viewport={"width": 400, "height": 900}).page
    for file in sorted(folder.rglob("*.html")):
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), file.name


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(opened: Open, axe: str, folder: Path, scheme: str) -> None:
    page = opened(folder / "index.html", color_scheme=scheme, viewport={"width": 400, "height": 900}).page
    for name in PAGES:
        page.goto((folder / name).as_uri())
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, { preload: false, resultTypes: ['violations'] })")
        serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
        assert not [(name, v["id"], v["nodes"][0]["html"][:200], v["nodes"][0]["failureSummary"]) for v in serious]
