"""The references of a case at a point: computed from its source alone, without a backend."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from adbench.catalog.double_precision import LessThanDouble
from adbench.execution.operators.prepared_point import CasePoint, PointReferences
from adbench.execution.precision.given import in_numpy, native_leaf
from adbench.functions.declared_constants import DRAWN, OF_A_DRAW, OF_A_SOLVER, PADDING, are_held, declaring, met
from adbench.functions.user_function import UserFunction
from adbench.model.errors import Unsupported, UsageError
from adbench.model.namespace import Namespace
from adbench.model.operator import batch_points, needs, needs_second_order
from adbench.oracle.compute import DIFFERENCES, declared, reference
from adbench.oracle.diagnosis.cancellation import lost_at
from adbench.oracle.evidence import DOUBLE
from adbench.oracle.leaves import Point, is_symmetric
from adbench.oracle.operators import judge_operator
from adbench.oracle.precise import SymmetricReads, by_values, symmetric_reads
from adbench.oracle.reference import Reference
from adbench.oracle.second_order import MOST_ROWS, hessian_reference, hvp_reference
from adbench.oracle.series import triangles
from adbench.oracle.subject import Effort, Subject

MOST_EVALUATIONS = 20_000  # of a case in double precision for its reference, enough for about 300 entries
POINT_SHARE = 0.25  # of a reference's time, for each of many points but the first
Remember = Callable[[str, Callable[[], Reference]], Reference]


def subject_of(at: CasePoint) -> Subject:
    """The point for the oracle."""
    own = at.case.f if isinstance(at.case.f, UserFunction) else None
    plain = partial(_plain_on_symmetric, at) if triangles.move_symmetrically() else at.plain
    return Subject(plain, at.arguments, at.text, at.shape, own.place if own else None)


def _plain_on_symmetric(at: CasePoint, *args: Any) -> Any:
    """The case on plain numpy, as `triangles.moving_symmetrically` says."""
    point = Point(args, at.wrt, at.names)
    return at.plain(*point.replaced([triangles.moved(k, leaf.values)[()] for k, leaf in enumerate(point.leaves)]))


def known_at(
    at: CasePoint,
    *,
    second_order: bool,
    hessian: bool = True,
    seconds: float,
    remember: Remember = lambda what, compute: compute(),
) -> PointReferences:
    """Compute the references of first and second order from the case's source alone, without a backend.

    second_order   also of H v and H, if the value is a scalar
    hessian        False leaves out H, which takes longest
    seconds        approximate time for each reference; fewer entries are examined to stay within it
    remember       remember(what, compute) -> the reference of that name, from a cache or computed
    """
    if at.case.declared and at.case.gradient is not None:
        gradient = at.case.gradient(**dict(zip(at.names, at.args, strict=True)))
        value = float(at.text(Namespace(np), *at.args))
        first = declared(value, gradient, at.args, at.wrt, at.names)
        unknown = first.unknown("the case declares its gradient but not its second derivatives")
        return _with_unknown(first, unknown)
    _refuse_low_precision(at)
    compute = partial(_computed, at, second_order=second_order, hessian=hessian, seconds=seconds)
    own = at.case.f if isinstance(at.case.f, UserFunction) else None
    if own is None:
        return compute(remember)
    with declaring(own.place, held=True) as held:
        known = compute(remember)
    if not held.met and not (own.stops and not known.first.all_outputs.method):
        return known
    with declaring(own.place, held=False):
        of_values = compute(lambda what, reference: remember(f"{what} of values", reference))
    if own.constants == "forbid":
        return replace(of_values, declared=str(held))
    return replace(known, declared=str(held), of_values=of_values)


def _computed(
    at: CasePoint, remember: Remember, *, second_order: bool, hessian: bool, seconds: float
) -> PointReferences:
    """The references, with declared constants held or not, as `declaring` says."""
    own = at.case.f if isinstance(at.case.f, UserFunction) else None
    effort = Effort(
        at.seed,
        max_evaluations=_evaluations(at, seconds),
        max_seconds=seconds,
        second_differences=own is not None,
        enclosures=own is None and at.arithmetic is DOUBLE,
        against_values=lambda: not (own is not None and own.branchwise) and _values_decide(at),
        precision=at.arithmetic,
    )
    first = remember("first", lambda: reference(subject_of(at), effort))
    if own is not None and (why := _another_value(at, first)):
        at = replace(at, case=replace(at.case, f=own.untranslated(why)))
        return _computed(at, lambda _, compute: compute(), second_order=second_order, hessian=hessian, seconds=seconds)
    _refuse_false_pattern(at, first)
    row = first.all_outputs
    others = (spelling for spelling in (PADDING, DRAWN) if spelling in met())
    stops = (own.stops or next(others, "")) if own is not None and are_held() else ""
    if row.method == DIFFERENCES and (stops or OF_A_DRAW in row.reason or OF_A_SOLVER in row.reason):
        unknown = first.unknown(row.reason + (f", and differences of its values ignore {stops}" if stops else ""))
        return _with_unknown(unknown, unknown)
    if at.values_within is not DOUBLE and row.method == DIFFERENCES:
        reason = f"{row.reason}, and differences of its values in {at.values_within.name} resolve nothing"
        unknown = first.unknown(reason)
        return _with_unknown(unknown, unknown)
    if first.shape or not second_order:
        return PointReferences(first)
    subject = subject_of(at)
    if first.scalar.method == DIFFERENCES:  # the series fail in the second order for the same reason
        subject = by_values(subject, first.scalar.reason)
    hvp = remember("hvp", lambda: hvp_reference(subject, first.scalar, effort))
    if not hessian:
        return PointReferences(first, hvp)
    return PointReferences(first, hvp, remember("hessian", lambda: hessian_reference(subject, effort)))


def lost_digits_at(at: CasePoint, known: PointReferences, seconds: float) -> list[str]:
    """Where rounding loses the digits of a user's function, in a sentence; none if no operation by itself does."""
    own = at.case.f if isinstance(at.case.f, UserFunction) else None
    if own is None or not known.first.all_outputs.proved:
        return []
    effort = Effort(at.seed, max_seconds=seconds, precision=at.arithmetic)
    places = lost_at(subject_of(at), effort, known.first, own.line)
    return [f"the digits go at {'; and at '.join(places)}"] if places else []


