"""Where do the digits go? Each operation of a function is checked by itself, at the inputs that it had.

A derivative that lost its digits lost them in an operation, or where operations meet: in a cancellation, say. An
operation that is right by itself is not to blame. One that is wrong by itself is a bug of the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.execution.python_check import check
from adbench.functions.operations import NotedOperation, operations
from adbench.model.case import Case, function_of
from adbench.model.errors import AdbenchError, UsageError, contained
from adbench.oracle.evidence import FLOAT64_DIGITS, EntryEvidence, in_digits
from adbench.oracle.leaves import output_weights

MODES = ("gradient", "hvp")


@dataclass(frozen=True)
class OperationDigits:
    """The number that lost most digits of an operation's value, first and second derivatives.

    worst    by "value", "gradient" and "hvp"
    reason   why some are missing
    """

    operation: NotedOperation
    worst: Mapping[str, EntryEvidence]
    reason: str = ""

    def told(self, name: str) -> str:
        """The digits of one number: "5.2/14.7"."""
        one = self.worst.get(name)
        if one is None:
            return "–"
        return f"{in_digits(one.digits_correct)}/{min(one.digits_resolvable, FLOAT64_DIGITS):.1f}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        digits = {
            name: {"correct": one.digits_correct, "resolvable": one.digits_resolvable, "word": one.word}
            for name, one in self.worst.items()
        }
        operation = self.operation
        return {"name": operation.name, "operation": operation.written, "digits": digits, "reason": self.reason or None}

    @property
    def is_wrong(self) -> bool:
        """Whether a number is wrong."""
        return any(one.word == "wrong" for one in self.worst.values())


def lost_digits(case: Case, size: int, seed: int, backend: str) -> Iterator[OperationDigits]:
    """The digits of each operation of a case by this backend. Equal operations on equal numbers come once.

    Raises UsageError if the case does not run on numpy.
    """
    names, args, active = case.bind(size, seed)
    try:
        with contained():
            noted = operations(lambda xp, *given: function_of(case, names, xp, size)(*given), args, names, active)
    except Exception as error:  # a user's case may raise anything
        raise UsageError(f"{case.name}: its operations cannot be noted: {type(error).__name__}: {error}") from error
    seen: set[tuple[Any, ...]] = set()
    for one in noted:
        key = (one.form, *(np.asarray(x).tobytes() for x in (*one.operands, *one.constants)))
        if key not in seen:
            seen.add(key)
            yield _checked(one, backend)


def _checked(one: NotedOperation, backend: str) -> OperationDigits:
    shape, active = np.shape(one.value), len(one.operands)
    weights = [output_weights(0, 0, shape)] if shape else []

    def total(xp: Any, *numbers: Any) -> Any:
        if not shape:
            return one.text(xp, *numbers)
        return xp.sum(numbers[-1] * one.text(xp, *numbers[:-1]))

    try:
        operands = (*one.operands, *one.constants, *weights)
        checked = check(total, *operands, backend=backend, modes=MODES, wrt=tuple(range(active)))
    except AdbenchError as refusal:
        return OperationDigits(one, {}, str(refusal))
    rows = {"value": checked.values[0], **{row.mode: row for row in checked.rows}}
    worst = {name: max(row.entries, key=_lost) for name, row in rows.items() if row.verdict is not None and row.entries}
    reasons = [row.reason for row in checked.rows if row.verdict is None]
    return OperationDigits(one, worst, "; ".join(reasons))


def _lost(entry: EntryEvidence) -> tuple[bool, float]:
    return entry.word == "wrong", entry.digits_resolvable - entry.digits_correct
