"""Reference and verdict of scalar functions, each in one line."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from adbench.oracle.compute import reference as of_any_shape
from adbench.oracle.leaves import Point
from adbench.oracle.operators import judge_operator
from adbench.oracle.reference import Reference, Row
from adbench.oracle.subject import Effort, Subject
from adbench.oracle.verdict import Verdict


def subject_of(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    *,
    text: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    shape: tuple[int, ...] = (),
) -> Subject:
    """f at these arguments, active in ``wrt``; messages use these names, or else those of f's parameters."""
    parameters = inspect.signature(f).parameters.values()
    own = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    own += [f"args[{k}]" for k in range(len(own), len(args))]
    return Subject(f, Point(args, wrt, names or own), text, shape)


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
    return of_any_shape(subject_of(f, args, wrt, text=text, names=names), Effort(**effort)).scalar


def judge(value: Any, gradient: Any, row: Row, *, claimed_relative_error: float | None = None) -> Verdict:
    """The verdict on a value and a gradient; on the gradient alone if the value is None."""
    operator, result = ("gradient", gradient) if value is None else ("value_and_gradient", (value, gradient))
    return judge_operator(operator, result, Reference((), ((0, row),)), claimed_relative_error=claimed_relative_error)
