"""Where and in which type torch creates tensors; on a GPU the wait for results, and the peak of a call's memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

import array_api_compat.torch
import torch

from adbench import Device, Namespace, Unsupported

from .low_types import create_in

PLACE: dict[str, Any] = {}
"""Options of functions that create tensors: the device of `use_device`."""

CREATE = ("arange", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros")


def on_cuda(name: str, xp: Namespace) -> Device:
    """The device for `use_device`, on which `xp` then creates tensors. Raises Unsupported if torch sees none."""
    if not torch.cuda.is_available():
        raise Unsupported(f"no {name.upper()} device: torch sees cpu only")
    create_tensors_on(torch.device(name), xp)
    torch.backends.cudnn.allow_tf32 = False  # convolutions of float32 would have 10 bits

    def peak_bytes(call: Callable[[], Any]) -> float:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = call()
        peak = torch.cuda.max_memory_allocated()
        del result
        return float(peak - before)

    return Device(torch.cuda.get_device_name(), lambda result: torch.cuda.synchronize(), peak_bytes)


def create_tensors_on(device: torch.device, xp: Namespace) -> None:
    """torch's backends, and the functions of `xp`, create tensors on this device."""
    PLACE["device"] = device
    # torch.set_default_device would slow every call down, because it intercepts it.
    vars(xp).update({each: partial(getattr(array_api_compat.torch, each), **PLACE) for each in CREATE})


def create_tensors_in(name: str, xp: Namespace) -> None:
    """For `use_dtype`: torch, and the functions of `xp`, create tensors of this type."""
    dtype = getattr(torch, name)
    torch.set_default_dtype(dtype)
    create_in(name, xp, lambda tensor: tensor.to(dtype))
