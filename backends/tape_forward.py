"""adbench's own reference engine in forward mode: a tangent beside each value, one pass for each input."""

from collections.abc import Callable
from typing import Any

from adbench import Operator, Unsupported, on_active, tape

from . import tape as reverse

VARIANT_OF = "tape"

KNOWN = {
    **reverse.KNOWN,  # the rules are the same
    "trap_equal_singular_values": "raises, and says so",
    "trap_square_of_singular_values": "raises, and says so",
}

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
        # Of second order it would take a pass for each pair of inputs; tape.py has forward over reverse.
        raise Unsupported(f"forward mode has no {operator} of its own: a pass gives the product with a direction, J v")
    return f if operator == "value" else reverse.refusing(on_active(OPERATIONS[operator], operator, f, wrt))
