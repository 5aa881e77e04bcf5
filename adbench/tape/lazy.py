"""Scipy's modules, imported when one of their functions is first called: most programs need none.

Without scipy such a call raises MissingLibrary, with the command that installs it.
"""

from __future__ import annotations

from typing import Any

from adbench.optional import library


class _Loaded:
    """The attributes of an imported module."""


class LazyModule(_Loaded):
    """A module that is imported when an attribute is first read. Later reads cost no more than usual."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        self.__dict__.update(vars(library(self._name, f"{self._name}.{attribute}")))
        self.__class__ = _Loaded  # type: ignore[assignment]  # without `__getattr__`, which would slow every read
        return getattr(self, attribute)


integrate = LazyModule("scipy.integrate")
scipy_linalg = LazyModule("scipy.linalg")
special = LazyModule("scipy.special")
