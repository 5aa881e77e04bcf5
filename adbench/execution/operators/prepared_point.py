"""A case at a point: its reference, and the arguments and verdict of each operator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from adbench.catalog.ad_hoc import at_size
from adbench.catalog.double_precision import LessThanDouble, refuse_less
from adbench.functions.user_function import UserFunction
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.case import Case, function_of
from adbench.model.errors import UnknownName, Unsupported, UsageError
from adbench.model.namespace import Namespace
from adbench.model.operator import (
    EVERY_OPERATOR,
    OF_SECOND_ORDER,
    WITH_VECTOR,
    Operator,
)
from adbench.oracle import (
    Effort,
    EntryEvidence,
    Nonzeros,
    Reference,
    Subject,
    Verdict,
    cotangent,
    declared,
    hessian_reference,
    hvp_reference,
    judge_entries,
    judge_operator,
    reference,
)
from adbench.oracle.compute import DIFFERENCES
from adbench.oracle.second_order import DIRECTION, MOST_ROWS

MOST_EVALUATIONS = 20_000  # of a case in double precision for its reference, enough for about 300 entries
Remember = Callable[[str, Callable[[], Reference]], Reference]


@dataclass(frozen=True)
class Known:
    """The references at a point: of the function, of its derivative along v (whose gradient is H v), of its gradient.

    The gradient's value is an array of all active entries in order; its Jacobian is the Hessian. None if not requested.
    """

    first: Reference
    hvp: Reference | None = None
    hessian: Reference | None = None

    def to_plain(self) -> dict[str, Any]:
        """Dicts, lists, numbers and strings, to travel between processes."""
        parts = {"first": self.first, "hvp": self.hvp, "hessian": self.hessian}
        return {name: part.to_plain() for name, part in parts.items() if part is not None}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Known:
        """The inverse of `to_plain`."""
        return Known(**{name: Reference.from_plain(part) for name, part in plain.items()})

    def of(self, operator: str) -> Reference:
        """The reference of this operator. Raises ValueError if it was not requested."""
        found = self.hessian if operator == "hessian" else self.hvp if needs_second_order(operator) else self.first
        if found is None:
            raise ValueError(f"the reference of {operator} was not computed")
        return found


@dataclass(frozen=True)
class Point:
    """The inputs of a case at a size and a seed; `single`: float32 inputs, whose results may be float32."""

    case: Case
    size: int
    seed: int
    names: tuple[str, ...]
    args: tuple[Any, ...]
    wrt: tuple[int, ...]
    single: bool = False

    def text(self, xp: Any, *args: Any) -> Any:
        """The case on any namespace, its inputs in order."""
        return function_of(self.case, self.names, xp)(*args)

    def copied(self) -> Point:
        """A copy with separate arrays, because a case may return the same arrays each time."""
        copy = lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf  # noqa: E731 - for one line
        return replace(self, args=tuple(tree.map_leaves(copy, arg) for arg in self.args))

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
    def subject(self) -> Subject:
        """This point for the oracle."""
        return Subject.of(self.plain, self.args, self.wrt, text=self.text, names=self.names, shape=self.shape)

    def plain(self, *args: Any) -> Any:
        """The case on plain numpy. Raises LessThanDouble if it computes in float32 or less."""
        return refuse_less(self.text(Namespace(np), *args))

    def direction(self, number: int) -> tuple[Any, ...]:
        """The direction v with this number; `jvp` and `hvp` take the first."""
        return self.subject.point.direction(self.seed, number)

    def vector(self, operator: str) -> tuple[Any, ...]:
        """The operator's vector in numpy: none, v or w."""
        if operator == "vjp":
            return (cotangent(self.shape, self.seed),)
        return (self.direction(DIRECTION),) if operator in WITH_VECTOR else ()

    def native(self, backend: Backend, operator: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments for preparing and for calling; they differ if the case has `prepared`."""
        vector = self.vector(operator)
        elsewhere = self.case.bind_prepared(self.size, self.seed)
        return backend.native_inputs((*elsewhere, *vector)), backend.native_inputs((*self.args, *vector))


def point(case: Case, size: int, seed: int, *, single: bool = False) -> Point:
    """The case at this size and seed. Raises UsageError as `Case.bind` does."""
    case = at_size(case, size)
    names, args, wrt = case.bind(size, seed)
    return Point(case, size, seed, names, tree.map_leaves(_rounded, args) if single else args, wrt, single)


def _rounded(leaf: Any) -> Any:
    """A number or an array of float64, rounded to float32."""
    if not tree.is_active(leaf):
        return leaf
    rounded = np.asarray(leaf, dtype=np.float32).astype(np.float64)
    return rounded if isinstance(leaf, np.ndarray) else float(rounded)


def known_at(
    at: Point,
    *,
    second_order: bool,
    hessian: bool = True,
    seconds: float,
    remember: Remember = lambda what, compute: compute(),
) -> Known:
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
    own = isinstance(at.case.f, UserFunction)
    effort = Effort(at.seed, max_evaluations=_evaluations(at, seconds), max_seconds=seconds, second_differences=own)
    first = remember("first", lambda: reference(at.subject, effort))
    if why := _another_value(at, first):
        black_box = at.case.f.untranslated(why)  # type: ignore[attr-defined]  # it is a UserFunction
        at = replace(at, case=replace(at.case, f=black_box))
        return known_at(at, second_order=second_order, hessian=hessian, seconds=seconds)
    _refuse_false_pattern(at, first)
    if isinstance(at.case.f, UserFunction) and first.all_outputs.method == DIFFERENCES and at.case.f.stops:
        reason = f"{first.all_outputs.reason}, and differences of its values ignore {at.case.f.stops}"
        unknown = first.unknown(reason)
        return _with_unknown(unknown, unknown)
    if first.shape or not second_order:
        return Known(first)
    hvp = remember("hvp", lambda: hvp_reference(at.subject, first.scalar, effort))
    if not hessian:
        return Known(first, hvp)
    return Known(first, hvp, remember("hessian", lambda: hessian_reference(at.subject, effort)))


def _with_unknown(first: Reference, unknown: Reference) -> Known:
    """First order known, second order unknown: only the structure of second-order results is judged."""
    total = sum(leaf.size for leaf in first.all_outputs.leaves)
    rows = tuple((index, unknown.scalar) for index in range(min(total, MOST_ROWS))) if not first.shape else ()
    return Known(first, unknown, Reference((total,), rows) if rows else unknown)


def _evaluations(at: Point, seconds: float) -> int:
    """The most evaluations for differences; for a user's function, as many as fit into the time.

    Translates a user's function here, so that the time of evaluations on series excludes it.
    """
    if not isinstance(at.case.f, UserFunction):
        return MOST_EVALUATIONS
    if at.case.f.translated:
        with suppress(Unsupported):
            at.case.f.text(at.args)
    started = time.thread_time()
    with suppress(Exception), np.errstate(all="ignore"):
        at.plain(*at.args)
    each = max(1e-7, time.thread_time() - started)
    return int(max(200, min(MOST_EVALUATIONS, 3 * seconds / each)))


def _another_value(at: Point, first: Reference) -> str:
    """Why the reference is invalid: its translation has another value than the function. Otherwise ""."""
    made = at.case.f
    if not isinstance(made, UserFunction) or not made.translated:
        return ""
    with np.errstate(all="ignore"):
        value = np.asarray(at.plain(*at.args), dtype=np.float64)
    if np.isfinite(value).all() and any(row.value.kind == "unknown" for _, row in first.outputs):
        return "its translation has no value here"
    if not first.all_outputs.proved:
        return ""
    verdict = judge_operator("value", value, first)
    return f"its translation has another value: {verdict.sentence}" if verdict.word == "wrong" else ""


def _refuse_low_precision(at: Point) -> None:
    """Raise LessThanDouble if the case's value at float64 inputs has lower precision."""
    try:
        with np.errstate(all="ignore"):
            at.plain(*at.args)
    except LessThanDouble:
        raise
    except Exception:  # it does not run on numpy; reported when its value is needed
        return


def fingerprint(at: Point) -> str:
    """The values of a user's case here and nearby, as a string: they also depend on files that it reads."""
    steps = at.subject.point.steps(at.seed, 0)
    places = [at.args, at.subject.point.moved([2.0**-7 * step for step in steps])]
    try:
        with np.errstate(all="ignore"):
            return repr([np.asarray(at.plain(*args)).tolist() for args in places])
    except Exception:  # written for one library only
        return ""


def refuse_another_function(at: Point, known: Known) -> None:
    """Raise UsageError if the case's value here differs from its value in the reference's process."""
    try:
        value = at.plain(*at.args)
        verdict = judge_operator("value", np.asarray(value, dtype=np.float64), known.first)
    except Exception:  # it does not run on numpy, so there is nothing to compare
        return
    if verdict.word == "wrong":
        raise UsageError(
            "the function gives different values in different processes, so it has no reference. Seed every "
            f"generator that it uses, for example with numpy.random.default_rng(0). Here {verdict.sentence}"
        )


def _refuse_false_pattern(at: Point, known: Reference) -> None:
    """Raise UsageError if the case's pattern leaves out a nonzero entry, since libraries would be blamed."""
    if at.nonzeros is None:
        return
    stated = set(zip(at.nonzeros.rows.tolist(), at.nonzeros.columns.tolist(), strict=True))
    starts = np.cumsum([0, *at.subject.point.sizes]).tolist()
    for output, row in known.outputs:
        for leaf, start in zip(row.leaves, starts, strict=False):
            for entry in leaf.entries:
                if entry.derivative.size > 0 and (output, start + entry.index) not in stated:
                    raise UsageError(
                        f"{at.case.name}: sparsity({at.size}) leaves out row {output}, column {start + entry.index}, "
                        f"where the derivative is {entry.derivative.lower!r}; add it to the pattern"
                    )


def judged(at: Point, operator: str, result: Any, known: Known, claimed_relative_error: float | None) -> Verdict:
    """The verdict on the operator's result, in numpy."""
    return examined(at, operator, result, known, claimed_relative_error)[0]


def examined(
    at: Point, operator: str, result: Any, known: Known, claimed_relative_error: float | None
) -> tuple[Verdict, tuple[EntryEvidence, ...]]:
    """The verdict, with every compared number."""
    return judge_entries(
        operator,
        result,
        known.of(operator),
        nonzeros=at.nonzeros,
        claimed_relative_error=claimed_relative_error,
        single=at.single,
    )


def needs(operator: str) -> dict[str, bool]:
    """The arguments of `known_at` for the operator."""
    return {"second_order": needs_second_order(operator), "hessian": operator in ("hessian", "relations")}


def needs_second_order(operator: str) -> bool:
    """Whether the operator needs a second-order reference; relations need all references."""
    return operator in OF_SECOND_ORDER or operator == "relations"


def operator_named(name: str) -> Operator:
    """The operator of that name. Raises UnknownName."""
    for operator in EVERY_OPERATOR:
        if operator == name:
            return operator
    raise UnknownName("operator", name, EVERY_OPERATOR)