def _values_decide(at: CasePoint) -> bool:
    """Whether the case's values say anything about the derivative: not in lower precision, where values change in
    steps, nor where constants are held or a symmetric matrix is read by another convention."""
    return at.values_within is DOUBLE and not (are_held() and met()) and triangles.read_as_numpy()


def with_points(
    known: PointReferences,
    at: CasePoint,
    count: int,
    *,
    seconds: float,
    remember: Callable[[CasePoint], Remember] = lambda there: lambda what, compute: compute(),
) -> PointReferences:
    """The references with those of a sample of `count` points; unchanged for 0, or for an array-valued function.

    remember   remember(point) -> the `remember` of `known_at` there
    """
    if not count or known.first.shape:
        return known
    references = {}
    for index, there in at.sampled(count).items():
        share, kept = POINT_SHARE * seconds, remember(there)
        references[index] = (
            known_at(there, second_order=False, seconds=share, remember=kept).first if index else known.first
        )
    return replace(known, points=references)


CONVENTION_SECONDS = 3.0  # for each reference by another convention

SYMMETRISED = "symmetrised: entries of both triangles share the derivative"
CONVENTIONS: dict[triangles.Convention, str] = {
    "triangle": "",
    "symmetrised": SYMMETRISED,
    "unsymmetrised": "not symmetrised: entries of both triangles share the derivative unequally",
}
"""The conventions of symmetric matrices, and the sentence about a derivative that is right by one."""


@dataclass(frozen=True)
class ByConvention:
    """The references by a convention of symmetric matrices, and the sentence about a result that is right by it.

    axes   not None: compare the result's action on symmetric changes alone (`oracle.structure.symmetrised`)
    """

    note: str
    known: PointReferences
    axes: Any = None


def by_conventions(at: CasePoint, operator: str) -> Iterator[ByConvention]:
    """The references by other conventions of symmetric matrices: proved ones, or of values where only these are known.

    None unless an argument is exactly symmetric and the case reads one triangle of it, as eigvalsh does. Each of them
    agrees with the usual reference along all changes that keep such arguments symmetric. Second derivatives are
    compared along these changes only: two rules, as in forward over reverse, may follow two conventions. So is all of
    what only values show.
    """
    reads = SymmetricReads() if batch_points(operator) else _symmetric_reads(at)
    names = sorted(reads.operations)
    is_proved = False
    conventions = () if needs_second_order(operator) or not names else product(CONVENTIONS, repeat=len(names))
    for chosen in sorted(conventions, key=lambda chosen: len({*chosen})):
        notes = list(filter(None, map(CONVENTIONS.__getitem__, dict.fromkeys(chosen))))
        if notes and (known := _read_by(dict(zip(names, chosen, strict=True)), at, operator)):
            is_proved = True
            yield ByConvention("; ".join(notes), known)
    if not is_proved and reads.leaves and (known := _read_by({}, at, operator, reads.leaves)):
        yield ByConvention(f"along symmetric changes, {SYMMETRISED}", known, _axes(at, reads))


def symmetric_axes(at: CasePoint) -> Any:
    """The numbers of axes of symmetric inputs of which the case reads one triangle, nested like the active ones and 0
    for others (`oracle.structure.symmetrised`); None if there is no such input."""
    reads = _symmetric_reads(at)
    return _axes(at, reads) if reads.leaves else None


def _axes(at: CasePoint, reads: SymmetricReads) -> Any:
    counts = [leaf.values.ndim if k in reads.leaves else 0 for k, leaf in enumerate(at.arguments.leaves)]
    nested = at.arguments.replaced(counts, lambda _: 0)
    return tuple(nested[k] for k in at.wrt)


