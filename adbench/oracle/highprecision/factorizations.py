"""LU, Cholesky, QR and the symmetric eigenproblem on lists of rows of raw numbers: (rows, …, bits) -> rows."""

from __future__ import annotations

from mpmath import libmp

from adbench.oracle.highprecision.real import NAN, NEAREST, ONE, ZERO, Raw, divide

Rows = list[list[Raw]]


def dot(a: list[Raw], b: list[Raw], bits: int, start: Raw = ZERO) -> Raw:
    """start + Σ a_k b_k, rounded at every step."""
    for x, y in zip(a, b, strict=True):
        start = libmp.mpf_add(start, libmp.mpf_mul(x, y), bits, NEAREST)
    return start


def lu(rows: Rows, bits: int) -> tuple[Rows, list[int], int]:
    """P A = L U with row exchanges: L and U in one matrix, the order of the rows, the sign of that order."""
    n = len(rows)
    if any(len(row) != n for row in rows):
        raise ValueError(f"a square matrix is needed, not {n} × {len(rows[0])}")
    work, order, sign = [list(row) for row in rows], list(range(n)), 1
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if libmp.mpf_gt(libmp.mpf_abs(work[i][k]), libmp.mpf_abs(work[best][k])):
                best = i
        if best != k:
            work[k], work[best], order[k], order[best], sign = work[best], work[k], order[best], order[k], -sign
        pivot, pivot_row = work[k][k], work[k]
        if pivot == ZERO:
            continue
        for i in range(k + 1, n):
            row = work[i]
            if row[k] == ZERO:
                continue
            row[k] = factor = libmp.mpf_div(row[k], pivot, bits, NEAREST)
            for j in range(k + 1, n):
                row[j] = libmp.mpf_sub(row[j], libmp.mpf_mul(factor, pivot_row[j]), bits, NEAREST)
    return work, order, sign


def solve(rows: Rows, right: Rows, bits: int) -> Rows:
    """X with A X = B, one column of B at a time. Infinite or NaN where A is singular."""
    work, order, _ = lu(rows, bits)
    n, columns = len(rows), []
    for j in range(len(right[0])):
        x: list[Raw] = []
        for i in range(n):
            x.append(libmp.mpf_sub(right[order[i]][j], dot(work[i][:i], x, bits), bits, NEAREST))
        for i in reversed(range(n)):
            rest = dot(work[i][i + 1 :], x[i + 1 :], bits)
            x[i] = divide(libmp.mpf_sub(x[i], rest, bits, NEAREST), work[i][i], bits)
        columns.append(x)
    return [[column[i] for column in columns] for i in range(n)]


