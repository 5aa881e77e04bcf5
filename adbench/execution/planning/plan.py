"""What will be measured: from a request to a list of jobs, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from zlib import crc32

from adbench.catalog.discovery import Catalog, requirement, select
from adbench.catalog.installed import pip_command
from adbench.catalog.source import LOW, Source
from adbench.execution.planning.request import Request
from adbench.model.case import ONE_BY_ONE, Case, function_of
from adbench.model.errors import UnknownName, UsageError, contained
from adbench.model.operator import BATCH, EVERY_OPERATOR, OF_TRAPS, RELATIONS, batch_points, with_points
from adbench.model.record import Job, grouped
from adbench.model.settings import FLOAT64, MOST_SIZE, PROCESSOR, on_device

FIRST_LOOK: Mapping[str, tuple[int, ...]] = {
    "log_determinant": (8, 32, 128),
    "logistic_regression": (100, 1_000, 10_000),
    "lotka_volterra": (10, 100, 1_000),
    "matrix_product": (8, 32, 64),
    "normal_log_density": (100, 10_000, 1_000_000),
    "projectile": (10, 100, 1_000),
}
"""The cases of a run that names none: linear algebra, a regression, an equation, array code, and a branch that depends
on data; and their sizes in that run and in a quick one."""

FIRST_BACKENDS = ("tape", "tape_compiled", "jax", "jax_native", "torch", "autograd")
"""The built-in backends of a quick run that names no backend, case or suite: they take about a minute. jax has two,
because its portable source is slower than idiomatic code, and lacks branches that depend on data."""

DEVICE_NUMBERS, REFERENCE_SECONDS = 10**7, 20.0
"""The largest size that a run on a device adds to a case's own, and the time in which enclosures prove its gradient."""

ENCLOSING_SECONDS = 4e-7, 5e-8
"""For each operation of the function, and for each of the n³ multiplications of dense matrices."""

AT_DEVICE_SIZES = ("value", "gradient")
"""The operators at these sizes: enclosures prove no second derivatives."""

SAMPLE = 3  # relations hold for a library or not: what breaks one on a single case is rare
MOST_NAMES = 3  # of backends that are not installed, in a line


@dataclass(frozen=True)
class Plan:
    """Jobs in the order in which they run, and in words the missing parts of the request.

    not_installed   backend that it would have -> what `pip install` needs for it
    """

    jobs: tuple[Job, ...]
    left_out: tuple[str, ...] = ()
    not_installed: dict[str, str] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """A line for each missing part; backends that are not installed come with the command that installs them."""
        missing, sentences = self.not_installed, tuple(f"left out: {text}" for text in self.left_out)
        if not missing:
            return sentences
        what = ", ".join(missing) if len(missing) <= MOST_NAMES else f"{len(missing)} more backends"
        return (*sentences, f"not installed: {what}; {pip_command(missing.values())}")


def plan(catalog: Catalog, request: Request) -> Plan:
    """Every selected case at its sizes, each operator, each selected backend; patterns here are names or globs.

    A library that uses threads has a job for each number of threads.

    Raises UnknownName for an operator that does not exist or a pattern that matches nothing, and UsageError for a size
    that is no positive whole number or that no selected case has, and for a device that no selected backend has.
    """
    for name in request.operators:
        if name not in EVERY_OPERATOR and name != RELATIONS and not batch_points(name):
            raise UnknownName("operator", name, (*EVERY_OPERATOR, RELATIONS))
    left_out: list[str] = []
    names, not_installed = _backends(catalog, request, left_out)
    if slower := request.slower_in_float64:
        left_out.append(f"float64, in which {request.device} is {slower} times slower; --dtype float64 measures it")
    backends = [on_device(name, device) for name in names for device in _devices_of(catalog.backends[name], request)]
    jobs: list[Job] = []
    for device in request.devices:
        if all(catalog.backends[name].refuses(device) for name in names):
            there = sorted({PROCESSOR, *(device for source in catalog.backends.values() for device in source.devices)})
            several = f", or several: {','.join(there)}" if len(there) > 1 else ""
            raise UsageError(f"no selected backend runs on {device!r}; --device takes {' or '.join(there)}{several}")
    _refuse_type(catalog, request, backends)
    if request.transfers != "outside" and request.devices == (PROCESSOR,):
        raise UsageError(f"--transfers {request.transfers} needs a device; add --device cuda")
    for name in _cases(catalog, request, left_out):
        case, cells = catalog.cases[name], _cells(catalog, name, request)
        if not cells:
            left_out.append(f"{name} has no size {' or '.join(request.sizes)}; use {case.takes}")
        points = 1 if case.is_trap else request.points
        for size, operator in cells:
            for seed in range(request.seed, request.seed + points):
                if seed in request.seeds_left_out:
                    continue
                for backend in backends:
                    is_scaled = catalog.backends[backend].threaded and operator != RELATIONS
                    counts = (0, *request.settings.thread_counts[1:]) if is_scaled else (0,)
                    jobs += [Job(name, size, backend, operator, seed, threads) for threads in counts]
    if request.selects_nothing:
        sample = [job for job in jobs if _in_sample(catalog, job)]
        if reduced := {job.case for job in set(jobs).difference(sample) if job.operator != RELATIONS}:
            left_out.append(
                f"all but one gradient of {len(reduced)} cases outside --suite quick, and relations between calls on"
                f" {SAMPLE - 1} of {SAMPLE} cases inside; --suite all or -b NAME checks everything"
            )
        jobs = sample
    if not jobs:
        raise UsageError("; ".join(left_out) or "nothing is selected; name a case with -c and a backend with -b")
    return Plan(tuple(jobs), tuple(left_out), not_installed)


