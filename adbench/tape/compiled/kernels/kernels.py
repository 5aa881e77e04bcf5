"""Operations with their own code generators: matrix products, running sums, rows at a loop's counter.

BLAS and LAPACK are called through scipy's C pointers. They store matrices column by column, the transpose of ours, so A
B is computed as Bᵀ Aᵀ. Each entry of `KERNELS` writes the code and returns the result's location, or None if it has no
code for these shapes; then the rule is called in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from adbench.tape.compiled.kernels import matrix_factors, orthogonal_factors
from adbench.tape.compiled.kernels.orthogonal_factors import call_lapack, orientation, oriented
from adbench.tape.compiled.kernels.small_matrices import is_small, product
from adbench.tape.compiled.lowering.emission import Emission, KernelOperation
from adbench.tape.compiled.lowering.loop_fusion import sum_of
from adbench.tape.compiled.lowering.storage import REGISTER_LIMIT, Buffer, Location, Registers, Shape, Uniform, view_of
from adbench.tape.compiled.trace.symbol import PUT, TAKE
from adbench.tape.core.rule import Rule
from adbench.tape.linalg import determinant, eigenvalues, solving, symmetric_eigenvalues, triangular_factors
from adbench.tape.linalg.singular import singular_values, singular_vectors
from adbench.tape.machine.simd import Code, Name, Simd, literal
from adbench.tape.rules import products, reductions

Kernel = Callable[[KernelOperation], "Location | None"]


# Products of matrices


def _matmul(operation: KernelOperation) -> Location | None:
    emission, (a, b) = operation.emission, operation.operands
    if len(a.shape) > 2 or len(b.shape) > 2:
        if not multiplies(a.shape, b.shape):
            return None
        out = operation.output()
        _stack(emission, a, b, out)
        return emission.result(out)
    if a.size <= REGISTER_LIMIT and b.size <= REGISTER_LIMIT and operation.size <= REGISTER_LIMIT:
        return _small_product(emission, a, b, operation.shape)
    out = operation.output()
    if a.shape[-1] == 0 or operation.size == 0:
        emission.fill(out.flat(), literal(0.0))
    elif len(a.shape) == 1 == len(b.shape):
        vectors = [p if isinstance(p, Uniform) else emission.in_memory(p) for p in (a, b)]
        return sum_of(emission.code, lambda k, x, y: k.binary("fmul", x, y), vectors)
    elif len(a.shape) == 2 == len(b.shape):
        _gemm(emission, a, b, out)
    else:
        matrix, vector = (a, b) if len(a.shape) == 2 else (b, a)
        _gemv(emission, matrix, vector, out, transposed=len(a.shape) == 1)
    return emission.result(out)


LEAST_IN_STACK = 512
"""The fewest multiplications in each product of a stack of matrices for which calls are faster than fused loops."""


def multiplies(a: Shape, b: Shape) -> bool:
    """Whether `matmul` has code for these shapes: vectors, matrices, or stacks of matrices that are not small."""
    products_of = (a[-2] if len(a) > 1 else 1) * a[-1] * (b[-1] if len(b) > 1 else 1)
    return max(len(a), len(b)) <= 2 or products_of >= LEAST_IN_STACK


def _stack(emission: Emission, a: Location, b: Location, out: Buffer) -> None:
    """out[i, …] = a[i, …] b[i, …], for stacks that broadcast; a vector is a matrix of one row or column."""
    left, right = emission.in_memory(a), emission.in_memory(b)
    left = view_of(left, lambda x: x[None, :]) if len(left.shape) == 1 else left
    right = view_of(right, lambda x: x[:, None]) if len(right.shape) == 1 else right
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    needs_rows = is_small(emission, rows, inner, columns)  # generated code reads rows of b
    copies = []
    if not needs_rows and orientation(left) is None:
        copies.append(left := _copied(emission, left))
    if right.strides[-1] != 1 if needs_rows else orientation(right) is None:
        copies.append(right := _copied(emission, right))
    batch = out.shape[: len(out.shape) - (len(a.shape) > 1) - (len(b.shape) > 1)]
    stacks = [view_of(x, lambda x: np.broadcast_to(x, (*batch, *x.shape[-2:]))) for x in (left, right)]
    stacks.append(Buffer(out.base, out.offset, (*out.strides[: len(batch)], columns, 1), (*batch, rows, columns)))

    def one(pointers: Sequence[Name]) -> None:
        parts = [Buffer(p, 0, x.strides[-2:], x.shape[-2:]) for p, x in zip(pointers, stacks, strict=True)]
        _gemm(emission, *parts)

    _along(emission.code, batch, [emission.pointer(x) for x in stacks], [x.strides for x in stacks], one)
    for copy in copies:
        emission.release(copy)


def _along(
    code: Code,
    lengths: Sequence[int],
    pointers: Sequence[Name],
    strides: Sequence[Sequence[int]],
    body: Callable[[Sequence[Name]], None],
) -> None:
    """Write loops over axes of these lengths: body(the addresses there), from strides of each pointer."""
    if not lengths:
        body(pointers)
        return

    def step(i: Name) -> None:
        inner = [code.element(p, i, s[0]) for p, s in zip(pointers, strides, strict=True)]
        _along(code, lengths[1:], inner, [s[1:] for s in strides], body)

    code.loop(lengths[0], step)


def _copied(emission: Emission, array: Buffer) -> Buffer:
    """The array row by row, in memory to be released."""
    copy = emission.allocate(array.shape)
    emission.retain(copy)
    emission.copy(array, copy)
    return copy


def _small_product(emission: Emission, a: Location, b: Location, shape: Shape) -> Location:
    left, right = emission.elements(a), emission.elements(b)
    one, inner = Simd(emission.code, 1), a.shape[-1]
    rows, columns = a.shape[0] if len(a.shape) > 1 else 1, b.shape[1] if len(b.shape) > 1 else 1
    names = []
    for i in range(rows):
        for j in range(columns):
            total: Name = literal(0.0)
            for k in range(inner):
                term = one.binary("fmul", left[i * inner + k], right[k * columns + j])
                total = term if k == 0 else one.binary("fadd", total, term)
            names.append(total)
    return Registers(tuple(names), shape)


def _gemm(emission: Emission, a: Location, b: Location, out: Buffer) -> None:
    """out = a b by generated code, or in BLAS's column order: outᵀ = bᵀ aᵀ."""
    if is_small(emission, a.shape[0], a.shape[1], b.shape[1]):
        product(emission, emission.in_memory(a), emission.in_memory(b), out)
        return
    (left, left_t, left_line), (right, right_t, right_line) = oriented(emission, a), oriented(emission, b)
    m, inner = a.shape
    n = b.shape[1]
    sizes = "T" if right_t else "N", "T" if left_t else "N", n, m, inner
    first, second = (emission.pointer(right), right_line), (emission.pointer(left), left_line)
    call_lapack(emission, "dgemm", *sizes, literal(1.0), *first, *second, literal(0.0), emission.pointer(out), n)


