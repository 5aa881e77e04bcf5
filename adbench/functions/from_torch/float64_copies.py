"""A torch function with float64 copies of the modules and tensors in its globals and its closure, on one device.

They may lie in dicts, lists and tuples, and in the attributes of objects of the user's classes. torch creates
parameters in float32, so `lambda x: net(x).sum()` of float64 numbers would raise. The user's objects are unchanged.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from adbench.functions.libraries import references
from adbench.functions.low_precision import is_of_user
from adbench.functions.outputs import steps

LESS = ("torch.float32", "torch.float16", "torch.bfloat16")

MOST_PARTS = 10_000
"""Larger containers hold data, which is left alone."""


def in_float64(f: Callable[..., Any], place: Any = "cpu") -> tuple[Callable[..., Any], tuple[str, ...]]:
    """The function with copies, and the names of the copied objects; f itself if all are float64 on this device."""
    if "torch" not in sys.modules:
        return f, ()
    copies = _Copies(sys.modules["torch"].device(place))
    made = copies.of(f, type(f).__name__)
    return made if copies.names else f, tuple(dict.fromkeys(copies.names))


class _Copies:
    """Remembers copies, so that functions that share a module share its copy."""

    def __init__(self, place: Any) -> None:
        self._place = place
        self.names: list[str] = []
        self._known: dict[int, tuple[Any, Any]] = {}  # with the original, so that its id stays unique

    def of(self, value: Any, name: str) -> Any:
        """A copy of a module, a tensor, or what holds or uses these; other values unchanged."""
        torch = sys.modules["torch"]
        is_torch = isinstance(value, torch.nn.Module | torch.Tensor)
        if id(value) not in self._known:
            self._known[id(value)] = value, value  # for one that refers to itself
            self._known[id(value)] = value, self._doubled(value) if is_torch else self._with_copies(value, name)
        made = self._known[id(value)][1]
        if is_torch and made is not value:
            self.names.append(name)
        return made

    def _with_copies(self, value: Any, name: str) -> Any:
        """The value with copies of its parts; itself if none of them changes."""
        parts = _parts(value, name)
        own = {key: self.of(*part) for key, part in parts.items()} if len(parts) <= MOST_PARTS else {}
        if all(made is parts[key][0] for key, made in own.items()):
            return value
        if isinstance(value, dict):
            return own
        if type(value) in (list, tuple):
            return type(value)(own.values())
        if isinstance(value, MethodType):
            return MethodType(own["function"], own["self"])
        if isinstance(value, FunctionType):
            return _function_with(value, own)
        made = copy.copy(value)
        vars(made).update({key: made if part is value else part for key, part in own.items()})
        return made

    def _doubled(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        is_tensor = isinstance(value, torch.Tensor)
        tensors = [value] if is_tensor else [*value.parameters(), *value.buffers()]
        is_less = any(str(tensor.dtype) in LESS for tensor in tensors)
        if not is_less and all(tensor.device == self._place for tensor in tensors):
            return value
        own = (value.detach() if is_tensor else copy.deepcopy(value)).to(self._place)
        return own.double() if is_less else own


def _parts(value: Any, name: str) -> dict[Any, tuple[Any, str]]:
    """The objects that a container, a user's object or a function holds or uses, by key, and their names."""
    if type(value) in (list, tuple, dict):
        return {key: (part, name + way) for key, way, part in steps(value)}
    if isinstance(value, MethodType):
        owner = value.__func__.__qualname__.rpartition(".")[0]
        return {"function": (value.__func__, name), "self": (value.__self__, owner)}
    if isinstance(value, FunctionType):
        if (value.__module__ or "").partition(".")[0] in ("torch", "numpy", "builtins"):
            return {}
        return {key: (part, name) for key, name, part in references(value)}
    if _is_of_users_class(value):
        return {key: (part, f"{name}.{key}") for key, part in vars(value).items()}
    return {}


def _function_with(f: FunctionType, parts: dict[Any, Any]) -> FunctionType:
    """The function with other globals, by name, and other contents of its cells, by position."""
    cells = (
        CellType(parts[k]) if k in parts and parts[k] is not cell.cell_contents else cell  # others stay shared
        for k, cell in enumerate(f.__closure__ or ())
    )
    names = f.__globals__ | {key: part for key, part in parts.items() if isinstance(key, str)}
    made = FunctionType(f.__code__, names, f.__name__, f.__defaults__, tuple(cells))
    made.__kwdefaults__, made.__qualname__ = f.__kwdefaults__, f.__qualname__
    made.__dict__.update(f.__dict__)
    return made


def _is_of_users_class(value: Any) -> bool:
    if isinstance(value, type | ModuleType) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    module = sys.modules.get(type(value).__module__)
    return type(value).__module__ != "builtins" and is_of_user(getattr(module, "__file__", None) or "")
