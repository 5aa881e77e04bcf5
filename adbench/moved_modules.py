"""Old module paths that documentation named, or that files in users' caches import, lead to the new places.

Importing an old path gives the module at its new place, with a DeprecationWarning that names it.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "adbench.suite": "adbench.results",  # files("adbench.suite") / "run.schema.json"
    "adbench.suite.backend": "adbench.model.backend",
    "adbench.suite.case": "adbench.model.case",
    "adbench.suite.errors": "adbench.model.errors",
    "adbench.suite.namespace": "adbench.model.namespace",
    "adbench.suite.record": "adbench.model.record",
    "adbench.suite.store": "adbench.results.store",
    "adbench.suite.tree": "adbench.model.tree",
    "adbench.neighbours": "adbench.interop",
    "adbench.neighbours.gradbench": "adbench.interop.gradbench",
    "adbench.neighbours.gradbench.backend": "adbench.interop.gradbench.tool_backend",
    "adbench.neighbours.process": "adbench.interop.process",
    "adbench.neighbours.process.backend": "adbench.interop.process.process_backend",
    "adbench.tape.density": "adbench.tape.densities.density",
}


class MovedModules:
    """Finds and loads the modules of MOVED: an entry of `sys.meta_path`."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """None for a module that has not moved. Raises ModuleNotFoundError for others below a package that has."""
        if name in MOVED:
            return ModuleSpec(name, self)  # type: ignore[arg-type]  # importlib.abc.Loader costs every import 10 ms
        if name.startswith(("adbench.suite.", "adbench.neighbours.")):  # else a second copy of what lies there now
            raise ModuleNotFoundError(f"{name} has moved; CONTRIBUTING.md has the map of adbench's modules", name=name)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The default: an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module at the new place under the old name too."""
        old, new = module.__name__, MOVED[module.__name__]
        warnings.warn(f"{old} has moved to {new}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(new)


def install() -> None:
    """From now on old paths can be imported."""
    sys.meta_path.insert(0, MovedModules())
