"""Eigenvalues and singular values of matrices of series, by lifting.

python-flint encloses them with proof at t = 0. Implicit differentiation then gives one coefficient after the other: an
orthogonal series U block-diagonalises A(t), with one block for each eigenvalue of A(0). A block of an eigenvalue μ of
multiplicity m > 1 is μ I + t C(t), and C is next: its eigenvalues are the slopes (Kato (1995), chapter II).

A repeated eigenvalue can only be proved if A(0) is exact: by the factors of its characteristic polynomial over the
rationals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_mat, fmpq, fmpq_mat

from adbench.oracle.series import ball
from adbench.oracle.series.algebra.coefficients import MatrixSeries, Rows, balls, convolved, minus, plus
from adbench.oracle.series.algebra.factorizations import is_nothing
from adbench.oracle.series.ball import NAN, ONE, ZERO, Ball, NeedsBits, NeedsTerms, Special, add

Pair = tuple[Ball, list[Ball]]
"""An eigenvalue and its eigenvector."""

MOST_EXACT = 16
"""The largest matrix whose characteristic polynomial over the rationals is factored."""


@dataclass
class EigenvalueCluster:
    """One eigenvalue at t = 0 and an orthonormal basis (n × multiplicity) of its eigenvectors."""

    value: Any
    basis: Any

    @property
    def size(self) -> int:
        """The multiplicity."""
        return int(self.basis.ncols())


def eigh(rows: Rows, *, vectors: bool = True) -> tuple[list[Ball], Rows]:
    """Eigenvalues ascending, and eigenvectors as columns, of the symmetric matrix with the lower triangle ``rows``.

    Without ``vectors``, ignore the second result. Raises NeedsBits if eigenvalues are too close to decide whether they
    are equal, NeedsTerms if eigenvectors depend on higher terms.
    """
    n = len(rows)
    full = [[rows[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    if any(isinstance(entry, Special) for row in full for entry in row):
        return [NAN] * n, [[NAN] * n for _ in range(n)]
    pairs = _of_components(full, functools.partial(_connected, vectors=vectors))
    ordered = functools.partial(_order, vectors)
    pairs.sort(key=functools.cmp_to_key(ordered))
    return [value for value, _ in pairs], [[column[i] for _, column in pairs] for i in range(n)]


def _order(vectors: bool, a: tuple[Ball, Any], b: tuple[Ball, Any]) -> int:
    try:
        return ball.order(a[0], b[0])
    except NeedsTerms:
        if vectors:
            raise
        return 0


def _of_components(rows: Rows, eigenpairs: Callable[[Rows], Iterable[Pair]]) -> list[Pair]:
    """The eigenpairs of a symmetric matrix from those of its components."""
    pairs = []
    for block in components(rows):
        for value, column in eigenpairs([[rows[i][j] for j in block] for i in block]):
            whole: list[Ball] = [ZERO] * len(rows)
            for place, entry in zip(block, column, strict=True):
                whole[place] = entry
            pairs.append((value, whole))
    return pairs


def components(rows: Rows) -> list[list[int]]:
    """The indices of a symmetric matrix in groups that no entry connects."""
    left, groups = set(range(len(rows))), []
    while left:
        group, new = set(), {min(left)}
        while new:
            group |= new
            new = {j for i in new for j in left - group if not is_nothing(rows[i][j])}
        left -= group
        groups.append(sorted(group))
    return groups


def _connected(rows: Rows, vectors: bool) -> Iterable[Pair]:
    """`eigh` of a matrix without infinities."""
    n = len(rows)
    if n == 1:
        return [(rows[0][0], [ONE])]
    matrix = MatrixSeries.of(rows)
    assert matrix is not None
    clusters = spectrum(matrix.parts[0])
    basis = side_by_side([cluster.basis for cluster in clusters])
    if matrix.terms is None:
        values: list[Ball] = [ball.ball(cluster.value) for cluster in clusters for _ in range(cluster.size)]
        return zip(values, basis.transpose().tolist(), strict=True)
    turned = [None if part is None else basis.transpose() * balls(part) * basis for part in matrix.parts]
    blocks, rotation = block_diagonal(turned, clusters)
    values, inner = [], [[ZERO] * n for _ in range(n)]
    first = 0
    for cluster in clusters:
        block = MatrixSeries(
            [cut(part, first, first, cluster.size, cluster.size) for part in blocks], matrix.terms, *[cluster.size] * 2
        )
        eigenvalues, turns = _of_block(cluster.value, block, vectors)
        values += eigenvalues
        for i in range(cluster.size):
            inner[first + i][first : first + cluster.size] = turns[i]
        first += cluster.size
    if not vectors:
        return zip(values, inner, strict=True)
    columns = MatrixSeries([basis], None, n, n) @ MatrixSeries(rotation, matrix.terms, n, n)
    if any(cluster.size > 1 for cluster in clusters):
        last = MatrixSeries.of(inner)
        assert last is not None
        columns = columns @ last
    return zip(values, columns.transposed().entries(), strict=True)


def _of_block(value: Any, block: MatrixSeries, vectors: bool) -> tuple[list[Ball], Rows]:
    """Eigenvalues and eigenvectors of value + t C(t)."""
    size, terms = block.rows, block.terms
    assert terms is not None
    if size == 1:
        coefficients = [value, *(ZERO if part is None else part[0, 0] for part in block.parts[1:])]
        return [ball.series(coefficients, terms)], [[ONE]]
    slopes = block.parts[1:]
    if all(part is None for part in slopes):
        if vectors and not ball.state.how.last:
            raise NeedsTerms
        return [ball.series([value], terms)] * size, _unit(size)
    slopes[0] = arb_mat(size, size) if slopes[0] is None else slopes[0]
    ball.state.edged = True
    values, turns = eigh(MatrixSeries(slopes, terms - 1, size, size).entries(), vectors=vectors)
    return [add(value, ball.shifted(v, 1)) for v in values], turns


def _unit(n: int) -> Rows:
    return [[ONE if i == j else ZERO for j in range(n)] for i in range(n)]


# Singular values ----------------------------------------------------------------------------------------------------

Triple = tuple[Rows, list[Ball], Rows]
"""Left vectors as columns, singular values descending, right vectors as columns."""


def svd(rows: Rows, *, vectors: bool = True) -> Triple:
    """The reduced singular value decomposition of a matrix with at least as many rows as columns.

    Without ``vectors``, use only the values. Raises as `eigh` does.
    """
    m, n = len(rows), len(rows[0])
    if any(isinstance(entry, Special) for row in rows for entry in row):
        return [[NAN] * n for _ in range(m)], [NAN] * n, [[NAN] * n for _ in range(n)]
    matrix = MatrixSeries.of(rows)
    assert matrix is not None
    parts = singular_spectrum(matrix.parts[0])
    if matrix.terms is not None:
        return _joined([part for part in _lifted(matrix, parts, vectors) if part[1]])
    return _joined([
        ([row[: right.size] for row in left.basis.tolist()], [left.value] * right.size, right.basis.tolist())
        for left, right in parts
        if right.size
    ])  # fmt: skip


def _joined(parts: list[Triple]) -> Triple:
    lefts, values, rights = zip(*parts, strict=True)
    beside = [[[x for row in rows for x in row] for rows in zip(*side, strict=True)] for side in (lefts, rights)]
    return beside[0], [value for some in values for value in some], beside[1]


def _lifted(
    matrix: MatrixSeries, parts: list[tuple[EigenvalueCluster, EigenvalueCluster]], vectors: bool
) -> Iterator[Triple]:
    """The decomposition of each cluster, by the eigenvectors of J = [[0, A], [A', 0]]: (u, v) of σ, (u, -v) of -σ, and
    those of 0."""
    m, n = matrix.rows, matrix.columns
    clusters = [cluster for left, right in parts for cluster in _of_symmetric(left, right)]
    basis = side_by_side([cluster.basis for cluster in clusters])
    turned = [None if part is None else basis.transpose() * _symmetric(balls(part)) * basis for part in matrix.parts]
    blocks, rotation = block_diagonal(turned, clusters)
    columns = (MatrixSeries([basis], None, m + n, m + n) @ MatrixSeries(rotation, matrix.terms, m + n, m + n)).parts
    root, first = arb(2).sqrt(), 0

    def turned_from(row: int, column: int, height: int, turn: Rows, scale: Any) -> Rows:
        """The vectors from this column on, their entries from this row on, scaled and turned."""
        cuts = [cut(part, row, column, height, len(turn)) for part in columns]
        cuts = [None if part is None else part * scale for part in cuts]
        by = MatrixSeries.of(turn)
        assert by is not None
        return (MatrixSeries(cuts, matrix.terms, height, len(turn)) @ by).entries()

    for left, right in parts:
        if is_nothing(left.value):
            couplings = [cut(part, first, first + left.size, left.size, right.size) for part in blocks[1:]]
            turns = _of_zero(couplings, left.size, right.size, vectors)
            at, scale = (first, first + left.size), ONE
        else:
            block = [cut(part, first, first, left.size, left.size) for part in blocks]
            values, turn = _of_block(left.value, MatrixSeries(block, matrix.terms, left.size, left.size), vectors)
            turn = [row[::-1] for row in turn]
            turns, at, scale = (turn, values[::-1], turn), (first, first), root
            first += left.size
        first += left.size + right.size * is_nothing(left.value)
        if right.size:
            yield turned_from(0, at[0], m, turns[0], scale), turns[1], turned_from(m, at[1], n, turns[2], scale)


def _of_symmetric(left: EigenvalueCluster, right: EigenvalueCluster) -> list[EigenvalueCluster]:
    """The clusters of J of one singular value."""
    if is_nothing(left.value):
        both = [[*row, *[ZERO] * right.size] for row in left.basis.tolist()]
        both += [[*[ZERO] * left.size, *row] for row in right.basis.tolist()]
        return [EigenvalueCluster(ZERO, arb_mat(both))]
    root = arb(0.5).sqrt()
    return [
        EigenvalueCluster(
            left.value * sign, arb_mat([*(left.basis * root).tolist(), *(right.basis * (root * sign)).tolist()])
        )
        for sign in (1, -1)
    ]


def _symmetric(a: Any) -> Any:
    """[[0, A], [A', 0]]."""
    m, n = a.nrows(), a.ncols()
    return arb_mat([[*[0] * m, *row] for row in a.tolist()] + [[*row, *[0] * n] for row in a.transpose().tolist()])


def _of_zero(couplings: list[Any], height: int, width: int, vectors: bool) -> Triple:
    """The singular value decomposition of t C(t)."""
    if all(part is None for part in couplings):
        if vectors and width and not ball.state.how.last:
            raise NeedsTerms
        return [row[:width] for row in _unit(height)], [ball.series([ZERO], len(couplings) + 1)] * width, _unit(width)
    couplings[0] = arb_mat(height, width) if couplings[0] is None else couplings[0]
    if width:
        ball.state.edged = True
    left, values, right = svd(MatrixSeries(couplings, len(couplings), height, width).entries(), vectors=vectors)
    return left, [ball.shifted(value, 1) for value in values], right


def singular_spectrum(matrix: Any) -> list[tuple[EigenvalueCluster, EigenvalueCluster]]:
    """Left and right vectors of each singular value of a constant matrix, descending; for 0 all of them."""
    m, n = matrix.nrows(), matrix.ncols()
    pairs, ball_matrix = [], balls(matrix)
    rest = arb_mat(m, m, [int(i == j) for i in range(m) for j in range(m)])
    at_zero = arb_mat(n, 0)
    for cluster in reversed(spectrum(matrix.transpose() * matrix)):
        if _decided(cluster.value) == 0:
            at_zero = cluster.basis
            continue
        value = arb(cluster.value).sqrt()
        left = ball_matrix * cluster.basis * (1 / value)
        rest = rest - left * left.transpose()
        pairs.append((EigenvalueCluster(value, left), EigenvalueCluster(value, cluster.basis)))
    free = m - n + at_zero.ncols()
    if free:
        pairs.append((EigenvalueCluster(ZERO, range_of(rest, free)), EigenvalueCluster(ZERO, at_zero)))
    return pairs


# At t = 0 ---------------------------------------------------------------------------------------------------------


def spectrum(matrix: Any) -> list[EigenvalueCluster]:
    """The eigenvalues of a constant symmetric matrix with their multiplicities, ascending."""
    rows = matrix.tolist()
    try:
        return _merged(_of_components(rows, _simple))
    except NeedsBits:
        return _repeated(rows)


def _merged(pairs: list[Pair]) -> list[EigenvalueCluster]:
    """Eigenpairs in ascending order; exactly equal eigenvalues together."""
    pairs.sort(key=functools.cmp_to_key(_ascending))
    groups: list[list[Pair]] = []
    for pair in pairs:
        if groups and _decided(groups[-1][0][0] - pair[0]) == 0:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return [EigenvalueCluster(group[0][0], arb_mat([column for _, column in group]).transpose()) for group in groups]


def _ascending(a: tuple[Any, Any], b: tuple[Any, Any]) -> int:
    return _decided(a[0] - b[0])


def _decided(c: Any) -> int:
    """The sign of a constant, never guessed."""
    if c > 0 or c < 0:
        return 1 if c > 0 else -1
    if c == 0 if type(c) is fmpq else c.is_zero():
        return 0
    raise NeedsBits


def _simple(rows: Rows) -> list[Pair]:
    """Eigenpairs of a matrix with distinct and, if it is exact, nonzero eigenvalues. Otherwise raises NeedsBits."""
    if len(rows) == 1:
        return [(rows[0][0], [ONE])]
    matrix = arb_mat(rows)
    try:
        values, vectors = matrix.eig(right=True)
    except ValueError as not_isolated:
        raise NeedsBits from not_isolated
    n, pairs = len(rows), []
    for k, value in enumerate(values):
        if value.real.contains(0) and _fractions(rows) is not None:
            raise NeedsBits
        column = [vectors[i, k] for i in range(n)]
        largest = max(column, key=lambda z: abs(z.mid()).mid())
        real = [(z / largest).real for z in column]  # the eigenvector of a real matrix, up to a complex factor
        length = sum((x * x for x in real), ZERO).sqrt()
        pairs.append((value.real, [x / length for x in real]))
    return pairs


def _fractions(rows: Rows) -> Any | None:
    """A matrix of exact numbers as one of fractions."""
    if not all(type(x) is fmpq or x.is_exact() for row in rows for x in row):
        return None
    return fmpq_mat([[x if type(x) is fmpq else x.fmpq() for x in row] for row in rows])


def _repeated(rows: Rows) -> list[EigenvalueCluster]:
    """`spectrum` by the characteristic polynomial over the rationals."""
    n = len(rows)
    exact = _fractions(rows) if n <= MOST_EXACT else None
    if exact is None:
        raise NeedsBits
    roots: list[tuple[Any, int]] = []
    for factor, multiplicity in exact.charpoly().numer().factor()[1]:
        if factor.degree() == 1:
            roots.append((fmpq(-factor[0], factor[1]), multiplicity))
        else:
            roots += [(root.real, multiplicity) for root, _ in factor.complex_roots()]
    roots.sort(key=functools.cmp_to_key(_ascending))
    matrix, unit = arb_mat(exact), arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
    clusters = []
    for value, multiplicity in roots:
        projector = unit
        for other, _ in roots:
            if other is not value:
                projector = projector * (matrix - unit * arb(other)) * (1 / (arb(value) - arb(other)))
        clusters.append(EigenvalueCluster(value, range_of(projector, multiplicity)))
    return clusters


def range_of(projector: Any, rank: int) -> Any:
    """An orthonormal basis (n × rank) of the range of an orthogonal projector."""
    n, columns = projector.nrows(), []
    for _ in range(rank):
        pivot = max(range(n), key=lambda i: projector[i, i].mid())
        squared = projector[pivot, pivot]
        if not squared > 0:
            raise NeedsBits
        column = arb_mat(n, 1, [projector[i, pivot] / squared.sqrt() for i in range(n)])
        projector = projector - column * column.transpose()
        columns.append(column)
    return side_by_side(columns) if columns else arb_mat(n, 0)


def side_by_side(matrices: list[Any]) -> Any:
    """[A, B, …]."""
    rows = [[x for part in parts for x in part] for parts in zip(*(m.tolist() for m in matrices), strict=True)]
    return arb_mat(rows)


def cut(matrix: Any, row: int, column: int, height: int, width: int) -> Any:
    """A part of a coefficient; None if it is zero."""
    if matrix is None:
        return None
    entries = [matrix[row + i, column + j] for i in range(height) for j in range(width)]
    return arb_mat(height, width, entries) if any(not x.is_zero() for x in entries) else None


# Just after -------------------------------------------------------------------------------------------------------


def block_diagonal(parts: list[Any], clusters: list[EigenvalueCluster]) -> tuple[list[Any], list[Any]]:
    """B and an orthogonal U, U(0) = I, with S U = U B: S is given by its coefficients, B has a block for each cluster.

    S(0) is diagonal, with the values of the clusters. Diagonal blocks of U's coefficients are symmetric.
    """
    place = [k for k, cluster in enumerate(clusters) for _ in range(cluster.size)]
    values = [arb(clusters[k].value) for k in place]
    n = len(place)
    rotation: list[Any] = [arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])]
    blocks: list[Any] = [arb_mat(n, n, [values[i] if i == j else 0 for i in range(n) for j in range(n)])]
    for k in range(1, len(parts)):
        rest = convolved(parts, rotation, k, first=1)
        rest = minus(rest, convolved(rotation, [None, *blocks[1:]], k, first=1)) if k > 1 else rest
        square = None
        for j in range(1, k):
            if rotation[j] is not None and rotation[k - j] is not None:
                square = plus(square, rotation[j].transpose() * rotation[k - j])
        turn, block = arb_mat(n, n), arb_mat(n, n)
        for i in range(n):
            for j in range(n):
                if place[i] != place[j]:
                    turn[i, j] = ZERO if rest is None else rest[i, j] / (values[j] - values[i])
                else:
                    turn[i, j] = ZERO if square is None else square[i, j] / -2
                    block[i, j] = ZERO if rest is None else rest[i, j]
        rotation.append(cut(turn, 0, 0, n, n))
        blocks.append(cut(block, 0, 0, n, n))
    return blocks, rotation
