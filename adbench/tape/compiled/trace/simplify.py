"""Simplify operations, and record matrix functions as operations that compiled code has.

Identities that hold for every float: x · 1, x / 1, double negation, sums with -y or scattered values, systems of
Cholesky factors. Most forms of matrix functions (products of one long axis, norms, determinants, exponentials) hold in
a usual range only. A guard checks that at every call, so loops, whose bodies cannot branch, keep the general form, and
so does a program recorded outside of the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench.tape.compiled.trace.symbol import ALL
from adbench.tape.core.rule import Rule, Value, own_gradients
from adbench.tape.identities import KNOWN, product
from adbench.tape.linalg import determinant, eigenvalues, solving, symmetric_eigenvalues, triangular_factors
from adbench.tape.linalg.singular import singular_values, singular_vectors
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import products, reductions, shapes
from adbench.tape.rules.indexing import put
from adbench.tape.rules.predicates import of_both_sides
from adbench.tape.rules.shapes import matrix_transpose, reshape
from adbench.tape.singular import UNDEFINED, may_change
from adbench.tape.values import shape_of

Producer = Callable[[Any], "tuple[Rule, tuple[Value, ...], dict[str, Any]] | None"]

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


def _norm(_producer: Producer, x: Value, axes: Any) -> Value:
    """√Σ x² where no square overflows or vanishes."""
    if x.tape.outer is not None:
        return None
    total = reductions.sum(e.square(x), axes)
    usual = (total > reductions.TINY**2) & (total < reductions.HUGE**2)
    return e.sqrt(total) if bool(usual if total.shape == () else ALL(usual)) else None


def _inverse(a: Value) -> Value:
    """A⁻¹ of a matrix that is far from singular, or None."""
    if a.tape.outer is not None or len(a.shape) != 2 or a.size == 0:
        return None
    inverse = solving._inv(a)
    condition = reductions.max(reductions.sum(abs(inverse), 1)) * reductions.max(reductions.sum(abs(a), 1))
    return inverse if bool(condition < WELL_CONDITIONED) else None


def _cofactors(_producer: Producer, a: Value) -> Value:
    """det A · A⁻ᵀ."""
    inverse = _inverse(a)
    return None if inverse is None else determinant._det(a) * matrix_transpose(inverse)


def _slope_of_cofactors(_producer: Producer, a: Value, h: Value) -> Value:
    """det A · (tr X · A⁻¹ - X A⁻¹)ᵀ along H, X = A⁻¹H."""
    inverse = _inverse(a)
    if inverse is None:
        return None
    x = inverse @ h
    return determinant._det(a) * matrix_transpose(reductions.trace(x) * inverse - x @ inverse)


def _expm(_producer: Producer, a: Value) -> Value:
    """exp A by scaling, squaring and a quotient of polynomials (Higham 2005). A guard holds the number of squarings."""
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

    def values(_producer: Producer, a: Value) -> Value:
        if a.tape.is_differentiated:
            factors(a)

    return values


def _written_out(value: Callable[..., Value]) -> Callable[..., Value]:
    """Record a rule's operations instead of the rule, if no sweep will read its derivative."""

    def operations(_producer: Producer, *inputs: Value, **params: Any) -> Value:
        return None if any(map(may_change, inputs)) else value(*inputs, **params)

    return operations


def _added(x: Value, v: Value, index: Any) -> Value:
    y = np.array(x, float)
    np.add.at(y, index, v)
    return y


ADD_AT: Rule = own_gradients(
    _added,
    reverse=(lambda _val, adj, _x, _v, index: adj, lambda _val, adj, _x, _v, index: adj[index]),
    forward=(
        lambda _val, tan, _x, _v, index: tan,
        lambda _val, tan, _x, _v, index: put(tan, index=index, shape=shape_of(_x)),
    ),
    name="add_at",
)
"""add_at(x, v, index=): x with v added at the index, repeatedly for repeated positions."""


def one_number(x: Value) -> float | None:
    """The value of a constant stored as one number for all elements, else None."""
    if type(x) is float:
        return x
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.size and not any(x.strides):
        return float(x[(0,) * x.ndim])
    return None


def simplified(rule: Rule, inputs: list[Value], params: dict[str, Any], producer: Producer) -> Value:
    """A value equal to rule(*inputs) that needs no new record, or None. It may simplify inputs.

    Uses only identities that hold for every float: x · 1, x / 1, x - 0, -(-x), x + (-y), besides forms of matrix
    functions. (x + 0 is not x for x = -0.0.)
    """
    if rule.elementwise and len(inputs) == 2:
        for i in (0, 1):
            number = one_number(inputs[i]) if type(inputs[i]) is np.ndarray else None
            if number is not None and np.broadcast_shapes(shape_of(inputs[i]), shape_of(inputs[1 - i])) == shape_of(
                inputs[1 - i]
            ):
                inputs[i] = number
    simple = _TABLE.get(rule)
    return None if simple is None else simple(producer, *inputs, **params)


def _multiply(_producer: Producer, x: Value, y: Value) -> Value:
    for factor, other in ((x, y), (y, x)):
        if type(factor) is float and abs(factor) == 1.0:
            return other if factor == 1.0 else e.negative(other)
    return product(x, y)


def _divide(producer: Producer, x: Value, y: Value) -> Value:
    """x / 1, and c / (1 + exp u) where its square overflows, see `identities`. That adds a guard: not in loops."""
    if type(y) is float:
        return x if y == 1.0 else None
    total = producer(y) if type(x) is float and shape_of(y) == () else None
    if total is None or total[0] is not e.add or y.tape.outer is not None:
        return None
    terms = [term for term in total[1] if type(term) is not float or term != 1.0]
    exponential = producer(terms[0]) if len(terms) == 1 else None
    if exponential is None or exponential[0] is not e.exp or not y > 1e150:
        return None
    return x * e.expit(-exponential[1][0])


