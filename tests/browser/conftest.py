"""The page in a real browser: Debian's Chromium, driven by Playwright.

Without a browser, tests are skipped with the reason. In CI (the variable CI is set) tests fail instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
ARGUMENTS = [
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def lacking(what: str, remedy: str) -> NoReturn:
    """Skip, or fail in CI."""
    told = f"{what} is not there; {remedy}"
    if os.environ.get("CI"):
        pytest.fail(f"{told} (in CI nothing is skipped)")
    pytest.skip(told)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("playwright", "pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        lacking("Chromium", "on Debian: apt install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield running
        running.close()


@dataclass
class Opened:
    """A page, and what it complained about or asked for: nothing, unless something is wrong."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    is_alone: bool = True


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """A function that opens a page's text, or a file, from disk; `options` go to the browser's context.

    Afterwards there must have been no error, and no request but for files; of a page's text, for that file alone.
    """
    contexts: list[Any] = []
    every: list[Opened] = []

    def open_(text: str | Path, **options: Any) -> Opened:
        file = text if isinstance(text, Path) else tmp_path / f"report-{len(every)}.html"
        if isinstance(text, str):
            file.write_text(text, encoding="utf-8")
        context = browser.new_context(**options)
        contexts.append(context)
        found = Opened(context.new_page(), is_alone=isinstance(text, str))
        found.page.set_default_timeout(60_000)  # a shared machine
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("dialog", lambda dialog: (found.complaints.append(dialog.message), dialog.dismiss()))
        found.page.on("request", lambda request: found.requests.append(request.url))
        every.append(found)
        found.page.goto(file.as_uri())
        return found

    yield open_
    for context in contexts:
        context.close()
    for found in every:
        assert not found.complaints
        assert [url for url in found.requests if not url.startswith(("file:", "blob:"))] == []
        if found.is_alone:
            assert sum(url.startswith("file:") for url in found.requests) == 1


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        lacking("axe-core", "npm ci --prefix tests/browser")
    return AXE.read_text(encoding="utf-8")
