"""Watch torch's operations for floating-point types below float64 on active numbers. Importing this imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adbench.functions.from_torch.number_tensors import DOUBLE, tensors_in
from adbench.functions.low_precision import running_lines, user_line


class Eager(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """A mode that does not need torch's compiler."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Called by torch; True would import its compiler, which takes seconds."""
        return False


class Watching(Eager):
    """While entered, it notes each low type of a result that depends on the given tensors, with the line.

    A result depends on them if an argument shares memory with them or with another such result. Integers and Booleans
    do not carry the dependence: they are constants for derivatives. All memory stays alive, so that none is used twice.
    """

    def __init__(self, given: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.types: dict[torch.dtype, str] = {}
        self._memory = {tensor.untyped_storage()._cdata: tensor for tensor in given}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if any(self._depends(tensor) for tensor in tensors_in((args, kwargs))):
            for tensor in tensors_in((result,)):
                if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
                    self._memory[tensor.untyped_storage()._cdata] = tensor
                    if tensor.dtype not in DOUBLE:
                        self.types.setdefault(tensor.dtype, user_line(running_lines()))
        return result

    def _depends(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._memory
