"""Eigenvalues of symmetric matrices without their vectors. At equal eigenvalues see `symmetric_eigenvalues`.

Derivatives of symmetric functions of equal values are right. Second derivatives by reverse mode need equal values to
have equal weights, as in their sum (`singular_vectors`), and raise EqualEigenvaluesError for others.
"""

from __future__ import annotations

import numpy as np

from adbench.tape.core.node import Recorded
from adbench.tape.core.rule import Value, own_gradients
from adbench.tape.linalg.singular.singular_vectors import factors_of, is_rough, rates, weighted
from adbench.tape.linalg.solving import t
from adbench.tape.linalg.symmetric_eigenvalues import (
    ADVICE,
    EqualEigenvaluesError,
    _triangle,
    eigenvalue_rates,
    eigh,
    equal_pairs,
)
from adbench.tape.linalg.triangular_factors import as_lower, from_lower
from adbench.tape.rules.products import matmul
from adbench.tape.rules.shapes import flip
from adbench.tape.singular import is_symbol
from adbench.tape.values import is_nested, shape_of, value_of

_REVERSE = "eigvalsh: a second derivative by reverse mode of reverse mode" + ADVICE


def _above_zero(w: Value, a: Value) -> Value:
    """A + cI with positive eigenvalues, which are its singular values in the other order, and its factors."""
    size = 2.0 * np.max(np.abs(value_of(w)), -1, keepdims=True)
    above = from_lower(a) + np.where(size == 0.0, 1.0, size)[..., None] * np.eye(shape_of(a)[-1])
    return above, factors_of(value_of(above))


def _is_tied(w: Value, a: Value) -> bool:
    """Whether equal eigenvalues are being differentiated without a direction that selects their vectors."""
    plain = value_of(w)
    return isinstance(a, Recorded) and is_nested(a) and not is_symbol(plain) and bool(np.any(equal_pairs(plain)))


def _eigvalsh_back(w: Value, adj: Value, a: Value) -> Value:
    if w is not None and _is_tied(w, a):
        (above, factors), weights = _above_zero(w, a), flip(adj, -1)
        if not np.any(is_rough(factors[..., shape_of(a)[-1], :], weights, shape_of(a))):
            return as_lower(weighted(above, weights, factors))
    v = eigh(a).eigenvectors
    return as_lower(matmul(v * adj[..., None, :], t(v)))


def _eigvalsh_along(w: Value, tan: Value, a: Value) -> Value:
    if _is_tied(w, a):
        above, factors = _above_zero(w, a)
        return flip(rates(above, from_lower(tan), factors, error=_REVERSE), -1)
    v = eigh(a).eigenvectors
    return eigenvalue_rates(w, matmul(t(v), matmul(from_lower(tan), v)))


_eigvalsh = own_gradients(np.linalg.eigvalsh, reverse=(_eigvalsh_back,), forward=(_eigvalsh_along,))


def _eigvalsh_back_inside(w: Value, adj: Value, a: Value) -> Value:
    """`_eigvalsh_back` inside another derivative: raises if it would need one eigenvalue of a group of equal ones."""
    plain = value_of(adj)
    if np.any(equal_pairs(value_of(w)) & (plain[..., None, :] != plain[..., :, None])):
        raise EqualEigenvaluesError(_REVERSE)
    return _eigvalsh_back(w, adj, a)


_eigvalsh.inner = own_gradients(np.linalg.eigvalsh, reverse=(_eigvalsh_back_inside,), forward=(_eigvalsh_along,))


def eigvalsh(a: Value, UPLO: str = "L") -> Value:
    """The eigenvalues of a symmetric A in ascending order, (..., n, n) -> (..., n); Ā = V diag(w̄) Vᵀ.

    Among equal eigenvalues, the derivative of a single one is a convention; derivatives of symmetric functions are
    right.
    """
    return _eigvalsh(_triangle("eigvalsh", a, UPLO))
