"""Equality of two results up to rounding.

The same program on the same numbers gives the same bits. With another memory layout, another order of `wrt` or another
vector, a library may add in another order. Such results may differ, entry by entry, by

    1e-9 of the entry, more than any order of additions explains at a good point
    + the rounding noise of this point, a share of the largest entry, as measured by the oracle
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from adbench.model import tree
from adbench.oracle.evidence import DOUBLE, Precision
from adbench.oracle.reference import Known, Reference

RELATIVE = 1e-9
LEAST_NOISE = 1e-13
"""Of float64; of lower types by their unit roundoff, up to the other one."""
LARGEST_LEAST_NOISE = 2.0**-5


@dataclass(frozen=True)
class AllowedDifference:
    """The allowed difference of two correct results.

    share      of the largest number; infinite if double precision loses all digits
    floor      absolute: the rounding of a true zero
    relative   of each entry
    """

    share: float = LEAST_NOISE
    floor: float = 0.0
    relative: float = RELATIVE


def difference(got: Any, expected: Any, noise: AllowedDifference, sizes: Any = None) -> str:
    """The first place where two numpy results disagree, in words; "" if they agree. NaN agrees with NaN.

    sizes   the sizes of the terms, like `expected`; by default `expected` itself
    """
    if _structure(got) != _structure(expected):
        return f"got {_structure(got)}; expected {_structure(expected)}"
    leaves, wanted = _leaves(got), _leaves(expected)
    magnitudes = [np.abs(leaf) for leaf in (wanted if sizes is None else _leaves(sizes))]
    largest = _largest([float(size) for leaf in magnitudes for size in leaf.flat])
    everywhere = (noise.share * largest if largest else 0.0) + noise.floor + np.finfo(np.float64).smallest_normal
    paths = optree.tree_paths(got, namespace=tree.NAMESPACE)
    for path, a, b, size in zip(paths, leaves, wanted, magnitudes, strict=True):
        if a.shape != b.shape:
            return f"got an array of shape {a.shape}; expected {b.shape}"
        with np.errstate(all="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= noise.relative * size + everywhere)
        if not same.all():
            place = np.unravel_index(int(np.flatnonzero(~same)[0]), a.shape)
            steps = [*(f"[{step!r}]" for step in path), *([f"[{', '.join(map(str, place))}]"] if place else [])]
            return f"{''.join(steps) or 'it'} is {float(a[place])!r}; expected {float(b[place])!r}"
    return ""


def noise_of(references: Sequence[Reference], by: Precision = DOUBLE) -> AllowedDifference:
    """Rounding noise at a point, in this arithmetic: 20 standard deviations of the oracle's samples."""
    rows = [row for known in references for row in (*(row for _, row in known.outputs), *known.sums)]
    values, derivatives = [row.value for row in rows], [one for row in rows for one in row.derivatives]
    factor = by.unit / DOUBLE.unit
    least = min(factor * LEAST_NOISE, LARGEST_LEAST_NOISE)
    return AllowedDifference(
        share=max(least, factor * max(_share(values), _share(derivatives))),
        floor=least * (_largest([one.size for one in (*values, *derivatives)]) or 1.0),
        relative=RELATIVE if by is DOUBLE else max(1e5 * RELATIVE, 8 * by.unit),
    )


def _share(known: Sequence[Known]) -> float:
    largest = _largest([one.size for one in known])
    noise = [25 * one.bar + 20 * one.noise for one in known]
    return max((size for size in noise if not math.isnan(size)), default=0.0) / largest if largest else 0.0


def _largest(numbers: Sequence[float]) -> float:
    return max((number for number in numbers if math.isfinite(number)), default=0.0)


def _leaves(result: Any) -> list[Any]:
    return [np.asarray(tree.dense(leaf), dtype=np.float64) for leaf in tree.leaves(result)]


def _structure(result: Any) -> str:
    """The nesting of a result; lists and tuples count as equal."""
    if isinstance(result, dict):
        return "{" + ", ".join(f"{key!r}: {_structure(result[key])}" for key in sorted(result)) + "}"
    if isinstance(result, tuple | list):
        return "(" + ", ".join(map(_structure, result)) + ")"
    return "array"
