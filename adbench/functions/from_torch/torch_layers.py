"""ATen's convolutions, pools and normalisations on arrays of the oracle's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Function = Callable[..., Any]


def each(value: Any, count: int) -> list[int]:
    """torch's sizes for every axis; one number applies to all."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def padded(x: Any, widths: Sequence[tuple[int, int]], fill: Any) -> Any:
    """x padded with ``fill`` on its last axes."""
    x = np.asarray(x)
    shape = [*x.shape[: x.ndim - len(widths)]]
    shape += [n + before + after for n, (before, after) in zip(x.shape[x.ndim - len(widths) :], widths, strict=True)]
    found = np.full(shape, fill, dtype=x.dtype)
    sizes = x.shape[x.ndim - len(widths) :]
    inside: Any = (..., *(slice(before, before + n) for n, (before, _) in zip(sizes, widths, strict=True)))
    found[inside] = x
    return found


def windows(x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Any:
    """(…, n₁, …) -> (…, places₁, …, kernel₁, …): the entries under the kernel at each location."""
    count = len(kernel)
    reach = [1 + d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    found = sliding_window_view(x, reach, axis=tuple(range(-count, 0)))
    steps: Any = (..., *(slice(None, None, step) for step in (*stride, *dilation)))
    return found[steps]


def convolution(
    xp: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """torch's convolution of any number of axes: (N, C, …) with (O, C / groups, …)."""
    weight, zero = np.asarray(weight), xp.number.of(0)
    count = weight.ndim - 2
    stride, padding, dilation = (each(value, count) for value in (stride, padding, dilation))
    batched = np.asarray(x).ndim == weight.ndim
    x = np.asarray(x) if batched else np.asarray(x)[None]
    kernel = weight.shape[2:]
    if transposed:
        x, weight = _spread_out(x, weight, stride, groups, zero)
        more = each(output_padding, count)
        ends = [d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True)]
        x = _trimmed(padded(x, [(max(e, 0), max(e + m, 0)) for e, m in zip(ends, more, strict=True)], zero), ends, more)
        stride = [1] * count
    else:
        x = padded(x, [(p, p) for p in padding], zero)
    under = windows(x, kernel, stride, dilation)
    places, inside, outside = under.shape[2 : 2 + count], weight.shape[1], weight.shape[0] // groups
    parts = []
    for g in range(groups):
        rows = np.moveaxis(under[:, g * inside : (g + 1) * inside], 1, 1 + count)
        rows = rows.reshape(x.shape[0] * math.prod(places), inside * math.prod(kernel))
        columns = weight[g * outside : (g + 1) * outside].reshape(outside, -1).T
        parts.append(np.asarray(xp.matmul(rows, columns)).reshape(x.shape[0], *places, outside))
    found = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
    if bias is not None:
        found = found + np.asarray(bias).reshape(-1, *[1] * count)
    return found if batched else found[0]


def _spread_out(x: Any, weight: Any, stride: Sequence[int], groups: int, zero: Any) -> tuple[Any, Any]:
    """A transposed convolution as a convolution of x with zeros between entries and a reversed kernel."""
    shape = [*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], stride, strict=True))]
    spread = np.full(shape, zero, dtype=object)
    steps: Any = (..., *(slice(None, None, s) for s in stride))
    spread[steps] = x
    split = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    turned = np.flip(np.swapaxes(split, 1, 2), axis=tuple(range(3, split.ndim)))
    return spread, turned.reshape(-1, *turned.shape[2:])


def _trimmed(x: Any, ends: Sequence[int], more: Sequence[int]) -> Any:
    """Remove the borders cut off by a padding larger than the kernel."""
    cut = [slice(max(-e, 0), n - max(-e - m, 0)) for n, e, m in zip(x.shape[2:], ends, more, strict=True)]
    return x[(..., *cut)]


