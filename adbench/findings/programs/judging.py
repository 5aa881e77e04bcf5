"""Is a library's derivative of a program right? Few numbers acquit quickly; only the full oracle convicts.

The true value f, the derivatives along two directions v and w, and wᵀ H v come from four evaluations on power series
with at least 50 digits: a few milliseconds. A gradient g with <g, v> and <g, w> within AGREEING of these is right. A
result that does not agree is compared again with the noise of double precision along these directions. The rest, and
every result at a kink or where the series decide nothing, goes to the oracle of `adbench check`: each entry, with its
noise. A wrong gradient is judged once more with other random roundings.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from adbench.findings.conform.judgement import NEIGHBOURS, SPREADS
from adbench.findings.finding import Kind
from adbench.findings.programs.generation import evaluated, nan_reaches, values_of
from adbench.findings.programs.random_program import Program, Step
from adbench.findings.programs.rounding import ADDED, accumulated, nearby, overflows, pi_decides, rounding_decides
from adbench.model.namespace import PLAIN
from adbench.model.operator import COMPOSITIONS, definition
from adbench.oracle.evidence import BARS, SIGMAS, EntryEvidence, compare, entry_name, place_of
from adbench.oracle.leaves import Point
from adbench.oracle.operators import judge_entries
from adbench.oracle.precise import FEWEST_DRAWS, METHOD, NotPrecise, on_series, unit
from adbench.oracle.reference import UNIT_ROUNDOFF, Known, Reference, Row
from adbench.oracle.second_order import hvp_reference
from adbench.oracle.series.evaluation import Curve, many_entries
from adbench.oracle.subject import Effort, Subject

T = TypeVar("T")

AGREEING = 1e-10
"""Relative to the sum of the terms' sizes. Of smaller agreement the oracle's noise decides."""

CONSISTENT = 1e-8
"""Relative difference of results that count as equal where the truth is not known."""

DIFFERENT = 1e-6
"""Relative difference of two variants of a library that is a finding."""

UNDERFLOWN = 1e-150
"""Smaller numbers may be products in which a factor underflows: x⁻⁴ of 1e87 in the derivative of x⁻³."""

ROUNDED_ZERO = 1e-8
"""A smaller number may be a sum of terms that cancel, which changes by more than itself."""

HALF = 0.5
"""The relative change of a number between neighbouring points from which on no library can know it."""

SECONDS = 0.2
"""Approximate time of a full reference."""

QUICK_SECONDS = 0.02
"""A third of the limit for the true numbers along directions."""

EXISTING = ("smooth", "kink")
"""Kinds of derivatives that a library must get right; others are infinite, unknown, or at the edge of the domain."""

OPERATORS = ("gradient", "value_and_gradient", "jvp", "hvp", *sorted(COMPOSITIONS))
"""The operators that programs are judged in."""


@dataclass(frozen=True)
class AnswerFault:
    """What is wrong with one answer: the parts of a Finding that the program does not have."""

    kind: Kind
    got: str
    expected: str
    place: str
    words: str
    where: str
    edge: bool = False
    peer: str = ""


class ProgramTrial:
    """A program at its point, and everything needed to judge answers. Nothing is computed before it is needed."""

    def __init__(self, program: Program, seed: int = 0) -> None:
        self.program, self.seed = program, seed
        self.args, self.wrt = program.args, program.wrt
        self.point = Point(self.args, self.wrt, program.names)
        self._function = program.function()

    @property
    def vector(self) -> tuple[Any, ...]:
        """v, in the structure of the active inputs."""
        return self.point.direction(self.seed, 0)

    def subject(self) -> Subject:
        """The program for the oracle."""
        return Subject(partial(self._function, PLAIN), self.point, self._function, ())

    @cached_property
    def quick(self) -> _Truths | None:
        """The true numbers along directions; None if the series do not prove all of them in a short time."""
        return self._truths(0, QUICK_SECONDS)

    @cached_property
    def noisy(self) -> _Truths | None:
        """The true numbers along directions with the noise of double precision; None if the series do not prove all."""
        return self._truths(FEWEST_DRAWS, SECONDS)

    def _truths(self, draws: int, seconds: float) -> _Truths | None:
        v, w = (many_entries(self.point.steps(self.seed, number)) for number in (0, 1))
        curves = (Curve(()), Curve.straight(v), Curve.straight(w), Curve.mixed(v, w))
        known = self._known([(curve, 1.0) for curve in curves], draws, seconds)
        return None if known is None or any(one.kind != "smooth" for one in known) else _Truths(*known)

    def _known(self, wanted: Sequence[tuple[Curve, float]], draws: int, seconds: float) -> list[Known] | None:
        """The coefficients along curves; None if the program does not run on series in this time."""
        effort = Effort(self.seed, max_seconds=seconds)
        known_of_curves = self._on_series(effort, lambda examination: examination.known(wanted, draws))
        return None if known_of_curves is None else [of_curve[0] for of_curve in known_of_curves]

    def _on_series(self, effort: Effort, examine: Callable[[Any], T]) -> T | None:
        """What an examination of the program gives; None if it does not run on series with this effort."""
        with suppress(NotPrecise):
            return on_series(self.subject(), effort, examine)
        return None

    def fault(self, operator: str, answer: Mapping[str, Any]) -> AnswerFault | None:
        """What is wrong with a library's answer (`source_text_call.answers`), or None."""
        if "raised" in answer:
            if self.quick is None and not self._exists(operator):
                return None
            text = str(answer["raised"]).partition("\n")[0]
            return AnswerFault(
                "raises", text, "a derivative", operator, f"the {operator} raises {text}", "", self.edged
            )
        if "result" not in answer:
            return None
        arrays = [np.asarray(one) for one in answer["result"]]
        if self.program.has_nan:
            return self._lost_nan(operator, arrays)
        if self.quick is not None:
            if self._agrees(operator, arrays, self.quick):
                return None
            if self.noisy is not None and self._agrees(operator, arrays, self.noisy):
                return None
        if self._fits(operator, arrays) and not all(np.isfinite(one).all() for one in arrays):
            return self._not_finite(operator, arrays)
        return self._full_fault(operator, arrays)

    def _lost_nan(self, operator: str, arrays: Sequence[Any]) -> AnswerFault | None:
        """A fault if an input's NaN reaches the value on numpy, and the library's value is finite. Only the value is
        judged, because a derivative need not read the input.
        """
        has_value = operator == "value" or definition(operator).result == "pair"
        if not has_value or not nan_reaches(self.program) or not np.isfinite(arrays[0]).all():
            return None
        got, words = repr(float(arrays[0])), "an input holds a NaN, which reaches the value on numpy"
        return AnswerFault("wrong", got, "nan", "the value", f"the value is {got}, but {words}", "numpy")

    def _fits(self, operator: str, arrays: Sequence[Any]) -> bool:
        """Whether the arrays have the shapes of a gradient, or the result is a number."""
        shapes = [leaf.values.shape for leaf in self.point.leaves]
        wanted = {"value": [()], "pair": [(), *shapes]}.get(definition(operator).result, shapes)
        return [one.shape for one in arrays] == wanted and all(one.dtype == np.float64 for one in arrays)

    def _not_finite(self, operator: str, arrays: Sequence[Any]) -> AnswerFault | None:
        """A fault if the first number that is not finite has a finite true value."""
        which = next(k for k, one in enumerate(arrays) if not np.isfinite(one).all())
        index = int(np.flatnonzero(~np.isfinite(arrays[which]))[0])
        v = many_entries(self.point.steps(self.seed, 0))
        where: tuple[int, ...] = ()
        place, curve, scale = "J v", Curve.straight(v), 1.0
        if definition(operator).result == "pair" and not which:
            place, curve = "the value", Curve(())
        elif definition(operator).result != "value":
            which -= definition(operator).result == "pair"
            leaf = self.point.leaves[which]
            move, scale = unit(self.point, which, index)
            curve = Curve.mixed(v, move) if definition(operator).order == 2 else Curve.straight(move)
            place, where = leaf.path, place_of(index, leaf.values.shape)
            which += definition(operator).result == "pair"
        # With noise, to exclude points where double precision overflows; along v, to exclude infinite other entries.
        known = self._known([(Curve(()), 1.0), (curve, scale), (Curve.straight(v), 1.0)], FEWEST_DRAWS, SECONDS)
        if known is None or not all(math.isfinite(one.size) and math.isfinite(one.noise) for one in known):
            return None
        if self._is_rounded_to_an_edge():
            return None
        if any(one.kind not in EXISTING for one in known):
            return None
        evidence = compare(place, where, float(arrays[which].flat[index]), known[1], 1.0)
        if evidence.word != "wrong" or self._is_unstable([(curve, scale)], evidence.expected):
            return None
        words, where_from = f"wrong: {evidence}", f"{METHOD}, proved"
        return AnswerFault("nan", repr(evidence.got), evidence.truth, evidence.place, words, where_from, self.edged)

    def _is_rounded_to_an_edge(self) -> bool:
        """Whether a number is 0 or ±1 in double precision only, where functions have no derivative: tanh(30), e⁻⁸⁰⁰."""
        if pi_decides(self.program):
            return True
        known = len(self.program.inputs)
        for k, (_, _, array) in enumerate([*evaluated(self.program)][:-1]):
            at = np.where(np.isin(np.abs(array), (0.0, 1.0)), array, np.nan)
            if np.isnan(at).all():
                continue
            is_at, there = (np.nan_to_num(one).tolist() for one in (~np.isnan(at) * 1.0, at))
            text = f"xp.sum(xp.abs({{0}} * xp.asarray({is_at}) - xp.asarray({there})))"
            distance = Step("distance", text, (known + k,))
            before = ProgramTrial(Program(self.program.inputs, (*self.program.steps[: k + 1], distance)), self.seed)
            exact = before._known([(Curve(()), 1.0)], 0, SECONDS)
            if exact is None or exact[0].size > 0:
                return True
        return False

    def _is_unstable(self, wanted: Sequence[tuple[Curve, float]], number: float) -> bool:
        """Whether the true number at a neighbouring point is a very different one."""
        rng = np.random.default_rng(self.seed)
        for _ in range(NEIGHBOURS):
            near = ProgramTrial(nearby(self.program, rng), self.seed)._known(wanted, 0, SECONDS)
            if near is None or abs(near[0].lower - number) > HALF * max(abs(number), near[0].size):
                return True
        return False

    def _agrees(self, operator: str, arrays: Sequence[Any], true: _Truths) -> bool:
        """Whether sums along the directions agree with the true numbers."""
        if not self._fits(operator, arrays) or not all(np.isfinite(one).all() for one in arrays):
            return False
        if definition(operator).result == "value":
            return _close(float(arrays[0]), true.along_v, 0.0)
        if definition(operator).result == "pair":
            value, *arrays = arrays
            if not _close(float(value), true.value, 0.0):
                return False
        if definition(operator).order == 2:
            return self._sums(arrays, 1, true.mixed)
        return self._sums(arrays, 0, true.along_v) and self._sums(arrays, 1, true.along_w)

    def _sums(self, arrays: Sequence[Any], number: int, truth: Known) -> bool:
        terms = [one * step for one, step in zip(arrays, self.point.steps(self.seed, number), strict=True)]
        flat = [float(term) for part in terms for term in np.ravel(part)]
        return _close(math.fsum(flat), truth, math.fsum(map(abs, flat)))

    @cached_property
    def edged(self) -> bool:
        """Whether an operation has no derivative here, at a tie or at √0, or overflows, even if the program has one."""
        if overflows(self.program) or rounding_decides(self.program):
            return True
        v = Curve.straight(many_entries(self.point.steps(self.seed, 0)))
        effort = Effort(self.seed, max_seconds=SECONDS)
        edged = self._on_series(effort, lambda examination: bool(examination.truth.evaluations.along(v).edged))
        return edged is None or edged

    def _exists(self, operator: str) -> bool:
        """Whether every derivative exists on both sides."""
        known = self.reference(definition(operator).order == 2, self.seed)
        return known is not None and all(one.kind in EXISTING for one in known.scalar.derivatives)

    def _full_fault(self, operator: str, arrays: Sequence[Any]) -> AnswerFault | None:
        """The oracle's word, twice."""
        judged = None
        again = (self.seed,) if definition(operator).vector else (self.seed, self.seed + 1)
        for seed in again:  # another seed has another v, which the answer does not know
            known = self.reference(definition(operator).order == 2, seed)
            if known is None:
                return None
            verdict, entries = judge_entries(definition(operator).judged_by, self._structured(operator, arrays), known)
            if verdict.word != "wrong":
                return None
            judged = verdict, entries, known.all_outputs
        assert judged is not None
        verdict, entries, row = judged
        bad = [one for one in entries if one.word == "wrong"]
        # At a kink any mixture may be right, and of several kinks even numbers outside the interval.
        single = [one for one in bad if one.kind == "smooth" and not one.place.startswith("the sum")]
        if bad and (not single or rounding_decides(self.program) or pi_decides(self.program)):
            return None
        if bad and definition(operator).vector is None:
            single = [one for one in single if _error(one) > ADDED * UNIT_ROUNDOFF * self._added(one)]
            if not single:
                return None
        if single and (single := self._beyond_conditioning(operator, arrays, single)) == []:
            return None
        entry = max(single, key=_error, default=None)
        where = row.method + (", proved" if row.proved else "")
        if entry is None:
            shapes = ", ".join(str(one.shape) for one in arrays)
            got, expected = f"arrays of shape {shapes}", "the structure of the inputs"
            return AnswerFault("wrong", got, expected, operator, verdict.sentence, where)
        kind: Kind = "wrong" if math.isfinite(entry.got) else "nan"
        return AnswerFault(kind, repr(entry.got), entry.truth, entry.place, verdict.sentence, where, self.edged)

    def _beyond_conditioning(
        self, operator: str, arrays: Sequence[Any], bad: Sequence[EntryEvidence]
    ) -> list[EntryEvidence]:
        """The entries whose error is larger than the change between neighbouring points.

        An operation of the table may round inside, as π x in sinc x, like a change of its operand.
        """
        rng, spread = np.random.default_rng(self.seed), defaultdict[Any, float](float)
        for _ in range(NEIGHBOURS):
            near = ProgramTrial(nearby(self.program, rng), self.seed)
            known = near.reference(definition(operator).order == 2, self.seed)
            if known is None:
                continue
            there = {
                (one.where, one.index): one
                for one in judge_entries(definition(operator).judged_by, self._structured(operator, arrays), known)[1]
            }
            for one in bad:
                other = there.get((one.where, one.index))
                change = abs(one.expected - other.expected) if other is not None else 0.0
                spread[one.where, one.index] = max(spread[one.where, one.index], change)

        def is_known(one: EntryEvidence, change: float) -> bool:
            if max(abs(one.got), abs(one.expected)) < UNDERFLOWN:
                return False
            return change <= HALF * abs(one.expected) or abs(one.expected) < ROUNDED_ZERO

        changes = [(one, spread[one.where, one.index]) for one in bad]
        return [one for one, change in changes if _error(one) > SPREADS * change and is_known(one, change)]

    def _added(self, entry: EntryEvidence) -> float:
        """The size of the terms that reverse mode adds for an entry; 0 for the value."""
        for leaf, which in zip(self.point.leaves, self.wrt, strict=True):
            if entry.where == leaf.path:
                shape = leaf.values.shape
                return accumulated(self.program, which, int(np.ravel_multi_index(entry.index, shape)) if shape else 0)
        return 0.0

    def reference(self, second: bool, seed: int) -> Reference | None:
        """The full reference of first order, or of H v; None unless it is proved, with finite numbers."""
        effort = Effort(seed, max_seconds=SECONDS)
        rows = self._on_series(effort, lambda examination: examination.rows(examination.planned()))
        row: Row | None = rows[0] if rows else None
        if second and row is not None and _is_finite(row):
            row = hvp_reference(self.subject(), row, effort).scalar
        if row is None or not _is_finite(row):
            return None
        # Libraries often compute a true zero as a difference of the numbers around it.
        floor = UNIT_ROUNDOFF * max(one.size for one in (row.value, *row.derivatives))
        row = row.with_derivatives(lambda one, *_: replace(one, noise=max(one.noise, floor)) if one.size == 0 else one)
        return Reference((), ((0, row),))

    def _structured(self, operator: str, arrays: Sequence[Any]) -> Any:
        """The arrays as the operator returns them."""
        if definition(operator).result == "value":
            return arrays[0] if len(arrays) == 1 else tuple(arrays)
        return (arrays[0], tuple(arrays[1:])) if definition(operator).result == "pair" else tuple(arrays)


