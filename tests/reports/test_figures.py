"""The plots: well-formed SVG in the page's colours, with honest axes, and nothing wrong drawn as if it were right."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from adbench.model.record import Record
from reports.content.cells import Cells
from reports.figures import panels, plots
from reports.html import page as html
from tests.reports import page, runs

SVG = "{http://www.w3.org/2000/svg}"


def _plots(records: list[Record]) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(text) for text in page.figures(html.render(runs.run(records)))]


def _series(plot: ElementTree.Element, *classes: str) -> list[ElementTree.Element]:
    """The lines (not the bands and whiskers) whose group has all the classes."""
    found = []
    for group in plot.iter(f"{SVG}g"):
        names = set(group.attrib.get("class", "").split())
        if {"series", *classes} <= names and not names & {"band", "spread"}:
            found.append(group)
    return found


def _right(backend: str = "tape", **changes: object) -> list[Record]:
    return [runs.record(size=n, backend=backend, seconds=1e-6 * n, **changes) for n in (1, 10, 100)]  # type: ignore[arg-type]


def test_a_plot_takes_its_colours_from_the_page() -> None:
    plots = _plots(_right())
    assert plots
    for element in (element for plot in plots for element in plot.iter()):
        assert "style" not in element.attrib
        for name in ("fill", "stroke"):
            assert element.attrib.get(name, "none") in {"none", "currentColor"}


def test_a_plot_says_in_words_what_it_is() -> None:
    (plot,) = _plots(_right())
    title, description = plot[0], plot[1]
    assert (title.tag, title.text) == (f"{SVG}title", "Gradient, time per call")
    assert (description.tag, description.text) == (
        f"{SVG}desc",
        "1 line, n from 1 to 100, both axes logarithmic. The tables hold the numbers.",
    )


def test_value_and_gradient_stand_side_by_side_on_one_scale() -> None:
    records = _right() + [runs.record(size=n, operator="value", seconds=1e-9 * n) for n in (1, 10, 100)]
    plots = _plots(records)
    labels = [[t.text for t in plot.iter(f"{SVG}text") if "s" in (t.text or "").split("\u00a0")[-1]] for plot in plots]
    assert len(plots) == 2
    assert [t for t in labels[0] if t and "\u00a0" in t] == [t for t in labels[1] if t and "\u00a0" in t]


def test_a_wrong_result_is_not_drawn() -> None:
    wrong = [runs.record(size=n, backend="liar", status="wrong") for n in (1, 10, 100)]
    (plot,) = _plots([*_right(), *wrong])
    assert len(_series(plot)) == 1
    assert "liar: wrong" in page.read(html.render(runs.run([*_right(), *wrong]))).one("figcaption").words


@pytest.mark.parametrize("word", ["approximate", "verified", "blind", "inconclusive"])
def test_what_is_not_ranked_is_hollow_and_on_no_plain_line(word: str) -> None:
    (plot,) = _plots([*_right(), *_right("other", word=word)])
    (other,) = _series(plot, "s1")
    assert "unranked" in other.attrib["class"].split()
    line = other.find(f"{SVG}path")
    assert line is not None
    assert "stroke-dasharray" in line.attrib
    marker = next(other.iter(f"{SVG}use"))
    assert marker.attrib.get("fill-opacity") == "0"


def test_a_line_does_not_bridge_a_size_that_came_out_differently() -> None:
    records = [
        runs.record(size=n, seconds=1e-6 * n, word="inconclusive" if n == 100 else "right")
        for n in (1, 10, 100, 1000, 10000)
    ]
    (plot,) = _plots(records)
    assert [len(list(group.iter(f"{SVG}use"))) for group in _series(plot, "ranked")] == [2, 2]
    assert [len(list(group.iter(f"{SVG}use"))) for group in _series(plot, "unranked")] == [1]


def test_a_line_does_not_bridge_a_size_without_a_figure() -> None:
    records = [runs.record(size=n, seconds=1e-6 * n, status="failed" if n == 100 else "ok") for n in (1, 10, 100, 1000)]
    (plot,) = _plots(records)
    assert [len(list(group.iter(f"{SVG}use"))) for group in _series(plot, "ranked")] == [2, 1]


def test_no_growth_is_left_out_of_a_logarithmic_plot_and_said() -> None:
    records = [runs.record(size=n, memory=runs.memory(1024.0, 0.0 if n == 10 else 4096.0)) for n in (1, 10, 100)]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "resident peak", "quadratic", "10", "tape").words == "no growth"
    caption = found.one("section", id="memory").one("figcaption").words
    assert "no figure above 0 in “Resident peak”: tape at n = 10" in caption


def test_the_spread_is_drawn() -> None:
    (plot,) = _plots(_right(spread=0.3))
    groups = [group.attrib.get("class", "") for group in plot.iter(f"{SVG}g")]
    assert any("band" in name for name in groups)
    assert any("spread" in name for name in groups)


def test_memory_is_drawn_from_two_sizes_on_and_never_for_null() -> None:
    def drawn(sizes: tuple[int, ...], resident: float | None) -> list[str]:
        records = [runs.record(size=n, memory=runs.memory(None, resident, "none")) for n in sizes]
        found = panels.memory_figures(Cells(runs.run(records)))
        return [text for figure in found for text in figure.svgs]

    assert not drawn((1,), 4096.0)
    assert not drawn((1, 10), None)
    assert len(drawn((1, 10), 4096.0)) == 1


def test_a_panel_gives_the_same_bytes_in_another_process() -> None:
    code = (
        "from reports.figures import plots as f\n"
        "points = f.Point(1, 1e-6, 9e-7, 2e-6), f.Point(10, 1e-5, 1e-5, 1e-5)\n"
        "p = f.Panel('k', 'T', 'seconds', (f.Series(9, points),))\n"
        "with f.style(): print(f.draw(p, (1, 10), (1e-7, 1e-4)))\n"
    )
    results = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout
        for environment in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "0"})
    }
    assert len(results) == 1
    assert "T" in results.pop()


def test_reports_load_without_matplotlib() -> None:
    code = "import sys, reports.html.page, reports.text.terminal; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([1.2e-6, 1.9e-6], 5e-7, 5e-6), ([1e-12, 1e12], 1e-12, 1e12), ([5.0], 1, 10), ([3e-9, 4e-3], 2e-9, 5e-3)],
)
def test_axes_end_in_round_numbers_and_span_a_decade(values: list[float], low: float, high: float) -> None:
    assert plots.y_limits(values) == pytest.approx((low, high))


@pytest.mark.parametrize("low", [1e-12, 2e-9, 5e-6, 1.0])
@pytest.mark.parametrize("factor", [10.0, 25.0, 1e3, 1e24])
def test_an_axis_has_between_two_and_nine_ticks_inside_its_limits(low: float, factor: float) -> None:
    ticks = plots.y_ticks(low, low * factor)
    assert 2 <= len(ticks) <= 9
    assert low * 0.99 <= ticks[0] < ticks[-1] <= low * factor * 1.01


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [
        ((1,), ["1"]),
        ((1, 10, 100), ["1", "10", "100"]),
        ((2, 8, 32), ["2", "8", "32"]),
        ((1, 1_000_000), ["1", "10⁶"]),
        (tuple(range(1, 101)), ["1", "10", "100"]),
        ((50, 51, 52, 53, 99), ["50", "99"]),
    ],
)
def test_the_sizes_stand_on_the_axis_where_they_fit(sizes: tuple[int, ...], labels: list[str]) -> None:
    assert [label for _, label in plots.x_ticks(sizes)] == labels
