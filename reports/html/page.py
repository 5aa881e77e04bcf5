"""A run as one HTML page: complete in itself, no request to anywhere, the same bytes for the same run.

The page's policy (Content-Security-Policy in a meta element) allows its own style sheet and its own script, by hash,
and nothing else: a script in a hostile name would not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adbench.doctor.findings import in_words
from adbench.model.record import Run
from adbench.version import __version__

from ..content import formatting, headline, heat_map, matrices, operator_support, sections, standings
from ..content.answer.accuracy import accuracy_rows
from ..content.answer.in_words import fastest_in_words, summary_in_words
from ..content.cells import Cells
from ..content.footnotes import Footnotes
from ..content.heat_map import HeatMap
from ..content.traps import trap_map
from ..figures import looks, panels, plots
from . import embedding

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NO_VERSION = f"{formatting.MISSING} (no library, or no version known)"
SHOWN_SETTINGS = (
    "label",
    "quick",
    "rigorous",
    "threads",
    "more_threads",
    "dtype",
    "device",
    "transfers",
    "launches",
    "rounds",
    "margin",
)
"""What a reader of a run asks for; the others are folded."""
LARGE = 300
"""From so many cells on, the tables are packed and unfold by script: forty backends would make 100,000 elements."""
MOST_NOTES = 12
"""Of the reasons that are always in sight; the others are folded away."""
TEMPLATES = Path(__file__).with_name("templates")


class Folds:
    """The parts of a page that open on demand: in place, or packed if the page is `large`, for its script to unfold."""

    def __init__(self, *, large: bool) -> None:
        self.large = large
        self._packed: dict[str, str] = {}

    def keep(self, key: str, markup: Markup) -> Markup:
        """What the page has in this place."""
        if not self.large:
            return markup
        self._packed[key] = str(markup)
        return type(markup)("")

    @property
    def packed(self) -> str:
        """What is packed so far, in one text: the page ends in it."""
        return embedding.packed(embedding.plain_json(self._packed))


def render(run: Run, home: str = "") -> str:
    """The page. Every valid Run has one: an empty one, one of failures only, one full of hostile names.

    home   the address of the site that the page belongs to, "" for none
    """
    from markupsafe import Markup

    cells = standings.arranged(Cells(run))
    footnotes = Footnotes(cells)
    data, all_rounds = embedding.embedded(run)
    offers = operator_support.offers(cells)
    folds = Folds(large=cells.total * len(cells.backends) > LARGE)
    figures = panels.case_figures(cells, small=folds.large)
    found = headline.headline(cells)
    context = {
        "run": run,
        "home": home,
        "cells": cells,
        "headline": found,
        "alarms": headline.alarms(cells),
        "title": headline.title(cells),
        "sources": headline.sources(cells),
        "maps": _maps(cells, footnotes),
        "not_installed": list(run.not_installed),
        "install": headline.install_command(run),
        "figures": figures,
        "titles": [fastest_in_words(cells, case) for case in cells.subjects],
        "drawn": [b for k, b in enumerate(cells.backends) if any(k in figure.in_legend for figure in figures.values())],
        "scores": sorted(found.scores, key=lambda score: cells.backends.index(score.backend)),
        **{name: sections.table(rows, cells, footnotes) for name, rows in sections.TABLES.items()},
        "accuracy": sections.table(accuracy_rows, cells, footnotes),
        "matrices": matrices.matrices(cells),
        "rates": {device: in_words(of) for device, of in run.rates.items()},
        "without_memory": sections.without_memory(cells),
        "batch_points": sections.batch_points_of(cells),
        "device": headline.device_of(run),
        "device_wins": headline.wins_of_devices(cells),
        "traps": trap_map.trap_map(cells),
        "operators": [op for op in cells.operators if any(key[1] == op for key in offers)],
        "offers": offers,
        "footnotes": footnotes,
        "most_notes": MOST_NOTES,
        "machine": machine_facts(run),
        "versions": versions(run),
        "settings": settings(run),
        "internal_settings": settings(run, internal=True),
        "disturbed": _disturbed(run),
        "folds": folds,
        # Ours, not the run's: these, the figures, sheets and scripts are the only texts that are not escaped.
        "data": Markup(data),
        "all_rounds": all_rounds,
        "names_json": names_json(cases=cells.subjects, backends=cells.backends),
        "charts": Markup(_charts(cells, figures)),
    }
    return rendered("page.html", ["trap_map.css"], ["tables.js", "page.js", "charts.js"], **context)


def _maps(cells: Cells, footnotes: Footnotes) -> dict[str, tuple[str, HeatMap]]:
    """Name -> the verdict in words and the heat map: of all backends, and without adbench's own engine where the run
    has it and others."""
    others = standings.arranged(cells.of_role("library", "comparison"))
    found = {"every": (summary_in_words(cells), heat_map.heat_map(cells, footnotes))}
    if others.backends and len(others.backends) < len(cells.backends):
        words = summary_in_words(cells, without_own=True)
        found["without-own"] = (words, heat_map.heat_map(others, footnotes))
    return found


def machine_facts(run: Run) -> list[tuple[str, str]]:
    """What is known of the machine, in words; the unknown facts are one line."""
    known = {name: value for name, value in run.machine.items() if value is not None}
    unknown = ", ".join(_words(name) for name in run.machine if name not in known)
    return [(_words(name), fact(name, value)) for name, value in known.items()] + [("unknown", unknown)] * bool(unknown)


def _words(name: str) -> str:
    """The name of a fact or setting: "memory_limit_bytes" -> "memory limit"; the value has the unit."""
    return name.removesuffix("_bytes").removesuffix("_ns").removesuffix("_seconds").replace("_", " ")


def versions(run: Run) -> list[tuple[str, str]]:
    """Each backend with the version of the library behind it, or the words for none."""
    none = {name: NO_VERSION if run.role_of(name) == "library" else "built in" for name in run.versions}
    return [(name, setting(run.library_version(name) or none[name])) for name in none]


def _charts(cells: Cells, figures: dict[int, panels.CaseFigure]) -> str:
    """What the script draws from: the backends' looks, the shapes of the markers, the figures of the cases."""
    every = [looks.look(backend) for backend in cells.backends]
    markers = [[[round(4 * x, 2), round(-4 * y, 2)] for x, y in corners] for corners in plots.MARKERS]
    found = {
        "looks": [[look.colour, look.marker, look.dashes] for look in every],
        "markers": [" ".join(f"{x:g},{y:g}" for x, y in corners) for corners in markers],
        "shown": panels.MOST_SERIES,
        "cases": {str(number): figure.data for number, figure in figures.items()},
    }
    return embedding.packed(embedding.plain_json(found))


