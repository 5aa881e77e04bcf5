# The public names: type checkers read them here, and `__init__.py` imports each when it is first used.
from adbench.execution.check_gradients import check_gradients as check_gradients
from adbench.execution.in_process import check_cell as check_cell
from adbench.execution.native.library import CppLibrary as CppLibrary
from adbench.execution.python_check import WrongGradient as WrongGradient
from adbench.execution.python_check import assert_gradients as assert_gradients
from adbench.execution.python_check import check as check
from adbench.functions.derivative_table import FunctionCheck as FunctionCheck
from adbench.functions.user_function import function_case as function_case
from adbench.measure.phases import phase as phase
from adbench.model.backend import Device as Device
from adbench.model.backend import Operator as Operator
from adbench.model.backend import of_active as of_active
from adbench.model.backend import on_active as on_active
from adbench.model.case import Case as Case
from adbench.model.errors import AdbenchError as AdbenchError
from adbench.model.errors import BadFile as BadFile
from adbench.model.errors import MissingFunction as MissingFunction
from adbench.model.errors import UnknownName as UnknownName
from adbench.model.errors import Unsupported as Unsupported
from adbench.model.errors import UsageError as UsageError
from adbench.model.namespace import Namespace as Namespace
from adbench.model.namespace import loop as loop
from adbench.model.record import Job as Job
from adbench.model.record import Record as Record
from adbench.python_run import run as run
from adbench.runs import Run as Run
from adbench.runs import compare as compare
from adbench.runs import load as load
from adbench.version import __version__ as __version__

__all__: list[str]
