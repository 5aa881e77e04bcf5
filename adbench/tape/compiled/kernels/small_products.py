"""Generated code for products of matrices that fit in the processor's caches.

BLAS packs both matrices before it multiplies, which takes longer than the product of small ones. Here a tile of the
result, 8 rows by 24 columns, stays in registers while k runs over the inner axis:

    tile[r, :] ← tile[r, :] + a[r, k] b[k, :]

Each entry is one sum in the order of k, with fused multiplications. Only AVX-512 has registers for such tiles; other
processors use BLAS.
"""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd

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
        """Write one tile."""
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
