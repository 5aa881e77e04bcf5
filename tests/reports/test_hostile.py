"""Names, reasons and stderr come from other people's files: they are text, whatever they look like."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from adbench.model.record import Record, Run
from adbench.reports.html import page as html
from adbench.reports.text import terminal
from tests.reports import page, runs

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "end of script": "</script><!--<script>",
    "attribute": "\" onclick='alert(1)' x=\"",
    "template": "{{ 7 * 7 }}{% raw %}",
    "newlines": "one\ntwo\r\nthree\u2028four",
    "right to left": "\u202egnp.exe\u2066\u200f",
    "hebrew": "שלום",
    "escape": "\x1b[31mred\x1b[0m\x07\x00",
    "surrogate": "bad\udcff",
    "markup": "[bold red]x[/] $\\frac{1}{2}$ :smile:",
    "wide": "自動微分" * 20,
    "long": "x" * 5000,
    "empty": "",
}


def _run(name: str) -> Run:
    operator = name or "gradient"

    def records(case: str, backend: str) -> list[Record]:
        return [
            runs.record(case, 1, backend, operator, memory=runs.memory(None, None, name or "none")),
            runs.record(case, 10, backend, operator),
            runs.record(case, 100, backend, operator, status="crashed", reason=name or "none", stderr=name or "none"),
            runs.record(case, 1000, backend, "odd", status="wrong", reason=name or "none"),
        ]

    return runs.run(
        [*records(name, name), *records(name, "plain"), *records("plain", name)],
        cases={name: name, "plain": "A case."},
        versions={name: name},
        machine={name: name, "processor": name},
        settings={name: name},
        created=name,
        adbench_version=name,
    )


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_text_on_the_page(name: str) -> None:
    plain, found = (page.read(html.render(_run(text))) for text in ("harmless", name))
    tags = {"script", "style", "section", "table", "figure", "li", "pre"}
    assert [e.tag for e in found.all() if e.tag in tags] == [e.tag for e in plain.all() if e.tag in tags]
    assert not [e for e in found.all() if any(a.startswith("on") for a in e.attributes)]
    shown = found.one("div", **{"aria-label": "verdicts"}).one("thead").all("th")[2].text
    if name.isprintable():
        assert shown == name


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_no_character_of_a_name_acts_on_the_page(name: str) -> None:
    text = html.render(_run(name))
    text.encode()  # an unpaired surrogate would raise
    assert not set(text) & set("\u202e\u2066\u200f\x1b\x07\x00\u2028\r")


@pytest.mark.parametrize("width", [16, 40, 60, 80])
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_neither_colours_nor_widens_the_terminal(name: str, width: int) -> None:
    for details in (False, True):
        table = terminal.table(_run(name), width=width, details=details)
        assert max(cell_len(line) for line in table.splitlines()) <= width
        assert not set(table) & set("\u202e\u2066\u200f\x1b\x07\x00\u2028\r")
        table.encode()


def test_markup_in_a_name_stays_text_in_the_terminal() -> None:
    table = terminal.table(_run("[red]x[/]"), width=80)
    assert "Slowdown of the [red]x[/] relative to the fastest" in table
