"""Reference and verdict of scalar functions, each in one line."""

from collections.abc import Callable, Sequence
from typing import Any

from adbench.oracle.compute import reference as of_any_shape
from adbench.oracle.operators import judge_operator
from adbench.oracle.reference import Reference, Row
from adbench.oracle.subject import Effort, Subject
from adbench.oracle.verdict import Verdict


def reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    *,
    text: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    **effort: Any,
) -> Row:
    """The only row of a scalar function."""
    return of_any_shape(Subject.of(f, args, wrt, text=text, names=names), Effort(**effort)).scalar


def judge(value: Any, gradient: Any, row: Row, *, claimed_relative_error: float | None = None) -> Verdict:
    """The verdict on a value and a gradient; on the gradient alone if the value is None."""
    operator, result = ("gradient", gradient) if value is None else ("value_and_gradient", (value, gradient))
    return judge_operator(operator, result, Reference((), ((0, row),)), claimed_relative_error=claimed_relative_error)
