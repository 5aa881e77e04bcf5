"""What `adbench doctor` looks at: one function for each thing, from what the system tells to a finding.

Nothing here changes anything; what to do is said and left to whom the machine belongs.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from adbench.catalog.installed import installed_version
from adbench.measure import clock, memory_truth
from adbench.measure.machine import GIGABYTE, cgroup, compiler_in, disturbance, processors
from adbench.measure.machine.spin import Noise, clock_step_ns
from adbench.measure.machine.system_files import PROC, SYS, text, word

State = Literal["ok", "warning", "unknown"]

LOOP_TARGET_NS = 20
QUIET = 0.01  # share of a second that others may take
EVEN = 0.02  # by which equal work may differ: the margin of a local comparison
MEGABYTE = 1 << 20
UNBROKEN = "\u00a0"  # a space at which no line ends: between a number and its unit
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what it was, whether that is well, why it matters, and what to do where it is
    not. `unknown` is what the system does not tell."""

    name: str
    found: str
    state: State
    why: str
    do: str | None = None


@dataclass(frozen=True)
class Patient:
    """What is looked at: a machine by its two trees, a process by its environment, and the noise it had."""

    cpus: tuple[int, ...]
    noise: Noise
    proc: Path = PROC
    sys: Path = SYS
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def governor(at: Patient) -> Finding:
    """Who decides the clock rate."""
    found = processors.governors(at.cpus, sys=at.sys)
    why = "Where the clock rate follows the load, the first milliseconds of an epoch run at a lower one."
    if not found:
        return Finding("governor", "not told, as in most virtual machines", "unknown", why)
    fixed = set(found) == {"performance"}
    do = None if fixed else "sudo cpupower frequency-set -g performance"
    return Finding("governor", ", ".join(found), "ok" if fixed else "warning", why, do)


def turbo(at: Patient) -> Finding:
    """Whether the clock rate depends on heat."""
    found = processors.turbo(sys=at.sys)
    why = "With turbo the clock rate depends on heat and on what the other cores do."
    if found is None:
        return Finding("turbo", "not told, as in most virtual machines", "unknown", why)
    intel = "devices/system/cpu/intel_pstate/no_turbo"
    off = (
        f"1 | sudo tee /sys/{intel}"
        if (at.sys / intel).exists()
        else "0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    )
    do = f"echo {off}" if found else None
    return Finding("turbo", "on" if found else "off", "warning" if found else "ok", why, do)


def shared_cores(at: Patient) -> Finding:
    """Whether hardware threads share cores."""
    found = processors.shares_cores(sys=at.sys)
    why = "What runs on the other hardware thread of a core takes up to half of it."
    if found is None:
        return Finding("shared cores", "not told", "unknown", why)
    do = "keep the machine idle, or echo off | sudo tee /sys/devices/system/cpu/smt/control" if found else None
    words = "two hardware threads on a core" if found else "each hardware thread has its core"
    return Finding("shared cores", words, "warning" if found else "ok", why, do)


def affinity(at: Patient) -> Finding:
    """Where a process may run."""
    every = len(processors.ticks(proc=at.proc)) or len(at.cpus)
    found = f"{processors.listed(at.cpus)}: {len(at.cpus)} of {every} hardware threads"
    why = "With one processor, what is measured takes turns with all else that runs."
    alone = len(at.cpus) < 2
    return Finding("affinity", found, "warning" if alone else "ok", why, "allow it two or more" if alone else None)


def load(at: Patient) -> Finding:
    """What else runs."""
    words = (text(at.proc / "loadavg") or "").split()
    why = "Other work takes processor time, caches and memory bandwidth."
    if not words:
        return Finding("load", "not told", "unknown", why)
    busy = float(words[0]) > max(0.25 * len(at.cpus), 0.3)
    found = f"{words[0]} over the last minute, on {len(at.cpus)} processors"
    return Finding(
        "load", found, "warning" if busy else "ok", why, "see what runs with top, and let it end" if busy else None
    )


def processor_limit(at: Patient) -> Finding:
    """Whether a control group limits processor time."""
    limit, stopped = cgroup.cpu_limit(proc=at.proc, sys=at.sys), cgroup.times_held_back(proc=at.proc, sys=at.sys)
    why = "A group that has used up its time is stopped until the next period, up to 0.1 s, in the middle of a call."
    if limit is None:
        return Finding("processor limit", "none", "ok", why)
    times = f", stopped {stopped} times so far" if stopped else ""
    do = "give processors instead of time: docker run --cpuset-cpus 0,1, not --cpus"
    return Finding("processor limit", f"{limit:g} processors' time{times}", "warning", why, do)


def memory_limit(at: Patient) -> Finding:
    """Whether a control group limits memory."""
    limit = cgroup.memory_limit(proc=at.proc, sys=at.sys)
    why = "A process that needs more is killed; large sizes then read as crashed."
    if limit is None:
        return Finding("memory limit", "none", "ok", why)
    small = limit < 4 * GIGABYTE
    do = "raise it to 4 GiB or more, or leave out large sizes" if small else None
    return Finding("memory limit", f"{limit / GIGABYTE:.3g}{UNBROKEN}GiB", "warning" if small else "ok", why, do)


def swap(at: Patient) -> Finding:
    """Whether memory has been swapped out."""
    lines = (text(at.proc / "meminfo") or "").splitlines()
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if rest}
    why = "What was swapped out is read back within the clock."
    if "SwapTotal" not in sizes:
        return Finding("swap", "not told", "unknown", why)
    if not sizes["SwapTotal"]:
        return Finding("swap", "none", "ok", why)
    used = sizes["SwapTotal"] - sizes.get("SwapFree", 0)
    in_use = used > 64 * MEGABYTE
    found = f"{used / GIGABYTE:.2g} of {sizes['SwapTotal'] / GIGABYTE:.2g}{UNBROKEN}GiB in use"
    return Finding(
        "swap",
        found,
        "warning" if in_use else "ok",
        why,
        "end what fills the memory; then sudo swapoff -a" if in_use else None,
    )


