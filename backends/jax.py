"""JAX: traced once at these shapes, compiled by XLA, in double precision."""

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
    def program(*traced: Any) -> Any:
        # What is static is part of the program; floats and arrays stay data, or XLA would fold them away.
        return f(*jax.tree.map(lambda given, leaf: given if is_static(given) else leaf, args, traced))

    transformed = {
        "value": program,
        "gradient": jax.grad(program, wrt),
        "value_and_gradient": jax.value_and_grad(program, wrt),
    }
    if operator not in transformed:
        raise Unsupported(f"adbench asks jax for {', '.join(transformed)}, not {operator}")
    try:
        return jax.jit(transformed[operator]).lower(*args).compile()  # type: ignore[no-any-return]
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise Unsupported("a Python loop or branch depends on data: jax.jit traces one program for all data") from error
