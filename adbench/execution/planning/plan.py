"""What will be measured: from a request to a list of jobs, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from adbench.catalog.discovery import Catalog, Source, select
from adbench.execution.planning.request import RELATIONS, Request
from adbench.model.case import Case
from adbench.model.errors import UnknownName, UsageError
from adbench.model.operator import EVERY_OPERATOR, OF_SECOND_ORDER
from adbench.model.record import Job, grouped

FIRST_LOOK = (
    "log_determinant",
    "lotka_volterra",
    "matrix_product",
    "normal_log_density",
    "normal_log_density_loop",
    "product_plus_constant",
    "projectile",
)
"""The cases of a run that names none: scalar and array code, an equation, linear algebra, and a branch that depends
on data."""


@dataclass(frozen=True)
class Plan:
    """Jobs in the order in which they run, and in words the missing parts of the request."""

    jobs: tuple[Job, ...]
    left_out: tuple[str, ...] = ()


def plan(catalog: Catalog, request: Request) -> Plan:
    """Every selected case at its sizes, each operator, each selected backend; patterns here are names or globs.

    Raises UnknownName for an operator that does not exist or a pattern that matches nothing, and UsageError for a size
    that is no positive whole number or that no selected case has.
    """
    for name in request.operators:
        if name not in EVERY_OPERATOR and name != RELATIONS:
            raise UnknownName("operator", name, (*EVERY_OPERATOR, RELATIONS))
    left_out: list[str] = []
    backends = _backends(catalog, request, left_out)
    jobs: list[Job] = []
    for name in _cases(catalog, request, left_out):
        case = catalog.cases[name]
        if not sizes_of(case, request.sizes, quick=request.quick):
            left_out.append(f"{name} has no size {' or '.join(request.sizes)}; it has: {case.takes}")
        points = 1 if case.is_trap else request.points
        for size, operator in _cells(case, request):
            for seed in range(request.seed, request.seed + points):
                if seed in request.seeds_left_out:
                    continue
                jobs += [Job(name, size, backend, operator, seed) for backend in backends]
    if not jobs:
        raise UsageError("; ".join(left_out) or "nothing is selected: there are no cases or no backends")
    return Plan(tuple(jobs), tuple(left_out))


def _backends(catalog: Catalog, request: Request, left_out: list[str]) -> list[str]:
    """The backends of a request; adds to `left_out`, in words, those that it has only if it names them."""
    names = select("backend", catalog.backends, request.backends)
    later = []
    if (request.quick or request.time) and not request.backends:
        later = [name for name in names if not is_for_a_first_look(catalog.backends[name])]
    if later:
        what = "variants, and what needs a compiler: -b NAME has them, -b '*' all"
        left_out.append(f"{', '.join(later)}: {what}")
    return [name for name in names if name not in later]


def _cases(catalog: Catalog, request: Request, left_out: list[str]) -> list[str]:
    """The cases of a request; adds to `left_out`, in words, those that it has only if it names them."""
    names = in_suites(catalog, select("case", catalog.cases, request.cases), request.suites)
    if request.time and not request.cases and "traps" not in request.suites:
        names = tuple(name for name in names if not catalog.cases[name].is_trap)
    if not request.time or request.cases or request.suites:
        return list(names)
    found = [name for name in names if name in FIRST_LOOK or not catalog.case_sources[name].builtin]
    if more := len(names) - len(found):
        left_out.append(f"{more} more cases: -c NAME or --suite NAME has them, --suite all every one")
    return found


def _cells(case: Case, request: Request) -> list[tuple[int, str]]:
    """(size, operator) of each cell of a case. A trap is asked for its gradient and all that is of second order."""
    sizes, named = sizes_of(case, request.sizes, quick=request.quick), request.own_operators
    if case.is_trap:
        own = tuple(name for name in case.possible_operators if name == "gradient" or name in OF_SECOND_ORDER)
        return [(size, operator) for size in sizes for operator in (own if named is None else named)]
    found = []
    for size in sizes:
        thorough = not request.time and size == sizes[0]
        own = case.possible_operators if thorough else case.operators
        found += [(size, operator) for operator in (own if named is None else named)]
        if request.relations and size == sizes[0]:  # while its operators are prepared
            found.append((size, RELATIONS))
    return found


def in_suites(catalog: Catalog, names: Sequence[str], suites: Sequence[str]) -> tuple[str, ...]:
    """The cases that belong to one of the suites; all for none. Raises UnknownName for a suite without cases."""
    members = {
        name: {"all", *case.suites, *(["traps"] if case.is_trap else [])} for name, case in catalog.cases.items()
    }
    known = set().union(*members.values())
    for suite in suites:
        if suite not in known:
            raise UnknownName("suite", suite, known)
    return tuple(name for name in names if not suites or members[name] & set(suites))


def is_for_a_first_look(source: Source) -> bool:
    """Whether a run has the backend without naming it: a user's own, or a built-in one that is no variant and builds
    nothing."""
    return not source.builtin or (source.variant_of is None and not source.builds)


def sizes_of(case: Case, wanted: Sequence[str], *, quick: bool) -> tuple[int, ...]:
    """The sizes to run a case at, ascending: its own if none is wanted; else each wanted number that it accepts and
    each of its own that a wanted glob matches.
    """
    if not wanted:
        return case.quick_sizes if quick else case.sizes
    found: set[int] = set()
    for text in wanted:
        if set(text) & set("*?["):
            found |= {n for n in case.sizes if fnmatchcase(str(n), text)}
        elif case.accepts(positive(text)):
            found.add(positive(text))
    return tuple(sorted(found))


def sizes_by_case(jobs: Iterable[Job]) -> dict[str, list[int]]:
    """Case -> its sizes in these jobs, ascending."""
    by_case = grouped(jobs, lambda job: job.case)
    return {case: sorted({job.size for job in of_case}) for case, of_case in by_case.items()}


def positive(text: str) -> int:
    """A size as a number. Raises UsageError if it is not a positive whole one."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < 1:
        raise UsageError(f"size {text!r} is not a positive whole number; write -n 100, or a glob such as -n '1*'")
    return int(digits)


