"""The heat map of the traps where people read it: its links open what they point at, and every colour can be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adbench.reports.html import page as html
from tests.browser.conftest import Opened
from tests.reports.test_trap_map import CHECKED, LISTED

Open = Callable[..., Opened]
pytestmark = pytest.mark.slow  # the page of a run stands for the others


@pytest.mark.parametrize("scripts", [True, False])
def test_a_square_opens_the_list_of_its_bugs(opened: Open, scripts: bool) -> None:
    page = opened(html.render(LISTED), java_script_enabled=scripts).page
    bug = page.locator("#traps li", has_text="c(x) at 0")
    assert not bug.is_visible()
    page.locator("#traps table a").last.press("Enter")
    bug.wait_for(state="visible")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation_in_the_map(opened: Open, axe: str, scheme: str) -> None:
    page = opened(html.render(CHECKED), color_scheme=scheme, viewport={"width": 400, "height": 900}).page
    page.locator("#traps table a").first.click()
    page.evaluate(axe)
    found = page.evaluate("axe.run('#traps', { resultTypes: ['violations'] })")
    serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert not [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0]["failureSummary"]) for v in serious]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
