"""adbench.tape in forward mode: carry a tangent with each value, one pass per input."""

from collections.abc import Callable
from typing import Any

from adbench import Operator, Unsupported, on_active, tape

from . import tape as reverse

VARIANT_OF = "tape"
before_timing = reverse.before_timing

xp = reverse.xp


def gradient(g: Callable[..., Any], x: Any) -> Any:
    return tape.jacobian(g, x, mode="forward")[1]


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": gradient,
    "value_and_gradient": lambda g, x: tape.jacobian(g, x, mode="forward"),
    "jacobian": gradient,
    "jvp": lambda g, x, v: tape.jvp(g, x, v)[1],
}
NESTED = {"jvp": reverse.NESTED["jvp"]}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator not in ("value", *OPERATIONS):
        # A Hessian would take one pass per pair of inputs; tape.py has forward over reverse.
        raise Unsupported(f"forward mode has no {operator}: one pass gives J v; use tape")
    return f if operator == "value" else reverse.refusing(on_active(OPERATIONS[operator], operator, f, wrt))