def differing(trial: ProgramTrial, operator: str, ours: Any, theirs: Any, peer: str) -> AnswerFault | None:
    """A fault if two variants of a library differ where the true numbers are unknown."""
    if "result" not in ours or "result" not in theirs or rounding_decides(trial.program):
        return None
    a, b = (np.concatenate([np.ravel(part) for part in one["result"]]) for one in (ours, theirs))
    if a.shape != b.shape or not trial._fits(operator, [np.asarray(one) for one in ours["result"]]):
        return None
    if trial.reference(definition(operator).order == 2, trial.seed) is not None:
        return None
    size = float(np.max(np.abs(np.concatenate([a, b])), initial=0.0, where=np.isfinite(np.concatenate([a, b]))))
    values = values_of(trial.program) or []
    terms = max((float(np.abs(one).max(initial=0.0)) for one in values), default=0.0)  # these may cancel
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= DIFFERENT * size + CONSISTENT * terms)
    if same.all():
        return None
    which = int(np.flatnonzero(~same)[0])
    leaves = trial.point.leaves
    places = [entry_name(one.path, k, one.values.shape) for one in leaves for k in range(one.values.size)]
    places = ["J v"] if definition(operator).result == "value" else places
    place = ["the value", *places][which] if definition(operator).result == "pair" else places[which]
    got, expected = repr(float(a[which])), repr(float(b[which]))
    words = f"{place}: {got}, but {expected} by {peer}; the true number is unknown"
    return AnswerFault("differs", got, expected, place, words, f"{peer}, the other variant", trial.edged, peer)


