"""`adbench doctor`: how well this machine is suited to measuring. It inspects and changes nothing.

Facts and findings are plain data; reports/text/doctor.py formats them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from adbench.catalog.installed import installed_version
from adbench.doctor.findings import CHECKS, OPTIONAL, MachineFinding, State, System
from adbench.measure import machine, memory_truth
from adbench.measure.machine.processors import usable_cpus
from adbench.measure.machine.system_noise import Noise, measure_noise
from adbench.measure.memory_truth import MEGABYTE, Reading
from adbench.version import __version__

LIBRARIES = ("numpy", "python-flint", "optree", "psutil", "msgspec", "click", "rich", "jinja2", *OPTIONAL)
MIXED = "a memory method misreads known amounts on this machine: do not quote its figures"


@dataclass(frozen=True)
class Examination:
    """The result: facts about the machine, versions, findings, and on request memory and a device's rates."""

    facts: dict[str, machine.Fact]
    fingerprint: str
    versions: dict[str, str | None]
    findings: tuple[MachineFinding, ...]
    memory: tuple[MachineFinding, ...] | None = None
    rates: tuple[MachineFinding, ...] | None = None


def examine(*, with_memory: bool = False) -> Examination:
    """Inspect the machine. Measures noise for a second; memory takes half a minute more."""
    system = System(usable_cpus(), _noise())
    facts = machine.describe()
    return Examination(
        facts=facts,
        fingerprint=machine.fingerprint(facts),
        versions={"adbench": __version__, **{name: installed_version(name) for name in LIBRARIES}},
        findings=tuple(check(system) for check in CHECKS),
        memory=tuple(memory_findings()) if with_memory else None,
    )


def memory_findings(read: Callable[[], Iterator[Reading]] = memory_truth.readings) -> Iterator[MachineFinding]:
    """The bytes that each method reads of a known amount, for each allocator, in fresh processes."""
    for allocator, group in groupby(read(), key=lambda reading: reading.allocator):
        readings = list(group)
        by_method = [list(of) for _, of in groupby(readings, key=lambda reading: reading.method)]
        found = "; ".join(f"{of[0].method} {', '.join(map(_read, of))}" for of in by_method)
        sizes = ", ".join(f"{size // MEGABYTE}" for size in dict.fromkeys(r.amount for r in readings))
        lies = [reading for reading in readings if reading.true is False]
        missing = next((reading.figure.reason for reading in readings if reading.true is None), None)
        state: State = "warning" if lies else "unknown" if missing else "ok"
        why = f"MB read of {sizes}; in brackets if the method is known to miss them"
        yield MachineFinding(allocator, found, state, why, MIXED if lies else missing)
    for allocator in memory_truth.ALLOCATORS:
        if (reason := memory_truth.missing(allocator)) is not None:
            yield MachineFinding(allocator, reason, "unknown", "not tried")


def _noise() -> Noise:
    """The noise on the processor that measurements use."""
    before = usable_cpus()
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setaffinity(0, machine.measuring_cpus(1))
    try:
        return measure_noise(10**9)
    finally:
        with contextlib.suppress(OSError, AttributeError):
            os.sched_setaffinity(0, before)


def _read(reading: Reading) -> str:
    if reading.figure.value is None:
        return "—"
    megabytes = f"{round(reading.figure.value / MEGABYTE, 2):g}"
    mark = "" if reading.true else " (!)"
    return (f"({megabytes})" if not reading.seen else megabytes) + mark
