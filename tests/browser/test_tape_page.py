"""The page of a tape where people read it: no error, no request, a theme, and a node marked in every place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adbench.catalog.discovery import catalog
from adbench.reports.html.explain import explained, page
from tests.browser.conftest import Opened

Open = Callable[..., Opened]
pytestmark = pytest.mark.slow  # the page of a run stands for the others


@pytest.fixture(scope="module")
def text() -> str:
    return page(explained(catalog(), "projectile", None, compiled=True))


def test_a_node_that_is_pointed_at_is_marked_in_the_graph_and_in_both_tables(opened: Open, text: str) -> None:
    found = opened(text).page
    found.locator("#graph g[data-node='v6']").hover()
    marked = found.locator(".chosen").evaluate_all("parts => parts.map(part => part.dataset.node)")
    assert {"v6"} < set(marked)
    assert all("v6" in names.split() for names in marked)
    found.locator("#graph g[data-node='v1']").focus()  # by the keyboard too
    assert found.locator("#graph .chosen").get_attribute("data-node") == "v1"


def test_the_theme_is_turned_by_a_button(opened: Open, text: str) -> None:
    found = opened(text, color_scheme="light").page
    paper = "getComputedStyle(document.body).backgroundColor"
    light = found.evaluate(paper)
    for word in ("light", "dark"):
        found.get_by_role("button", name="Theme").click()
        assert found.locator("#theme").inner_text() == f"Theme: {word}"
    assert found.evaluate(paper) != light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(opened: Open, text: str, axe: str, scheme: str) -> None:
    found = opened(text, color_scheme=scheme, viewport={"width": 400, "height": 900}).page
    found.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    found.evaluate(axe)  # by the debugger: the page's own policy lets no other script in
    told = found.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    serious = [v for v in told["violations"] if v["impact"] in ("serious", "critical")]
    assert not [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0]["failureSummary"]) for v in serious]
