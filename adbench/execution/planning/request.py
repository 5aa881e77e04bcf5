"""What a user asks for, as one value, and its parts: each of them must be judged somewhere (model/run_progress.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from adbench.catalog.discovery import Catalog
from adbench.execution.workers.supervisor import default_limit
from adbench.model.errors import UsageError
from adbench.model.operator import RELATIONS
from adbench.model.record import Job, Selected, grouped
from adbench.model.settings import FLOAT64, PROCESSOR, Settings, cache_folder, on_device

QUICK_SECONDS = 150.0  # the budget of a quick run that selects nothing: enough on a machine half as fast as ours
SUITE_SECONDS = 9_000.0  # that of a run of suites; its memory phase may take 20 % more, so it ends within three hours
LONGEST_CALL_SECONDS = 1.0  # of a run that names no size, and no case or a device; each launch makes four and more
LONGEST_QUICK_SECONDS = 0.1  # of a quick run
BUILT_FOR_FLOAT32 = 8  # times as fast as float64: a device's type by default; others have a factor of 1 or 2
LONGEST_CHECK_SECONDS = 5.0  # to check a cell, if nothing is timed and neither case nor size is named


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks for: which cells, and how to measure them. The command line and Python use these names.

    cases, backends                 names, globs, or files; none selects all
    sizes                           numbers, or globs over a case's own sizes; none: the case's own, or three of them in
                                    a run that names no case, and larger ones if it is on a device
    operators                       "relations" among them asks for those too, at each case's smallest size;
                                    none: each case's own, and for a check all possible ones at the smallest size
    suites                          only the cases of one of these: "all", "traps", or what the cases say
    case_folders, backend_folders   folders with the user's own files
    quick                           fewer sizes, launches and epochs
    time                            measure time. A run that names no cases has only those of a first look and the
                                    user's own, and no traps. Without it this is a check, which has all
    instructions                    whether to count instructions; settings raise UsageError without Valgrind
    launches, budget, mem_limit     None: the default; the budget in seconds, the limit in bytes
    reference                       the backend that is measured twice, as the control
    points                          the number of seeds to check at, beginning with `seed`
    label                           what the user calls the run
    threads                         that every library may use; libraries that use threads are also measured with each
                                    further number
    device, dtype, transfers        see Settings; the type "" is float64, or float32 to measure on a device that is
                                    built for it
    seeds_left_out                  those among them that are not checked
    backends_by_default             whether nobody named the backends: one of them may judge nothing

    A quick request or a run that names no backend has the default ones (Source.is_default) that are installed.
    """

    cases: Sequence[str] = ()
    backends: Sequence[str] = ()
    sizes: Sequence[str] = ()
    operators: Sequence[str] = ()
    suites: Sequence[str] = ()
    case_folders: Sequence[str] = ()
    backend_folders: Sequence[str] = ()
    quick: bool = False
    rigorous: bool = False
    launches: int | None = None
    budget: float | None = None
    time: bool = True
    memory: bool = True
    instructions: bool = False
    margin: float | None = None
    reference: str | None = None
    seed: int = 0
    points: int = 1
    seeds_left_out: Sequence[int] = ()
    backends_by_default: bool = False
    label: str | None = None
    threads: int | Sequence[int] = 1
    device: str = PROCESSOR
    dtype: str = ""
    transfers: Literal["outside", "inside"] = "outside"
    timeout: float = 60.0
    mem_limit: int | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """On which every backend that can is measured."""
        return tuple(dict.fromkeys(name.strip() for name in self.device.split(",")))

    @cached_property
    def slower_in_float64(self) -> int:
        """How many times slower than in float32 a device of a run without a type computes in float64, if that decides;
        else 0."""
        if self.dtype or not self.time or self.devices == (PROCESSOR,):
            return 0
        from adbench.measure.machine.device_type import float32_speed

        speeds = map(float32_speed, self.devices)
        return max((speed for speed in speeds if speed >= BUILT_FOR_FLOAT32), default=0)

    @property
    def used_type(self) -> str:
        """The name of the type to compute in."""
        return self.dtype or ("float32" if self.slower_in_float64 else FLOAT64)

    @property
    def own_operators(self) -> tuple[str, ...] | None:
        """The operators to use for every case; None: each case's own."""
        return tuple(name for name in self.operators if name != RELATIONS) if self.operators else None

    @property
    def relations(self) -> bool:
        """Whether to check relations too, at each case's smallest size."""
        return RELATIONS in self.operators if self.operators else not self.time and self.used_type == FLOAT64

    @property
    def seconds(self) -> float | None:
        """What the run has to fit into; None if it may take any time."""
        if self.budget or not self.time:
            return self.budget
        chosen = self.cases or self.sizes or self.operators
        if self.quick:
            return None if chosen or self.backends or self.suites else QUICK_SECONDS
        is_long = self.suites and not chosen and not self.rigorous and self.launches is None
        return SUITE_SECONDS if is_long else None

    @property
    def adds_sizes(self) -> bool:
        """Whether cases have larger sizes than their own, so that a device has work."""
        return self.time and not self.quick and not self.sizes and self.devices != (PROCESSOR,)

    @property
    def selects_nothing(self) -> bool:
        """Whether this is a check of everything built in, which has only a part of it."""
        chosen = self.cases or self.backends or self.sizes or self.operators or self.suites
        return not self.time and not chosen

    @property
    def _thread_counts(self) -> tuple[int, ...]:
        return (self.threads,) if isinstance(self.threads, int) else tuple(dict.fromkeys(self.threads))

    @property
    def settings(self) -> Settings:
        """How it measures, before a budget changes that."""
        settings = Settings(
            cache=str(cache_folder()),
            seed=self.seed,
            threads=self._thread_counts[0],
            more_threads=", ".join(map(str, self._thread_counts[1:])) or None,
            device=",".join(self.devices),
            dtype=self.used_type,
            transfers=self.transfers,
            timeout_seconds=self.timeout,
            mem_limit_bytes=self.mem_limit or default_limit(),
            time=self.time,
            memory=self.memory,
            instructions=_counter(self.device) if self.instructions else None,
            reference_backend=self.reference,
            budget_seconds=self.seconds,
            label=self.label,
        )
        if self.quick:
            settings = settings.for_a_first_look()
        if self.time and self.quick and not self.sizes:  # -n N measures what took too long
            settings = replace(settings, longest_call_seconds=LONGEST_QUICK_SECONDS)
        elif not self.sizes and (not self.cases or self.adds_sizes):
            longest = LONGEST_CALL_SECONDS if self.time else LONGEST_CHECK_SECONDS
            settings = replace(settings, longest_call_seconds=longest)
        if self.rigorous:
            settings = settings.for_publishing()
        if self.margin is not None:
            settings = replace(settings, margin=self.margin)
        return settings if self.launches is None else replace(settings, launches=self.launches, stop_early=False)


