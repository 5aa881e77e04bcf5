"""`xp.linalg` at high precision: textbook algorithms on rows of raw numbers.

Backward stable algorithms in double precision are right for a matrix near the given one. So Monte Carlo arithmetic
enters here as a perturbation of the matrix, u ξ √(largest of row × largest of column) per entry (elimination does not
mix scales; rotations and reflections do: u ξ × largest of all), and once more in the results; the algorithms
themselves run unperturbed (Golub and Van Loan (2013), sections 3.4, 4.2, 5.2, 8.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mpmath import libmp

from adbench.oracle.highprecision import factorizations as fac
from adbench.oracle.highprecision.products import Objects, RealArray, matmul
from adbench.oracle.highprecision.real import NEAREST, ZERO, Raw


class SlogdetResult(NamedTuple):
    """det = sign × exp(logabsdet)."""

    sign: Any
    logabsdet: Any


class EighResult(NamedTuple):
    """A = V diag(w) V', w ascending."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """A = Q R."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """A = U diag(S) Vh, S descending."""

    U: Any
    S: Any
    Vh: Any


class Linalg:
    """The functions of `xp.linalg`; leading axes are batches. `xp` is the `HighPrecision` namespace it belongs to."""

    def __init__(self, xp: Any) -> None:
        self._xp, self._real = xp, xp.real
        self.matrix_transpose, self.outer, self.trace, self.diagonal = (
            np.matrix_transpose,
            np.outer,
            np.trace,
            np.diagonal,
        )
        self.tensordot, self.cross = np.tensordot, np.cross

    # Products --------------------------------------------------------------------------------------------------

    def matmul(self, a: Any, b: Any) -> Any:
        """a @ b: (…, m, k) × (…, k, n) -> (…, m, n), vectors as numpy has it."""
        self._xp.check_time()
        return matmul(self._real, self._xp.reals(a), self._xp.reals(b))

    def vecdot(self, a: Any, b: Any, axis: int = -1) -> Any:
        """Σ a b along ``axis``."""
        return self._xp.vecdot(a, b, axis)

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
        return xp.sum(size**ord, axis, keepdims=keepdims) ** (1 / xp.real.of(ord))

    def matrix_norm(self, x: Any, *, keepdims: Any = False, ord: Any = "fro") -> Any:
        """Frobenius by default; 1, inf, 2 and "nuc"."""
        xp = self._xp
        if ord == "fro":
            return self.vector_norm(x, axis=(-2, -1), keepdims=keepdims)
        if ord in (2, "nuc"):
            found = self.svdvals(x)
            return xp.max(found, -1) if ord == 2 else xp.sum(found, -1)
        return xp.max(xp.sum(xp.abs(x), -2 if ord == 1 else -1), -1)

    def norm(self, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
        """numpy's name for both norms."""
        if ord in (None, "fro") or axis is not None or np.ndim(x) == 1:
            return self.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord in (None, "fro") else ord)
        return self.matrix_norm(x, keepdims=keepdims, ord=ord)

    # Systems ---------------------------------------------------------------------------------------------------

    def det(self, a: Any) -> Any:
        """The determinant, from LU with row exchanges."""

        def compute(rows: list[list[Raw]], bits: int) -> Raw:
            lower_upper, _, sign = fac.lu(rows, bits)
            product = libmp.from_int(sign)
            for k in range(len(rows)):
                product = libmp.mpf_mul(product, lower_upper[k][k], bits, NEAREST)
            return product

        return self._each(lambda rows, bits: [[compute(rows, bits)]], a)[..., 0, 0][()]

    def slogdet(self, a: Any) -> SlogdetResult:
        """The sign of the determinant and the logarithm of its size (sign 0 and -inf where singular)."""

        def compute(rows: list[list[Raw]], bits: int) -> list[list[Raw]]:
            lower_upper, _, sign = fac.lu(rows, bits)
            log = ZERO
            for k in range(len(rows)):
                pivot = lower_upper[k][k]
                sign = sign * libmp.mpf_sign(pivot)
                log = libmp.mpf_add(log, libmp.mpf_log(libmp.mpf_abs(pivot), bits, NEAREST), bits, NEAREST)
            return [[libmp.from_int(sign), log]]

        both = self._each(compute, a)[..., 0, :]
        exact_sign = np.frompyfunc(lambda s: self._real(libmp.from_int(libmp.mpf_sign(s.raw))), 1, 1)
        return SlogdetResult(exact_sign(both[..., 0]), both[..., 1][()])

    def solve(self, a: Any, b: Any) -> Any:
        """x with a x = b."""
        right = np.asarray(self._xp.reals(b), dtype=object)
        vector = right.ndim == 1
        columns = right[:, None] if vector else right
        found = self._each(fac.solve, a, columns)
        return found[..., 0] if vector else found

    def inv(self, a: Any) -> Any:
        """The inverse."""
        identity = np.asarray(self._xp.eye(np.shape(a)[-1]), dtype=object)
        return self._each(fac.solve, a, identity)

    def lstsq(self, a: Any, b: Any) -> Any:
        """The least-squares solution by the normal equations: fifty digits can afford their square of the condition."""
        transposed = np.swapaxes(self._xp.reals(a), -1, -2)
        return self.solve(self.matmul(transposed, a), self.matmul(transposed, b))

    def pinv(self, a: Any) -> Any:
        """(A'A)^-1 A', or A' (AA')^-1 for a wide matrix: of full rank."""
        a = self._xp.reals(a)
        transposed = np.swapaxes(a, -1, -2)
        if a.shape[-2] >= a.shape[-1]:
            return self.matmul(self.inv(self.matmul(transposed, a)), transposed)
        return self.matmul(transposed, self.inv(self.matmul(a, transposed)))

    def cholesky(self, a: Any, *, upper: Any = False) -> Any:
        """L with L L' = A, or with ``upper`` L'; reads that triangle only. NaN where A is not positive definite."""
        a = self._xp.reals(a)
        lower = self._each(fac.cholesky, np.swapaxes(a, -1, -2) if upper else a, symmetric=True)
        return np.swapaxes(lower, -1, -2) if upper else lower

    def solve_triangular(self, a: Any, b: Any, *, lower: Any = False, trans: Any = 0) -> Any:
        """x with a x = b, reading one triangle only."""
        a = self._xp.reals(a)
        triangle = np.tril(a) if lower else np.triu(a)
        return self.solve(np.swapaxes(triangle, -1, -2) if trans else triangle, b)

    # Spectra ---------------------------------------------------------------------------------------------------

    def eigh(self, a: Any) -> EighResult:
        """Eigenvalues ascending and eigenvectors of the symmetric matrix whose lower triangle a holds."""
        n = np.shape(a)[-1]
        both = self._each(fac.eigh, a, symmetric=True, mixing=True)
        return EighResult(both[..., n, :], both[..., :n, :])

    def eigvalsh(self, a: Any) -> Any:
        """Eigenvalues of a symmetric matrix, ascending."""
        return self.eigh(a).eigenvalues

    def qr(self, a: Any, mode: str = "reduced") -> QRResult:
        """Householder's Q R, with LAPACK's signs (R's diagonal opposes the column it eliminates)."""
        rows, columns = np.shape(a)[-2:]
        k = min(rows, columns)
        both = self._each(fac.qr, a, mixing=True)
        return (
            QRResult(both[..., :k], np.swapaxes(both[..., :columns, k:], -1, -2))
            if rows >= columns
            else QRResult(both[..., :rows, :k], np.swapaxes(both[..., :columns, k:], -1, -2))
        )

    def svd(self, a: Any, *, full_matrices: Any = False) -> SVDResult:
        """From the eigenvectors of A'A; signs of the vectors are not determined. Reduced form only, of full rank."""
        if full_matrices:
            raise NotImplementedError("svd at high precision: full_matrices=False only")
        a = self._xp.reals(a)
        if a.shape[-2] < a.shape[-1]:
            u, s, vh = self.svd(np.swapaxes(a, -1, -2))
            return SVDResult(np.swapaxes(vh, -1, -2), s, np.swapaxes(u, -1, -2))
        squared, vectors = self.eigh(self.matmul(np.swapaxes(a, -1, -2), a))
        values, vectors = self._xp.sqrt(squared[..., ::-1]), vectors[..., ::-1]
        return SVDResult(self.matmul(a, vectors) / values[..., None, :], values, np.swapaxes(vectors, -1, -2))

    def svdvals(self, a: Any) -> Any:
        """Singular values, descending."""
        return self.svd(a).S

    def _each(
        self, compute: Callable[..., list[list[Raw]]], *matrices: Any, symmetric: bool = False, mixing: bool = False
    ) -> Objects:
        """``compute`` on every matrix of a batch; the first of ``matrices`` is the one that is perturbed."""
        self._xp.check_time()
        arrays = [np.asarray(self._xp.reals(matrix), dtype=object) for matrix in matrices]
        if any(array.ndim < 2 for array in arrays) or (symmetric and arrays[0].shape[-1] != arrays[0].shape[-2]):
            raise ValueError(f"not matrices: {', '.join(str(array.shape) for array in arrays)}")
        batch = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
        arrays = [np.broadcast_to(array, batch + array.shape[-2:]) for array in arrays]
        results = []
        for place in np.ndindex(*batch):
            rows = [[[element.raw for element in row] for row in array[place]] for array in arrays]
            rows[0] = self._perturbed(rows[0], symmetric, mixing)
            result = compute(*rows, self._real.bits)
            results.append([[self._real.made(raw) for raw in row] for row in result])
        made = np.array(results, dtype=object)
        return made.reshape(batch + made.shape[1:]).view(RealArray)

    def _perturbed(self, rows: list[list[Raw]], symmetric: bool, mixing: bool) -> list[list[Raw]]:
        """Each entry plus u ξ times its scale; as it is in plain arithmetic."""
        if self._real.rounding() is None:
            return rows
        sizes = np.array([[abs(libmp.to_float(raw)) for raw in row] for row in rows])
        scale = np.sqrt(sizes.max(axis=1)[:, None] * sizes.max(axis=0)[None, :])
        if mixing:
            scale = np.full_like(scale, sizes.max())
        moved = [list(row) for row in rows]
        for i, row in enumerate(moved):
            for j in range(i + 1 if symmetric else len(row)):
                step = libmp.mpf_mul(self._real.rounding(), libmp.from_float(float(scale[i, j])))
                row[j] = libmp.mpf_add(row[j], step)
        return moved