def _gemv(emission: Emission, matrix: Location, vector: Location, out: Buffer, *, transposed: bool) -> None:
    """out = matrix vector, or matrixᵀ vector."""
    array, is_columns, line = oriented(emission, matrix)
    x = emission.in_memory(vector)
    m, n = array.shape
    rows, columns = (m, n) if is_columns else (n, m)
    letter = "N" if is_columns != transposed else "T"
    if x.strides[0] <= 0:
        x = emission.contiguous(x)
    sizes, first, second = (letter, rows, columns), (emission.pointer(array), line), (emission.pointer(x), x.strides[0])
    call_lapack(emission, "dgemv", *sizes, literal(1.0), *first, *second, literal(0.0), emission.pointer(out), 1)


# Others


def _running(op: str, start: float) -> Kernel:
    """A cumulative sum or product."""

    def write(operation: KernelOperation) -> Location | None:
        emission, code, axis = operation.emission, operation.emission.code, operation.params["axis"]
        shape, source, out = operation.shape, emission.in_memory(operation.operands[0]), operation.output()
        others = [a for a in range(len(shape)) if a != axis]

        def line(pointers: Sequence[Name]) -> None:
            left, right = pointers
            total = code.variable("double")
            code.store(literal(start), total)

            def step(i: Name) -> None:
                value = code.load(code.element(left, i, source.strides[axis]))
                so_far = code.emit(f"{op} double {code.load(total)}, {value}")
                code.store(so_far, total)
                code.store(so_far, code.element(right, i, out.strides[axis]))

            code.loop(shape[axis], step)

        strides = [[array.strides[a] for a in others] for array in (source, out)]
        _along(code, [shape[a] for a in others], [emission.pointer(source), emission.pointer(out)], strides, line)
        return emission.result(out)

    return write


