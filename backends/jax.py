"""jax.jit: trace once at the input shapes and compile with XLA, in double precision."""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy
import numpy as np

from adbench import Device, Namespace, Operator, Unsupported, on_active, phase
from adbench.model import namespace
from adbench.model.backend import peak_without_reset
from adbench.model.settings import kept_programs
from adbench.model.tree import is_static

from .support.low_types import create_in

REQUIRES = ("jax",)
LICENCE = "Apache-2.0"
BATCHED = True
THREADED = True
DEVICES = ("cuda",)
DTYPES = ("float32", "bfloat16", "float16")
COUNTS = "bytes_in_use", "peak_bytes_in_use"

jax.config.update("jax_enable_x64", True)  # before the first array: the default is single precision
# Without `use_device`, a GPU build would use a GPU, or fail if $JAX_PLATFORMS names one that is missing.
jax.config.update("jax_platforms", "cpu")

if (folder := kept_programs("jax")) is not None:  # cache small programs too: a check compiles thousands
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def use_device(name: str) -> Device:
    # Several processes share the device: none may reserve three quarters of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax.config.update("jax_platforms", f"{name},cpu")
    try:
        device = jax.devices(name)[0]
    except RuntimeError as error:
        raise Unsupported(f"no {name.upper()} device: jax sees cpu only") from error
    jax.config.update("jax_default_device", device)
    jax.config.update("jax_default_matmul_precision", "highest")  # float32 would be TF32, of 10 bits

    def peak_bytes(call: Callable[[], Any]) -> float:
        in_use, peak = (lambda name=name: device.memory_stats()[name] for name in COUNTS)
        return peak_without_reset(call, in_use, peak, lambda size: sync(jax.device_put(np.zeros(size, "b"), device)))

    return Device(device.device_kind, sync, peak_bytes if set(COUNTS) <= set(device.memory_stats() or {}) else None)


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    # With a fixed trip count this becomes a scan: it has a reverse mode, and the program does not grow with n.
    return jax.lax.fori_loop(0, n, step, state)


xp = Namespace(jax.numpy, loop=loop, derivative=lambda g, x: jax.grad(g)(x), stop_gradient=jax.lax.stop_gradient)
sync = jax.block_until_ready
DTYPE: dict[str, Any] = {}
"""Options of functions that create arrays: the type of `use_dtype`."""


def to_native(leaf: Any) -> Any:
    return jax.numpy.array(leaf, **DTYPE)  # a copy: `asarray` may share memory with the numpy array


def use_dtype(name: str) -> None:
    jax.config.update("jax_enable_x64", False)
    DTYPE["dtype"] = dtype = jax.numpy.dtype(name)
    for each in (xp, eager_xp):
        create_in(name, each, lambda array: array.astype(dtype))


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: jax.grad(g)(x),
    "value_and_gradient": lambda g, x: jax.value_and_grad(g)(x),
    "jacobian": lambda g, x: jax.jacrev(g)(x),
    "jvp": lambda g, x, v: jax.jvp(g, (x,), (v,))[1],
    "vjp": lambda g, x, w: jax.vjp(g, x)[1](w)[0],
    "hvp": lambda g, x, v: jax.jvp(jax.grad(g), (x,), (v,))[1],  # forward over reverse, as the documentation advises
    "hessian": lambda g, x: jax.hessian(g)(x),
    "batch_gradient": lambda g, x: jax.vmap(jax.grad(g))(x),
}
NESTED = {mode: OPERATIONS[mode] for mode in ("jvp", "vjp")}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    call = f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
    static = tuple(i for i, arg in enumerate(args) if is_static(arg))

    def program(*traced: Any) -> Any:  # static leaves become part of the program
        return call(*jax.tree.map(lambda given, leaf: given if is_static(given) else leaf, args, traced))

    try:  # trace all numbers: XLA would fold constants that the program closes over
        with phase("trace"):
            traced = jax.jit(program, static_argnums=static).trace(*args)
        with phase("lower"):
            lowered = traced.lower()
        with phase("compile"):
            compiled = lowered.compile()  # calls as fast as jit's function: 1.0 times its time
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        reason = "jax.jit compiles one program for all data, but a Python loop or branch depends on data; use jax_eager"
        raise Unsupported(f"{reason} ({type(error).__name__})") from error
    data = tuple(i for i in range(len(args)) if i not in static)
    return (lambda *args: compiled(*(args[i] for i in data))) if static else compiled


# Without jit.

MOST_TRIPS = 100


def eager_loop(step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
    # A Python loop: branches and trip counts may depend on data, because every operation returns a value.
    if n > MOST_TRIPS:
        raise Unsupported(f"{n:,} loop iterations take a minute operation by operation; use jax, which compiles them")
    return namespace.loop(step, state, n)


eager_xp = Namespace(jax.numpy, loop=eager_loop, derivative=xp.derivative, stop_gradient=xp.stop_gradient)


def eager(operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[..., Any]:
    return f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)


VARIANTS = {
    "jax_eager": {
        "SUMMARY": "jax without jit: run operation by operation, in double precision.",
        "xp": eager_xp,
        "prepare": eager,
    },
}
