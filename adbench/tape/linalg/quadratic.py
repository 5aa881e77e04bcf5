"""Quadratic forms, one node each, with the names of the Stan Math library.

A has shape (..., n, n); B is a vector (n,) or has shape (..., n, k); stacks broadcast as in matmul.
Derivatives: Giles (2008), section 2.3.2, for C = Bᵀ A B:

    Ā = B C̄ Bᵀ,   B̄ = A B C̄ᵀ + Aᵀ B C̄,   Ċ = Ḃᵀ A B + Bᵀ Ȧ B + Bᵀ A Ḃ
"""

from __future__ import annotations

import numpy as np

from adbench.tape.core.rule import Rule, Value, function_gradients
from adbench.tape.linalg.solving import cover, square
from adbench.tape.rules.products import matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import asarray, matrix_transpose, reshape, sum_to
from adbench.tape.values import shape_of, value_of

t = matrix_transpose


_form: Rule = function_gradients(
    lambda a, b: np.swapaxes(b, -1, -2) @ a @ b,
    reverse=(
        lambda _c, adj, _a, b: sum_to(matmul(matmul(b, adj), t(b)), shape_of(_a)),
        lambda _c, adj, a, b: sum_to(matmul(matmul(a, b), t(adj)) + matmul(matmul(t(a), b), adj), shape_of(b)),
    ),
    forward=(
        lambda _c, tan, _a, b: _form(tan, b),
        lambda _c, tan, a, b: matmul(t(tan), matmul(a, b)) + matmul(t(b), matmul(a, tan)),
    ),
    name="quad_form",
    fresh=True,
)

_trace: Rule = function_gradients(
    lambda a, b: np.add.reduce(b * (a @ b), (-2, -1)),
    reverse=(
        lambda _c, adj, _a, b: sum_to(cover(adj) * matmul(b, t(b)), shape_of(_a)),
        lambda _c, adj, a, b: sum_to(cover(adj) * matmul(a + t(a), b), shape_of(b)),
    ),
    forward=(
        lambda _c, tan, _a, b: _trace(tan, b),
        lambda _c, tan, a, b: sum(tan * matmul(a + t(a), b), (-2, -1)),
    ),
    name="trace_quad_form",
    fresh=True,
)


def _arguments(name: str, a: Value, b: Value) -> tuple[Value, Value, bool]:
    """The checked A and B, with B as matrices, and whether B was a vector."""
    a, b = square(name, a), asarray(b)
    is_vector = len(shape_of(b)) == 1
    b = reshape(b, (-1, 1)) if is_vector else b
    if len(shape_of(b)) < 2 or shape_of(b)[-2] != shape_of(a)[-1]:
        n = shape_of(a)[-1]
        raise ValueError(f"{name}: argument b: expected shape ({n},) or (..., {n}, k), got {shape_of(b)}")
    return a, b, is_vector


def quad_form(a: Value, b: Value) -> Value:
    """Bᵀ A B, shape (..., k, k). If B is a vector, one number per matrix, shape (...)."""
    a, b, is_vector = _arguments("quad_form", a, b)
    c = _form(a, b)
    return reshape(c, shape_of(c)[:-2]) if is_vector else c


def quad_form_sym(a: Value, b: Value) -> Value:
    """Bᵀ A B for a symmetric A, made exactly symmetric: (C + Cᵀ)/2. Raises ValueError if A is not symmetric.

    The derivative in A is that of the formula in all entries: a symmetric matrix.
    """
    a, b, is_vector = _arguments("quad_form_sym", a, b)
    plain = value_of(a)
    off = np.max(np.abs(plain - np.swapaxes(plain, -1, -2)), initial=0.0)
    if not off <= 1e-8 * np.max(np.abs(plain), initial=0.0):
        raise ValueError(f"quad_form_sym: argument a: expected a symmetric matrix, got differences up to {off:.3g}")
    c = _form(a, b)
    return reshape(c, shape_of(c)[:-2]) if is_vector else 0.5 * (c + t(c))


def trace_quad_form(a: Value, b: Value) -> Value:
    """tr(Bᵀ A B), shape (...); Ā = C̄ B Bᵀ, B̄ = C̄ (A + Aᵀ) B."""
    a, b, _ = _arguments("trace_quad_form", a, b)
    return _trace(a, b)
