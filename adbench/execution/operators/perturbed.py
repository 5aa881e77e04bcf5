"""A point close to the case's: timed calls alternate between the two, which reveals a constant-folded argument."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import CasePoint
from adbench.model import tree
from adbench.model.errors import Unsupported
from adbench.model.namespace import Namespace
from adbench.oracle.evidence import Precision
from adbench.oracle.leaves import is_symmetric

STEP = 2.0**-20
"""The largest relative change of an entry: far above rounding, too small to change the work of a call."""

MOST_BYTES = 2**28
"""Bytes of all inputs above which there is no second copy."""

ANOTHER_SEED = 1_000_003
"""Added to the seed, so that the vectors v and w differ too."""


def perturbed(at: CasePoint) -> CasePoint:
    """The point with every float entry changed by a random share of itself, between `STEP` / 2 and `STEP`; by two to
    four roundings of a type with fewer bits.

    Shapes, Python ints, bools and strings, zeros and signs stay, and so do integers among the inactive inputs, which
    are often labels or counts. The first entry of a larger array stays too, so that it does not identify the array.
    Symmetric matrices stay symmetric, because the case may read one triangle.

    Raises Unsupported with the reason if there is no such point.
    """
    rng = np.random.default_rng([at.seed, at.size, ANOTHER_SEED])
    if sum(np.asarray(leaf).nbytes for leaf in tree.leaves(at.args)) > MOST_BYTES:
        raise Unsupported("the inputs are too large for a second copy")
    move = partial(_moved, rng, at.dtype)
    args = tuple(tree.map_floats(partial(move, k in at.wrt), arg) for k, arg in enumerate(at.args))
    if tree.are_equal(at.args, args):
        raise Unsupported("no input has an entry that can be perturbed")
    there = replace(at, args=args, seed=at.seed + ANOTHER_SEED)
    with np.errstate(all="ignore"):
        try:
            value = np.asarray(there.text(Namespace(np), *args))
        except Exception as error:  # outside its domain a case may raise anything
            raise Unsupported(f"the case does not run at perturbed inputs: {type(error).__name__}") from error
    if not np.isfinite(value).all():
        raise Unsupported("the case is not finite at perturbed inputs")
    return there


def _moved(rng: np.random.Generator, form: Precision, active: bool, array: Any) -> Any:
    """A leaf of the perturbed inputs, numbers of this type."""
    factors = 1 + max(STEP, 4 * form.unit) * rng.uniform(0.5, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape)
    if is_symmetric(array):
        factors = np.tril(factors) + np.matrix_transpose(np.tril(factors, -1))
    moved = form.rounded(array * factors)
    with np.errstate(over="ignore"):
        single, rounded = moved.astype(np.float32), array.astype(np.float32)
    if np.array_equal(array, rounded, equal_nan=True) and np.isfinite(single).all():
        moved = single.astype(np.float64)  # keep a float32 library's inputs exact
    if not active:
        moved = np.where(array == np.rint(array), array, moved)
    if moved.size > 1:
        moved.flat[0] = array.flat[0]
    return np.where(np.isfinite(array), moved, array)
