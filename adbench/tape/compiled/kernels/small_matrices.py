"""Generated code for small matrices: products, triangular systems and Cholesky factors.

BLAS packs both matrices before it multiplies, which takes longer than the product of small ones. Here a tile of the
result, 8 rows by 24 columns, stays in registers while k runs over the inner axis:

    tile[r, :] ← tile[r, :] + a[r, k] b[k, :]

Each entry is one sum in the order of k, with fused multiplications. Only AVX-512 has registers for such tiles; other
processors use BLAS.

A call of LAPACK takes longer than the work on up to eight rows. Forward substitution solves L x = b, row after row, and
backward substitution U x = b:

    x_j = (b_j - Σ_(k<j) L_jk x_k) / L_jj,   x_j = (b_j - Σ_(k>j) U_jk x_k) / U_jj

The matrix is read once, all rows are unrolled, and one loop runs over the right-hand sides.
Golub and Van Loan, "Matrix Computations", algorithms 3.1.1, 3.1.2 and 4.2.1.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import llvmlite.binding as llvm

from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd, literal

LARGEST = 128
"""The largest length of an axis."""

ROWS, VECTORS = 8, 3
"""The size of a tile: rows, and vectors of eight columns."""


@functools.cache
def has_registers() -> bool:
    """Whether the processor has 32 registers of eight numbers."""
    return bool(llvm.get_host_cpu_features().get("avx512f"))


def is_small(emission: Emission, rows: int, inner: int, columns: int) -> bool:
    """Whether generated code is faster than BLAS."""
    fits = columns >= WIDTH and max(rows, inner, columns) <= LARGEST
    return fits and has_registers() and emission.level > 0


def product(emission: Emission, a: Buffer, b: Buffer, out: Buffer) -> None:
    """out = a b, for contiguous `out`; equal shapes share one function."""
    if b.strides[1] != 1:
        rows = emission.allocate(b.shape)
        emission.retain(rows)
        emission.copy(b, rows)
        product(emission, a, rows, out)
        emission.release(rows)
        return
    (m, inner), n = a.shape, b.shape[1]
    name = "_".join(map(str, ("product", m, inner, n, *a.strides, b.strides[0])))
    header = f"internal void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %out)"
    module = emission.module
    if not any(text.startswith(f"define {header} ") for text in module.functions):
        code = Code(module)
        _Product(code, inner, a.strides, b.strides[0]).write(m, n)
        code.do("ret void")
        module.function(header, code)
    pointers = ", ".join(f"ptr {emission.pointer(x)}" for x in (a, b, out))
    emission.code.do(f"call void @{name}({pointers})")


class _Product:
    """The code of one function; `of_a` and `of_b` are the strides of its operands."""

    def __init__(self, code: Code, inner: int, of_a: tuple[int, ...], of_b: int) -> None:
        self.code, self.inner, self.of_a, self.of_b = code, inner, of_a, of_b

    def write(self, m: int, n: int) -> None:
        """Write the loops over tiles of `m` rows and `n` columns."""
        whole = m // ROWS * ROWS
        self.code.loop(whole, lambda i: self.row_of_tiles(ROWS, n, i), step=ROWS)
        if m > whole:
            self.row_of_tiles(m - whole, n, str(whole))

    def row_of_tiles(self, rows: int, n: int, i: Name) -> None:
        """Write the tiles of some rows, from row i on."""
        code, vector = self.code, Simd(self.code, WIDTH)
        a, out = code.element("%a", i, self.of_a[0]), code.element("%out", i, n)
        width = VECTORS * WIDTH
        whole = n // width * width

        def tile(j: Name) -> None:
            self.tile(rows, [vector] * VECTORS, a, code.element("%b", j), code.element(out, j), n)

        code.loop(whole, tile, step=width)
        full, rest = divmod(n - whole, WIDTH)
        vectors = [vector] * full + [Simd(code, WIDTH, active=rest)] * (rest > 0)
        if vectors:
            self.tile(rows, vectors, a, code.element("%b", str(whole)), code.element(out, str(whole)), n)

    def tile(self, rows: int, vectors: list[Simd], a: Name, b: Name, out: Name, n: int) -> None:
        code, one = self.code, Simd(self.code, WIDTH)
        sums = [[code.variable(one.real) for _ in vectors] for _ in range(rows)]
        for row in sums:
            for place in row:
                code.do(f"store {one.real} zeroinitializer, ptr {place}, align 64")

        def step(k: Name) -> None:
            left, right = code.element(a, k, self.of_a[1]), code.element(b, k, self.of_b)
            columns = [v.load(code.element(right, str(c * WIDTH))) for c, v in enumerate(vectors)]
            for r, row in enumerate(sums):
                factor = one.splat(code.load(code.element(left, str(r * self.of_a[0]))))
                for place, column in zip(row, columns, strict=True):
                    before = code.emit(f"load {one.real}, ptr {place}, align 64")
                    after = one.intrinsic("fmuladd", factor, column, before)
                    code.do(f"store {one.real} {after}, ptr {place}, align 64")

        code.loop(self.inner, step)
        for r, row in enumerate(sums):
            for c, (v, place) in enumerate(zip(vectors, row, strict=True)):
                total = code.emit(f"load {one.real}, ptr {place}, align 64")
                v.store(total, code.element(out, str(r * n + c * WIDTH)))


LARGEST_UNROLLED = 8
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
