"""A device that is not there: its arrays are boxes, its calls return before they have finished.

A result that is read too early is NaN. $FAKE_DEVICE has the seconds of a call and of a copy, such as "0.002 0.02", and
"absent" if the library sees no device.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Device, Unsupported

DEVICES = ("cuda",)

NAME = "Fake 9000"
PEAK_BYTES = 64.0  # of a call, for each number

counted = {"peak": 0.0}  # of the process: it cannot be reset
place = {"device": "cpu"}


def seconds(which: int) -> float:
    return float(os.environ.get("FAKE_DEVICE", "0 0").split()[which])


class Box:
    """An array on the device, ready at a time."""

    def __init__(self, array: np.ndarray, ready: float = 0.0) -> None:
        self.array, self.ready, self.device = array, ready, place["device"]

    def read(self) -> np.ndarray:
        return self.array if time.perf_counter() >= self.ready else np.full_like(self.array, np.nan)


def use_device(name: str) -> Device:
    if os.environ.get("FAKE_DEVICE", "").endswith("absent"):
        raise Unsupported(f"no {name.upper()} device: the fake sees cpu only")
    place["device"] = name
    return Device(NAME, wait, peak_bytes)


def wait(result: Any) -> None:
    for box in result if isinstance(result, tuple) else (result,):
        time.sleep(max(0.0, box.ready - time.perf_counter()))


def peak_bytes(call: Callable[[], Any]) -> float:
    call()
    return counted["peak"]


def to_native(leaf: Any) -> Box:
    time.sleep(seconds(1))
    return Box(np.array(leaf))


def to_numpy(box: Box) -> np.ndarray:
    time.sleep(seconds(1))
    return box.read()


def prepare(operator: str, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[..., Any]:
    if operator != "gradient":
        raise Unsupported("the fake has only the gradient of softplus")
    assert all(box.device == "cuda" for box in args), "the arguments are not on the device"

    def call(x: Box) -> tuple[Box]:
        counted["peak"] = max(counted["peak"], PEAK_BYTES * x.array.size)
        return (Box(1 / (1 + np.exp(-x.read())), time.perf_counter() + seconds(0)),)

    return call
