"""What machine this is: the facts that a figure depends on. Reads, changes nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def thread_environment(threads: int) -> dict[str, str]:
    """Environment that fixes the number of threads in every library that reads it; must be set before import."""
    multi = "true" if threads > 1 else "false"
    return {name: str(threads) for name in THREAD_VARIABLES} | {
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={multi} intra_op_parallelism_threads={threads}",
        "TF_CPP_MIN_LOG_LEVEL": "2",  # XLA's notes about the processor would fill the captured stderr
    }


def describe() -> dict[str, str | int | float | bool | None]:
    """Processor, memory, system and Python; no host name and no user, since runs are published."""
    frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": psutil.cpu_count(logical=False),
        "hardware_threads": psutil.cpu_count(),
        "usable_threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "max_mhz": frequency.max if frequency and frequency.max else None,
        "memory_bytes": psutil.virtual_memory().total,
        "load_1_minute": round(psutil.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
