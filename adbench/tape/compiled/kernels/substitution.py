"""Generated code for triangular systems and Cholesky factors so small that a call of LAPACK takes longer than the work.

Forward substitution solves L x = b, row after row, and backward substitution U x = b:

    x_j = (b_j - Σ_(k<j) L_jk x_k) / L_jj,   x_j = (b_j - Σ_(k>j) U_jk x_k) / U_jj

The matrix is read once, all rows are unrolled, and one loop runs over the right-hand sides.

Golub and Van Loan, "Matrix Computations", algorithms 3.1.1, 3.1.2 and 4.2.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer
from adbench.tape.machine.simd import Code, Name, Simd, literal

LARGEST = 8
"""The largest order of unrolled matrices. At order 8, a system with one right-hand side takes 36 multiplications."""


def less_products(code: Code, number: Name, products: Iterable[tuple[Name, Name]]) -> Name:
    """number - Σ left · right."""
    one = Simd(code, 1)
    for left, right in products:
        number = one.intrinsic("fmuladd", code.emit(f"fneg double {left}"), right, number)
    return number


def entry(emission: Emission, matrix: Buffer, i: int, j: int) -> Name:
    """Read entry (i, j)."""
    place = i * matrix.strides[0] + j * matrix.strides[1]
    return emission.code.load(emission.code.element(emission.pointer(matrix), str(place)))


def substitute(emission: Emission, triangle: Buffer, solution: Name, columns: int, *, upper: bool, unit: bool) -> None:
    """X ← T⁻¹ X in place, for right-hand sides one after the other in memory; `unit`: the diagonal counts as ones.

    The function returns with an error if a number on the diagonal is 0, as LAPACK's dtrtrs does.
    """
    code, n, one = emission.code, triangle.shape[0], Simd(emission.code, 1)
    rows = range(n - 1, -1, -1) if upper else range(n)
    before = {j: range(j + 1, n) if upper else range(j) for j in rows}
    known = {(j, k): entry(emission, triangle, j, k) for j in rows for k in (*before[j], *(() if unit else (j,)))}
    for j in () if unit else rows:
        code.leave_if(one.compare("oeq", known[j, j], literal(0.0)), emission.leave_on_error())

    def column(c: Name) -> None:
        start = code.element(solution, c, n)
        x: dict[int, Name] = {}
        for j in rows:
            place = code.element(start, str(j))
            x[j] = less_products(code, code.load(place), ((known[j, k], x[k]) for k in before[j]))
            if not unit:
                x[j] = one.binary("fdiv", x[j], known[j, j])
            code.store(x[j], place)

    code.loop(columns, column)


def exchange_rows(emission: Emission, solution: Name, n: int, columns: int, pivots: Name) -> None:
    """Exchange entry k of each right-hand side with that of `pivots`, counted from 1, from the last k to the first."""
    code = emission.code
    others = []
    for k in range(n - 1):  # the last row has none to be exchanged with
        row = code.load(code.emit(f"getelementptr inbounds i32, ptr {pivots}, i64 {k}"), "i32")
        others.append(code.emit(f"sub i64 {code.emit(f'zext i32 {row} to i64')}, 1"))

    def column(c: Name) -> None:
        start = code.element(solution, c, n)
        for k in range(n - 2, -1, -1):
            here, there = code.element(start, str(k)), code.element(start, others[k])
            left, right = code.load(here), code.load(there)
            code.store(right, here)
            code.store(left, there)

    code.loop(columns, column)


def cholesky(emission: Emission, matrix: Buffer, out: Buffer) -> None:
    """L with A = L Lᵀ, column after column, from the lower triangle of A; `out` is contiguous.

    The function returns with an error if A is not positive definite, as LAPACK's dpotrf does.
    """
    code, n, one = emission.code, matrix.shape[0], Simd(emission.code, 1)
    known: dict[tuple[int, int], Name] = {}
    for j in range(n):
        for i in range(j, n):
            number = entry(emission, matrix, i, j)
            number = less_products(code, number, ((known[i, k], known[j, k]) for k in range(j)))
            if i == j:
                code.leave_if(one.compare("ole", number, literal(0.0)), emission.leave_on_error())
                known[i, j] = one.intrinsic("sqrt", number)
            else:
                known[i, j] = one.binary("fdiv", number, known[j, j])
    start = emission.pointer(out)
    for i in range(n):
        for j in range(n):
            code.store(known.get((i, j), literal(0.0)), code.element(start, str(i * n + j)))
