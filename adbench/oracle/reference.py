"""A function's reference value and derivatives at a point, as plain data that travels between processes.

`adbench.oracle.compute.reference` makes one; `adbench.oracle.operators.judge_operator` compares a result with it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

UNIT_ROUNDOFF = 2.0**-53
"""Of float64."""

ORACLE_VERSION = 5
"""Changes whenever shipped references would differ; these are then ignored."""

_ONE_AT_A_TIME = threading.Lock()
"""msgspec crashes if two threads convert to a dataclass that is new to it."""


@dataclass(frozen=True)
class Known:
    """One reference number: any value in [lower, upper] is correct, up to ``bar``.

    bar: absolute uncertainty of the reference itself (25 of them are tolerated).
    noise: standard deviation of double-precision results at this point (20 are tolerated).
    kind: "smooth"; "kink": one-sided derivatives differ and lower < upper; "one-sided": the function exists on one
    side only; "infinite"; "unsure": from differences, whose resolution is the bar; "unknown":
    nothing is known (lower, upper and bar are NaN).
    """

    lower: float
    upper: float
    bar: float = 0.0
    noise: float = 0.0
    kind: str = "smooth"

    @property
    def size(self) -> float:
        """The larger of |lower|, |upper|."""
        return max(abs(self.lower), abs(self.upper))

    def nearest(self, got: float) -> float:
        """The correct value nearest to ``got``; the middle of the interval if ``got`` is NaN."""
        if math.isnan(got):
            return self.lower if self.lower == self.upper else 0.5 * (self.lower + self.upper)
        return min(max(got, self.lower), self.upper)


UNKNOWN = Known(math.nan, math.nan, math.nan, 0.0, "unknown")


@dataclass(frozen=True)
class PartialDerivative:
    """One partial derivative: ∂f / ∂(entry ``index`` of its leaf, counted in row-major order)."""

    index: int
    derivative: Known


@dataclass(frozen=True)
class Leaf:
    """One active array: its place, its shape, and the sampled entries.

    position: which entry of ``wrt``; keys: the path from that argument to the array (dict keys and sequence
    indices); path: the same as a string, ``params[0]['w']``; scale: a power of two, the length of this leaf's part of a
    direction.
    """

    position: int
    keys: tuple[int | str, ...]
    path: str
    shape: tuple[int, ...]
    scale: float
    entries: tuple[PartialDerivative, ...]

    @property
    def size(self) -> int:
        """Number of entries, sampled or not."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Direction:
    """d/dt f(x + t v) at 0 for v = weights × leaf scale; the weights are `leaves.direction_weights` (seed, number)."""

    number: int
    derivative: Known


@dataclass(frozen=True)
class Row:
    """The known numbers for one output or sum: its value and its gradient, a row of the Jacobian.

    method: the name of the method; reason: why a stronger method did not work ("" for the strongest). count: the length
    of ``wrt``; evaluations: of f; constants: the places (position in wrt, then keys) of integers and other constants in
    the arguments; noise: how the noise was found ("": not at all). proved: intervals provably contain the true values.
    """

    value: Known
    count: int
    leaves: tuple[Leaf, ...]
    directions: tuple[Direction, ...]
    seed: int
    method: str
    reason: str
    evaluations: int
    constants: tuple[tuple[int | str, ...], ...] = ()
    noise: str = ""
    proved: bool = False

    @property
    def derivatives(self) -> list[Known]:
        """All derivatives: for the sampled entries, then along the directions."""
        of_entries = [entry.derivative for leaf in self.leaves for entry in leaf.entries]
        return of_entries + [direction.derivative for direction in self.directions]

    def with_derivatives(self, change: Callable[[Known, int, int], Known]) -> Row:
        """The row with every derivative changed: change(known, leaf, index), or (known, -1, number) of a direction."""

        def changed(which: int, leaf: Leaf) -> Leaf:
            entries = (replace(e, derivative=change(e.derivative, which, e.index)) for e in leaf.entries)
            return replace(leaf, entries=tuple(entries))

        leaves = tuple(changed(which, leaf) for which, leaf in enumerate(self.leaves))
        directions = tuple(replace(d, derivative=change(d.derivative, -1, d.number)) for d in self.directions)
        return replace(self, leaves=leaves, directions=directions)


@dataclass(frozen=True)
class Reference:
    """The reference for a function and its derivatives: some outputs individually, all of them in sums.

    shape: of the value; a scalar is an array of shape (). outputs: flat indices, and the rows of these outputs.
    sums: the rows of Σ_i w_i f_i, with weights w by `leaves.output_weights` (seed, the sum's number); none for a
    scalar.
    """

    shape: tuple[int, ...]
    outputs: tuple[tuple[int, Row], ...]
    sums: tuple[Row, ...] = ()

    @property
    def size(self) -> int:
        """The number of outputs, examined or not."""
        return math.prod(self.shape)

    @property
    def scalar(self) -> Row:
        """The only row of a scalar. Raises ValueError for others."""
        ((_, row),) = self.outputs
        return row

    @property
    def all_outputs(self) -> Row:
        """A row that depends on every output: the first sum, or a scalar's only row."""
        return self.sums[0] if self.sums else self.outputs[0][1]

    @property
    def is_proved(self) -> bool:
        """Whether every row is proved."""
        return all(row.proved for row in (*(row for _, row in self.outputs), *self.sums))

    def mapped(self, change: Callable[[Row], Row]) -> Reference:
        """The reference with every row changed."""
        outputs = tuple((index, change(row)) for index, row in self.outputs)
        return replace(self, outputs=outputs, sums=tuple(map(change, self.sums)))

    def unknown(self, reason: str) -> Reference:
        """This reference with all its numbers unknown for this reason."""

        def unknown(row: Row) -> Row:
            forgotten = row.with_derivatives(lambda *_: UNKNOWN)
            return replace(forgotten, value=UNKNOWN, directions=(), method="", reason=reason, noise="", proved=False)

        return self.mapped(unknown)

    def to_plain(self) -> dict[str, Any]:
        """Dicts, lists, finite numbers and strings only: strictly valid JSON."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Reference:
        """The inverse of `to_plain`; ValueError for other data."""
        with _ONE_AT_A_TIME:
            return msgspec.convert(plain, Reference, strict=False)  # reads "nan" as a float


def _plain(thing: Any) -> Any:
    if isinstance(thing, tuple):
        return [_plain(part) for part in thing]
    if isinstance(thing, float) and not math.isfinite(thing):
        return str(thing)
    if isinstance(thing, (str, int, float)):
        return thing
    return {field.name: _plain(getattr(thing, field.name)) for field in fields(thing)}
