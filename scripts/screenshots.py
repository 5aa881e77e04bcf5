"""Take screenshots of a run's page and of a tape's for docs/images/; called by scripts/screenshots."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from adbench.catalog.discovery import catalog
from adbench.reports.html import explain
from adbench.reports.html import page as html
from adbench.results.store import read_run

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, SCREEN, COLOURS = 1280, 900, 64
SHOTS = (
    # (name, page, colour scheme, selector of a part or None for the first screen)
    ("first-screen", "report", "light", None),
    ("tape", "tape", "light", "#graph svg"),
)
EXPLAINED = "projectile"


def main(run: Path) -> int:
    """Draw the pages and take the screenshots. Returns 2 without Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("screenshots: Chromium is missing; install it (Debian: apt install chromium)", file=sys.stderr)
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = {
            "report": html.render(read_run(run)),
            "tape": explain.page(explain.explained(catalog(), EXPLAINED, None)),
        }
        for name, text in pages.items():
            (Path(folder) / f"{name}.html").write_text(text, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, kind, scheme, part in SHOTS:
            page = browser.new_page(viewport={"width": WIDTH, "height": SCREEN}, color_scheme=scheme)
            page.goto((Path(folder) / f"{kind}.html").as_uri())
            target = IMAGES / f"{name}.png"
            found = page.locator(part).first if part else None
            if found is None:
                page.screenshot(path=target)
            elif found.count():
                found.screenshot(path=target)
            else:
                print(f"screenshots: the run has no {name}; use a run that shows it", file=sys.stderr)
                continue
            # A palette reduces the size to a third.
            Image.open(target).convert("RGB").quantize(COLOURS).save(target, optimize=True)
            print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1024} kB")
            page.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
