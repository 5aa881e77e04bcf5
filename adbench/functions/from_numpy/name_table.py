"""The table of functions by their full names, and its decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adbench.model.errors import Unsupported

Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {}
"""A function's full name, like ``numpy.linalg.solve`` -> function(xp, *args, **options)."""


def known_as(*names: str) -> Callable[[Function], Function]:
    """Register a function under these full names."""

    def enter(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def namesake(name: str) -> Function:
    """The namespace's function of this name."""
    return lambda xp, *args, **options: getattr(xp, name)(*args, **options)


def unsupported(what: str) -> Unsupported:
    """The error for an unsupported option."""
    return Unsupported(f"{what} has no translation to the oracle's numbers")
