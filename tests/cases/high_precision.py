"""Gradients of cases independent of all backends: central differences in fifty-digit arithmetic."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from adbench import Case, Namespace
from adbench.model import tree
from adbench.model.case import function_of

STEP = mpmath.mpf(10) ** -17  # truncation and rounding are both near 1e-33 at fifty digits


def slogdet(A: Any) -> tuple[Any, Any]:
    determinant = mpmath.det(mpmath.matrix(A.tolist()))
    return mpmath.sign(determinant), mpmath.log(abs(determinant))


# numpy's arrays of objects already have arithmetic, sums, products and indexing.
XP = Namespace(np, log=mpmath.log, cos=mpmath.cos, sin=mpmath.sin, linalg={"slogdet": slogdet})


def precise(leaf: Any) -> Any:
    if tree.is_static(leaf):
        return leaf
    values = np.vectorize(mpmath.mpf, otypes=[object])(leaf)
    return values if np.ndim(leaf) else mpmath.mpf(leaf)


def derivative(case: Case, size: int, seed: int, position: int, index: tuple[int, ...]) -> float:
    """∂f / ∂(entry `index` of the active input `position`), correct to double precision."""
    names, args, wrt = case.bind(size, seed)
    f = function_of(case, names, XP)
    with mpmath.workdps(50):
        exact = [tree.map_leaves(precise, arg) for arg in args]
        which = wrt[position]

        def moved(step: Any) -> Any:
            if not index:
                there = exact[which] + step
            else:
                there = exact[which].copy()
                there[index] += step
            return f(*exact[:which], there, *exact[which + 1 :])

        return float((moved(STEP) - moved(-STEP)) / (2 * STEP))


def gradient(case: Case, size: int, seed: int = 0) -> tuple[Any, ...]:
    """The gradient, for inputs that are not nested."""
    _, args, wrt = case.bind(size, seed)
    return tuple(
        np.reshape([derivative(case, size, seed, k, i) for i in np.ndindex(np.shape(args[w]))], np.shape(args[w]))
        for k, w in enumerate(wrt)
    )
