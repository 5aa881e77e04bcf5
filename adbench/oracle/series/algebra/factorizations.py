"""LU, Cholesky and QR on lists of rows of series: textbook algorithms that only divide and take square roots.

They also work if the matrix is singular at t = 0 and regular just after: the pivot has the lowest power of t, and of
these entries the largest number.
"""

from __future__ import annotations

import functools
import itertools

from flint import arb_mat, fmpq

from adbench.oracle.series import ball
from adbench.oracle.series.algebra.coefficients import MatrixSeries, Rows, convolved, solved
from adbench.oracle.series.ball import NAN, ONE, ZERO, Ball, Insufficient, add, div, mul, neg, sign, sqrt, sub
from adbench.oracle.series.functions import log


def dot(a: list[Ball], b: list[Ball]) -> Ball:
    """Σ a_k b_k without the products that are exactly zero."""
    terms = [mul(x, y) for x, y in zip(a, b, strict=True) if not (is_nothing(x) or is_nothing(y))]
    return functools.reduce(add, terms) if terms else ball.constant(0)


def is_nothing(a: Ball) -> bool:
    """Whether it is the constant 0."""
    if ball.is_series(a) or isinstance(a, ball.Special):
        return False
    return bool(a == 0) if type(a) is fmpq else a.is_zero()


def _square(rows: Rows) -> int:
    n = len(rows)
    if any(len(row) != n for row in rows):
        raise ValueError(f"a square matrix is needed, not {n} × {len(rows[0])}")
    return n


# Elimination ------------------------------------------------------------------------------------------------------


def pivot(column: list[Ball]) -> int | None:
    """The index of the lowest power of t, and of these the largest number; None if all entries are zero.

    Raises Insufficient if no entry is provably nonzero, and not all are zero.
    """
    best, rank, open_question = None, (0, 0.0), None
    for i, entry in enumerate(column):
        if isinstance(entry, ball.Special):
            return i
        try:
            power = ball.valuation(entry)
        except Insufficient as missing:
            open_question = missing
            continue
        if power < 0:
            continue
        leading = ball.ball(entry[power] if ball.is_series(entry) else entry)
        here = (-power, abs(leading).mid())
        if best is None or here > rank:
            best, rank = i, here
    if best is None and open_question is not None:
        raise open_question
    return best


def lu(rows: Rows) -> tuple[Rows, list[int], int]:
    """P A = L U with row exchanges: L and U in one matrix, the order of the rows, the sign of that order."""
    n = _square(rows)
    work, order, exchanges = [list(row) for row in rows], list(range(n)), 1
    for k in range(n):
        offset = pivot([work[i][k] for i in range(k, n)]) if k < n - 1 else 0
        if offset is None:
            continue
        if offset:
            best = k + offset
            work[k], work[best], order[k], order[best] = work[best], work[k], order[best], order[k]
            exchanges = -exchanges
        for i in range(k + 1, n):
            row = work[i]
            if is_nothing(row[k]):
                continue
            row[k] = factor = div(row[k], work[k][k])
            for j in range(k + 1, n):
                if not is_nothing(work[k][j]):
                    row[j] = sub(row[j], mul(factor, work[k][j]))
    return work, order, exchanges


def solve(rows: Rows, right: Rows) -> Rows:
    """X with A X = B. Infinite or NaN if A is singular, also just after t = 0."""
    n = _square(rows)
    if n and _is_triangular(rows, lower=True):
        return _substituted(rows, right, range(n))
    if n and _is_triangular(rows, lower=False):
        return _substituted(rows, right, range(n - 1, -1, -1))
    a, b = MatrixSeries.of(rows), MatrixSeries.of(right)
    if n and a is not None and b is not None:
        try:
            return solved(a, b).entries()
        except ZeroDivisionError:
            pass
    work, order, _ = lu(rows)
    unit = [[*row[:i], ball.constant(1), *[ZERO] * (n - i - 1)] for i, row in enumerate(work)]
    upper = [[*[ZERO] * i, *row[i:]] for i, row in enumerate(work)]
    forward = _substituted(unit, [right[i] for i in order], range(n))
    return _substituted(upper, forward, range(n - 1, -1, -1))


def _is_triangular(rows: Rows, *, lower: bool) -> bool:
    return all(is_nothing(x) for i, row in enumerate(rows) for x in (row[i + 1 :] if lower else row[:i]))


def _substituted(rows: Rows, right: Rows, order: range) -> Rows:
    """X with A X = B for a triangular A, whose rows are taken in this order."""
    n, width = len(rows), len(right[0])
    solution: Rows = [[ZERO] * width for _ in range(n)]
    known: list[int] = []
    for i in order:
        weights = [rows[i][k] for k in known]
        for j in range(width):
            rest = sub(right[i][j], dot(weights, [solution[k][j] for k in known]))
            solution[i][j] = div(rest, rows[i][i])
        known.append(i)
    return solution


def inverse(rows: Rows) -> Rows:
    """A^-1."""
    n = _square(rows)
    return solve(rows, [[ball.constant(int(i == j)) for j in range(n)] for i in range(n)])


