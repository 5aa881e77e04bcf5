"""The part of `adbench conform --every-input` that runs in a worker: a library at all inputs at once.

Besides the results of the type it computes them in float64, and the gradient in float64 from the values that were saved
for the backward pass, rounded to the type (torch) or saved by a forward pass in it (jax): what this explains, a saved
value has lost.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from adbench.catalog.discovery import first_line
from adbench.execution.operators import fallback
from adbench.execution.operators.on_device import create_there
from adbench.execution.operators.prepared_point import point
from adbench.findings.conform.operation_worker import family_of, own_function
from adbench.findings.conform.places import Floats
from adbench.findings.every_input.sixteen_bits import OneArgument, functions
from adbench.model.backend import Backend
from adbench.model.case import Case
from adbench.model.errors import contained

Arrays = dict[str, Floats]
COMPILES_MANY = "torch_compile"
LIMIT_SECONDS = 20
"""Of the processor's time for one function, however busy the machine is: jax's expi would not end near 0."""


def at_every_input(backend: Backend, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each function its arrays, or the reason why they are missing.

    request   functions: their names; type: of 16 bits; inputs: those of the type, or others
    """
    create_there(backend)
    chosen = [functions()[name] for name in request["functions"]]
    x = request["inputs"]
    _limit(len(chosen))
    runner = {"torch": _torch, "jax": _jax}.get(family_of(backend.name), _definition)
    with contained(), np.errstate(all="ignore"):
        if backend.name == COMPILES_MANY:
            return _compiled(backend, chosen, request["type"], x)
        return [_caught(partial(runner, backend, one, request["type"], x)) for one in chosen]


def _limit(functions: int) -> None:
    """Let the kernel end this process with SIGXCPU after the time of so many functions; its children count alone."""
    resource = importlib.import_module("resource")  # Windows has none, nor workers
    used, most = math.ceil(time.process_time()), resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    resource.setrlimit(resource.RLIMIT_CPU, (used + functions * LIMIT_SECONDS, most))


def _caught(call: Callable[[], Arrays]) -> dict[str, Any]:
    try:
        return dict(call())
    except Exception as error:  # raised by the library
        return {"refused": f"{type(error).__name__}: {first_line(error)}"}


def _in_library(backend: Backend, one: OneArgument, constant: Callable[[float, Any], Any]) -> Callable[[Any], Any]:
    """The library's own function, or the definition on its arrays."""
    expression = one.operation.expression(family_of(backend.name))
    own = None if expression is None else own_function(expression)

    def compute(x: Any) -> Any:
        arguments = one.ordered(x, lambda number: constant(number, x))
        return one.operation.definition(backend.xp, *arguments) if own is None else own(*arguments)

    return compute


def _definition(backend: Backend, one: OneArgument, _type: str, x: Floats) -> Arrays:
    """The definition in float64."""
    case = Case(
        f=lambda xp, x: xp.sum(one.as_operation().definition(xp, x)),
        inputs=lambda _n, _rng: {"x": x}, wrt=("x",), sizes=(1,), name=one.operation.name,
    )  # fmt: skip
    at = point(case, 1, 0)
    native = at.native(backend, "gradient")[1]
    call = fallback.prepare(backend, "gradient", backend.function(case, at.names, 1), native, at.wrt).call
    gradient = backend.numpy_result(backend.waited(call(*native)))
    gradient = gradient[0] if isinstance(gradient, tuple) else gradient
    value = one.as_operation().definition(backend.xp, x)
    return {"value64": np.broadcast_to(np.asarray(value, float), x.shape), "gradient64": np.asarray(gradient, float)}


# torch -------------------------------------------------------------------------------------------------------------


def _torch(backend: Backend, one: OneArgument, type_: str, x: Floats) -> Arrays:
    torch = importlib.import_module("torch")
    kind = getattr(torch, type_)
    f = _in_library(backend, one, lambda number, x: torch.full_like(x, number))
    arrays: Arrays = {}
    arrays["value"], arrays["gradient"] = _torch_pair(torch, f, x, kind)
    arrays["value64"], arrays["gradient64"] = _torch_pair(torch, f, x, torch.float64)

    def rounded(saved: Any) -> Any:
        return saved.to(kind).to(saved.dtype) if saved.is_floating_point() else saved

    with torch.autograd.graph.saved_tensors_hooks(rounded, lambda saved: saved):
        arrays["kept64"] = _torch_pair(torch, f, x, torch.float64)[1]
    return arrays


