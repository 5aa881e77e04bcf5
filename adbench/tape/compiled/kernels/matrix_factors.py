"""Matrix factorisations and results computed from them, in the workspace, by LAPACK or in its layout.

LAPACK stores matrices column by column, so it factors the transpose of our matrix.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adbench.tape.compiled.kernels import small_matrices
from adbench.tape.compiled.kernels.elimination import Elimination, is_generated
from adbench.tape.compiled.kernels.mathematics.logarithms import log
from adbench.tape.compiled.kernels.orthogonal_factors import call_lapack, copy_triangle, oriented, shared
from adbench.tape.compiled.lowering.emission import Emission, KernelOperation
from adbench.tape.compiled.lowering.loop_fusion import sum_of
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, view_of
from adbench.tape.linalg import triangular_factors
from adbench.tape.machine.simd import Name, Simd, literal
from adbench.tape.rules.reductions import HUGE, TINY


def _factored(emission: Emission, matrix: Location) -> tuple[Buffer, Name]:
    """L U of Aᵀ (our rows are LAPACK's columns) and the row exchanges, computed once for each A."""

    def make() -> tuple[Buffer, Name]:
        n = matrix.shape[0]
        pivots = emission.pointer(emission.allocate((n,)))  # integers of four bytes use half of it
        if is_generated(emission, n):
            elimination = Elimination(emission, n)
            lu = elimination.allocate()
            emission.copy(matrix, lu)
            elimination.factor(lu, pivots)
        else:
            lu = emission.allocate(matrix.shape)
            emission.copy(matrix, lu)
            call_lapack(emission, "dgetrf", n, n, emission.pointer(lu), n, pivots, "info")
        return lu, pivots

    return shared(emission, "lu", make)  # type: ignore[no-any-return]


def inverse(operation: KernelOperation) -> Location | None:
    """A⁻¹, from the factors of A."""
    (a,) = operation.operands
    emission, n = operation.emission, a.shape[0]
    lu, pivots = _factored(emission, a)
    if is_generated(emission, n):
        return emission.result(Elimination(emission, n).invert(lu, pivots))
    out = operation.output()
    emission.copy(lu, out)
    work = emission.allocate((max(n * 64, 1),))
    call_lapack(emission, "dgetri", n, emission.pointer(out), n, pivots, emission.pointer(work), n * 64, "info")
    return emission.result(out)


def log_abs_det(operation: KernelOperation) -> Location | None:
    """The sum of log |u| over the diagonal of U."""
    lu, _ = _factored(operation.emission, operation.operands[0])
    return sum_of(operation.emission.code, lambda k, x: log(k, k.intrinsic("fabs", x)), [view_of(lu, np.diagonal)])


def determinant(operation: KernelOperation, of: Callable[[Simd, Name], Name] = lambda _one, x: x) -> Location | None:
    """The product of the diagonal of U, with the sign of the row exchanges; left out if it comes near 0 or infinity.

    `of` replaces each number of the diagonal.
    """
    emission, code = operation.emission, operation.emission.code
    lu, pivots = _factored(emission, operation.operands[0])
    diagonal, total, one = view_of(lu, np.diagonal), code.variable("double"), Simd(code, 1)
    code.store(literal(1.0), total)

    def step(i: Name) -> None:
        value = of(one, code.load(code.element(emission.pointer(diagonal), i, diagonal.strides[0])))
        pivot = code.load(code.emit(f"getelementptr inbounds i32, ptr {pivots}, i64 {i}"), "i32")
        own = code.emit(f"trunc i64 {code.emit(f'add i64 {i}, 1')} to i32")
        signed = one.select(code.emit(f"icmp ne i32 {pivot}, {own}"), code.emit(f"fneg double {value}"), value)
        product = code.emit(f"fmul double {code.load(total)}, {signed}")
        size = one.intrinsic("fabs", product)
        code.leave_unless(one.compare("ogt", size, literal(TINY)), emission.leave_on_error())
        code.leave_unless(one.compare("olt", size, literal(HUGE)), emission.leave_on_error())
        code.store(product, total)

    code.loop(diagonal.shape[0], step)
    return Registers((code.load(total),), ())


def sign_of_det(operation: KernelOperation) -> Location | None:
    """The sign of the determinant: one change for each exchanged row, one for each negative entry of the diagonal."""
    return determinant(
        operation, lambda one, x: one.select(one.compare("olt", x, literal(0.0)), literal(-1.0), literal(1.0))
    )


def solve(operation: KernelOperation) -> Location | None:
    """A⁻¹ B, from the factors of A."""
    a, b = operation.operands
    if len(b.shape) > 2 or operation.size == 0:
        return None
    emission, n = operation.emission, a.shape[0]
    lu, pivots = _factored(emission, a)
    result, target, columns = _right_sides(operation)
    if n <= small_matrices.LARGEST_UNROLLED:  # A = Uᵀ Lᵀ Pᵀ, and the columns of L U are the rows of `lu`
        small_matrices.substitute(emission, lu, target, columns, upper=False, unit=False)
        small_matrices.substitute(emission, lu, target, columns, upper=True, unit=True)
        small_matrices.exchange_rows(emission, target, n, columns, pivots)
    else:
        factors = emission.pointer(lu), lu.strides[0]
        call_lapack(emission, "dgetrs", "T", n, columns, *factors, pivots, target, n, "info")
    return emission.result(result)


def _right_sides(operation: KernelOperation) -> tuple[Buffer, Name, int]:
    """B in memory for the result, where LAPACK has it column by column; its address, and the number of columns."""
    emission, b = operation.emission, operation.operands[1]
    if len(b.shape) == 1:
        solution, result = (operation.output(),) * 2
    else:
        solution = emission.allocate(b.shape[::-1])
        result = view_of(solution, np.transpose)
    emission.copy(b, result)
    return result, emission.pointer(solution), b.size // b.shape[0]


def triangular(operation: KernelOperation) -> Location | None:
    """T⁻¹ B for a triangle of A."""
    a, b = operation.operands
    if len(b.shape) > 2 or operation.size == 0:
        return None
    emission, params, n = operation.emission, operation.params, a.shape[0]
    result, target, columns = _right_sides(operation)
    if n <= small_matrices.LARGEST_UNROLLED:
        whole = emission.in_memory(a)
        triangle = view_of(whole, np.transpose) if params["transposed"] else whole
        upper = params["lower"] == params["transposed"]
        small_matrices.substitute(emission, triangle, target, columns, upper=upper, unit=False)
        return emission.result(result)
    array, is_columns, line = oriented(emission, a)
    upper = "L" if params["lower"] == is_columns else "U"
    letter = "N" if is_columns != params["transposed"] else "T"
    matrix = emission.pointer(array), line
    call_lapack(emission, "dtrtrs", upper, letter, "N", n, columns, *matrix, target, n, "info")
    return emission.result(result)


def cholesky(operation: KernelOperation) -> Location | None:
    """The lower triangle L with A = L Lᵀ."""
    emission, n = operation.emission, operation.shape[0]
    out = operation.output()
    source = emission.in_memory(operation.operands[0])
    if n <= small_matrices.LARGEST_UNROLLED:
        small_matrices.cholesky(emission, source, out)
        return emission.result(out)
    emission.fill(out.flat(), literal(0.0))
    copy_triangle(emission, source, out)
    call_lapack(emission, "dpotrf", "U", n, emission.pointer(out), n, "info")
    return emission.result(out)


def cholesky_adjoint(operation: KernelOperation) -> Location | None:
    """The adjoint of A from that of its factor, see `_blocked_value` there; here with at most 16 blocks."""
    emission, n = operation.emission, operation.shape[0]
    lower, adj = (emission.contiguous(x) for x in operation.operands)
    out, size = operation.output(), max(triangular_factors.BLOCK, -(-n // 16))
    emission.fill(out.flat(), literal(0.0))
    copy_triangle(emission, adj, out)
    work = emission.allocate((size, size))
    minus, one = literal(-1.0), literal(1.0)
    for first in reversed(range(0, n, size)):
        last = min(first + size, n)
        width, below = last - first, n - last
        corner, block = _part(lower, first, first, width), _part(out, first, first, width)
        # LAPACK sees the transpose of each matrix. It gets a place and the distance between rows.
        diagonal, left = (emission.pointer(corner), n), (emission.pointer(_part(lower, first, 0, 1)), n)
        target, row = (emission.pointer(block), n), (emission.pointer(_part(out, first, 0, 1)), n)
        if below:
            under, of_under, rows, of_rows = (
                (emission.pointer(_part(matrix, last, column, 1)), n)
                for column in (first, 0)
                for matrix in (lower, out)
            )
            call_lapack(emission, "dtrsm", "L", "U", "N", "N", width, below, one, *diagonal, *of_under)
            if first:
                call_lapack(emission, "dgemm", "N", "N", first, below, width, minus, *left, *of_under, one, *of_rows)
                call_lapack(emission, "dgemm", "N", "T", first, width, below, minus, *rows, *of_under, one, *row)
            call_lapack(emission, "dgemm", "N", "T", width, width, below, minus, *under, *of_under, one, *target)
        whole = Buffer.packed(work.base, work.offset, (width, width))
        _adjoint_of_block(emission, corner, block, whole)
        if first:
            solved = emission.pointer(whole), width
            call_lapack(emission, "dgemm", "N", "N", first, width, width, minus, *left, *solved, one, *row)
    return emission.result(out)


def _part(matrix: Buffer, i: int, j: int, width: int) -> Buffer:
    """The square block that starts at (i, j)."""
    return view_of(matrix, lambda array: array[i : i + width, j : j + width])


def _adjoint_of_block(emission: Emission, lower: Buffer, adj: Buffer, work: Buffer) -> None:
    """Replace the lower triangle `adj` by its `_whole_adjoint`, and `work` by the symmetric S + Sᵀ."""
    code, n, zero = emission.code, work.shape[0], literal(0.0)
    one, target = literal(1.0), (emission.pointer(work), n)
    triangle = emission.pointer(lower), lower.strides[0]
    emission.fill(work.flat(), zero)
    copy_triangle(emission, adj, work)
    call_lapack(emission, "dtrmm", "R", "U", "T", "N", n, n, one, *triangle, *target)

    def place(matrix: Buffer, i: Name, j: Name) -> Name:
        return code.element(code.element(emission.pointer(matrix), i, matrix.strides[0]), j, matrix.strides[1])

    def halve(i: Name) -> None:
        middle = place(work, i, i)
        code.store(code.emit(f"fmul double {code.load(middle)}, {literal(0.5)}"), middle)
        code.loop(n, lambda j: code.store(zero, place(work, i, j)), start=code.emit(f"add i64 {i}, 1"))

    code.loop(n, halve)
    call_lapack(emission, "dtrsm", "R", "U", "T", "N", n, n, one, *triangle, *target)
    call_lapack(emission, "dtrsm", "L", "U", "N", "N", n, n, one, *triangle, *target)

    def add(i: Name) -> None:
        def pair(j: Name) -> None:
            left, right = place(work, i, j), place(work, j, i)
            total = code.emit(f"fadd double {code.load(left)}, {code.load(right)}")
            for where in (left, right, place(adj, i, j)):
                code.store(total, where)
            code.store(zero, place(adj, j, i))

        code.loop(i, pair)
        middle = place(work, i, i)
        number = code.load(middle)
        code.store(number, place(adj, i, i))
        code.store(code.emit(f"fadd double {number}, {number}"), middle)

    code.loop(n, add)
