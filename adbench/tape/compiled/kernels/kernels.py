"""Operations with code of their own: products of matrices, running sums, rows at a loop's counter.

BLAS and LAPACK are those that scipy brings, called through its C pointers. Their matrices lie column by column, which
is the transpose of ours: A B is asked for as Bᵀ Aᵀ. Each entry of `KERNELS` writes the code and says where the result
is, or gives None if it has none for these shapes; the rule is then called in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adbench.tape.compiled.kernels import matrix_factors
from adbench.tape.compiled.kernels.lapack import at, call_lapack, home_for, oriented, result_of
from adbench.tape.compiled.kernels.simd import Name, literal
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.loop_fusion import SUM, Fold, Nest, Step, loop, moved_by
from adbench.tape.compiled.lowering.storage import SMALL, Big, Place, Shape, Small, Uniform, size_of
from adbench.tape.compiled.trace.symbol_rules import PUT, TAKE
from adbench.tape.core.rule import Rule
from adbench.tape.linalg import factorisations, solving
from adbench.tape.rules import products, reductions

Kernel = Callable[[Emission, Sequence[Any], "dict[str, Any]", Shape, "Big | None"], "Place | None"]


# Products of matrices


def _matmul(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    a, b = places
    if len(a.shape) > 2 or len(b.shape) > 2:
        return None
    if size_of(a.shape) <= SMALL and size_of(b.shape) <= SMALL and size_of(shape) <= SMALL:
        return _small_product(emission, a, b, shape)
    if a.shape[-1] == 0 or size_of(shape) == 0:
        home = home_for(emission, shape, target)
        emission.fill(Big(home.base, home.offset, (1,), (size_of(shape),)), literal(0.0))
        return result_of(emission, home)
    home = home_for(emission, shape, target)
    if len(a.shape) == 1 == len(b.shape):
        return _dot(emission, a, b)
    if len(a.shape) == 2 == len(b.shape):
        _gemm(emission, a, b, home)
    else:
        matrix, vector = (a, b) if len(a.shape) == 2 else (b, a)
        _gemv(emission, matrix, vector, home, transposed=len(a.shape) == 1)
    return result_of(emission, home)


def _small_product(emission: Emission, a: Place, b: Place, shape: Shape) -> Place:
    """Element by element, in registers."""
    left, right = emission.elements(a), emission.elements(b)
    inner = a.shape[-1]
    rows, columns = size_of(a.shape) // max(inner, 1) if len(a.shape) > 1 else 1, b.shape[1] if len(b.shape) > 1 else 1
    names = []
    for i in range(rows):
        for j in range(columns):
            total: Name = literal(0.0)
            for k in range(inner):
                term = emission.code.emit(
                    f"fmul{emission.module.flags} double {left[i * inner + k]}, {right[k * columns + j]}"
                )
                total = term if k == 0 else emission.code.emit(f"fadd{emission.module.flags} double {total}, {term}")
            names.append(total)
    return Small(tuple(names), shape)


def _dot(emission: Emission, a: Place, b: Place) -> Place:
    total = emission.code.variable("[1 x double]")
    emission.code.do(f"store double {literal(0.0)}, ptr {total}, align 8")
    nest = Nest(emission.code, a.shape)
    operands: list[int | Place] = [p if isinstance(p, Uniform) else emission.in_memory(p) for p in (a, b)]
    nest.steps.append(Step(0, lambda k, x, y: k.binary("fmul", x, y), operands, False))
    nest.folds.append(Fold(SUM, 0, Big(total, 0, (0,), a.shape)))
    nest.emit()
    return Small((emission.code.emit(f"load double, ptr {total}, align 8"),), ())


def _gemm(emission: Emission, a: Place, b: Place, home: Big) -> None:
    """home = a b, as BLAS's columns: homeᵀ = bᵀ aᵀ."""
    (left, left_t, left_line), (right, right_t, right_line) = oriented(emission, a), oriented(emission, b)
    m, inner = a.shape
    n = b.shape[1]
    one, zero = literal(1.0), literal(0.0)
    letters = ["T" if right_t else "N", "T" if left_t else "N"]
    call_lapack(
        emission, "dgemm",
        [*letters, n, m, inner, one, at(emission, right), right_line, at(emission, left), left_line, zero,
         at(emission, home), n],
    )  # fmt: skip


