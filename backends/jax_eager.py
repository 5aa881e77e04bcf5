"""jax without jit: run operation by operation, in double precision."""

from collections.abc import Callable
from typing import Any

import jax.numpy

from adbench import Namespace, Operator, Unsupported, on_active
from adbench.model import namespace

from . import jax as compiled

VARIANT_OF = "jax"
BATCHED = True
DEVICES = ("cuda",)

MOST_TRIPS = 100


def loop(step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
    # A Python loop: branches and trip counts may depend on data, because every operation returns a value.
    if n > MOST_TRIPS:
        raise Unsupported(f"{n:,} loop iterations take a minute operation by operation; use jax, which compiles them")
    return namespace.loop(step, state, n)


xp = Namespace(jax.numpy, loop=loop, derivative=compiled.xp.derivative, stop_gradient=compiled.xp.stop_gradient)
to_native, sync, NESTED, use_device = compiled.to_native, compiled.sync, compiled.NESTED, compiled.use_device


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return f if operator == "value" else on_active(compiled.OPERATIONS[operator], operator, f, wrt)
