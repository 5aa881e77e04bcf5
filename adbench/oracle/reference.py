"""What is known about a function's value and derivatives at a point, as plain data that travels between processes.

`reference` and `array_reference` make one; `adbench.oracle.operators.judge_operator` compares a result with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

ORACLE_VERSION = 3
"""Changes whenever a reference computed earlier would come out differently: old cached ones are then ignored."""


@dataclass(frozen=True)
class Known:
    """One number the oracle knows: any value in [lower, upper] is true, up to ``bar``.

    bar: absolute uncertainty of the truth itself (25 of them are allowed for when judging).
    noise: standard deviation of what double precision makes of the number at this point (20 are allowed for).
    kind: "smooth"; "kink": one-sided derivatives differ and lower < upper; "one-sided": the function exists on one
    side only; "infinite"; "unsure": two precisions disagree, the bar is what differences resolve; "unknown":
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
        """The true value nearest to ``got``; the middle of the interval where ``got`` is not a number."""
        if math.isnan(got):
            return self.lower if self.lower == self.upper else 0.5 * (self.lower + self.upper)
        return min(max(got, self.lower), self.upper)


@dataclass(frozen=True)
class Entry:
    """One partial derivative: ∂f / ∂(entry ``index`` of its leaf, counted in row-major order)."""

    index: int
    derivative: Known


@dataclass(frozen=True)
class Leaf:
    """One differentiated array: where it is, its shape, and the entries that were sampled.

    position: which entry of ``wrt``; keys: the way from that argument to the array (dict keys and sequence
    indices); path: the same as text, ``params[0]['w']``; scale: a power of two, the length of this leaf's part of a
    direction; zeros: flat indices whose derivative is declared to be exactly zero.
    """

    position: int
    keys: tuple[int | str, ...]
    path: str
    shape: tuple[int, ...]
    scale: float
    entries: tuple[Entry, ...]
    zeros: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of entries, sampled or not."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Direction:
    """d/dt f(x + t v) at 0 for v = signs × leaf scale; `leaves.direction_signs` (seed, number) gives the signs."""

    number: int
    derivative: Known


@dataclass(frozen=True)
class Reference:
    """The truth about f and its gradient at one point, and how it was found.

    method: the name of the method; reason: why not a stronger one ("" where there is none stronger).
    count: the length of ``wrt``; evaluations: how often f was evaluated; constants: where (position in wrt, then
    keys) the arguments hold whole numbers and other things that have no derivative; noise: how the noise was found
    ("": not at all).
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

    def to_plain(self) -> dict[str, Any]:
        """Dicts, lists, numbers and texts only, none of them infinite or NaN: valid JSON of any strictness."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Reference:
        """The inverse of `to_plain`; KeyError, TypeError or ValueError where ``plain`` is not such."""
        return Reference(
            value=_known(plain["value"]),
            count=int(plain["count"]),
            leaves=tuple(_leaf(leaf) for leaf in plain["leaves"]),
            directions=tuple(Direction(int(d["number"]), _known(d["derivative"])) for d in plain["directions"]),
            seed=int(plain["seed"]),
            method=str(plain["method"]),
            reason=str(plain["reason"]),
            evaluations=int(plain["evaluations"]),
            constants=tuple(_keys(place) for place in plain["constants"]),
            noise=str(plain["noise"]),
        )


@dataclass(frozen=True)
class ArrayReference:
    """What is known about a function whose value is an array f: of some outputs by themselves, of all of them in sums.

    shape: of the value. outputs: a flat index, and what is known of that output as a scalar function. sums: what is
    known of Σ_i w_i f_i, with signs w by `leaves.output_signs` (seed, the sum's number).
    """

    shape: tuple[int, ...]
    outputs: tuple[tuple[int, Reference], ...]
    sums: tuple[Reference, ...]

    @property
    def size(self) -> int:
        """Number of outputs, examined or not."""
        return math.prod(self.shape)

    def to_plain(self) -> dict[str, Any]:
        """As `Reference.to_plain`."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain


def from_plain(plain: Mapping[str, Any]) -> Reference | ArrayReference:
    """The inverse of `to_plain` of either; KeyError, TypeError or ValueError where ``plain`` is neither."""
    if "outputs" not in plain:
        return Reference.from_plain(plain)
    return ArrayReference(
        shape=tuple(map(int, plain["shape"])),
        outputs=tuple((int(index), Reference.from_plain(known)) for index, known in plain["outputs"]),
        sums=tuple(map(Reference.from_plain, plain["sums"])),
    )


def _plain(thing: Any) -> Any:
    if isinstance(thing, tuple):
        return [_plain(part) for part in thing]
    if isinstance(thing, float) and not math.isfinite(thing):
        return str(thing)
    if isinstance(thing, (str, int, float)):
        return thing
    return {field.name: _plain(getattr(thing, field.name)) for field in fields(thing)}


def _known(plain: Mapping[str, Any]) -> Known:
    return Known(
        float(plain["lower"]),
        float(plain["upper"]),
        float(plain["bar"]),
        float(plain["noise"]),
        str(plain["kind"]),
    )


def _keys(plain: Sequence[Any]) -> tuple[int | str, ...]:
    return tuple(key if isinstance(key, str) else int(key) for key in plain)


def _leaf(plain: Mapping[str, Any]) -> Leaf:
    return Leaf(
        position=int(plain["position"]),
        keys=_keys(plain["keys"]),
        path=str(plain["path"]),
        shape=tuple(map(int, plain["shape"])),
        scale=float(plain["scale"]),
        entries=tuple(Entry(int(e["index"]), _known(e["derivative"])) for e in plain["entries"]),
        zeros=tuple(map(int, plain["zeros"])),
    )
