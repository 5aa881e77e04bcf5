"""The floating-point type that a device is built for."""

from __future__ import annotations

import ctypes

FLOAT32_TO_FLOAT64 = 87
"""CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO of the CUDA driver API."""


def float32_speed(device: str) -> int:
    """How many times as fast as in float64 the device computes in float32, by its driver; 1 if nothing is known.

    This starts nothing on the device.
    """
    if device != "cuda":
        return 1
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:  # no driver: the libraries will report it
        return 1
    first, ratio = ctypes.c_int(), ctypes.c_int()
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(first), 0)
        or driver.cuDeviceGetAttribute(ctypes.byref(ratio), FLOAT32_TO_FLOAT64, first)
    )
    return 1 if failed else ratio.value