def exponential(rows: Rows) -> Rows:
    """exp A: the first row of blocks of the exponential of T, whose block (i, j) is the coefficient j - i of A.

    Products of such matrices T equal those of the series, so flint's exponential of numbers suffices.
    """
    n, a = _square(rows), MatrixSeries.of(rows)
    if a is None:
        return [[NAN] * n for _ in range(n)]
    terms = a.terms or 1
    whole = arb_mat(n * terms, n * terms)
    for k, part in enumerate(a.parts):
        for i, j in itertools.product(range(n), range(n)) if part is not None else ():
            for block in range(terms - k):
                whole[block * n + i, (block + k) * n + j] = ball.ball(part[i, j])
    power = whole.exp()
    parts = [arb_mat([[power[i, k * n + j] for j in range(n)] for i in range(n)]) for k in range(terms)]
    return MatrixSeries(parts, a.terms, n, n).entries()


def determinant(rows: Rows) -> Ball:
    """det A, also of a singular matrix."""
    parts = _regular_determinant(rows)
    if parts is not None:
        start, growth = parts
        return mul(start, ball.ball(growth).exp()) if ball.is_series(growth) else start
    try:
        work, _, exchanges = lu(rows)
    except Insufficient:
        return _without_division(rows)
    product = functools.reduce(mul, (work[k][k] for k in range(len(rows))), ONE)
    return product if exchanges > 0 else neg(product)


def log_determinant(rows: Rows) -> tuple[Ball, Ball]:
    """The sign of det A and log |det A|; 0 and -inf if it is singular."""
    parts = _regular_determinant(rows)
    if parts is not None:
        start, growth = parts
        return ball.sign_of(start), add(ball.ball(ball.absolute(start)).log(), ball.ball(growth))
    det = determinant(rows)
    return ball.sign_of(det), log(ball.absolute(det))


def _regular_determinant(rows: Rows) -> tuple[Ball, Ball] | None:
    """det A(0) and log (det A / det A(0)); None if A is not provably regular at t = 0."""
    n = _square(rows)
    a = MatrixSeries.of(rows) if n > 1 else None
    start = fmpq(0) if a is None else a.parts[0].det()
    zero = 0 * start
    if a is None or not (start > 0 or start < 0):
        return None
    if a.terms is None:
        return start, zero
    one = type(a.parts[0])(n, n, [int(i == j) for i in range(n) for j in range(n)])
    try:
        inverse = solved(a, MatrixSeries([one], None, n, n))
    except ZeroDivisionError:
        return None
    # (log det A)' = tr(A^-1 A')
    slopes = [None if part is None else part * (k + 1) for k, part in enumerate(a.parts[1:])]
    products = [convolved(inverse.parts, slopes, k) for k in range(a.terms - 1)]
    traces = [zero if product is None else sum(product[i, i] for i in range(n)) for product in products]
    return start, ball.series([zero, *(trace / (k + 1) for k, trace in enumerate(traces))], a.terms)


def _without_division(rows: Rows) -> Ball:
    """Berkowitz's algorithm: n^4 / 4 products, without any test for zero."""
    n = len(rows)
    vector: list[Ball] = [ONE, neg(rows[0][0])] if n else [ONE]
    for r in range(1, n):
        row, column = rows[r][:r], [rows[i][r] for i in range(r)]
        weights = [ONE, neg(rows[r][r])]
        for _ in range(r):
            weights.append(neg(dot(row, column)))
            column = [dot(rows[i][:r], column) for i in range(r)]
        vector = [
            functools.reduce(add, (mul(weights[i - j], vector[j]) for j in range(max(0, i - r - 1), min(i, r) + 1)))
            for i in range(r + 2)
        ]
    return neg(vector[-1]) if n % 2 else vector[-1]


# Cholesky and QR --------------------------------------------------------------------------------------------------


def cholesky(rows: Rows) -> Rows:
    """Lower L with L L' = A, from the lower triangle; all NaN if A is not positive definite."""
    n = len(rows)
    lower: Rows = [[ZERO] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = sub(rows[i][j], dot(lower[i][:j], lower[j][:j]))
            if i == j:
                if sign(rest) != 1:
                    return [[NAN] * n for _ in range(n)]
                lower[i][i] = sqrt(rest)
            else:
                lower[i][j] = div(rest, lower[j][j])
    return lower


def qr(rows: Rows) -> tuple[Rows, Rows]:
    """Reduced Q and R by Householder's reflections, with LAPACK's signs."""
    m, n = len(rows), len(rows[0])
    k = min(m, n)
    work = [list(row) for row in rows]
    turned: Rows = [[ONE if i == j else ZERO for j in range(m)] for i in range(m)]
    for step in range(min(m - 1, n)):
        column = [work[i][step] for i in range(step, m)]
        squared = dot(column, column)
        if is_nothing(squared) or sign(squared) == 0:
            continue
        length = sqrt(squared)
        beta = neg(length) if sign(column[0]) >= 0 else length
        v = [sub(column[0], beta), *column[1:]]
        scale = div(ball.constant(2), dot(v, v))
        _reflect(work, v, scale, step)
        _reflect(turned, v, scale, step)
        for i in range(step, m):
            work[i][step] = beta if i == step else ZERO
    q = [[turned[j][i] for j in range(k)] for i in range(m)]
    return q, [[work[i][j] if i <= j else ZERO for j in range(n)] for i in range(k)]


def _reflect(rows: Rows, v: list[Ball], scale: Ball, first: int) -> None:
    """rows[first:] ← (1 - scale v v') rows[first:]."""
    for j in range(len(rows[0])):
        along = mul(scale, dot(v, [row[j] for row in rows[first:]]))
        if is_nothing(along):
            continue
        for i, x in enumerate(v):
            row = rows[first + i]
            row[j] = sub(row[j], mul(x, along))