def _gemv(emission: Emission, matrix: Place, vector: Place, home: Big, *, transposed: bool) -> None:
    """home = matrix vector, or matrixᵀ vector."""
    array, is_columns, line = oriented(emission, matrix)
    x = emission.in_memory(vector)
    m, n = array.shape
    rows, columns = (m, n) if is_columns else (n, m)
    letter = "N" if is_columns != transposed else "T"
    step = x.strides[0]
    if step <= 0:
        x = emission.contiguous(x)
        step = 1
    one, zero = literal(1.0), literal(0.0)
    call_lapack(
        emission, "dgemv",
        [letter, rows, columns, one, at(emission, array), line, at(emission, x), step, zero, at(emission, home), 1],
    )  # fmt: skip


# Others


def _running(op: str, start: float) -> Kernel:
    """A cumulative sum or product."""

    def write(
        emission: Emission, places: Sequence[Place], params: dict[str, Any], shape: Shape, target: Big | None
    ) -> Place | None:
        return _run_along(emission, places[0], params["axis"], shape, target, op, start)

    return write


def _run_along(
    emission: Emission, place: Place, axis: int, shape: Shape, target: Big | None, op: str, start: float
) -> Place | None:
    code = emission.code
    source, home = emission.in_memory(place), home_for(emission, shape, target)
    others = [a for a in range(len(shape)) if a != axis]

    def along(depth: int, left: Name, right: Name) -> None:
        if depth < len(others):
            a = others[depth]
            loop(
                code, "0", str(shape[a]), 1,
                lambda i: along(
                    depth + 1, moved_by(code, left, i, source.strides[a]), moved_by(code, right, i, home.strides[a])
                ),
            )  # fmt: skip
            return
        total = code.variable("double")
        code.do(f"store double {literal(start)}, ptr {total}, align 8")

        def step(i: Name) -> None:
            value = code.emit(f"load double, ptr {moved_by(code, left, i, source.strides[axis])}, align 8")
            so_far = code.emit(f"{op} double {code.emit(f'load double, ptr {total}, align 8')}, {value}")
            code.do(f"store double {so_far}, ptr {total}, align 8")
            code.do(f"store double {so_far}, ptr {moved_by(code, right, i, home.strides[axis])}, align 8")

        loop(code, "0", str(shape[axis]), 1, step)

    along(0, at(emission, source), at(emission, home))
    return result_of(emission, home)


def counter_of(emission: Emission, place: Place) -> Name:
    """A loop's counter, which is kept as a number, as an integer."""
    return emission.code.emit(f"fptosi double {emission.elements(place)[0]} to i64")


def row_of(emission: Emission, array: Big, i: Name) -> Place:
    """array[i] for a counter."""
    base = moved_by(emission.code, at(emission, array), i, array.strides[0])
    row = Big(base, 0, array.strides[1:], array.shape[1:], array.boolean)
    return Small(emission.elements(row), row.shape, row.boolean) if size_of(row.shape) <= SMALL else row


def _take(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, _target: Big | None
) -> Place | None:
    x, i = places
    if isinstance(x, Uniform):
        return Small((x.element,) * size_of(shape), shape) if size_of(shape) <= SMALL else Uniform(x.element, shape)
    return row_of(emission, emission.in_memory(x), counter_of(emission, i))


def _put(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, _target: Big | None
) -> Place | None:
    row, i = places
    home = emission.room(shape) if size_of(shape) > SMALL else emission.in_memory(
        Small((literal(0.0),) * size_of(shape), shape)
    )  # fmt: skip
    emission.fill(Big(home.base, home.offset, (1,), (size_of(shape),)), literal(0.0))
    base = moved_by(emission.code, at(emission, home), counter_of(emission, i), home.strides[0])
    emission.copy(row, Big(base, 0, home.strides[1:], home.shape[1:]))
    return result_of(emission, home)


KERNELS: dict[Rule, Kernel] = {
    products.matmul: _matmul,
    solving._inv: matrix_factors.inverse,
    solving._solve: matrix_factors.solve,
    solving.triangular: matrix_factors.triangular,
    solving._log_abs_det: matrix_factors.log_abs_det,
    factorisations._cholesky: matrix_factors.cholesky,
    reductions._cumsum: _running("fadd", -0.0),
    reductions._cumprod: _running("fmul", 1.0),
    solving._sign_of_det: matrix_factors.sign_of_det,
    TAKE: _take,
    PUT: _put,
}