def check_inputs(catalog: Catalog, jobs: Sequence[Job], seed: int) -> None:
    """Build the inputs of every user's case once, at its smallest size, so that faults show before anything is
    measured.

    Raises UsageError in one line for whatever the case's `inputs` raises.
    """
    smallest: Mapping[str, int] = {job.case: job.size for job in sorted(jobs, reverse=True)}
    for name, size in smallest.items():
        source = catalog.case_sources[name]
        if source.builtin:
            continue
        try:
            catalog.cases[name].bind(size, seed)
        except UsageError as error:
            raise UsageError(f"{source.path}: {error}") from error
        except Exception as error:  # a user's function may raise anything
            raise UsageError(f"{source.path}: inputs({size}, rng) raises {type(error).__name__}: {error}") from error


def flops_of(catalog: Catalog, jobs: Sequence[Job]) -> dict[str, dict[str, float]]:
    """case -> size, as text -> elementary operations of one evaluation, for the cases that know them.

    Raises UsageError in one line if a case's `flops` raises, or returns no number of operations.
    """
    found: dict[str, dict[str, float]] = {}
    for name, size in dict.fromkeys((job.case, job.size) for job in jobs):
        flops, path = catalog.cases[name].flops, catalog.case_sources[name].path
        if flops is None:
            continue
        try:
            count = float(flops(size))
        except Exception as error:  # a user's function may raise anything
            raise UsageError(f"{path}: flops({size}) raises {type(error).__name__}: {error}") from error
        if not 0 <= count < math.inf:
            raise UsageError(f"{path}: flops({size}) is {count}; it must be a number of operations")
        found.setdefault(name, {})[str(size)] = count
    return found
