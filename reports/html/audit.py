"""The page of `adbench audit`: a line for each gradient test, first those that notice least."""

from __future__ import annotations

from collections.abc import Sequence

from adbench.audit.audited import NOT_TRIED, AuditedTest, ranked, sentences
from adbench.audit.spoils import SPOILS

from ..text.terminal.audit import LEGEND, MARKS
from . import page


def render(tests: Sequence[AuditedTest]) -> str:
    """The page, complete in itself."""
    judged = ranked(tests)
    facts = {
        "title": f"What {len(judged)} gradient tests notice",
        "sentences": sentences(tests),
        "legend": LEGEND,
        "labels": [spoil.label for spoil in SPOILS],
        "lines": [
            (test, [MARKS[test.answers.get(spoil.name, NOT_TRIED)] for spoil in SPOILS], "ten_percent" in test.missed)
            for test in judged
        ],
        "aside": [test for test in tests if test.set_aside],
    }
    return page.rendered("audit.html", ["conform.css"], ["tables.js"], **facts)
