"""The doctor on made-up machines: each problem gives a finding with a fix."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from adbench.catalog import installed, inventory
from adbench.catalog.discovery import Catalog, catalog
from adbench.catalog.source import Source
from adbench.cli import cli
from adbench.doctor import examine, findings
from adbench.doctor.findings import CHECKS, MachineFinding, State, System
from adbench.measure.machine.system_noise import Noise
from adbench.measure.memory_truth import Reading
from adbench.measure.readings import Figure
from adbench.reports.text.inventory import listing
from tests.measure.trees import CPU, Roots, roots, stat

QUIET = Noise(ns=10**9, gaps=3, taken_ns=10**5, longest_ns=50_000, spread=0.004, switches=1, stolen_ms=0.0)
MEGABYTE = 1 << 20


@pytest.fixture
def made(tmp_path: Path) -> Roots:
    return roots(tmp_path)


def system(made: Roots, noise: Noise = QUIET, **environment: str) -> System:
    return System((0, 1, 2, 3), noise, made.proc, made.sys, environment)


def look(name: str, at: System) -> MachineFinding:
    """The finding of the check with this name."""
    return {check.__name__: check for check in CHECKS}[name](at)


SICK: dict[str, tuple[str, dict[str, str], dict[str, str], str]] = {
    # name: the check, files of /proc, files of /sys, a part of the finding
    "a governor that saves power": (
        "governor",
        {},
        {f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave\n" for cpu in range(4)},
        "powersave",
    ),
    "one processor that saves power": (
        "governor",
        {},
        {f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": g for cpu, g in ((0, "performance"), (3, "schedutil"))},
        "performance, schedutil",
    ),
    "turbo on an Intel processor": ("turbo", {}, {f"{CPU}/intel_pstate/no_turbo": "0\n"}, "on"),
    "turbo on another": ("turbo", {}, {f"{CPU}/cpufreq/boost": "1\n"}, "on"),
    "shared cores": ("shared_cores", {}, {f"{CPU}/smt/active": "1\n"}, "two hardware threads"),
    "load": ("load", {"loadavg": "1.20 0.50 0.20 1/94 6841\n"}, {}, "1.20 over the last minute"),
    "a limit on processor time": (
        "processor_limit",
        {"self/cgroup": "0::/box\n"},
        {"fs/cgroup/box/cpu.max": "150000 100000\n", "fs/cgroup/box/cpu.stat": "nr_periods 9\nnr_throttled 7\n"},
        "1.5 processors' time, stopped 7 times",
    ),
    "a limit on processor time, version 1": (
        "processor_limit",
        {"self/cgroup": "1:cpu:/\n"},
        {"fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
        "0.5 processors' time",
    ),
    "little memory allowed": (
        "memory_limit",
        {"self/cgroup": "0::/box\n"},
        {"fs/cgroup/box/memory.max": f"{1 << 30}\n"},
        "1\u00a0GiB",
    ),
    "memory swapped out": (
        "swap",
        {"meminfo": "MemTotal: 8000000 kB\nSwapTotal: 4194304 kB\nSwapFree: 2097152 kB\n"},
        {},
        "2 of 4\u00a0GiB in use",
    ),
    "heat": ("heat", {}, {f"{CPU}/cpu2/thermal_throttle/core_throttle_count": "12\n"}, "throttled 12 times"),
    "a battery": ("power", {}, {"class/power_supply/AC/online": "0\n"}, "battery"),
    "huge pages": (
        "huge_pages",
        {},
        {"kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"},
        "always",
    ),
}


@pytest.mark.parametrize("what", SICK)
def test_a_disturbance_is_a_warning_with_a_fix(made: Roots, what: str) -> None:
    check, proc, sys, found = SICK[what]
    made.write(proc=proc, sys=sys)
    finding = look(check, system(made))
    assert finding.state == "warning"
    assert found in finding.found
    assert finding.why.endswith(".")
    assert finding.do


WELL: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "a fixed clock rate": ("governor", {}, {f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n"}),
    "no turbo": ("turbo", {}, {f"{CPU}/intel_pstate/no_turbo": "1\n"}),
    "no boost": ("turbo", {}, {f"{CPU}/cpufreq/boost": "0\n"}),
    "a core each": ("shared_cores", {}, {f"{CPU}/smt/active": "0\n"}),
    "no load": ("load", {"loadavg": "0.20 0.50 0.20 1/94 6841\n"}, {}),
    "no limit": ("processor_limit", {"self/cgroup": "0::/box\n"}, {"fs/cgroup/box/cpu.max": "max 100000\n"}),
    "memory enough": ("memory_limit", {"self/cgroup": "0::/b\n"}, {"fs/cgroup/b/memory.max": f"{1 << 36}\n"}),
    "nothing swapped out": ("swap", {"meminfo": "SwapTotal: 4194304 kB\nSwapFree: 4194304 kB\n"}, {}),
    "no swap": ("swap", {"meminfo": "SwapTotal: 0 kB\nSwapFree: 0 kB\n"}, {}),
    "never too hot": ("heat", {}, {f"{CPU}/cpu2/thermal_throttle/core_throttle_count": "0\n"}),
    "mains": ("power", {}, {"class/power_supply/AC/online": "1\n", "class/power_supply/USB/online": "0\n"}),
    "pages as asked": ("huge_pages", {}, {"kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"}),
}


@pytest.mark.parametrize("what", WELL)
def test_a_good_property_is_reported_as_ok(made: Roots, what: str) -> None:
    check, proc, sys = WELL[what]
    made.write(proc=proc, sys=sys)
    finding = look(check, system(made))
    assert (finding.state, finding.do) == ("ok", None)


def test_unknown_properties_are_not_warnings(made: Roots) -> None:
    told = [check(system(made)) for check in CHECKS if check not in (findings.python, findings.loop, findings.noise)]
    here = {"memray", "compiler"}  # properties of this installation, not of the system
    assert [finding.name for finding in told if finding.state == "warning" and finding.name not in here] == []
    assert {"governor", "turbo", "heat"} <= {finding.name for finding in told if finding.state == "unknown"}


def test_one_processor_is_a_warning(made: Roots) -> None:
    made.write(proc={"stat": stat({0: (1, 1, 0), 1: (1, 1, 0)})})
    finding = look("affinity", replace(system(made), cpus=(1,)))
    assert (finding.state, finding.found) == ("warning", "1: 1 of 2 hardware threads")
    assert look("affinity", system(made)).state == "ok"


@pytest.mark.parametrize(
    ("noise", "state"),
    [
        (QUIET, "ok"),
        (replace(QUIET, taken_ns=2 * 10**7), "warning"),
        (replace(QUIET, spread=0.03), "warning"),
        (replace(QUIET, spread=None), "ok"),
    ],
)
def test_noise_above_one_per_cent_or_uneven_work_is_a_warning(made: Roots, noise: Noise, state: State) -> None:
    assert look("noise", system(made, noise)).state == state


def test_the_fix_for_noise_names_only_properties_with_a_warning(made: Roots) -> None:
    loud = system(made, replace(QUIET, spread=0.03))
    assert look("noise", loud).do == "measure again when the machine is idle"
    made.write(proc={"loadavg": "1.20 0.50 0.20 1/94 6841\n"})
    assert look("noise", loud).do == "fix load"
    made.write(sys={f"{CPU}/cpufreq/boost": "1\n"})
    assert look("noise", loud).do == "fix load and turbo"


def test_a_hypervisor_is_a_warning_if_it_takes_time(made: Roots) -> None:
    made.write(proc={"cpuinfo": "flags : fpu hypervisor\n"}, sys={"hypervisor/type": "xen\n"})
    assert look("virtual", system(made)).state == "ok"
    finding = look("virtual", system(made, replace(QUIET, stolen_ms=30.0)))
    assert (finding.state, finding.found) == ("warning", "xen, 30\u00a0ms stolen in the last second")
    assert "stolen time unknown" in look("virtual", system(made, replace(QUIET, stolen_ms=None))).found


def test_another_allocator_is_a_warning_without_its_path(made: Roots) -> None:
    finding = look("allocator", system(made, LD_PRELOAD="/home/somebody/libjemalloc.so.2"))
    assert (finding.state, finding.found) == ("warning", "LD_PRELOAD=libjemalloc.so.2")
    assert finding.do == "unset LD_PRELOAD"


def test_missing_software_is_reported_with_the_command_that_installs_it(
    made: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "installed_version", lambda name: None)
    monkeypatch.setattr(findings, "first_program", lambda names: None)
    assert look("memray", system(made)).do == "pip install memray"
    assert look("compiler", system(made)).do == "sudo apt install g++"


def test_a_slow_loop_or_a_coarse_clock_is_a_warning(made: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write(sys={"devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"})
    monkeypatch.setattr(findings.clock, "loop_overhead_ns", lambda: 61.0)
    monkeypatch.setattr(findings, "clock_step_ns", lambda: 1400)
    assert (look("loop", system(made)).state, look("loop", system(made)).found) == ("warning", "61.0\u00a0ns a call")
    found = look("reading_the_clock", system(made))
    assert (found.state, found.found) == ("warning", "steps of 1400\u00a0ns, from hpet")
    monkeypatch.setattr(findings.clock, "loop_overhead_ns", lambda: 15.0)
    assert look("loop", system(made)).state == "ok"


@pytest.mark.parametrize(
    ("arguments", "state"),
    [("'--enable-shared'", "warning"), ("'--enable-optimizations' '--with-lto'", "ok"), (None, "ok")],
)
def test_a_slow_build_of_python_is_a_warning(
    made: Roots, monkeypatch: pytest.MonkeyPatch, arguments: str | None, state: State
) -> None:
    monkeypatch.setattr(findings.sysconfig, "get_config_var", lambda name: arguments)
    assert look("python", system(made)).state == state


def readings(*values: tuple[float | None, bool]) -> Iterator[Reading]:
    for value, seen in values:
        figure = Figure(None, "memray is not installed") if value is None else Figure(value * MEGABYTE)
        yield Reading("numpy", "allocated", 64 * MEGABYTE, figure, seen)


def of_numpy(*values: tuple[float | None, bool]) -> MachineFinding:
    return next(f for f in examine.memory_findings(lambda: readings(*values)) if f.name == "numpy")


def test_a_wrong_memory_method_is_a_warning() -> None:
    assert of_numpy((64.0, True)).state == "ok"
    lie = of_numpy((64.0, True), (20.0, True))
    assert (lie.state, lie.found) == ("warning", "allocated 64, 20 (!)")
    assert "do not quote" in str(lie.do)


def test_a_blind_memory_method_is_ok_and_a_missing_one_gives_the_reason() -> None:
    assert (of_numpy((0.0, False)).state, of_numpy((0.0, False)).found) == ("ok", "allocated (0)")
    missing = of_numpy((None, True))
    assert (missing.state, missing.found, missing.do) == ("unknown", "allocated —", "memray is not installed")


def source(name: str, **more: object) -> Source:
    return Source("backends", name, f"{name}.py", builtin=True, **more)  # type: ignore[arg-type]


def test_each_backend_has_its_version_or_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"numpy": "2.0"}
    monkeypatch.setattr("adbench.catalog.source.installed_version", there.get)
    monkeypatch.setattr("adbench.catalog.source.packages_of_debian", lambda names: {"libthere-dev": "1.2-3"})
    monkeypatch.setattr(installed, "has_dpkg", lambda: True)
    sources = [
        source("plain"),
        source("good", requires=("numpy",)),
        source("gone", requires=("numpy", "never-there", "nor-this")),
        source("native", requires=("never-there",), debian=("libthere-dev", "libgone-dev"), builds=True),
        source("packaged", debian=("libthere-dev",)),
    ]
    rows = {row["name"]: row for row in inventory.backend_rows(Catalog({}, {}, {s.name: s for s in sources}))}
    assert {name: row["install"] for name, row in rows.items()} == {
        "plain": None,
        "good": None,
        "gone": "pip install never-there nor-this",
        "native": "sudo apt install libgone-dev && pip install never-there",
        "packaged": None,
    }
    assert rows["good"]["version"] == "2.0"
    assert rows["packaged"]["version"] == "1.2-3"
    assert rows["native"]["missing"] == ["libgone-dev", "never-there"]


def test_a_list_searches_no_header_and_names_the_variable_for_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adbench.catalog.source.packages_of_debian", lambda names: {})
    monkeypatch.setattr(installed, "has_dpkg", lambda: True)
    rows = {row["name"]: row for row in inventory.backend_rows(catalog())}
    lines = listing([rows["adept"], rows["adolc"], rows["tape"]], width=80, colour=False).splitlines()
    assert [line.split()[0] for line in lines if line] == ["backend", "tape", "not", "adept", "adolc"]
    assert lines[-2].endswith("  set $ADEPT_HOME to its folder")


def test_on_a_bare_machine_every_backend_has_one_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adbench.catalog.source.installed_version", lambda name: None)
    monkeypatch.setattr("adbench.catalog.source.packages_of_debian", lambda names: {})
    there = catalog()
    rows = {row["name"]: row for row in inventory.backend_rows(there)}
    assert set(rows) == set(there.backends)
    for name, source in there.backends.items():
        commands = rows[name]["install"]
        assert (commands is not None) == bool(source.requires or source.debian), name
        for needed in (*source.requires, *source.debian):
            assert needed in str(commands), name


def test_debians_packages_are_looked_up_without_installing_any() -> None:
    assert installed.packages_of_debian(()) == {}
    found = installed.packages_of_debian({"libc6", "no-such-package-at-all"})
    assert "no-such-package-at-all" not in found
    assert "libc6" in found or not installed.has_dpkg()


def test_the_examination_is_plain_data_and_changes_nothing(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    done = CliRunner().invoke(cli, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {finding["state"] for finding in found["findings"]} <= {"ok", "warning", "unknown"}
    assert len(found["findings"]) == len(CHECKS)
    assert found["facts"]["python"] in found["fingerprint"]
    assert found["memory"] is None
    if before is not None:
        assert os.sched_getaffinity(0) == before


def test_the_doctor_takes_no_argument() -> None:
    done = CliRunner().invoke(cli, ["doctor", "now"])
    assert done.exit_code == 2
