"""This machine and the placement of processes: facts that influence measurements.

Nothing here changes the machine; `pin` changes the processors of adbench's processes.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from adbench.measure.machine import cgroup, processors
from adbench.measure.machine.processors import usable_cpus
from adbench.measure.machine.system_files import PROC, SYS

Fact = str | int | float | bool | None

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "JULIA_NUM_THREADS",
    "PJRT_NPROC",  # the pool of XLA's processor client
    "ADBENCH_THREADS",  # for backends whose libraries read none (model/settings.py)
)

SAME_FOR_TIMES = ("processor", "architecture", "cores", "hardware_threads", "usable_threads", "cpu_limit")
GIGABYTE = 1 << 30
COMPILERS = ("c++", "g++", "clang++")


NO_GPU = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
"""Environment variables without which jax takes three quarters of a GPU's memory, and tensorflow all of it."""


def thread_environment(threads: int) -> dict[str, str]:
    """Environment variables that fix the number of threads of every library that reads them; set them before import.

    oneTBB reads none, but uses the allowed processors (`pin`).
    """
    multi = "true" if threads > 1 else "false"
    return {name: str(threads) for name in THREAD_VARIABLES} | {
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={multi} intra_op_parallelism_threads={threads}",
        "TF_CPP_MIN_LOG_LEVEL": "2",  # XLA's remarks about the processor would fill the captured stderr
    }


def describe(*, proc: Path = PROC, sys: Path = SYS) -> dict[str, Fact]:
    """Processor, memory, limits, system and Python; without host and user names, since runs are published.

    None means unknown, or no limit.
    """
    cpus = usable_cpus()
    rates = [rate for cpu in cpus if (rate := processors.max_mhz(cpu, sys=sys))]
    return {
        "processor": processors.model(proc=proc) or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "cores": psutil.cpu_count(logical=False),
        "hardware_threads": psutil.cpu_count(),
        "shared_cores": processors.shares_cores(sys=sys),
        "usable_threads": len(cpus),
        "affinity": processors.listed(cpus),
        "cpu_limit": cgroup.cpu_limit(proc=proc, sys=sys),
        "max_mhz": max(rates, default=None),
        "governor": ", ".join(processors.governors(cpus, sys=sys)) or None,
        "turbo": processors.turbo(sys=sys),
        "hypervisor": processors.hypervisor(proc=proc, sys=sys),
        "memory_bytes": psutil.virtual_memory().total,
        "memory_limit_bytes": cgroup.memory_limit(proc=proc, sys=sys),
        "swap_bytes": psutil.swap_memory().total,
        "load_1_minute": round(psutil.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "compiler": _compiler_version(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def fingerprint(description: Mapping[str, Fact]) -> str:
    """The facts that must agree to compare absolute times of two runs, on one line.

    The processor, its usable part, the size of memory to a power of two, the system's name and Python's version. Equal
    fingerprints allow comparing times; other things may still differ.
    """
    limit = description.get("memory_limit_bytes")
    memory = min(size for size in (description.get("memory_bytes"), limit, math.inf) if isinstance(size, int | float))
    parts = [f"{name.replace('_', ' ')} {_short(description.get(name))}" for name in SAME_FOR_TIMES]
    parts.append(f"memory {_size_class(memory)}")
    parts.append(f"system {str(description.get('system', '—')).partition(' ')[0]}")
    parts.append(f"python {description.get('python', '—')}")
    return "; ".join(parts)


def measuring_cpus(threads: int, *, proc: Path = PROC, sys: Path = SYS, seconds: float = 0.2) -> tuple[int, ...]:
    """The processors to measure on: one for each thread, or all usable ones if there are fewer.

    Watches their use for `seconds`. The order: cores that are less than half busy, the faster kind, the socket of the
    first, the least busy, the last, because the system prefers the first ones. A second hardware thread of a core is
    used only if no core is left.
    """
    usable = usable_cpus()
    if threads >= len(usable):
        return usable
    before = processors.ticks(proc=proc)
    time.sleep(seconds)
    after = processors.ticks(proc=proc)
    cores = {cpu: processors.siblings(cpu, sys=sys) for cpu in usable}
    busy = {cpu: max(_share(before, after, thread) for thread in cores[cpu]) for cpu in usable}
    rates = {cpu: processors.max_mhz(cpu, sys=sys) or 0.0 for cpu in usable}
    sockets = {cpu: processors.package(cpu, sys=sys) for cpu in usable}
    chosen: list[int] = []

    def rank(cpu: int) -> tuple[bool, bool, float, bool, float, int]:
        taken = any(thread in chosen for thread in cores[cpu])
        elsewhere = bool(chosen) and sockets[cpu] != sockets[chosen[0]]
        return taken, busy[cpu] > 0.5, -rates[cpu], elsewhere, round(busy[cpu], 1), -cpu

    while len(chosen) < threads:
        chosen.append(min((cpu for cpu in usable if cpu not in chosen), key=rank))
    return tuple(sorted(chosen))


def pin(pid: int, cpus: tuple[int, ...], *, proc: Path = PROC) -> int:
    """Restrict all threads of a process to these processors; returns the number of threads.

    The affinity of a process is that of its main thread, and threads already started by a library keep theirs, so each
    is set. Later threads inherit it. Returns 0 without Linux's affinity. Raises ProcessLookupError if there is no such
    process, OSError if the system refuses or lacks such a processor.
    """
    if not hasattr(os, "sched_setaffinity"):
        return 0
    pinned: set[int] = set()
    while new := _threads(pid, proc) - pinned:  # repeat until no unpinned thread has started another
        for thread in new:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(thread, cpus)
        pinned |= new
    return len(pinned)


def first_program(names: tuple[str, ...]) -> str | None:
    """The path of the first installed program."""
    return next((path for name in names if name and (path := shutil.which(name))), None)


def _compiler_version() -> str | None:
    path = first_program((os.environ.get("CXX", ""), *COMPILERS))
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (said.splitlines() or [""])[0].strip() or None


def _threads(pid: int, proc: Path) -> set[int]:
    try:
        return {int(entry.name) for entry in (proc / str(pid) / "task").iterdir()}
    except FileNotFoundError:
        raise ProcessLookupError(f"no process {pid}") from None


def _share(before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]], cpu: int) -> float:
    """The share of the time in between that a processor was busy; 0 if unknown."""
    used, every = (late - early for late, early in zip(after.get(cpu, (0, 0)), before.get(cpu, (0, 0)), strict=True))
    return used / every if every > 0 else 0.0


def _size_class(size: float) -> str:
    if not 0 < size < math.inf:
        return "—"
    return f"up to {2 ** math.ceil(math.log2(size / GIGABYTE)):g} GiB"  # a system shows slightly less than is installed


def _short(fact: Fact) -> str:
    return "—" if fact is None else f"{fact:g}" if isinstance(fact, float) else str(fact)
