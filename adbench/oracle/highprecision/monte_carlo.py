"""Monte Carlo arithmetic: every rounded result times 1 + u ξ, ξ uniform in [-1, 1], u = 2^-53.

The perturbations belong to the place of an operation in the run and are the same for every evaluation of one draw.
A perturbed text is therefore a smooth function of its inputs, and its differences at fifty digits show how far double
precision moves a derivative: all that the roundings of the values do, and all that the roundings of products and sums
along the way do, because a sum's partial results are perturbed too (Parker (1997), "Monte Carlo arithmetic").

Every use of a number as an operand has its slope perturbed on its own, a₀ + (a - a₀)(1 + u ξ) with a₀ its value at the
point: an adjoint is a sum of one rounded product for every use, and where those cancel (the two halves of the quotient
rule) their roundings do not. Without this the perturbed text would be a nearby function with an exact derivative.

A derivative formula that cancels inside (1 - tanh²) shows in no value; for those the slope itself is perturbed:
f(x) + s u ξ (x - x₀), where x₀ is what the operation saw at the point itself.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray

from adbench.oracle.highprecision.elementary import SLOPE_NOISE
from adbench.oracle.highprecision.real import (
    NEAREST,
    ZERO,
    Operator,
    Raw,
    RawOperator,
    Real,
    divide,
    floor_divide,
    modulo,
    power,
    raw_scalar,
)

FRACTION_BITS = 73
ULP = 2 ** (FRACTION_BITS - 53)
"""u = 2^-53 in units of 2^-FRACTION_BITS."""

FLOAT64_BITS = 53

LIBRARY_ULPS = 4
"""exp, tanh and their like in vectorised libraries are off by a few units in the last place, not by half of one."""

TABLE = 1021
"""A prime: loops whose length divides a power of two do not meet the same perturbations in step."""


@functools.cache
def _table() -> tuple[NDArray[np.object_], NDArray[np.object_], NDArray[np.object_], NDArray[np.int64]]:
    """1 + u ξ, 1 + LIBRARY_ULPS u ξ, u ξ as raw numbers, and ξ in units of 1 / ULP."""
    steps = np.random.default_rng(0x5EED).integers(-ULP, ULP, TABLE, endpoint=True)
    one = 1 << FRACTION_BITS
    tables = np.empty((3, TABLE), dtype=object)
    for row, (start, gain) in enumerate([(one, 1), (one, LIBRARY_ULPS), (0, 1)]):
        for k, step in enumerate(steps.tolist()):
            tables[row, k] = libmp.from_man_exp(start + gain * step, -FRACTION_BITS)
    return tables[0], tables[1], tables[2], steps


class Stream:
    """The perturbations of one draw: `restart` before every evaluation, the first of which is at the point itself."""

    def __init__(self, seed: int, draw: int) -> None:
        rng = np.random.default_rng([seed, draw, 0xA0])
        order = (int(rng.integers(TABLE)) + int(rng.integers(1, TABLE)) * np.arange(TABLE)) % TABLE
        factors, library_factors, small, steps = _table()
        self._edge_steps: list[Raw] = small[order[::-1]].tolist()
        self._factors: list[Raw] = factors[order].tolist()
        self._library_factors: list[Raw] = library_factors[order].tolist()
        self._steps = steps[order]
        self._walk = np.cumsum(np.concatenate([[0], self._steps, self._steps]))
        self._centres: list[Raw] = []
        self._exact: list[Raw] = []
        self._operands: list[Raw] = []
        self._evaluations = 0

    def restart(self) -> None:
        """Back to the first perturbation."""
        self.factor = itertools.cycle(self._factors).__next__
        self.library_factor = itertools.cycle(self._library_factors).__next__
        self._step = itertools.cycle(self._steps.tolist()).__next__
        self._centre: Iterator[Raw] = iter(self._centres)
        self._exactly: Iterator[Raw] = iter(self._exact)
        self._operand: Iterator[Raw] = iter(self._operands)
        self._edge_step = itertools.cycle(self._edge_steps).__next__
        self._position = 0
        self._evaluations += 1

    @property
    def _at_the_point(self) -> bool:
        return self._evaluations == 1

    def perturbed(self, raw: Raw, bits: int, *, library: bool = False) -> Raw:
        """raw (1 + u ξ); c + (raw - c)(1 + u ξ) where the result c at the point itself is a float64.

        Operations with exact results do not round, but their derivatives may: x² at 3. ``library``: a function that
        is not correctly rounded anywhere, u ξ times LIBRARY_ULPS.
        """
        # Always, of both kinds: the next operation must meet the same one in every evaluation.
        factor = self.library_factor() if library else self.factor()
        if self._at_the_point:
            exact = raw[3] <= FLOAT64_BITS and (raw[1] or raw == ZERO)
            self._exact.append(raw if exact else None)
            if exact:
                return raw
        elif (centre := next(self._exactly, None)) is not None:
            gap = libmp.mpf_mul(libmp.mpf_sub(raw, centre, bits, NEAREST), factor, bits, NEAREST)
            return libmp.mpf_add(centre, gap, bits, NEAREST)
        return libmp.mpf_mul(raw, factor, bits, NEAREST) if raw[1] else raw

    def operand(self, raw: Raw, bits: int) -> Raw:
        """raw with its distance from its value at the point perturbed; most operands have not moved at all."""
        step = self._edge_step()
        if self._at_the_point:
            self._operands.append(raw)
            return raw
        centre = next(self._operand, raw)
        if centre == raw:
            return raw
        gap = libmp.mpf_sub(raw, centre, bits, NEAREST)
        return libmp.mpf_add(raw, libmp.mpf_mul(step, gap, bits, NEAREST), bits, NEAREST)

    def recentred(self, noisy: Raw, plain: Raw, exact: bool, bits: int) -> Raw:
        """The same for a sum: what its noise was at the point is taken off where it is exact there."""
        if self._at_the_point:
            self._exact.append(libmp.mpf_sub(plain, noisy) if exact else None)
            return plain if exact else noisy
        shift = next(self._exactly, None)
        return noisy if shift is None else libmp.mpf_add(noisy, shift, bits, NEAREST)

    def centre(self, x: Raw) -> Raw:
        """What this operation saw in the first evaluation."""
        if self._at_the_point:
            self._centres.append(x)
            return x
        return next(self._centre, x)

    def slope_step(self) -> int:
        """ξ in units of 1 / ULP."""
        return int(self._step())

    def partial_sums(self, count: int) -> list[int]:
        """Factors of the terms of a running sum all of whose partial results are perturbed, in 2^-FRACTION_BITS.

        Term k meets the perturbations of all partial sums from k on: 1 + ε_k + ... + ε_count.
        """
        self._position = (self._position + 1237) % TABLE
        walk = self._walk[self._position : self._position + count + 1]
        if len(walk) < count + 1:  # longer than the table: go round again
            rounds = -(-(self._position + count) // TABLE)
            steps = np.tile(self._steps, rounds)[self._position : self._position + count]
            walk = np.concatenate([[0], np.cumsum(steps)])
        return list(((1 << FRACTION_BITS) + (walk[-1] - walk[:-1]).astype(object)).tolist())


def _operators(function: RawOperator) -> tuple[Operator, Operator]:
    """The methods `a.__op__(b)` and `b.__rop__(a)` with perturbed operands and a perturbed result."""

    def forward(self: Noisy, other: Any) -> Any:
        stream, bits = self.stream, self.bits
        left = stream.operand(self.raw, bits)
        right = stream.operand(other.raw, bits) if isinstance(other, Noisy) else raw_scalar(other)
        if right is None:
            return NotImplemented
        return type(self)(stream.perturbed(function(left, right, bits, NEAREST), bits))

    def backward(self: Noisy, other: Any) -> Any:
        left = raw_scalar(other)
        if left is None:
            return NotImplemented
        right = self.stream.operand(self.raw, self.bits)
        return type(self)(self.stream.perturbed(function(left, right, self.bits, NEAREST), self.bits))

    return forward, backward


class Noisy(Real):
    """A real number whose every operation is perturbed by the type's ``stream``."""

    __slots__ = ()
    stream: ClassVar[Stream]

    __add__, __radd__ = _operators(libmp.mpf_add)
    __sub__, __rsub__ = _operators(libmp.mpf_sub)
    __mul__, __rmul__ = _operators(libmp.mpf_mul)
    __truediv__, __rtruediv__ = _operators(divide)
    __floordiv__, __rfloordiv__ = _operators(floor_divide)
    __mod__, __rmod__ = _operators(modulo)
    __pow__, __rpow__ = _operators(power)

    @classmethod
    def made(cls, raw: Raw) -> Self:
        """``raw`` perturbed. Infinities and NaN stay."""
        return cls(cls.stream.perturbed(raw, cls.bits))

    @classmethod
    def looked_up(cls, raw: Raw) -> Self:
        """The result of a library function."""
        return cls(cls.stream.perturbed(raw, cls.bits, library=True))

    @classmethod
    def operand(cls, raw: Raw) -> Raw:
        """``raw`` as one use of it sees it."""
        return cls.stream.operand(raw, cls.bits)

    @classmethod
    def bent(cls, name: str, x: Raw, y: Raw) -> Raw:
        """y = f(x), with f's slope as wrong as its usual formula in double precision."""
        slope = SLOPE_NOISE.get(name)
        if slope is None or not (y[1] or y == ZERO) or not (x[1] or x == ZERO):
            return y
        centre = cls.stream.centre(x)
        size = slope(libmp.to_float(centre), libmp.to_float(y)) * cls.stream.slope_step()
        tilt = libmp.mpf_shift(libmp.from_float(size), -FRACTION_BITS)
        bend = libmp.mpf_mul(tilt, libmp.mpf_sub(x, centre, cls.bits, NEAREST))
        return libmp.mpf_add(y, bend, cls.bits, NEAREST)

    @classmethod
    def term_factors(cls, count: int) -> tuple[list[int], int] | None:
        """Factors of a sum's terms as integers times 2^-bits."""
        return cls.stream.partial_sums(count), FRACTION_BITS

    @classmethod
    def rounding(cls) -> Raw | None:
        """u ξ."""
        return libmp.from_man_exp(cls.stream.slope_step(), -FRACTION_BITS)

    @classmethod
    def summed(cls, noisy: Raw, plain: Raw, exact: bool) -> Self:
        """The sum of terms taken with their factors; ``exact``: no partial sum needs more than 53 bits."""
        return cls(cls.stream.recentred(noisy, plain, exact, cls.bits))


@functools.cache
def noisy_type(bits: int) -> type[Noisy]:
    """The perturbed numbers of this many binary digits; set its ``stream`` before use."""
    made: Any = type(f"Noisy{bits}", (Noisy,), {"__slots__": (), "bits": bits})
    return made  # type: ignore[no-any-return]
