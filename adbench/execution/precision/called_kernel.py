"""A function with its arguments in their own types, called for its value and its gradient.

Arrays of inputs lie in memory between NaN, so that a kernel that reads beyond an array, for want of a mask, shows it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.execution.precision.given import InGivenPrecision, native_leaf
from adbench.functions.user_arguments import Arguments, Leaf


@dataclass(frozen=True)
class CalledKernel:
    """A kernel at its arguments, and the gradient of the sum of its results with random weights.

    arguments  in their own types
    backend    runs it
    """

    arguments: Arguments
    backend: InGivenPrecision
    wrt: tuple[int, ...]

    def run(self, leaves: Sequence[Leaf], weights: Any, strided: bool = False) -> tuple[Any, tuple[Any, ...], Any]:
        """The value, the gradient by every active leaf, and the arguments after that, all native."""
        native = tuple(
            guarded(self.backend.library, *pair, strided) for pair in zip(leaves, self.arguments.given, strict=True)
        )
        f = self.backend.function(None, ())  # type: ignore[arg-type]  # it needs neither
        value = self.backend.prepare("value", f, native, self.wrt)(*native)
        w = native_leaf(self.backend.library, weights, value)
        return value, self.backend.prepare("vjp", f, (*native, w), self.wrt)(*native, w), native


def guarded(library: str, value: Leaf, given: Any, strided: bool) -> Any:
    """The leaf like the given one, between NaN in memory; strided: every other number of its last axis is NaN too."""
    if library != "torch" or not np.ndim(value) or not hasattr(given, "stride"):
        return native_leaf(library, value, given)
    torch = importlib.import_module("torch")
    sizes = [*given.shape]
    shape = [*sizes[:-1], 2 * sizes[-1]] if strided else sizes
    margin = 64
    memory = torch.full((2 * margin + math.prod(shape),), math.nan, dtype=given.dtype, device=given.device)
    array = memory[margin : margin + math.prod(shape)].view(shape)
    array = array[..., ::2] if strided else array
    return array.copy_(torch.from_numpy(np.asarray(value)))
