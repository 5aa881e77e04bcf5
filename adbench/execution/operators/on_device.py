"""A backend on another device than the processor, or in another type than float64: its choice, the copies to and from
the device, its memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from adbench.catalog import discovery
from adbench.catalog.source import Source
from adbench.measure.machine import rates as machine_rates
from adbench.measure.memory import median_of
from adbench.measure.readings import Figure, Rates
from adbench.model import tree
from adbench.model.backend import Backend, Call, Device, Operator, from_module
from adbench.model.errors import AdbenchError, BadFile, Unsupported
from adbench.model.record import Summary
from adbench.model.settings import FLOAT64, PROCESSOR


class NoDevice(AdbenchError):
    """The run's device is not there: the library's cells are skipped with this reason."""


def loaded(source: Source, device: str, transfers: str, dtype: str = FLOAT64) -> Backend:
    """The backend of a file, on this device, in this type; with transfers "inside", its calls copy arguments and
    results.

    Raises BadFile if the file cannot be used, NoDevice if the library does not see the device.
    """
    if source.refuses(device):
        raise NoDevice(f"it has no device {device}")
    module = discovery.load(source)
    used = None if device == PROCESSOR else _used(module, device)  # before its names are read: they may depend on it
    if is_told := dtype in source.dtypes:
        module.use_dtype(dtype)
    backend = from_module(source.name, module)
    if dtype != FLOAT64:
        backend = replace(backend, dtype=dtype, rounds_inputs=True)
    if is_told:
        from adbench.execution.precision.given import in_numpy  # numpy has no bfloat16

        backend = replace(backend, to_numpy=in_numpy)
    if used is not None:
        backend = replace(backend, device=used, sync=used.sync)
    return with_transfers(backend) if transfers == "inside" and used is not None else backend


def with_transfers(backend: Backend) -> Backend:
    """The backend with copies inside each call: calls take and return numpy arrays."""

    def prepare(operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Call:
        call = backend.prepare(operator, f, backend.native_inputs(args), wrt)

        def with_copies(*args: Any) -> Any:
            return backend.numpy_result(backend.waited(call(*backend.native_inputs(args))))

        return with_copies

    return replace(backend, prepare=prepare, to_native=tree.copied, to_numpy=np.asarray, sync=None)


def peak(backend: Backend, call: Callable[[], Any], times: int) -> Figure:
    """Bytes allocated on the device at the peak of one call, by the library's counter: the median of some calls."""
    count = backend.device.peak_bytes if backend.device else None
    if count is None:
        return Figure(None, f"{backend.name} has no counter of the device's memory")
    return median_of(lambda one: Figure(float(count(one))), call, times)


def create_there(backend: Backend) -> None:
    """On a device: also code that names no device creates torch's tensors there. For checks: it slows calls down."""
    if backend.device is not None and backend.name.startswith("torch"):
        importlib.import_module("torch").set_default_device(backend.to_native(0.0).device)


def rates(backend: Backend | None, dtype: str) -> Rates:
    """How fast the backend's device copies and computes, or the processor, by numpy, without one."""
    if backend is None or backend.device is None:
        return machine_rates.on_processor(dtype)

    def value(f: Callable[..., Any], array: Any) -> tuple[Callable[[], Any], int]:
        native = backend.native_inputs((array,))
        call = backend.prepare("value", f, native, (0,))
        return lambda: backend.waited(call(*native)), bytes_of_numbers(backend)

    return machine_rates.by_library(value)


def bytes_of_numbers(backend: Backend) -> int:
    """The bytes of a floating-point number in the backend's type."""
    return {"float64": 8, "float32": 4}.get(backend.precision if backend.dtype == FLOAT64 else backend.dtype, 2)


def least_bytes(backend: Backend, args: tuple[Any, ...], result: Summary) -> float:
    """A lower bound of the bytes that a call moves: it reads its inputs once, and writes its result once."""
    arrays = [np.asarray(leaf) for leaf in tree.leaves(args)]
    count = sum(array.size for array in arrays if array.dtype.kind == "f") + result.count
    return float(count * bytes_of_numbers(backend) + sum(a.nbytes for a in arrays if a.dtype.kind in "iub" and a.ndim))


def _used(module: ModuleType, device: str) -> Device:
    try:
        used = module.use_device(device)
    except Unsupported as reason:
        raise NoDevice(str(reason)) from reason
    if not isinstance(used, Device) or not callable(used.sync):
        raise BadFile(f"{module.__file__}: use_device returned {used!r}; return Device(name, sync)")
    return used