def heat(at: Patient) -> Finding:
    """Whether the processors have been too hot."""
    count = disturbance.heat_count(at.cpus, sys=at.sys)
    why = "A processor that is too hot lowers its clock rate."
    if count is None:
        return Finding("heat", "not told", "unknown", why)
    found = f"throttled {count} times since the start" if count else "never throttled since the start"
    do = "better cooling, or turbo off" if count else None
    return Finding("heat", found, "warning" if count else "ok", why, do)


def power(at: Patient) -> Finding:
    """Whether a battery feeds the machine."""
    supplies = sorted((at.sys / "class/power_supply").glob("*/online"))
    states = {file.parent.name: word(file) for file in supplies}
    why = "On battery, clock rates are kept low."
    if not states:
        return Finding("power", "no battery, or not told", "ok", why)
    plugged = "1" in states.values()
    return Finding(
        "power",
        "mains" if plugged else "battery",
        "ok" if plugged else "warning",
        why,
        None if plugged else "plug it in",
    )


def virtual(at: Patient) -> Finding:
    """Whether a hypervisor gives the processors to others."""
    name = processors.hypervisor(proc=at.proc, sys=at.sys)
    stolen = at.noise.stolen_ms
    why = "A hypervisor may give the processor to another machine at any time; the clock goes on."
    if name is None:
        return Finding("hypervisor", "none that says so", "ok", why)
    told = "steal not told" if stolen is None else f"{stolen:g}{UNBROKEN}ms stolen in the last second"
    do = "a machine with processors of its own (dedicated, bare metal)" if stolen else None
    return Finding("hypervisor", f"{name}, {told}", "warning" if stolen else "ok", why, do)


def noise(at: Patient) -> Finding:
    """What a process that wants a whole second gets of it."""
    seen = at.noise
    spread = "" if seen.spread is None else f"; equal work differs by {_percent(seen.spread)}"
    found = (
        f"{_percent(seen.taken)} of a second went to others in {seen.gaps} gaps, the longest "
        f"{seen.longest_ns * 1e-6:.2g}{UNBROKEN}ms{spread}"
    )
    loud = seen.taken > QUIET or (seen.spread or 0) > EVEN
    why = "This is what launches, rounds and paired ratios are there to average; less noise, narrower intervals."
    return Finding(
        "noise", found, "warning" if loud else "ok", why, "see load, turbo and hypervisor above" if loud else None
    )


