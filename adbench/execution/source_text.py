"""The source text of functions, with everything that they use of their module: text that runs elsewhere."""

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
    """The text of these functions under their own names, after the imports, constants and functions that they use.

    Raises UsageError if a function has no text, if two have the same name, or if one uses another kind of object.
    """
    found: dict[str, tuple[Any, str]] = {}
    for function in functions.values():
        _add(function, found)
    return "\n\n".join(text for _, text in found.values())


def _add(function: Callable[..., Any], found: dict[str, tuple[Any, str]]) -> None:
    """Add the function's text to `found`, name -> (value, text), after everything that it uses."""
    name = getattr(function, "__name__", type(function).__name__)
    plain = inspect.unwrap(function)
    if not inspect.isfunction(plain):
        raise UsageError(f"{name} is not a Python function, so it has no source text; {INSTEAD}")
    if hasattr(function, "defvjp") or hasattr(function, "defjvp"):
        raise UsageError(f"{name} has a custom rule, which is not in its source text; {INSTEAD}")
    if _is_there(name, function, found):
        return
    text = _text(plain, name)
    found[name] = (function, "")  # while its parts are added: functions may call each other
    values = {**plain.__globals__, **inspect.getclosurevars(plain).nonlocals}
    for used in dict.fromkeys(_names(compile(text, "<source>", "exec", dont_inherit=True))):
        if used != name and used in values:
            _add_value(used, values[used], name, found)
    del found[name]
    found[name] = (function, text)


def _text(function: Callable[..., Any], name: str) -> str:
    if name == "<lambda>":
        raise UsageError(f"a lambda has no source text without the line around it; define it with def, or {INSTEAD}")
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError) as error:
        raise UsageError(f"{name} has no source text: {error}; {INSTEAD}") from error
    if not (tree.body and isinstance(tree.body[0], ast.FunctionDef) and tree.body[0].name == name):
        raise UsageError(f"{name} is not the text of a `def {name}`; define it like that, or {INSTEAD}")
    return text.strip()


def _names(code: CodeType) -> Iterator[str]:
    """The global names that a text reads: those of its decorators and defaults, and of the bodies in it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_there(name: str, value: Any, found: Mapping[str, tuple[Any, str]]) -> bool:
    """Whether this value has its text. Raises UsageError if another value has the name."""
    if name in found and found[name][0] is not value:
        raise UsageError(f"two different objects are called {name!r} in these functions; rename one")
    return name in found


def _add_value(name: str, value: Any, user: str, found: dict[str, tuple[Any, str]]) -> None:
    """Add the text of one thing that the function `user` uses."""
    if _is_there(name, value, found):
        return
    if isinstance(value, ModuleType) and value.__name__ != "__main__":
        found[name] = (value, f"import {value.__name__} as {name}")
    elif (place := importable(value)) is not None:
        found[name] = (value, f"from {place[0]} import {place[1]} as {name}")
    elif inspect.isfunction(inspect.unwrap(value)) and getattr(value, "__name__", "") == name:
        _add(value, found)
    elif _is_literal(value):
        found[name] = (value, f"{name} = {value!r}")
    else:
        kind = type(value).__name__
        raise UsageError(f"{user} uses {name}, a {kind} without source text; pass it as an argument, or {INSTEAD}")


def importable(value: Any) -> tuple[str, str] | None:
    """The module and the name under which another process finds the value."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if isinstance(value, type(sys)) or not module or not name or module == "__main__":
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def _is_literal(value: Any) -> bool:
    """Whether the value is a constant that its own text gives again."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
