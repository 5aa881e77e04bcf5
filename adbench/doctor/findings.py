"""The checks of `adbench doctor`: one function for each property of the machine or of this Python.

Checks change nothing. A finding names the fix, and leaves it to the owner of the machine.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Literal

from adbench.catalog.installed import OURS, installed_version, pip_command
from adbench.measure import clock, memory_truth
from adbench.measure.machine import COMPILERS, GIGABYTE, cgroup, disturbance, first_program, processors, rates
from adbench.measure.machine.system_files import PROC, SYS, fields, text, word
from adbench.measure.machine.system_noise import Noise, clock_step_ns
from adbench.measure.readings import Rates
from adbench.optional import EXTRAS

State = Literal["ok", "warning", "unknown"]

LOOP_TARGET_NS = 20
QUIET = 0.01  # share of a second that other processes may take
EVEN = 0.02  # share by which equal work may differ: the margin of a local comparison
MEGABYTE = 1 << 20
UNBROKEN = "\u00a0"  # a no-break space, between a number and its unit
OPTIONAL = ("llvmlite", "matplotlib", "scipy")


@dataclass(frozen=True)
class MachineFinding:
    """The result of a check: the property, its value and state, why it matters, and how to improve it.

    `unknown` means that the system does not report it.
    """

    name: str
    found: str
    state: State
    why: str
    do: str | None = None


@dataclass(frozen=True)
class System:
    """The inputs of the checks: the machine's two file trees, the process's environment, and the measured noise."""

    cpus: tuple[int, ...]
    noise: Noise
    proc: Path = PROC
    sys: Path = SYS
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


Answer = tuple[str, str | None] | None
Check = Callable[[System], MachineFinding]

CHECKS: list[Check] = []
"""Every check, in the order of the report."""


def check(name: str, why: str, *, unknown: str = "unknown") -> Callable[[Callable[[System], Answer]], Check]:
    """Add a function to CHECKS. It returns what it found and how to fix it, or None if the system does not report it.

    A finding with a fix is a warning.
    """

    def register(look: Callable[[System], Answer]) -> Check:
        @wraps(look)
        def checked(system: System) -> MachineFinding:
            answer = look(system)
            if answer is None:
                return MachineFinding(name, unknown, "unknown", why)
            found, fix = answer
            return MachineFinding(name, found, "warning" if fix else "ok", why, fix)

        CHECKS.append(checked)
        return checked

    return register


@check("affinity", "With one processor, the measured code shares it with every other process.")
def affinity(system: System) -> Answer:
    """The processors on which this process may run."""
    every = len(processors.ticks(proc=system.proc)) or len(system.cpus)
    found = f"{processors.listed(system.cpus)}: {len(system.cpus)} of {every} hardware threads"
    return found, "allow two processors or more, as with taskset -c 0,1" if len(system.cpus) < 2 else None


@check("load", "Other work takes processor time, caches and memory bandwidth.")
def load(system: System) -> Answer:
    """Whether other processes are running."""
    words = (text(system.proc / "loadavg") or "").split()
    if not words:
        return None
    busy = float(words[0]) > max(0.25 * len(system.cpus), 0.3)
    found = f"{words[0]} over the last minute, on {len(system.cpus)} processors"
    return found, "find busy processes with top and let them finish" if busy else None


@check("noise", "Launches and rounds average over noise; less noise gives narrower intervals.")
def noise(system: System) -> Answer:
    """The share of a second that a busy process gets."""
    seen = system.noise
    spread = "" if seen.spread is None else f"; equal work differs by {_percent(seen.spread)}"
    found = (
        f"{_percent(seen.taken)} of a second went to others in {seen.gaps} gaps, the longest "
        f"{seen.longest_ns * 1e-6:.2g}{UNBROKEN}ms{spread}"
    )
    loud = seen.taken > QUIET or (seen.spread or 0) > EVEN
    others = [check.name for check in (load(system), turbo(system), virtual(system)) if check.do]
    fix = f"fix {' and '.join(others)}" if others else "measure again when the machine is idle"
    return found, fix if loud else None


@check("hypervisor", "A hypervisor can give the processor to another machine while the clock keeps running.")
def virtual(system: System) -> Answer:
    """Whether a hypervisor gives the processors to other machines."""
    name = processors.hypervisor(proc=system.proc, sys=system.sys)
    if name is None:
        return "none detected", None
    stolen = system.noise.stolen_ms
    told = "stolen time unknown" if stolen is None else f"{stolen:g}{UNBROKEN}ms stolen in the last second"
    return f"{name}, {told}", "use a machine with dedicated processors (bare metal)" if stolen else None


@check(
    "governor",
    "If the clock rate follows the load, the first milliseconds of an epoch run slower.",
    unknown="unknown, as in most virtual machines",
)
def governor(system: System) -> Answer:
    """The policy that sets the clock rate."""
    found = processors.governors(system.cpus, sys=system.sys)
    if not found:
        return None
    return ", ".join(found), None if set(found) == {"performance"} else "sudo cpupower frequency-set -g performance"


@check(
    "turbo",
    "With turbo the clock rate depends on heat and on the load of the other cores.",
    unknown="unknown, as in most virtual machines",
)
def turbo(system: System) -> Answer:
    """Whether the clock rate depends on heat."""
    on = processors.turbo(sys=system.sys)
    if not on:
        return None if on is None else ("off", None)
    intel = "devices/system/cpu/intel_pstate/no_turbo"
    if (system.sys / intel).exists():
        return "on", f"echo 1 | sudo tee /sys/{intel}"
    return "on", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"


@check("shared cores", "Work on the other hardware thread of a core takes up to half of the core.")
def shared_cores(system: System) -> Answer:
    """Whether hardware threads share cores."""
    shared = processors.shares_cores(sys=system.sys)
    if not shared:
        return None if shared is None else ("each hardware thread has its own core", None)
    fix = "keep the machine idle, or echo off | sudo tee /sys/devices/system/cpu/smt/control"
    return "two hardware threads on a core", fix


@check("heat", "A processor that is too hot lowers its clock rate.")
def heat(system: System) -> Answer:
    """Whether the processors have been too hot."""
    count = disturbance.heat_count(system.cpus, sys=system.sys)
    if not count:
        return None if count is None else ("never throttled since the start", None)
    return f"throttled {count} times since the start", "improve cooling or turn turbo off"


@check("power", "On battery, clock rates are kept low.")
def power(system: System) -> Answer:
    """Whether the machine runs on a battery."""
    supplies = [word(file) for file in (system.sys / "class/power_supply").glob("*/online")]
    if not supplies:
        return "no battery, or unknown", None
    return ("mains", None) if "1" in supplies else ("battery", "plug it in")


@check(
    "processor limit",
    "A group that has used up its time is stopped for up to 0.1 s, even in the middle of a call.",
)
def processor_limit(system: System) -> Answer:
    """Whether a control group limits processor time."""
    limit = cgroup.cpu_limit(proc=system.proc, sys=system.sys)
    if limit is None:
        return "none", None
    stopped = cgroup.times_held_back(proc=system.proc, sys=system.sys)
    times = f", stopped {stopped} times so far" if stopped else ""
    fix = "give processors instead of time: docker run --cpuset-cpus 0,1, not --cpus"
    return f"{limit:g} processors' time{times}", fix


@check("memory limit", "A process that needs more is killed; large sizes then appear as crashed.")
def memory_limit(system: System) -> Answer:
    """Whether a control group limits memory."""
    limit = cgroup.memory_limit(proc=system.proc, sys=system.sys)
    if limit is None:
        return "none", None
    fix = "raise it to 4 GiB or more, or leave out large sizes" if limit < 4 * GIGABYTE else None
    return f"{limit / GIGABYTE:.3g}{UNBROKEN}GiB", fix


@check("swap", "Reading swapped memory back counts as measured time.")
def swap(system: System) -> Answer:
    """Whether memory has been swapped out."""
    sizes = {name: int(value.split()[0]) * 1024 for name, value in fields(system.proc / "meminfo").items() if value}
    if not sizes.get("SwapTotal"):
        return ("none", None) if "SwapTotal" in sizes else None
    used = sizes["SwapTotal"] - sizes.get("SwapFree", 0)
    found = f"{used / GIGABYTE:.2g} of {sizes['SwapTotal'] / GIGABYTE:.2g}{UNBROKEN}GiB in use"
    return found, "close the programs that fill the memory; then sudo swapoff -a" if used > 64 * MEGABYTE else None


@check("huge pages", "With pages of 2 MB for every large block, the resident peak rises in steps of that size.")
def huge_pages(system: System) -> Answer:
    """Whether every large block of memory gets pages of two megabytes."""
    said = word(system.sys / "kernel/mm/transparent_hugepage/enabled") or ""
    chosen = said.partition("[")[2].partition("]")[0]
    if not chosen:
        return None
    fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    return chosen, fix if chosen == "always" else None


@check("allocator", "Another allocator changes the measured memory, or hides it.")
def allocator(system: System) -> Answer:
    """Whether something replaces the system's allocator."""
    names = ("LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PYTHONMALLOC", "GLIBC_TUNABLES")
    given = [name for name in names if system.environment.get(name)]
    found = ", ".join(f"{name}={os.path.basename(system.environment[name])}" for name in given)
    return found or "the system's", f"unset {' '.join(given)}" if given else None


