"""ATen's products of matrices, linear algebra and Fourier transforms on arrays of the oracle's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from adbench.functions.low_precision import as_decomposed
from adbench.model.errors import Unsupported
from adbench.oracle.series.algebra.positions import boxed, row_exchanges, rows_after

Function = Callable[..., Any]


def reals(xp: Any, x: Any) -> Any:
    """Integers as numbers of the namespace."""
    return xp.reals(x) if isinstance(x, np.ndarray) and x.dtype != object else x


def axes(dim: Any) -> Any:
    """torch's dimensions as numpy's axes; none means all."""
    return dim if dim is None or isinstance(dim, int) else tuple(dim) or None


def product(xp: Any, a: Any, b: Any) -> Any:
    """a @ b."""
    return xp.matmul(reals(xp, a), reals(xp, b))


def added_products(xp: Any, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta · c + alpha · Σ a @ b."""
    found = xp.sum(product(xp, a, b), 0)
    found = found if alpha == 1 else alpha * found
    return found if beta == 0 else (reals(xp, c) if beta == 1 else beta * reals(xp, c)) + found


def swapped(x: Any) -> Any:
    """The transposed matrices."""
    return np.swapaxes(x, -1, -2)


def absent(xp: Any, x: Any) -> Any:
    """NaN instead of a decomposition that torch stores for its derivative."""
    return xp.full(np.shape(x), math.nan)


def whole(x: Any, ends: int) -> Any:
    """Zeros for torch's `info` and pivots: without the last ``ends`` axes."""
    return np.zeros(np.shape(x)[: np.ndim(x) - ends], dtype=np.int32)


