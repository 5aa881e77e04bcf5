"""Modules of scipy, imported when the first of their functions is called: most programs need none of them."""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """A module that is imported when its first attribute is read. Attributes are kept: later reads cost nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


integrate = LazyModule("scipy.integrate")
scipy_linalg = LazyModule("scipy.linalg")
special = LazyModule("scipy.special")
