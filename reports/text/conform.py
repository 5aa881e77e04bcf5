"""The result of `adbench conform` in the terminal, its table of operations, and its progress."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from time import monotonic
from typing import Any

from rich.text import Text

from adbench.findings.conform.conformance import Conformance, ConformanceCell
from adbench.findings.conform.judgement import Fault
from adbench.findings.operations.operation import Operation
from adbench.model.record import grouped

from ..content import formatting
from .drawing import printed
from .planned import duration
from .status_line import StatusLine

MOST_SHOWN = 60
"""Faults in the terminal; the page and the JSON have all."""


class ConformProgress(StatusLine):
    """How many operations are examined, on stderr."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total, self._done, self._faulty = total, 0, 0
        self._started = monotonic()

    def told(self, operation: Operation, cells: Sequence[ConformanceCell]) -> None:
        """Count an operation."""
        self._done += 1
        self._faulty += any(cell.faults for cell in cells)
        left = (monotonic() - self._started) / self._done * (self._total - self._done)
        remaining = f", about {duration(left)} left" if left else ""
        counted = f"{self._done} of {self._total} operations, {self._faulty} at fault{remaining}"
        self.show(f"{counted}: {operation.name}")


def text(found: Conformance, faults: Sequence[Fault], *, width: int, colour: bool, against: bool) -> str:
    """A line for each library, then the faults, the worst of each operation first."""
    parts: list[Any] = [_summary(found, name) for name in found.libraries]
    if found.missing:
        parts.append(Text(f"{len(found.missing)} not examined: {formatting.listed(found.missing)}"))
    if against:
        parts.append(Text(f"{formatting.plural(len(faults), 'fault')} that the baseline lacks"))
    by_operation = grouped(faults, lambda fault: (fault.library, fault.operation))
    for (library, operation), of_operation in by_operation.items():
        worst = min(of_operation, key=lambda fault: fault.digits)
        orders = ", ".join(dict.fromkeys(fault.operator.replace("_", " ") for fault in of_operation))
        parts.append(Text(f"\n{library} {operation}: {orders}", style="bold"))
        parts.append(Text(f"  {described(worst)}"))
        if sum(isinstance(part, Text) for part in parts) > 2 * MOST_SHOWN:
            parts.append(Text("\nmore: write the page with -o FILE"))
            break
    return printed(parts, width=width, colour=colour)


def _summary(found: Conformance, library: str) -> Text:
    cells = [cell for cell in found.cells if cell.library == library]
    examined = [cell for cell in cells if cell.checked]
    faulty = [cell for cell in examined if cell.faults]
    results = formatting.count(sum(cell.checked for cell in examined))
    version = f" {found.libraries[library]}" if found.libraries[library] else ""
    where = f"{library}{version}{found.place}"
    own = sum(bool(cell.own) for cell in examined)
    by = f" ({own} by the library's own function)" if own else ""
    return Text(f"{where}: {len(faulty)} of {len(examined)} operations are at fault{by}; {results} results")


def described(fault: Fault) -> str:
    """The point, both numbers and the digits in one line."""
    where = ", ".join(f"{name} = {formatting.short(repr(value), 60)}" for name, value in fault.point.items())
    of = f" for {fault.entry}" if fault.entry else ""
    digits = f", {fault.digits:.1f} digits correct" if fault.kind == "digits" else ""
    thread = f" ({fault.thread})" if fault.thread else ""
    got = formatting.short(fault.got, 120)
    return f"{fault.operator} at {where}: got {got}{of}, expected {fault.expected}{digits}{thread}"


def table(operations: Sequence[Operation], libraries: Sequence[str], width: int) -> str:
    """The operations with each library's own function, which has further lines if need be, and the numbers of these."""
    families = [library.partition("_")[0] for library in libraries]
    lines = []
    for operation in operations:
        own = [f"{name}: {operation.own[name]}" for name in dict.fromkeys(families) if name in operation.own]
        line = f"{operation.name:28} {operation.signature:22} {'; '.join(own)}".rstrip()
        lines += textwrap.wrap(line, width, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)
    bound = ", ".join(f"{sum(n in one.own for one in operations)} of {n}" for n in dict.fromkeys(families))
    return "\n".join([*lines, f"{len(operations)} operations; own functions: {bound}"]) + "\n"
