"""New arrays that may be active, under the array API's names. (Those that never are, as `zeros`, are numpy's own.)

An array made like an active value is active too, so you can write values computed from it into the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import Active, Value
from adbench.tape.numpy_names import publish
from adbench.tape.rules.shapes import Shape, asarray, broadcast_to, reshape, zeros_like
from adbench.tape.values import any_active, shape_of


def full(shape: int | Shape, fill_value: Value, dtype: Any = None) -> Value:
    """An array filled with one number; active if the number is."""
    if isinstance(fill_value, Active):
        return broadcast_to(fill_value, shape)
    return np.full(shape, fill_value, np.float64 if dtype is None else dtype)


def linspace(start: Value, stop: Value, num: int = 50, endpoint: bool = True) -> Value:
    """`num` evenly spaced numbers from start to stop; the ends may be active."""
    if not any_active((start, stop)):
        return np.linspace(start, stop, num, endpoint)
    parts = np.linspace(0.0, 1.0, num, endpoint)
    return start * (1.0 - parts) + stop * parts


def ones_like(x: Value, shape: Shape | None = None) -> Value:
    """Ones in the shape of x; active if x is."""
    return zeros_like(x, shape) + 1.0


def full_like(x: Value, fill_value: Value, shape: Shape | None = None) -> Value:
    """An array in the shape of x filled with one number; active if either is."""
    return zeros_like(x, shape) + fill_value


def meshgrid(*arrays: Value, indexing: str = "xy") -> list[Value]:
    """The coordinates of a grid: vectors of lengths n, m, … become arrays of shape (m, n, …), or (n, m, …) for "ij"."""
    vectors = [asarray(a) for a in arrays]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        order[:2] = 1, 0
    lengths: Sequence[int] = [shape_of(vectors[i])[0] for i in order]
    return [
        broadcast_to(reshape(v, tuple(-1 if order[axis] == i else 1 for axis in range(len(order)))), tuple(lengths))
        for i, v in enumerate(vectors)
    ]


def astype(x: Value, dtype: Any) -> Value:
    """x in another type. An active value allows only float64: any other type would lose the derivative."""
    return x.astype(dtype) if isinstance(x, Active) else np.asarray(x).astype(dtype)  # type: ignore[attr-defined]  # every active type is an Operand


publish(globals())
