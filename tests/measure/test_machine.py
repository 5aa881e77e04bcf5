"""The description of the machine, its omissions, and the placement of processes."""

import getpass
import json
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from adbench.measure import machine
from adbench.measure.machine import Fact, processors
from tests.measure.trees import CPU, Roots, roots

linux_only = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is Linux's")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """Trees of a machine whose processors 0 to 3 are usable."""
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1, 2, 3))
    return roots(tmp_path)


def test_the_description_is_plain_data_without_names_of_host_or_user() -> None:
    text = json.dumps(machine.describe())
    assert platform.node() not in text
    assert f'"{getpass.getuser()}"' not in text
    assert platform.python_version() in text


def test_an_unknown_machine_has_an_empty_description(made: Roots) -> None:
    found = machine.describe(proc=made.proc, sys=made.sys)
    unknown = ("shared_cores", "cpu_limit", "max_mhz", "governor", "turbo", "hypervisor", "memory_limit_bytes")
    assert [found[name] for name in unknown] == [None] * len(unknown)
    assert found["usable_threads"] == 4


def test_the_description_has_the_machines_facts(made: Roots) -> None:
    made.write(
        proc={
            "cpuinfo": "processor\t: 0\nmodel name\t: Made Up 9000\nflags\t\t: fpu hypervisor sse\n",
            "self/cgroup": "0::/a/b\n",
        },
        sys={
            f"{CPU}/smt/active": "1\n",
            f"{CPU}/intel_pstate/no_turbo": "0\n",
            f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
            f"{CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
            f"{CPU}/cpu1/cpufreq/cpuinfo_max_freq": "4100000\n",
            "class/dmi/id/sys_vendor": "Cloud Inc.\n",
            "fs/cgroup/a/cpu.max": "150000 100000\n",
            "fs/cgroup/a/b/memory.max": "max\n",
            "fs/cgroup/a/memory.max": "1073741824\n",
        },
    )
    found = machine.describe(proc=made.proc, sys=made.sys)
    assert {name: found[name] for name in ("processor", "shared_cores", "turbo", "governor", "hypervisor")} == {
        "processor": "Made Up 9000",
        "shared_cores": True,
        "turbo": True,
        "governor": "powersave, performance",
        "hypervisor": "Cloud Inc.",
    }
    assert (found["cpu_limit"], found["memory_limit_bytes"], found["max_mhz"]) == (1.5, 1 << 30, 4100.0)


def test_threads_are_fixed_for_every_library_that_reads_an_environment() -> None:
    one = machine.thread_environment(1)
    assert one["OMP_NUM_THREADS"] == one["OPENBLAS_NUM_THREADS"] == one["MKL_NUM_THREADS"] == "1"
    assert one["NUMBA_NUM_THREADS"] == "1"
    assert "multi_thread_eigen=false" in one["XLA_FLAGS"]
    assert "multi_thread_eigen=true" in machine.thread_environment(2)["XLA_FLAGS"]


HERE: dict[str, Fact] = {
    "processor": "Made Up 9000",
    "architecture": "x86_64",
    "cores": 4,
    "hardware_threads": 8,
    "usable_threads": 8,
    "cpu_limit": None,
    "memory_bytes": 16_600_000_000,
    "memory_limit_bytes": None,
    "system": "Linux 6.1.0-9",
    "python": "CPython 3.11.7",
    "load_1_minute": 0.1,
    "governor": "performance",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("processor", "Made Up 9001"),
        ("cores", 8),
        ("usable_threads", 2),
        ("cpu_limit", 1.5),
        ("memory_bytes", 33_000_000_000),
        ("memory_limit_bytes", 2_000_000_000),
        ("system", "Darwin 23.1.0"),
        ("python", "CPython 3.12.1"),
    ],
)
def test_times_of_another_machine_have_another_fingerprint(name: str, value: Fact) -> None:
    assert machine.fingerprint(HERE | {name: value}) != machine.fingerprint(HERE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("load_1_minute", 3.0),
        ("memory_bytes", 16_400_000_000),
        ("memory_limit_bytes", 64_000_000_000),
        ("system", "Linux 6.1.0-10"),
    ],
)
def test_the_same_machine_on_another_day_has_the_same_fingerprint(name: str, value: Fact) -> None:
    assert machine.fingerprint(HERE | {name: value}) == machine.fingerprint(HERE)


def test_a_description_that_lacks_facts_has_a_fingerprint_too() -> None:
    assert "cores —" in machine.fingerprint({})
    assert machine.fingerprint({}) != machine.fingerprint(HERE)


