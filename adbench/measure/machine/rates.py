"""How fast a machine copies an array much larger than its caches, as in STREAM, and multiplies matrices.

Both are the median of repetitions; `spread` says how much these differ. The copy counts the bytes read and written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any

import numpy as np

from adbench.measure.machine.system_files import SYS, word
from adbench.measure.readings import Rate, Rates

REPETITIONS, FEWEST = 5, 3
ENOUGH_NS = 2 * 10**8  # fewer repetitions after this time
LARGER = 3  # an array is so many times as large as the last cache
LEAST_BYTES, MOST_BYTES = 1 << 25, 1 << 28
ON_DEVICE_BYTES = 1 << 28
ORDER = 384  # of the matrices
ORDER_ON_DEVICE = 4096
SLOW_IN_NUMPY = ("bfloat16", "float16")


def rate(
    work: Callable[[], object], amount: float, *, repetitions: int = REPETITIONS, clock: Callable[[], int] | None = None
) -> Rate:
    """The amount that the work does in a second: the median, after one repetition that does not count."""
    clock, rates, spent = clock or perf_counter_ns, list[float](), 0
    for number in range(repetitions + 1):
        begun = clock()
        work()
        ns = max(1, clock() - begun)
        spent += ns
        if number:
            rates.append(amount * 1e9 / ns)
        if number >= FEWEST and spent > ENOUGH_NS:
            break
    low, middle, high = quantiles(rates, n=4)
    return Rate(median(rates), (high - low) / middle)


def array_bytes(sys: Path = SYS) -> int:
    """The size of an array that no cache holds."""
    sizes = (word(folder / "size") for folder in sys.glob("devices/system/cpu/cpu0/cache/index*"))
    kilobytes = max((int(text[:-1]) for text in sizes if text and text[:-1].isdecimal()), default=0)
    return min(max(LARGER * kilobytes << 10, LEAST_BYTES), MOST_BYTES)


def on_processor(dtype: str = "float64") -> Rates:
    """By numpy, with as many threads as its BLAS may use."""
    source = np.ones(array_bytes() // 8)
    target = np.zeros_like(source)
    copied = rate(lambda: np.copyto(target, source), 2 * source.nbytes)
    if dtype in SLOW_IN_NUMPY:
        return Rates(copied, Rate(None, None, f"numpy has no fast products of {dtype}"))
    matrix = np.ones((ORDER, ORDER), dtype)
    product = np.empty_like(matrix)
    return Rates(copied, rate(lambda: np.matmul(matrix, matrix, out=product), 2 * ORDER**3))


def by_library(value: Callable[[Callable[..., Any], Any], tuple[Callable[[], object], int]]) -> Rates:
    """By a library on its device: value(f, array) -> a call that computes f there and waits, and the bytes of a number.

    The copy is that of −x: each number is read once and written once.
    """
    negate, itemsize = value(lambda x: -x, np.ones(ON_DEVICE_BYTES // 8))
    copied = rate(negate, 2 * itemsize * (ON_DEVICE_BYTES // 8))
    multiply, _ = value(lambda x: x @ x, np.ones((ORDER_ON_DEVICE, ORDER_ON_DEVICE)))
    return Rates(copied, rate(multiply, 2 * ORDER_ON_DEVICE**3))
