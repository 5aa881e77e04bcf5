"""A backend that runs a user's function in the types of its arguments and on their devices, instead of in float64.

The reference is that of the exact numbers: every float32, bfloat16 or float16 is a float64. Each result is judged by
what rounding in the lowest of these types explains.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import optree

from adbench.functions.libraries import Library, without_tf32
from adbench.functions.low_precision import Low, low_of, low_type, widened
from adbench.functions.user_arguments import Arguments, Leaf
from adbench.model.backend import Backend, Call
from adbench.model.case import Case
from adbench.model.errors import Unsupported
from adbench.model.operator import Operator
from adbench.oracle.evidence import DOUBLE, Precision

Settings = Callable[[], AbstractContextManager[None]]


def precision_of(given: Any) -> Precision:
    """The arithmetic of a number, an array or a tensor."""
    low = low_of(given)
    return low.precision if low else DOUBLE


def lowest_of(arguments: Arguments, *values: Any) -> Low | None:
    """The lowest type of the active arguments and of these values, or None if all are float64."""
    lows = [low for low in map(low_of, (*active_of(arguments), *values)) if low is not None]
    return max(lows, key=lambda low: low.precision.unit, default=None)


def active_of(arguments: Arguments) -> list[Any]:
    """The active arguments as given."""
    return [given for name, given in zip(arguments.names, arguments.given, strict=True) if name in arguments.active]


def places_of(arguments: Arguments) -> dict[str, list[str]]:
    """The devices other than the CPU on which arguments lie, and the names of these; jax has several of the CPU."""
    names_on = dict[str, list[str]]()
    for name, given in zip(arguments.names, arguments.given, strict=True):
        place = str(getattr(given, "device", "cpu"))
        if hasattr(given, "devices") and all(one.platform == "cpu" and not one.id for one in given.devices()):  # jax
            place = "cpu"
        if place != "cpu":
            names_on.setdefault(place, []).append(name)
    return names_on


def placed(args: Sequence[Any], kwargs: Mapping[str, Any], library: str, backend: Backend) -> Any:
    """The arguments with their arrays, tensors and modules on the backend's device, as those of torch or jax."""
    there, of_library = backend.to_native(0.0).device, importlib.import_module(library)

    def moved(leaf: Any) -> Any:
        if library == "jax":
            return of_library.device_put(leaf, there) if isinstance(leaf, of_library.Array | np.ndarray) else leaf
        leaf = of_library.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf
        return leaf.to(there) if hasattr(leaf, "to") else leaf

    every: Any = list(args), dict(kwargs)
    return optree.tree_map(moved, every)


