"""The pages of the site, one after the other: each as its address and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adbench.findings.conform.conformance import Conformance
from adbench.findings.every_input.input_sweep import InputSweep
from adbench.findings.same_bits.bits_matrix import BitsMatrix
from adbench.version import __version__

from ..content import formatting
from ..content.footnotes import Footnotes
from ..content.traps import trap_map
from ..content.traps.trap_map import TrapMap
from ..figures import plots
from ..html import conform, embedding, input_page, over_time, page
from . import addresses, page_facts
from .archive import Archive, Stored

POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; base-uri 'none'; form-action 'none'"
"""Only files of the site: no script in a hostile name would run. On a disk 'self' is nothing, so `file:` is named."""


class Site:
    """All pages of an archive, of results of `adbench conform`, also with --every-input (sweeps), and of same bits."""

    def __init__(
        self,
        archive: Archive,
        conformances: Sequence[Conformance],
        sweeps: Sequence[InputSweep] = (),
        bits: BitsMatrix | None = None,
    ) -> None:
        self.archive, self.conformances, self.sweeps, self.bits = archive, conformances, sweeps, bits
        self.traps: TrapMap | None = trap_map.trap_map(archive.merged)
        self.footnotes = Footnotes(archive.merged)

    @property
    def count(self) -> int:
        """How many files `files` gives."""
        machines = self.archive.machines
        own = len(self.archive.cases) + len(self.archive.merged.backends) + len(self.archive.runs) + len(machines)
        examined = len(self.conformances) + len(self.sweeps) + 2 * (self.bits is not None)
        return 5 + own + sum(len(of) > 1 for of in machines.values()) + examined

    def files(self) -> Iterator[tuple[str, str]]:
        """(address, text) of each file, made one after the other: all of them together may be large."""
        archive = self.archive
        yield "style.css", page.style("trap_map.css", "conform.css", "site.css")
        yield "site.js", page.asset("tables.js", "site.js")
        yield "search-index.js", f"const INDEX = {embedding.plain_json(self._index())};\n"
        yield ".nojekyll", ""
        yield "index.html", self._start()
        for backend in archive.merged.backends:
            about = page_facts.of_backend(archive, backend, self.traps, self.footnotes)
            yield self._page(addresses.page("backends", backend), "site_backend.html", backend, about=about)
        with plots.style():
            for case in archive.cases:
                about = page_facts.of_case(archive, case)
                yield self._page(addresses.page("cases", case), "site_case.html", case, about=about)
        for machine, stored in archive.machines.items():
            over_runs = addresses.page("machines", f"{machine}-over-time") if len(stored) > 1 else ""
            facts = {"machine": machine, "stored": stored, "over_time": over_runs}
            title = _machine_title(machine, stored)
            yield self._page(addresses.page("machines", machine), "site_machine.html", title, **facts)
            if over_runs:
                named = [(_run_title(one), one.run) for one in stored]
                yield over_runs, over_time.render(named, home="../index.html")
        for one in archive.runs:
            yield addresses.page("runs", one.identity), page.render(one.run, home="../index.html")
        for found in self.conformances:
            (library,) = found.libraries
            examined = conform.facts(found)
            address, title = addresses.conform_page(library, found.precision), examined.pop("title")
            yield self._page(address, "site_conform.html", title, heading=title, **examined)
        for sweep in self.sweeps:
            yield addresses.every_input_page(sweep.libraries), input_page.render(sweep, home="../index.html")

        if self.bits is not None:
            yield addresses.SAME_BITS_DATA, embedding.plain_json(self.bits.to_plain()) + "\n"
            facts = page_facts.of_same_bits(self.bits)
            yield self._page(addresses.SAME_BITS, "site_same_bits.html", "Same bits", **facts)

    def _page(self, address: str, template: str, title: str, **context: Any) -> tuple[str, str]:
        shared = {
            "addresses": addresses,
            "archive": self.archive,
            "machine_facts": page.machine_facts,
            "versions": page.versions,
            "settings": page.settings,
            "root": "../" * address.count("/"),
            "policy": POLICY,
            "title": f"{formatting.short(title, 60)} – adbench",
            "made_by": __version__,
            "has_traps": self.traps is not None,
            "conformances": self.conformances,
            "sweeps": self.sweeps,
            "has_bits": self.bits is not None,
        }
        return address, page.environment().get_template(template).render(shared | context)

    def _start(self) -> str:
        archive = self.archive
        families = list(dict.fromkeys(cell.family for found in self.conformances for cell in found.cells))
        examined = [(found, _shares(found, families)) for found in self.conformances]
        _, text = self._page(
            "index.html",
            "site_start.html",
            f"Speed and correctness of {formatting.plural(len(archive.merged.backends), 'backend')}",
            traps=self.traps,
            folds=page.Folds(large=False),
            families=families,
            examined=examined,
            machines=[(machine, _machine_title(machine, of), of) for machine, of in archive.machines.items()],
        )
        return text

    def _index(self) -> list[list[str]]:
        """[kind, name, further words, address] of each page that the search finds."""
        archive = self.archive
        run = archive.merged.findings.run
        found = [["backend", name, "", addresses.page("backends", name)] for name in archive.merged.backends]
        found += [
            ["case", name, f"{archive.family(name)} {run.cases.get(name, '')}"[:200], addresses.page("cases", name)]
            for name in archive.cases
        ]
        found += [
            ["machine", _machine_title(machine, of), machine, addresses.page("machines", machine)]
            for machine, of in archive.machines.items()
        ]
        found += [["run", _run_title(of), of.identity, addresses.page("runs", of.identity)] for of in archive.runs]
        if self.bits is not None:
            found.append(["page", "same bits", "repeat process threads batch", addresses.SAME_BITS])
        if self.traps:
            bugs = {b.trap: b for lists in self.traps.lists.values() for of in lists for b in of.bugs}
            found += [["trap", trap, bug.function, "index.html#traps"] for trap, bug in bugs.items()]
        return [[formatting.visible(text) for text in entry] for entry in found]


def _shares(found: Conformance, families: Sequence[str]) -> list[tuple[int, int, int]]:
    """(faulty operations, those examined, the colour): of all families together, then of each."""
    examined = [cell for cell in found.cells if cell.checked]
    every = [examined, *([cell for cell in examined if cell.family == family] for family in families)]
    counts = [(sum(bool(cell.faults) for cell in of), len(of)) for of in every]
    return [(faulty, of, trap_map.level(faulty, of)) for faulty, of in counts]


def _machine_title(machine: str, stored: Sequence[Stored]) -> str:
    processor = stored[0].run.machine.get("processor")
    return f"{formatting.short(str(processor), 60) if processor else 'unknown processor'} ({machine})"


def _run_title(stored: Stored) -> str:
    return " ".join(filter(None, (formatting.moment(stored.run.created), stored.label)))