def names_json(**names: Sequence[str]) -> Markup:
    """What the page's filters look through, cases and backends, in the order of the numbers that its lines carry."""
    from markupsafe import Markup

    return Markup(embedding.plain_json({kind: [*map(formatting.visible, of)] for kind, of in names.items()}))


def settings(run: Run, *, internal: bool = False) -> list[tuple[str, str]]:
    """The settings of the run that its reader asks for, or the others, with the time of the clock's own loop."""
    asked = {name: value for name, value in run.settings.items() if name != "seed" and value not in (None, False)}
    shown = [(name, asked.get(name)) for name in (SHOWN_SETTINGS if not internal else asked) if name in asked]
    found = [(_words(n), fact(n, v)) for n, v in shown if not internal or n not in SHOWN_SETTINGS]
    if not internal:
        return [("seed", setting(run.seed)), *found]
    overhead = run.loop_overhead_ns
    return [
        *found,
        ("clock overhead of a call", formatting.MISSING if overhead is None else formatting.seconds(overhead * 1e-9)),
        ("reference backend, measured twice", formatting.visible(run.reference_backend or formatting.MISSING)),
    ]


def _disturbed(run: Run) -> tuple[int, int, int, int]:
    """(flagged rounds, all rounds, launches whose warm-up had not come to rest, all launches)."""
    times = [record.time for record in run.records if record.time]
    launches = [launch for time in times for launch in time.launches]
    rounds = sum(len(launch.rounds) for launch in launches)
    return sum(t.disturbed for t in times), rounds, sum(t.unsteady for t in times), len(launches)


def rendered(template: str, sheets: Sequence[str], scripts: Sequence[str], **context: Any) -> str:
    """A page that is complete in itself: with these sheets and scripts, and the policy that allows no others."""
    from markupsafe import Markup

    css, script = style(*sheets), asset(*scripts)
    own = {"style": Markup(css), "script": Markup(script), "policy": policy(css, script), "made_by": __version__}
    return environment().get_template(template).render(own | context)


def policy(css: str, script: str) -> str:
    """The Content-Security-Policy that allows exactly this style sheet and this script."""
    allowed = f"style-src '{_hash(css)}'; script-src '{_hash(script)}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def style(*more: str) -> str:
    """The style sheet of every page, with the colours of the libraries, and the sheets of these names after it."""
    return looks.style_rules() + asset("page.css", *more)


def asset(*names: str) -> str:
    """Files of the templates' folder, one after the other."""
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


@cache
def environment() -> Environment:
    """Jinja's, escaping everything that is not said to be ours, with the filters that the templates use."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        # Long names may be broken after an underscore.
        "breakable": lambda text: Markup(escape(text).replace("_", Markup("_<wbr>"))),
        "byte_size": formatting.byte_size,
        "count": formatting.count,
        "moment": formatting.moment,
        "plural": formatting.plural,
        "ratio": formatting.ratio,
        # A line that ends within an interval is hard to read.
        "times": lambda found: Markup('<span class="nowrap">{}</span>').format(formatting.times(found)),
        "percent": formatting.percent,
        "power": formatting.power,
        "seconds": formatting.seconds,
        "slowdown": formatting.slowdown,
        "short": formatting.short,
        "sizes": formatting.sizes,
        "visible": formatting.visible,
        "lines": lambda text: formatting.visible(text, keep="\n\t"),
        "setting": setting,
        "svg": Markup,
    }
    environment.globals |= {
        "OUTCOMES": formatting.OUTCOMES,
        "MARKERS": plots.MARKERS,
        "look": looks.look,
        "OWN": formatting.OWN,
    }
    return environment


def fact(name: str, value: str | int | float | bool | None) -> str:
    """A setting or fact in the unit that its name ends in."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("_bytes"):
            return formatting.byte_size(value)
        if name.endswith("_ns"):
            return formatting.seconds(value * 1e-9)
        if name.endswith("_seconds"):
            return formatting.seconds(value)
        if name == "margin":
            return formatting.percent(value)
    return setting(value)


def setting(value: str | int | float | bool | None) -> str:
    """A setting or a fact of the machine as text; None is a dash, never 0."""
    if value is None:
        return formatting.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return formatting.count(value)
    return formatting.visible(str(value))
