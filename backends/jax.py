"""Traced once at these shapes and compiled by XLA, in double precision."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy

from adbench import Namespace, Operator, Unsupported
from adbench.suite.tree import is_static

REQUIRES = ("jax",)

jax.config.update("jax_enable_x64", True)  # before the first array is made: jax is single precision otherwise


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    # A fixed number of trips becomes a scan, which has a reverse mode; the program does not grow with n.
    return jax.lax.fori_loop(0, n, step, state)


xp = Namespace(jax.numpy, loop=loop)
to_native = jax.numpy.array  # copies: `asarray` may share memory with the numpy array it is given
sync = jax.block_until_ready


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    static = tuple(i for i, arg in enumerate(args) if is_static(arg))

    def program(*traced: Any) -> Any:  # statics inside nested inputs become part of it too
        return f(*jax.tree.map(lambda given, leaf: given if is_static(given) else leaf, args, traced))

    transformed = {
        "value": program,
        "gradient": jax.grad(program, wrt),
        "value_and_gradient": jax.value_and_grad(program, wrt),
    }
    if operator not in transformed:
        raise Unsupported(f"adbench asks jax for {', '.join(transformed)}, not {operator}")
    try:  # floats and arrays are traced, never closed over: XLA would compute with them while compiling
        compiled = jax.jit(transformed[operator], static_argnums=static).lower(*args).compile()
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        reason = "a Python loop or branch depends on data, and jax.jit compiles one program for all data"
        raise Unsupported(f"{reason} ({type(error).__name__})") from error
    data = tuple(i for i in range(len(args)) if i not in static)
    return (lambda *args: compiled(*(args[i] for i in data))) if static else compiled