def _devices_of(source: Source, request: Request) -> Sequence[str]:
    """The devices of a backend's cells: those of the request that it has; else the first, where it is unsupported."""
    return [device for device in request.devices if not source.refuses(device)] or request.devices[:1]


def _refuse_type(catalog: Catalog, request: Request, backends: Sequence[str]) -> None:
    """Raise UsageError in one line for a type that is unknown, or that no selected backend has."""
    dtype, known = request.used_type, (FLOAT64, *LOW)
    if dtype not in known:
        raise UsageError(f"--dtype {dtype!r} is unknown; use {', '.join(known)}")
    sources = [catalog.backends[name] for name in backends]
    if all(source.refuses(source.device, dtype) for source in sources):
        having = [name for name, each in catalog.backends.items() if not each.refuses(sources[0].device, dtype)]
        raise UsageError(f"no selected backend computes in {dtype}; use {', '.join(having)}")


def _in_sample(catalog: Catalog, job: Job) -> bool:
    """Whether a check that selects nothing has this job, to fit in minutes: all of a user's case or backend, of
    traps, and of the quick suite, with relations on a part of it; of other cases the gradient, at the second size.
    """
    case = catalog.cases[job.case]
    if case.is_trap or not (catalog.case_sources[job.case].builtin and catalog.backends[job.backend].builtin):
        return True
    if "quick" not in case.suites:
        first = "jacobian" if case.is_array_valued else "gradient"
        return job.operator == first and job.size == case.quick_sizes[:2][-1]
    return job.operator != RELATIONS or (crc32(f"{job.case} {job.backend}".encode()) + job.seed) % SAMPLE == 0


def _backends(catalog: Catalog, request: Request, left_out: list[str]) -> tuple[list[str], dict[str, str]]:
    """The backends of a request, and the missing ones that it would use: backend -> what pip needs.

    One that names none has the default ones that are installed; a check that is not quick has all of these, and a
    quick run that selects nothing a few. Adds to `left_out`, in words, the others that are installed.
    """
    names = select("backend", catalog.backends, request.backends)
    if request.backends:
        return list(names), {}
    by_default = request.quick or request.time
    is_first_look = request.quick and request.time and not (request.cases or request.suites)
    first_names = FIRST_BACKENDS if is_first_look else ()
    every = [catalog.backends[name] for name in names]
    wanted = [source for source in every if source.is_default or source.name in first_names or not by_default]
    if is_first_look:
        first = [source for source in wanted if source.name in FIRST_BACKENDS or not source.builtin]
        if any(not source.missing for source in first):
            if more := sum(not source.missing for source in wanted if source not in first):
                left_out.append(f"{more} more installed backends; select them with -b NAME")
            wanted = first
    missing = {s.name: requirement(s) for s in wanted if s.missing}
    return [source.name for source in wanted if source.name not in missing], missing


