"""Libraries that only some commands use: an extra installs each, and the first use imports it.

    pandas = library("pandas", "to_frame")

The core installation has none of them, see docs/how-to/install.md.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

EXTRAS = {
    "cloudpickle": "notebook",
    "distributed": "dask",
    "llvmlite": "compiled",
    "matplotlib": "plots",
    "pandas": "notebook",
    "pytest_benchmark": "benchmark",
    "scipy": "scipy",
}
"""Optional library -> the extra of ours that installs it."""


class MissingLibrary(ImportError, NotImplementedError):
    """An optional library, or a module of the system, is missing. The message is one line that says what to do.

    Also a NotImplementedError, so that a backend that needs the library counts as unsupported, with this reason.
    """

    def _render_traceback_(self) -> list[str]:
        """In a notebook, show the message without a traceback."""
        return [f"{type(self).__name__}: {self}"]


def require(name: str, user: str) -> None:
    """Raise MissingLibrary if an optional library is not installed; imports nothing."""
    if importlib.util.find_spec(name) is None:
        raise MissingLibrary(f"{user} needs {name}: {pip_install(name)}", name=name)


def library(module: str, user: str) -> ModuleType:
    """Import a module of an optional library for `user`, a feature such as "to_frame".

    Raises MissingLibrary if the library is not installed. An error inside an installed library passes unchanged.
    """
    require(module.partition(".")[0], user)
    return importlib.import_module(module)


def posix_module(name: str) -> ModuleType:
    """A module of Python that Windows lacks, imported where it is needed: `import adbench` works without.

    Raises MissingLibrary.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingLibrary(
            f"this command starts processes, which needs Linux or macOS ({name} is missing); on Windows use WSL, "
            "or adbench.check in Python",
            name=name,
        ) from error


def pip_install(name: str) -> str:
    """The command that installs an optional library."""
    return f"pip install 'autodiff-bench[{EXTRAS[name]}]'"


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function with each of some modules once it has been imported."""

    def __init__(self, names: set[str], act: Callable[[ModuleType], None]) -> None:
        self._names, self._act = names, act

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders know, with a loader that calls the function at its end."""
        if name not in self._names:
            return None
        self._names = self._names - {name}
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._act(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this loader alone
        return spec
