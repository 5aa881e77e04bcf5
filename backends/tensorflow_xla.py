"""tf.function with jit_compile: XLA compiles TensorFlow's graph at the input shapes."""

import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from adbench import Operator, Unsupported

from .tensorflow import KNOWN as OF_GRAPHS
from .tensorflow import MASKED, compiled
from .tensorflow import NESTED as NESTED
from .tensorflow import to_native as to_native
from .tensorflow import to_numpy as to_numpy
from .tensorflow import xp as xp

VARIANT_OF = "tensorflow"

VERTICAL = "nan: 0 · inf where sqrt is vertical (as pytorch/pytorch#2421)"

KNOWN = {
    **OF_GRAPHS,
    "trap_half_square_hypot": VERTICAL,
    "trap_half_square_norm": VERTICAL,
    "trap_half_square_root": VERTICAL,
    "trap_masked_sqrt": MASKED.replace("38349", "118674"),
    "trap_masked_steep": MASKED.replace("38349", "118674"),
    "trap_quotient_large": "1e-200",
    "trap_square_std_of_constant": VERTICAL,
    "trap_x_sqrt_x": VERTICAL,
}


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
