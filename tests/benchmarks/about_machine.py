"""The machine and the versions of a measurement, in a few lines."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess

import llvmlite.binding as llvm

from adbench.measure.machine.processors import model
from adbench.measure.machine.system_files import PROC, fields

PACKAGES = ("numpy", "scipy", "llvmlite", "autograd", "jax", "jaxlib", "torch", "casadi", "httpstan", "cmeel-cppad")
LEVELS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sse2": "SSE2", "asimd": "NEON"}
"""A processor's flag -> its vector instructions, the widest first."""


def machine() -> list[str]:
    """The processor with its vector instructions and the number of usable cores, and versions."""
    known = fields(PROC / "cpuinfo")
    flags = (known.get("flags") or known.get("Features") or "").split()
    simd = next((level for flag, level in LEVELS.items() if flag in flags), "unknown vector instructions")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    compiler = shutil.which("c++")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout if compiler else "none"
    versions = {name: _version(name) for name in PACKAGES}
    return [
        f"{model() or platform.processor() or platform.machine()}, {cores} cores, {simd}, {platform.system()}",
        f"Python {platform.python_version()}, C++ {version.splitlines()[0]}, libc {' '.join(platform.libc_ver())}, "
        f"LLVM {'.'.join(map(str, llvm.llvm_version_info))}",
        ", ".join(f"{name} {found}" for name, found in versions.items() if found),
        f"load average {os.getloadavg()[0]:.1f}",
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    print("\n".join(machine()))