def counter_of(emission: Emission, location: Location) -> Name:
    """A loop's counter, a double, as an integer."""
    return emission.code.emit(f"fptosi double {emission.first(location)} to i64")


def row_of(emission: Emission, array: Location, i: Name) -> Location:
    """array[i] for a counter."""
    if isinstance(array, Uniform):
        return Uniform(array.element, array.shape[1:]).settled()
    rows = emission.in_memory(array)
    base = emission.code.element(emission.pointer(rows), i, rows.strides[0])
    return emission.result(Buffer(base, 0, rows.strides[1:], rows.shape[1:], rows.boolean))


def _take(operation: KernelOperation) -> Location | None:
    x, i = operation.operands
    emission = operation.emission
    return row_of(emission, x, "" if isinstance(x, Uniform) else counter_of(emission, i))


def _put(operation: KernelOperation) -> Location | None:
    emission, shape, (row, i) = operation.emission, operation.shape, operation.operands
    if operation.size > REGISTER_LIMIT:
        out = emission.allocate(shape)
    else:
        out = emission.in_memory(Registers((literal(0.0),) * math.prod(shape), shape))
    emission.fill(out.flat(), literal(0.0))
    base = emission.code.element(emission.pointer(out), counter_of(emission, i), out.strides[0])
    emission.copy(row, Buffer(base, 0, out.strides[1:], out.shape[1:]))
    return emission.result(out)


_OF_ONE_MATRIX: dict[Rule, Kernel] = {
    solving._inv: matrix_factors.inverse,
    solving._solve: matrix_factors.solve,
    solving.triangular: matrix_factors.triangular,
    solving._log_abs_det: matrix_factors.log_abs_det,
    triangular_factors._cholesky: matrix_factors.cholesky,
    triangular_factors._blocked_adjoint: matrix_factors.cholesky_adjoint,
    symmetric_eigenvalues._eigh: orthogonal_factors.eigh,
    eigenvalues._eigvalsh: orthogonal_factors.eigvalsh,
    singular_vectors._svd: orthogonal_factors.svd,
    singular_values._svdvals: orthogonal_factors.svdvals,
    triangular_factors._qr: orthogonal_factors.qr,
    solving._pinv: orthogonal_factors.pinv,
    solving._sign_of_det: matrix_factors.sign_of_det,
    determinant._det: matrix_factors.determinant,
}


def _of_one_matrix(write: Kernel) -> Kernel:
    """The kernel, for one matrix with entries; no code for a stack."""

    def kernel(operation: KernelOperation) -> Location | None:
        shape = operation.operands[0].shape
        return write(operation) if len(shape) == 2 and min(shape) > 0 else None

    return kernel


KERNELS: dict[Rule, Kernel] = {
    **{rule: _of_one_matrix(write) for rule, write in _OF_ONE_MATRIX.items()},
    products.matmul: _matmul,
    reductions._cumsum: _running("fadd", -0.0),
    reductions._cumprod: _running("fmul", 1.0),
    TAKE: _take,
    PUT: _put,
}
