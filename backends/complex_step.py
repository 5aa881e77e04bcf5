"""Complex step on numpy: Im f(x + i h) / h, one evaluation per input, accurate to the last digits."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import optree

from adbench import Namespace, Operator, Unsupported, vocabulary
from adbench.optional import library

LICENCE = "BSD-3-Clause"  # ours
ROLE = "comparison"

STEP = 1e-100  # its square is 0: no truncation and no cancellation

# Functions that numpy continues analytically, or that only move entries. Others would be silently wrong: abs is the
# modulus, cholesky and eigh conjugate, floor of a complex number is an error.
OF_NUMBERS = [name for row in vocabulary.FUNCTIONS.values() if row.analytic for name in row.names]
OF_ARRAYS = (
    "arange asarray broadcast_to concat concatenate cumprod cumsum cumulative_prod cumulative_sum einsum eye flip full "
    "full_like linspace matmul matrix_transpose mean multiply newaxis ones ones_like outer permute_dims pi pow power "
    "prod reshape roll squeeze stack sum take tensordot tile tril triu vecdot where zeros zeros_like"
)


def maximum(a: Any, b: Any) -> Any:
    return np.where((np.real(a) >= np.real(b)) | np.isnan(a), a, b)


def minimum(a: Any, b: Any) -> Any:
    return np.where((np.real(a) >= np.real(b)) | np.isnan(b), b, a)  # the other argument, also for a tie


def largest(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    x = np.ravel(x) if axis is None else x
    along = 0 if axis is None else axis
    found = np.take_along_axis(x, np.expand_dims(np.argmax(np.real(x), axis=along), along), along)
    return found if keepdims else np.squeeze(found, along)


def hypot(a: Any, b: Any) -> Any:
    largest_part = np.maximum(np.abs(np.real(a)), np.abs(np.real(b)))
    unit = np.where(largest_part > 0, largest_part, 1.0)
    return unit * np.sqrt((a / unit) ** 2 + (b / unit) ** 2)


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    raise Unsupported("complex steps cannot be nested: numpy has no numbers with two imaginary units")


def logaddexp(a: Any, b: Any) -> Any:
    return maximum(a, b) + np.log1p(np.exp(minimum(a, b) - maximum(a, b)))


def atan2(y: Any, x: Any) -> Any:
    """Rotate by the angle of the real parts; the remaining angle is so small that it equals y / x."""
    u, v = np.real(x), np.real(y)
    return np.arctan2(v, u) + (y * u - x * v) / (x * u + y * v)


def slogdet(A: Any) -> tuple[Any, Any]:
    factors, pivots = library("scipy.linalg", "slogdet of complex matrices").lu_factor(A)
    diagonal = np.diagonal(factors)
    signs = np.where(np.real(diagonal) < 0, -1.0, 1.0)
    turns = np.count_nonzero(pivots != np.arange(len(pivots)))
    return np.prod(signs) * (-1.0) ** turns, np.sum(np.log(diagonal * signs))


def cholesky(A: Any, *, upper: bool = False) -> Any:
    """Cholesky factor L Lᵀ = A without conjugation; reads the lower half, with `upper` the upper half."""
    A = A.T if upper else A
    L = np.zeros_like(A)
    for j in range(len(A)):
        below = A[j:, j] - L[j:, :j] @ L[j, :j]
        L[j:, j] = below / np.sqrt(below[0])
    return L.T if upper else L


def absolute(x: Any) -> Any:
    return np.where(np.real(x) < 0, -x, x)


def vector_norm(x: Any, *, axis: int | None = None, ord: float = 2) -> Any:
    if ord == 2:
        return np.sqrt(np.sum(x * x, axis=axis))
    return np.sum(absolute(x) ** ord, axis=axis) ** (1 / ord)


analytic = SimpleNamespace(
    **{name: getattr(np, name) for name in [*OF_NUMBERS, *OF_ARRAYS.split()] if hasattr(np, name)},
    __name__="complex numpy",
    linalg=SimpleNamespace(
        __name__="complex numpy.linalg",
        **{name: getattr(np.linalg, name) for name in ("det", "diagonal", "inv", "solve", "trace")},
        cholesky=cholesky,
        slogdet=slogdet,
        vector_norm=vector_norm,
    ),
)
xp = Namespace(
    analytic,
    abs=absolute,
    atan2=atan2,
    derivative=derivative,
    hypot=hypot,
    logaddexp=logaddexp,
    max=largest,
    maximum=maximum,
    min=lambda x, axis=None, keepdims=False: -largest(-x, axis, keepdims),
    minimum=minimum,
    stop_gradient=np.real,
)


def stepped(leaf: Any, direction: Any) -> Any:
    return np.asarray(leaf) + 1j * STEP * np.asarray(direction)


def slopes(f: Callable[[Any], Any], leaf: Any) -> Any:
    """∂f/∂leaf in its shape, entry by entry."""
    x = np.array(leaf, dtype=complex)  # a copy, because the loop writes to it
    found = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        x[i] += 1j * STEP
        found[i] = np.imag(f(x if x.ndim else x[()])) / STEP
        x[i] = x[i].real
    return found


NESTED = "the complex step uses the only imaginary part"


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    def gradient(*args: Any) -> tuple[Any, ...]:
        def along(i: int) -> Any:
            leaves, structure = optree.tree_flatten(args[i])

            def of_leaf(k: int, x: Any) -> Any:
                return f(
                    *args[:i], optree.tree_unflatten(structure, [*leaves[:k], x, *leaves[k + 1 :]]), *args[i + 1 :]
                )

            return optree.tree_unflatten(structure, [slopes(partial(of_leaf, k), x) for k, x in enumerate(leaves)])

        return tuple(along(i) for i in wrt)

    def jvp(*args: Any) -> Any:
        *inputs, direction = args
        for i, v in zip(wrt, direction, strict=True):
            inputs[i] = optree.tree_map(stepped, inputs[i], v)
        return np.imag(f(*inputs)) / STEP

    if operator == "value":
        return f
    if operator in ("gradient", "jvp"):
        return gradient if operator == "gradient" else jvp
    raise Unsupported(f"the complex step gives J v and has no {operator}")