def agree(trial: ProgramTrial, answers: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether all results are finite and equal, up to rounding: gradients, H v, and <g, v> with J v."""
    firsts: list[Any] = []
    seconds: list[Any] = []
    along: list[float] = []
    for operator, one in answers:
        arrays = [np.asarray(part) for part in one.get("result", ())]
        if not arrays:
            continue
        if not all(part.dtype == np.float64 and np.isfinite(part).all() for part in arrays):
            return False
        if definition(operator).result == "value":
            along.append(float(np.sum(arrays[0])))
            continue
        gradient = arrays[1:] if definition(operator).result == "pair" else arrays
        flat = np.concatenate([np.ravel(part) for part in gradient])
        (seconds if definition(operator).order == 2 else firsts).append(flat)
    step = np.concatenate([np.ravel(part) for part in trial.point.steps(trial.seed, 0)])
    if any(one.shape != step.shape for one in (*firsts, *seconds)):
        return False
    products = [float(one @ step) for one in firsts]
    size = max((float(np.abs(one) @ np.abs(step)) for one in firsts), default=0.0)
    return (
        all(np.allclose(one, each[0], rtol=CONSISTENT, atol=0.0) for each in (firsts, seconds) for one in each)
        and all(abs(one - other) <= CONSISTENT * size for one in along for other in products)
        and len(along) + len(firsts) + len(seconds) > 0
    )


@dataclass(frozen=True)
class _Truths:
    """f, D_v f, D_w f and wᵀ H v."""

    value: Known
    along_v: Known
    along_w: Known
    mixed: Known


def _is_finite(row: Row) -> bool:
    """Whether all numbers are proved and finite: an infinite derivative is not judged."""
    return row.proved and all(math.isfinite(one.size) for one in (row.value, *row.derivatives))


def _close(got: float, truth: Known, scale: float) -> bool:
    bound = BARS * truth.bar + SIGMAS * truth.noise + AGREEING * max(truth.size, scale)
    return math.isfinite(truth.size) and abs(got - truth.lower) <= bound


def _error(entry: EntryEvidence) -> float:
    error = abs(entry.got - entry.expected)
    return error if math.isfinite(error) else math.inf
