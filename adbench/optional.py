"""Libraries that only some commands use: an extra installs each, and the first use imports it.

    pandas = library("pandas", "to_frame")

The core installation has none of them, see docs/how-to/install.md.
"""

from __future__ import annotations

import importlib
import importlib.util
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
    """An optional library is not installed. The message is one line with the command that installs it.

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


def pip_install(name: str) -> str:
    """The command that installs an optional library."""
    return f"pip install 'autodiff-bench[{EXTRAS[name]}]'"
