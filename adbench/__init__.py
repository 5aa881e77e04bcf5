"""adbench: is it right, is it fast, is it small? Benchmarks and verifies automatic differentiation libraries.

The public names; each is imported when it is first used, so that `adbench --version` answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adbench.version import __version__

if TYPE_CHECKING:
    from adbench.execution.checks_in_process import WrongGradient, assert_gradients, check, check_cell
    from adbench.execution.native.library import CppLibrary
    from adbench.measure.phases import phase
    from adbench.model.backend import Operator, of_active, on_active
    from adbench.model.case import Case
    from adbench.model.errors import AdbenchError, BadFile, MissingFunction, UnknownName, Unsupported, UsageError
    from adbench.model.namespace import Namespace, loop
    from adbench.model.record import Job, Record, Run

_HOME = {
    "AdbenchError": "adbench.model.errors",
    "BadFile": "adbench.model.errors",
    "WrongGradient": "adbench.execution.checks_in_process",
    "assert_gradients": "adbench.execution.checks_in_process",
    "check": "adbench.execution.checks_in_process",
    "check_cell": "adbench.execution.checks_in_process",
    "Case": "adbench.model.case",
    "CppLibrary": "adbench.execution.native.library",
    "Job": "adbench.model.record",
    "MissingFunction": "adbench.model.errors",
    "Namespace": "adbench.model.namespace",
    "Operator": "adbench.model.backend",
    "Record": "adbench.model.record",
    "Run": "adbench.model.record",
    "UnknownName": "adbench.model.errors",
    "Unsupported": "adbench.model.errors",
    "UsageError": "adbench.model.errors",
    "loop": "adbench.model.namespace",
    "of_active": "adbench.model.backend",
    "on_active": "adbench.model.backend",
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
