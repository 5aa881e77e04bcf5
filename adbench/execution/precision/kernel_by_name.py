"""`adbench check --function K --definition D`: a kernel and its definition by their names on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from adbench.catalog.ad_hoc import SIZES, AdHoc
from adbench.execution.precision.kernel import KernelCheck
from adbench.functions.derivative_table import FunctionCheck
from adbench.model.errors import UsageError, contained


def kernel_checks(
    named: AdHoc, definition: str, sizes: Sequence[str], points: int, seed: int, seconds: float, device: str
) -> list[FunctionCheck]:
    """The check of the kernel for each size, for which `named.inputs` makes the arguments; one check without them.

    Raises UsageError in one line for a fault in the kernel, the definition or the arguments, and without the device.
    """
    if sizes and named.inputs is None:
        raise UsageError("-n has no meaning without --inputs; remove it, or give a function of n with --inputs")
    made = []
    with contained():
        kernel, reference = named.function(), named.named(definition, "--definition")
        arguments = named.arguments_by_size()
        for size in map(_whole, sizes or (str(SIZES[0]),)):
            check = KernelCheck(kernel, reference, *arguments(size), named.wrt or None, seed, seconds, device)
            made.append(check.table(points))
    return made


def _whole(size: str) -> int:
    if not (size.isdecimal() and int(size)):
        raise UsageError(f"-n {size!r} is not a size; write a whole number from 1, for example -n 100")
    return int(size)
