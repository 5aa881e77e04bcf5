"""A device that is not there: its arrays are boxes, its calls return before they have finished.

A result that is read too early is NaN. $FAKE_DEVICE has "absent" if the library sees no device, or seconds, such as
"launch=0.002 number=1e-7":

launch    from a call until its work begins, while the work of other calls continues
number    of work for each number; the device does the work of one call after the other
cpu       the same on the processor
copy      of a copy
start     of the device
compile   of a program, unless an earlier process has cached it (kept_programs)
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from adbench import Device, Unsupported
from adbench.model.backend import peak_without_reset
from adbench.model.settings import kept_programs

DEVICES = ("cuda",)
DTYPES = ("float32",)

NAME = "Fake 9000"
PEAK_BYTES = 64.0  # of a call, for each number
COMPILE_BYTES = 640.0  # of compiling, for each number

memory = {"in use": 0.0, "peak": 0.0}  # of the process: the peak cannot be reset
place: dict[str, Any] = {"device": "cpu", "idle": 0.0, "dtype": "float64"}


def seconds(name: str) -> float:
    pairs = (text.partition("=") for text in os.environ.get("FAKE_DEVICE", "").split())
    return next((float(value) for which, _, value in pairs if which == name), 0.0)


class Box:
    """An array on the device, ready at a time."""

    def __init__(self, array: np.ndarray, ready: float = 0.0) -> None:
        self.array, self.ready, self.device = array, ready, place["device"]

    def read(self) -> np.ndarray:
        return self.array if time.perf_counter() >= self.ready else np.full_like(self.array, np.nan)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.read().astype(dtype or np.float64)


class Memory:
    """Memory of the device, until it is forgotten."""

    def __init__(self, size: float) -> None:
        self.size = size
        memory["in use"] += size
        memory["peak"] = max(memory["peak"], memory["in use"])

    def __del__(self) -> None:
        memory["in use"] -= self.size


def use_device(name: str) -> Device:
    is_hidden = os.environ.get("JAX_PLATFORMS") == "cpu"  # as by NO_GPU, for workers on the processor
    if is_hidden or "absent" in os.environ.get("FAKE_DEVICE", ""):
        raise Unsupported(f"no {name.upper()} device: the fake sees cpu only")
    place["device"] = name
    time.sleep(seconds("start"))
    in_use, peak = (partial(memory.get, which) for which in ("in use", "peak"))
    return Device(NAME, wait, partial(peak_without_reset, in_use=in_use, peak=peak, allocate=Memory))


def wait(result: Any) -> None:
    for box in result if isinstance(result, tuple) else (result,):
        time.sleep(max(0.0, box.ready - time.perf_counter()))


sync = wait


def to_native(leaf: Any) -> Box:
    time.sleep(seconds("copy"))
    return Box(np.array(leaf, place["dtype"]))


def use_dtype(name: str) -> None:
    place["dtype"] = name


def to_numpy(box: Box) -> np.ndarray:
    time.sleep(seconds("copy"))
    return box.read()


def compile_for(numbers: int) -> None:
    folder = kept_programs("fake_device")
    program = folder and folder / f"{place['device']}-{numbers}"
    if program is None or not program.exists():
        Memory(COMPILE_BYTES * numbers)
        time.sleep(seconds("compile"))
        if program is not None:
            program.touch()


def prepare(operator: str, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[..., Any]:
    if operator == "value" and not hasattr(f, "case"):  # of a measured rate: the numbers do not matter
        return lambda x: x
    if operator != "gradient":
        raise Unsupported("the fake has only the gradient of softplus")
    assert all(box.device == place["device"] for box in args), "the arguments are not on the device"
    is_on_device = place["device"] == "cuda"
    if is_on_device:
        compile_for(args[0].array.size)

    def call(x: Box) -> tuple[Box]:
        Memory(PEAK_BYTES * x.array.size)
        work = seconds("number" if is_on_device else "cpu") * x.array.size
        begins = max(time.perf_counter() + seconds("launch") * is_on_device, place["idle"])
        place["idle"] = begins + work
        return (Box(1 / (1 + np.exp(-x.read())), place["idle"]),)

    return call
