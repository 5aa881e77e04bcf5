"""Products and linear algebra of numpy and scipy, with their signatures."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from adbench.functions.from_numpy.name_table import FUNCTIONS, Function, known_as, namesake, unsupported
from adbench.functions.low_precision import as_decomposed

FUNCTIONS["numpy.dot"] = FUNCTIONS["numpy.linalg.dot"] = namesake("dot")
FUNCTIONS["numpy.vdot"] = namesake("vdot")
FUNCTIONS["numpy.vecdot"] = FUNCTIONS["numpy.linalg.vecdot"] = namesake("vecdot")


for _name in ("det", "inv", "matrix_power", "multi_dot", "slogdet", "solve", "svdvals", "matmul"):
    FUNCTIONS[f"numpy.linalg.{_name}"] = lambda xp, *args, _name=_name: getattr(xp.linalg, _name)(*args)
for _name in ("cross", "diagonal", "matrix_transpose", "outer", "trace", "tensordot"):
    FUNCTIONS[f"numpy.linalg.{_name}"] = lambda _xp, *args, _name=_name, **options: getattr(np.linalg, _name)(
        *args, **options
    )


FUNCTIONS["numpy.linalg.cholesky"] = lambda xp, a, upper=False: xp.linalg.cholesky(a, upper=upper)
FUNCTIONS["numpy.linalg.eigh"] = lambda xp, a, UPLO="L": xp.linalg.eigh(
    a, upper=UPLO.upper() != "L", like=lambda matrix: np.linalg.eigh(as_decomposed(matrix), UPLO)[1]
)
FUNCTIONS["numpy.linalg.eigvalsh"] = lambda xp, a, UPLO="L": xp.linalg.eigvalsh(a, upper=UPLO.upper() != "L")
FUNCTIONS["numpy.linalg.pinv"] = lambda xp, a: xp.linalg.pinv(a)


@known_as("numpy.linalg.qr")
def _qr(xp: Any, a: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return xp.linalg.qr(a).R
    if mode not in ("reduced", "complete") or (mode == "complete" and np.shape(a)[-2] > np.shape(a)[-1]):
        raise unsupported(f"numpy.linalg.qr with mode={mode!r}")
    return xp.linalg.qr(a)


@known_as("numpy.linalg.svd", "scipy.linalg.svd")
def _svd(xp: Any, a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return xp.linalg.svdvals(a)
    if full_matrices and np.shape(a)[-2] != np.shape(a)[-1]:
        raise unsupported("svd with full_matrices=True of a non-square matrix")
    return xp.linalg.svd(a, like=lambda matrix: np.linalg.svd(as_decomposed(matrix), full_matrices)[0])


@known_as("numpy.linalg.norm", "scipy.linalg.norm")
def _norm(xp: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    axes = tuple(range(np.ndim(x))) if axis is None else tuple(np.atleast_1d(axis))
    if ord is None or (ord == "fro" and len(axes) == 2):
        return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    if len(axes) == 1:
        return _vector_norm(xp, x, axis=axes[0], keepdims=keepdims, ord=ord)
    if len(axes) != 2 or keepdims:
        raise unsupported("numpy.linalg.norm with these axes, or of matrices with keepdims=")
    return _matrix_norm(xp, np.moveaxis(np.asarray(x), axes, (-2, -1)), ord=ord)


@known_as("numpy.linalg.vector_norm")
def _vector_norm(xp: Any, x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if isinstance(ord, str) or ord == 0:
        raise unsupported(f"a vector norm with ord={ord!r}")
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


@known_as("numpy.linalg.matrix_norm")
def _matrix_norm(xp: Any, x: Any, keepdims: bool = False, ord: Any = "fro") -> Any:
    if ord not in ("fro", "nuc", 1, 2, np.inf) or (keepdims and ord != "fro"):
        raise unsupported(f"a matrix norm with ord={ord!r} or keepdims=")
    return xp.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)


@known_as("numpy.linalg.lstsq")
def _lstsq(xp: Any, a: Any, b: Any, rcond: Any = None) -> Any:
    if rcond not in (None, -1):
        raise unsupported("numpy.linalg.lstsq with rcond=")
    found, (rows, columns) = xp.linalg.lstsq(a, b), np.shape(a)
    gap = xp.matmul(a, found) - b
    residuals = np.atleast_1d(xp.sum(gap * gap, 0)) if rows > columns else np.empty(0)
    return found, residuals, min(rows, columns), xp.linalg.svdvals(a)


@known_as("numpy.polyfit")
def _polyfit(xp: Any, x: Any, y: Any, deg: int, w: Any = None) -> Any:
    x, y = xp.reals(x), xp.reals(y)
    columns = xp.stack([x**power for power in range(deg, -1, -1)], 1)
    if w is None:
        return xp.linalg.lstsq(columns, y)
    w = xp.reals(w)
    return xp.linalg.lstsq(columns * w[:, None], y * w)


@known_as("numpy.linalg.cond")
def _cond(xp: Any, x: Any, p: Any = None) -> Any:
    if p not in (None, 2):
        return _norm(xp, x, p) * _norm(xp, xp.linalg.inv(x), p)
    found = xp.linalg.svdvals(x)
    return found[..., 0] / found[..., -1]


# scipy.linalg has other defaults


FUNCTIONS["scipy.linalg.cholesky"] = lambda xp, a, lower=False: xp.linalg.cholesky(a, upper=not lower)
FUNCTIONS["scipy.linalg.cho_factor"] = lambda xp, a, lower=False: (xp.linalg.cholesky(a, upper=not lower), lower)


@known_as("scipy.linalg.cho_solve")
def _cho_solve(xp: Any, factor: Any, b: Any) -> Any:
    return xp.linalg.cho_solve(factor[0], b, lower=factor[1])


@known_as("scipy.linalg.solve_triangular")
def _solve_triangular(xp: Any, a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    if unit_diagonal:
        raise unsupported("scipy.linalg.solve_triangular with unit_diagonal=")
    return xp.linalg.solve_triangular(a, b, lower=lower, trans=0 if trans in (0, "N") else 1)


@known_as("scipy.linalg.solve")
def _solve(xp: Any, a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False) -> Any:
    if assume_a not in (None, "gen", "general", "pos", "positive definite"):
        raise unsupported(f"scipy.linalg.solve with assume_a={assume_a!r}")
    del lower
    return xp.linalg.solve(np.swapaxes(np.asarray(a), -1, -2) if transposed else a, b)


@known_as("scipy.linalg.eigh")
def _scipy_eigh(xp: Any, a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False) -> Any:
    if b is not None:
        raise unsupported("scipy.linalg.eigh of two matrices")
    if eigvals_only:
        return xp.linalg.eigvalsh(a, upper=not lower)
    by_scipy = importlib.import_module("scipy.linalg").eigh
    return xp.linalg.eigh(a, upper=not lower, like=lambda matrix: by_scipy(as_decomposed(matrix), lower=lower)[1])


FUNCTIONS["scipy.linalg.eigvalsh"] = lambda xp, a, b=None, lower=True: _scipy_eigh(xp, a, b, lower, eigvals_only=True)
for _name in ("det", "expm", "inv", "svdvals"):
    FUNCTIONS[f"scipy.linalg.{_name}"] = lambda xp, a, _name=_name: getattr(xp.linalg, _name)(a)

FUNCTIONS["adbench.tape.expm"] = FUNCTIONS["adbench.tape.linalg.expm"] = FUNCTIONS["scipy.linalg.expm"]

# Fourier transforms

for _name in ("fft", "ifft", "rfft", "irfft", "fftshift", "ifftshift"):
    FUNCTIONS[f"numpy.fft.{_name}"] = lambda xp, *args, _name=_name, **options: getattr(xp.fft, _name)(*args, **options)


def _over_axes(name: str, default: Any) -> Function:
    """A transform of several axes, one after the other."""

    def found(xp: Any, a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Any:
        axes = tuple(range(np.ndim(a)) if s is None else range(-len(s), 0)) if axes is None else axes
        for axis, size in zip(axes, [None] * len(axes) if s is None else s, strict=True):
            a = getattr(xp.fft, name)(a, size, axis, norm)
        return a

    return found


FUNCTIONS["numpy.fft.fft2"], FUNCTIONS["numpy.fft.ifft2"] = _over_axes("fft", (-2, -1)), _over_axes("ifft", (-2, -1))
FUNCTIONS["numpy.fft.fftn"], FUNCTIONS["numpy.fft.ifftn"] = _over_axes("fft", None), _over_axes("ifft", None)
