"""The libraries that functions are written for, and how to run a function there in double precision."""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from adbench.catalog.installed import installed_version
from adbench.functions.low_precision import jax_in_double, of_tensors, widened
from adbench.model.errors import Unsupported, UsageError
from adbench.oracle.evidence import within


@dataclass(frozen=True)
class Library:
    """A library that functions are written for.

    name         its name in messages
    backend      the default backend
    second       the next one, if the first fails, as for a branch that depends on data
    translator   "module:function" that translates for the oracle; None if no translation is needed
    keeps_types  whether it computes in types below float64; functions for others are checked in float64
    """

    name: str
    backend: str
    translator: str | None
    second: str | None = None
    keeps_types: bool = False

    @property
    def title(self) -> str:
        """Its name and its version."""
        version = installed_version(self.name)
        return f"{self.name} {version}" if version else self.name

    def refuse_backend(self, backend: str, function: str) -> None:
        """Raise UsageError if a backend belongs to another library than this function."""
        family = backend.partition("_")[0]
        if self.name in OF_BACKENDS and family in OF_BACKENDS and family != self.name:
            raise UsageError(
                f"{function} is written for {self.name}, which the backend {backend} cannot differentiate; leave "
                f"backend out, or give the function a first parameter xp"
            )

    def hint(self, backend: str) -> str:
        """Advice if a backend cannot differentiate a function of this library, to append to the reason, or ""."""
        family = backend.partition("_")[0]
        if self.name == "numpy" and family in OF_BACKENDS and family != "tape":
            return f"; the function calls numpy: leave {backend} out, or write the function for {family}"
        return ""


NUMPY_TEXT = "adbench.functions.from_numpy.numpy_calls:numpy_text"
LIBRARIES: Mapping[str, Library] = {
    library.name: library
    for library in (
        Library("xp", "tape", None),
        Library("jax", "jax", "adbench.functions.from_jax.jaxprs:jax_text", "jax_eager", keeps_types=True),
        Library("torch", "torch", "adbench.functions.from_torch.torch_text:torch_text", keeps_types=True),
        Library("autograd", "autograd", NUMPY_TEXT, keeps_types=True),
        Library("tape", "tape", NUMPY_TEXT),
        Library("numpy", "tape", NUMPY_TEXT),
    )
}
OF_BACKENDS = ("jax", "torch", "autograd", "tape")
"""Libraries with backends for their functions, whose names begin with that of the library. If a function refers to
several, the first counts."""


def import_library(library: Library) -> None:
    """Import jax or torch now, because `double_precision` needs it before the function imports it."""
    if library.name in ("jax", "torch") and library.name not in sys.modules:
        importlib.import_module(library.name)
        if (kept := _SETTINGS.get()) is not None:  # within `double_precision`
            _restore_later(kept, library.name)
            compute_in_double()


def library_name(module: str) -> str:
    """The name of the library that this module belongs to, or ""."""
    top = module.partition(".")[0]
    if top in ("jax", "jaxlib"):
        return "jax"
    if module.startswith("adbench.tape"):
        return "tape"
    return top if top in ("torch", "autograd") else ""


