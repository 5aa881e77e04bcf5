"""jax's primitives of whole arrays over the oracle's numbers: reductions, sorting, products, decompositions.

`adbench.functions.from_jax.jax_primitives` defines rules and has the other primitives.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adbench.functions.low_precision import as_decomposed
from adbench.model.errors import Unsupported
from adbench.oracle.enclosures.recorded import EnclosedArray
from adbench.oracle.series.algebra.positions import boxed, convolution, product, row_exchanges, taken, windows

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Equation:
    """A primitive of a jaxpr with its parameters; inputs and outputs are jax's abstract values (shape, dtype).

    kept: results that a rule needs in every evaluation, such as positions.
    """

    name: str
    params: Mapping[str, Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    bind: Callable[..., Any]
    kept: dict[Any, Any] = field(default_factory=dict)

    def remembered(self, key: Any, compute: Callable[[], Any]) -> Any:
        """compute(), once for each key."""
        if key not in self.kept:
            if len(self.kept) > MOST_KEPT:
                self.kept.clear()
            self.kept[key] = compute()
        return self.kept[key]


MOST_KEPT = 4096
"""The number of indices per equation with cached positions, for loops."""


# Reductions ------------------------------------------------------------------------------------------------------


def reduction(name: str) -> Rule:
    """The namespace's reduction of this name."""
    function = operator.attrgetter(name)

    def rule(xp: Any, equation: Equation, x: Any) -> Any:
        axes = tuple(equation.params["axes"])
        return function(xp)(x, axes) if axes else x

    return rule


def _best_index(function: Callable[..., Any]) -> Rule:
    def rule(_: Any, equation: Equation, x: Any) -> Any:
        (axis,) = equation.params["axes"]
        return np.asarray(function(boxed(x), axis=axis)).astype(equation.params["index_dtype"])[()]

    return rule


def _running(name: str) -> Rule:
    """A reduction of all entries up to each one, along an axis; reversed from the other end."""

    def rule(xp: Any, equation: Equation, x: Any) -> Any:
        axis, is_reversed = equation.params["axis"], equation.params["reverse"]
        array = np.flip(x, axis) if is_reversed else x
        found = xp.cumulative_sum(array, axis) if name == "sum" else xp.running(getattr(xp, name), array, axis)
        return np.flip(found, axis) if is_reversed else found

    return rule


def _windowed(name: str, nothing: float) -> Rule:
    """A reduction over the entries that a moving window sees; padding counts as ``nothing``."""

    def rule(xp: Any, equation: Equation, x: Any) -> Any:
        params = equation.params
        sizes = tuple(params["window_dimensions"])
        of_windows = ("window_strides", "padding", "base_dilation", "window_dilation")
        where = equation.remembered(
            "where", lambda: windows(np.shape(x), sizes, *(params[name] for name in of_windows))
        )
        return getattr(xp, name)(taken(where, [x], xp.number.of(nothing)), tuple(range(-len(sizes), 0)))

    return rule


