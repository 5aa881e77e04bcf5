"""An audited suite as a file: a page, JSON, or JUnit XML in which a test that misses 10 % is a failure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from adbench.audit.audited import NOT_TRIED, AuditedTest, document, ranked, sentences
from adbench.audit.spoils import SPOILS
from adbench.model.atomic_file import refuse_file, write_whole
from adbench.model.errors import UsageError

from ..content import formatting
from ..html.page import rendered
from ..text.terminal.audit import LEGEND, MARKS


def junit(tests: Sequence[AuditedTest]) -> str:
    """JUnit XML: a failure for each test that passes with gradients 10 % too large, skipped for one set aside."""
    suite = ElementTree.Element("testsuite", name="adbench audit", tests=str(len(tests)))
    failures = 0
    for test in tests:
        names = {"classname": formatting.visible(test.file), "name": formatting.visible(test.test)}
        found = ElementTree.SubElement(suite, "testcase", names)
        if test.set_aside:
            ElementTree.SubElement(found, "skipped", message=formatting.visible(test.set_aside))
        elif "ten_percent" in test.missed:
            failures += 1
            message = f"passes with these errors of the gradient: {', '.join(test.missed)}"
            ElementTree.SubElement(found, "failure", message=message).text = formatting.visible(
                "; ".join(test.tolerances), keep="\n"
            )
    suite.set("failures", str(failures))
    ElementTree.SubElement(suite, "system-out").text = " ".join(sentences(tests))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def page(tests: Sequence[AuditedTest]) -> str:
    """A line for each gradient test, first those that notice least; complete in itself."""
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
    return rendered("audit.html", ["conform.css"], ["tables.js"], **facts)


WRITERS: Mapping[str, Callable[[Sequence[AuditedTest]], str]] = {
    ".html": page,
    ".json": lambda tests: json.dumps(document(tests), indent=1) + "\n",
    ".xml": junit,
}
"""The suffix of a file, and what writes it."""


def refuse(file: Path) -> None:
    """Raise UsageError for a file that no format of an audit ends like, or that cannot be written: before the work."""
    if file.suffix not in WRITERS:
        raise UsageError(f"{file}: the report of an audit ends in {formatting.listed(WRITERS)}; give such a name")
    refuse_file(file)


def write(tests: Sequence[AuditedTest], file: Path) -> None:
    """Write the audit to a file, in the format of its suffix. Raises UsageError if that is not possible."""
    write_whole(file, WRITERS[file.suffix](tests))


def read(file: Path) -> list[AuditedTest]:
    """The tests of a JSON file that `write` wrote."""
    return [AuditedTest.of(plain) for plain in json.loads(file.read_text("utf-8"))["tests"]]