def library_name_of_value(value: Any) -> str:
    """The name of the library of an object, or ""."""
    if isinstance(value, ModuleType):
        return library_name(value.__name__)
    kind = value if isinstance(value, type) else type(value)
    of_type = next(filter(None, (library_name(one.__module__) for one in kind.__mro__)), "")
    if of_type or kind is value:
        return of_type
    if isinstance(value, MethodType | BuiltinMethodType) and isinstance(value.__self__, type):  # MyFunction.apply
        return library_name_of_value(value.__self__)
    module = getattr(value, "__module__", None)
    return library_name(module) if isinstance(module, str) and callable(value) else ""


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

    A value of a lower type is converted to float64.
    """
    if library.name == "jax":
        return _InJax(call)
    if library.name == "torch":
        return lambda *leaves: _in_numpys(of_tensors(call, leaves))
    return lambda *leaves: _in_numpys(call([leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]))


def _in_numpys(value: Any) -> Any:
    """A tensor of torch in numpy; any value below float64 in float64."""
    value = widened(value)
    return value.detach().cpu().numpy() if library_name(type(value).__module__) == "torch" else value


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
        with jax_in_double(), silent_callbacks():
            native = [jax.numpy.asarray(leaf) for leaf in leaves]
            if self.calls == self.CALLS:
                compiled = jax.jit(self.call)
                with contextlib.suppress(Exception):  # fails for a branch that depends on data
                    compiled(native)
                    self.call = compiled
            value = self.call(native)
            return _in_numpys(np.asarray(value) if isinstance(value, jax.Array) else value)


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


FORWARD_NAMES = ("apply", "forward", "setup_context")


def forward_codes() -> frozenset[CodeType]:
    """The code in whose frames a `torch.autograd.Function` runs forward.

    That of `apply`; from torch 2.14 on it is written in C, so the `forward` of each class instead.
    """
    function = sys.modules["torch"].autograd.Function
    apply = getattr(function.apply, "__func__", None)
    if apply is not None:
        return frozenset((apply.__code__,))
    classes = [*function.__subclasses__()]
    for one in classes:
        classes += one.__subclasses__()
    return _codes_of_forward(tuple(classes))


@lru_cache(maxsize=1)
def _codes_of_forward(classes: tuple[type, ...]) -> frozenset[CodeType]:
    methods = (vars(one).get(name) for one in classes for name in FORWARD_NAMES[1:])
    return frozenset(code for method in methods if (code := _code(method)))


def _code(method: Any) -> CodeType | None:
    return getattr(getattr(method, "__func__", method), "__code__", None)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def names_in(code: CodeType) -> set[str]:
    """The names of globals and attributes that a function and the functions in it use."""
    return {name for inner in codes_in(code) for name in inner.co_names}


def references(function: FunctionType) -> Iterator[tuple[str | int, str, Any]]:
    """The objects that its code uses: globals with their name, and contents of cells with their position, as key, name
    and object."""
    for name in sorted(names_in(function.__code__)):
        if name in function.__globals__:
            yield name, name, function.__globals__[name]
    for k, (name, cell) in enumerate(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)):
        with contextlib.suppress(ValueError):  # still empty
            yield k, name, cell.cell_contents


def compute_in_double() -> None:
    """Make jax and torch, if imported, compute in float64 by default from now on."""
    if jax := sys.modules.get("jax"):
        jax.config.update("jax_enable_x64", True)
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float64)


def own_settings() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """settings() -> a block in which jax and torch have the defaults that they have now: those of the user."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    wide = bool(jax and jax.config.jax_enable_x64)
    dtype = torch and torch.get_default_dtype()

    @contextlib.contextmanager
    def settings() -> Iterator[None]:
        with contextlib.ExitStack() as kept:
            _restore_later(kept, "jax", "torch")
            if "jax" in sys.modules:
                kept.enter_context(jax_in_double(wide))
            if torch := sys.modules.get("torch"):
                torch.set_default_dtype(dtype or torch.float32)
            yield

    return settings


@contextlib.contextmanager
def without_tf32() -> Iterator[None]:
    """A block in which GPUs multiply float32 in float32; a precision that the user has set stays.

    By default jax's products there, and torch's convolutions, round factors to 10 bits (TF32).
    """
    with contextlib.ExitStack() as kept:
        if (jax := sys.modules.get("jax")) and jax.config.jax_default_matmul_precision is None:
            kept.enter_context(jax.default_matmul_precision("highest"))
        if torch := sys.modules.get("torch"):
            cudnn = torch.backends.cudnn
            with contextlib.suppress(RuntimeError):  # the user has set it for convolutions alone
                kept.callback(setattr, cudnn, "allow_tf32", cudnn.allow_tf32)
                cudnn.allow_tf32 = False
        yield


def _restore_later(kept: contextlib.ExitStack, *libraries: str) -> None:
    """Note the settings of these libraries, if imported, to restore them when the stack ends."""
    if "jax" in libraries and (jax := sys.modules.get("jax")):
        for name in ("jax_enable_x64", "jax_platforms"):
            kept.callback(jax.config.update, name, getattr(jax.config, name))
    if "torch" in libraries and (torch := sys.modules.get("torch")):
        kept.callback(torch.set_default_dtype, torch.get_default_dtype())
        kept.callback(torch.set_num_threads, torch.get_num_threads())


_SETTINGS: ContextVar[contextlib.ExitStack | None] = ContextVar("settings", default=None)
"""The settings that `double_precision` restores."""


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Within the block, jax and torch compute in float64 by default; afterwards the old settings are restored.

    Backends set such defaults for a worker's whole life. In a user's process they must not outlast the check.
    """
    with contextlib.ExitStack() as kept:
        _restore_later(kept, "jax", "torch")
        compute_in_double()
        with within(_SETTINGS, kept):
            yield
