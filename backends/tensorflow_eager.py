"""Eager TensorFlow: record operations with tf.GradientTape at every call."""

from collections.abc import Callable
from typing import Any

from adbench import Operator

from .tensorflow import NESTED as NESTED
from .tensorflow import eager
from .tensorflow import to_native as to_native
from .tensorflow import to_numpy as to_numpy
from .tensorflow import xp as xp

VARIANT_OF = "tensorflow"


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return eager(operator, f, wrt)
