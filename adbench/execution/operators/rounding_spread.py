"""Judging a prepared call: the verdict on a library allows for the library's own rounding errors.

The noise of a reference is that of the case's operations in their order. A library computes the same function, but may
add in another order: many tapes add the contributions to an adjoint one by one. So its rounding errors differ. They
jump between close inputs, and a mistake does not. So high differences of the results at equally spaced inputs on a line
contain the noise alone.

Moré and Wild (2011), "Estimating computational noise".

The noise can be pessimistic too: another formula may keep digits that the case's own formula loses. So a number that
the noise hides is right if it agrees with its proved reference to twelve digits, here and at neighbouring points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.errors import Unsupported, UsageError, contained
from adbench.model.operator import batch_points, definition
from adbench.oracle.evidence import DOUBLE, EntryEvidence, ErrorSpread, Precision, agrees
from adbench.oracle.structure import symmetrised
from adbench.oracle.verdict import Verdict

CALLS = 8
ORDERS = (3, 4, 5)  # of the differences
DRAWS = 12  # of a reverse sweep that is rounded at random
STEP, STEP_OF_SINGLE = 2.0**-30, 2.0**-12
"""The relative distance of two inputs: far above rounding, and smooth functions are straight at a few of them."""

NEIGHBOURS, NEIGHBOUR, NEIGHBOUR_SECONDS = 3, 2.0**-10, 3.0
"""Neighbouring points whose references are computed: how many, their relative distance, seconds for each reference."""


Examined = tuple[Verdict, tuple[EntryEvidence, ...]]
"""A verdict, and every compared number."""


class FailsElsewhere(Exception):
    """The call raised at other inputs than the judged ones."""


@dataclass
class Judge:
    """The verdicts on results of one prepared call, which takes native arguments.

    The spread of its rounding errors is measured only before a result is called wrong, and only if a spread can change
    that. It applies to the point where it was measured. Traps allow none: they ask for the digits of a formula.

    A result that is wrong by the case's reference may be right by another convention of symmetric matrices
    (`references.by_conventions`): all of its numbers by the same one, which the verdict names. Traps ask for one.
    """

    backend: Backend
    operator: str
    call: Callable[..., Any]
    _spreads: dict[int, Mapping[str, float]] = field(default_factory=dict)  # by the seed of the point

    def judged(self, at: CasePoint, result: Any, known: PointReferences) -> Verdict:
        """The verdict on a result there, in numpy."""
        return self.examined(at, result, known)[0]

    def examined(self, at: CasePoint, result: Any, known: PointReferences) -> Examined:
        """The verdict, with every compared number."""
        verdict, entries = self._examined(at, result, known)
        if known.of_values is None or batch_points(self.operator):
            if known.declared and verdict.word == "wrong":
                verdict = verdict.noted(f"constants declared at {known.declared} are forbidden")
            return verdict, entries
        other, of_values = self._examined(at, result, known.of_values)
        if verdict.is_right and other.word == "wrong" and other.worst is not None:
            without = f"without them {other.worst.place} would be {other.worst.expected:.4g}"
            return verdict.noted(f"right, with constants declared at {known.declared}: {without}"), entries
        if other.is_right and not verdict.is_right:
            if known.declared:
                other = other.noted(f"the constants declared at {known.declared} do not count")
            return other, of_values
        return verdict, entries

    def _examined(self, at: CasePoint, result: Any, known: PointReferences) -> Examined:
        """The verdict and the compared numbers by these references, or by another convention."""
        first = self._by(known, at, result)
        if first[0].word != "wrong":
            return first
        with suppress(FailsElsewhere, UsageError):  # also of a pattern without the numbers of another convention
            from adbench.execution.operators.references import by_conventions  # a worker loads it only here

            for way in by_conventions(at, self.operator):
                symmetric = result if way.axes is None else self._on_symmetric_changes(at, result, way.axes)
                verdict, entries = self._by(way.known, at, symmetric)
                if verdict.word != "wrong":
                    return verdict.noted(way.note), entries
        return first

    def _on_symmetric_changes(self, at: CasePoint, result: Any, axes: Any) -> Any:
        """A second derivative as it acts on symmetric changes, for a vector that is one."""
        if definition(self.operator).result == "hessian":
            return symmetrised(result, axes, both_sides=True)
        vector = tuple(symmetrised(v, axes) for v in at.vector(self.operator))
        return symmetrised(self._result(self.backend.native_inputs((*at.args, *vector))), axes)

    def _by(self, known: PointReferences, at: CasePoint, result: Any) -> Examined:
        """The verdict by these references."""
        claimed = self.backend.claimed_relative_error
        judged = partial(examined, at, self.operator, result, known, claimed)
        first = judged()
        if first[0].word == "blind" and claimed is None and (agreed := self._agreed(at, first[1], known)):
            return judged(agreed=agreed)
        if (
            first[0].word != "wrong"
            or at.case.is_trap
            or claimed is not None
            or (self.backend.rounds_inputs and not at.types)
        ):
            return first
        last = first
        if judged(spread=ErrorSpread({}, math.inf))[0].word != "wrong":  # or by more than a spread may allow
            with suppress(FailsElsewhere):  # then the verdict stays
                last = judged(spread=ErrorSpread(self._spread_at(at, known)))
        if last[0].word == "wrong" and at.types and self.operator == "gradient":
            with suppress(Unsupported):  # the function may have operations that are not known for arrays
                last = judged(spread=ErrorSpread(_spread_of_sweep(at, known), most=math.inf))
        return last

    def _agreed(self, at: CasePoint, entries: Sequence[EntryEvidence], known: PointReferences) -> Collection[str]:
        """The places of hidden numbers that agree with the proved truth to twelve digits, here and at neighbours.

        The neighbours are a thousandth of each number apart, so that a truth that is not constant changes in its third
        digit: a formula that is right here by chance is wrong there. Zeros stay zero: there formulas often branch.
        """
        if at.single or self.backend.rounds_inputs or batch_points(self.operator):
            return ()
        if at.case.declared or not known.of(self.operator).is_proved:
            return ()
        from adbench.execution.operators.references import known_at  # a worker loads it only here

        agreed = {item.place for item in entries if item.word != "right" and agrees(item)}
        if not any(item.word == "blind" and item.place in agreed for item in entries):
            return ()
        of = definition(self.operator)
        for step in range(1, NEIGHBOURS + 1):
            there = _neighbour(at, step, NEIGHBOUR)
            try:
                hessian, seconds = of.result == "hessian", NEIGHBOUR_SECONDS
                truth = known_at(there, second_order=of.order == 2, hessian=hessian, seconds=seconds)
            except Exception:  # outside its domain a case may raise anything
                return ()
            if not truth.of(self.operator).is_proved:
                return ()
            try:
                agreed &= {item.place for item in self._compared(there, truth) if agrees(item)}
            except FailsElsewhere:
                return ()
        return agreed

    def _compared(self, there: CasePoint, known: PointReferences) -> tuple[EntryEvidence, ...]:
        """The numbers of the call at another point."""
        result = self._result(there.native(self.backend, self.operator)[1])
        return examined(there, self.operator, result, known, None)[1]

    def _result(self, inputs: Sequence[Any]) -> Any:
        """The result of the call at other inputs than the judged ones, in numpy."""
        try:
            with contained():
                return self.backend.numpy_result(self.backend.waited(self.call(*inputs)))
        except Exception as error:  # a library may raise anything
            raise FailsElsewhere from error

    def _spread_at(self, at: CasePoint, known: PointReferences) -> Mapping[str, float]:
        def numbers(there: CasePoint) -> dict[str, float]:
            return {item.place: item.got for item in self._compared(there, known)}

        if at.seed not in self._spreads:
            self._spreads[at.seed] = spread_of(numbers, at)
        return self._spreads[at.seed]


def _spread_of_sweep(at: CasePoint, known: PointReferences) -> Mapping[str, float]:
    """The standard deviations of the gradient's errors where each operation of the function, and of its reverse sweep,
    is rounded at random: two contributions to an adjoint that cancel are rounded twice."""
    from adbench.execution.precision.enclosed import rounded  # a worker loads it only here

    f: Any = at.case.f
    draws = []
    for draw in range(DRAWS):
        parts = rounded(f, at.args, 1.0, [at.seed, draw], {})[1:]
        draws.append({item.place: item.got for item in examined(at, "gradient", parts, known, None)[1]})
    return {place: float(np.std([each[place] for each in draws])) for place in draws[0]}


def spread_of(numbers: Callable[[CasePoint], Mapping[str, float]], at: CasePoint) -> dict[str, float]:
    """Place of each compared number -> the standard deviation of its rounding error.

    numbers   numbers(point) -> the program's numbers there, by place
    """
    draws = [numbers(_neighbour(at, step, STEP)) for step in range(CALLS)]
    common = [place for place in draws[0] if all(place in each for each in draws)]
    return {place: noise(np.array([each[place] for each in draws])) for place in common}


def _neighbour(at: CasePoint, steps: int, step: float) -> CasePoint:
    """The point after so many steps along a random line, each a random share of a number times ``step``."""
    rng = np.random.default_rng([at.seed, at.size, CALLS])  # the same line for each step

    def moved(name: str, arg: Any) -> Any:
        form = at.types.get(name, at.form)
        least = step if form is DOUBLE else max(step, STEP_OF_SINGLE)
        return tree.map_floats(partial(_moved, rng, steps, least, form), arg)

    pairs = enumerate(zip(at.names, at.args, strict=True))
    args = tuple(moved(name, arg) if k in at.wrt else arg for k, (name, arg) in pairs)
    return replace(at, args=args)


def noise(values: NDArray[np.float64]) -> float:
    """The standard deviation of the errors of a smooth function's values at equal distances."""
    squares = [
        np.square(np.diff(values, order)).mean() * math.factorial(order) ** 2 / math.factorial(2 * order)
        for order in ORDERS
    ]
    return float(np.sqrt(np.mean(squares)))


def _moved(rng: np.random.Generator, steps: int, step: float, form: Precision, array: Any) -> Any:
    """The numbers of a leaf, moved by so many steps, each a random share of ``step`` of the number.

    The steps are multiples of a unit, at least one, so that no sum is rounded and an exact program has no noise. form:
    the type of the numbers.
    """
    unit = 2 * form.ulps(array)
    multiple = np.rint(np.abs(array) * step * rng.uniform(0.5, 1.0, array.shape) / unit)
    return array + steps * unit * np.where(array == 0, 0.0, np.copysign(np.maximum(multiple, 1.0), array))
