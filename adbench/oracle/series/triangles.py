"""Conventions of operations on symmetric matrices, which read one triangle: `cholesky`, `eigh`, a Hermitian `pinv`.

At a symmetric matrix, their derivative is given along symmetric changes only. Libraries extend it in three ways:

    triangle        the triangle that is read has the whole derivative: numpy's function, and autograd's eigh
    symmetrised     the derivative for ½ (A + Aᵀ): torch, autograd's cholesky, jax.numpy
    unsymmetrised   the formula for symmetric changes, with any change in it: jax with symmetrize_input=False, also in
                    jax.scipy.linalg; torch's pinv
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Literal

import numpy as np

from adbench.oracle.evidence import within
from adbench.oracle.series import ball

Convention = Literal["triangle", "symmetrised", "unsymmetrised"]

_CONVENTIONS: ContextVar[Mapping[str, Convention]] = ContextVar("conventions", default={})  # noqa: B039 - never changed
_LEAVES: ContextVar[Collection[int]] = ContextVar("leaves", default=())
_MET: ContextVar[dict[str, bool] | None] = ContextVar("met", default=None)


def reading(conventions: Mapping[str, Convention]) -> AbstractContextManager[object]:
    """Evaluate these operations by their conventions; others read one triangle."""
    return within(_CONVENTIONS, conventions)


def moving_symmetrically(leaves: Collection[int]) -> AbstractContextManager[object]:
    """Evaluate at ½ (A + Aᵀ) of these active leaves, the same along symmetric changes."""
    return within(_LEAVES, leaves)


def moved(leaf: int, numbers: Any) -> Any:
    """The numbers of an active leaf, as `moving_symmetrically` says."""
    return 0.5 * (numbers + np.swapaxes(numbers, -1, -2)) if leaf in _LEAVES.get() else numbers


def move_symmetrically() -> bool:
    """Whether this holds for any leaf now."""
    return bool(_LEAVES.get())


def read_as_numpy() -> bool:
    """Whether each operation reads one triangle, as its value does."""
    return not any(convention != "triangle" for convention in _CONVENTIONS.get().values())


def watching() -> AbstractContextManager[Mapping[str, bool]]:
    """Operation -> whether all matrices that it meets within the block are symmetric, in every coefficient."""
    return within(_MET, {})


def read(operation: str, a: Any) -> tuple[Any, Any]:
    """The matrices with the lower triangles to read, and the skew parts for the formula of `unsymmetrised`, or None."""
    turned = np.swapaxes(a, -1, -2)
    if (met := _MET.get()) is not None:
        met[operation] = met.get(operation, True) and _are_equal(a, turned)
    convention = _CONVENTIONS.get().get(operation, "triangle")
    if convention == "triangle":
        return a, None
    return 0.5 * (a + turned), 0.5 * (a - turned) if convention == "unsymmetrised" else None


def _are_equal(a: Any, b: Any) -> bool:
    """Whether two arrays of numbers may be equal, coefficient by coefficient; of enclosures, the values."""
    if hasattr(a, "approximate"):
        mid, rad = (a - b).value.bounds()
        return bool((np.abs(mid) <= rad).all())
    return np.shape(a) == np.shape(b) and all(
        ball.meet(x.ball, y.ball) for x, y in zip(np.ravel(a), np.ravel(b), strict=True)
    )
