"""Memory that one call takes at its peak, by two methods that see different things.

What sees 64 MB allocated by    numpy   torch, jax   malloc in a C library   untouched np.empty
python_peak   (tracemalloc)      yes       no               no                     yes
resident_peak (VmHWM)            yes       yes              yes                    no
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

# The allocator must hand memory back and take large blocks from the system, or a block that a warm-up call left
# behind is used again and the growth reads 0. For the environment of the process that measures.
ALLOCATOR_ENVIRONMENT: Mapping[str, str] = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}


@dataclass(frozen=True)
class Figure:
    """A number whose unit is in the name it is stored under, or no number and the reason."""

    value: float | None
    reason: str | None = None


def python_peak(call: Callable[[], Any]) -> Figure:
    """Bytes that Python's allocators (numpy's included) held at the peak of one call, above what they held before
    it."""
    gc.collect()
    started_here = not tracemalloc.is_tracing()
    if started_here:
        tracemalloc.start(1)
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        result = call()
        _, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        if started_here:
            tracemalloc.stop()
    return Figure(float(max(0, peak - before)))


def resident_peak(call: Callable[[], Any], *, proc: Path = Path("/proc/self")) -> Figure:
    """Bytes by which the resident set grew at the peak of one call: everything that was touched, in whole pages.

    Writing 5 to `clear_refs` resets the high-water mark (Linux ≥ 4.0, proc(5)). `ru_maxrss` would not do: it is
    inherited.
    """
    if not sys.platform.startswith("linux"):
        return Figure(None, f"needs Linux's /proc/self/clear_refs; this is {sys.platform}")
    gc.collect()
    with contextlib.suppress(AttributeError):  # not glibc: freed memory may be used again; the figure is a lower bound
        ctypes.CDLL(None).malloc_trim(0)
    try:
        (proc / "clear_refs").write_text("5")
        before = _status_bytes(proc, "VmRSS")
        result = call()
        peak = _status_bytes(proc, "VmHWM")
        del result
    except (OSError, KeyError) as error:
        return Figure(None, f"the kernel does not let the high-water mark be reset: {error}")
    return Figure(float(max(0, peak - before)))


def median_of(method: Callable[[Callable[[], Any]], Figure], call: Callable[[], Any], times: int = 3) -> Figure:
    """The median of several measurements, or the first reason why there is none."""
    figures = [method(call) for _ in range(times)]
    values = [figure.value for figure in figures if figure.value is not None]
    return Figure(median(values)) if len(values) == times else next(f for f in figures if f.value is None)


def _status_bytes(proc: Path, field: str) -> int:
    for line in (proc / "status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    raise KeyError(f"{field} is not in {proc / 'status'}")