def _subtract(producer: Producer, x: Value, y: Value) -> Value:
    """x - 0, and x - (-y) as a sum."""
    if type(y) is float:
        return x if repr(y) == "0.0" else None
    before = producer(y)
    return x + before[1][0] if before is not None and before[0] is e.negative else None


def _negative(producer: Producer, x: Value) -> Value:
    before = producer(x)
    return before[1][0] if before is not None and before[0] is e.negative else None


def _add(producer: Producer, left: Value, right: Value) -> Value:
    """A sum with -y is a difference, and c x + c x is (2 c) x. A sum with a result of `put` adds only at the positions
    that are not zero."""
    first, second = producer(left), producer(right)
    if first is not None and second is not None and first[0] is second[0] is e.multiply:
        (a, x), (b, y) = (sorted(p[1], key=lambda v: type(v) is not float) for p in (first, second))
        if type(a) is float and type(b) is float and a == b and x is y:
            return (2.0 * a) * x
    for before, other in ((second, left), (first, right)):
        if before is not None and before[0] is e.negative:
            return e.subtract(other, before[1][0])
        if before is not None and before[0] is put and shape_of(other) == before[2]["shape"]:
            return ADD_AT(other, *before[1], index=before[2]["index"])
    return None


def _matmul(producer: Producer, a: Value, b: Value) -> Value:
    """A product with a matrix of equal entries is a sum over rows or over columns."""
    if len(shape_of(a)) != 2 or len(shape_of(b)) != 2:
        return thin_product(a, b)
    shape = (shape_of(a)[0], shape_of(b)[1])
    number = _all_entries(a, producer)
    if number is not None:
        return shapes.broadcast_to(reshape(number * reductions.sum(b, 0), (1, shape[1])), shape)
    number = _all_entries(b, producer)
    if number is not None:
        return shapes.broadcast_to(reshape(number * reductions.sum(a, 1), (shape[0], 1)), shape)
    return thin_product(a, b)


def _solve(producer: Producer, factor: Value, b: Value) -> Value:
    """A system of a Cholesky factor or its transpose is triangular: neither it nor its derivatives need an LU."""
    transposed, before = False, producer(factor)
    if before is not None and before[0] is shapes._transpose and len(shape_of(factor)) == 2:
        factor, transposed = before[1][0], before[2]["axes"] == (1, 0)
        before = producer(factor)
    if before is None or before[0] is not triangular_factors._cholesky:
        return None
    return solving.triangular(factor, b, lower=True, transposed=transposed)


def _sum(producer: Producer, x: Value, axes: Any) -> Value:
    """The sum of a matrix product without the product: Σ_ij (A B)_ij = Σ_k (Σ_i A_ik) (Σ_j B_kj)."""
    before = producer(x) if axes is None else None
    if before is None or before[0] is not products.matmul:
        return None
    a, b = before[1]
    if len(shape_of(a)) != 2 or len(shape_of(b)) not in (1, 2):
        return None
    of_rows = reductions.sum(b, 1) if len(shape_of(b)) == 2 else b
    return reductions.sum(reductions.sum(a, 0) * of_rows)


def _all_entries(x: Value, producer: Producer) -> Value:
    """The common value of all entries of a matrix, or None if they are not known to be equal."""
    number = one_number(x)
    if number is not None:
        return number
    before = producer(x)
    if before is not None and before[0] is shapes._broadcast and shape_of(before[1][0]) == ():
        return before[1][0]
    return None


def _known(rule: Rule) -> Callable[..., Value]:
    """The smoother form of a composition, see `identities`."""
    return lambda _producer, *inputs: KNOWN[rule](*inputs)


def _where(_producer: Producer, condition: Value, x: Value, y: Value) -> Value:
    """`where` under a condition that holds at single points, see `predicates.of_both_sides`."""
    known = of_both_sides(condition, x, y)
    return None if known is condition else e.where(known, x, y)


def _undefined(_producer: Producer, x: Value, **params: Any) -> Value:
    """The zeros themselves, if no sweep will read their derivative."""
    return None if x.tape.is_differentiated else UNDEFINED.value(np.broadcast_to(0.0, x.shape), **params)[()]


def _same_shape(_producer: Producer, x: Value, shape: tuple[int, ...]) -> Value:
    return x if shape_of(x) == shape else None


_TABLE: dict[Rule, Callable[..., Value]] = {
    **{rule: _known(rule) for rule in KNOWN},
    UNDEFINED: _undefined,
    e.where: _where,
    e.multiply: _multiply,
    e.divide: _divide,
    e.subtract: _subtract,
    e.negative: _negative,
    e.positive: lambda _producer, x: x,
    e.add: _add,
    shapes._broadcast: _same_shape,
    shapes._reshape: _same_shape,
    products.matmul: _matmul,
    reductions._sum: _sum,
    **{rule: _norm for rule in (reductions.norm2, reductions.norm2.inner) if rule is not None},
    determinant._cofactors: _cofactors,
    determinant._slope: _slope_of_cofactors,
    solving._expm: _expm,
    eigenvalues._eigvalsh: _with_vectors(lambda a: symmetric_eigenvalues._eigh(a, basis=None)),
    singular_values._svdvals: _with_vectors(singular_vectors._svd),
    singular_vectors.weighted: _written_out(singular_vectors.weighted_value),
    singular_vectors.rates: _written_out(singular_vectors.rates_value),
    solving._solve: _solve,
    shapes.copy: lambda _producer, x: x,
}
