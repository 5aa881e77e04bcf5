"""Products of arrays: matmul of all ranks, and products built on it.

Each is bilinear and one node: y = A · B, with Ȧ · B + A · Ḃ forwards and Ā = ȳ · Bᵀ, B̄ = Aᵀ · ȳ backwards. Reverse
mode sums over broadcast axes of stacks.
"""

from __future__ import annotations

import operator
import string
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from adbench.tape.core.rule import AllInputs, Rule, Value, own_gradients
from adbench.tape.fast.blocks import LARGE, room
from adbench.tape.numpy_names import publish
from adbench.tape.rules.indexing import diagonal
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import (
    Axes,
    Shape,
    asarray,
    broadcast_to,
    matrix_transpose,
    moveaxis,
    normal_axes,
    ravel,
    reshape,
    sum_to,
    transpose,
)
from adbench.tape.values import shape_of


def _as_matrices(adj: Value, a: Value, b: Value) -> tuple[Value, Shape, Shape]:
    """The adjoint of a product with the axes of vector factors restored, and the factors' shapes as matrices."""
    a_shape, b_shape = shape_of(a), shape_of(b)
    rows = () if len(a_shape) == 1 else (a_shape[-2],)
    columns = () if len(b_shape) == 1 else (b_shape[-1],)
    adj_shape = shape_of(adj)
    batch = adj_shape[: len(adj_shape) - len(rows) - len(columns)]
    full = reshape(adj, (*batch, *(rows or (1,)), *(columns or (1,))))
    return full, a_shape if rows else (1, *a_shape), b_shape if columns else (*b_shape, 1)


def _left(_val: Value, adj: Value, _a: Value, b: Value) -> Value:
    """Ā = ȳ Bᵀ."""
    if type(adj) is type(b) is np.ndarray and adj.ndim == b.ndim == 2:
        return adj.dot(b.T)
    if len(shape_of(_a)) == len(shape_of(b)) == 2:
        return matmul(adj, transpose(b))
    full, a_shape, b_shape = _as_matrices(adj, _a, b)
    back = matmul(full, matrix_transpose(reshape(b, b_shape)))
    return reshape(sum_to(back, a_shape), shape_of(_a))


def _right(_val: Value, adj: Value, a: Value, _b: Value) -> Value:
    """B̄ = Aᵀ ȳ."""
    if type(adj) is type(a) is np.ndarray and a.ndim == 2 and adj.ndim <= 2:
        return a.T.dot(adj)
    if len(shape_of(a)) == 2 and len(shape_of(_b)) <= 2:
        return matmul(transpose(a), adj)
    full, a_shape, b_shape = _as_matrices(adj, a, _b)
    back = matmul(matrix_transpose(reshape(a, a_shape)), full)
    return reshape(sum_to(back, b_shape), shape_of(_b))


def _product(a: Value, b: Value) -> Value:
    """numpy.matmul. For vectors and matrices it uses the equal but quicker `dot`."""
    if type(a) is type(b) is np.ndarray and a.ndim <= 2 and b.ndim <= 2:
        if b.ndim == 1 and len(a) >= LARGE and a.ndim == 2:
            return a.dot(b, room((len(a),)))
        return a.dot(b)
    return np.matmul(a, b)


matmul: Rule = own_gradients(
    _product,
    reverse=(_left, _right),
    forward=(lambda _v, tan, _a, b: matmul(tan, b), lambda _v, tan, a, _b: matmul(a, tan)),
    name="matmul",
)
"""A @ B for vectors, matrices and stacks of matrices, as in numpy. One node, not n³."""


def vecdot(a: Value, b: Value, axis: int = -1) -> Value:
    """Σ a b along an axis."""
    return sum(a * b, axis)