def reading_the_clock(at: Patient) -> Finding:
    """The clock's resolution."""
    step = clock_step_ns()
    source = word(at.sys / "devices/system/clocksource/clocksource0/current_clocksource")
    coarse = step is None or step > 1000
    steps = f"steps of {step}{UNBROKEN}ns" if step is not None else "does not move"
    found = steps + (f", from {source}" if source else "")
    do = "see why the processor's counter is not used: sudo dmesg | grep -i clocksource" if coarse else None
    return Finding("clock", found, "warning" if coarse else "ok", "Shorter times cannot be told apart.", do)


def loop(at: Patient) -> Finding:
    """What the loop around the calls takes itself."""
    ns = clock.loop_overhead_ns()
    slow = ns > LOOP_TARGET_NS
    why = f"Every time per call includes it; {LOOP_TARGET_NS} ns or less is the aim."
    do = "see noise and python: another process at this moment, a slow clock rate, or a slow build" if slow else None
    return Finding("loop overhead", f"{ns:.1f}{UNBROKEN}ns a call", "warning" if slow else "ok", why, do)


def python(at: Patient) -> Finding:
    """How the interpreter was built."""
    version = ".".join(map(str, sys.version_info[:3]))
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    why = "Libraries that run in Python itself are slower in a slow build, compiled ones are not: ratios shift."
    if hasattr(sys, "gettotalrefcount") or sys.flags.dev_mode:
        return Finding("python", f"{version}, in debug mode", "warning", why, "a release build, without -X dev")
    if not arguments:
        return Finding("python", version, "ok", why)
    quick = "--enable-optimizations" in arguments
    found = version if quick else f"{version}, built without --enable-optimizations"
    return Finding(
        "python",
        found,
        "ok" if quick else "warning",
        why,
        None if quick else "the system's Python, or one built with it",
    )


def allocator(at: Patient) -> Finding:
    """Whether something stands in for the system's allocator."""
    names = ("LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PYTHONMALLOC", "GLIBC_TUNABLES")
    given = [f"{name}={os.path.basename(value)}" for name in names if (value := at.environment.get(name))]
    why = "Another allocator changes what is measured, and may hide from the methods that measure memory."
    do = f"unset {' '.join(text.partition('=')[0] for text in given)}" if given else None
    return Finding("allocator", ", ".join(given) or "the system's", "warning" if given else "ok", why, do)


def huge_pages(at: Patient) -> Finding:
    """Whether memory comes in pages of two megabytes unasked."""
    said = word(at.sys / "kernel/mm/transparent_hugepage/enabled") or ""
    chosen = said.partition("[")[2].partition("]")[0]
    why = "Where every large block gets pages of 2 MB, the resident peak goes up in steps of that size."
    if not chosen:
        return Finding("huge pages", "not told", "unknown", why)
    always = chosen == "always"
    do = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled" if always else None
    return Finding("huge pages", chosen, "warning" if always else "ok", why, do)


def memray(at: Patient) -> Finding:
    """Whether the allocated peak can be had."""
    version = installed_version("memray") if importlib.util.find_spec("memray") else None
    why = "It measures the allocated peak; without it that figure is missing."
    return Finding(
        "memray",
        version or "not installed",
        "ok" if version else "warning",
        why,
        None if version else "pip install memray",
    )


def compiler(at: Patient) -> Finding:
    """Whether there is a compiler."""
    path = compiler_in((at.environment.get("CXX", ""), *COMPILERS))
    missing = path is None or memory_truth.compiler() is None
    why = "Backends in C++ are built with it."
    found = os.path.basename(path) if path else "none"
    return Finding("compiler", found, "warning" if missing else "ok", why, "sudo apt install g++" if missing else None)


def browser(at: Patient) -> Finding:
    """Whether there is a browser for the tests of the page."""
    path = compiler_in(BROWSERS)
    return Finding("browser", os.path.basename(path) if path else "none", "ok", "Only the tests of the page need one.")


CHECKS: tuple[Callable[[Patient], Finding], ...] = (
    affinity,
    load,
    noise,
    virtual,
    governor,
    turbo,
    shared_cores,
    heat,
    power,
    processor_limit,
    memory_limit,
    swap,
    huge_pages,
    allocator,
    reading_the_clock,
    loop,
    python,
    memray,
    compiler,
    browser,
)
"""In the order they are told."""


def _percent(share: float) -> str:
    return f"{100 * share:.2g}{UNBROKEN}%"
