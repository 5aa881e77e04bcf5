"""The source of functions, with everything that they use from their module, to run in another process."""

from __future__ import annotations

import ast
import dis
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

from adbench.model.errors import UsageError

INSTEAD = "use send='pickle' (which needs cloudpickle), or put the function in a module"


def source_text(functions: Mapping[str, Callable[..., Any]]) -> str:
    """The source of these functions, after the imports, constants and functions that they use.

    Raises UsageError if a function has no source, if two have the same name, or if one uses another kind of object.
    """
    sources: dict[str, tuple[Any, str]] = {}
    for function in functions.values():
        _add(function, sources)
    return "\n\n".join(text for _, text in sources.values())


def _add(function: Callable[..., Any], sources: dict[str, tuple[Any, str]]) -> None:
    """Add the function's source to `sources`, name -> (value, source), after everything that it uses."""
    name = getattr(function, "__name__", type(function).__name__)
    plain = inspect.unwrap(function)
    if not inspect.isfunction(plain):
        raise UsageError(f"{name} is not a Python function, so it has no source; {INSTEAD}")
    if hasattr(function, "defvjp") or hasattr(function, "defjvp"):
        raise UsageError(f"{name} has a custom rule, which is not in its source; {INSTEAD}")
    if _is_there(name, function, sources):
        return
    text = _text(plain, name)
    sources[name] = (function, "")  # a placeholder, because functions may call each other
    values = {**plain.__globals__, **inspect.getclosurevars(plain).nonlocals}
    for used in dict.fromkeys(_names(compile(text, "<source>", "exec", dont_inherit=True))):
        if used != name and used in values:
            _add_value(used, values[used], name, sources)
    del sources[name]
    sources[name] = (function, text)


def _text(function: Callable[..., Any], name: str) -> str:
    if name == "<lambda>":
        raise UsageError(f"a lambda has no separate source; define the function with def, or {INSTEAD}")
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError) as error:
        raise UsageError(f"{name} has no source: {error}; {INSTEAD}") from error
    if not (tree.body and isinstance(tree.body[0], ast.FunctionDef) and tree.body[0].name == name):
        raise UsageError(f"{name} is not defined by `def {name}`; define it like that, or {INSTEAD}")
    return text.strip()


def _names(code: CodeType) -> Iterator[str]:
    """The global names that a source reads, in decorators, defaults and nested bodies."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_there(name: str, value: Any, sources: Mapping[str, tuple[Any, str]]) -> bool:
    """Whether this value is in `sources`. Raises UsageError if another value has the name."""
    if name in sources and sources[name][0] is not value:
        raise UsageError(f"these functions use two different objects named {name!r}; rename one")
    return name in sources


def _add_value(name: str, value: Any, user: str, sources: dict[str, tuple[Any, str]]) -> None:
    """Add the source of an object that the function `user` uses."""
    if _is_there(name, value, sources):
        return
    if isinstance(value, ModuleType) and value.__name__ != "__main__":
        sources[name] = (value, f"import {value.__name__} as {name}")
    elif (place := importable(value)) is not None:
        sources[name] = (value, f"from {place[0]} import {place[1]} as {name}")
    elif inspect.isfunction(inspect.unwrap(value)) and getattr(value, "__name__", "") == name:
        _add(value, sources)
    elif _is_literal(value):
        sources[name] = (value, f"{name} = {value!r}")
    else:
        kind = type(value).__name__
        raise UsageError(f"{user} uses {name}, a {kind} without source; pass it as an argument, or {INSTEAD}")


def importable(value: Any) -> tuple[str, str] | None:
    """The module and the name under which another process finds the value."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(value, type(sys)) or not module or not name or module == "__main__":
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def _is_literal(value: Any) -> bool:
    """Whether the value is a constant that its repr recreates."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
