"""A run as JUnit XML: what every CI makes of it."""

from xml.etree import ElementTree

from adbench.reports.formats.junit import render
from tests.reports import runs


def test_each_cell_is_a_test_of_its_backends_suite_with_what_became_of_it() -> None:
    run = runs.run(
        [
            runs.record(backend="good"),
            runs.record(backend="bad", status="wrong", reason="1 of 3 wrong"),
            runs.record(backend="bad", size=20, status="crashed", reason="died of SIGSEGV", stderr="Fatal"),
            runs.record(backend="shy", status="unsupported", reason="no cholesky"),
            runs.record(backend="shy", size=20, status="known", reason="nan: as everybody knows"),
            runs.record(backend="shy", size=30, status="surprise", reason="right, but"),
        ]
    )
    root = ElementTree.fromstring(render(run))
    counts = {
        suite.get("name"): [int(suite.get(what, "-1")) for what in ("tests", "failures", "errors", "skipped")]
        for suite in root
    }
    assert counts == {"good": [1, 0, 0, 0], "bad": [2, 1, 1, 0], "shy": [3, 0, 0, 3]}
    messages = {element.tag: element.get("message") for element in root.iter() if element.get("message")}
    assert messages["error"] == "died of SIGSEGV"
    assert root.find(".//error").text == "Fatal"  # type: ignore[union-attr]  # it is there, as the counts say


def test_names_that_xml_cannot_write_do_not_break_it() -> None:
    hostile = "<script>\x00\x1b[31m\ud800 & \"'"
    root = ElementTree.fromstring(render(runs.run([runs.record(case=hostile, status="wrong", reason=hostile)])))
    assert "<script>" in root.find(".//failure").get("message")  # type: ignore[union-attr]  # it is there


def test_a_run_of_nothing_is_an_empty_report() -> None:
    assert list(ElementTree.fromstring(render(runs.run()))) == []
