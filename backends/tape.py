"""adbench's own reference engine: records scalars and arrays on a tape anew at every call, then sweeps it back."""

from collections.abc import Callable
from typing import Any

from adbench import Namespace, Operator, Unsupported, tape

xp = Namespace(tape, linalg=vars(tape.linalg))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f

    def value_and_gradient(*args: Any) -> tuple[Any, Any]:
        def of_active(active: tuple[Any, ...]) -> Any:
            every = list(args)
            for position, arg in zip(wrt, active, strict=True):
                every[position] = arg
            return f(*every)

        return tape.gradient(of_active, tuple(args[position] for position in wrt))  # type: ignore[no-any-return]

    if operator == "value_and_gradient":
        return value_and_gradient
    if operator == "gradient":
        return lambda *args: value_and_gradient(*args)[1]
    raise Unsupported(f"adbench asks its tape for value, gradient and value_and_gradient, not {operator}")
