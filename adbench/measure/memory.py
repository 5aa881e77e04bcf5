"""The peak memory of one call above the memory before it, by three methods that see different allocations.

Which method sees        numpy  torch  jax  C library  malloc by address  Python objects  untouched array  child process
allocated (memray)        yes    yes   yes     yes            no               yes              yes             no
python    (tracemalloc)   yes    no    no      no             no               yes              yes             no
resident  (VmHWM)         yes    yes   yes     yes            yes              yes              no              yes

"C library" is a library linked to malloc in the usual way; "by address" is a caller that asked the linker for malloc,
like ctypes and run-time compilers. Resident Python objects are accurate to about a megabyte, because Python allocates
memory for them in pieces of that size. `memory_truth` checks this table with known amounts.

Each method runs in a separate process, because they slow calls by different factors, and one would count the other's
memory. Memory kept between calls (a recorded tape, a workspace) is in none of the figures.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

from adbench.measure.machine.process_tree import descendants, private_bytes
from adbench.measure.machine.system_files import fields
from adbench.measure.readings import Figure

Method = Literal["allocated", "python", "resident", "device"]
Call = Callable[[], Any]

# The allocator must return memory and take large blocks from the system, or a warm-up call's block is reused and the
# growth reads 0. For the environment of the measuring process.
ALLOCATOR_ENVIRONMENT: Mapping[str, str] = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}


def environment(method: Method) -> Mapping[str, str]:
    """Environment variables for a process that measures by this method, set before it starts."""
    return ALLOCATOR_ENVIRONMENT if method == "resident" else {}


def measure(method: Method, call: Call, *, times: int = 3) -> Figure:
    """Bytes at the peak of one call: the median of some calls after a warm-up call.

    The result counts; it is dropped before the next call.
    """
    call()
    return median_of(METHODS[method], call, times)


def median_of(method: Callable[[Call], Figure], call: Call, times: int = 3) -> Figure:
    """The median of several measurements, or the first reason why one is missing."""
    values: list[float] = []
    for _ in range(times):
        figure = method(call)
        if figure.value is None:
            return figure
        values.append(figure.value)
    return Figure(median(values))


def allocated_peak(call: Call) -> Figure:
    """Bytes allocated and not freed at the peak of one call, in all threads, touched or not.

    memray hooks malloc, mmap and similar functions of each loaded library, and Python's allocator. It does not see
    memory taken before the call, nor its release.
    """
    try:
        seen = _memray_sees()
    except ImportError:
        return Figure(None, "memray is not installed; pip install memray")
    except (OSError, RuntimeError) as error:
        return Figure(None, f"memray cannot start: {error}")
    if not seen:
        return Figure(None, "memray does not see this process's allocations, because its hooks are not installed")
    gc.collect()
    return Figure(float(_traced_peak(call)))


def python_peak(call: Call) -> Figure:
    """Bytes of Python's allocators (numpy's included) at the peak of one call, above those before it."""
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


def resident_peak(call: Call, *, proc: Path = Path("/proc/self")) -> Figure:
    """The growth of the resident set at the peak of one call, in bytes: touched memory in whole pages, also that of
    processes below this one.

    Writing 5 to `clear_refs` resets the high-water mark (Linux ≥ 4.0, proc(5)). `ru_maxrss` is useless: it is
    inherited. Needs ALLOCATOR_ENVIRONMENT.
    """
    if not sys.platform.startswith("linux"):
        return Figure(None, f"needs Linux's /proc/self/clear_refs; this is {sys.platform}")
    gc.collect()
    with contextlib.suppress(AttributeError):  # without glibc freed memory may be reused: a lower bound
        ctypes.CDLL(None).malloc_trim(0)
    try:
        _resident_growth(lambda: time.sleep(0.003), proc)  # maps the code of the measuring itself, which must not count
        return Figure(float(_resident_growth(call, proc)))
    except _NoFigure as no:
        return Figure(None, f"the kernel refuses to reset the high-water mark: {no}")


def _resident_growth(call: Call, proc: Path) -> int:
    """Bytes by which this process and those below it grow at the peak of a call."""
    with _ChildMemory(int(proc.name) if proc.name.isdigit() else os.getpid()) as children:
        try:
            (proc / "clear_refs").write_text("5")
            before = _status_bytes(proc, "VmRSS")
        except (OSError, KeyError) as error:
            raise _NoFigure(error) from error
        result = call()
        peak = _status_bytes(proc, "VmHWM")
    del result
    return max(0, peak - before) + children.growth


class _NoFigure(Exception):
    """The kernel does not give the figure."""


class _ChildMemory(threading.Thread):
    """Watches what the processes below this one hold, every millisecond: a shorter peak is missed."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._looked, self._over = pid, threading.Event(), threading.Event()
        self._before = private_bytes(descendants(pid))
        self._peak = self._before

    @property
    def growth(self) -> int:
        """The largest sum so far, above that before."""
        return self._peak - self._before

    def run(self) -> None:
        """Look until the block is over."""
        while True:
            self._peak = max(self._peak, private_bytes(descendants(self._pid)))
            self._looked.set()
            if self._over.wait(0.001):
                return

    def __enter__(self) -> _ChildMemory:
        self.start()
        self._looked.wait()  # the first look takes memory of its own, which must not count
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


METHODS: Mapping[Method, Callable[[Call], Figure]] = {
    "allocated": allocated_peak,
    "python": python_peak,
    "resident": resident_peak,
}


@cache
def _memray_sees() -> bool:
    """Whether memray reads a known allocation correctly in this process."""
    size = 1 << 20
    return abs(_traced_peak(lambda: bytearray(size)) - size) < 0.05 * size


def _traced_peak(call: Call) -> int:
    """memray's high-water mark over one call. The aggregated format has one line per allocating place instead of per
    allocation, which keeps the file small."""
    import memray

    with tempfile.TemporaryDirectory(prefix="adbench-") as folder:
        file = Path(folder) / "allocations"
        tracker = memray.Tracker(
            file, trace_python_allocators=True, file_format=memray.FileFormat.AGGREGATED_ALLOCATIONS
        )
        with tracker:
            result = call()
        del result
        with memray.FileReader(file) as reader:
            peak = int(reader.metadata.peak_memory)
    return peak


def _status_bytes(proc: Path, field: str) -> int:
    value = fields(proc / "status").get(field)
    if value is None:
        raise KeyError(f"{field} is not in {proc / 'status'}")
    return int(value.removesuffix(" kB")) * 1024
