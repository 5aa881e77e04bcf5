"""ATen's convolutions, pools and normalisations on arrays of the oracle's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adbench.oracle.series.algebra import positions

Function = Callable[..., Any]


def each(value: Any, count: int) -> list[int]:
    """torch's sizes for every axis; one number applies to all."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def convolution(
    xp: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """torch's convolution of any number of axes: (N, C, …) with (O, C / groups, …)."""
    weight = np.asarray(weight)
    count = weight.ndim - 2
    stride, padding, dilation = (each(value, count) for value in (stride, padding, dilation))
    batched = np.asarray(x).ndim == weight.ndim
    x = np.asarray(x) if batched else np.asarray(x)[None]
    spread, widths = [1] * count, [(p, p) for p in padding]
    if transposed:  # a convolution of x with zeros between its entries, and a reversed kernel
        ends = [d * (k - 1) - p for k, p, d in zip(weight.shape[2:], padding, dilation, strict=True)]
        widths = [(end, end + more) for end, more in zip(ends, each(output_padding, count), strict=True)]
        spread, stride = stride, spread
        split = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
        turned = np.flip(np.swapaxes(split, 1, 2), axis=tuple(range(3, split.ndim)))
        weight = turned.reshape(-1, *turned.shape[2:])
    where = positions.windows(x.shape[2:], weight.shape[2:], stride, widths, spread, dilation)
    found = positions.convolution(xp, x, weight, where, groups)
    if bias is not None:
        found = found + np.asarray(bias).reshape(-1, *[1] * count)
    return found if batched else found[0]


def _extra(n: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """The extent of the last `ceil_mode` window beyond the padding."""
    if not ceil_mode:
        return 0
    places = -(-(n + 2 * padding - kernel) // stride) + 1
    if (places - 1) * stride >= n + padding:
        places -= 1
    return max(0, (places - 1) * stride + kernel - n - 2 * padding)


def adaptive_max_pool(count: int) -> Function:
    """The largest number in each of `output_size` parts of almost equal size, and its flat index."""

    def pool(xp: Any, x: Any, output_size: Sequence[int]) -> Any:
        sizes = np.shape(x)[-count:]
        flat = np.reshape(x, (*np.shape(x)[:-count], -1))
        places = np.arange(math.prod(sizes)).reshape(sizes)
        found = np.empty((*flat.shape[:-1], *output_size), dtype=np.int64)
        for part in np.ndindex(*output_size):
            ends = [(k * n // m, -(-(k + 1) * n // m)) for k, n, m in zip(part, sizes, output_size, strict=True)]
            among = places[tuple(slice(*end) for end in ends)].reshape(-1)
            found[(..., *part)] = among[np.argmax(flat[..., among], axis=-1)]
        return np.take_along_axis(flat, found.reshape(*flat.shape[:-1], -1), -1).reshape(found.shape), found

    return pool


def average_pool(count: int) -> Function:
    """The mean under each window."""

    def pool(
        xp: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        sizes, ones = np.shape(x)[-count:], [1] * count
        kernel, padding = each(kernel, count), each(padding, count)
        stride = each(stride, count) if isinstance(stride, int) or stride else kernel
        beyond = [_extra(*axis, ceil_mode) for axis in zip(sizes, kernel, stride, padding, strict=True)]

        def windows(sizes: Sequence[int], padding: Sequence[int]) -> Any:
            widths = [(p, p + more) for p, more in zip(padding, beyond, strict=True)]
            where = positions.windows(tuple(sizes), kernel, stride, widths, ones, ones)
            return where.reshape(*where.shape[:count], -1)

        under, flat = windows(sizes, padding), np.reshape(x, (*np.shape(x)[:-count], -1))
        numbers = np.concatenate([flat, np.broadcast_to(xp.number.of(0), (*flat.shape[:-1], 1))], axis=-1)
        whole = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
        counted = windows(whole, [0] * count) if count_include_pad else under
        divisor = divisor_override or (counted != positions.FILLED).sum(axis=-1).astype(object)
        return xp.sum(numbers[..., under], -1) / divisor

    return pool


LAYERS: Mapping[str, Function] = {
    "adaptive_max_pool2d": adaptive_max_pool(2),
    "adaptive_max_pool3d": adaptive_max_pool(3),
    "avg_pool2d": average_pool(2),
    "avg_pool3d": average_pool(3),
    "convolution": convolution,
}
