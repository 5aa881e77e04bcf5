"""torch functions for the oracle: run by the dispatcher of `tensors` on its numbers, or on arrays of enclosures.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from adbench.functions.from_torch.number_tensors import NumbersTensor
from adbench.functions.from_torch.tensors import Evaluation, in_float64


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
            try:
                return _evaluated(flat, Evaluation(xp), leaves, recording)
            except RuntimeError as error:
                if recording or "does not require grad" not in str(error):
                    raise
                recording = True
                return _evaluated(flat, Evaluation(xp), leaves, recording)

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
