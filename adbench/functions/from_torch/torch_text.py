"""torch functions for the oracle: run by the dispatcher of `tensors` on its numbers, or on arrays of enclosures.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from adbench.functions.from_torch.number_tensors import NumbersTensor, Storage, entries
from adbench.functions.from_torch.tensors import Evaluation, in_float64
from adbench.oracle.enclosures.enclosed_namespace import Enclosures
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
        if not isinstance(target, NumbersTensor) or target.stopped or not torch.is_grad_enabled():
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


def torch_text(flat: Callable[..., Any], examples: Sequence[Any]) -> Callable[..., Any]:
    """text(xp, *leaves): ``flat``, a function of tensors, on the numbers of the namespace xp.

    flat(*leaves) takes tensors (0-dimensional ones of numbers) and returns one; examples are the same leaves in numpy.
    The forward of a `torch.autograd.Function` counts, its backward does not. Detached tensors, and results under
    `torch.no_grad()`, are constants for derivatives.

    If the function differentiates inside (`torch.autograd.grad`, `torch.func`), torch's formulas for that inner
    derivative are part of its value.

    The text raises Unsupported for an operation that the oracle lacks, and for float32 or less unless `WIDENS`, which
    takes these types as float64; LostPrecision if it converts an active number to a float.
    """
    recording = False  # whether the function needs arguments with `requires_grad`

    def text(xp: Any, *leaves: Any) -> Any:
        nonlocal recording
        with in_float64():
            kind = EnclosedEvaluation if isinstance(xp, Enclosures) else Evaluation
            try:
                return _evaluated(flat, kind(xp), leaves, recording)
            except RuntimeError as error:
                if recording or "does not require grad" not in str(error):
                    raise
                recording = True
                return _evaluated(flat, kind(xp), leaves, recording)

    return text


def _evaluated(flat: Callable[..., Any], evaluation: Evaluation, leaves: Sequence[Any], recording: bool) -> Any:
    """One evaluation on the numbers of the namespace."""
    with torch.enable_grad():
        tensors = [evaluation.leaf(leaf) for leaf in leaves]
        for tensor in tensors:
            if recording and isinstance(tensor, NumbersTensor):
                tensor.requires_grad_()
        with evaluation:
            result = flat(*tensors)
    return evaluation.value(result)