def vector_norm(xp: Any, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """(Σ |x|^ord)^(1/ord); ±inf: the largest, smallest; 0: the number of nonzeros."""
    axis, ord = axes(dim) if np.ndim(x) else None, 2 if ord is None else ord
    if ord == 0:
        return xp.sum(xp.reals(np.asarray(np.asarray(x) != 0).astype(np.int64)), axis, keepdims=keepdim)
    return xp.linalg.vector_norm(x, ord=ord, axis=axis, keepdims=keepdim)


def cholesky(xp: Any, a: Any, upper: bool = False) -> Any:
    """The triangular factor. Raises like torch if a is not positive definite."""
    found = boxed(xp.linalg.cholesky(a, upper=upper))
    if np.any(np.asarray(xp.isnan(np.diagonal(found, axis1=-2, axis2=-1)))):
        raise ArithmeticError("cholesky: the matrix is not positive definite")
    return xp.triu(found) if upper else xp.tril(found)


def solve_triangular(xp: Any, a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """x with a x = b, or x a = b, reading one triangle of a."""
    if not left:
        return swapped(solve_triangular(xp, swapped(a), swapped(b), upper=not upper, unitriangular=unitriangular))
    if unitriangular:
        a = xp.where(np.eye(a.shape[-1], dtype=bool), xp.reals(1), a)
    return xp.linalg.solve_triangular(boxed(a), b, lower=not upper)


def solve_ex(xp: Any, a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """x with a x = b."""
    vector = np.ndim(b) == 1 or (np.ndim(b) == np.ndim(a) - 1 and np.shape(b) == np.shape(a)[:-1])
    columns = boxed(reals(xp, b))[..., None] if vector else boxed(reals(xp, b))
    found = boxed(xp.linalg.solve(a, columns) if left else swapped(xp.linalg.solve(swapped(a), swapped(columns))))
    return found[..., 0] if vector else found, absent(xp, a), whole(a, 1), whole(a, 2)


def _run(matrix: Any) -> Any:
    """A matrix for torch."""
    return torch.from_numpy(as_decomposed(matrix))


def eigh(xp: Any, a: Any, upper_or_lower: str = "L", compute_v: bool = True) -> Any:
    """Eigenvalues ascending, and eigenvectors."""
    upper = upper_or_lower.upper() == "U"
    if not compute_v:
        return xp.linalg.eigvalsh(a, upper=upper), xp.zeros((0,))
    return tuple(xp.linalg.eigh(a, upper=upper, like=lambda m: torch.linalg.eigh(_run(m), upper_or_lower)[1]))


def eig(xp: Any, a: Any) -> Any:
    """Eigenvalues in the order of torch, and eigenvectors."""
    return tuple(xp.linalg.eig(a, lambda matrix: torch.linalg.eigvals(_run(matrix)).numpy()))


def svd(xp: Any, a: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> Any:
    """U, S, Vh; the values alone need no vectors."""
    if not compute_uv:
        return xp.zeros((0,)), xp.linalg.svdvals(a), xp.zeros((0,))
    square = np.shape(a)[-1] == np.shape(a)[-2]

    def left(matrix: Any) -> Any:
        return torch.linalg.svd(_run(matrix), full_matrices, driver=driver).U

    return tuple(xp.linalg.svd(a, full_matrices=full_matrices and not square, like=left))


def lu_factor(xp: Any, a: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one matrix, LAPACK's row exchanges, and torch's info."""
    if not pivot or np.shape(a)[-1] != np.shape(a)[-2]:
        raise Unsupported("an LU decomposition without pivots or of a matrix that is not square")
    packed, order = xp.linalg.lu(a)
    return packed, (row_exchanges(order) + 1).astype(np.int32), whole(a, 2)


def lu_unpack(xp: Any, packed: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """P, L and U of a square matrix."""
    one = xp.eye(np.shape(packed)[-1])
    order = rows_after(np.asarray(pivots) - 1)
    permutation = swapped(np.eye(order.shape[-1])[order]) if unpack_pivots else np.zeros((0,))
    if not unpack_data:
        return permutation, xp.zeros((0,)), xp.zeros((0,))
    return permutation, np.tril(packed, -1) + one, np.triu(packed)


def lu_solve(xp: Any, packed: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """X with A X = B for the factors of A; left=False: X A = B; adjoint: of the adjoint of A."""
    permutation, lower, upper = lu_unpack(xp, packed, pivots)
    matrix = product(xp, permutation, product(xp, lower, upper))
    matrix = np.conj(swapped(matrix)) if adjoint else matrix
    return solve_ex(xp, matrix, b, left=left)[0]


def qr(xp: Any, a: Any, mode: str = "reduced") -> Any:
    """Q and R in reduced form, or of a matrix that is not wide."""
    if mode == "complete" and np.shape(a)[-2] > np.shape(a)[-1]:
        raise NotImplementedError("qr over balls: the reduced form only")
    found = xp.linalg.qr(a)
    return (xp.zeros((0,)) if mode == "r" else found.Q), found.R


def pseudo_inverse(xp: Any, a: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """The inverse on the range of a matrix of full rank. Raises Unsupported if torch would drop singular values."""
    full_rank(xp, np.tril(a) + swapped(np.tril(a, -1)) if hermitian else a, rtol, atol)
    return xp.linalg.pinvh(a) if hermitian else xp.linalg.pinv(a)


def full_rank(xp: Any, a: Any, rtol: Any = None, atol: Any = None) -> Any:
    """The singular values. Raises Unsupported if one is at or below torch's tolerance."""
    sizes = np.asarray(xp.linalg.svdvals(a))
    least = np.asarray(0 if atol is None else atol)
    share = max(np.shape(a)[-2:]) * np.finfo(np.float64).eps if rtol is None else np.asarray(rtol)
    bound = np.maximum(np.asarray(least)[..., None], np.asarray(share)[..., None] * sizes[..., :1])
    if not np.all(np.asarray(sizes > bound)):
        raise Unsupported("the pseudo-inverse of a matrix without full rank")
    return sizes


def least_squares(xp: Any, a: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """The solution, residuals, rank and singular values, for a matrix of full rank."""
    full_rank(xp, a, rcond)
    vector = np.ndim(b) == np.ndim(a) - 1
    columns = np.asarray(b)[..., None] if vector else np.asarray(b)
    found = np.asarray(product(xp, xp.linalg.pinv(a), columns))
    rows, width = np.shape(a)[-2:]
    gap = np.asarray(product(xp, a, found)) - columns
    residuals = xp.sum(gap * gap, -2) if rows > width else xp.zeros((0,))
    rank = np.full(np.shape(a)[:-2], min(rows, width), dtype=np.int64)
    return found[..., 0] if vector else found, residuals, rank, xp.zeros((0,))


def triangular_solve(
    xp: Any, b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """x with a x = b, or aᵀ x = b, and a."""
    matrix, above = (swapped(a), not upper) if transpose else (a, upper)
    return solve_triangular(xp, np.asarray(matrix), b, upper=above, unitriangular=unitriangular), a


def trilinear(
    xp: Any, a: Any, b: Any, c: Any, expand_a: Any, expand_b: Any, expand_c: Any, sum_dim: Any, unroll_dim: int = 1
) -> Any:
    """Σ a b c over axes, after inserting new axes into each."""
    x, y, z = (
        np.expand_dims(np.asarray(part), tuple(new)) for part, new in ((a, expand_a), (b, expand_b), (c, expand_c))
    )
    return xp.sum(x * y * z, tuple(sum_dim)) if len(sum_dim) else x * y * z


def distances(xp: Any, a: Any, b: Any, p: float, compute_mode: Any = None) -> Any:
    """‖a_i - b_j‖ of all pairs."""
    return vector_norm(xp, np.asarray(a)[..., :, None, :] - np.asarray(b)[..., None, :, :], p, -1)


def pair_distances(xp: Any, x: Any, p: float = 2) -> Any:
    """‖x_i - x_j‖ of all pairs i < j."""
    i, j = np.triu_indices(np.shape(x)[0], 1)
    return vector_norm(xp, np.asarray(x)[i] - np.asarray(x)[j], p, -1)


# Fourier transforms -----------------------------------------------------------------------------------------------


def resized(xp: Any, x: Any, normalization: int, sizes: Sequence[int]) -> Any:
    """x divided by √n or n, by torch's number of the norm."""
    n = math.prod(sizes)
    return x if normalization == 0 else x / (xp.sqrt(xp.reals(n)) if normalization == 1 else n)


def fourier(xp: Any, x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """Sums over these axes."""
    for axis in dim:
        x = xp.fft.fft(x, axis=axis) if forward else xp.fft.ifft(x, axis=axis, norm="forward")
    return resized(xp, x, normalization, [np.shape(x)[axis] for axis in dim])


def fourier_of_reals(xp: Any, x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """The transform of real numbers; half of the last axis if onesided."""
    sizes = [np.shape(x)[axis] for axis in dim]
    *others, last = dim
    found = xp.fft.rfft(x, axis=last) if onesided else xp.fft.fft(x, axis=last)
    return resized(xp, fourier(xp, found, others, 0, forward=True), normalization, sizes)


def fourier_to_reals(xp: Any, x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    """The real numbers whose transform is x."""
    *others, last = dim
    found = xp.fft.irfft(fourier(xp, x, others, 0, forward=False), n=last_dim_size, axis=last, norm="forward")
    return resized(xp, found, normalization, [*(np.shape(x)[axis] for axis in others), last_dim_size])


LINALG: Mapping[str, Function] = {
    "_cdist_forward": distances,
    "_fft_c2c": fourier,
    "_fft_c2r": fourier_to_reals,
    "_fft_r2c": fourier_of_reals,
    "_linalg_det": lambda xp, a: (xp.linalg.det(a), absent(xp, a), whole(a, 1)),
    "_linalg_eigh": eigh,
    "_linalg_eigvals": lambda xp, a: eig(xp, a)[0],
    "_linalg_slogdet": lambda xp, a: (*xp.linalg.slogdet(a), absent(xp, a), whole(a, 1)),
    "_linalg_solve_ex": solve_ex,
    "_linalg_svd": svd,
    "_pdist_forward": pair_distances,
    "_trilinear": trilinear,
    "addbmm": added_products,
    "bmm": product,
    "cholesky": cholesky,
    "cholesky_inverse": lambda xp, a, upper=False: xp.linalg.cho_solve(a, xp.eye(np.shape(a)[-1]), lower=not upper),
    "cholesky_solve": lambda xp, b, a, upper=False: xp.linalg.cho_solve(a, b, lower=not upper),
    "linalg_cholesky_ex": lambda xp, a, *, upper=False, check_errors=False: (cholesky(xp, a, upper), whole(a, 2)),
    "linalg_eig": eig,
    "linalg_inv_ex": lambda xp, a, *, check_errors=False: (xp.linalg.inv(a), whole(a, 2)),
    "linalg_lstsq": least_squares,
    "linalg_lu": lambda xp, a, *, pivot=True: lu_unpack(xp, *lu_factor(xp, a, pivot=pivot)[:2]),
    "linalg_lu_factor_ex": lu_factor,
    "linalg_lu_solve": lu_solve,
    "linalg_matrix_exp": lambda xp, a: xp.linalg.expm(a),
    "linalg_pinv": pseudo_inverse,
    "linalg_qr": qr,
    "linalg_solve_triangular": solve_triangular,
    "linalg_vector_norm": vector_norm,
    "lu_unpack": lu_unpack,
    "mm": product,
    "triangular_solve": triangular_solve,
}
