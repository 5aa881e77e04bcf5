"""What is known about functions whose value is an array: some outputs by themselves, all of them in random sums.

One evaluation at fifty digits gives a number for every output, so a column of the Jacobian costs what an entry of a
gradient does; what costs more is to look at the numbers. A dozen outputs are examined entry by entry. The sums
Σ_i w_i f_i with random signs w see every output: a fault anywhere in J is one in wᵀ J, unless others cancel it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import optree
from mpmath import libmp

from adbench.oracle.compute import one_slope, planned_differences
from adbench.oracle.highprecision.real import ZERO, Raw, raw_of
from adbench.oracle.leaves import FloatArray, Point, argument_names, output_signs
from adbench.oracle.precise import NotPrecise, by_high_precision
from adbench.oracle.reference import ArrayReference, Known, Reference
from adbench.oracle.sampling import chosen_entries

MOST_OUTPUTS = 12
SUMS = 2


class Numbers:
    """Which numbers of an array of this shape are examined: some outputs, then the sums of all with signs."""

    def __init__(self, shape: tuple[int, ...], outputs: Sequence[int], seed: int) -> None:
        self.shape, self.outputs = shape, tuple(outputs)
        self.signs = [output_signs(seed, number, shape).ravel() for number in range(SUMS)]

    def exact(self, result: Any) -> list[Raw]:
        """Of an array of high-precision numbers. Raises TypeError for anything of another shape."""
        array = np.asarray(result, dtype=object)
        if array.shape != self.shape:
            raise TypeError(f"the function's value must have the shape {self.shape}; it has {array.shape}")
        raws = [raw_of(element) for element in array.ravel()]
        return [raws[index] for index in self.outputs] + [_signed_sum(raws, signs) for signs in self.signs]

    def plain(self, result: Any) -> list[float]:
        """Of an array of floats."""
        array = np.asarray(result, dtype=np.float64).ravel()
        sums = [math.fsum(array * signs) if np.isfinite(array).all() else math.nan for signs in self.signs]
        return [float(array[index]) for index in self.outputs] + sums

    @property
    def count(self) -> int:
        """How many numbers."""
        return len(self.outputs) + len(self.signs)


def _signed_sum(raws: Sequence[Raw], signs: FloatArray) -> Raw:
    total = ZERO
    for raw, sign in zip(raws, signs, strict=True):
        total = libmp.mpf_add(total, raw if sign > 0 else libmp.mpf_neg(raw))
    return total


def array_reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    *,
    shape: tuple[int, ...],
    seed: int = 0,
    xp_function: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    max_outputs: int = MOST_OUTPUTS,
    max_entries: int = 64,
    max_directions: int = 2,
    max_evaluations: int = 20_000,
    max_seconds: float = 3.0,
) -> ArrayReference:
    """What is known about f(*args), an array of this shape, and its Jacobian in the arguments ``wrt``.

    As `reference`, for ``max_outputs`` outputs (all where there are no more, else the first, the last and some drawn
    with ``seed``) and for two sums of all. The same entries of the inputs are examined for each.
    """
    point = Point(args, wrt, names or argument_names(f, len(args)))
    (chosen,) = chosen_entries([math.prod(shape)], max_outputs, seed)
    numbers, plain = Numbers(shape, chosen, seed), _remembered(f)

    def one(which: int) -> Callable[..., float]:
        return lambda *arguments: numbers.plain(plain(*arguments))[which]

    def unsettled(which: int, leaf: int, index: int) -> Known:
        return replace(one_slope(one(which), point, leaf, index)[0], kind="unsure")

    reason = "the function is given as a black box"
    found: Sequence[Reference] = ()
    if xp_function is not None:
        try:
            found = by_high_precision(
                xp_function,
                point,
                seed=seed,
                max_entries=max_entries,
                max_directions=max_directions,
                max_seconds=max_seconds,
                estimate_noise=True,
                fallback=unsettled,
                numbers=numbers.exact,
            )
        except NotPrecise as error:
            reason = str(error)
    if not found:
        found = [
            planned_differences(one(which), point, max_entries, max_directions, max_evaluations, seed, reason)
            for which in range(numbers.count)
        ]
    outputs = tuple(zip(numbers.outputs, found, strict=False))
    return ArrayReference(shape, outputs, tuple(found[len(outputs) :]))


def _remembered(f: Callable[..., Any]) -> Callable[..., Any]:
    """f with its values kept: the differences of one output are taken at the same points as those of the next."""
    kept: dict[bytes, Any] = {}

    def remembering(*args: Any) -> Any:

        nested: Any = args
        key = b"|".join(np.asarray(leaf).tobytes() for leaf in optree.tree_leaves(nested))
        if key not in kept:
            with np.errstate(all="ignore"):
                kept[key] = f(*args)
        return kept[key]

    return remembering
