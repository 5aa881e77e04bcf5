"""jax.jit: trace once at the input shapes and compile with XLA, in double precision."""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy

from adbench import Device, Namespace, Operator, Unsupported, on_active, phase
from adbench.model.settings import kept_programs
from adbench.model.tree import is_static

REQUIRES = ("jax",)
LICENCE = "Apache-2.0"
BATCHED = True
THREADED = True
DEVICES = ("cuda",)

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
KNOWN = {
    "trap_atan2_large": "0",
    "trap_atan2_small": "nan",
    "trap_cholesky_lower_half": "gradient in the half not returned: cholesky symmetrises its input (jax-ml/jax#40421)",
    "trap_cholesky_upper_half": "gradient in the half not read: cholesky symmetrises its input (jax-ml/jax#40421)",
    "trap_equal_eigenvalues": "nan (jax-ml/jax#669)",
    "trap_equality_branch": "0",
    "trap_exp_of_log": "nan (jax-ml/jax#2630)",
    "trap_half_square_norm": "nan: 0/0 in the derivative of the norm (jax-ml/jax#21723)",
    "trap_half_square_root": "nan (jax-ml/jax#939)",
    "trap_large_eigenvalues": "nan: differences of eigenvalues too large to add 1 to (jax-ml/jax#40141)",
    "trap_log1p_exp_overflow": "nan",
    "trap_log_add_exp_equal_large": "few digits",
    "trap_log_add_exp_of_nothing": "nan (jax-ml/jax#6811)",
    "trap_log_add_exp_with_nothing": "nan (jax-ml/jax#6811)",
    "trap_logistic_far": "0",
    "trap_logistic_tail": "nan",
    "trap_masked_angle": "nan (jax-ml/jax#1052)",
    "trap_masked_count_log": "nan",
    "trap_masked_infinity": "nan (jax-ml/jax#2630)",
    "trap_masked_overflow": "nan (jax-ml/jax#2630)",
    "trap_masked_sinc": "nan (jax-ml/jax#1722)",
    "trap_masked_sqrt": "nan (jax-ml/jax#2630)",
    "trap_masked_steep": "nan (jax-ml/jax#5798)",
    "trap_norm_at_zero": "nan (jax-ml/jax#3058)",
    "trap_power_zero": "nan (jax-ml/jax#14397)",
    "trap_quotient_large": "1e-200",
    "trap_simple_eigenvector": "nan (jax-ml/jax#4646)",
    "trap_sinc_near_zero": "five digits (jax-ml/jax#34139)",
    "trap_square_of_angle": "nan",
    "trap_square_of_sqrt": "nan (jax-ml/jax#21723)",
    "trap_square_std_of_constant": "nan (jax-ml/jax#11716)",
    "trap_std_of_constant": "nan (jax-ml/jax#11716)",
    "trap_third_derivative_of_power": "nan: 2 · 1 · 0 · 0^-1 (as jax-ml/jax#14397)",
    "trap_unread_entry": "nan",
    "trap_x_sqrt_x": "nan (jax-ml/jax#21723)",
    # Second order: the key ends with the operators that fail.
    "trap_p_norm_zero_entry hessian": "nan: inf · 0 at the zero entry",
    "trap_power_both hessian": "nan (as jax-ml/jax#14397)",
    "trap_equal_singular_values hvp hessian hvp_*": "nan: 1 / (σ_i² - σ_j²) of equal ones (as pytorch/pytorch#192521)",
    "trap_half_square_hypot hvp hessian hvp_*": "¼ in all entries: the guard of hypot at 0 is differentiated",
    "trap_large_singular_values hvp hessian hvp_forward_*": "nan: inf - inf of σ² (as pytorch/pytorch#194705)",
    "trap_square_of_singular_values hvp hessian hvp_*": "nan",
}

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

    def peak_bytes(call: Callable[[], Any]) -> float:
        # The counter cannot be reset: the peak of the whole process, which is the first call's or this one's.
        before = device.memory_stats()["bytes_in_use"]
        result = call()
        peak = device.memory_stats()["peak_bytes_in_use"]
        del result
        return float(peak - before)

    counts = {"bytes_in_use", "peak_bytes_in_use"} <= set(device.memory_stats() or {})
    return Device(device.device_kind, sync, peak_bytes if counts else None)


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    # With a fixed trip count this becomes a scan: it has a reverse mode, and the program does not grow with n.
    return jax.lax.fori_loop(0, n, step, state)


xp = Namespace(jax.numpy, loop=loop, derivative=lambda g, x: jax.grad(g)(x), stop_gradient=jax.lax.stop_gradient)
to_native = jax.numpy.array  # a copy: `asarray` may share memory with the numpy array
sync = jax.block_until_ready

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
