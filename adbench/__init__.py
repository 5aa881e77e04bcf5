"""adbench checks and measures automatic differentiation libraries: correctness, time and memory.

`__init__.pyi` lists the public names. Each is imported when it is first used, so that `adbench --version` answers at
once.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

_LISTED = re.findall(
    r"^from (\S+) import (\w+) as (\w+)$", Path(__file__).with_suffix(".pyi").read_text("utf-8"), re.MULTILINE
)
_HOMES = {public: (module, name) for module, name, public in _LISTED}

__all__ = list(_HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'adbench' has no attribute {name!r}")
    module, own_name = _HOMES[name]
    return getattr(import_module(module), own_name)
