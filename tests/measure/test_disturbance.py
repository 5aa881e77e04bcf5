"""Disturbances of an epoch, on made-up machines."""

import resource
from pathlib import Path

import pytest

from adbench.measure.machine import cgroup, disturbance
from adbench.measure.machine.disturbance import Counters, counters, disturbed
from tests.measure.trees import CPU, Roots, roots, stat

UNIFIED = {"self/cgroup": "0::/a/b\n"}
SEPARATE = {"self/cgroup": "3:memory:/m\n2:cpu,cpuacct:/a/b\n0::/\n"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """Trees of a machine whose processors 0 and 1 are usable."""
    monkeypatch.setattr(disturbance, "usable_cpus", lambda: (0, 1))
    disturbance._heat_files.cache_clear()
    return roots(tmp_path)


def read(made: Roots) -> Counters:
    return counters(proc=made.proc, sys=made.sys)


def without_switches(found: str | None) -> str | None:
    """The words without involuntary switches, which the real machine adds."""
    return "; ".join(part for part in (found or "").split("; ") if part and "switch" not in part) or None


def test_a_machine_without_counters_reports_nothing(made: Roots) -> None:
    found = read(made)
    assert (found.waited_ns, found.stolen_ms, found.hot, found.held_back) == (None,) * 4
    assert without_switches(disturbed(found, read(made))) is None


def test_steal_on_usable_processors_is_reported(made: Roots) -> None:
    made.write(proc={"stat": stat({0: (5, 5, 10), 1: (5, 5, 20), 2: (5, 5, 30)})})
    before = read(made)
    made.write(proc={"stat": stat({0: (5, 5, 11), 1: (5, 5, 22), 2: (5, 5, 99)})})
    assert without_switches(disturbed(before, read(made))) == "steal 30 ms"


def test_heat_is_reported(made: Roots) -> None:
    made.write(sys={f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count": "7\n" for cpu in (0, 1)})
    before = read(made)
    made.write(sys={f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "9\n"})
    assert without_switches(disturbed(before, read(made))) == "throttled 2× by heat"


@pytest.mark.parametrize(
    ("groups", "file"), [(UNIFIED, "fs/cgroup/a/b/cpu.stat"), (SEPARATE, "fs/cgroup/cpu,cpuacct/a/b/cpu.stat")]
)
def test_a_stopped_control_group_is_reported(made: Roots, groups: dict[str, str], file: str) -> None:
    made.write(proc=groups, sys={file: "nr_periods 10\nnr_throttled 4\nthrottled_usec 1\n"})
    before = read(made)
    made.write(sys={file: "nr_periods 12\nnr_throttled 5\nthrottled_usec 1\n"})
    assert without_switches(disturbed(before, read(made))) == "throttled 1× by the control group"


def test_switches_are_reported_with_their_time() -> None:
    assert disturbed(Counters(7), Counters(7)) is None
    assert disturbed(Counters(7), Counters(8)) == "1 involuntary switch"
    assert disturbed(Counters(7, 0), Counters(10, 1_240_000)) == "3 involuntary switches, 1.2 ms waiting"
    assert disturbed(Counters(7, 0), Counters(7, 1_240_000)) is None


def test_all_disturbances_are_reported() -> None:
    before = Counters(0, 0, 0.0, 0, 0)
    assert disturbed(before, Counters(2, None, 10.0, 1, 3)) == (
        "2 involuntary switches; steal 10 ms; throttled 1× by heat; throttled 3× by the control group"
    )


def test_our_own_involuntary_switches_are_counted() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    found = counters().switches
    assert before <= found <= resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        (UNIFIED, {"fs/cgroup/a/b/cpu.max": "max 100000"}, None),
        (UNIFIED, {"fs/cgroup/a/b/cpu.max": "50000 100000", "fs/cgroup/a/cpu.max": "200000 100000"}, 0.5),
        (UNIFIED, {"fs/cgroup/cpu.max": "200000 100000"}, 2.0),  # a container: its own group is the root it sees
        ({"self/cgroup": "0::/../../x\n"}, {"fs/cgroup/cpu.max": "200000 100000"}, 2.0),
        (
            SEPARATE,
            {
                "fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "300000",
                "fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
                "fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1",
                "fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
            },
            3.0,
        ),
        (UNIFIED, {"fs/cgroup/a/b/cpu.max": "nonsense"}, None),
        ({"self/cgroup": "no colons\n"}, {}, None),
    ],
)
def test_the_tightest_processor_limit_of_all_ancestors_counts(
    made: Roots, groups: dict[str, str], files: dict[str, str], limit: float | None
) -> None:
    made.write(proc=groups, sys=files)
    assert cgroup.cpu_limit(proc=made.proc, sys=made.sys) == limit


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        (UNIFIED, {"fs/cgroup/a/b/memory.max": "max"}, None),
        (UNIFIED, {"fs/cgroup/a/b/memory.max": "max", "fs/cgroup/a/memory.max": "4096"}, 4096),
        (SEPARATE, {"fs/cgroup/memory/m/memory.limit_in_bytes": "8192"}, 8192),
        (SEPARATE, {"fs/cgroup/memory/m/memory.limit_in_bytes": "9223372036854771712"}, None),
    ],
)
def test_the_tightest_memory_limit_of_all_ancestors_counts(
    made: Roots, groups: dict[str, str], files: dict[str, str], limit: int | None
) -> None:
    made.write(proc=groups, sys=files)
    assert cgroup.memory_limit(proc=made.proc, sys=made.sys) == limit