def dot(a: Value, b: Value) -> Value:
    """numpy.dot: a product with a scalar, a matrix product, or the sum over a's last and b's second-to-last axis."""
    a, b = asarray(a), asarray(b)
    a_ndim, b_ndim = len(shape_of(a)), len(shape_of(b))
    if 0 < a_ndim <= 2 and 0 < b_ndim <= 2:
        return matmul(a, b)
    if a_ndim == 0 or b_ndim == 0:
        return a * b
    return tensordot(a, b, ((-1,), (-2 if b_ndim > 1 else -1,)))


def inner(a: Value, b: Value) -> Value:
    """The sum over the last axis of both."""
    return a * b if not shape_of(a) or not shape_of(b) else tensordot(a, b, ((-1,), (-1,)))


def outer(a: Value, b: Value) -> Value:
    """y[i, j] = a[i] b[j], of the flattened arguments."""
    return reshape(a, (-1, 1)) * reshape(b, (1, -1))


def vdot(a: Value, b: Value) -> Value:
    """Σ a b of the flattened arguments."""
    return matmul(ravel(a), ravel(b))


def tensordot(a: Value, b: Value, axes: Any = 2) -> Value:
    """The sum over pairs of axes of a and b: one matrix product of reshaped arrays."""
    a, b = asarray(a), asarray(b)
    a_shape, b_shape = shape_of(a), shape_of(b)
    pairs = (range(len(a_shape) - axes, len(a_shape)), range(axes)) if isinstance(axes, int) else axes
    a_axes, b_axes = normal_axes(_listed(pairs[0]), len(a_shape)), normal_axes(_listed(pairs[1]), len(b_shape))
    if tuple(a_shape[i] for i in a_axes) != tuple(b_shape[i] for i in b_axes):
        raise ValueError(f"tensordot: shapes {a_shape} and {b_shape} do not match on axes {a_axes} and {b_axes}")
    a_rest = tuple(i for i in range(len(a_shape)) if i not in a_axes)
    b_rest = tuple(i for i in range(len(b_shape)) if i not in b_axes)
    summed = int(np.prod([a_shape[i] for i in a_axes], dtype=int))
    rows = tuple(a_shape[i] for i in a_rest)
    columns = tuple(b_shape[i] for i in b_rest)
    left = reshape(transpose(a, a_rest + a_axes), (int(np.prod(rows, dtype=int)), summed))
    right = reshape(transpose(b, b_axes + b_rest), (summed, int(np.prod(columns, dtype=int))))
    return reshape(matmul(left, right), rows + columns)


def _listed(axes: Axes) -> Sequence[int]:
    return (int(axes),) if isinstance(axes, (int, np.integer)) else tuple(axes or ())


def kron(a: Value, b: Value) -> Value:
    """The Kronecker product: blocks a[i, j] b."""
    a, b = asarray(a), asarray(b)
    ndim = max(len(shape_of(a)), len(shape_of(b)))
    a_shape, b_shape = ((1,) * (ndim - len(s)) + s for s in (shape_of(a), shape_of(b)))
    spaced_a = reshape(a, tuple(n for length in a_shape for n in (length, 1)))
    spaced_b = reshape(b, tuple(n for length in b_shape for n in (1, length)))
    return reshape(spaced_a * spaced_b, tuple(m * n for m, n in zip(a_shape, b_shape, strict=True)))


# Einsum


def lengths_of(labels: Sequence[str], inputs: Sequence[Value]) -> dict[str, int]:
    """The length of each label's axis."""
    lengths: dict[str, int] = {}
    for x, names in zip(inputs, labels, strict=True):
        for n, name in zip(shape_of(x), names, strict=True):
            lengths[name] = max(lengths.get(name, 1), n)
    return lengths


def spread_over(x: Value, labels: str, names: str) -> Value:
    """x with an axis for each name. A name that is not one of its labels has length 1."""
    order = [labels.index(name) for name in names if name in labels]
    ordered = x if order == sorted(order) else transpose(x, order)
    lengths = iter(shape_of(ordered))
    return reshape(ordered, tuple(next(lengths) if name in labels else 1 for name in names))


