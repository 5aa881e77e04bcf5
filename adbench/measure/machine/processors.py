"""The processors of this machine, and the facts that change their speed."""

from __future__ import annotations

import os
from pathlib import Path

from adbench.measure.machine.system_files import PROC, SYS, fields, number, processor_ticks, word


def usable_cpus() -> tuple[int, ...]:
    """The processors that this process may run on, in order; all of them if the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def model(*, proc: Path = PROC) -> str | None:
    """The processor's name; None if unknown."""
    return fields(proc / "cpuinfo").get("model name") or None


def governors(cpus: tuple[int, ...], *, sys: Path = SYS) -> tuple[str, ...]:
    """The clock rate policies of these processors: "performance", "powersave", …; each once; empty if unknown."""
    names = (word(_cpu(sys, cpu) / "cpufreq" / "scaling_governor") for cpu in cpus)
    return tuple(dict.fromkeys(name for name in names if name))


def turbo(*, sys: Path = SYS) -> bool | None:
    """Whether clock rates may rise above the nominal one while temperature permits; None if unknown."""
    off = number(sys / "devices/system/cpu/intel_pstate/no_turbo")
    on = number(sys / "devices/system/cpu/cpufreq/boost")
    return off == 0 if off is not None else on == 1 if on is not None else None


def max_mhz(cpu: int, *, sys: Path = SYS) -> float | None:
    """The highest clock rate of a processor; None if unknown."""
    khz = number(_cpu(sys, cpu) / "cpufreq" / "cpuinfo_max_freq")
    return khz / 1000 if khz is not None else None


def shares_cores(*, sys: Path = SYS) -> bool | None:
    """Whether two hardware threads share a core (SMT) now; None if unknown."""
    active = number(sys / "devices/system/cpu/smt/active")
    return active == 1 if active is not None else None


def siblings(cpu: int, *, sys: Path = SYS) -> tuple[int, ...]:
    """The hardware threads of a processor's core, itself included."""
    return numbers(word(_cpu(sys, cpu) / "topology" / "thread_siblings_list") or "") or (cpu,)


def package(cpu: int, *, sys: Path = SYS) -> int | None:
    """The socket a processor is in; None if unknown."""
    return number(_cpu(sys, cpu) / "topology" / "physical_package_id")


def hypervisor(*, proc: Path = PROC, sys: Path = SYS) -> str | None:
    """The hypervisor of this system; None without one, or if it is hidden."""
    if "hypervisor" not in fields(proc / "cpuinfo").get("flags", "").split():
        return None
    names = [word(sys / file) for file in ("hypervisor/type", "class/dmi/id/sys_vendor", "class/dmi/id/product_name")]
    return " ".join(name for name in names if name) or "virtual machine"


def ticks(*, proc: Path = PROC) -> dict[int, tuple[int, int]]:
    """By processor: ticks in use, and ticks in all, since the start (proc_stat(5))."""
    # The first eight columns; the next two are included in the first two. Waiting for a disk counts as idle.
    counted = {cpu: (sum(counts[:8]), sum(counts[3:5])) for cpu, counts in processor_ticks(proc).items()}
    return {cpu: (every - idle, every) for cpu, (every, idle) in counted.items()}


def numbers(listed: str) -> tuple[int, ...]:
    """(0, 1, 2, 8) from "0-2,8", the kernel's format of processor sets."""
    ids: list[int] = []
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return ()
        ids += range(int(first), int(last or first) + 1)
    return tuple(ids)


def listed(cpus: tuple[int, ...]) -> str:
    """ "0-2,8" from (0, 1, 2, 8)."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _cpu(sys: Path, cpu: int) -> Path:
    return sys / "devices/system/cpu" / f"cpu{cpu}"
