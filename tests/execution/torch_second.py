"""torch on a device of its own, "second", under the name "cuda": its tensors are boxes, and their numbers are real.

As on a GPU, an operation of tensors on both devices raises, unless the one on the CPU is a number. With $IGNORES_NAN,
slogdet takes a NaN below the diagonal for 0, as on a GPU.
"""

import os
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import backend_registration

from adbench import Device, Operator
from backends import torch as usual
from backends.support.torch_device import create_tensors_on

backend_registration._setup_privateuseone_for_python_backend("second")


class Box(torch.Tensor):
    """A tensor of the device around one of the CPU."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Box":
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        box = torch.Tensor._make_wrapper_subclass(cls, inner.size(), **layout, device="second:0")
        box.held = inner
        return box

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(operation, *args, **(kwargs or {}))

    def numpy(self, *, force: bool = False) -> Any:
        """As of a tensor of a GPU; torch refuses any subclass."""
        return self.detach().cpu().numpy()

    __torch_function__ = torch._C._disabled_torch_function_impl


def computed(operation: Any, *args: Any, **kwargs: Any) -> Any:
    """The operation on the CPU, its results in boxes unless they are copied to the CPU."""
    mixed = "copy" in operation.__name__
    for leaf in torch.utils._pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor) and not isinstance(leaf, Box) and leaf.dim() and not mixed:
            raise RuntimeError(
                f"{operation}: expected all tensors to be on the same device, but one is on {leaf.device}"
            )
    place = kwargs.get("device")
    inside = {**kwargs, "device": torch.device("cpu")} if place is not None else kwargs
    every = torch.utils._pytree.tree_map(lambda leaf: getattr(leaf, "held", leaf), (args, inside))
    if operation is torch.ops.aten._copy_from.default:
        every[0][1].copy_(every[0][0])
        return args[1]
    if operation is torch.ops.aten._linalg_slogdet.default and "IGNORES_NAN" in os.environ:
        (matrix,) = every[0]
        every = (torch.triu(matrix) + torch.nan_to_num(torch.tril(matrix, -1), nan=0.0),), every[1]
    result = operation(*every[0], **every[1])
    if operation._schema.is_mutable and isinstance(args[0], Box):
        return args[0]
    if place is not None and torch.device(place).type == "cpu":
        return result
    boxed = lambda leaf: Box(leaf) if isinstance(leaf, torch.Tensor) else leaf  # noqa: E731
    return torch.utils._pytree.tree_map(boxed, result)


library = torch.library.Library("_", "IMPL")
library.fallback(computed, "PrivateUse1")

NESTED, to_native, to_numpy, xp = usual.NESTED, usual.to_native, usual.to_numpy, usual.xp
DEVICES = ("cuda",)


def use_device(name: str) -> Device:
    create_tensors_on(torch.device("second:0"), xp)
    return Device("the second", lambda result: None)


def prepare(operator: Operator, f: Any, args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[..., Any]:
    return usual.prepare(operator, f, args, wrt)
