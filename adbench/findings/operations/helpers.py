# ruff: noqa: D103 - one-liners, whose names say what they do
"""Functions that the definitions of operations call. A program has their source, which therefore names nothing else."""

from __future__ import annotations

from typing import Any


def positive_part(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0.0 * x)


def negative_part(xp: Any, x: Any) -> Any:
    return xp.minimum(x, 0.0 * x)


def as_column(xp: Any, x: Any) -> Any:
    return xp.expand_dims(x, axis=-1)


def kept(xp: Any, reduce: Any, x: Any) -> Any:
    return xp.expand_dims(reduce(x, axis=-1), axis=-1)


def columns(xp: Any, x: Any, *places: int) -> Any:
    return xp.stack([x[..., k] for k in places], axis=-1)


def scan(xp: Any, x: Any, combine: Any) -> Any:
    partial = [x[..., 0]]
    for k in (1, 2):
        partial.append(combine(partial[-1], x[..., k]))
    return xp.stack(partial, axis=-1)


def logsumexp(xp: Any, x: Any) -> Any:
    largest = xp.max(x, axis=-1)
    return largest + xp.log(xp.sum(xp.exp(x - xp.expand_dims(largest, axis=-1)), axis=-1))


def log_softmax(xp: Any, x: Any) -> Any:
    shifted = x - as_column(xp, xp.max(x, axis=-1))
    return shifted - as_column(xp, xp.log(xp.sum(xp.exp(shifted), axis=-1)))


def standardised(xp: Any, x: Any, epsilon: float, axis: int = -1) -> Any:
    centred = x - xp.expand_dims(xp.mean(x, axis=axis), axis=axis)
    return centred / xp.sqrt(xp.expand_dims(xp.mean(centred * centred, axis=axis), axis=axis) + epsilon)


def correlation(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum(x * y) / (xp.sqrt(xp.sum(x * x)) * xp.sqrt(xp.sum(y * y)))


def huber(xp: Any, error: Any, delta: float) -> Any:
    size = xp.abs(error)
    return xp.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta))


def attention(xp: Any, x: Any, y: Any, z: Any) -> Any:
    scores = x @ xp.matrix_transpose(y) / 1.4142135623730951
    return xp.exp(log_softmax(xp, scores)) @ z


def symmetrised(xp: Any, x: Any) -> Any:
    return (x + xp.matrix_transpose(x)) / 2.0


def solve_vector(xp: Any, x: Any, y: Any) -> Any:
    return xp.linalg.solve(x, as_column(xp, y))[..., 0]
