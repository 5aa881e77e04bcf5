"""What will be measured: from what was asked for to a list of jobs, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby

from adbench.catalog.discovery import Catalog, Source, select
from adbench.model.case import Case
from adbench.model.errors import UnknownName, UsageError
from adbench.model.record import Job

FIRST_LOOK = (
    "log_determinant",
    "lotka_volterra",
    "matrix_product",
    "normal_log_density",
    "normal_log_density_loop",
    "product_plus_constant",
    "projectile",
)
"""The cases that a run has without being told: scalar and array code, an equation, linear algebra, and a branch
that depends on data."""

RELATIONS = "relations"
"""Stands in a job in the place of an operator: what must hold between calls (relations.py)."""


@dataclass(frozen=True)
class Plan:
    """Jobs in the order in which they run, and what was asked for but does not exist, in words."""

    jobs: tuple[Job, ...]
    left_out: tuple[str, ...] = ()

    def groups(self) -> Iterator[tuple[Job, ...]]:
        """Jobs that differ in the backend only: checked against one reference, timed in turns."""
        for _, jobs in groupby(self.jobs, key=lambda job: (job.case, job.size, job.operator, job.seed)):
            yield tuple(jobs)


def plan(
    catalog: Catalog,
    *,
    cases: Sequence[str] = (),
    backends: Sequence[str] = (),
    sizes: Sequence[str] = (),
    operators: Sequence[str] | None = None,
    thorough: bool = False,
    suites: Sequence[str] = (),
    relations: bool = False,
    seeds: Sequence[int] = (0,),
    quick: bool = False,
    few: bool = False,
    traps: bool = True,
) -> Plan:
    """Every selected case at its sizes, each operator, each selected backend; patterns are names or globs.

    Where no operators are named, each case has its own; where `thorough`, its smallest size has all that there are
    for it. `suites` leaves those cases that belong to one of them: "all" and "traps", or what the cases say.
    With `relations`, each case's smallest size is asked for those too, under the operator's name "relations".
    A trap is asked for its gradient only, and left out where `traps` is False and no pattern names a case.
    `quick` takes the few sizes that each case has for it. With `few`, where neither cases nor suites are named, only
    the cases of a first look and the user's own stay. A plan that is either, for which no backend is named, has one of
    each library, and none that needs a compiler.

    Raises UnknownName for a pattern that matches nothing, and UsageError for a size that is no positive whole number
    or that no selected case has.
    """
    backend_names = select("backend", catalog.backends, backends)
    jobs: list[Job] = []
    left_out: list[str] = []
    if (quick or few) and not backends:
        later = [name for name in backend_names if not is_for_a_first_look(catalog.backends[name])]
        backend_names = tuple(name for name in backend_names if name not in later)
        if later:
            what = "variants, and what needs a compiler: -b NAME has them, -b '*' all"
            left_out.append(f"{', '.join(later)}: {what}")
    names = in_suites(catalog, select("case", catalog.cases, cases), suites)
    if few and not cases and not suites:
        everything = names
        names = tuple(name for name in names if name in FIRST_LOOK or not catalog.case_sources[name].builtin)
        if more := [n for n in everything if n not in names and not catalog.cases[n].is_trap]:
            left_out.append(f"{len(more)} more cases: -c NAME or --suite NAME has them, --suite all every one")
    for name in names:
        case = catalog.cases[name]
        if case.is_trap and not traps and not cases and "traps" not in suites:
            continue
        chosen = sizes_of(case, sizes, quick=quick)
        if not chosen:
            left_out.append(f"{name} has no size {' or '.join(sizes)}; it has: {case.takes}")
        cells = [(n, operator) for n in chosen for operator in _asked(case, operators, thorough and n == chosen[0])]
        cells += [(n, RELATIONS) for n in chosen[:1] if relations and not case.is_trap]
        points = seeds[:1] if case.is_trap else seeds  # a trap is one point
        jobs += [Job(name, n, b, operator, seed) for n, operator in cells for seed in points for b in backend_names]
    if not jobs:
        raise UsageError("; ".join(left_out) or "nothing is selected: there are no cases or no backends")
    return Plan(tuple(jobs), tuple(left_out))


def _asked(case: Case, operators: Sequence[str] | None, thorough: bool) -> Sequence[str]:
    """The operators that a case is asked for at one size."""
    if case.is_trap:
        return tuple(name for name in ("gradient",) if operators is None or name in operators)
    if operators is not None:
        return operators
    return case.possible_operators if thorough else case.operators


def in_suites(catalog: Catalog, names: Sequence[str], suites: Sequence[str]) -> tuple[str, ...]:
    """Those of the cases that belong to one of the suites; all for none. Raises UnknownName for one without cases."""
    members = {
        name: {"all", *case.suites, *(["traps"] if case.is_trap else [])} for name, case in catalog.cases.items()
    }
    known = set().union(*members.values())
    for suite in suites:
        if suite not in known:
            raise UnknownName("suite", suite, known)
    return tuple(name for name in names if not suites or members[name] & set(suites))


def is_for_a_first_look(source: Source) -> bool:
    """Whether a run has the backend without being told: a user's own, or a
    built-in one that is no variant and has nothing to build."""
    return not source.builtin or (source.variant_of is None and not source.builds)


def sizes_of(case: Case, wanted: Sequence[str], *, quick: bool) -> tuple[int, ...]:
    """The sizes to run a case at: its own where none is wanted; else each wanted number it accepts and each of its
    own that a wanted glob matches, ascending.
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
    """Case -> the sizes that it is asked for at, ascending."""
    found: dict[str, set[int]] = {}
    for job in jobs:
        found.setdefault(job.case, set()).add(job.size)
    return {case: sorted(sizes) for case, sizes in found.items()}


def positive(text: str) -> int:
    """A size as a number. Raises UsageError where it is not a positive whole one."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < 1:
        raise UsageError(f"size {text!r} is not a positive whole number; write -n 100, or a glob such as -n '1*'")
    return int(digits)


def check_inputs(catalog: Catalog, jobs: Sequence[Job], seed: int) -> None:
    """Build the inputs of every user's case once, at its smallest size, so that a fault is said before anything is
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

    Raises UsageError in one line where a case's `flops` raises, or gives what is no number of operations.
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
