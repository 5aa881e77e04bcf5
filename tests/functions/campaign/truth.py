"""Derivatives at 50 digits: closed forms, or differences of definitions in mpmath with steps far below 50 digits."""

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

DIGITS = 50
WORKING = 130
STEP = 40  # the error of a central difference is about 1e-80, and so is its rounding error


class Between:
    """At a kink: any number of the interval."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = sorted((mpf(low), mpf(high)))


def exact(leaf: Any) -> Any:
    """Floats as numbers of mpmath, arrays as arrays of these; other objects unchanged."""
    if isinstance(leaf, dict):
        return {name: exact(part) for name, part in leaf.items()}
    if isinstance(leaf, list | np.ndarray):
        return np.vectorize(mpf, otypes=[object])(np.array(leaf, dtype=np.float64))
    if isinstance(leaf, tuple):
        return tuple(map(exact, leaf))
    return mpf(leaf) if isinstance(leaf, float) else leaf


def derivatives(truth: Callable[..., Any], at: tuple[Any, ...]) -> list[Any]:
    """The truth as a flat list: output by output, and for each all inputs."""
    with mp.workdps(WORKING):
        found = truth(*map(exact, at))
        numbers = [one if isinstance(one, Between) else mpf(one) for one in np.ravel(np.array(found, dtype=object))]
        largest = max((abs(one) for one in numbers if not isinstance(one, Between)), default=mpf(0))
        noise = largest * mpf(10) ** -STEP if mp.isfinite(largest) else mpf(0)  # what differences leave of a zero
        return [one if isinstance(one, Between) or abs(one) > noise else mpf(0) for one in numbers]


def D(definition: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802
    """Central differences of a definition in all its numbers."""

    def truth(*args: Any) -> Any:
        columns = []
        for path, number in _numbers(args):
            step = (abs(number) or mpf(1)) * mpf(10) ** -STEP
            above, below = (_flat(definition(*_replaced(args, path, sign * step))) for sign in (1, -1))
            columns.append((above - below) / (2 * step))
        return np.array(columns, dtype=object).T

    return truth


def _numbers(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(tree, mpf):
        yield path, tree
    elif isinstance(tree, np.ndarray):
        for index in np.ndindex(tree.shape):
            yield (*path, index), tree[index]
    elif isinstance(tree, dict | tuple):
        for key in sorted(tree) if isinstance(tree, dict) else range(len(tree)):
            yield from _numbers(tree[key], (*path, key))


def _replaced(tree: Any, path: tuple[Any, ...], change: Any) -> Any:
    if not path:
        return tree + change
    key, *rest = path
    if isinstance(tree, np.ndarray):
        changed = tree.copy()
        changed[key] += change
        return changed
    if isinstance(tree, dict):
        return tree | {key: _replaced(tree[key], tuple(rest), change)}
    return (*tree[:key], _replaced(tree[key], tuple(rest), change), *tree[key + 1 :])


def _flat(value: Any) -> Any:
    return np.ravel(np.array(value, dtype=object))


def _each(f: Callable[..., Any], inputs: int = 1) -> Any:
    return np.frompyfunc(f, inputs, 1)


exp, log, sqrt, sin, cos, tan = map(_each, (mp.exp, mp.log, mp.sqrt, mp.sin, mp.cos, mp.tan))
sinh, cosh, tanh, atan, erf, erfc = map(_each, (mp.sinh, mp.cosh, mp.tanh, mp.atan, mp.erf, mp.erfc))
log1p, expm1, gamma, lgamma = map(_each, (mp.log1p, mp.expm1, mp.gamma, mp.loggamma))
sigmoid = _each(lambda x: 1 / (1 + mp.exp(-x)))
softplus = _each(lambda x: mp.log1p(mp.exp(x)))
relu = _each(lambda x: max(x, mpf(0)))
Phi = _each(mp.ncdf)
phi = _each(mp.npdf)


def matrix(a: Any) -> Any:
    """A matrix of mpmath."""
    return mpmath.matrix(a.tolist())


def array(a: Any) -> Any:
    """A matrix of mpmath as an array."""
    return np.array(a.tolist(), dtype=object)


def inv(a: Any) -> Any:
    return array(mp.inverse(matrix(a)))


def det(a: Any) -> Any:
    return mp.det(matrix(a))


def solve(a: Any, b: Any) -> Any:
    return inv(a) @ b


def eigvalsh(a: Any) -> Any:
    """The eigenvalues of a symmetric matrix, ascending."""
    return np.array(sorted(mp.eigsy(matrix(a), eigvals_only=True)), dtype=object)


def singular_values(a: Any) -> Any:
    """Descending."""
    return np.sqrt(np.array(sorted(mp.eigsy(matrix(a.T @ a), eigvals_only=True), reverse=True), dtype=object))


def cholesky(a: Any) -> Any:
    """Of the symmetric part."""
    return array(mp.cholesky(matrix((a + a.T) / 2)))


def symmetrised(gradient: Any) -> Any:
    """A gradient whose entries of both triangles share the derivative."""
    return (gradient + gradient.T) / 2


def lse(x: Any) -> Any:
    return mp.log(mp.fsum(mp.exp(one) for one in np.ravel(x)))


def softmax(x: Any) -> Any:
    weights = exp(x - max(x))
    return weights / np.sum(weights)
