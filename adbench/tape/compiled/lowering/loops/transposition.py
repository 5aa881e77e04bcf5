"""Copy a matrix that is stored column by column, in blocks of 8 × 8 numbers that are transposed in registers.

A block of eight rows, as vectors, is transposed in three steps. The step for s = 1, 2, 4 exchanges the lanes with bit s
of row a with the lanes without it of row a + s.
"""

from __future__ import annotations

from adbench.tape.compiled.lowering.storage import Buffer
from adbench.tape.machine.simd import WIDTH, Code, Name, Simd


def is_transposed(source: Buffer, target: Buffer) -> bool:
    """Whether source[:, j] and target[i, :] are contiguous, and there is a block to copy."""
    same = source.shape == target.shape and len(source.shape) == 2 and min(source.shape) >= WIDTH
    return same and not source.boolean and source.strides[0] == 1 == target.strides[1] != source.strides[1]


def copy_blocks(code: Code, source: Buffer, target: Buffer) -> list[tuple[slice, slice]]:
    """Copy all whole blocks; returns the parts of the matrix that are left."""
    m, n = source.shape
    rows, columns = m - m % WIDTH, n - n % WIDTH
    vector, read, written = Simd(code, WIDTH), source.pointer(code), target.pointer(code)

    def across(i: Name) -> None:
        left, right = code.element(read, i), code.element(written, i, target.strides[0])

        def block(j: Name) -> None:
            first, last = code.element(left, j, source.strides[1]), code.element(right, j)
            lines = [vector.load(code.element(first, str(k * source.strides[1]))) for k in range(WIDTH)]
            for k, line in enumerate(vector.transposed(lines)):
                vector.store(line, code.element(last, str(k * target.strides[0])))

        code.loop(columns, block, step=WIDTH)

    code.loop(rows, across, step=WIDTH)
    left = [(slice(rows), slice(columns, n)), (slice(rows, m), slice(n))]
    return [part for part, is_empty in zip(left, (columns == n, rows == m), strict=True) if not is_empty]
