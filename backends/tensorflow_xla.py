"""tf.function with jit_compile: XLA compiles TensorFlow's graph at the input shapes."""

import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from adbench import Operator, Unsupported

from .tensorflow import NESTED as NESTED
from .tensorflow import compiled
from .tensorflow import to_native as to_native
from .tensorflow import to_numpy as to_numpy
from .tensorflow import xp as xp

VARIANT_OF = "tensorflow"


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    call = compiled(operator, f, args, wrt, jit_compile=True)

    def supported(*args: Any) -> Any:  # XLA compiles at the first call
        try:
            return call(*args)
        except tf.errors.InvalidArgumentError as error:
            if "unsupported operations" not in str(error):
                raise
            found = re.search(r"XLA_CPU_JIT: (\w+)", str(error))
            raise Unsupported(f"XLA has no {found[1] if found else 'kernel of an operation'}") from error

    return supported
