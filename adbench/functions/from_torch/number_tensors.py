"""Tensors of the oracle's numbers: torch sees their shape and type, the entries are `Real` and `ComplexNumber`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import optree
import torch

from adbench.functions.declared_constants import constant, holds, moves
from adbench.functions.libraries import forward_codes
from adbench.model.errors import Unsupported
from adbench.oracle.series import ball
from adbench.oracle.series.arrays import nearest
from adbench.oracle.series.number import ComplexNumber, LostPrecision

DOUBLE = (torch.float64, torch.complex128)


@dataclass
class Storage:
    """The memory that a tensor shares with its views.

    numbers  one-dimensional; float64 or complex128: constants, exactly; objects: `Real` and `ComplexNumber`
    active   some of them may depend on the function's arguments
    copied   a copy of memory that torch shares: writing to either is refused
    """

    numbers: Any
    active: bool = False
    copied: bool = False


class NumbersTensor(torch.Tensor):  # type: ignore[misc]  # torch is not typed here
    """A float64 or complex128 tensor without memory. Its entries are `storage.numbers[positions]`.

    stopped: it is a constant for derivatives (`detach`, `no_grad`).
    """

    storage: Storage
    positions: Any
    stopped: bool

    @staticmethod
    def __new__(cls, storage: Storage, positions: Any, stopped: bool, dtype: Any) -> NumbersTensor:
        """A tensor with the geometry of ``positions``, an int64 tensor."""
        made: NumbersTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            positions.shape,
            strides=positions.stride(),
            storage_offset=positions.storage_offset(),
            dtype=dtype,
            device="cpu",
        )
        made.storage, made.positions, made.stopped = storage, positions, stopped
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.detach:
            return args[0].detach()
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Unsupported(f"torch's operation `{func}` runs outside the function's evaluation")

    def detach(self, spelling: str = "detach") -> NumbersTensor:
        """The same memory as a constant for derivatives."""
        stopped = self.stopped or is_constant(self, spelling)
        return NumbersTensor(self.storage, self.positions, stopped, self.dtype)

    @property
    def data(self) -> NumbersTensor:
        """As `detach`."""
        return self.detach("data")

    def detach_(self) -> NumbersTensor:
        """Make it a constant for derivatives."""
        raise Unsupported("torch's operation `detach_`; use `detach`")

    def _number(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"expected one number; the tensor has the shape {tuple(self.shape)}")
        return entries(self).reshape(-1)[0]

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    __index__ = None  # as for tensors of floats

    def __float__(self) -> float:
        return float(self.item())

    def tolist(self) -> Any:
        """The entries as floats, which are constants."""
        return escaped(self, "tolist").tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The entries in numpy, which are constants."""
        return escaped(self, "numpy")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.numpy(), dtype=dtype)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"NumbersTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    def __format__(self, specification: str) -> str:
        """The approximate number, for messages."""
        return format(nearest(self._number())[()], specification) if self.ndim == 0 else repr(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.clone()


def entries(tensor: NumbersTensor) -> Any:
    """The entries in numpy, in the shape of the tensor: float64 or complex128 for constants, else objects."""
    numbers = tensor.storage.numbers[tensor.positions.numpy().reshape(-1)]
    if tensor.stopped and numbers.dtype == object:
        numbers = constant(numbers)
    return numbers.reshape(tensor.shape)


def _with_value(old: Any, new: Any) -> Any:
    """The value of one number with the derivatives of another, like torch's unrecorded writes."""
    if isinstance(old, ComplexNumber) or isinstance(new, ComplexNumber):
        raise Unsupported("torch writes complex numbers without recording it (detach or no_grad)")
    new = constant(new)
    return old - constant(old) + new if ball.is_series(old.ball) else new


replaced = np.frompyfunc(_with_value, 2, 1)


def constants(tensor: NumbersTensor, wanted: str) -> Any:
    """A plain torch tensor of the entries. Raises LostPrecision if they may depend on the function's arguments."""
    if tensor.storage.active:
        raise LostPrecision(f"the function converts an active tensor to floats ({wanted}), which loses its derivative")
    return torch.from_numpy(_floats(tensor))


def escaped(tensor: NumbersTensor, spelling: str) -> Any:
    """The entries in numpy, which leave torch as constants. Raises LostPrecision where no declaration holds them."""
    if tensor.storage.active and moves(entries(tensor)) and not is_constant(tensor, spelling):
        constants(tensor, spelling)
    return _floats(tensor)


def is_constant(tensor: NumbersTensor, spelling: str) -> bool:
    """Whether this spelling makes the tensor a constant for derivatives."""
    if in_custom_function():
        return False
    return not (tensor.storage.active and moves(entries(tensor))) or holds(spelling)


def _floats(tensor: NumbersTensor) -> Any:
    numbers = entries(tensor)
    numbers = nearest(numbers) if numbers.dtype == object else numbers
    return numbers.astype(np.complex128 if tensor.dtype == torch.complex128 else np.float64)


def unrecorded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function that torch does not record, such as that of a `torch.library.custom_op`."""
    return function(*args, **kwargs)


def in_custom_function() -> bool:
    """Whether the forward of a `torch.autograd.Function`, or a custom operation, runs, where torch records nothing."""
    frame: FrameType | None = sys._getframe()
    inside = forward_codes()
    while frame is not None:
        if frame.f_code in inside or frame.f_code is unrecorded.__code__:
            return True
        frame = frame.f_back
    return False


def tensors_in(values: Any) -> Iterator[Any]:
    """All tensors in nested lists, tuples and dicts."""
    return (part for part in optree.tree_leaves(values) if isinstance(part, torch.Tensor))


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Nested lists, tuples and dicts with ``function`` of every tensor."""
    return optree.tree_map(lambda part: function(part) if isinstance(part, torch.Tensor) else part, value)


def places_of(value: Any) -> Any:
    """The positions of a tensor of numbers."""
    return value.positions if isinstance(value, NumbersTensor) else value
