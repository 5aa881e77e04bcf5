"""How a run measures: settings for its duration and precision."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

THREADS_VARIABLE = "ADBENCH_THREADS"
"""Environment variable of a worker: how many threads its library may use."""

PROCESSOR = "cpu"
"""The device that every backend has."""


def on_device(backend: str, device: str) -> str:
    """The name that a backend has in results of a device: "jax (cuda)"; on the processor its own."""
    return backend if device == PROCESSOR else f"{backend} ({device})"


def backend_and_device(name: str) -> tuple[str, str]:
    """The backend and the device of such a name."""
    backend, _, device = name.removesuffix(")").rpartition(" (") if name.endswith(")") else (name, "", "")
    return backend or name, device if backend and device else PROCESSOR


FLOAT64 = "float64"
"""The type in which every backend computes, unless its file says float32."""

PROGRAMS_VARIABLE = "ADBENCH_PROGRAMS"
"""Environment variable of a checking worker: the folder of compiled programs. The first launch lacks it because it
measures compile time; so do the others, except on a device."""

MOST_SECONDS = 1_000_000
"""Of any duration that a user gives, eleven days: waiting in the system takes no more than 2**31 ms."""

MOST_SEED = 10**12
MOST_SIZE = 2**53
"""Seeds and sizes are read from files as floats; seeds of further points follow the given one."""

MOST_COUNT = 1_000_000
MOST_THREADS = 1024

Role = Literal["library", "own engine", "comparison"]
"""The role of a backend: an installable library, adbench's own engine, or a comparison such as derivatives by
hand and difference quotients."""

EARLIER_ROLES: Mapping[str, Role] = {
    "tape": "own engine",
    **dict.fromkeys(("complex_step", "cpp_hand", "cpp_plain", "cpp_simd", "numba_hand"), "comparison"),
    "finite_differences": "comparison",
}
"""The roles in runs of an adbench before 0.3, whose files have none: the beginnings of the names of backends."""

PREFERRED_REFERENCE = "tape"  # the default reference backend, if the run measures it


@dataclass(frozen=True)
class Settings:
    """Durations are in the unit of their name; `timeout_seconds` is for one request to a worker.

    threads             that every library may use
    more_threads        further numbers of threads, "2, 4", at which libraries that use threads are measured too
    device              on which the libraries compute: "cpu", another, such as "cuda", or several: "cpu,cuda"
    dtype               of arguments and results: a name in `adbench.oracle.evidence.PRECISIONS`
    transfers           whether copies of arguments to the device and of results from it are "outside" or "inside" the
                        clock
    launches            fresh processes of each backend that time a cell: the statistical sample
    stop_early          whether a group takes fewer launches once its verdicts are decided (planning/stopping.py)
    rounds              epochs of a cell in one launch, alternating with the others of its group
    epoch_ns            approximate length of an epoch; a longer call is an epoch
    warm_ns             the limit of a warm-up, which ends earlier if three rounds of `epoch_ns` agree
    warm_at_most_ns     the limit for a slow call, which otherwise runs at least three times
    cell_ns             the longest time of a cell in a launch; slow cells get fewer rounds, at least one
    longest_call_seconds   None for no limit. A cell with a longer call is checked but not timed, and so is one that
                        takes ten times as long to prepare. Without timing: a cell with a longer check is skipped
    instructions        what counts the instructions of a call, with its version; None: they are not counted
    weighings           calls in the memory phase; the figure is their median
    weigh_values        whether to measure the memory of `value` even if a derivative is measured
    weigh_by_one_method   whether to measure memory only by the first method that has a figure
    weigh_all_in_one    whether one process measures all cases of a backend by one method, or only one case
    mem_limit_bytes     the most memory of a worker with its children, which are then terminated; None for no limit
    margin              times that differ by less count as equal
    reference_backend   the backend measured twice, as the control; None for tape, or else the first backend
    budget_seconds      the planned duration of a run; None for no limit
    left_out            the work left out because of the budget, in words
    label               what the user calls the run
    """

    seed: int = 0
    threads: int = 1
    more_threads: str | None = None
    device: str = PROCESSOR
    dtype: str = FLOAT64
    transfers: Literal["outside", "inside"] = "outside"
    timeout_seconds: float = 60.0
    mem_limit_bytes: int | None = None
    reference_seconds: float = 5.0  # for one case at one size; fewer entries are examined to stay within it
    time: bool = True
    memory: bool = True
    instructions: str | None = None
    launches: int = 8
    rounds: int = 12
    epoch_ns: int = 5_000_000
    warm_ns: int = 200_000_000
    warm_at_most_ns: int = 500_000_000
    cell_ns: int = 500_000_000
    longest_call_seconds: float | None = None
    stop_early: bool = True
    weighings: int = 3
    weigh_values: bool = True
    weigh_by_one_method: bool = False
    weigh_all_in_one: bool = False
    margin: float = 0.02
    reference_backend: str | None = None
    budget_seconds: float | None = None
    left_out: str | None = None
    label: str | None = None
    quick: bool = False
    rigorous: bool = False
    cache: str | None = None  # folder of the oracle's cached references

    @property
    def thread_counts(self) -> tuple[int, ...]:
        """Every number of threads, the run's own first."""
        return (self.threads, *map(int, filter(None, (self.more_threads or "").split(", "))))

    def for_a_first_look(self) -> Settings:
        """Fewer and shorter epochs: a default run takes under two minutes, too short for decisions."""
        return replace(
            self,
            quick=True,
            margin=0.05,
            launches=5,
            rounds=5,
            epoch_ns=1_000_000,
            warm_ns=5_000_000,
            warm_at_most_ns=30_000_000,
            cell_ns=30_000_000,
            weighings=1,
            weigh_values=False,
            weigh_by_one_method=True,
            weigh_all_in_one=True,
            reference_seconds=2.0,
        )

    def for_publishing(self) -> Settings:
        """More launches, longer rounds, and more of them for slow calls, for publication."""
        return replace(
            self, rigorous=True, launches=20, epoch_ns=10_000_000, warm_at_most_ns=2_000_000_000, cell_ns=2_000_000_000
        )