@check("clock", "Shorter times cannot be resolved.")
def reading_the_clock(system: System) -> Answer:
    """The resolution of the clock."""
    step = clock_step_ns()
    source = word(system.sys / "devices/system/clocksource/clocksource0/current_clocksource")
    steps = f"steps of {step}{UNBROKEN}ns" if step is not None else "does not move"
    coarse = step is None or step > 1000
    fix = "find out why the processor's counter is not used: sudo dmesg | grep -i clocksource" if coarse else None
    return steps + (f", from {source}" if source else ""), fix


@check("loop overhead", f"Every time per call includes it; aim for {LOOP_TARGET_NS} ns or less.")
def loop(system: System) -> Answer:
    """The time that the loop around the calls takes."""
    ns = clock.loop_overhead_ns()
    fix = "check noise and python: another process, a slow clock rate, or a slow build"
    return f"{ns:.1f}{UNBROKEN}ns a call", fix if ns > LOOP_TARGET_NS else None


@check("copy rate", "A run sets the bytes of each call in relation to it.")
def copy_rate(system: System) -> Answer:
    """How fast numpy copies an array that no cache holds, and multiplies matrices."""
    return in_words(rates.on_processor()), None


def in_words(found: Rates) -> str:
    """Both rates, with the spread of their repetitions; a copy counts the bytes read and written."""
    parts = []
    for one, unit in ((found.copy, "GB/s"), (found.arithmetic, "Gflop/s")):
        spread = f" (±{50 * (one.spread or 0):.1f}{UNBROKEN}%)"
        parts.append(f"{one.per_second / 1e9:.3g}{UNBROKEN}{unit}{spread}" if one.per_second else str(one.reason))
    return f"copies {parts[0]}, multiplies matrices at {parts[1]}"


