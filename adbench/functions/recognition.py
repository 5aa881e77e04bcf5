"""Recognise the library that a function is written for.

In this order, the library follows from a first parameter named `xp`, the types of the arguments, the modules to which
the function's code and the functions it calls refer, the annotations of its parameters, a named backend, and the only
AD library that its module imports. A function that calls numpy, or of which none of this is known, is numpy's: if it
then asks numpy's arrays for a method that they lack, the library whose arrays have it (`libraries_with`).
"""

from __future__ import annotations

import contextlib
import dis
import importlib.util
import inspect
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, get_args

import numpy as np

from adbench.functions.libraries import (
    LIBRARIES,
    OF_BACKENDS,
    Library,
    codes_in,
    import_library,
    library_name,
    library_name_of_value,
    names_in,
    references,
)
from adbench.functions.user_arguments import is_pytree, signature_of

MOST_OBJECTS = 500
"""The most objects that are inspected for references, directly or through others."""

OF_NUMBERS = ("numpy", "scipy", "math")
"""Modules whose functions take numpy's arrays and Python's numbers."""

LACKS = re.compile(r"has no attribute '(\w+)'")


def takes_xp(f: Callable[..., Any]) -> bool:
    """Whether the first parameter is `xp`."""
    try:
        return next(iter(inspect.signature(f).parameters), "") == "xp"
    except (TypeError, ValueError):  # written in C: its arguments are unknown
        return False


def family_of_backend(backend: str | None) -> str:
    """The library whose functions this backend takes, by the backend's name or file; "" if it takes any."""
    family = Path(backend or "").stem.partition("_")[0]
    return family if family in OF_BACKENDS else ""


def only_family(backends: Iterable[str]) -> str | None:
    """The library whose functions these backends take, if all that take one library's take the same one's."""
    families = {family for family in map(family_of_backend, backends) if family}
    return families.pop() if len(families) == 1 else None