def _torch_pair(torch: Any, f: Callable[[Any], Any], x: Floats, kind: Any) -> tuple[Floats, Floats]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(kind)
    try:
        leaf = torch.tensor(x).to(kind).requires_grad_()
        value = f(leaf)
        (gradient,) = _torch_gradients(torch, [value], [leaf])
    finally:
        torch.set_default_dtype(before)
    return _numbers(value.detach()), _numbers(gradient)


def _torch_gradients(torch: Any, values: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    moving = [value for value in values if value.requires_grad]
    if not moving:
        return [torch.zeros_like(leaf) for leaf in leaves]
    ones = [torch.ones_like(value) for value in moving]
    return list(torch.autograd.grad(moving, leaves, ones, materialize_grads=True))


def _numbers(tensor: Any) -> Floats:
    return np.asarray(tensor.double().cpu().numpy())


def _compiled(backend: Backend, chosen: Sequence[OneArgument], type_: str, x: Floats) -> list[dict[str, Any]]:
    """Many functions in one compilation, which takes most of the time; each has its own leaf, and shares nothing.

    Where it fails, each half is compiled alone, so that the failure belongs to one function.
    """
    torch = importlib.import_module("torch")
    kind, before = getattr(torch, type_), torch.get_default_dtype()
    of_all = [_in_library(backend, one, lambda number, x: torch.full_like(x, number)) for one in chosen]
    torch.set_default_dtype(kind)
    try:
        torch._dynamo.reset()
        leaves = [torch.tensor(x).to(kind).requires_grad_() for _ in chosen]
        together = torch.compile(
            lambda *many: [f(one) for f, one in zip(of_all, many, strict=True)], dynamic=False, fullgraph=True
        )  # a whole graph, or an error: never silently the eager function
        values = together(*leaves)
        gradients = _torch_gradients(torch, values, leaves)
    except Exception as error:  # raised by the compiler
        if len(chosen) == 1:
            inner = getattr(error, "inner_exception", error.__cause__) or error
            return [{"refused": f"{type(error).__name__}: {first_line(inner)}"}]
        half = len(chosen) // 2
        torch.set_default_dtype(before)
        return _compiled(backend, chosen[:half], type_, x) + _compiled(backend, chosen[half:], type_, x)
    finally:
        torch.set_default_dtype(before)
    pairs = zip(values, gradients, strict=True)
    return [{"value": _numbers(value.detach()), "gradient": _numbers(gradient)} for value, gradient in pairs]


# jax ---------------------------------------------------------------------------------------------------------------


def _jax(backend: Backend, one: OneArgument, type_: str, x: Floats) -> Arrays:
    jax = importlib.import_module("jax")
    f = _in_library(backend, one, lambda number, x: jax.numpy.full_like(x, number))
    kind = getattr(jax.numpy, type_)

    def pair(x: Any) -> Any:
        value, pull = jax.vjp(f, x)
        return value, pull(jax.numpy.ones_like(value))[0]

    arrays: Arrays = {}
    jax.config.update("jax_enable_x64", False)
    try:
        value, gradient = jax.jit(pair)(jax.numpy.asarray(x.astype(np.float32)).astype(kind))
        arrays["value"], arrays["gradient"] = (np.asarray(part).astype(np.float64) for part in (value, gradient))
    finally:
        jax.config.update("jax_enable_x64", True)
    value, pull = jax.vjp(f, jax.numpy.asarray(x))
    one_each = jax.numpy.ones_like(value)
    arrays["value64"], arrays["gradient64"] = np.asarray(value), np.asarray(pull(one_each)[0])

    arrays["kept64"] = np.asarray(_pulled_from_saved(jax, f, x.astype(np.float32), kind, pull, one_each))
    return arrays


def _pulled_from_saved(jax: Any, f: Callable[[Any], Any], x: Any, kind: Any, pull: Any, ones: Any) -> Any:
    """The gradient in float64 from the values that a forward pass in the type has saved."""
    jax.config.update("jax_enable_x64", False)
    try:
        low = jax.tree_util.tree_leaves(jax.vjp(f, jax.numpy.asarray(x).astype(kind))[1])
    finally:
        jax.config.update("jax_enable_x64", True)
    leaves, form = jax.tree_util.tree_flatten(pull)
    if [leaf.shape for leaf in low] != [leaf.shape for leaf in leaves]:
        return np.full(ones.shape, np.nan)
    same = [saved.astype(leaf.dtype) for saved, leaf in zip(low, leaves, strict=True)]
    return jax.tree_util.tree_unflatten(form, same)(ones)[0]
