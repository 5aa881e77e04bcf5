"""The page's tables as plain values, before any markup."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from adbench.model.operator import BATCH, batch_points
from adbench.model.record import Job
from adbench.model.settings import PROCESSOR
from adbench.results.scaling import Cost, Quantity, bytes_per_operation, limits

from ..figures import panels
from . import formatting, operator_support, ranking
from .cells import NOT_TIMED, Cell, Cells
from .footnotes import Footnotes
from .ranking import Lead, Place

NO_GROWTH = "no growth"
"""For a peak of 0 bytes: the call reused memory that was there before, which is not the same as using none."""

OVERLAPPED = 0.5
"""Below this share of its latency, the throughput of a call shows that the latency is mostly that of launches."""

FLAT = 1.25
"""Below so many times the time, twice the size costs nothing: launches take the time."""

ROUNDING = 1e-9
"""Of sums of times that would be equal."""


@dataclass(frozen=True)
class TableEntry:
    """A cell of a table: a figure, or a dash and the number of its reason.

    value          what the table is sorted by; None goes last
    spread, more   texts below the figure
    place          "fastest" if it is significantly faster than each other cell, "tie" if it ties for fastest
    note, missing  numbers of reasons on the page
    others         operators that came out differently
    """

    text: str
    cell: Cell | None = None
    value: float | None = None
    spread: str = ""
    more: str = ""
    place: Place = ""
    note: int | None = None
    missing: int | None = None
    others: tuple[tuple[str, Cell, int | None], ...] = ()


@dataclass(frozen=True)
class MethodRow:
    """One line of a case. `label` is its method, `backend` its backend, if it has one; size 0: all sizes."""

    size: int
    entries: tuple[TableEntry, ...]
    backend: str = ""
    label: str = ""


@dataclass(frozen=True)
class Group:
    """The lines of one case; `number` is its place among the page's cases."""

    case: str
    number: int
    summary: str
    rows: tuple[MethodRow, ...]


Rows = Callable[[Cells, Footnotes, str], Iterator[MethodRow]]
"""The rows of a case in a table."""


def table(rows: Rows, cells: Cells, footnotes: Footnotes) -> list[Group]:
    """The cases that have a row."""
    summaries = cells.findings.run.cases
    every = ((case, number, tuple(rows(cells, footnotes, case))) for number, case in enumerate(cells.subjects))
    return [Group(case, number, summaries.get(case, ""), found) for case, number, found in every if found]


def verdict_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """One row for each size, one entry for each backend: the word, and the time of the leading operator."""
    for size in cells.sizes[case]:
        race = ranking.race(cells, case, size)
        yield MethodRow(size, tuple(_verdict(cells, footnotes, cell, race) for cell in cells.row(case, size)))


def memory_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """A row for each method and size, one entry for each backend: the bytes of one call.

    Below them the bytes per elementary operation, where the case tells how many operations it takes. A method without
    any figure in a case has no rows there; see `without_memory`.
    """
    flops = cells.findings.run.flops

    def entry(cell: Cell, method: Quantity) -> TableEntry:
        found, reason = panels.memory_bytes(cell, method)
        each = bytes_per_operation(cell.record, flops, method).value if found and cell.record else None
        more = f"{formatting.digits(each)} B per operation" if each else ""
        shown = formatting.byte_size if found else lambda _: NO_GROWTH
        return replace(_figure(footnotes, cell, found, reason, shown), more=more)

    for method, title in panels.MEMORY_METHODS:
        if _has_memory(cells, case, method):
            for size in cells.sizes[case]:
                entries = tuple(entry(cell, method) for cell in cells.row(case, size))
                yield MethodRow(size, entries, label=title.lower())


def limits_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """For each size and backend: the least bytes of a call in shares of the copy rate, and its operations in shares of
    the arithmetic rate. None without measured rates."""
    run = cells.findings.run

    def entry(cell: Cell) -> TableEntry:
        if cell.record is None:
            return _dash(footnotes, cell, NOT_TIMED)
        found = limits(cell.record, run)
        arithmetic = f"; {formatting.percent(found.arithmetic.value)} of arithmetic" if found.arithmetic.value else ""
        more = f"at least {formatting.byte_size(cell.record.least_bytes or 0.0)}{arithmetic}"
        return replace(_figure(footnotes, cell, found.copy.value, found.copy.reason, formatting.percent), more=more)

    for size in cells.sizes[case] if run.rates else ():
        entries = tuple(entry(cell) for cell in cells.row(case, size))
        if any(one.value is not None for one in entries):
            yield MethodRow(size, entries)