def _symmetric_reads(at: CasePoint) -> SymmetricReads:
    """What the case reads of symmetric inputs; nothing for a trap, which asks for one convention."""
    if at.case.is_trap or at.case.declared or not any(is_symmetric(leaf.values) for leaf in at.arguments.leaves):
        return SymmetricReads()
    if "reads" not in at.kept:
        at.kept["reads"] = symmetric_reads(subject_of(at), Effort(at.seed, max_seconds=CONVENTION_SECONDS))
    reads: SymmetricReads = at.kept["reads"]
    return reads


def _read_by(
    conventions: Mapping[str, triangles.Convention], at: CasePoint, operator: str, symmetric: Collection[int] = ()
) -> PointReferences | None:
    """The references by these conventions, if proved or, along symmetric changes, of values, which all conventions
    share; computed once for all operators at the point.

    symmetric   the leaves whose changes count as they act on symmetric ones
    """

    def remember(what: str, compute: Callable[[], Reference]) -> Reference:
        key = what, *conventions.items(), *symmetric
        if key not in at.kept:
            at.kept[key] = compute()
        kept: Reference = at.kept[key]
        return kept

    second, hessian = needs_second_order(operator), bool(needs(operator)["hessian"])
    with triangles.reading(conventions), triangles.moving_symmetrically(symmetric):
        known = known_at(at, second_order=second, hessian=hessian, seconds=CONVENTION_SECONDS, remember=remember)
    return known if known.of(operator).all_outputs.proved or symmetric else None


def _with_unknown(first: Reference, unknown: Reference) -> PointReferences:
    """First order known, second order unknown: only the structure of second-order results is judged."""
    total = sum(leaf.size for leaf in first.all_outputs.leaves)
    rows = tuple((index, unknown.scalar) for index in range(min(total, MOST_ROWS))) if not first.shape else ()
    return PointReferences(first, unknown, Reference((total,), rows) if rows else unknown)


def _evaluations(at: CasePoint, seconds: float) -> int:
    """The most evaluations for differences that fit into the time.

    Translates a user's function here, so that the time of evaluations on series excludes it.
    """
    if isinstance(at.case.f, UserFunction) and at.case.f.translated:
        with suppress(Unsupported):
            at.case.f.text(at.args)
    started = time.thread_time()
    with suppress(Exception), np.errstate(all="ignore"):  # only timed: its value is judged later
        at.plain(*at.args)
    each = max(1e-7, time.thread_time() - started)
    return int(max(200, min(MOST_EVALUATIONS, 3 * seconds / each)))


def _another_value(at: CasePoint, first: Reference) -> str:
    """Why the reference is invalid: its translation has another value than the function. Otherwise "".

    The function in the types of its arguments may also give the value: eigenvectors have other signs in other types.
    """
    f = at.case.f
    if not isinstance(f, UserFunction) or not f.translated:
        return ""
    with np.errstate(all="ignore"):
        value = np.asarray(at.plain(*at.args), dtype=np.float64)
    if np.isfinite(value).all() and any(row.value.kind == "unknown" for _, row in first.outputs):
        return "its translation has no value here"
    if not first.all_outputs.proved:
        return ""
    verdict = judge_operator("value", value, first, within=at.within)
    if verdict.word == "wrong" and f.typed is not None:
        leaves = [native_leaf(f.library.name, leaf, like) for leaf, like in zip(at.args, f.typed.given, strict=True)]
        verdict = judge_operator("value", in_numpy(f.typed.call(leaves)), first, within=at.within)
    return f"its translation has another value: {verdict.sentence}" if verdict.word == "wrong" else ""


def _refuse_low_precision(at: CasePoint) -> None:
    """Raise LessThanDouble if the case's value at float64 inputs has lower precision."""
    try:
        with np.errstate(all="ignore"):
            at.plain(*at.args)
    except LessThanDouble:
        raise
    except Exception:  # it does not run on numpy; reported when its value is needed
        return


def fingerprint(at: CasePoint) -> str:
    """The values of a user's case here and nearby, as a string: they also depend on files that it reads."""
    steps = at.arguments.steps(at.seed, 0)
    places = [at.args, at.arguments.moved([2.0**-7 * step for step in steps])]
    try:
        with np.errstate(all="ignore"):
            return repr([np.asarray(at.plain(*args)).tolist() for args in places])
    except Exception:  # written for one library only
        return ""


def _refuse_false_pattern(at: CasePoint, known: Reference) -> None:
    """Raise UsageError if the case's pattern leaves out a nonzero entry, since libraries would be blamed."""
    if at.nonzeros is None:
        return
    stated = set(zip(at.nonzeros.rows.tolist(), at.nonzeros.columns.tolist(), strict=True))
    starts = np.cumsum([0, *at.arguments.sizes]).tolist()
    for output, row in known.outputs:
        for leaf, start in zip(row.leaves, starts, strict=False):
            for entry in leaf.entries:
                if entry.derivative.size > 0 and (output, start + entry.index) not in stated:
                    raise UsageError(
                        f"{at.case.name}: sparsity({at.size}) leaves out row {output}, column {start + entry.index}, "
                        f"where the derivative is {entry.derivative.lower!r}; add it to the pattern"
                    )