def _extra(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The extent of the last `ceil_mode` window beyond the padding."""
    if not ceil_mode:
        return 0
    reach = 1 + dilation * (kernel - 1)
    places = -(-(n + 2 * padding - reach) // stride) + 1
    if (places - 1) * stride >= n + padding:
        places -= 1
    return max(0, (places - 1) * stride + reach - n - 2 * padding)


def max_pool(count: int) -> Function:
    """The largest number under each window, and its flat index."""

    def pool(
        xp: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        kernel, padding, dilation = (each(value, count) for value in (kernel, padding, dilation))
        stride = each(stride, count) if isinstance(stride, int) or stride else kernel
        sizes = np.shape(x)[-count:]
        beyond = [
            _extra(*each_axis, ceil_mode) for each_axis in zip(sizes, kernel, stride, padding, dilation, strict=True)
        ]
        widths = [(p, p + e) for p, e in zip(padding, beyond, strict=True)]
        places = padded(np.arange(math.prod(sizes)).reshape(sizes), widths, -1)
        flat = np.asarray(x).reshape(*np.shape(x)[:-count], -1)
        under = windows(places, kernel, stride, dilation).reshape(*_places(places, kernel, stride, dilation), -1)
        found = np.empty((*flat.shape[:-1], *under.shape[:-1]), dtype=np.int64)
        for batch in np.ndindex(flat.shape[:-1]):
            for place in np.ndindex(under.shape[:-1]):
                among = under[place][under[place] >= 0]
                found[(*batch, *place)] = among[int(np.argmax(flat[batch][among]))]
        chosen = np.take_along_axis(flat, found.reshape(*flat.shape[:-1], -1), -1).reshape(found.shape)
        return chosen, found

    return pool


def _places(x: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    return tuple(windows(x, kernel, stride, dilation).shape[: len(kernel)])


def adaptive_max_pool(count: int) -> Function:
    """The largest number in each of `output_size` parts of almost equal size, and its flat index."""

    def pool(xp: Any, x: Any, output_size: Sequence[int]) -> Any:
        sizes = np.shape(x)[-count:]
        flat = np.asarray(x).reshape(*np.shape(x)[:-count], -1)
        places = np.arange(math.prod(sizes)).reshape(sizes)
        found = np.empty((*flat.shape[:-1], *output_size), dtype=np.int64)
        for part in np.ndindex(*output_size):
            ends = [(k * n // m, -(-(k + 1) * n // m)) for k, n, m in zip(part, sizes, output_size, strict=True)]
            among = places[tuple(slice(*end) for end in ends)].reshape(-1)
            found[(..., *part)] = among[np.argmax(flat[..., among], axis=-1)]
        chosen = np.take_along_axis(flat, found.reshape(*flat.shape[:-1], -1), -1).reshape(found.shape)
        return chosen, found

    return pool


def average_pool(count: int) -> Function:
    """The mean under each window."""

    def pool(
        xp: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        kernel, padding = each(kernel, count), each(padding, count)
        stride = each(stride, count) if isinstance(stride, int) or stride else kernel
        ones, sizes = [1] * count, np.shape(x)[-count:]
        beyond = [_extra(*each_axis, ceil_mode) for each_axis in zip(sizes, kernel, stride, padding, ones, strict=True)]
        inside = padded(np.ones(sizes, dtype=np.int64), [(p, p) for p in padding], int(count_include_pad))
        counted = windows(padded(inside, [(0, e) for e in beyond], 0), kernel, stride, ones)
        widths = [(p, p + e) for p, e in zip(padding, beyond, strict=True)]
        under = windows(padded(x, widths, xp.number.of(0)), kernel, stride, ones)
        last = tuple(range(-count, 0))
        divisor = divisor_override or counted.sum(axis=last).astype(object)
        return xp.sum(under, last) / divisor

    return pool


def layer_norm(xp: Any, x: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """(x - mean) / √(var + eps) over the last axes."""
    last = tuple(range(-len(normalized_shape), 0))
    mean = xp.mean(x, last, keepdims=True)
    scale = 1 / xp.sqrt(xp.var(x, last, keepdims=True) + eps)
    found = (x - mean) * scale
    found = found if weight is None else found * weight
    return found if bias is None else found + bias, mean, scale


def group_norm(
    xp: Any, x: Any, weight: Any, bias: Any, n: int, channels: int, size: int, groups: int, eps: float
) -> Any:
    """The same over groups of channels."""
    rows = np.asarray(x).reshape(n, groups, -1)
    found, mean, scale = layer_norm(xp, rows, (rows.shape[-1],), None, None, eps)
    found = np.asarray(found).reshape(np.shape(x))
    shape = (1, channels, *[1] * (found.ndim - 2))
    found = found if weight is None else found * np.asarray(weight).reshape(shape)
    found = found if bias is None else found + np.asarray(bias).reshape(shape)
    return found, np.asarray(mean)[..., 0], np.asarray(scale)[..., 0]


LAYERS: Mapping[str, Function] = {
    "adaptive_max_pool2d": adaptive_max_pool(2),
    "adaptive_max_pool3d": adaptive_max_pool(3),
    "avg_pool1d": average_pool(1),
    "avg_pool2d": average_pool(2),
    "avg_pool3d": average_pool(3),
    "convolution": convolution,
    "max_pool2d_with_indices": max_pool(2),
    "max_pool3d_with_indices": max_pool(3),
    "native_group_norm": group_norm,
    "native_layer_norm": layer_norm,
}
