"""Matrix functions as operations that compiled code has: products of one long axis, norms, determinants, exponentials.

Unlike the identities of `simplify`, most hold in a usual range only. A guard checks that at every call, so loops, whose
bodies cannot branch, keep the general form, and so does a program recorded outside of the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.symbol_rules import ALL
from adbench.tape.core.rule import Rule, Value
from adbench.tape.linalg import determinant, eigenvalues, solving, symmetric_eigenvalues
from adbench.tape.linalg.singular import singular_values, singular_vectors
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import reductions
from adbench.tape.rules.shapes import matrix_transpose, reshape
from adbench.tape.singular import may_change
from adbench.tape.values import shape_of

WELL_CONDITIONED = 1e4
"""Largest |A⁻¹| |A| (of row sums) for which cofactors, and their derivatives, come from A⁻¹."""

MANY, MATRIX, VECTOR = 100, 9, 4
"""From so many rows, and up to so many terms for each row (in all columns), `_thin_product` is faster than BLAS."""

PADE = tuple(math.comb(13, k) / math.comb(26, k) / math.factorial(k) for k in range(14))
"""p(x) of exp x ≈ p(x) / p(-x) of degree 13."""
PADE_RADIUS, MOST_SQUARINGS = 5.371920351148152, 12
"""The 1-norm up to which this is exact to double precision (Higham 2005, table 2.3), and the most squarings."""


def thin_product(a: Value, b: Value) -> Value:
    """A product of which only the rows or only the terms of the sums are many, as sums in registers; else None.

    They join other loops over the same rows, while BLAS packs its operands and needs memory for its result.
    """
    of_a, of_b = shape_of(a), shape_of(b)
    if len(of_a) == 1 and len(of_b) == 2:
        return reductions.sum(reshape(a, (*of_a, 1)) * b, 0) if _is_thin(of_a[0], of_b[1], VECTOR) else None
    if len(of_a) == 2 and len(of_b) == 1:
        return reductions.sum(a * b, 1) if _is_thin(of_a[0], of_a[1], VECTOR) else None
    if len(of_a) < 2 or len(of_b) < 2:
        return None
    (*over_a, rows, terms), (*over_b, _, columns) = of_a, of_b
    if _is_thin(rows, terms * columns, MATRIX):
        turned = reshape(matrix_transpose(b), (*over_b, 1, columns, terms))
        return reductions.sum(reshape(a, (*over_a, rows, 1, terms)) * turned, -1)
    if _is_thin(terms, rows * columns, MATRIX):
        turned = reshape(matrix_transpose(a), (*over_a, terms, rows, 1))
        return reductions.sum(turned * reshape(b, (*over_b, terms, 1, columns)), -3)
    return None


def _is_thin(many: int, few: int, most: int) -> bool:
    return many >= MANY and 0 < few <= most


def _norm(inputs: list[Value], params: dict[str, Any], _made: Any) -> Value:
    """√Σ x² where no square overflows or vanishes."""
    if inputs[0].tape.outer is not None:
        return None
    total = reductions.sum(e.square(inputs[0]), params["axes"])
    usual = (total > reductions.TINY**2) & (total < reductions.HUGE**2)
    return e.sqrt(total) if bool(usual if total.shape == () else ALL(usual)) else None


def _inverse(a: Value) -> Value:
    """A⁻¹ of a matrix that is far from singular, or None."""
    if a.tape.outer is not None or len(a.shape) != 2 or a.size == 0:
        return None
    inverse = solving._inv(a)
    condition = reductions.max(reductions.sum(abs(inverse), 1)) * reductions.max(reductions.sum(abs(a), 1))
    return inverse if bool(condition < WELL_CONDITIONED) else None


def _cofactors(inputs: list[Value], _params: dict[str, Any], _made: Any) -> Value:
    """det A · A⁻ᵀ."""
    inverse = _inverse(inputs[0])
    return None if inverse is None else determinant._det(inputs[0]) * matrix_transpose(inverse)


def _slope_of_cofactors(inputs: list[Value], _params: dict[str, Any], _made: Any) -> Value:
    """det A · (tr X · A⁻¹ - X A⁻¹)ᵀ along H, X = A⁻¹H."""
    a, h = inputs
    inverse = _inverse(a)
    if inverse is None:
        return None
    x = inverse @ h
    return determinant._det(a) * matrix_transpose(reductions.trace(x) * inverse - x @ inverse)


def _expm(inputs: list[Value], _params: dict[str, Any], _made: Any) -> Value:
    """exp A by scaling, squaring and a quotient of polynomials (Higham 2005). A guard holds the number of squarings."""
    (a,) = inputs
    if a.tape.outer is not None or len(a.shape) != 2 or a.size == 0:
        return None
    size = reductions.max(reductions.sum(abs(a), 0))
    squarings = next((s for s in range(MOST_SQUARINGS) if bool(size <= PADE_RADIUS * 2.0**s)), None)
    if squarings is None:  # or NaN
        return None
    x, eye = a * 2.0**-squarings, np.eye(a.shape[0])
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b = PADE
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + eye
    y = solving.solve(even - odd, even + odd)
    for _ in range(squarings):
        y = y @ y
    return y


def _with_vectors(factors: Callable[[Value], Value]) -> Callable[..., Value]:
    """Record the factors first if the derivative will read them; the kernel of the values then reads them too."""

    def values(inputs: list[Value], _params: dict[str, Any], _made: Any) -> Value:
        if inputs[0].tape.is_differentiated:
            factors(inputs[0])

    return values


def _written_out(value: Callable[..., Value]) -> Callable[..., Value]:
    """Record a rule's operations instead of the rule, if no sweep will read its derivative."""

    def operations(inputs: list[Value], params: dict[str, Any], _made: Any) -> Value:
        return None if any(map(may_change, inputs)) else value(*inputs, **params)

    return operations


MATRIX_FORMS: dict[Rule, Callable[..., Value]] = {
    **{rule: _norm for rule in (reductions.norm2, reductions.norm2.inner) if rule is not None},
    determinant._cofactors: _cofactors,
    determinant._slope: _slope_of_cofactors,
    solving._expm: _expm,
    eigenvalues._eigvalsh: _with_vectors(lambda a: symmetric_eigenvalues._eigh(a, basis=None)),
    singular_values._svdvals: _with_vectors(singular_vectors._svd),
    singular_vectors.weighted: _written_out(singular_vectors.weighted_value),
    singular_vectors.rates: _written_out(singular_vectors.rates_value),
}
"""Rule -> the function that `simplified` asks for another form."""