def _einsum_back(
    wanted: Sequence[bool], _val: Value, adj: Value, *inputs: Value, labels: tuple[str, ...], out: str
) -> list[Value]:
    """Ā_k = einsum of ȳ with the other factors, onto A_k's labels, repeated along labels that only A_k has."""
    lengths = lengths_of(labels, inputs)
    back: list[Value] = []
    for k, is_wanted in enumerate(wanted):
        if not is_wanted:
            back.append(None)
            continue
        others = [(x, s) for i, (x, s) in enumerate(zip(inputs, labels, strict=True)) if i != k]
        shared = "".join(name for name in labels[k] if name in out or any(name in s for _, s in others))
        part = _einsum(adj, *(x for x, _ in others), labels=(out, *(s for _, s in others)), out=shared)
        full = tuple(lengths[name] for name in labels[k])
        back.append(sum_to(broadcast_to(spread_over(part, shared, labels[k]), full), shape_of(inputs[k])))
    return back


def _einsum_along(_val: Value, tans: Sequence[Value], *inputs: Value, labels: tuple[str, ...], out: str) -> Value:
    terms = (
        _einsum(*inputs[:k], tan, *inputs[k + 1 :], labels=labels, out=out)
        for k, tan in enumerate(tans)
        if tan is not None
    )
    return reduce(operator.add, terms)


_einsum = own_gradients(
    lambda *inputs, labels, out: np.einsum(",".join(labels) + "->" + out, *inputs, optimize=len(inputs) > 2),
    reverse=AllInputs(_einsum_back),
    forward=AllInputs(_einsum_along),
    name="einsum",
)


def einsum(subscripts: str, *operands: Value, **kw: Any) -> Value:
    """Einstein summation, with ellipses, repeated labels ("ii->i") and axes of length 1 broadcast, as in numpy."""
    kw.pop("optimize", None)
    if kw or not isinstance(subscripts, str):
        raise TypeError(
            f"einsum: got options {sorted(kw)} without a derivative; use the form einsum('ij,jk->ik', a, b)"
        )
    inputs = [asarray(x) for x in operands]
    labels, out = _explicit(subscripts.replace(" ", ""), [len(shape_of(x)) for x in inputs])
    pairs = [_without_repeats(x, names) for x, names in zip(inputs, labels, strict=True)]
    return _einsum(*(x for x, _ in pairs), labels=tuple(names for _, names in pairs), out=out)


def _explicit(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Labels of each operand and of the result, with ellipses and the default result made explicit."""
    left, arrow, out = subscripts.partition("->")
    labels = left.split(",")
    if len(labels) != len(ndims):
        raise ValueError(f"einsum: {subscripts!r} names {len(labels)} operands, got {len(ndims)}")
    free = [c for c in string.ascii_letters if c not in subscripts]
    counts = [n - len(s.replace("...", "")) if "..." in s else 0 for n, s in zip(ndims, labels, strict=True)]
    dots = "".join(free[: max(counts)])
    spelled = [
        s.replace("...", dots[len(dots) - count :] if count else "") for s, count in zip(labels, counts, strict=True)
    ]
    for names, n in zip(spelled, ndims, strict=True):
        if len(names) != n:
            raise ValueError(f"einsum: {subscripts!r} gives {len(names)} labels to an operand of {n} dimensions")
    if not arrow:
        joined = "".join(s.replace("...", "") for s in labels)
        return spelled, dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    return spelled, out.replace("...", dots)


def _without_repeats(x: Value, names: str) -> tuple[Value, str]:
    """x with each label once: a repeated label takes the diagonal of its two axes."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            i, j = names.index(name), names.index(name, names.index(name) + 1)
            x = moveaxis(diagonal(x, 0, i, j), -1, 0)
            names = name + "".join(c for k, c in enumerate(names) if k not in (i, j))
    return x, names


publish(globals(), helpers="lengths_of spread_over")