def cholesky(rows: Rows, bits: int) -> Rows:
    """Lower L with L L' = A, from the lower triangle; all NaN where A is not positive definite."""
    n = len(rows)
    lower: Rows = [[ZERO] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = libmp.mpf_sub(rows[i][j], dot(lower[i][:j], lower[j][:j], bits), bits, NEAREST)
            if i == j:
                if not libmp.mpf_gt(rest, ZERO):
                    return [[NAN] * n for _ in range(n)]
                lower[i][i] = libmp.mpf_sqrt(rest, bits, NEAREST)
            else:
                lower[i][j] = libmp.mpf_div(rest, lower[j][j], bits, NEAREST)
    return lower


def eigh(rows: Rows, bits: int, most_sweeps: int = 60) -> Rows:
    """Jacobi's rotations: the eigenvectors as columns, and below them one row of eigenvalues, ascending.

    Each rotation makes one off-diagonal entry zero; the sweeps end when all of them are below the last bit of the
    diagonal. Converges quadratically, and clusters do no harm.
    """
    n = len(rows)
    a: Rows = [[rows[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    v: Rows = [[ONE if i == j else ZERO for j in range(n)] for i in range(n)]
    size = max((libmp.mpf_abs(x)[2] + libmp.mpf_abs(x)[3] for row in a for x in row if x[1]), default=0)
    for _ in range(most_sweeps):
        rotated = False
        for p in range(n - 1):
            for q in range(p + 1, n):
                # Entries of the size of the last bit squared change no eigenvector any more.
                if a[p][q][1] and a[p][q][2] + a[p][q][3] > size - 2 * bits:
                    _rotate(a, v, p, q, bits)
                    rotated = True
        if not rotated:
            break
    order = sorted(range(n), key=lambda k: _Sortable(a[k][k]))
    return [[v[i][k] for k in order] for i in range(n)] + [[a[k][k] for k in order]]


class _Sortable:
    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def __lt__(self, other: _Sortable) -> bool:
        return bool(libmp.mpf_lt(self.raw, other.raw))


def _rotate(a: Rows, v: Rows, p: int, q: int, bits: int) -> None:
    """A ← J' A J, V ← V J with the rotation J in the plane (p, q) that makes a[p][q] zero."""
    wide = bits + 10
    gap = libmp.mpf_sub(a[q][q], a[p][p], wide, NEAREST)
    half = libmp.mpf_div(gap, libmp.mpf_shift(a[p][q], 1), wide, NEAREST)
    root = libmp.mpf_sqrt(libmp.mpf_add(ONE, libmp.mpf_mul(half, half), wide, NEAREST), wide, NEAREST)
    t = libmp.mpf_div(ONE, libmp.mpf_add(libmp.mpf_abs(half), root, wide, NEAREST), wide, NEAREST)
    t = libmp.mpf_neg(t) if libmp.mpf_sign(half) < 0 else t
    length = libmp.mpf_sqrt(libmp.mpf_add(ONE, libmp.mpf_mul(t, t), wide, NEAREST), wide, NEAREST)
    c = libmp.mpf_div(ONE, length, wide, NEAREST)
    s = libmp.mpf_mul(t, c, wide, NEAREST)
    for row in a:
        row[p], row[q] = _turned(row[p], row[q], c, s, bits)
    pairs = [_turned(x, y, c, s, bits) for x, y in zip(a[p], a[q], strict=True)]
    a[p], a[q] = [x for x, _ in pairs], [y for _, y in pairs]
    a[p][q] = a[q][p] = ZERO
    for row in v:
        row[p], row[q] = _turned(row[p], row[q], c, s, bits)


def _turned(x: Raw, y: Raw, c: Raw, s: Raw, bits: int) -> tuple[Raw, Raw]:
    return (
        libmp.mpf_sub(libmp.mpf_mul(c, x), libmp.mpf_mul(s, y), bits, NEAREST),
        libmp.mpf_add(libmp.mpf_mul(s, x), libmp.mpf_mul(c, y), bits, NEAREST),
    )


def qr(rows: Rows, bits: int) -> Rows:
    """Reduced Q and R by Householder's reflections, side by side: (m × k) Q, then R' (padded with zeros to m rows)."""
    m, n = len(rows), len(rows[0])
    k = min(m, n)
    work = [list(row) for row in rows]
    q: Rows = [[ONE if i == j else ZERO for j in range(m)] for i in range(m)]
    for step in range(min(m - 1, n)):
        column = [work[i][step] for i in range(step, m)]
        length = libmp.mpf_sqrt(dot(column, column, bits), bits, NEAREST)
        if length == ZERO:
            continue
        beta = libmp.mpf_neg(length) if libmp.mpf_sign(column[0]) >= 0 else length
        v = [libmp.mpf_sub(column[0], beta, bits, NEAREST), *column[1:]]
        scale = divide(libmp.from_int(2), dot(v, v, bits), bits)
        _reflect(work, v, scale, step, bits)
        _reflect(q, v, scale, step, bits)
    height = max(m, n)
    padded: Rows = [
        ([q[j][i] for j in range(k)] if i < m else [ZERO] * k)
        + ([work[j][i] if j <= i else ZERO for j in range(k)] if i < n else [ZERO] * k)
        for i in range(height)
    ]
    return padded


def _reflect(rows: Rows, v: list[Raw], scale: Raw, first: int, bits: int) -> None:
    """rows[first:] ← (1 - scale v v') rows[first:]."""
    for j in range(len(rows[0])):
        along = dot(v, [row[j] for row in rows[first:]], bits)
        along = libmp.mpf_mul(scale, along, bits, NEAREST)
        for i, x in enumerate(v):
            row = rows[first + i]
            row[j] = libmp.mpf_sub(row[j], libmp.mpf_mul(x, along), bits, NEAREST)
