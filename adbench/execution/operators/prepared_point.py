"""A case at a point: its reference, and the arguments and verdict of each operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from adbench.catalog.ad_hoc import at_size
from adbench.catalog.double_precision import refuse_less
from adbench.execution.operators import many_points
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.case import Case, function_of
from adbench.model.errors import Unsupported, UsageError
from adbench.model.namespace import Namespace
from adbench.model.operator import batch_points, definition
from adbench.model.serialization import converted, to_plain
from adbench.model.settings import FLOAT64
from adbench.oracle.evidence import DOUBLE, PRECISIONS, SINGLE, EntryEvidence, ErrorSpread, Precision, lowest
from adbench.oracle.leaves import DIRECTION, Point
from adbench.oracle.operators import Nonzeros, cotangent, judge_entries, judge_operator
from adbench.oracle.reference import Reference
from adbench.oracle.verdict import Verdict


@dataclass(frozen=True)
class PointReferences:
    """The references at a point: of the function, of its derivative along v (whose gradient is H v), of its gradient.

    The gradient's value is an array of all active entries in order; its Jacobian is the Hessian. None if not requested.
    points: index -> reference of the function at this one of many points.
    declared: where the function declares numbers constant, or ""; of_values: the references without these declarations,
    None if the function declares no numbers, or if the others ignore the declarations already.
    """

    first: Reference
    hvp: Reference | None = None
    hessian: Reference | None = None
    points: Mapping[int, Reference] = field(default_factory=dict)
    declared: str = ""
    of_values: PointReferences | None = None

    def to_plain(self) -> dict[str, Any]:
        """Dicts, lists, numbers and strings, to travel between processes."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> PointReferences:
        """The inverse of `to_plain`."""
        return converted(plain, PointReferences, strict=False)  # JSON has strings for NaN and for the indices

    def of(self, operator: str) -> Reference:
        """The reference of this operator. Raises ValueError if it was not requested."""
        reference: Reference | None = getattr(self, definition(operator).reference)
        if reference is None:
            raise ValueError(f"the reference of {operator} was not computed")
        return reference


