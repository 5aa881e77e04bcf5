"""A run as JUnit XML, which every CI reads: a suite for each backend, a test for each cell."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from adbench.model.record import Record, Run

from ..content.cells import outcome
from ..content.formatting import OUTCOMES

# XML 1.0 has no way to write these, not even escaped (section 2.2, Char).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    """The XML text. Wrong is a failure, a crash an error, what is unsupported or skipped is skipped with its reason.

    An interrupted run has one more suite, with an error that counts the unchecked cells. So has a run that judged
    nothing of a selected part, with the reason.
    """
    root = ElementTree.Element("testsuites", name="adbench")
    for backend in dict.fromkeys(record.job.backend for record in run.every_record):
        suite = ElementTree.SubElement(root, "testsuite", name=_text(backend))
        counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        for record in run.every_record:
            if record.job.backend == backend:
                counts["tests"] += 1
                kind = _add(suite, record)
                if kind:
                    counts[kind] += 1
        for name, count in counts.items():
            suite.set(name, str(count))
    faults = {"every cell is checked": run.interruption, "every selected part is checked": "; ".join(run.unjudged)}
    if faults := {name: fault for name, fault in faults.items() if fault}:
        errors = str(len(faults))
        counted = {"tests": errors, "failures": "0", "errors": errors, "skipped": "0"}
        suite = ElementTree.SubElement(root, "testsuite", counted, name="adbench")
        for name, fault in faults.items():
            test = ElementTree.SubElement(suite, "testcase", classname="adbench", name=name)
            ElementTree.SubElement(test, "error", message=_text(str(fault)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(suite: ElementTree.Element, record: Record) -> str | None:
    """Add the cell's test; the name of the count it belongs to, None where it passed."""
    job = record.job
    threads = f", threads={job.threads}" if job.threads else ""
    name = f"{job.operator}[n={job.size}, seed={job.seed}{threads}]"
    test = ElementTree.SubElement(suite, "testcase", classname=_text(f"{job.backend}.{job.case}"), name=_text(name))
    word, reason = outcome(record)
    if record.outcome.exit_code == 1:
        kind, count = "failure", "failures"
    elif record.outcome.is_fault:
        kind, count = "error", "errors"
    elif record.outcome.is_measured:
        return None
    else:
        kind, count = "skipped", "skipped"
    element = ElementTree.SubElement(test, kind, message=_text(reason or OUTCOMES[word].label))
    element.text = _text("\n".join(filter(None, (record.reproduce, record.stderr)))) or None
    return count


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
