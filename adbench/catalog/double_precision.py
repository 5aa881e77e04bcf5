"""Run a user's function in double precision, whatever its library does by default.

jax computes in float32 unless told otherwise, and torch creates float32 tensors. A reference from such a function would
be right to seven digits only, and right libraries would be called wrong.
"""

from __future__ import annotations

import os
import random
import sys
from types import ModuleType
from typing import Any

import numpy as np

from adbench.model.errors import UsageError
from adbench.optional import AfterImport

LESS = ("float32", "float16", "bfloat16", "complex64", "float8")


class LessThanDouble(UsageError):
    """A function computes in less than float64: no reference can come from it."""


def import_in_double() -> None:
    """Make jax and torch create float64 arrays in this process, also where a module imports them later.

    Seeds the global generators of Python, numpy and torch, so that a module draws the same numbers in every process.
    """
    random.seed(0)
    np.random.seed(0)
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)
    else:
        os.environ["JAX_ENABLE_X64"] = "1"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # or it takes most of a GPU's memory for a few numbers
    if "torch" in sys.modules:
        _set_double(sys.modules["torch"])
    elif _AFTER_TORCH not in sys.meta_path:
        sys.meta_path.insert(0, _AFTER_TORCH)


def refuse_less(value: Any) -> Any:
    """The value. Raises LessThanDouble where its type is float32 or less."""
    kind = str(getattr(value, "dtype", "")).rpartition(".")[2]
    if kind.startswith(LESS):
        raise LessThanDouble(
            f"the function computes in {kind}: with float64 inputs its value is {kind}. References need float64: "
            "remove the conversion, and convert arrays and parameters that it uses to float64"
        )
    return value if isinstance(value, float) or type(value).__module__ != "torch" else value.numpy()


def _set_double(torch: ModuleType) -> None:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)


_AFTER_TORCH = AfterImport({"torch"}, _set_double)
