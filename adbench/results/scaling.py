"""Growth of costs with the size: exponents, relative gradient costs, bytes per operation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from adbench.measure import growth as fitting
from adbench.measure.growth import Growth
from adbench.measure.readings import Rate
from adbench.measure.statistics import FEWEST_LAUNCHES, Interval, hodges_lehmann
from adbench.model.record import Figure, Record, Run
from adbench.model.settings import PROCESSOR
from adbench.results.matched_samples import Array, launch_medians

Quantity = Literal["seconds", "allocated_peak_bytes", "resident_peak_bytes", "python_peak_bytes", "device_peak_bytes"]
"""Time, and memory by each method: the first one with a figure is shown."""

LEAST_TREND = 0.1
"""The exponent above which the gradient cost counts as growing: a quarter more for each tenfold size."""


@dataclass(frozen=True)
class CostAt:
    """The time of a gradient / that of the function at one size, over launches; None with a reason."""

    size: int
    ratio: Interval | None
    reason: str | None = None


@dataclass(frozen=True)
class Cost:
    """The gradient cost relative to the function, against the size.

    Reverse mode ensures that it does not grow with the number of inputs (Baur and Strassen 1983; Griewank and Walther
    2008, section 3.3).

    trend   the exponent of that cost over n with its interval; None with a reason
    basis   "exponents": that of the gradient minus that of the function, each without its constant part;
            "largest": the slope over the three largest sizes, if either grows too little for an exponent
    grows   whether the interval lies above LEAST_TREND; None without a trend
    """

    case: str
    backend: str
    seed: int
    at: tuple[CostAt, ...]
    trend: Interval | None
    basis: Literal["exponents", "largest"] | None
    grows: bool | None
    reason: str | None = None


def growth(run: Run) -> dict[tuple[str, str, str, Quantity], Growth]:
    """(case, backend, operator, quantity) -> its growth, where there are figures at some size; of the first seed.

    Approximate results count, unlike in comparisons. Wrong ones do not.
    """
    return {
        (*key[:3], quantity): _seconds(records) if quantity == "seconds" else _bytes(records, quantity)
        for key, records in reversed(_by_size(run.records).items())
        for quantity in get_args(Quantity)
    }


def cost(run: Run) -> tuple[Cost, ...]:
    """The gradient cost for each case, backend and seed with times of gradient and function at some size."""
    curves = _by_size(run.records)
    found = []
    for (case, backend, operator, seed), of_gradient in curves.items():
        primal = {record.job.size: record for record in curves.get((case, backend, "value", seed), [])}
        both = [(record, primal[record.job.size]) for record in of_gradient if record.job.size in primal]
        timed = [(gradient, value) for gradient, value in both if gradient.time and value.time]
        if operator == "gradient" and timed:
            found.append(_cost(case, backend, seed, [g for g, _ in timed], [v for _, v in timed]))
    return tuple(found)


def bytes_per_operation(
    record: Record, flops: Mapping[str, Mapping[str, float]], method: Quantity = "allocated_peak_bytes"
) -> Figure:
    """Bytes at the peak of one call, per elementary operation of one evaluation of the case; `flops`: those of the run.

    A reason instead of a number if either is unknown or the result is not shown.
    """
    job, found = record.job, _peak(record, method)
    operations = flops.get(job.case, {}).get(str(job.size))
    if not record.outcome.is_measured:
        return Figure(None, record.reason or f"the result is {record.outcome.word}")
    if operations is None:
        return Figure(None, f"the number of operations is unknown; define `flops` in the file of the case {job.case}")
    if not 0 < operations < math.inf:
        return Figure(None, f"the case {job.case} states {operations} operations; correct its `flops`")
    return Figure(found.value / operations) if found.value is not None else found


@dataclass(frozen=True)
class Limits:
    """Lower bounds of a call's work, in shares of the work that the device does in the same time.

    Above 1, caches hold the data.

    copy         least_bytes (inputs read once, result written once) against the copy rate
    arithmetic   operations against the rate of a product of matrices: those of one evaluation of the function, and for
                 a gradient those of its reverse sweep too, if they are counted
    """

    copy: Figure
    arithmetic: Figure


def limits(record: Record, run: Run) -> Limits:
    """The shares of a cell, or the reasons why they are unknown."""
    where = PROCESSOR if record.device is None else next((name for name in run.rates if name != PROCESSOR), "")
    rates, operations = run.rates.get(where), run.flops.get(record.job.case, {}).get(str(record.job.size))
    if operations is not None and record.job.operator in ("gradient", "value_and_gradient"):
        operations *= run.gradient_operations.get(record.job.case, 1.0)
    unknown = f"define `flops` in the file of the case {record.job.case}"

    def share(amount: float | None, rate: Rate | None, reason: str) -> Figure:
        if record.time is None or not record.outcome.is_measured:
            return Figure(None, record.reason or "it was not timed")
        if rate is None or not rate.per_second:
            return Figure(None, rate.reason if rate and rate.reason else "the run did not measure the rate")
        if amount is None or not 0 < amount < math.inf:
            return Figure(None, reason)
        return Figure(amount / record.time.seconds_per_call / rate.per_second)

    return Limits(
        share(record.least_bytes, rates.copy if rates else None, "the run did not count the bytes"),
        share(operations, rates.arithmetic if rates else None, f"the number of operations is unknown; {unknown}"),
    )


def _cost(case: str, backend: str, seed: int, gradients: Sequence[Record], primals: Sequence[Record]) -> Cost:
    sizes = [record.job.size for record in gradients]
    launches = launch_medians([record.time for record in (*gradients, *primals) if record.time])
    upper, lower = launches[: len(sizes)], launches[len(sizes) :]
    at = tuple(_cost_at(size, row[np.isfinite(row)]) for size, row in zip(sizes, upper - lower, strict=True))
    whole = np.isfinite(launches).all(axis=0)
    if len(sizes) < fitting.FEWEST_SIZES or whole.sum() < FEWEST_LAUNCHES:
        needed = f"a trend needs {fitting.FEWEST_SIZES} sizes and {FEWEST_LAUNCHES} launches with both at each"
        return Cost(case, backend, seed, at, None, None, None, f"{needed}; there are {len(sizes)} and {whole.sum()}")
    gradient, primal = (fitting.growth(sizes, np.exp(logs[:, whole]).T) for logs in (upper, lower))
    if gradient.exponent and primal.exponent:
        trend = hodges_lehmann(np.subtract(gradient.by_launch, primal.by_launch))
        return Cost(case, backend, seed, at, trend, "exponents", trend.low > LEAST_TREND)
    log_n = np.log(np.asarray(sizes[-3:], np.float64))
    off = log_n - log_n.mean()
    trend = hodges_lehmann((upper - lower)[-3:, whole].T @ off / (off @ off))
    return Cost(case, backend, seed, at, trend, "largest", trend.low > LEAST_TREND)


def _cost_at(size: int, differences: Array) -> CostAt:
    if len(differences) < FEWEST_LAUNCHES:
        return CostAt(
            size, None, f"an interval needs {FEWEST_LAUNCHES} launches with both; there are {len(differences)}"
        )
    return CostAt(size, hodges_lehmann(differences).exp())


def _by_size(records: Iterable[Record]) -> dict[tuple[str, str, str, int], list[Record]]:
    """(case, backend, operator, seed) -> the records with figures to show, sizes ascending."""
    found: dict[tuple[str, str, str, int], dict[int, Record]] = {}
    for record in records:
        job = record.job
        if record.outcome.is_measured and job.size >= 1 and (record.time or record.memory):  # any size may be imported
            found.setdefault((job.case, job.backend, job.operator, job.seed), {})[job.size] = record
    return {key: [sizes[n] for n in sorted(sizes)] for key, sizes in found.items()}


def _seconds(records: Sequence[Record]) -> Growth:
    """The growth of time: over the launches that have every size, or over sizes if those are too few."""
    timed = [record for record in records if record.time]
    launches = launch_medians([record.time for record in timed if record.time])  # (sizes, launches)
    there = np.flatnonzero(np.isfinite(launches).any(axis=1))
    sizes, launches = [timed[k].job.size for k in there], launches[there]
    whole = np.isfinite(launches).all(axis=0)
    if whole.sum() < FEWEST_LAUNCHES:
        return _fitted(sizes, np.nanmedian(launches, axis=1)[:, None] if sizes else launches)
    return _fitted(sizes, launches[:, whole])


def _bytes(records: Sequence[Record], quantity: Quantity) -> Growth:
    """The growth of a peak, from the sizes that have one."""
    peaks = [(record.job.size, _peak(record, quantity)) for record in records]
    there = [(size, peak.value) for size, peak in peaks if peak.value is not None and 0 < peak.value < math.inf]
    if len(there) >= fitting.FEWEST_SIZES:
        return _fitted([size for size, _ in there], np.log([[value] for _, value in there]))
    reasons = [peak.reason or f"the peak at n = {size} is {peak.value} bytes" for size, peak in peaks]
    missing = [reason for reason, (size, _) in zip(reasons, peaks, strict=True) if size not in dict(there)]
    why = f"; {missing[0]}" if missing else ""
    return Growth(
        None, reason=f"an exponent needs {fitting.FEWEST_SIZES} sizes; there are figures at {len(there)}{why}"
    )


def _fitted(sizes: Sequence[int], logs: Array) -> Growth:
    """The growth from these logarithms, shape (sizes, launches)."""
    if not sizes:
        return Growth(None, reason="nothing was timed")
    return fitting.growth(sizes, np.exp(logs).T)


def _peak(record: Record, quantity: Quantity) -> Figure:
    if record.memory is None:
        return Figure(None, "memory was not measured")
    figure = getattr(record.memory, quantity)
    return figure if isinstance(figure, Figure) else Figure(None, f"{quantity} is not a memory figure")
