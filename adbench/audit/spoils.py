"""Errors that are put into a gradient before a test sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = list[Any]
"""The floating-point arrays of one gradient, of one library."""


@dataclass(frozen=True)
class Spoil:
    """An error of a gradient.

    apply   arrays and their namespace (numpy, jax.numpy or torch) -> the spoiled arrays; one that the error cannot
            touch stays the same object
    needs   names of spoils that are larger: a test that does not notice one of these does not notice this
    """

    name: str
    label: str
    apply: Callable[[Arrays, Any], Arrays]
    needs: tuple[str, ...] = ()


def _scaled(factor: float) -> Callable[[Arrays, Any], Arrays]:
    return lambda arrays, xp: [array * factor for array in arrays]


def _zero(arrays: Arrays, xp: Any) -> Arrays:
    return [xp.zeros_like(array) for array in arrays]


def _without_last_row(arrays: Arrays, xp: Any) -> Arrays:
    """The last row along the first axis is zero; an array without axes stays."""
    return [_masked(array, xp) if array.ndim and array.shape[0] else array for array in arrays]


def _masked(array: Any, xp: Any) -> Any:
    mask = np.ones(array.shape[:1] + (1,) * (array.ndim - 1), bool)
    mask[-1] = False
    where = xp.asarray(mask, device=array.device) if xp.__name__ == "torch" else xp.asarray(mask)
    return xp.where(where, array, xp.zeros_like(array))


def _exchanged(arrays: Arrays, xp: Any) -> Arrays:
    """The first two arrays of one shape and type change places."""
    kinds = [(tuple(array.shape), str(array.dtype)) for array in arrays]
    for j, kind in enumerate(kinds):
        i = kinds.index(kind)
        if i < j:
            changed = list(arrays)
            changed[i], changed[j] = arrays[j], arrays[i]
            return changed
    return arrays


def _in_lower_precision(arrays: Arrays, xp: Any) -> Arrays:
    """float64 by way of float32, and float32 by way of bfloat16, in numpy float16; shorter types stay."""
    short = getattr(xp, "bfloat16", np.float16)
    lower = {"float64": xp.float32, "float32": short, "complex128": xp.complex64}
    return [_by_way_of(array, lower.get(_type_name(array)), xp) for array in arrays]


def _by_way_of(array: Any, lower: Any, xp: Any) -> Any:
    if lower is None:
        return array
    if xp.__name__ == "torch":
        return array.to(lower).to(array.dtype)
    return array.astype(lower).astype(array.dtype)


def _type_name(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def floating(arrays: Sequence[Any]) -> list[int]:
    """The positions of the arrays that a gradient can stand in: real or complex numbers, stored densely."""
    return [
        i
        for i, array in enumerate(arrays)
        if hasattr(array, "dtype") and _type_name(array).startswith(("float", "bfloat", "complex")) and _is_dense(array)
    ]


def _is_dense(array: Any) -> bool:
    """False for torch's sparse tensors. jax's traced arrays have a layout, too, since 0.12."""
    layout = str(getattr(array, "layout", ""))
    return layout == "torch.strided" or not layout.startswith("torch.")


SPOILS = (
    Spoil("zero", "zero", _zero),
    Spoil("ten_percent", "+10%", _scaled(1.1)),
    Spoil("negated", "−g", _scaled(-1.0)),
    Spoil("nan", "NaN", _scaled(float("nan"))),
    Spoil("last_row", "row", _without_last_row),
    Spoil("exchanged", "swap", _exchanged),
    Spoil("one_in_a_thousand", "+0.1%", _scaled(1.001), needs=("ten_percent",)),
    Spoil("lower_precision", "short", _in_lower_precision, needs=("ten_percent", "one_in_a_thousand")),
)
"""In the order in which a test is tried: what tells most comes first."""
