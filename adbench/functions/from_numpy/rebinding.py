"""Copies of functions with other library functions, for operations that numpy's protocols do not reach.

`np.zeros(3)` creates floats, whatever is written into it later; `np.array([x, y])` and `math.sin(x)` require floats. A
copy of a function has the same code, and other globals and closures, where numpy, scipy, math, autograd and
adbench.tape are stand-ins. Functions that it calls are copied too, unless a library defines them. Libraries are
unchanged.
"""

from __future__ import annotations

import builtins
import copy
import functools
import sys
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from adbench.functions.libraries import names_in, references
from adbench.oracle.series.number import Real

Call = Callable[[str, Any, tuple[Any, ...], dict[str, Any]], Any]
"""call(full name, function, args, options): a call of a library's function."""

LIBRARIES = (
    *("numpy", "numpy.linalg", "numpy.fft", "math", "scipy", "scipy.special", "scipy.linalg", "scipy.stats"),
    *("autograd.numpy", "autograd.numpy.linalg", "autograd.numpy.fft", "autograd.scipy", "autograd.scipy.special"),
    *("autograd", "autograd.tracer", "autograd.scipy.linalg", "autograd.scipy.stats"),
    *("adbench", "adbench.tape", "adbench.tape.linalg"),
    *(
        f"autograd.scipy.stats.{name}"
        for name in ("beta", "chi2", "gamma", "multivariate_normal", "norm", "poisson", "t")
    ),
)
"""Modules that get a stand-in."""

GETVAL = "autograd.tracer.getval"
"""Declares a number constant, without an error on the oracle's numbers."""

OWN = ("adbench.functions", "adbench.execution")
"""Modules whose functions only wrap user code: their copies keep their globals."""

MOST_PARTS = 1000
"""The most entries of a dict, a list or a tuple that is searched for functions."""

_WITHOUT_COPIES = {"numpy", "scipy", "autograd", "adbench", "jax", "jaxlib", "torch"} | set(sys.stdlib_module_names)


def full_name(path: str) -> str:
    """The numpy or scipy name for autograd's name of a function."""
    return path.removeprefix("autograd.") if path.startswith(("autograd.numpy", "autograd.scipy")) else path


def _found(path: str) -> Any:
    """The function of this full name, if its module is loaded."""
    module, _, name = path.rpartition(".")
    return getattr(sys.modules.get(module), name, None)


class _IsFloat(type):
    """`isinstance(x, float)` like the builtin."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.float)


class Float(float, metaclass=_IsFloat):
    """`float` in copies: it keeps active numbers. As a dtype it is float64."""

    dtype = np.dtype(np.float64)

    def __new__(cls, x: Any = 0.0) -> Any:
        """The float of a plain number; the entry of an active one."""
        if isinstance(x, np.ndarray) and np.asarray(x).dtype == object:
            return x.item()
        return x if isinstance(x, Real) else builtins.float(x)


class StandIn:
    """Replaces a library's module or function: calls go to ``call``, other attributes to the original."""

    def __init__(self, path: str, original: Any, call: Call) -> None:
        self._path, self._original, self._call = path, original, call

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        return stand_in(path, getattr(self._original, name), self._call)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The result of ``call``."""
        return self._call(full_name(self._path), self._original, args, options)

    def __repr__(self) -> str:
        return f"<stand-in for {self._path}>"


def stand_in(path: str, original: Any, call: Call) -> Any:
    """The replacement of a module's member: itself, unless it is a function or holds functions."""
    if isinstance(original, ModuleType):
        return StandIn(path, original, call) if path in LIBRARIES else original
    if original is np.float64:
        return Float
    if isinstance(original, type) or not callable(original):
        return original
    if path.startswith("autograd."):
        original = _found(full_name(path)) or original
    return StandIn(path, original, call)


def _known() -> dict[int, tuple[str, Any]]:
    """id -> name and function, for members of all loaded libraries in the list."""
    known: dict[int, tuple[str, Any]] = {}
    for library in LIBRARIES:
        module = sys.modules.get(library)
        if module is None:
            continue
        for name, member in list(vars(module).items()):
            if callable(member) and not isinstance(member, type) and not name.startswith("_"):
                known.setdefault(id(member), (f"{library}.{name}", member))
    return known