def _order(keys: Sequence[Any], axis: int) -> Any:
    """The indices that sort along an axis, stably, by the first key first; NaN after all numbers."""

    def compared(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
        for x, y in zip(a, b, strict=True):
            if x < y or (y != y and x == x):
                return -1
            if y < x or (x != x and y == y):
                return 1
        return 0

    if isinstance(keys[0], EnclosedArray) and len(keys) == 1:
        return keys[0].argsort(axis)
    rows = [np.moveaxis(boxed(key), axis, -1) for key in keys]
    order = np.empty(rows[0].shape, dtype=np.int64)
    for place in np.ndindex(order.shape[:-1]):
        numbers = list(map(functools.cmp_to_key(compared), zip(*(row[place] for row in rows), strict=True)))
        order[place] = sorted(range(len(numbers)), key=numbers.__getitem__)
    return np.moveaxis(order, -1, axis)


def _sort(_: Any, equation: Equation, *operands: Any) -> Any:
    """All operands in the order of the leading ones, along one axis."""
    axis = equation.params["dimension"]
    places = _order(operands[: equation.params["num_keys"]], axis)
    return [np.take_along_axis(boxed(operand), places, axis) for operand in operands]


def _top_k(_: Any, equation: Equation, x: Any) -> Any:
    """The k largest numbers in descending order, and their indices; ties in order."""
    axis, k = equation.params.get("axis", -1), equation.params["k"]
    places = np.take(_order([-x], axis), np.arange(k), axis)
    return [np.take_along_axis(boxed(x), places, axis), places.astype(equation.outputs[1].dtype)]


REDUCTIONS: Mapping[str, Rule] = {
    "argmax": _best_index(np.argmax),
    "argmin": _best_index(np.argmin),
    "cumlogsumexp": _running("logaddexp"),
    "cummax": _running("maximum"),
    "cummin": _running("minimum"),
    "cumprod": _running("multiply"),
    "cumsum": _running("sum"),
    "reduce_max": reduction("max"),
    "reduce_min": reduction("min"),
    "reduce_prod": reduction("prod"),
    "reduce_sum": reduction("sum"),
    "reduce_window_max": _windowed("max", -np.inf),
    "reduce_window_min": _windowed("min", np.inf),
    "reduce_window_sum": _windowed("sum", 0.0),
    "sort": _sort,
    "top_k": _top_k,
}


# Products --------------------------------------------------------------------------------------------------------


def _dot_general(xp: Any, equation: Equation, a: Any, b: Any) -> Any:
    """Σ over the contracted axes, for each index of the batch axes; then a's other axes, then b's."""
    (over_a, over_b), (batch_a, batch_b) = equation.params["dimension_numbers"]
    a, b = (boxed(xp.reals(x) if boxed(x).dtype != object else x) for x in (a, b))
    free_a = [k for k in range(a.ndim) if k not in (*over_a, *batch_a)]
    free_b = [k for k in range(b.ndim) if k not in (*over_b, *batch_b)]
    batch = [a.shape[k] for k in batch_a]
    size = int(np.prod([a.shape[k] for k in over_a], dtype=np.int64))
    sides = [int(np.prod([x.shape[k] for k in free], dtype=np.int64)) for x, free in ((a, free_a), (b, free_b))]
    left = a.transpose([*batch_a, *free_a, *over_a]).reshape([*batch, sides[0], size])
    right = b.transpose([*batch_b, *over_b, *free_b]).reshape([*batch, size, sides[1]])
    return product(xp, left, right).reshape(equation.outputs[0].shape)[()]


def _convolution(xp: Any, equation: Equation, x: Any, kernel: Any) -> Any:
    params = equation.params
    if params["batch_group_count"] != 1:
        raise Unsupported("jax's primitive `conv_general_dilated` with groups of the batch")
    spec = params["dimension_numbers"]
    x, kernel = boxed(x).transpose(spec.lhs_spec), boxed(kernel).transpose(spec.rhs_spec)
    of_windows = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    sizes = x.shape[2:], kernel.shape[2:]
    where = equation.remembered("where", lambda: windows(*sizes, *(params[name] for name in of_windows)))
    found = convolution(xp, x, kernel, where, params["feature_group_count"])
    return found.transpose(np.argsort(spec.out_spec))


def _fft(xp: Any, equation: Equation, x: Any) -> Any:
    """Fourier sums over the last axes: complex, from real numbers, or back to real ones."""
    lengths, kind = tuple(equation.params["fft_lengths"]), int(equation.params["fft_type"])
    axes = list(range(-len(lengths), 0))
    whole = xp.fft.ifft if kind in (1, 3) else xp.fft.fft
    if kind == 2:
        x = xp.fft.rfft(x, n=lengths[-1], axis=-1)
    for axis in axes if kind < 2 else axes[:-1]:
        x = whole(x, axis=axis)
    return xp.fft.irfft(x, n=lengths[-1], axis=-1) if kind == 3 else x


# Decompositions --------------------------------------------------------------------------------------------------


def _triangle(xp: Any, params: Mapping[str, Any], a: Any) -> Any:
    """The triangle that jax reads."""
    a = np.tril(a) if params["lower"] else np.triu(a)
    if params["unit_diagonal"]:
        a = xp.where(np.eye(a.shape[-1], dtype=np.bool_), xp.number.of(1), a)
    return xp.reals(a)


def _triangular_solve(xp: Any, equation: Equation, a: Any, b: Any) -> Any:
    """x with a x = b, or x a = b; ``transpose_a``: with the transpose of a."""
    params = equation.params
    a, left, lower = _triangle(xp, params, a), params["left_side"], params["lower"]
    if params["transpose_a"] == left:  # x a = b is aᵀ xᵀ = bᵀ
        a, lower = np.swapaxes(a, -1, -2), not lower
    found = xp.linalg.solve_triangular(a, b if left else np.swapaxes(b, -1, -2), lower=lower)
    return found if left else np.swapaxes(found, -1, -2)


def _lu(xp: Any, equation: Equation, a: Any) -> Any:
    """L and U in one matrix, LAPACK's row exchanges, and the order of the rows."""
    if a.shape[-1] != a.shape[-2]:
        raise Unsupported("jax's primitive `lu` of a non-square matrix")
    packed, order = xp.linalg.lu(a)
    kinds = [aval.dtype for aval in equation.outputs[1:]]
    return [packed, row_exchanges(order).astype(kinds[0]), order.astype(kinds[1])]


def _run(equation: Equation, matrix: Any) -> Any:
    """jax's results for a matrix."""
    return equation.bind(as_decomposed(matrix), **equation.params)


def _eigh(xp: Any, equation: Equation, a: Any) -> Any:
    """Eigenvectors, and eigenvalues in ascending order."""
    if equation.params.get("subset_by_index") is not None:
        raise Unsupported("jax's primitive `eigh` of some eigenvalues")
    found = xp.linalg.eigh(a, upper=not equation.params["lower"], like=lambda matrix: _run(equation, matrix)[0])
    return [found.eigenvectors, found.eigenvalues]


def _eig(xp: Any, equation: Equation, a: Any) -> Any:
    """Eigenvalues in the order of jax, and right eigenvectors."""
    if equation.params["compute_left_eigenvectors"]:
        raise Unsupported("jax's primitive `eig` with left eigenvectors")
    found = xp.linalg.eig(a, lambda matrix: np.asarray(_run(equation, matrix)[0]))
    return list(found)[: len(equation.outputs)]


def _svd(xp: Any, equation: Equation, a: Any) -> Any:
    """Singular values in descending order; with ``compute_uv`` also U and the transpose of V."""
    params = equation.params
    if not params["compute_uv"]:
        return [xp.linalg.svdvals(a)]
    if params["full_matrices"] and a.shape[-1] != a.shape[-2]:
        raise Unsupported("jax's primitive `svd` with the full matrices")
    found = xp.linalg.svd(a, like=lambda matrix: _run(equation, matrix)[1])
    return [found.S, found.U, found.Vh]


def _qr(xp: Any, equation: Equation, a: Any) -> Any:
    params = equation.params
    if params.get("pivoting") or (params["full_matrices"] and a.shape[-2] > a.shape[-1]):
        raise Unsupported("jax's primitive `qr` with pivots or the full Q")
    return list(xp.linalg.qr(a))


def _tridiagonal_solve(xp: Any, _: Any, lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """x with a x = b, for the diagonals of a; the first of the lower and the last of the upper one are ignored."""
    n = diagonal.shape[-1]
    a = np.array(np.broadcast_to(xp.number.of(0), (*diagonal.shape, n)), dtype=object)
    k = np.arange(n)
    a[..., k, k] = diagonal
    a[..., k[1:], k[:-1]] = lower[..., 1:]
    a[..., k[:-1], k[1:]] = upper[..., :-1]
    return xp.linalg.solve(a, b)


LINEAR_ALGEBRA: Mapping[str, Rule] = {
    "cholesky": lambda xp, _, a: xp.linalg.cholesky(a),
    "conv_general_dilated": _convolution,
    "dot_general": _dot_general,
    "eig": _eig,
    "eigh": _eigh,
    "fft": _fft,
    "lu": _lu,
    "qr": _qr,
    "svd": _svd,
    "triangular_solve": _triangular_solve,
    "tridiagonal_solve": _tridiagonal_solve,
}
