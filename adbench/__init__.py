"""adbench: is it right, is it fast, is it small? Benchmarks and verifies automatic differentiation libraries.

The public names; each is imported when it is first used, so that `adbench --version` answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adbench.version import __version__

if TYPE_CHECKING:
    from adbench.measure.phases import phase
    from adbench.suite.api import WrongGradient, assert_gradients, check, check_cell
    from adbench.suite.backend import Operator, of_active, on_active
    from adbench.suite.case import Case
    from adbench.suite.errors import AdbenchError, BadFile, MissingFunction, UnknownName, Unsupported, UsageError
    from adbench.suite.namespace import Namespace, loop
    from adbench.suite.native.library import CppLibrary
    from adbench.suite.record import Job, Record, Run

_HOME = {
    "AdbenchError": "adbench.suite.errors",
    "BadFile": "adbench.suite.errors",
    "WrongGradient": "adbench.suite.api",
    "assert_gradients": "adbench.suite.api",
    "check": "adbench.suite.api",
    "check_cell": "adbench.suite.api",
    "Case": "adbench.suite.case",
    "CppLibrary": "adbench.suite.native.library",
    "Job": "adbench.suite.record",
    "MissingFunction": "adbench.suite.errors",
    "Namespace": "adbench.suite.namespace",
    "Operator": "adbench.suite.backend",
    "Record": "adbench.suite.record",
    "Run": "adbench.suite.record",
    "UnknownName": "adbench.suite.errors",
    "Unsupported": "adbench.suite.errors",
    "UsageError": "adbench.suite.errors",
    "loop": "adbench.suite.namespace",
    "of_active": "adbench.suite.backend",
    "on_active": "adbench.suite.backend",
    "phase": "adbench.measure.phases",
}

__all__ = [
    "AdbenchError",
    "BadFile",
    "Case",
    "CppLibrary",
    "Job",
    "MissingFunction",
    "Namespace",
    "Operator",
    "Record",
    "Run",
    "UnknownName",
    "Unsupported",
    "UsageError",
    "WrongGradient",
    "__version__",
    "assert_gradients",
    "check",
    "check_cell",
    "loop",
    "of_active",
    "on_active",
    "phase",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'adbench' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
