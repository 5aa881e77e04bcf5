"""What to do where eigenvalues or singular values are equal: the one quotient that all these derivatives divide by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adbench.tape.core.rule import Active, TapeError, Value
from adbench.tape.rules.elementwise import where
from adbench.tape.rules.reductions import sum  # numpy's name for it
from adbench.tape.values import value_of

Evidence = Sequence[tuple[Value, Value]]

_ROUNDINGS = 8.0
"""Values closer than so many rounding errors, times n, of the largest are equal."""

_NOTHING = 2.0**-36
"""A numerator this small beside its neighbours is taken for rounding."""


class EqualEigenvaluesError(TapeError, np.linalg.LinAlgError):
    """Two equal eigenvalues or singular values: the derivative through their vectors does not exist."""


def equal_pairs(w: Value) -> Value:
    """For each i ≠ j whether w[i] and w[j] are equal up to rounding: (..., n) -> (..., n, n)."""
    n = w.shape[-1]
    limit = _ROUNDINGS * n * 2.0**-53 * np.max(np.abs(w), -1, initial=0.0)
    near = np.abs(w[..., None, :] - w[..., :, None]) <= limit[..., None, None]
    return near & ~np.eye(n, dtype=bool)


def zero_pairs(s: Value, shape: tuple[int, ...]) -> Value:
    """Where, in an array of this shape, the column belongs to a singular value of 0."""
    limit = _ROUNDINGS * max(shape[-2:]) * 2.0**-53 * np.max(s, -1, initial=0.0)
    return np.broadcast_to((s <= limit[..., None])[..., None, :], shape)


def quotient(numerator: Value, gaps: Value, equal: Value, evidence: Evidence, what: str) -> Value:
    """numerator / gaps, and 0 where two values are equal or a gap is 0, if the evidence is no more than rounding there.

    The evidence is everything that could make the derivative depend on the vectors of the equal values: pairs of
    matrices and what they were computed from. If it is more than rounding, the derivative does not exist or is not to
    be known: EqualEigenvaluesError with the text `what`.
    """
    if np.any(equal):
        for matrices, source in evidence:
            largest = np.max(np.abs(value_of(source)), (-2, -1), keepdims=True, initial=0.0)
            if np.any(equal & (np.abs(value_of(matrices)) > _NOTHING * largest)):
                raise EqualEigenvaluesError(what)
    skipped = equal | (value_of(gaps) == 0.0)
    return where(skipped, 0.0, numerator / where(skipped, 1.0, gaps))


def _groups(equal: Value) -> list[slice]:
    """The runs of equal values (sorted, so neighbours), of two or more."""
    linked = np.diagonal(equal, 1)
    found, start = [], 0
    for i in range(len(linked) + 1):
        if i == len(linked) or not linked[i]:
            if i > start:
                found.append(slice(start, i + 1))
            start = i + 1
    return found


def direction_basis(a: Value) -> Value:
    """For forward mode at equal eigenvalues: Q such that the columns of V Q are the vectors the direction singles out.

    Any orthonormal basis of the eigenspace will do as eigenvectors of A. The one that continues along A + εȦ, and so
    has a derivative, diagonalises VᵀȦV within the space (Rellich). None, for the identity, in all other cases.
    """
    tangent = None
    while isinstance(a, Active) and tangent is None and not a.symbolic:
        tangent = getattr(a, "tangent", None)
        a = a.val
    plain, along = value_of(a), value_of(tangent)
    if tangent is None:
        return None
    w, v = np.linalg.eigh(plain)
    equal = equal_pairs(w)
    if not np.any(equal):
        return None
    lower = np.tril(along)
    symmetric = lower + np.swapaxes(np.tril(along, -1), -1, -2)
    p = np.swapaxes(v, -1, -2) @ symmetric @ v
    basis = np.broadcast_to(np.eye(w.shape[-1]), p.shape).copy()
    for place in np.ndindex(w.shape[:-1]):
        for group in _groups(equal[place]):
            basis[(*place, group, group)] = np.linalg.eigh(p[(*place, group, group)])[1]
    return basis


def eigenvalue_rates(w: Value, p: Value) -> Value:
    """ẇ from P = VᵀȦV: its diagonal; within a group of equal eigenvalues the eigenvalues of that block of P."""
    plain = value_of(p)
    rates = sum(p * np.eye(plain.shape[-1]), -1)
    equal = equal_pairs(value_of(w))
    if isinstance(p, Active) or not np.any(equal):
        return rates
    for place in np.ndindex(equal.shape[:-2]):
        for group in _groups(equal[place]):
            rates[(*place, group)] = np.linalg.eigvalsh(plain[(*place, group, group)])
    return rates
