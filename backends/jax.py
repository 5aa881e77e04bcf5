"""Traced once at these shapes and compiled by XLA, in double precision."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy

from adbench import Namespace, Operator, Unsupported, on_active
from adbench.suite.tree import is_static

REQUIRES = ("jax",)

jax.config.update("jax_enable_x64", True)  # before the first array is made: jax is single precision otherwise


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    # A fixed number of trips becomes a scan, which has a reverse mode; the program does not grow with n.
    return jax.lax.fori_loop(0, n, step, state)


xp = Namespace(jax.numpy, loop=loop)
to_native = jax.numpy.array  # copies: `asarray` may share memory with the numpy array it is given
sync = jax.block_until_ready

OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: jax.grad(g)(x),
    "value_and_gradient": lambda g, x: jax.value_and_grad(g)(x),
    "jacobian": lambda g, x: jax.jacrev(g)(x),
    "jvp": lambda g, x, v: jax.jvp(g, (x,), (v,))[1],
    "vjp": lambda g, x, w: jax.vjp(g, x)[1](w)[0],
    "hvp": lambda g, x, v: jax.jvp(jax.grad(g), (x,), (v,))[1],  # forward over reverse, as jax's documentation advises
    "hessian": lambda g, x: jax.hessian(g)(x),
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    call = f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
    static = tuple(i for i, arg in enumerate(args) if is_static(arg))

    def program(*traced: Any) -> Any:  # statics inside nested inputs become part of it too
        return call(*jax.tree.map(lambda given, leaf: given if is_static(given) else leaf, args, traced))

    try:  # floats and arrays are traced, never closed over: XLA would compute with them while compiling
        compiled = jax.jit(program, static_argnums=static).lower(*args).compile()
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        reason = "a Python loop or branch depends on data, and jax.jit compiles one program for all data"
        raise Unsupported(f"{reason} ({type(error).__name__})") from error
    data = tuple(i for i in range(len(args)) if i not in static)
    return (lambda *args: compiled(*(args[i] for i in data))) if static else compiled
