"""The plots: well-formed SVG in the page's colours, with honest axes, and nothing wrong drawn as if it were right."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from adbench.catalog import discovery
from adbench.model.record import Record
from adbench.reports.content.cells import Cells
from adbench.reports.figures import looks, panels, plots
from adbench.reports.html import page as html
from tests.reports import page, runs

SVG = "{http://www.w3.org/2000/svg}"


def _plots(records: list[Record]) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(text) for text in page.figures(html.render(runs.run(records)))]


def _plot(records: list[Record]) -> ElementTree.Element:
    """The small chart of the only case: the time of a gradient."""
    return _plots(records)[0]


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


def test_a_plot_says_in_words_what_it_shows() -> None:
    title, description = _plot(_right())[:2]
    assert (title.tag, title.text) == (f"{SVG}title", "quadratic. Gradient: time per call")
    assert (description.tag, description.text) == (
        f"{SVG}desc",
        "tape 1.00\u00a0µs at n = 1 to 100\u00a0µs at n = 100.",
    )


def test_one_size_is_a_row_of_dots_for_each_backend_with_its_name_and_figure() -> None:
    records = [
        runs.record(size=100, backend=name, seconds=seconds, word=word)
        for name, seconds, word in (
            ("slow_" + "ö" * 30, 3e-3, "right"),
            ("quick", 2e-6, "right"),
            ("off", 1e-6, "blind"),
        )
    ]
    found = page.read(html.render(runs.run(records))).one("section", id="cases")
    assert not found.all("ul", class_="legend"), "the chart has the names"
    assert found.one("p", class_="shows").words == "quick is fastest at n = 100."
    plot = _plot(records)
    texts = [text.text for text in plot.iter(f"{SVG}text")]
    assert "Gradient: time per call, n = 100" in texts
    rows = [group[0].text for group in plot.iter(f"{SVG}g") if group.attrib.get("class") == "row"]
    assert rows == ["off", "1.00\u00a0µs", "quick", "2.00\u00a0µs", r"slow_\xf6…\xf6\xf6", "3.00\u00a0ms"]
    assert len(_series(plot, "ranked")) == 2
    assert len(_series(plot, "unranked")) == 1


def test_a_case_has_charts_of_time_memory_and_preparation() -> None:
    records = _right(memory=runs.memory()) + [runs.record(size=n, operator="value", seconds=1e-9 * n) for n in (1, 10)]
    titles = [(plot[0].text or "").partition(". ")[2] for plot in _plots(records)]
    assert titles == [
        "Gradient: time per call",
        "Value: time per call",
        "Memory of a call, resident peak",
        "Preparation: time until the first result",
    ]


def test_a_chart_draws_the_eight_fastest_and_the_script_has_all() -> None:
    records = [r for k in range(11) for r in _right(f"b{k}")]
    records = [replace(r, time=runs.time(1e-6 * (11 - int(r.job.backend[1:])))) for r in records]
    text = html.render(runs.run(records))
    found = page.read(text)
    legend = [li.words for li in found.one("section", id="cases").one("ul", class_="legend").all("li")]
    assert legend == [f"b{k}" for k in range(10, 2, -1)]
    assert len(_series(_plot(records))) == panels.MOST_SERIES == 8
    data = json.loads(gzip.decompress(base64.b64decode(found.one("script", id="charts").text)))
    assert len(data["cases"]["0"]["charts"][0]["series"]) == len(data["looks"]) == 11


def test_a_wrong_result_is_not_drawn() -> None:
    wrong = [runs.record(size=n, backend="liar", status="wrong") for n in (1, 10, 100)]
    plot = _plot([*_right(), *wrong])
    assert len(_series(plot)) == 1
    assert (
        "liar: wrong"
        in page.read(html.render(runs.run([*_right(), *wrong])))
        .one("section", id="cases")
        .one("p", class_="left-out")
        .words
    )


@pytest.mark.parametrize("word", ["approximate", "verified", "blind", "inconclusive"])
def test_what_is_not_ranked_is_hollow_and_on_no_plain_line(word: str) -> None:
    plot = _plot([*_right(), *_right("other", word=word)])
    (other,) = (group for group in _series(plot) if "unranked" in group.attrib["class"].split())
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
    plot = _plot(records)
    assert [len(list(group.iter(f"{SVG}use"))) for group in _series(plot, "ranked")] == [2, 2]
    assert [len(list(group.iter(f"{SVG}use"))) for group in _series(plot, "unranked")] == [1]


def test_a_line_does_not_bridge_a_size_without_a_figure() -> None:
    records = [runs.record(size=n, seconds=1e-6 * n, status="failed" if n == 100 else "ok") for n in (1, 10, 100, 1000)]
    plot = _plot(records)
    assert [len(list(group.iter(f"{SVG}use"))) for group in _series(plot, "ranked")] == [2, 1]


def test_no_growth_is_left_out_of_a_logarithmic_plot_and_said() -> None:
    records = [runs.record(size=n, memory=runs.memory(1024.0, 0.0 if n == 10 else 4096.0)) for n in (1, 10, 100)]
    found = page.read(html.render(runs.run(records)))
    assert page.cell(found, "memory", "quadratic", "10", "tape").words == "no growth"
    caption = found.one("section", id="cases").one("p", class_="left-out").words
    assert "no figure above 0 in “Memory of a call, resident peak”: tape at n = 10" in caption


def test_the_spread_is_drawn() -> None:
    plot = _plot(_right(spread=0.3))
    groups = [group.attrib.get("class", "") for group in plot.iter(f"{SVG}g")]
    (band,) = (group for group in plot.iter(f"{SVG}g") if "band" in group.attrib.get("class", "").split())
    assert band[0].attrib["opacity"] == "0.1"
    assert any("spread" in name for name in groups)


def test_memory_is_drawn_by_the_first_method_that_has_a_figure_and_never_for_null() -> None:
    def drawn(python: float | None, resident: float | None) -> list[str]:
        records = [runs.record(size=n, memory=runs.memory(python, resident, "none")) for n in (1, 10)]
        charts = panels.charts_of(Cells(runs.run(records)), 0)
        return [chart.title for chart in charts if chart.quantity == "bytes"]

    assert drawn(1.0, 4096.0) == ["Memory of a call, resident peak"]
    assert drawn(1.0, None) == ["Memory of a call, python-visible peak"]
    assert drawn(None, None) == drawn(0.0, 0.0) == []


def test_a_panel_gives_the_same_bytes_in_another_process() -> None:
    code = (
        "from adbench.reports.figures import plots as f\n"
        "points = f.DataPoint(1, 1e-6, 9e-7, 2e-6), f.DataPoint(10, 1e-5, 1e-5, 1e-5)\n"
        "p = f.Panel('k', 'T', 'seconds', (f.Series(9, f.Look(9, 3, 1), points),))\n"
        "with f.style(): print(f.draw(p, (1, 10), (1e-7, 1e-4)))\n"
    )
    environment = {"PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(code, {})
    assert done.stdout == here.getvalue()
    assert "T" in done.stdout


def test_reports_load_without_matplotlib() -> None:
    code = "import sys, adbench.reports.html.page, adbench.reports.text.terminal; sys.exit('matplotlib' in sys.modules)"
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
    ticks = plots.ticks(low, low * factor)
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
        ((1000, 2000, 2600, 8000), ["1\u202f000", "8\u202f000"]),
    ],
)
def test_the_sizes_stand_on_the_axis_where_they_fit(sizes: tuple[int, ...], labels: list[str]) -> None:
    assert [label for _, label in plots.x_ticks(sizes)] == labels


def test_no_two_known_backends_look_alike_and_a_library_has_one_colour() -> None:
    assert not [(a, b) for a, b in combinations(looks.KNOWN, 2) if looks.look(a) == looks.look(b)]
    assert looks.look("tape").colour != looks.look("tape_compiled").colour  # these two are compared most
    for library in ("tape_", "jax", "torch", "casadi", "stan_math"):
        family = [name for name in looks.KNOWN if name.startswith(library) and not name.startswith("tape_compiled")]
        assert len(family) > 2
        assert len({looks.look(name).colour for name in family}) == 1
    assert len(plots.MARKERS) == looks.MARKERS
    assert len(plots.DASHES) == looks.DASHES


def test_every_backend_that_comes_with_adbench_has_a_look_of_its_own() -> None:
    assert set(discovery.catalog().backends) <= set(looks.KNOWN)


@pytest.mark.parametrize("name", ["mine", "", "jax_mine", "\udcff", "x" * 5000])
def test_the_look_of_a_users_backend_follows_from_its_name_alone(name: str) -> None:
    found = looks.look(name)
    assert (found.colour < len(looks.COLOURS), found.marker < looks.MARKERS, found.dashes < looks.DASHES) == (True,) * 3
    assert looks.look("jax_mine").colour == looks.look("jax").colour


@pytest.mark.parametrize("paper", [("#fdfdfb", 0), ("#15181b", 1)], ids=["light", "dark"])
def test_every_colour_stands_out_from_its_paper(paper: tuple[str, int]) -> None:
    for pair in looks.COLOURS:
        assert _contrast(pair[paper[1]], paper[0]) >= 3


def _contrast(a: str, b: str) -> float:
    """By the rules of WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    least, most = sorted((luminance(a), luminance(b)))
    return (most + 0.05) / (least + 0.05)
