"""Scipy's modules, imported when one of their functions is first called: most programs need none."""

from __future__ import annotations

import importlib
from typing import Any


class _Loaded:
    """The attributes of an imported module."""


class LazyModule(_Loaded):
    """A module that is imported when an attribute is first read. Later reads cost no more than usual."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        self.__dict__.update(vars(importlib.import_module(self._name)))
        self.__class__ = _Loaded  # type: ignore[assignment]  # without `__getattr__`, which would slow every read
        return getattr(self, attribute)


integrate = LazyModule("scipy.integrate")
scipy_linalg = LazyModule("scipy.linalg")
special = LazyModule("scipy.special")