def without_memory(cells: Cells) -> list[tuple[str, str]]:
    """(method, its most frequent reason) for each method of which the run has no figure at all."""
    found, device = [], cells.findings.run.settings.get("device", PROCESSOR)
    for method, title in panels.MEMORY_METHODS[device == PROCESSOR :]:
        if not any(_has_memory(cells, case, method) for case in cells.subjects):
            every = (panels.memory_bytes(cell, method)[1] for place in cells.places for cell in cells.row(*place))
            reasons = Counter(reason for reason in every if reason)
            found.append((title, reasons.most_common(1)[0][0] if reasons else NOT_TIMED))
    return found


def _has_memory(cells: Cells, case: str, method: Quantity) -> bool:
    every = (cell for size in cells.sizes[case] for cell in cells.row(case, size))
    return any(panels.memory_bytes(cell, method)[0] is not None for cell in every)


def cost_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """One row for each size: the gradient's cost relative to the function; and one for its trend."""
    costs = {backend: cells.findings.cost.get((case, backend)) for backend in cells.backends}

    def at(cell: Cell) -> TableEntry:
        cost = costs[cell.job.backend]
        here = next((at for at in cost.at if at.size == cell.job.size), None) if cost else None
        if here is None or here.ratio is None:
            reason = here.reason if here else "gradient and function were not both timed here"
            return _dash(footnotes, cell, reason)
        return TableEntry(formatting.between(here.ratio), cell, here.ratio.estimate)

    def trend(cost: Cost | None) -> TableEntry:
        if cost is None or cost.trend is None:
            missing = footnotes.missing_number(cost.reason or "no trend") if cost else None
            return TableEntry(formatting.MISSING, missing=missing)
        more = "grows with n" if cost.grows else ""
        return TableEntry(formatting.power(cost.trend), value=cost.trend.estimate, more=more)

    if not any(costs.values()):
        return
    for size in cells.sizes[case]:
        yield MethodRow(size, tuple(at(cell) for cell in cells.row(case, size)))
    if len(cells.sizes[case]) > 2:
        yield MethodRow(0, tuple(map(trend, costs.values())), label="trend")


def phase_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """One row for each backend at the largest common size: import, prepare, first call, steady call, break-even."""
    race = ranking.lead(cells, case)
    size = race.size if race else cells.sizes[case][-1]
    for cell in cells.row(case, size) if cells.timed else ():
        entries = (*_phases(footnotes, cell), _break_even(cells, footnotes, cell, race))
        yield MethodRow(size, entries, cell.job.backend)


def batch_points_of(cells: Cells) -> tuple[int, ...]:
    """The numbers of points of `batch_gradient` in this run, ascending."""
    return tuple(sorted({batch_points(operator) for operator in cells.operators} - {0}))


def batch_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """One row for each backend at a size: the time of a point in batches of each number of points.

    Then, of its largest correct batch, the time until its first result and its memory; and from how many points on a
    batch pays.
    `label` is "batch", or "loop" where the harness loops over the points.
    """
    points = batch_points_of(cells)
    for size in cells.sizes[case] if points else ():
        batches = {backend: _batches(cells, case, size, backend) for backend in cells.backends}
        ones = [found[1] for found in batches.values() if 1 in found]
        single = min((cell.spread.median for cell in ones if cell.ranked and cell.spread), default=None)
        for found in filter(None, batches.values()):
            yield _batch_row(footnotes, [found.get(n) for n in points], points, single)


def fastest_batches(cells: Cells, case: str) -> list[tuple[float, str, int]]:
    """(seconds per point, backend, number of points) of the largest batches of a case, the fastest first."""
    found = [
        (cell.spread.median / n, backend, n)
        for n in batch_points_of(cells)[-1:]
        for size in cells.sizes[case][-1:]
        for backend in cells.backends
        if (cell := _batches(cells, case, size, backend).get(n)) and cell.ranked and cell.spread
    ]
    return sorted(found)


def thread_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """One row for each backend that uses threads, at a size: the time of the leading operator with the run's own number
    of threads; then, for each further number, the time, the speed-up with its interval, and the efficiency.
    """
    for size in cells.sizes[case]:
        for cell in cells.row(case, size):
            more = {n: at.cell(case, size, cell.job.backend) for n, at in cells.threaded.items()}
            if any(other.word != "not_run" for other in more.values()):
                entries = [_figure(footnotes, cell, cell.seconds, NOT_TIMED)]
                entries += (entry for n, other in more.items() for entry in _scaled(cells, footnotes, other, n))
                yield MethodRow(size, tuple(entries), cell.job.backend)


