"""Functions and decompositions by mpmath, on its numbers and on numpy arrays of them."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext

mp = MPContext()
mp.prec = 600


def reals(x: Any) -> Any:
    """The numbers in mpmath, exactly."""
    return np.frompyfunc(lambda e: e if isinstance(e, mp.mpf) else mp.mpf(float(e)), 1, 1)(x)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "atan2": mp.atan2,
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "betaln": lambda a, b: mp.log(mp.beta(a, b)),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "degrees": lambda x: x * 180 / mp.pi,
    "digamma": mp.digamma,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "exp1": mp.e1,
    "exp2": lambda x: mp.mpf(2) ** x,
    "expi": mp.ei,
    "expit": lambda x: 1 / (1 + mp.exp(-x)),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, regularized=True),
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "iv": mp.besseli,
    "j0": mp.j0,
    "j1": mp.j1,
    "jv": mp.besselj,
    "kv": mp.besselk,
    "lambertw": lambda x: mp.lambertw(x).real,
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "log1p_exp": lambda x: mp.log1p(mp.exp(x)),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log_ndtr": lambda x: mp.log(mp.ncdf(x)),
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "logit": lambda x: mp.log(x / (1 - x)),
    "multigammaln": lambda a, d: (
        d * (d - 1) / 4 * mp.log(mp.pi) + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(int(d)))
    ),
    "ndtr": mp.ncdf,
    "ndtri": lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    "polygamma": lambda n, x: mp.psi(int(n), x),
    "radians": lambda x: x * mp.pi / 180,
    "reciprocal": lambda x: 1 / x,
    "sinc": lambda x: mp.sin(x * mp.mpf(np.pi)) / (x * mp.mpf(np.pi)),
    "square": lambda x: x * x,
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "xlogy": lambda x, y: x * mp.log(y),
    "yv": mp.bessely,
    "zeta": mp.zeta,
}


def function(name: str) -> Callable[..., Any]:
    """A function by its name in the array API or scipy.special."""
    return FUNCTIONS.get(name) or getattr(mp, name)


def _each(name: str) -> Callable[[Any], Any]:
    return np.frompyfunc(getattr(mp, name), 1, 1)


def _array(matrix: Any) -> Any:
    return np.array(matrix.tolist(), dtype=object)


def _solve(a: Any, b: Any) -> Any:
    right = mp.matrix(b.reshape(len(b), -1).tolist())
    return (_array(mp.inverse(mp.matrix(a.tolist()))) @ _array(right)).reshape(b.shape)


def _inv(a: Any) -> Any:
    return _array(mp.inverse(mp.matrix(a.tolist())))


def _singular(a: Any) -> tuple[Any, Any, Any]:
    u, s, vh = mp.svd_r(mp.matrix(a.tolist()))
    return _array(u), np.array(list(s), dtype=object), _array(vh)


def _eigen(a: Any) -> tuple[Any, Any]:
    values, vectors = mp.eigsy(mp.matrix(_mirrored(a).tolist()))
    return np.array(list(values), dtype=object), _array(vectors)


def _mirrored(a: Any) -> Any:
    """The symmetric matrix with this lower triangle."""
    return np.tril(a) + np.tril(a, -1).T


def _qr(a: Any) -> tuple[Any, Any]:
    q = _array(mp.qr(mp.matrix(a[:, : len(a)].tolist()), mode="skinny")[0])
    return q, q.T @ a


def _norm(a: Any, ord: int = 2) -> Any:
    return mp.root(sum(abs(x) ** ord for x in a.ravel()), ord)


xp = SimpleNamespace(
    reals=reals,
    tril=np.tril,
    sort=np.sort,
    prod=np.prod,
    logsumexp=lambda a, axis: _each("log")(_each("exp")(a).sum(axis)),
    softmax=lambda a, axis: _each("exp")(a) / _each("exp")(a).sum(axis, keepdims=True),
    std=lambda a, axis: _each("sqrt")(((a - a.mean(axis, keepdims=True)) ** 2).mean(axis)),
    linalg=SimpleNamespace(
        det=lambda a: mp.det(mp.matrix(a.tolist())),
        slogdet=lambda a: (None, mp.log(abs(mp.det(mp.matrix(a.tolist()))))),
        inv=_inv,
        solve=_solve,
        solve_triangular=lambda a, b, lower: _solve(np.tril(a) if lower else np.triu(a), b),
        lstsq=lambda a, b: _solve(a.T @ a, a.T @ b),
        pinv=lambda a: _inv(a.T @ a) @ a.T,
        matrix_power=lambda a, n: np.linalg.matrix_power(_inv(a) if n < 0 else a, abs(n)),
        cholesky=lambda a: _array(mp.cholesky(mp.matrix(_mirrored(a).tolist()))),
        qr=_qr,
        eigvalsh=lambda a: _eigen(a)[0],
        eigh=_eigen,
        svd=_singular,
        svdvals=lambda a: _singular(a)[1],
        matrix_norm=lambda a, ord=None: _singular(a)[1][0] if ord == 2 else _norm(a),
        vector_norm=_norm,
    ),
)
"""The part of the array API that tests of the arithmetic over balls compare."""
