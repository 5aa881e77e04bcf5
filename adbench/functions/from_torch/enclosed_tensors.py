"""A torch function on arrays of enclosures: the dispatcher of `tensors`, whole arrays instead of single numbers.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from adbench.functions.from_torch.number_tensors import NumbersTensor, Storage, entries
from adbench.functions.from_torch.tensors import Evaluation
from adbench.oracle.enclosures.recorded import EnclosedArray, joined


class EnclosedEvaluation(Evaluation):
    """One evaluation of a function on arrays of enclosures."""

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
        """Give the memory of ``target`` new numbers, with these at its places."""
        if not (isinstance(target, NumbersTensor) and torch.is_grad_enabled()) or target.stopped or target.storage.copied:
            return super().write(func, target, value)
        storage = target.storage
        numbers = self.array(value) if isinstance(value, torch.Tensor) else self.xp.reals(value)
        places = np.arange(storage.numbers.size)
        at = target.positions.numpy().reshape(-1)
        places[at] = np.arange(places.size, places.size + at.size)
        both = [self.xp.reals(storage.numbers), np.broadcast_to(numbers, tuple(target.shape)).reshape(-1)]
        storage.numbers = joined(both)[places]
        storage.active = storage.numbers.moves
        return target

    def _concatenated(self, parts: Sequence[Any]) -> Any:
        is_plain = all(part.dtype != object for part in parts)
        return np.concatenate(parts) if is_plain else joined([self.xp.reals(part) for part in parts])