@dataclass(frozen=True)
class CasePoint:
    """The inputs of a case at a size and a seed.

    single  the backend computes in float32: inputs are float32, and results may be
    dtype   in which the run computes: inputs are numbers of this type, and its rounding is expected of every result
    """

    case: Case
    size: int
    seed: int
    names: tuple[str, ...]
    args: tuple[Any, ...]
    wrt: tuple[int, ...]
    single: bool = False
    dtype: Precision = DOUBLE

    @property
    def within(self) -> Precision:
        """The lowest arithmetic inside the function: the run's type, or a lower one in a user's function."""
        return lowest(self.dtype, getattr(self.case.f, "precision", DOUBLE))

    @property
    def values_within(self) -> Precision:
        """The lowest arithmetic in which the values at float64 inputs are computed: differences need float64."""
        low = getattr(self.case.f, "low", None)
        return low.precision if low else DOUBLE

    @property
    def form(self) -> Precision:
        """The type of the inputs."""
        return lowest(SINGLE if self.single else DOUBLE, self.dtype)

    @property
    def arithmetic(self) -> Precision:
        """The lowest arithmetic by which a result may be judged."""
        return lowest(self.form, self.within)

    @property
    def types(self) -> Mapping[str, Precision]:
        """The types below float64 in which a user's function takes its inputs, by name."""
        types: Mapping[str, Precision] = getattr(self.case.f, "types", {})
        return types

    def in_types(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs as numbers of their types."""
        if not self.types:
            return args
        forms = (self.types.get(name, DOUBLE) for name in self.names)
        return tuple(rounded_to(form, arg) for form, arg in zip(forms, args, strict=True))

    def in_vector_type(self, vector: Any) -> Any:
        """A vector as numbers of the lowest of these types."""
        return rounded_to(lowest(DOUBLE, *self.types.values()), vector)

    def text(self, xp: Any, *args: Any) -> Any:
        """The case on any namespace, its inputs in order."""
        return function_of(self.case, self.names, xp)(*args)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Results that are computed once for this point (references.py)."""
        return {}

    def copied(self) -> CasePoint:
        """A copy with separate arrays, because a case may return the same arrays each time."""
        return replace(self, args=tree.copied(self.args))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value, from the case on plain numpy if it is array-valued."""
        if not self.case.is_array_valued:
            return ()
        with np.errstate(all="ignore"):
            return np.shape(self.plain(*self.args))

    @cached_property
    def nonzeros(self) -> Nonzeros | None:
        """The Jacobian's declared pattern of nonzeros, or None."""
        if self.case.sparsity is None:
            return None
        rows, columns = self.case.sparsity(self.size)
        return Nonzeros(np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp))

    @cached_property
    def arguments(self) -> Point:
        """The arguments for the oracle, some of them active."""
        return Point(self.args, self.wrt, self.names)

    def plain(self, *args: Any) -> Any:
        """The case on plain numpy. Raises LessThanDouble if it computes in float32 or less."""
        return refuse_less(self.text(Namespace(np), *args))

    def direction(self, number: int) -> tuple[Any, ...]:
        """The direction v with this number; `jvp` and `hvp` take the first."""
        return self.arguments.direction(self.seed, number)

    def vector(self, operator: str) -> tuple[Any, ...]:
        """The operator's vector in numpy: none, v or w."""
        vector = definition(operator).vector
        if vector == "cotangent":
            return (cotangent(self.shape, self.seed),)
        return (self.direction(DIRECTION),) if vector == "tangent" else ()

    def stacked(self, count: int) -> tuple[Any, ...]:
        """The inputs of many points around this one, which is the first (many_points.py).

        Raises Unsupported if they are too large.
        """
        if self.has_too_many(count):
            most, entries = many_points.MOST_NUMBERS, sum(self.arguments.sizes)
            raise Unsupported(f"{count:,} points of {entries:,} entries: the most are {most:,} in all")
        return many_points.stacked(self.args, self.wrt, count, (self.seed, self.size), self.form)

    def has_too_many(self, count: int) -> bool:
        """Whether `stacked` refuses so many points."""
        return count * sum(self.arguments.sizes) > many_points.MOST_NUMBERS

    def sampled(self, count: int) -> dict[int, CasePoint]:
        """Index -> point, for those of many points that have a reference; none if there are too many numbers."""
        if self.has_too_many(count):
            return {}
        stack = self.stacked(count)
        points = many_points.sample(count, self.seed)
        return {index: replace(self, args=many_points.point_of(stack, self.wrt, index)) for index in points}

    def native(self, backend: Backend, operator: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments for preparing and for calling; they differ if the case has `prepared`."""
        vector = self.vector(operator)
        elsewhere, args = self.case.bind_prepared(self.size, self.seed), self.args
        if count := batch_points(operator):
            elsewhere, args = replace(self, args=elsewhere).stacked(count), self.stacked(count)
        return backend.native_inputs((*elsewhere, *vector)), backend.native_inputs((*args, *vector))


def rounded_to(form: Precision, arg: Any) -> Any:
    """The floating-point leaves as numbers of this type."""
    return arg if form is DOUBLE else tree.map_floats(form.rounded, arg)


def point(case: Case, size: int, seed: int, *, single: bool = False, dtype: str = FLOAT64) -> CasePoint:
    """The case at this size and seed. Raises UsageError as `Case.bind` does, and Unsupported with the reason if the
    type has no such point.
    """
    case = at_size(case, size)
    names, args, wrt = case.bind(size, seed)
    at = CasePoint(case, size, seed, names, args, wrt, single, PRECISIONS[dtype])
    return at if at.form is DOUBLE else replace(at, args=_in_type(at))


def _in_type(at: CasePoint) -> tuple[Any, ...]:
    """The inputs rounded to the type of the point."""
    args = tuple(rounded_to(at.form, arg) for arg in at.args)
    if at.dtype is not DOUBLE:
        for leaf, rounded in zip(tree.leaves(at.args), tree.leaves(args), strict=True):
            if tree.is_active(leaf):
                _refuse_outside(np.asarray(leaf), np.asarray(rounded), at)
    return args


def _refuse_outside(numbers: Any, rounded: Any, at: CasePoint) -> None:
    """Raise Unsupported where rounding makes another point: an infinity, a zero, or of a declared case any number."""
    lost = np.isfinite(numbers) & ~np.isfinite(rounded) | (numbers != 0) & (np.abs(rounded) < at.dtype.smallest)
    if lost.any():
        raise Unsupported(f"{at.dtype.name} has no input {float(numbers[lost].flat[0])!r}")
    if at.case.declared and not np.array_equal(numbers, rounded, equal_nan=True):
        raise Unsupported(f"its gradient is declared at inputs that are no numbers of {at.dtype.name}")


def refuse_another_function(at: CasePoint, known: PointReferences) -> None:
    """Raise UsageError if the case's value here differs from its value in the reference's process."""
    try:
        value = at.plain(*at.args)
        verdict = judge_operator("value", np.asarray(value, dtype=np.float64), known.first, within=at.within)
    except Exception:  # it does not run on numpy, so there is nothing to compare
        return
    if verdict.word == "wrong":
        raise UsageError(
            "the function gives different values in different processes, so it has no reference. Seed every "
            f"generator that it uses, for example with numpy.random.default_rng(0). Here {verdict.sentence}"
        )


def examined(
    at: CasePoint,
    operator: str,
    result: Any,
    known: PointReferences,
    claimed_relative_error: float | None,
    *,
    spread: ErrorSpread | None = None,
    agreed: Collection[str] = (),
) -> tuple[Verdict, tuple[EntryEvidence, ...]]:
    """The verdict, and every compared number. spread: of the library's rounding errors; agreed: the places of numbers
    that agree with the truth at neighbouring points too (rounding_spread.py)."""
    if count := batch_points(operator):
        x, claim = tuple(at.args[k] for k in at.wrt), claimed_relative_error
        judge = partial(judge_entries, single=at.single, within=at.within)
        return many_points.judged(x, count, result, known.points, claim, judge, spread=spread)
    verdict, entries = judge_entries(
        definition(operator).judged_by,
        result,
        known.of(operator),
        nonzeros=at.nonzeros,
        claimed_relative_error=claimed_relative_error,
        single=at.single,
        within=at.within,
        spread=spread,
        agreed=agreed,
    )
    if at.dtype is not DOUBLE and verdict.ulp is not None:
        verdict = replace(verdict, sentence=f"{verdict.sentence}; {verdict.ulp}")
    return verdict, entries