@dataclass(frozen=True)
class InGivenPrecision(Backend):
    """Another backend, whose inputs have the types, devices and strides of the given arguments.

    arguments   of the function, with modules in their own types
    library     that the function is written for
    """

    arguments: Arguments | None = None
    library: str = ""

    @staticmethod
    def of(backend: Backend, library: Library, arguments: Arguments, settings: Settings) -> InGivenPrecision:
        """The backend for these arguments; it runs with these settings of jax and torch: the user's."""
        full = without_tf32 if places_of(arguments) else nullcontext

        def inside(call: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any) -> Any:
                with settings(), full():
                    return call(*args)

            return called

        def prepare(operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Call:
            call = inside(backend.prepare)(operator, f, args, wrt)
            return inside(lambda *args: backend.waited(call(*args)))

        parts = {field.name: getattr(backend, field.name) for field in fields(Backend)}
        nested = {mode: inside(transform) for mode, transform in backend.nested.items()}
        if library.name == "jax" and "vjp" in nested:
            nested["vjp"] = _of_its_type(nested["vjp"])
        parts |= {"prepare": prepare, "to_numpy": in_numpy, "nested": nested, "rounds_inputs": True}
        return InGivenPrecision(**parts, arguments=arguments, library=library.name)

    def function(self, case: Case, names: tuple[str, ...], size: int | None = None) -> Callable[..., Any]:
        """The user's function of native leaves; the case is its copy in float64."""
        assert self.arguments is not None
        call = self.arguments.call

        def f(*leaves: Any) -> Any:
            return call(leaves)

        f.case, f.names = case, names  # type: ignore[attr-defined]  # as `function_of` does, for fallbacks
        return f

    def native_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The leaves like the given ones, and vectors: a tangent like the active leaves, a cotangent like the value.

        A fallback asks for vectors alone.
        """
        assert self.arguments is not None
        given, active, native = self.arguments.given, active_of(self.arguments), list[Any]()
        are_leaves = len(args) >= len(given) and not any(isinstance(arg, tuple) for arg in args[: len(given)])
        for number, arg in enumerate(args):
            if isinstance(arg, tuple):
                native.append(tuple(_exactly(self.library, *pair) for pair in zip(arg, active, strict=True)))
            elif are_leaves and number < len(given):
                native.append(native_leaf(self.library, arg, given[number]))
            else:
                like = self.arguments.call(native[: len(given)]) if are_leaves else active[0]
                native.append(_exactly(self.library, arg, like))
        return tuple(native)


def _of_its_type(vjp: Callable[..., Any]) -> Callable[..., Any]:
    """jax's vjp(g, x, w), which takes no w but of the type of g's value."""

    def called(g: Callable[..., Any], x: Any, w: Any) -> Any:
        jax = importlib.import_module("jax")
        return vjp(g, x, jax.numpy.asarray(w, dtype=jax.eval_shape(g, x).dtype))

    return called


def _exactly(library: str, value: Leaf, given: Any) -> Any:
    """A part of a vector like the given number. Raises Unsupported if it is not a number of the type."""
    precision = precision_of(given)
    if not np.array_equal(precision.rounded(value), value):
        raise Unsupported(f"{precision.name} has no numbers for the vectors of this check; ask for the gradient")
    return native_leaf(library, value, given)


def native_leaf(library: str, value: Leaf, given: Any) -> Any:
    """A number or an array of float64 like the given one: in its type, on its device, with its strides."""
    if library == "torch":
        return _tensor(value, given)
    dtype = getattr(given, "dtype", None)
    if library == "jax":
        jax = importlib.import_module("jax")
        if dtype is None:
            return value  # a Python float takes the type of its partner
        array = jax.numpy.asarray(np.asarray(value), dtype=dtype)
        return jax.device_put(array, given.sharding) if isinstance(given, jax.Array) else array
    return value if dtype is None else np.asarray(value).astype(dtype)[()]


def _tensor(value: Leaf, given: Any) -> Any:
    torch = importlib.import_module("torch")
    source = torch.from_numpy(np.array(value, dtype=np.float64))
    if not isinstance(given, torch.Tensor):
        return source.to(getattr(torch, low_type(getattr(given, "dtype", "")) or "float64"))
    return tensor_like(given, source, margin=0)


def tensor_like(given: Any, source: Any, margin: int) -> Any:
    """A tensor of torch with the given one's type, device and strides and these numbers.

    margin: so many NaN lie before and behind it in memory; those between its entries are NaN too.
    """
    torch = importlib.import_module("torch")
    strides, is_same = given.stride(), given.shape == source.shape
    if not is_same or any(size > 1 and not step for size, step in zip(given.shape, strides, strict=True)):
        # Another shape, or an expanded tensor, whose entries share memory.
        strides = torch.empty(source.shape, device="meta").stride()
    reach = 1 + sum((size - 1) * step for size, step in zip(source.shape, strides, strict=True) if size)
    memory = torch.full((reach + 2 * margin,), math.nan, dtype=given.dtype, device=given.device)
    return memory.as_strided(source.shape, strides, margin).copy_(source)


def in_numpy(leaf: Any) -> Any:
    """A number, an array or a tensor of any device in numpy; floating-point ones of any type in float64."""
    if hasattr(leaf, "detach"):
        leaf = widened(leaf.detach()).cpu().numpy()
    return np.asarray(widened(leaf) if hasattr(leaf, "dtype") else leaf)
