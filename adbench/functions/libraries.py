"""The library of a function, and how to run the function there in double precision.

The library is recognised, in this order, from a first parameter named `xp`, from the types of the arguments, and from
the modules to which the function's code and the functions it calls refer. Otherwise it is numpy.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from adbench.catalog.double_precision import refuse_less
from adbench.catalog.installed import installed_version
from adbench.functions.user_arguments import is_pytree
from adbench.model.errors import Unsupported

MOST_OBJECTS = 500
"""The most objects that are inspected for references, directly or through others."""


@dataclass(frozen=True)
class Library:
    """A library that functions are written for.

    name         its name in messages
    backend      the default backend
    second       the next one, if the first fails, as for a branch that depends on data
    translator   "module:function" that translates for the oracle; None if no translation is needed
    """

    name: str
    backend: str
    translator: str | None
    second: str | None = None

    @property
    def title(self) -> str:
        """Its name and its version."""
        version = installed_version(self.name)
        return f"{self.name} {version}" if version else self.name


NUMPY_TEXT = "adbench.functions.from_numpy.numpy_calls:numpy_text"
LIBRARIES: Mapping[str, Library] = {
    library.name: library
    for library in (
        Library("xp", "tape", None),
        Library("jax", "jax", "adbench.functions.from_jax.jaxprs:jax_text", "jax_eager"),
        Library("torch", "torch", "adbench.functions.from_torch.tensors:torch_text"),
        Library("autograd", "autograd", NUMPY_TEXT),
        Library("tape", "tape", NUMPY_TEXT),
        Library("numpy", "tape", NUMPY_TEXT),
    )
}
ORDER = ("jax", "torch", "autograd", "tape", "numpy")
"""If a function refers to several, the first counts."""

OWN_BACKENDS: Mapping[str, tuple[str, ...]] = {
    "jax": ("jax",),
    "torch": ("torch",),
    "autograd": ("autograd",),
    "tape": ("tape",),
}
"""The built-in backends for functions of the library: names, or beginnings of names."""


def takes_xp(f: Callable[..., Any]) -> bool:
    """Whether the first parameter is `xp`."""
    try:
        return next(iter(inspect.signature(f).parameters), "") == "xp"
    except (TypeError, ValueError):  # written in C: its arguments are unknown
        return False


def library_of(f: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Library:
    """The library of f."""
    if takes_xp(f):
        return LIBRARIES["xp"]
    of_arguments = {_library_of_value(leaf) for leaf in _inside([*args, *(kwargs or {}).values()])}
    for found in (of_arguments, *_referred(f)):
        for name in ORDER[:-1]:
            if name in found:
                return LIBRARIES[name]
    return LIBRARIES["numpy"]


def import_library(library: Library) -> None:
    """Import jax or torch now, because `double_precision` needs it before the function imports it."""
    if library.name in ("jax", "torch"):
        importlib.import_module(library.name)


def library_of_value(value: Any) -> Library | None:
    """The library of this number or array type; None for Python and numpy."""
    return LIBRARIES.get(_library_of_value(value))


def translator_of(library: Library) -> Callable[..., Any]:
    """The translator of the library's functions. Raises Unsupported if it is missing."""
    module, _, name = (library.translator or "").partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise Unsupported(f"functions of {library.name} cannot be translated: {error}") from error
    return found


Call = Callable[[Sequence[Any]], Any]
"""call(leaves) -> the function's value at these leaves of its library."""


def in_double(library: Library, call: Call) -> Callable[..., Any]:
    """plain(*leaves) -> the function's value in numpy, from leaves in numpy, computed by its library in float64.

    Raises LessThanDouble if the value is float32 or less.
    """
    if library.name == "jax":
        return _InJax(call)
    return partial(_in_torch if library.name == "torch" else _in_numpy, call)


def _in_numpy(call: Call, *leaves: Any) -> Any:
    return refuse_less(call([leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]))


def _in_torch(call: Call, *leaves: Any) -> Any:
    torch = importlib.import_module("torch")
    native = [torch.tensor(np.asarray(leaf), dtype=torch.float64) for leaf in leaves]
    try:
        value = call(native)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
        value = call([leaf.requires_grad_() for leaf in native])  # it contains derivatives
    return refuse_less(value.detach().cpu() if isinstance(value, torch.Tensor) else value)


class _InJax:
    """Compiles the function after a few calls, because differences take thousands of values.

    A callback into Python that raises is silent, because differences leave a function's domain on purpose.
    """

    CALLS = 20

    def __init__(self, call: Call) -> None:
        self.call, self.calls = call, 0

    def __call__(self, *leaves: Any) -> Any:
        jax = importlib.import_module("jax")
        self.calls += 1
        with jax.enable_x64(True), silent_callbacks():
            native = [jax.numpy.asarray(leaf) for leaf in leaves]
            if self.calls == self.CALLS:
                compiled = jax.jit(self.call)
                with contextlib.suppress(Exception):  # fails for a branch that depends on data
                    compiled(native)
                    self.call = compiled
            value = self.call(native)
            return refuse_less(np.asarray(value) if isinstance(value, jax.Array) else value)


