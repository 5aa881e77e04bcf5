"""`xp.linalg` over balls.

In double precision, backward stable algorithms are exact for a nearby matrix. So noise is a perturbation of the matrix
(`Real.matrix`), and once more of the results (`Real.rounded`); the algorithms themselves run without noise (Golub and
Van Loan (2013), sections 3.4, 4.2, 5.2, 8.5).
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.oracle.series import ball, triangles
from adbench.oracle.series.algebra import complex_matrices, spectra
from adbench.oracle.series.algebra import factorizations as fac
from adbench.oracle.series.algebra.coefficients import Rows
from adbench.oracle.series.arrays import COMPLEX, Objects, RealArray, balls_of, holds_complex, objects

Vectors = Callable[[Any], Any]
"""A function of matrices of float64: a library's eigenvectors or left singular vectors, as columns. A decomposition
leaves their signs open, so the oracle takes those of the library whose results it judges."""

_COMPLEX_LU = np.vectorize(complex_matrices.lu, otypes="Oll", signature="(n,n)->(n,n),(n),()")
_COMPLEX_CHOLESKY = np.vectorize(complex_matrices.cholesky, otypes="O", signature="(n,n)->(n,n)")


SlogdetSeries = namedtuple("SlogdetSeries", "sign logabsdet")
EighSeries = namedtuple("EighSeries", "eigenvalues eigenvectors")
QRSeries = namedtuple("QRSeries", "Q R")
SVDSeries = namedtuple("SVDSeries", "U S Vh")
"""A = U diag(S) Vh, S descending."""


class Linalg:
    """The functions of `xp.linalg`; leading axes are batches. `xp` is the `Balls` namespace it belongs to."""

    cross, diagonal, matrix_transpose = (
        staticmethod(np.cross),
        staticmethod(np.diagonal),
        staticmethod(np.matrix_transpose),
    )
    outer: Any = staticmethod(np.outer)
    tensordot: Any = staticmethod(np.tensordot)
    trace: Any = staticmethod(np.trace)

    def __init__(self, xp: Any) -> None:
        self._xp, self._real = xp, xp.number
        self.matmul, self.vecdot = xp.matmul, xp.vecdot

    # Products --------------------------------------------------------------------------------------------------

    def multi_dot(self, arrays: Sequence[Any]) -> Any:
        """a @ b @ …."""
        return functools.reduce(self.matmul, arrays)

    def matrix_power(self, a: Any, n: int) -> Any:
        """a @ a @ … , n times; the inverse for negative n."""
        base = self.inv(a) if n < 0 else self._xp.reals(a)
        result = self._xp.eye(base.shape[-1])
        for _ in range(abs(n)):
            result = self.matmul(result, base)
        return result

    def vector_norm(self, x: Any, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
        """(Σ |x|^ord)^(1/ord); ±inf: the largest, smallest."""
        xp = self._xp
        size = xp.abs(x)
        if ord in (np.inf, -np.inf):
            return (xp.max if ord > 0 else xp.min)(size, axis, keepdims=keepdims)
        if ord == 1:
            return xp.sum(size, axis, keepdims=keepdims)
        if ord == 2:
            return xp.sqrt(xp.sum(size * size, axis, keepdims=keepdims))
        return xp.sum(size**ord, axis, keepdims=keepdims) ** (1 / xp.number.of(ord))

    def matrix_norm(self, x: Any, *, keepdims: Any = False, ord: Any = "fro") -> Any:
        """Frobenius by default; 1, inf, 2 and "nuc"."""
        xp = self._xp
        if ord == "fro":
            return self.vector_norm(x, axis=(-2, -1), keepdims=keepdims)
        if ord in (2, "nuc"):
            values = self.svdvals(x)
            return xp.max(values, -1) if ord == 2 else xp.sum(values, -1)
        return xp.max(xp.sum(xp.abs(x), -2 if ord == 1 else -1), -1)

    def norm(self, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
        """numpy's name for both norms."""
        if ord in (None, "fro") or axis is not None or np.ndim(x) == 1:
            return self.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord in (None, "fro") else ord)
        return self.matrix_norm(x, keepdims=keepdims, ord=ord)

    # Systems ---------------------------------------------------------------------------------------------------

    def det(self, a: Any) -> Any:
        """The determinant, also of a singular matrix."""
        if (pivots := self._pivots(a)) is not None:
            return self._xp.prod(pivots[0], -1) * pivots[1]
        (determinants,) = self._each(lambda rows: ([[fac.determinant(rows)]],), a)
        return determinants[..., 0, 0][()]

    def slogdet(self, a: Any) -> SlogdetSeries:
        """The sign of the determinant and the logarithm of its size (0 and -inf if singular)."""
        if (pair := self._pivots(a)) is not None:
            xp, (pivots, signs) = self._xp, pair
            return SlogdetSeries(xp.prod(xp.sign(pivots), -1) * signs, xp.sum(xp.log(xp.abs(pivots)), -1))

        def compute(rows: Rows) -> tuple[Rows, Rows]:
            sign, log = fac.log_determinant(rows)
            return [[sign]], [[log]]

        sign, log = self._each(compute, a)
        exact_sign = np.frompyfunc(lambda s: self._real(ball.sign_of(s.ball)), 1, 1)
        return SlogdetSeries(exact_sign(sign[..., 0, 0][()]), log[..., 0, 0][()])

    def _pivots(self, a: Any) -> tuple[Any, Any] | None:
        """The pivots of complex matrices, and the signs of the orders of their rows; None for real ones."""
        if not holds_complex(a):
            return None
        packed, _, signs = self._complex_lu(a)
        return np.diagonal(packed, axis1=-2, axis2=-1), signs

    def solve(self, a: Any, b: Any) -> Any:
        """x with a x = b."""
        right = np.asarray(self._xp.reals(b), dtype=object)
        vector = right.ndim == 1
        columns = right[:, None] if vector else right
        if holds_complex(a) or holds_complex(b):
            embedded, stacked = complex_matrices.embedded(self._xp, a), complex_matrices.stacked(self._xp, columns)
            solution = COMPLEX(*np.split(np.asarray(self.solve(embedded, stacked)), 2, axis=-2))
            return solution[..., 0] if vector else solution
        (solution,) = self._each(lambda rows, right: (fac.solve(rows, right),), a, columns)
        return solution[..., 0] if vector else solution

    def inv(self, a: Any) -> Any:
        """The inverse."""
        if holds_complex(a):
            return self.solve(a, self._xp.eye(np.shape(a)[-1]))
        return self._each(lambda rows: (fac.inverse(rows),), a)[0]

    def expm(self, a: Any) -> Any:
        """The exponential of square matrices."""
        return self._each(lambda rows: (fac.exponential(rows),), a, mixing=True)[0]

    def lstsq(self, a: Any, b: Any) -> Any:
        """The least-squares solution by the normal equations: balls tolerate the squared condition number."""
        transposed = np.swapaxes(self._xp.reals(a), -1, -2)
        return self.solve(self.matmul(transposed, a), self.matmul(transposed, b))

    def pinv(self, a: Any) -> Any:
        """(A'A)^-1 A', or A' (AA')^-1 for a wide matrix: of full rank."""
        a = self._xp.reals(a)
        transposed = np.swapaxes(a, -1, -2)
        if a.shape[-2] >= a.shape[-1]:
            return self.matmul(self.inv(self.matmul(transposed, a)), transposed)
        return self.matmul(transposed, self.inv(self.matmul(a, transposed)))

    def lu(self, a: Any) -> tuple[Any, Any]:
        """L and U in one matrix with P A = L U, and the order of A's rows in P A."""

        def compute(rows: Rows) -> tuple[Rows, Rows]:
            packed, order, _ = fac.lu(rows)
            return packed, [[ball.constant(row) for row in order]]

        if holds_complex(a):
            return self._complex_lu(a)[:2]
        packed, order = self._each(compute, a)
        return packed, np.array(np.frompyfunc(int, 1, 1)(order[..., 0, :]), dtype=np.int64)

    def _complex_lu(self, a: Any) -> tuple[Any, Any, Any]:
        """`lu` of complex matrices, and the sign of the order of the rows. Every operation has its own noise, too."""
        packed, order, signs = _COMPLEX_LU(self._perturbed(a))
        return packed.view(RealArray), order, signs

    def _perturbed(self, a: Any) -> Any:
        """The complex matrices for which the results of an algorithm in double precision are exact."""
        (both,) = self._each(lambda rows: (rows,), complex_matrices.embedded(self._xp, a), mixing=True)
        n = both.shape[-1] // 2
        return COMPLEX(both[..., :n, :n], both[..., n:, :n])

    def cholesky(self, a: Any, *, upper: Any = False) -> Any:
        """L with L L' = A, or with ``upper`` L'; reads that triangle only. NaN if A is not positive definite."""
        a = self._xp.reals(a)
        if holds_complex(a):
            matrices = complex_matrices.hermitian(_adjoint(a) if upper else a)  # before noise makes it unsymmetric
            lower = _COMPLEX_CHOLESKY(self._perturbed(matrices))
            return (_adjoint(lower) if upper else lower).view(RealArray)
        half, skew = triangles.read("cholesky", np.swapaxes(a, -1, -2) if upper else a)
        (lower,) = self._each(lambda rows: (fac.cholesky(rows),), half, symmetric=True)
        if skew is not None:  # dL = L times the lower triangle, with half of the diagonal, of L^-1 dA L^-T
            inner = self.solve(lower, np.swapaxes(self.solve(lower, np.swapaxes(skew, -1, -2)), -1, -2))
            lower = lower + self.matmul(lower, np.tril(inner, -1))
        return np.swapaxes(lower, -1, -2) if upper else lower

    def pinvh(self, a: Any) -> Any:
        """The pseudo-inverse of the symmetric matrix with a's lower triangle: of full rank."""
        half, skew = triangles.read("pinv", self._xp.reals(a))
        symmetric = np.tril(half) + np.swapaxes(np.tril(half, -1), -1, -2)
        return self.pinv(symmetric if skew is None else symmetric + skew)

    def solve_triangular(self, a: Any, b: Any, *, lower: Any = False, trans: Any = 0) -> Any:
        """x with a x = b, reading one triangle only."""
        a = self._xp.reals(a)
        triangle = np.tril(a) if lower else np.triu(a)
        return self.solve(np.swapaxes(triangle, -1, -2) if trans else triangle, b)

    def cho_solve(self, factor: Any, b: Any, *, lower: Any = False) -> Any:
        """x with A x = b of the factor of A: L L' = A, or with `lower` false L'."""
        triangle = factor if lower else np.swapaxes(factor, -1, -2)
        half = self.solve_triangular(triangle, b, lower=True)
        return self.solve_triangular(np.swapaxes(triangle, -1, -2), half)

    # Spectra ---------------------------------------------------------------------------------------------------

    def eigh(self, a: Any, *, upper: Any = False, like: Vectors | None = None) -> EighSeries:
        """Eigenvalues ascending and eigenvectors of the symmetric matrix with a's lower triangle, or its upper one.

        Complex matrices are Hermitian. Real eigenvectors have the signs that ``like`` gives them.
        """
        if holds_complex(a):
            a = complex_matrices.hermitian(_adjoint(a) if upper else a)
            values, vectors = self.eig(a, np.linalg.eigvalsh)
            return EighSeries(self._xp.real(values), vectors)
        values, vectors, skew = self._eigh(a, upper, vectors=True)
        if skew is not None:  # dV = V (F ∘ V' dA V) with F_ij = 1 / (w_j - w_i)
            xp, one = self._xp, np.eye(values.shape[-1], dtype=bool)
            gaps = np.where(one, xp.reals(1), values[..., None, :] - values[..., :, None])
            turned = self.matmul(np.swapaxes(vectors, -1, -2), self.matmul(skew, vectors))
            vectors = vectors + self.matmul(vectors, np.where(one, xp.reals(0), turned / gaps))
        return EighSeries(values, np.where(self._opposed(vectors, a, like), -vectors, vectors))

    def eigvalsh(self, a: Any, *, upper: Any = False) -> Any:
        """Eigenvalues of a symmetric matrix, ascending."""
        if holds_complex(a):
            return self.eigh(a, upper=upper).eigenvalues
        return self._eigh(a, upper, vectors=False)[0]

    def _eigh(self, a: Any, upper: bool, *, vectors: bool) -> tuple[Any, Any, Any]:
        def compute(rows: Rows) -> tuple[Rows, Rows]:
            values, columns = spectra.eigh(rows, vectors=vectors)
            return [values], columns

        a = self._xp.reals(a)
        half, skew = triangles.read("eigh", np.swapaxes(a, -1, -2) if upper else a)
        values, columns = self._each(compute, half, symmetric=True, mixing=True)
        return values[..., 0, :], columns, skew if skew is None or not upper else np.swapaxes(skew, -1, -2)

    def eig(self, a: Any, library: Callable[[Any], Any] = np.linalg.eigvals) -> EighSeries:
        """Eigenvalues and eigenvectors of any matrix, in the order of this function of arrays; they must differ."""

        def compute(rows: Rows) -> tuple[Rows, Rows]:
            n = len(rows) // 2
            real, imag = ([row[:n] for row in half] for half in (rows[:n], rows[n:]))
            return complex_matrices.eigenpairs(real, imag, next(orders))

        a = np.asarray(self._xp.reals(a), dtype=object)
        orders = iter(np.reshape(library(complex_matrices.approximate(a)), (-1, a.shape[-1])))
        found = COMPLEX(*self._each(compute, complex_matrices.embedded(self._xp, a), mixing=True)).view(RealArray)
        return EighSeries(found[..., 0, :], found[..., 1:, :])

    def eigvals(self, a: Any) -> Any:
        """Eigenvalues of any matrix, in the order of LAPACK."""
        return self.eig(a).eigenvalues

    def qr(self, a: Any, mode: str = "reduced") -> QRSeries:
        """Householder's Q R, with LAPACK's signs (R's diagonal opposes the column it eliminates)."""
        if holds_complex(a):
            return self._complex_qr(self._xp.reals(a))
        return QRSeries(*self._each(fac.qr, a, mixing=True))

    def _complex_qr(self, a: Any) -> QRSeries:
        """Q R with R^H the Cholesky factor of A^H A, and the signs of R's diagonal, which LAPACK makes real."""
        first = a[..., : a.shape[-2]]
        mirrored = _adjoint(first)
        r_of_first = _adjoint(self.cholesky(self.matmul(mirrored, first)))
        signs = np.sign(np.linalg.qr(complex_matrices.approximate(first)).R.real.diagonal(axis1=-2, axis2=-1))
        r_of_first = np.where(signs[..., None] < 0, -r_of_first, r_of_first)
        q = _adjoint(self.solve_triangular(_adjoint(r_of_first), mirrored, lower=True))
        rest = self.matmul(_adjoint(q), a[..., a.shape[-2] :])
        return QRSeries(q, np.concatenate((r_of_first, rest), axis=-1).view(RealArray))

    def svd(self, a: Any, *, full_matrices: Any = False, like: Vectors | None = None) -> SVDSeries:
        """The reduced form. U has the signs that ``like`` gives it."""
        if full_matrices:
            raise NotImplementedError("svd over balls: full_matrices=False only")
        u, s, vh = self._svd(a, vectors=True)
        opposed = self._opposed(u, a, like)
        return SVDSeries(np.where(opposed, -u, u), s, np.where(np.swapaxes(opposed, -1, -2), -vh, vh))

    def svdvals(self, a: Any) -> Any:
        """Singular values, descending."""
        return self._svd(a, vectors=False)[1]

    def _svd(self, a: Any, *, vectors: bool) -> tuple[Any, Any, Any]:
        a = self._xp.reals(a)
        if a.shape[-2] < a.shape[-1]:
            u, s, vh = self._svd(_adjoint(a), vectors=vectors)
            return _adjoint(vh), s, _adjoint(u)
        if holds_complex(a):
            return self._complex_svd(a)

        def compute(rows: Rows) -> tuple[Rows, Rows, Rows]:
            left, values, right = spectra.svd(rows, vectors=vectors)
            return left, [values], right

        u, s, v = self._each(compute, a, mixing=True)
        return u, s[..., 0, :], np.swapaxes(v, -1, -2)

    def _complex_svd(self, a: Any) -> tuple[Any, Any, Any]:
        """By the eigenvectors (u, v) / √2 of [[0, R], [R^H, 0]] with A = Q R: of different values, with any phases."""
        q, r = self._complex_qr(a)
        n, zeros = r.shape[-1], self._xp.zeros(r.shape)
        both = [np.concatenate(pair, axis=-1) for pair in ((zeros, r), (_adjoint(r), zeros))]
        values, vectors = self.eigh(np.concatenate(both, axis=-2))
        pairs = self._xp.sqrt(self._xp.reals(2)) * vectors[..., : -n - 1 : -1]
        return self.matmul(q, pairs[..., :n, :]), values[..., : -n - 1 : -1], _adjoint(pairs[..., n:, :])

    def _opposed(self, vectors: Any, matrices: Any, like: Vectors | None) -> Any:
        """Which vectors, columns here, have the other sign in the library; without ``like``, none."""
        at, ours = (complex_matrices.approximate(self._xp.reals(part)).real for part in (matrices, vectors))
        if like is None or not np.isfinite(at).all():
            return np.zeros((*ours.shape[:-2], 1, ours.shape[-1]), dtype=bool)
        return np.sum(np.asarray(like(at), dtype=np.float64) * ours, axis=-2, keepdims=True) < 0.0

    def _each(
        self, compute: Callable[..., tuple[Rows, ...]], *matrices: Any, symmetric: bool = False, mixing: bool = False
    ) -> list[Objects]:
        """``compute`` on every matrix of a batch; only the first of ``matrices`` is perturbed."""
        self._xp.check_time()
        arrays = [np.asarray(self._xp.reals(matrix), dtype=object) for matrix in matrices]
        if any(map(holds_complex, arrays)):
            raise TypeError("the namespace over balls has no such function of complex matrices")
        if any(array.ndim < 2 for array in arrays) or (symmetric and arrays[0].shape[-1] != arrays[0].shape[-2]):
            raise ValueError(f"expected matrices; got shapes  {', '.join(str(array.shape) for array in arrays)}")
        batch = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
        arrays = [np.broadcast_to(array, batch + array.shape[-2:]) for array in arrays]
        results = []
        for place in np.ndindex(*batch):
            rows = [balls_of(array[place]) for array in arrays]
            rows[0] = self._real.matrix(rows[0], symmetric=symmetric, mixing=mixing)
            results.append(compute(*rows))
        return [self._array(matrices, batch) for matrices in zip(*results, strict=True)]

    def _array(self, matrices: tuple[Rows, ...], batch: tuple[int, ...]) -> Objects:
        real, height = self._real, len(matrices[0])
        numbers = [real(real.rounded(value)) for rows in matrices for row in rows for value in row]
        return objects(numbers, (*batch, height, len(matrices[0][0]) if height else 0))


def _adjoint(a: Any) -> Any:
    """A^H; A' of real matrices."""
    return np.conj(np.swapaxes(a, -1, -2)) if holds_complex(a) else np.swapaxes(a, -1, -2)
