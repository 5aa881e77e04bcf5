"""One text at one precision: its value at the point, and its difference quotients along moves of the inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import libmp

from adbench.oracle.highprecision.monte_carlo import Noisy, Stream, noisy_type
from adbench.oracle.highprecision.namespace import namespace_of
from adbench.oracle.highprecision.real import NAN, ONE, ZERO, Raw, Real, raw_of, real_type
from adbench.oracle.leaves import FloatArray, Point

Move = tuple[dict[int, Raw] | None, ...]
"""A direction: for every leaf, what to add to which flat index per unit step; None where the leaf stays."""


@dataclass(frozen=True)
class Precision:
    """Binary digits of the arithmetic, and the step h = 2^-power (times the scale of what is moved)."""

    bits: int
    power: int


COARSE = Precision(170, 56)
"""51 decimal digits, h = 1.4e-17."""

FINE = Precision(253, 83)
"""76 decimal digits, h = 1.0e-25."""


@dataclass(frozen=True)
class Quotients:
    """(f(x) - f(x - hv)) / h, (f(x + hv) - f(x)) / h and their mean; NaN where f is not finite."""

    left: Raw
    right: Raw

    @property
    def central(self) -> Raw:
        """(f(x + hv) - f(x - hv)) / 2h, without rounding."""
        return libmp.mpf_shift(libmp.mpf_add(self.left, self.right), -1)


def one_number(result: Any) -> list[Raw]:
    """The raw number of a result that is a scalar, or an array with one entry. Raises TypeError for others."""
    if isinstance(result, np.ndarray) and result.size == 1:
        result = result.reshape(())[()]
    raw = raw_of(result)
    if raw is None:
        raise TypeError(f"the function must return one number, it returned {type(result).__name__}")
    return [raw]


class Evaluations:
    """``xp_function(xp, *arguments)`` on numbers of type ``real``; no point is evaluated twice.

    numbers: result -> the raw numbers that are examined; centre: those at the point itself; seconds: what one
    evaluation took; stream: the perturbations where ``real`` is perturbed.
    """

    def __init__(
        self,
        xp_function: Callable[..., Any],
        point: Point,
        real: type[Real],
        deadline: float,
        numbers: Callable[[Any], list[Raw]] = one_number,
        stream: Stream | None = None,
    ) -> None:
        self.xp = namespace_of(real)
        self.xp.deadline = deadline
        self._function, self._point, self._real = xp_function, point, real
        self._numbers, self._stream = numbers, stream
        self.bits = real.bits
        self._base = [self.xp.reals(leaf.values) for leaf in point.leaves]
        self._constants: dict[int, Any] = {}
        self._found: dict[object, list[Raw]] = {}
        self.count = 0
        started = time.thread_time()
        self.centre = self._evaluated(self._base)
        self.seconds = time.thread_time() - started

    def at(self, move: Move, power: int, side: int) -> list[Raw]:
        """The numbers at x + side 2^-power move."""
        key = power, side, tuple((k, tuple(part.items())) for k, part in enumerate(move) if part)
        if key not in self._found:
            leaves = [self._moved(base, part, power, side) for base, part in zip(self._base, move, strict=True)]
            self._found[key] = self._evaluated(leaves)
        return self._found[key]

    def _moved(self, base: Any, part: dict[int, Raw] | None, power: int, side: int) -> Any:
        if part is None:
            return base
        if isinstance(base, Real):
            return self._step(base, part[0], power, side)
        moved = base.copy()
        for index, step in part.items():
            moved.flat[index] = self._step(base.flat[index], step, power, side)
        return moved

    def _step(self, number: Real, step: Raw, power: int, side: int) -> Real:
        # Exact: the precision was chosen so that x + h fits, and Monte Carlo arithmetic leaves inputs alone.
        step = libmp.mpf_shift(step, -power)
        return self._real(libmp.mpf_add(number.raw, step if side > 0 else libmp.mpf_neg(step)))

    def _evaluated(self, leaves: Sequence[Any]) -> list[Raw]:
        if issubclass(self._real, Noisy) and self._stream is not None:
            self._real.stream = self._stream  # the type is shared by all draws
            self._stream.restart()
        self.count += 1
        arguments = self._point.replaced(leaves, self._constant)
        with np.errstate(all="ignore"):
            return self._numbers(self._function(self.xp, *arguments))

    def _constant(self, leaf: Any) -> Any:
        """Inactive floats and float arrays as Reals, made once; everything else as it is."""
        if id(leaf) not in self._constants:
            is_float = (
                isinstance(leaf, (float, np.floating)) or getattr(getattr(leaf, "dtype", None), "kind", "") == "f"
            )
            # The leaf itself is kept too, so that its id stays its own.
            self._constants[id(leaf)] = (self.xp.reals(leaf) if is_float else leaf, leaf)
        return self._constants[id(leaf)][0]


class Text:
    """One of the numbers that evaluations give, as a function of the inputs; ``bits`` of its arithmetic."""

    def __init__(self, evaluations: Evaluations, which: int = 0) -> None:
        self._evaluations, self._which = evaluations, which
        self.bits = evaluations.bits
        self.centre: Raw = evaluations.centre[which]

    def quotients(self, move: Move, power: int) -> Quotients:
        """Both one-sided quotients with step 2^-power."""
        return Quotients(self.quotient(move, power, -1), self.quotient(move, power, 1))

    def quotient(self, move: Move, power: int, side: int) -> Raw:
        """The quotient of one side, ±1, without rounding of its own."""
        value = self._evaluations.at(move, power, side)[self._which]
        if not (_finite(value) and _finite(self.centre)):
            return NAN
        gap = libmp.mpf_sub(value, self.centre)
        return libmp.mpf_shift(gap if side > 0 else libmp.mpf_neg(gap), power)


class Runs:
    """A text at every precision that is asked for, plain and perturbed, for as long as one reference takes."""

    def __init__(
        self,
        xp_function: Callable[..., Any],
        point: Point,
        deadline: float,
        numbers: Callable[[Any], list[Raw]] = one_number,
    ) -> None:
        self.point = point
        self._parts = xp_function, point, deadline, numbers
        self._made: dict[tuple[Precision, tuple[int, int] | None], Evaluations] = {}
        self._forgotten = 0

    def plain(self, precision: Precision) -> Evaluations:
        """At this precision."""
        return self._run(precision, None)

    def noisy(self, precision: Precision, seed: int, draw: int) -> Evaluations:
        """In Monte Carlo arithmetic at this precision, with the perturbations of one draw."""
        return self._run(precision, (seed, draw))

    def forget_noisy(self) -> None:
        """Let go of the perturbed ones: each remembers every operand of the text."""
        for key in [key for key in self._made if key[1] is not None]:
            self._forgotten += self._made.pop(key).count

    @property
    def count(self) -> int:
        """How often the text ran."""
        return self._forgotten + sum(evaluations.count for evaluations in self._made.values())

    def _run(self, precision: Precision, draw: tuple[int, int] | None) -> Evaluations:
        if (precision, draw) not in self._made:
            function, point, deadline, numbers = self._parts
            bits = widened(precision, point).bits
            real, stream = (real_type(bits), None) if draw is None else (noisy_type(bits), Stream(*draw))
            self._made[precision, draw] = Evaluations(function, point, real, deadline, numbers, stream)
        return self._made[precision, draw]


def _finite(raw: Raw) -> bool:
    return bool(raw[1]) or raw == ZERO


def one_entry(point: Point, leaf: int, index: int) -> tuple[Move, int]:
    """The move of one entry by its own scale 2^e, and e: relative steps for numbers below one, else absolute."""
    exponent = entry_exponent(float(point.leaves[leaf].values.flat[index]))
    unit = {index: libmp.mpf_shift(ONE, exponent)}
    return tuple(unit if k == leaf else None for k in range(len(point.leaves))), exponent


def entry_exponent(x: float) -> int:
    """log2 of the scale of an entry: |x| below one, 1 for larger and for zero."""
    return min(0, math.frexp(x)[1] - 1) if x != 0 and math.isfinite(x) else 0


def many_entries(steps: Sequence[FloatArray | None]) -> Move:
    """The move along arrays of steps (powers of two with a sign; zero: not moved)."""
    return tuple(
        None if part is None else {int(i): libmp.from_float(float(part.flat[i])) for i in np.flatnonzero(part)}
        for part in steps
    )


def widened(precision: Precision, point: Point) -> Precision:
    """The precision with the extra bits that inputs far from 1 need: x + h must be exact for every one of them."""
    values = np.concatenate([leaf.values.ravel() for leaf in point.leaves] or [np.ones(1)])
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not sizes.size:
        return precision
    extra = max(0, math.frexp(float(sizes.max()))[1]) - min(0, math.frexp(float(sizes.min()))[1])
    return Precision(precision.bits + extra, precision.power)