FATAL = {kind.__name__: kind for kind in (KeyboardInterrupt, SystemExit, MemoryError)}


@contextlib.contextmanager
def silent_callbacks() -> Iterator[None]:
    """jax does not print the traceback of a callback that raises, and hides no interruption in its own error."""
    log = logging.getLogger("jax._src.callback")
    was, log.disabled = log.disabled, True
    try:
        yield
    except Exception as error:
        if (kind := FATAL.get(raised_in_callback(error).partition(":")[0])) is not None:
            raise kind from error
        raise
    finally:
        log.disabled = was


def raised_in_callback(error: BaseException) -> str:
    """The last line of the traceback in jax's error about a callback, as "ValueError: math domain error"; else ""."""
    text = str(error)
    return text.strip().splitlines()[-1] if _CALLBACK.search(text) else ""


_CALLBACK = re.compile(r"callback.*Traceback \(most recent call last\)", re.IGNORECASE)


def compute_in_double() -> None:
    """Make jax and torch, if imported, compute in float64 by default from now on."""
    if jax := sys.modules.get("jax"):
        jax.config.update("jax_enable_x64", True)
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float64)


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Within the block, jax and torch compute in float64 by default; afterwards the old settings are restored.

    Backends set such defaults for a worker's whole life. In a user's process they must not outlast the check.
    """
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    kept = {name: getattr(jax.config, name) for name in ("jax_enable_x64", "jax_platforms")} if jax else {}
    dtype, threads = (torch.get_default_dtype(), torch.get_num_threads()) if torch else (None, None)
    try:
        compute_in_double()
        yield
    finally:
        if jax:
            for name, value in kept.items():
                jax.config.update(name, value)
        if torch:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)


# References of a function to libraries


def _referred(f: Any) -> Iterator[set[str]]:
    """The names of libraries to which f refers, then its objects, and so on."""
    level, seen = deque([f]), set[int]()
    while level:
        found: set[str] = set()
        following: deque[Any] = deque()
        for thing in level:
            if id(thing) in seen or len(seen) > MOST_OBJECTS:
                continue
            seen.add(id(thing))
            library = _library_of_value(thing)
            if library:
                found.add(library)
            else:
                following.extend(_parts(thing, found))
        yield found
        level = following


def _library_of_name(module: str) -> str:
    top = module.partition(".")[0]
    if top in ("jax", "jaxlib"):
        return "jax"
    if module.startswith("adbench.tape"):
        return "tape"
    return top if top in ("torch", "autograd") else ""


def _library_of_value(value: Any) -> str:
    """The library of an object, or ""."""
    if isinstance(value, ModuleType):
        return _library_of_name(value.__name__)
    if isinstance(value, type):
        return next(filter(None, (_library_of_name(one.__module__) for one in value.__mro__)), "")
    of_type = next(filter(None, (_library_of_name(one.__module__) for one in type(value).__mro__)), "")
    if of_type:
        return of_type
    if isinstance(value, MethodType) and isinstance(value.__self__, type):  # MyFunction.apply
        return _library_of_value(value.__self__)
    module = getattr(value, "__module__", None)
    return _library_of_name(module) if isinstance(module, str) and callable(value) else ""


def _parts(thing: Any, found: set[str]) -> Iterator[Any]:
    """The objects to which an object refers; imported libraries are added to `found`."""
    if isinstance(thing, partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, FunctionType):
        yield from _referred_by_code(thing, found)
        if hasattr(thing, "__wrapped__"):
            yield thing.__wrapped__
    elif isinstance(thing, list | tuple):
        yield from thing
    elif isinstance(thing, dict):
        yield from thing.values()
    elif not isinstance(thing, type | ModuleType) and type(thing).__module__ != "builtins":
        yield from getattr(thing, "__dict__", {}).values()
        yield from (vars(one).get("__call__") for one in type(thing).__mro__ if "__call__" in vars(one))


def _referred_by_code(function: FunctionType, found: set[str]) -> Iterator[Any]:
    codes = deque([function.__code__])
    names: set[str] = set()
    while codes:
        code = codes.popleft()
        names.update(code.co_names)
        codes.extend(const for const in code.co_consts if isinstance(const, CodeType))
    for name in sorted(names):
        if name in function.__globals__:
            yield function.__globals__[name]
        elif _library_of_name(name):  # `import jax` inside the function
            found.add(_library_of_name(name))
    if {"adbench", "tape"} <= names and "tape" not in function.__globals__:  # imported inside
        found.add("tape")
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # still empty
            yield cell.cell_contents
    yield from function.__defaults__ or ()


def _inside(value: Any, depth: int = 4) -> Iterator[Any]:
    """The value and the contents of its containers."""
    yield value
    if not depth:
        return
    if isinstance(value, dict):
        parts: Sequence[Any] = list(value.values())
    elif isinstance(value, list | tuple):
        parts = value[:100]
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        parts = [getattr(value, name, None) for name in value.__dataclass_fields__]
    elif is_pytree(value):
        parts = sys.modules["jax"].tree_util.tree_leaves(value)
    else:
        return
    for part in parts:
        yield from _inside(part, depth - 1)