def cache_folder() -> Path:
    """The folder of cached references: $ADBENCH_CACHE, else the user's cache folder. It can be deleted at any time."""
    folder = os.environ.get("ADBENCH_CACHE")
    return Path(folder) if folder else folder_in_cache("references")


def folder_in_cache(name: str) -> Path:
    """A folder below $ADBENCH_CACHE, else below the user's cache folder. It can be deleted at any time."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ADBENCH_CACHE") or Path(home, "adbench"), name)


def programs_folder() -> Path:
    """The folder in which checks cache compiled programs, for each kind of processor and version of Python, because
    machines may share a home folder. It can be deleted at any time."""
    kind = hashlib.sha256(f"{processor_features()} {sys.version}".encode()).hexdigest()[:16]
    return folder_in_cache("programs") / kind


def allowed_threads() -> int:
    """How many threads the library of this process may use: 1 outside of adbench's workers."""
    return int(os.environ.get(THREADS_VARIABLE) or 1)


def kept_programs(library: str) -> Path | None:
    """The folder in which a backend may cache its library's compiled programs, or None if caching is disabled.

    The folder exists, belongs to the user, and nobody else can write to it. It can be deleted at any time.
    """
    programs = os.environ.get(PROGRAMS_VARIABLE)
    if not programs:
        return None
    folder = Path(programs) / library
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
    except OSError:
        return None
    trusted = folder.is_dir() and not folder.is_symlink() and about.st_uid == os.getuid() and not about.st_mode & 0o022
    return folder if trusted else None


def processor_features() -> str:
    """The processor's instruction sets as the system lists them; machine code depends on them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
