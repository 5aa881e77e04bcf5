"""Operation by operation: traced at every call, nothing compiled as a whole, in double precision."""

from collections.abc import Callable
from typing import Any

import jax.numpy

from adbench import Namespace, Operator, Unsupported, on_active
from adbench.model import namespace

from . import jax as compiled

VARIANT_OF = "jax"

KNOWN = compiled.KNOWN

MOST_TRIPS = 100


def loop(step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
    # Python's: a branch or a number of trips may depend on data, for every operation has its value at once.
    if n > MOST_TRIPS:
        raise Unsupported(f"{n:,} trips of a loop, one operation after the other, take a minute: jax compiles them")
    return namespace.loop(step, state, n)


xp = Namespace(jax.numpy, loop=loop, derivative=compiled.xp.derivative, stop_gradient=compiled.xp.stop_gradient)
to_native, sync, NESTED = compiled.to_native, compiled.sync, compiled.NESTED


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return f if operator == "value" else on_active(compiled.OPERATIONS[operator], operator, f, wrt)