def _cases(catalog: Catalog, request: Request, left_out: list[str]) -> list[str]:
    """The cases of a request; adds to `left_out`, in words, cases that only a request by name includes."""
    names = in_suites(catalog, select("case", catalog.cases, request.cases), request.suites)
    if request.time and not request.cases and "traps" not in request.suites:
        names = tuple(name for name in names if not catalog.cases[name].is_trap)
    if not request.time or request.cases or request.suites:
        return list(names)
    shown = [name for name in names if name in FIRST_LOOK or not catalog.case_sources[name].builtin]
    if more := len(names) - len(shown):
        left_out.append(f"{more} more cases; select them with -c NAME or --suite NAME")
    return shown


def _cells(catalog: Catalog, name: str, request: Request) -> list[tuple[int, str]]:
    """(size, operator) of each cell of a case.

    A trap has its gradient and all second-order operators. A run that names no case measures built-in ones at three
    sizes; a quick one, if it names no suite either, only their gradients. `batch_gradient` is only in a request that
    names it, at the sizes that this names, or else at the case's second size, because the first is often 1. On a device
    built-in cases have larger sizes too.
    """
    case, named = catalog.cases[name], request.own_operators
    sizes, own = sizes_of(case, request.sizes, quick=request.quick), case.operators
    if case.is_trap:
        own = tuple(name for name in case.possible_operators if name in OF_TRAPS)
        return [(size, operator) for size in sizes for operator in with_points(own if named is None else named)]
    if request.time and catalog.case_sources[name].builtin:
        if not request.sizes and (request.quick or not request.cases):
            sizes = FIRST_LOOK.get(name) or (sizes if request.quick else three_of(sizes))
        if request.quick and name in FIRST_LOOK and not request.cases and not request.suites:
            own = ("gradient",)
    more = larger_sizes(case) if request.adds_sizes and catalog.case_sources[name].builtin else ()
    cells = []
    for size in sizes:
        thorough = not request.time and size == sizes[0]
        wanted = case.possible_operators if thorough else own
        cells += [(size, operator) for operator in (wanted if named is None else named) if not _is_batch(operator)]
        if request.relations and size == sizes[0]:  # while its operators are prepared
            cells.append((size, RELATIONS))
    cells += [(size, name) for size in more for name in (own if named is None else named) if name in AT_DEVICE_SIZES]
    batches = with_points(filter(_is_batch, own if named is None else named))
    in_batches = sizes if request.sizes else case.sizes[:2][-1:]
    return cells + [(size, operator) for size in in_batches for operator in batches]


def _is_batch(operator: str) -> bool:
    return operator == BATCH or batch_points(operator) > 0


def in_suites(catalog: Catalog, names: Sequence[str], suites: Sequence[str]) -> tuple[str, ...]:
    """The cases that belong to one of the suites; all for none. Raises UnknownName for a suite without cases."""
    if not suites:
        return tuple(names)
    members = {
        name: {"all", *case.suites, *(["traps"] if case.is_trap else [])} for name, case in catalog.cases.items()
    }
    known = set().union(*members.values())
    for suite in suites:
        if suite not in known:
            raise UnknownName("suite", suite, known)
    return tuple(name for name in names if members[name] & set(suites))


def sizes_of(case: Case, wanted: Sequence[str], *, quick: bool) -> tuple[int, ...]:
    """The sizes to run a case at, ascending: its own sizes by default; else each wanted number that it accepts and
    each own size that a wanted glob matches.
    """
    if not wanted:
        return case.quick_sizes if quick else case.sizes
    sizes: set[int] = set()
    for text in wanted:
        if set(text) & set("*?["):
            sizes |= {n for n in case.sizes if fnmatchcase(str(n), text)}
        elif case.accepts(positive(text)):
            sizes.add(positive(text))
    return tuple(sorted(sizes))