def device_rows(cells: Cells, footnotes: Footnotes, case: str) -> Iterator[MethodRow]:
    """One row for each backend on a device, at a size: latency, throughput, and what they measure."""
    for size in cells.sizes[case]:
        for cell in cells.row(case, size):
            if cell.time and cell.time.throughput_seconds:
                launches = size in launch_sizes(cells, case, cell.job.backend)
                times = (cell.seconds, cell.time.throughput_seconds)
                entries = [_figure(footnotes, cell, seconds, None) for seconds in times]
                what = TableEntry("launch of kernels" if launches else "work")
                yield MethodRow(size, (*entries, what), cell.job.backend)


TABLES: Mapping[str, Rows] = {
    "verdicts": verdict_rows,
    "cost": cost_rows,
    "memory": memory_rows,
    "limits": limits_rows,
    "phases": phase_rows,
    "batches": batch_rows,
    "threads": thread_rows,
    "devices": device_rows,
}
"""Name of a table in the page -> its rows; reasons for missing figures are numbered in this order."""


def launch_sizes(cells: Cells, case: str, backend: str) -> list[int]:
    """The sizes at which a device mostly launches kernels: most of the latency overlaps with other calls, or a larger
    size takes as long."""
    column = [cells.cell(case, size, backend) for size in cells.sizes[case]]
    timed = [(cell, cell.seconds, cell.time.throughput_seconds) for cell in column if cell.seconds and cell.time]
    larger = [(other, seconds) for other, seconds, _ in timed]
    return [
        cell.job.size
        for cell, latency, throughput in timed
        if throughput is not None
        and (
            throughput < OVERLAPPED * latency
            or any(other.job.size >= 2 * cell.job.size and seconds < FLAT * latency for other, seconds in larger)
        )
    ]


def _scaled(cells: Cells, footnotes: Footnotes, cell: Cell, threads: int) -> Iterator[TableEntry]:
    """The time of a cell with further threads, its speed-up, its efficiency; its word where it is not measured."""
    if not cell.measured:
        missing = footnotes.missing_number(f"{cell.job.backend}, {cell.label}: {cell.reason}")
        yield from (TableEntry(cell.label, missing=missing), *[TableEntry(formatting.MISSING)] * 2)
        return
    yield _figure(footnotes, cell, cell.seconds, NOT_TIMED)
    found = cells.findings.speedups.get(replace(cell.job, threads=threads))
    if found is None or found.interval is None or found.efficiency is None:
        reason = found.reason if found else "only correct results with both numbers of threads are compared"
        yield from (_dash(footnotes, cell, reason), TableEntry(formatting.MISSING))
        return
    yield TableEntry(formatting.times(found.interval), cell, found.interval.estimate)
    yield TableEntry(formatting.percent(found.efficiency), cell, found.efficiency)


def speedups_of(cells: Cells, threads: int) -> dict[str, list[float]]:
    """Backend -> its speed-ups with so many threads, ascending: on each case at its largest size."""
    found: dict[str, list[float]] = {}
    for case in cells.subjects:
        for backend in cells.backends:
            job = Job(case, cells.sizes[case][-1], backend, cells.operator_of(case), threads=threads)
            speedup = cells.findings.speedups.get(job)
            if speedup is not None and speedup.interval is not None:
                found.setdefault(backend, []).append(speedup.interval.estimate)
    return {backend: sorted(of) for backend, of in found.items()}


def _batches(cells: Cells, case: str, size: int, backend: str) -> dict[int, Cell]:
    """The number of points -> its cell."""
    every = ((n, cells.single(Job(case, size, backend, f"{BATCH}_{n}"))) for n in batch_points_of(cells))
    return {n: cell for n, cell in every if cell.word != "not_run"}


def _batch_row(
    footnotes: Footnotes, found: Sequence[Cell | None], points: Sequence[int], single: float | None
) -> MethodRow:
    entries, timed = [], {}
    for n, cell in zip(points, found, strict=True):
        if cell is None:
            entries.append(TableEntry(formatting.MISSING))
            continue
        if cell.seconds is not None and cell.ranked:
            timed[n] = cell.seconds
        entries.append(_figure(footnotes, cell, None if cell.seconds is None else cell.seconds / n, NOT_TIMED))
    there = [cell for cell in found if cell is not None]
    answered = [cell for cell in there if cell.measured and cell.record]
    last = (answered or there)[-1]
    looped = last.record is not None and last.record.how != operator_support.NATIVE
    entries.append(_figure(footnotes, last, _until_first(last) if last.time else None, NOT_TIMED))
    peaks = [panels.memory_bytes(last, method) for method, _ in panels.MEMORY_METHODS]
    memory, reason = next((peak for peak in peaks if peak[0] is not None), peaks[1])
    entries.append(_figure(footnotes, last, memory, reason, formatting.byte_size))
    entries.append(_batch_break_even(timed, single))
    return MethodRow(last.job.size, tuple(entries), last.job.backend, "loop" if looped else "batch")