def _counter(device: str) -> str:
    """What counts instructions here. Raises UsageError if nothing does."""
    from adbench.measure.instructions import counter

    found = counter()
    if found is None:
        raise UsageError(
            "--instructions needs Valgrind, which is not installed; install it, as by apt-get install valgrind"
        )
    if device != PROCESSOR:
        raise UsageError(
            f"--instructions counts those of the processor, and --device {device} computes elsewhere; omit one"
        )
    return found


Part = tuple[str, tuple[str, ...]]
"""A pattern of the request, and the names that it selects."""


def selected(catalog: Catalog, request: Request, jobs: Sequence[Job]) -> tuple[Selected, ...]:
    """The parts of a request; patterns here are names or globs.

    Each pattern is one, and so is each case and backend of the user. Each other backend is one in a request without
    limits: a library that cannot differentiate the one case that was named was not asked for by name. A library that
    is not installed or lacks the device or the type counts only by its pattern.
    """
    cases, backends = (tuple(dict.fromkeys(getattr(job, name) for job in jobs)) for name in ("case", "backend"))
    is_elsewhere = (request.devices, request.used_type) != ((PROCESSOR,), FLOAT64)
    limits = request.cases or request.suites or request.sizes or request.operators or is_elsewhere
    patterns = () if request.backends_by_default else request.backends

    def is_one(name: str) -> bool:
        source = catalog.backends[name]
        if source.missing or source.refuses(source.device, request.used_type):
            return False
        return not (source.builtin and limits)

    own = [name for name in cases if not catalog.case_sources[name].builtin]
    parts = [
        *(Selected("backend", *part) for part in _placed(catalog, _parts(patterns, catalog.backends), backends)),
        *(Selected("backend", name, (name,)) for name in backends if is_one(name)),
        *(Selected("case", *part) for part in _parts(request.cases, catalog.cases)),
        *(Selected("case", name, (name,)) for name in own),
    ]
    return tuple({(part.kind, part.names): part for part in reversed(parts)}.values())[::-1]


def _placed(catalog: Catalog, parts: Iterable[Part], backends: Sequence[str]) -> Iterator[Part]:
    """Each part once for each device, with the names that its backends have there."""
    for asked, names in parts:
        there = [source for source in map(catalog.backends.__getitem__, backends) if source.name in names]
        for device, sources in grouped(there, lambda source: source.device).items():
            yield on_device(asked, device), tuple(source.label for source in sources)


def _parts(patterns: Iterable[str], names: Collection[str]) -> Iterator[Part]:
    """Each pattern, with the names that it matches."""
    for pattern in patterns:
        exact = pattern in names  # without a look at the others
        yield pattern, (pattern,) if exact else tuple(name for name in names if fnmatchcase(name, pattern))