class TestMeasuringCpus:
    """The chosen processors."""

    @pytest.fixture
    def in_use(self, monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
        """Busy ticks of each processor per hundred."""
        use = dict.fromkeys(range(4), 0)
        looks: list[int] = []

        def ticks(**_: Path) -> dict[int, tuple[int, int]]:
            looks.append(1)
            return {cpu: (used * (len(looks) - 1), 100 * (len(looks) - 1)) for cpu, used in use.items()}

        monkeypatch.setattr(processors, "ticks", ticks)
        monkeypatch.setattr(machine.time, "sleep", lambda seconds: None)
        return use

    @staticmethod
    def chosen(made: Roots, threads: int) -> tuple[int, ...]:
        return machine.measuring_cpus(threads, proc=made.proc, sys=made.sys)

    def test_are_the_last_where_all_are_idle(self, made: Roots, in_use: dict[int, int]) -> None:
        assert self.chosen(made, 1) == (3,)

    def test_are_the_least_busy(self, made: Roots, in_use: dict[int, int]) -> None:
        in_use.update({0: 20, 1: 3, 2: 30, 3: 40})
        assert self.chosen(made, 1) == (1,)

    def test_are_not_beside_a_busy_thread_of_the_same_core(self, made: Roots, in_use: dict[int, int]) -> None:
        made.write(sys={f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}" for cpu in in_use})
        in_use[1] = 90  # shares its core with 3
        assert self.chosen(made, 1) == (2,)

    def test_are_of_one_core_only_when_no_other_is_left(self, made: Roots, in_use: dict[int, int]) -> None:
        made.write(sys={f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}" for cpu in in_use})
        assert self.chosen(made, 2) == (2, 3)
        assert self.chosen(made, 3) == (1, 2, 3)

    def test_are_of_the_faster_kind(self, made: Roots, in_use: dict[int, int]) -> None:
        made.write(sys={f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq": f"{5 - cpu // 2}000000" for cpu in in_use})
        in_use.update({0: 10, 1: 5, 2: 0, 3: 0})
        assert self.chosen(made, 1) == (1,)
        in_use.update({0: 80, 1: 80})  # unless the socket is busy
        assert self.chosen(made, 1) == (3,)

    def test_are_in_one_socket(self, made: Roots, in_use: dict[int, int]) -> None:
        made.write(sys={f"{CPU}/cpu{cpu}/topology/physical_package_id": f"{cpu % 2}" for cpu in in_use})
        in_use[1] = 20
        assert self.chosen(made, 2) == (1, 3)

    def test_are_all_there_are_for_more_threads(self, made: Roots, in_use: dict[int, int]) -> None:
        assert self.chosen(made, 9) == (0, 1, 2, 3)


@linux_only
def test_existing_and_later_threads_of_a_process_are_pinned() -> None:
    program = (
        "import os, sys, threading\n"
        "hold = threading.Event()\n"
        "for _ in range(3): threading.Thread(target=hold.wait, daemon=True).start()\n"
        "print(flush=True); sys.stdin.readline()\n"
        "threading.Thread(target=hold.wait, daemon=True).start()\n"
        "print([sorted(os.sched_getaffinity(int(t))) for t in os.listdir('/proc/self/task')], flush=True)"
    )
    cpu = min(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        assert machine.pin(process.pid, (cpu,)) == 4
        found, _ = process.communicate("\n", timeout=60)
    assert json.loads(found) == [[cpu]] * 5


@linux_only
def test_a_missing_processor_or_process_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        machine.pin(os.getpid(), (10**4,))
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    with pytest.raises(ProcessLookupError):
        machine.pin(process.pid, (0,))


@linux_only
def test_threads_that_start_meanwhile_are_pinned_too(monkeypatch: pytest.MonkeyPatch) -> None:
    listings = iter([{1}, {1, 2}, {1, 2, 3}, {1, 2, 3}])
    pinned: list[int] = []
    monkeypatch.setattr(machine, "_threads", lambda pid, proc: next(listings))
    monkeypatch.setattr(machine.os, "sched_setaffinity", lambda thread, cpus: pinned.append(thread))
    assert machine.pin(1, (0,)) == 3
    assert pinned == [1, 2, 3]


def test_sets_of_processors_use_the_kernels_format() -> None:
    assert processors.numbers("0-2,8\n".strip()) == (0, 1, 2, 8)
    assert processors.listed((0, 1, 2, 8)) == "0-2,8"
    assert processors.listed((5,)) == "5"
    assert processors.numbers("") == processors.numbers("none") == ()


@linux_only
def test_a_busy_processor_is_seen_to_be_busy() -> None:
    """A spinning thread appears in the total of all processors' ticks."""
    before = processors.ticks()
    stop = threading.Event()
    spinner = threading.Thread(target=lambda: all(not stop.is_set() for _ in iter(int, 1)))
    spinner.start()
    time.sleep(0.3)
    stop.set()
    spinner.join()
    after = processors.ticks()
    assert sum(after[cpu][0] - before[cpu][0] for cpu in before) >= 10