@check(
    "python",
    "A slow build slows libraries written in Python but not compiled ones, which shifts ratios.",
)
def python(system: System) -> Answer:
    """The build of the interpreter."""
    version = ".".join(map(str, sys.version_info[:3]))
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    if hasattr(sys, "gettotalrefcount") or sys.flags.dev_mode:
        return f"{version}, in debug mode", "use a release build without -X dev"
    if not arguments or "--enable-optimizations" in arguments:
        return version, None
    return f"{version}, built without --enable-optimizations", "use the system's Python, or build with that option"


@check("memray", "It measures the allocated peak, which is otherwise missing.")
def memray(system: System) -> Answer:
    """Whether the allocated peak can be measured."""
    version = installed_version("memray") if importlib.util.find_spec("memray") else None
    return (version, None) if version else ("not installed", "pip install memray")


@check("optional libraries", "The page of a run needs matplotlib, a compiled tape llvmlite, special functions scipy.")
def optional_libraries(system: System) -> Answer:
    """Whether the libraries of the extras plots, compiled and scipy are there."""
    missing = [name for name in OPTIONAL if installed_version(name) is None]
    if not missing:
        return "all", None
    return f"without {', '.join(missing)}", pip_command(f"{OURS}[{EXTRAS[name]}]" for name in missing)


@check("compiler", "C++ backends need it.")
def compiler(system: System) -> Answer:
    """Whether there is a compiler."""
    path = first_program((system.environment.get("CXX", ""), *COMPILERS))
    missing = path is None or memory_truth.compiler() is None
    return os.path.basename(path or "none"), "sudo apt install g++" if missing else None


def _percent(share: float) -> str:
    return f"{100 * share:.2g}{UNBROKEN}%"
