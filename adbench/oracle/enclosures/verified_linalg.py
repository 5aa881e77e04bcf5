"""Proved solutions of linear systems and triangular factors of batches of matrices, from approximations in float64.

The approximations may be any numbers: they decide how small the bounds are, and never whether they hold (Rump,
"Verification methods", Acta Numerica 19, 2010, section 10). They are exact numbers for the arithmetic that proves
bounds, `Enclosure` or `BallArray`. Norms are Frobenius'.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adbench.oracle.enclosures.rounded_arrays import eliminated
from adbench.oracle.enclosures.taylor import TINY, UP, Floats

Value = Any
"""An `Enclosure` or a `BallArray`."""

GROWN = 1 + 2.0**-40
"""Covers 4,000 roundings of numbers that are not negative, more than of a sum over `MOST_ROWS` numbers."""


def solve(a: Value, b: Value, _triangle: str = "") -> Value:
    """X with A X = B, for all A and B within the enclosures; infinite radii if A may be singular.

    R approximates the inverse of A, and X̂ is R B. With C = I - R A and D = R (B - A X̂), X = X̂ + (I - C)⁻¹ D. If
    |C| ≤ G and G w ≤ q w for some w > 0 and q < 1, then A is regular and, in each column,
    |X - X̂ - D| = |C (I - C)⁻¹ D| ≤ G w max(|D| / w) / (1 - q). w is |R| times the sizes of A's rows, or those of D's
    rows: one of them fits rows and columns of very different sizes.
    """
    number, at = type(a), a.approximate
    by_row = np.ldexp(1.0, -np.frexp(np.abs(at).max(-1, keepdims=True))[1])
    inverse = np.linalg.inv(by_row * at) * np.swapaxes(by_row, -1, -2)
    r, guess = number.of(inverse), number.of(inverse @ b.approximate)
    step = r @ b.less_product(a, guess)
    c, d = _sizes(number.of(np.eye(at.shape[-1])).less_product(r, a)), _sizes(step)
    weights = np.abs(inverse) @ (1 / by_row), d.max(-1, keepdims=True)
    return (guess + step).widened(np.fmin(*(_remainder(c, d, w) for w in weights)))


def _remainder(g: Floats, d: Floats, w: Floats) -> Floats:
    """G w max(|D| / w) / (1 - q), infinite unless q < 1."""
    grown = g @ w * GROWN + TINY
    q = (grown / w).max((-2, -1), keepdims=True) * UP
    moved = (d / w).max(-2, keepdims=True) * UP + TINY
    return np.where(q < 1, grown * moved / (1 - q) * UP, math.inf)


def cholesky(a: Value) -> Value:
    """The lower L with L L' = A, for all symmetric A within the enclosures.

    The triangle N, with a positive diagonal, approximates L, and A = N (I + E) N'. If ε = ‖E‖ < 1/2, then I + E has the
    factor I + K with K = low(E - K K'), where low halves the diagonal of the lower triangle. As ‖low S‖ ≤ ‖S‖ / √2 for
    symmetric S, and K is continuous in E, ‖K‖ ≤ √2 ε, and K is low(E) to 2 ε². L = N + N K. Raises LinAlgError if the
    midpoints have no factor.
    """
    number, approximate = type(a), np.linalg.cholesky(a.approximate)
    triangle, size = number.of(approximate), a.shape[-1]
    e = _between(triangle, a.less_product(triangle, transposed(triangle)), transposed(triangle))
    low = e * number.of(np.tri(size) - np.eye(size) / 2)
    near = low.widened(_second_order(e, np.ones(size), np.ones((size, size))))
    return triangle + triangle @ masked(near, np.tri(size) > 0)


def lu(a: Value) -> tuple[Value, Any]:
    """L and U in one matrix with P A = L U, for all A within the enclosures, and the order of A's rows in P A.

    The triangles N, with ones on its diagonal, and V approximate L and U, and P A = N (I + E) V. For a positive
    diagonal D, let E' = D⁻¹ E D = K + M + K M, where K is the part below the diagonal. The last pivot is in E' and M
    alone, not in K M. Let ε be the norm of E' without it. If ε < 1/2, then ‖K‖² + ‖M‖² ≤ 4 ε² without it, because both
    are continuous in E. So K and M are the parts of E' to 2 ε². L = N D (I + K) D⁻¹, and U = D (I + M) D⁻¹ V. D is
    the sizes of V's rows, for columns of one size. If A may be singular, V has another last pivot.
    """
    number = type(a)
    packed, order = eliminated(a.approximate)
    below, last = np.tri(packed.shape[-1], k=-1) > 0, packed[..., -1, -1]
    terms = np.abs(last) + np.abs(packed[..., -1, :-1] * packed[..., :-1, -1]).sum(-1)
    packed[..., -1, -1] = np.where(np.abs(last) > 2.0**-40 * terms, last, np.where(terms > 0, terms, 1.0))
    lower, upper = number.of(np.tril(packed, -1) + np.eye(packed.shape[-1])), number.of(np.triu(packed))
    sizes = np.abs(np.triu(packed))
    d = (sizes / sizes.max(-2, keepdims=True)).max(-1)
    e = _between(lower, a.take(rows_in(a.shape, order)).less_product(lower, upper), upper)
    but_last = np.ones(below.shape)
    but_last[-1, -1] = 0.0
    near = e.widened(_second_order(e, d, but_last))
    of_lower, of_upper = lower + lower @ masked(near, below), upper + masked(near, ~below) @ upper
    return of_lower.where(below, of_upper), order


def rows_in(shape: tuple[int, ...], order: Any) -> Any:
    """The flat indices of matrices of this shape with the rows in this order."""
    return np.take_along_axis(np.arange(math.prod(shape)).reshape(shape), order[..., None], -2)


def transposed(x: Value) -> Value:
    """The transposed matrices."""
    return x.mapped(lambda part: np.swapaxes(part, -1, -2))


def masked(x: Value, mask: Any) -> Value:
    """The numbers in the mask, and zeros."""
    return x.where(mask, type(x).of(0.0))


def _between(left: Value, inner: Value, right: Value) -> Value:
    """left⁻¹ inner right⁻¹."""
    return transposed(solve(transposed(right), transposed(solve(left, inner))))


def _second_order(e: Value, d: Floats, weights: Floats) -> Floats:
    """2 ‖weights D⁻¹ E D‖² D D⁻¹, entry by entry; infinite if the norm may be above 1/2."""
    ratio = np.maximum(d[..., None] / d[..., None, :], TINY) * UP
    scaled = _sizes(e) * weights * np.swapaxes(ratio, -1, -2) * UP
    square = (scaled * scaled).sum((-2, -1), keepdims=True) * GROWN + TINY
    return np.where(square < 0.249, 2 * square * ratio * UP + TINY, math.inf)


def _sizes(x: Value) -> Floats:
    """The largest sizes of numbers within the enclosures."""
    mid, rad = x.bounds()
    return np.asarray((np.abs(mid) + rad) * UP)
