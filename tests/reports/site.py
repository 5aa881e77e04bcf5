"""A small site made by hand: three runs of two machines, traps, a result of conform, and a matrix of same bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from adbench.catalog.discovery import catalog
from adbench.findings.conform.conformance import Conformance, ConformanceCell
from adbench.findings.conform.judgement import Fault
from adbench.findings.every_input.input_judgement import InputCurve, InputFault
from adbench.findings.every_input.input_sweep import InputSweep
from adbench.findings.same_bits.bits_matrix import BitsMatrix
from adbench.findings.same_bits.repetitions import BitDifference
from adbench.findings.same_bits.same_bits import BitRow, SameBits
from adbench.model.record import Run
from adbench.reports.site.archive import archive
from adbench.reports.site.folder import SiteFolder
from adbench.reports.site.pages import Site
from tests.reports import runs
from tests.reports.test_trap_map import CHECKED

RECORDS = [
    replace(runs.record(case, n, backend, seconds=seconds * n), control=runs.time(1e-6) if backend == "tape" else None)
    for case in ("matrix_product", "mine")
    for n in (10, 100)
    for backend, seconds in (("tape", 3e-6), ("jax", 1e-6), ("torch", 2e-6))
]
FIRST = runs.run(RECORDS, created="2026-01-01T10:00:00+00:00", settings={"label": "quiet <laptop>", "quick": True})
SECOND = replace(FIRST, created="2026-02-01T10:00:00+00:00")
OTHER = replace(FIRST, machine={"processor": "another one", "cores": 8})
TRAPS = replace(CHECKED, created="2026-03-01T10:00:00+00:00")
FAULT = Fault("sinc", "jax", "gradient", "nan", 0.0, {"x": 0.0}, "special", "x", "nan", "0.0", program="print(1)")
CONFORM = Conformance(
    {"jax": "0.10"},
    (
        ConformanceCell("sinc", "jax", "elementwise", checked=5, faults=[FAULT], own="jax.numpy.sinc" + "(x)" * 30),
        ConformanceCell("exp", "jax", "elementwise", checked=5),
    ),
)
OTHER_BITS = BitDifference("the value[1]", 37.4, 1.0, 1.5, "float64")
BITS = BitsMatrix(
    {"torch": "2.1", "jax": "0.10"},
    (
        SameBits("norm <b>", "torch", "2.1", (BitRow("repeat"), BitRow("batch", OTHER_BITS, changed="1 row"))),
        SameBits("norm <b>", "jax", "0.10", (BitRow("repeat"), BitRow("batch", reason="no batch"))),
    ),
    (("solve", "jax", "it refuses"),),
)

SWEEP = InputSweep(
    {"jax": "0.10"},
    ["bfloat16"],
    functions=1,
    judged=65_280,
    faults=[
        InputFault(
            "sinc", "jax", "bfloat16", "gradient", math.inf, 0.0, math.nan, 0.0, "rounding", {"rounding": 1},
            2, 1, 1, 65_280, [0.5, 1e9], program="print(1)",
        )
    ],
    right=[InputCurve("sinc", "jax", "bfloat16", "value", [0.5, -1.0])],
    refused=[("expi", "jax", "bfloat16", "no <result>")],
)  # fmt: skip


def write(folder: Path, found: Sequence[Run] = (FIRST, SECOND, OTHER, TRAPS), *conform: Conformance) -> Path:
    """Write the site of these runs."""
    made = archive([(f"run {k}", run) for k, run in enumerate(found)], catalog())
    site = Site(made, conform or [CONFORM], [SWEEP], BITS)
    target = SiteFolder(folder)
    for address, text in site.files():
        target.write(address, text)
    target.finish()
    return folder


class _Read(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag != "use":  # a drawing's own
            self.links += [named[key] or "" for key in ("href", "src") if key in named]
        self.ids |= {value for key, value in attrs if key == "id" and value}


def broken_links(folder: Path) -> list[str]:
    """The links of all pages that lead to no file below the folder, or to no element of it."""
    pages = {}
    for file in folder.rglob("*.html"):
        pages[file.resolve()] = read = _Read()
        read.feed(file.read_text("utf-8"))
    broken = []
    for file, read in pages.items():
        for link in read.links:
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            if folder.resolve() not in target.parents or not target.is_file():
                broken.append(f"{file.name}: {link}")
            elif anchor and target in pages and not {unquote(anchor), "folds"} & pages[target].ids:  # packed parts
                broken.append(f"{file.name}: {link}: no such anchor")
    return broken