def _batch_break_even(timed: Mapping[int, float], single: float | None) -> TableEntry:
    """From how many points on a batch takes less time than as many batches of one point by the fastest backend.

    Between measured numbers of points, times are interpolated linearly.
    """
    if single is None or len(timed) < 2:
        return TableEntry(formatting.MISSING)
    pairs = sorted(timed.items())
    for (n, time), (more, longer) in pairwise(pairs):
        if longer < more * single * (1 - ROUNDING):
            slope = (longer - time) / (more - n)
            least = n if time < n * single else max(n + 1, math.floor((time - slope * n) / (single - slope)) + 1)
            return TableEntry(formatting.count(min(least, more)), value=min(least, more))
    return TableEntry(f"more than {formatting.count(pairs[-1][0])}", value=math.inf)


def _verdict(cells: Cells, footnotes: Footnotes, cell: Cell, race: Lead | None) -> TableEntry:
    others = []
    for operator in cells.operators:
        other = cells.single(replace(cell.job, operator=operator))
        if other.word not in {cell.word, "right", "not_run"}:
            others.append((operator, other, footnotes.number(other)))
    text = spread = more = ""
    if cell.spread:
        text = formatting.seconds(cell.spread.median)
        spread = formatting.seconds_range(cell.spread.low, cell.spread.high, like=cell.spread.median)
    if race and cell.ranked and cell is not race.leaders[0]:
        interval = race.interval(cell)
        more = formatting.times(interval) if interval else ""
    place = race.place(cell) if race else ""
    missing = footnotes.untimed_number(cell)
    note = footnotes.number(cell)
    return TableEntry(text or formatting.MISSING, cell, cell.seconds, spread, more, place, note, missing, tuple(others))


def _phases(footnotes: Footnotes, cell: Cell) -> Iterator[TableEntry]:
    time = cell.time
    reason = NOT_TIMED if time is None else "not recorded in this file"
    figures = (time.import_seconds, time.prepare_seconds, time.first_call_seconds) if time else (None, None, None)
    for number, figure in enumerate((*figures, cell.seconds)):
        entry = _figure(footnotes, cell, figure, reason)
        if time and number == 1:
            parts = (f"{formatting.short(name, 20)} {formatting.seconds(s)}" for name, s in time.phases.items())
            entry = replace(entry, more=", ".join(parts))
        yield entry


def _until_first(cell: Cell) -> float:
    return cell.time.prepare_seconds + cell.time.first_call_seconds if cell.time else 0.0


def _break_even(cells: Cells, footnotes: Footnotes, cell: Cell, race: Lead | None) -> TableEntry:
    """The call from which a backend costs no more in total than the backend with the earliest first result."""
    timed = [ranked for ranked in race.ranked if ranked.time] if race else []
    quickest = min(timed, key=_until_first, default=None)
    if quickest is None or cell.record is None or quickest.record is None or not cell.ranked:
        return TableEntry(formatting.MISSING, cell)
    if cell is quickest:
        return TableEntry("earliest first result", cell)
    found = cells.findings.break_even(cell.record.job, quickest.record.job)
    if found is None:
        return TableEntry(formatting.MISSING, cell, missing=footnotes.missing_number("the two were not compared"))
    if found.calls is None:
        never = (found.reason or "").startswith("never")
        missing = footnotes.missing_number(found.reason or "no reason")
        return TableEntry("never" if never else "unknown", cell, missing=missing)
    more = f"compared with {formatting.short(quickest.job.backend, 24)}"
    return TableEntry(f"from call {formatting.calls(found.calls)}", cell, found.calls, more=more)


def _figure(
    footnotes: Footnotes,
    cell: Cell,
    value: float | None,
    reason: str | None,
    shown: Callable[[float], str] = formatting.seconds,
) -> TableEntry:
    """The figure as `shown` prints it; a dash where there is none, or it cannot be printed."""
    text = formatting.MISSING if value is None else shown(value)
    entry = _dash(footnotes, cell, reason) if text == formatting.MISSING else TableEntry(text, cell)
    return replace(entry, value=value)


def _dash(footnotes: Footnotes, cell: Cell, reason: str | None) -> TableEntry:
    """A dash that points to the cell's own reason, or to `reason` where the cell has none."""
    if not cell.measured:
        return TableEntry(formatting.MISSING, cell, note=footnotes.number(cell))
    missing = footnotes.untimed_number(cell) or footnotes.missing_number(reason or "no reason was recorded")
    return TableEntry(formatting.MISSING, cell, missing=missing)