def three_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """The largest size, the second smallest (the smallest is often 1) and one between; all of three or fewer."""
    return tuple(sizes) if len(sizes) < 4 else (sizes[1], sizes[(len(sizes) + 1) // 2], sizes[-1])


def larger_sizes(case: Case) -> list[int]:
    """Sizes above the case's own, with work for a device: its last one by tens, and at the end the largest round one.

    None of an array-valued function, of numbers that are computed one after the other, or if the operations are
    unknown.
    """
    last = case.sizes[-1]
    if case.flops is None or case.is_array_valued or ONE_BY_ONE & set(case.tags):
        return []
    rounds = [digit * 10**power for power in range(8) for digit in range(1, 10)]
    fits = [n for n in rounds if 2 * last <= n <= DEVICE_NUMBERS and case.accepts(n)]
    fits = [n for n in fits if _enclosing_seconds(case.flops, n) <= REFERENCE_SECONDS]
    return [n for n in fits if n == fits[-1] or n in (10 * last, 100 * last, 1_000 * last)]


def _enclosing_seconds(flops: Callable[[int], float], n: int) -> float:
    """How long enclosures take at a size, at whose double matrices take about eight times as many operations."""
    of_operation, of_product = ENCLOSING_SECONDS
    return of_product * n**3 if flops(2 * n) > 7 * flops(n) else of_operation * flops(n)


def seconds_of_large_references(catalog: Catalog, jobs: Iterable[Job]) -> dict[tuple[str, int], float]:
    """(case, size) -> seconds of the two references, at the inputs and at perturbed ones, of built-in cases above their
    own sizes, up to those of a device."""
    seconds: dict[tuple[str, int], float] = {}
    for name, size in dict.fromkeys((job.case, job.size) for job in jobs):
        case = catalog.cases[name]
        if catalog.case_sources[name].builtin and case.flops and case.sizes[-1] < size:
            each = _enclosing_seconds(case.flops, size)
            if each <= REFERENCE_SECONDS:
                seconds[name, size] = 2 * each
    return seconds


def sizes_by_case(jobs: Iterable[Job]) -> dict[str, list[int]]:
    """Case -> its sizes in these jobs, ascending."""
    by_case = grouped(jobs, lambda job: job.case)
    return {case: sorted({job.size for job in of_case}) for case, of_case in by_case.items()}


def positive(text: str) -> int:
    """A size as a number. Raises UsageError if it is not a positive whole one."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits[:20]) < 1:
        raise UsageError(f"size {text!r} is not a positive whole number; write -n 100, or a glob such as -n '1*'")
    if len(digits) > 16 or int(digits) > MOST_SIZE:
        raise UsageError(f"size {text[:40]!r} is above 2**53; write a smaller one, such as -n 100")
    return int(digits)


def check_inputs(catalog: Catalog, jobs: Sequence[Job], seed: int) -> None:
    """Build the inputs of every user's case once, at its smallest size, and evaluate it on numpy, so that faults show
    before anything is measured.

    Raises UsageError in one line for whatever the case's `inputs` raises, and for an array where a scalar is needed.
    """
    smallest: Mapping[str, int] = {job.case: job.size for job in sorted(jobs, reverse=True)}
    for name, size in smallest.items():
        source, case = catalog.case_sources[name], catalog.cases[name]
        if source.builtin:
            continue
        try:
            with contained():
                names, args, _ = case.bind(size, seed)
        except UsageError as error:
            raise UsageError(f"{source.path}: {error}") from error
        except Exception as error:  # a user's function may raise anything
            raise UsageError(
                f"{source.path}: inputs({size}, rng) raises {type(error).__name__}: {error}; correct it"
            ) from error
        if not case.is_array_valued and (shape := _shape(case, names, args)):
            advice = 'add operators=("value", "jacobian") to its Case'
            raise UsageError(f"{source.path}: f returns an array of shape {shape}; {advice}")


def _shape(case: Case, names: tuple[str, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Of the value on numpy; () if the function fails there, which the check reports."""
    import numpy as np  # imported here so that a plan without cases of the user's stays fast

    from adbench.model.namespace import Namespace

    try:
        with contained(), np.errstate(all="ignore"):
            return np.shape(function_of(case, names, Namespace(np))(*args))
    except Exception:  # a user's function may raise anything
        return ()


def flops_of(catalog: Catalog, jobs: Sequence[Job]) -> dict[str, dict[str, float]]:
    """case -> size, as text -> elementary operations of one evaluation, for the cases that know them.

    Raises UsageError in one line if a case's `flops` raises, or returns no number of operations.
    """
    counts: dict[str, dict[str, float]] = {}
    for name, size in dict.fromkeys((job.case, job.size) for job in jobs):
        flops, path = catalog.cases[name].flops, catalog.case_sources[name].path
        if flops is None:
            continue
        try:
            with contained():
                count = float(flops(size))
        except Exception as error:  # a user's function may raise anything
            raise UsageError(f"{path}: flops({size}) raises {type(error).__name__}: {error}; correct it") from error
        if not 0 <= count < math.inf:
            raise UsageError(f"{path}: flops({size}) is {count}; return a number of operations")
        counts.setdefault(name, {})[str(size)] = count
    return counts
