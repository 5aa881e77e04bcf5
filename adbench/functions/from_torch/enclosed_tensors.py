"""A torch function on arrays of enclosures: the dispatcher of `tensors`, whole arrays instead of single numbers.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from adbench.functions.from_torch.number_tensors import NumbersTensor, Storage, entries
from adbench.functions.from_torch.tensors import Evaluation, in_float64
from adbench.model.errors import Unsupported
from adbench.oracle.enclosures.recorded import EnclosedArray, Enclosures, joined


class EnclosedEvaluation(Evaluation):
    """One evaluation of a function on arrays of enclosures; types below float64 count as float64."""

    def __init__(self, xp: Enclosures) -> None:
        super().__init__(xp, widened=True)

    def leaf(self, value: Any) -> Any:
        """An argument as a tensor."""
        return self.made(value, active=True) if isinstance(value, EnclosedArray) else super().leaf(value)

    def made(self, numbers: Any, active: bool, like: Any = None) -> Any:
        """A new contiguous tensor of these numbers."""
        if not isinstance(numbers, EnclosedArray):
            return super().made(numbers, active, like)
        places = torch.arange(numbers.size).reshape(numbers.shape)
        return NumbersTensor(Storage(numbers.reshape(-1), active), places, False, torch.float64)

    def array(self, tensor: Any) -> Any:
        """A tensor's entries: enclosures, integers or booleans."""
        if isinstance(tensor, NumbersTensor):
            return self.xp.reals(entries(tensor))
        return self.xp.reals(tensor.detach().double().numpy()) if tensor.is_floating_point() else tensor.numpy()

    def value(self, result: Any) -> Any:
        """The function's result."""
        return self.array(result) if isinstance(result, torch.Tensor) else self.xp.reals(result)

    def write(self, func: Any, target: Any, value: Any) -> Any:
        """Refused: enclosures are never changed."""
        if isinstance(target, NumbersTensor):
            raise Unsupported(f"torch's in-place operation `{func}` on enclosures")
        return super().write(func, target, value)

    def _concatenated(self, parts: Sequence[Any]) -> Any:
        is_plain = all(part.dtype != object for part in parts)
        return np.concatenate(parts) if is_plain else joined([self.xp.reals(part) for part in parts])


def enclosed(call: Callable[[Sequence[Any]], Any], xp: Enclosures, leaves: Sequence[Any]) -> EnclosedArray:
    """The function of tensors at these leaves, of which some are `EnclosedArray`."""
    with in_float64(), torch.enable_grad():
        evaluation = EnclosedEvaluation(xp)
        tensors = [evaluation.leaf(leaf) for leaf in leaves]
        with evaluation:
            result = call(tensors)
        found: EnclosedArray = evaluation.value(result)
        return found
