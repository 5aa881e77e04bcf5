"""A run in Python: `adbench.Run` with its table and files; `adbench.load` and `adbench.compare`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from adbench.catalog.discovery import select
from adbench.model import record
from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadOutput, UsageError
from adbench.optional import library
from adbench.results import compare as comparing
from adbench.results.comparison_inputs import ComparisonInput, of_run
from adbench.results.importers.timing_files import read_input
from adbench.results.store import PAGE, read_run, write_run


class Run(record.Run):
    """All results of one run, from `adbench.run` or `adbench.load`.

    `records` has one Record for each operator of a backend on a case at a size; `cases` and `versions` have the names
    of cases and backends; `machine` and `settings` say where and how it was measured. `print(run)` prints the table of
    the command line, and a notebook shows it as HTML. `run["hypot", "tape"]` is a part of the run.
    """

    __iter__ = None
    """A run is not a sequence: iterate over `records`."""

    @classmethod
    def of(cls, found: record.Run) -> Run:
        """The same run with these methods."""
        return cls(**vars(found))

    def __getitem__(self, key: str | tuple[str, str]) -> Run:
        """The part of the run with these cases, and these backends if the key names them; a Run as well.

        Names or globs: run["hypot"], run["hypot", "tape"], run["*", "jax*"]. The records of the part are
        `run["hypot", "tape"].records`. Raises UnknownName, a LookupError, for a name that the run does not have.
        """
        names = key if isinstance(key, tuple) else (key, "*")
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise UsageError(f"run[{key!r}] names no part of a run; write run['case'] or run['case', 'backend']")
        cases = _chosen("case", names[0], self._names[0])
        backends = _chosen("backend", names[1], self._names[1])
        return replace(
            self,
            records=tuple(r for r in self.records if r.job.case in cases and r.job.backend in backends),
            threaded=tuple(r for r in self.threaded if r.job.case in cases and r.job.backend in backends),
            cases={name: summary for name, summary in self.cases.items() if name in cases},
            versions={name: version for name, version in self.versions.items() if name in backends},
            traps=tuple(name for name in self.traps if name in cases),
            flops={name: flops for name, flops in self.flops.items() if name in cases},
            gradient_operations={n: times for n, times in self.gradient_operations.items() if n in cases},
            reference_backend=self.reference_backend if self.reference_backend in backends else None,
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for each record, in seconds and bytes.

        The columns are those of `adbench report -o x.csv`: case, size, operator, seed, backend, outcome, reason,
        seconds_per_call with first_quartile and third_quartile over launches, the memory by each method, digits, … A
        missing figure is NaN: `reason` explains an outcome other than "right", `missing` a gap in a measured cell.

        Raises MissingLibrary, an ImportError, if pandas is not installed.
        """
        from adbench.reports.formats import spreadsheet

        pandas = library("pandas", "to_frame")
        frame = pandas.DataFrame(spreadsheet.rows(self), columns=list(spreadsheet.FIELDS))
        return frame.astype(dict.fromkeys(spreadsheet.FIGURES, "float64"))

    def save(self, folder: str | Path) -> Path:
        """Write run.json and report.html into a folder, which is made if needed; returns the page's path.

        Raises BadOutput if they cannot be written.
        """
        from adbench.reports.html import page

        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadOutput(f"{place}: cannot be made: {error.strerror}; choose another folder") from error
        write_run(place, self)
        write_whole(place / PAGE, page.render(self))
        return place / PAGE

    @property
    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the cases and of the backends."""
        jobs = [each.job for each in self.records]
        return (*self.cases, *(job.case for job in jobs)), (*self.versions, *(job.backend for job in jobs))

    def __str__(self) -> str:
        """The table of the command line."""
        from adbench.reports.text import terminal

        return terminal.table(self).rstrip("\n")

    def _repr_html_(self) -> str:
        from adbench.reports.html import notebook

        return notebook.render(self)


def load(path: str | Path) -> Run:
    """The run in a folder that `adbench run` wrote, in a `run.json`, or in the journal of a run that is not finished.

    Raises BadFile, in one line, for anything else.
    """
    return Run.of(read_run(Path(path)))


def compare(
    old: str | Path | record.Run,
    new: str | Path | record.Run,
    *,
    margin: float = 0.05,
    margins: Mapping[str, float] | None = None,
    memory_margin: float = 0.1,
    absolute: bool = False,
) -> comparing.Comparison:
    """What changed between two runs, cell by cell, as `adbench compare` says: `rows`, each with its `word`.

    old, new        a Run, what `load` reads, a log of gradbench's, or a JSON file of pytest-benchmark or pyperf
    margin          cells that are slower by less are no regression; memory_margin: the same for memory
    margins         cell, case, benchmark or glob -> its own margin: {"test_parse*": 0.5}
    absolute        compare times by the clock alone, even of two machines

    Raises BadFile for what cannot be read, UsageError where the two have no cell in common.
    """
    inputs = _input(old), _input(new)
    return comparing.compare(*inputs, margin=margin, margins=margins, memory_margin=memory_margin, absolute=absolute)


def _input(given: str | Path | record.Run) -> ComparisonInput:
    return of_run(given, given.created) if isinstance(given, record.Run) else read_input(Path(given))


def _chosen(kind: str, pattern: str, names: Iterable[str]) -> set[str]:
    """The names that the pattern is or matches. Raises UnknownName."""
    known = dict.fromkeys(names)
    return {pattern} if pattern in known else set(select(kind, known, [pattern]))