class Rebinding:
    """Copies a function and everything it reaches; ``copied`` counts the changed functions, ``stops``: one may call
    `GETVAL`."""

    def __init__(self, call: Call) -> None:
        self._call, self._known = call, _known()
        self._made: dict[int, tuple[Any, Any]] = {}
        self._instances: dict[int, Any] = {}
        self._package = ""
        self._builtins = vars(builtins) | {"__import__": self._imported, "float": Float}
        self.copied = 0
        self.stops = False

    def of(self, value: Any) -> Any:
        """The replacement of a value: a copy, a stand-in, or itself."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        found = self._replaced(value)
        self._made[id(value)] = value, found  # keeps the value, so that its id is not reused
        return found

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, StandIn):  # from an earlier translation
            return value
        if id(value) in self._known:
            path, original = self._known[id(value)]
            self.copied += 1
            self.stops = self.stops or path == GETVAL
            return stand_in(path, original, self._call)
        if isinstance(value, ModuleType):
            return self._of_module(value)
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, MethodType):
            return self._of_method(value)
        if isinstance(value, functools.partial):
            return functools.partial(
                self.of(value.func), *map(self.of, value.args), **{k: self.of(v) for k, v in value.keywords.items()}
            )
        if isinstance(value, functools._lru_cache_wrapper):
            return self.of(value.__wrapped__)
        kind = type(value)
        if kind in (dict, list, tuple):
            return self._of_container(value)
        if kind.__module__ == "adbench.tape.core.rule" and kind.__name__ == "Rule":
            return self.of(value.value)
        if kind.__module__.startswith(OWN) and hasattr(value, "__dict__"):
            return self._of_object(value)
        if callable(value) and not isinstance(value, type) and _is_of_user(kind.__call__):
            return self._of_instance(value)
        return value

    def _imported(self, *args: Any, **options: Any) -> Any:
        """An import statement inside a function."""
        return self.of(builtins.__import__(*args, **options))

    def _of_module(self, module: ModuleType) -> Any:
        if module.__name__ in LIBRARIES:
            return StandIn(module.__name__, module, self._call)
        if module.__name__.partition(".")[0] in _WITHOUT_COPIES or isinstance(module, _Module):
            return module
        return _Module(module, self)

    def _of_object(self, value: Any) -> Any:
        made = copy.copy(value)
        self._made[id(value)] = value, made
        for name, part in vars(value).items():
            object.__setattr__(made, name, self.of(part))
        return made

    def _of_container(self, value: Any) -> Any:
        """A dict, list or tuple with copied functions; unchanged without functions."""
        if len(value) > MOST_PARTS:
            return value
        parts = list(value.values() if isinstance(value, dict) else value)
        found = [self.of(part) if callable(part) or isinstance(part, ModuleType) else part for part in parts]
        if all(new is old for new, old in zip(found, parts, strict=True)):
            return value
        return dict(zip(value, found, strict=True)) if isinstance(value, dict) else type(value)(found)

    def _of_method(self, method: MethodType) -> Any:
        holder = method.__self__
        if isinstance(holder, type):
            return MethodType(self.of(method.__func__), holder)
        own = type(holder).__module__.startswith(OWN)
        return getattr(self.of(holder) if own else self._of_instance(holder), method.__func__.__name__, method)

    def _of_instance(self, value: Any) -> Any:
        """A copy of a user's object with a class of copied methods, or the object if that is impossible."""
        if id(value) in self._instances:
            return self._instances[id(value)]
        kind = type(value)
        methods: dict[str, Any] = {"__slots__": ()}
        for base in reversed(kind.__mro__):
            methods.update((k, v) for k, v in vars(base).items() if _is_of_user(v))
        try:
            made = self._instances[id(value)] = copy.copy(value)
            copied = type(kind.__name__, (kind,), {name: self.of(method) for name, method in methods.items()})
            object.__setattr__(made, "__class__", copied)
        except TypeError:
            made = self._instances[id(value)] = value
        return made

    def _of_function(self, function: FunctionType) -> Any:
        if getattr(function, "_is_autograd_primitive", False):
            return self.of(function.fun)  # type: ignore[attr-defined]  # autograd's attribute
        module = _module_of(function)
        own = module.startswith(OWN)
        if module == "adbench.tape.pqr.custom_gradient":
            both = self.of(function.__wrapped__)  # type: ignore[attr-defined]  # the value and the gradient
            return lambda *args, **options: both(*args, **options)[0]
        if not own and not self._is_copied(function):
            return self._of_wrapper(function)
        cells = tuple(CellType() for _ in function.__closure__ or ())
        names = function.__globals__ if own else function.__globals__ | {"__builtins__": self._builtins}
        made = FunctionType(function.__code__, names, function.__name__, None, cells)
        self._made[id(function)] = function, made
        self.stops = self.stops or GETVAL.rpartition(".")[2] in names_in(function.__code__)
        made.__dict__.update(function.__dict__)
        made.__kwdefaults__ = {k: self.of(v) for k, v in (function.__kwdefaults__ or {}).items()}
        made.__defaults__ = tuple(map(self.of, function.__defaults__ or ())) or None
        for key, _, part in references(function):
            if isinstance(key, int):
                cells[key].cell_contents = self.of(part)
            elif not own:
                names[key] = self.of(part)
        self.copied += not own
        return made

    def _is_copied(self, value: Any) -> bool:
        """Whether it is a user's function: from no library, or from the package of the first function."""
        if not _is_of_user(value):
            return False
        package = _module_of(value).partition(".")[0]
        self._package = self._package or package
        return package == self._package or "site-packages" not in value.__code__.co_filename

    def _of_wrapper(self, function: FunctionType) -> Any:
        """A library's function. If it wraps a user's function, both are copied."""
        held = {key: part for key, _, part in references(function) if isinstance(key, int)}
        if not any(map(self._is_copied, held.values())):
            return function
        cells = (CellType(self.of(held[k])) if k in held else old for k, old in enumerate(function.__closure__ or ()))
        return FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
        )


def _module_of(function: FunctionType) -> str:
    """The module of its code; `functools.wraps` may name another."""
    return str(function.__globals__.get("__name__", ""))


def _is_of_user(value: Any) -> bool:
    return isinstance(value, FunctionType) and _module_of(value).partition(".")[0] not in _WITHOUT_COPIES


class _Module(ModuleType):
    """A user's module with copied functions."""

    def __init__(self, module: ModuleType, rebinding: Rebinding) -> None:
        super().__init__(module.__name__)
        self.__dict__["_original"], self.__dict__["_rebinding"] = module, rebinding

    def __getattr__(self, name: str) -> Any:
        return self._rebinding.of(getattr(self._original, name))
