"""What is known of a scalar, asked for in one line."""

from collections.abc import Callable, Sequence
from typing import Any

from adbench.oracle import Effort, Row, Subject
from adbench.oracle import reference as of_any_shape


def reference(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: Sequence[int],
    *,
    text: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    **effort: Any,
) -> Row:
    """The only row of a function whose value is a scalar."""
    return of_any_shape(Subject.of(f, args, wrt, text=text, names=names), Effort(**effort)).scalar
