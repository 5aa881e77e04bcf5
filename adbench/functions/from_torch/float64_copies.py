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

from adbench.functions.libraries import names_in
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
    made = copies.of_function(f)
    return made if copies.names else f, tuple(dict.fromkeys(copies.names))


class _Copies:
    """Remembers copies, so that functions that share a module share its copy."""

    def __init__(self, place: Any) -> None:
        self._place = place
        self.names: list[str] = []
        self._known: dict[int, Any] = {}
        self._kept: list[Any] = []  # keeps objects alive, so that ids stay unique

    def of_function(self, f: Any) -> Any:
        """A Python function, a method or an object that can be called, with copies."""
        if isinstance(f, MethodType):
            function, name = self.of_function(f.__func__), f.__func__.__qualname__.rpartition(".")[0]
            own = self.of(f.__self__, name)
            return f if function is f.__func__ and own is f.__self__ else MethodType(function, own)
        if not isinstance(f, FunctionType):
            return self.of(f, type(f).__name__)
        if (f.__module__ or "").partition(".")[0] in ("torch", "numpy", "builtins"):
            return f
        if id(f) in self._known:
            return self._known[id(f)]
        self._known[id(f)] = f  # for a recursive function
        self._kept.append(f)
        names = {name for name in names_in(f.__code__) if name in f.__globals__}
        changed = {name: self.of(f.__globals__[name], name) for name in sorted(names)}
        changed = {name: value for name, value in changed.items() if value is not f.__globals__[name]}
        cells = tuple(map(self._cell, f.__closure__ or (), f.__code__.co_freevars))
        if not changed and all(new is old for new, old in zip(cells, f.__closure__ or (), strict=True)):
            return f
        made = FunctionType(f.__code__, {**f.__globals__, **changed}, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__, made.__qualname__ = f.__kwdefaults__, f.__qualname__
        made.__dict__.update(f.__dict__)
        self._known[id(f)] = made
        return made

    def _cell(self, cell: CellType, name: str) -> CellType:
        try:
            found = cell.cell_contents
        except ValueError:  # still empty
            return cell
        made = self.of(found, name)
        return cell if made is found else CellType(made)

    def of(self, value: Any, name: str) -> Any:
        """A copy of a module, a tensor, or what holds or uses these; other values unchanged."""
        torch = sys.modules["torch"]
        if isinstance(value, FunctionType | MethodType):
            return self.of_function(value)
        if not isinstance(value, torch.nn.Module | torch.Tensor):
            return self._of_parts(value, name)
        if id(value) not in self._known:
            self._known[id(value)] = self._doubled(value)
            self._kept.append(value)
        made = self._known[id(value)]
        if made is not value:
            self.names.append(name)
        return made

    def _of_parts(self, value: Any, name: str) -> Any:
        """A container or an object of a user's class with copies in it; itself if nothing in it changes."""
        if type(value) in (list, tuple, dict):
            parts = {key: (part, name + way) for key, way, part in steps(value)}
        elif _is_of_users_class(value):
            parts = {key: (part, f"{name}.{key}") for key, part in vars(value).items()}
        else:
            return value
        if id(value) in self._known or len(parts) > MOST_PARTS:
            return self._known.get(id(value), value)
        self._known[id(value)] = value  # for an object that holds itself
        self._kept.append(value)
        own = {key: self.of(*part) for key, part in parts.items()}
        if all(own[key] is part for key, (part, _) in parts.items()):
            return value
        made: Any
        if isinstance(value, dict):
            made = own
        elif type(value) in (list, tuple):
            made = type(value)(own.values())
        else:
            made = copy.copy(value)
            vars(made).update({key: made if part is value else part for key, part in own.items()})
        self._known[id(value)] = made
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


def _is_of_users_class(value: Any) -> bool:
    if isinstance(value, type | ModuleType) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    module = sys.modules.get(type(value).__module__)
    return type(value).__module__ != "builtins" and is_of_user(getattr(module, "__file__", None) or "")