def library_of(
    f: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> Library:
    """The library of f; `backend` is the backend that the user named."""
    if takes_xp(f):
        return LIBRARIES["xp"]
    of_arguments = {library_name_of_value(leaf) for leaf in _inside([*args, *(kwargs or {}).values()])}
    references = _References()
    annotated = _annotated(f)
    for found in (of_arguments, *references.levels(f), annotated):
        for name in OF_BACKENDS:
            if name in found:
                return LIBRARIES[name]
    if references.calls_numpy or "numpy" in annotated:
        return LIBRARIES["numpy"]
    return LIBRARIES[family_of_backend(backend) or references.only_import or "numpy"]


def libraries_with(error: BaseException | None, tried: Library, backend: str | None = None) -> Iterator[Library]:
    """Other libraries than the `tried` one whose arrays may have the method that its arrays lack, by the error.

    After an AttributeError those whose arrays have it. After a TypeError, because a method of the same name may take
    other arguments, those that are imported.
    """
    if not isinstance(error, AttributeError | TypeError) or tried.name == "xp":
        return
    lacking = LACKS.search(str(error)) if isinstance(error, AttributeError) else None
    for name in ("numpy", "torch", "jax"):
        library, family = LIBRARIES[name], family_of_backend(backend)
        if name == tried.name or (family and family != name) or importlib.util.find_spec(name) is None:
            continue
        if lacking is None and name not in sys.modules:
            continue
        if lacking is None or hasattr(_type_of_arrays(library), lacking[1]):
            yield library


def _type_of_arrays(library: Library) -> type:
    import_library(library)
    module, name = {"torch": ("torch", "Tensor"), "jax": ("jax", "Array")}.get(library.name, ("numpy", "ndarray"))
    found: type = getattr(sys.modules[module], name)
    return found


def _annotated(f: Any) -> set[str]:
    """The libraries of the types by which f's parameters are annotated."""
    try:
        parameters = signature_of(f).parameters.values()
    except (TypeError, ValueError):
        return set()
    names = getattr(_unwrapped(f), "__globals__", {})
    return {name for each in parameters for name in _of_annotation(each.annotation, names)}


def _of_annotation(annotation: Any, names: Mapping[str, Any]) -> Iterator[str]:
    """The libraries of a type, its arguments, as in `list[torch.Tensor]`, and the arrays of a type of jaxtyping."""
    if isinstance(annotation, str):
        for word in dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*", annotation)):
            yield _of_type(names[word]) if word in names else library_name(word)
        return
    yield _of_type(annotation) if isinstance(annotation, type) else ""
    for part in (*get_args(annotation), getattr(annotation, "array_type", None)):
        if part is not None:
            yield from _of_annotation(part, names)


def _of_type(found: Any) -> str:
    """The library of a type or a module, numpy included."""
    module = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", "")
    return library_name_of_value(found) or ("numpy" if str(module).partition(".")[0] == "numpy" else "")


def _unwrapped(f: Any) -> Any:
    """The Python function below partial objects, methods and wrappers."""
    while isinstance(f, partial | MethodType) or hasattr(f, "__wrapped__"):
        f = getattr(f, "func", None) or getattr(f, "__func__", None) or f.__wrapped__
    return f


class _References:
    """References of a function: to libraries, to numpy's functions, and the libraries that their modules import."""

    def __init__(self) -> None:
        self.calls_numpy = False
        self.only_import = ""

    def levels(self, f: Any) -> Iterator[set[str]]:
        """The names of libraries to which f refers, then its objects, and so on."""
        level, seen = deque([f]), set[int]()
        while level:
            found, imported = set[str](), set[str]()
            following: deque[Any] = deque()
            for thing in level:
                if id(thing) in seen or len(seen) > MOST_OBJECTS:
                    continue
                seen.add(id(thing))
                library = library_name_of_value(thing)
                if library:
                    found.add(library)
                    continue
                following.extend(_parts(thing, found))
                if isinstance(thing, FunctionType):
                    self.calls_numpy = self.calls_numpy or _calls_numpy(thing)
                    imported.update(map(library_name_of_value, list(thing.__globals__.values())))
            yield found
            imported -= {""}
            self.only_import = self.only_import or (imported.pop() if len(imported) == 1 else "")
            level = following


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
    names = names_in(function.__code__)
    for key, _, value in references(function):
        yield value
        if isinstance(key, str):
            yield from _called_in(value, names)
    found.update(map(library_name, names.difference(function.__globals__)))  # `import jax` inside the function
    found.discard("")
    if {"adbench", "tape"} <= names and "tape" not in function.__globals__:  # imported inside
        found.add("tape")
    yield from function.__defaults__ or ()


def _called_in(value: Any, names: set[str]) -> Iterator[Any]:
    """The functions of these names in a user's module: `layers.loss`."""
    if isinstance(value, ModuleType) and "site-packages" not in (getattr(value, "__file__", None) or "site-packages"):
        yield from (one for name in sorted(names) if isinstance(one := vars(value).get(name), FunctionType))


def _calls_numpy(function: FunctionType) -> bool:
    """Whether it calls functions of numpy, scipy or math on more than constants: `math.sqrt(2)` is a constant."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for code in codes_in(function.__code__):
        steps = [step for step in dis.get_instructions(code) if step.opname not in ("PUSH_NULL", "PRECALL")]
        value: Any = None
        for step, following in zip(steps, [*(step.opname for step in steps[1:]), ""], strict=True):
            value = _loaded(step, value, function, cells)
            if _is_of_numbers(value) and following not in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST"):
                return True
            if step.opname == "IMPORT_NAME" and step.argval.partition(".")[0] in OF_NUMBERS:
                return True  # imported inside the function
    return False


def _loaded(step: dis.Instruction, before: Any, function: FunctionType, cells: Mapping[str, CellType]) -> Any:
    """The global object, or the part of a module, that an instruction loads; None for any other."""
    if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return function.__globals__.get(step.argval)
    if step.opname == "LOAD_DEREF" and step.argval in cells:
        with contextlib.suppress(ValueError):  # still empty
            return cells[step.argval].cell_contents
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(before, ModuleType):
        return getattr(before, step.argval, None)
    return None


def _is_of_numbers(value: Any) -> bool:
    if not callable(value) or isinstance(value, type):
        return False
    module = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "")
    return str(module).partition(".")[0] in OF_NUMBERS


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
