"""adbench.tape with compact Jacobians: carry whole Jacobians forwards in as few numbers as possible."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Operator, Unsupported, on_active, tape
from adbench.model import tree

from . import tape as reverse

VARIANT_OF = "tape"
before_timing = reverse.before_timing

xp = reverse.xp
NESTED = "compact Jacobians are plain numbers and cannot be differentiated again"

MOST_NUMBERS = 1_000_000

OPERATORS = ("gradient", "value_and_gradient", "jacobian")


def prepare(
    operator: Operator,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    *,
    mode: str = "forward",
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATORS:
        raise Unsupported(f"compact Jacobians give no {operator}, only gradients and Jacobians; use tape")
    if mode == "dense" and (numbers := sum(np.size(leaf) for leaf in tree.leaves(args[wrt[0]])) ** 2) > MOST_NUMBERS:
        raise Unsupported(f"the dense Jacobian has {numbers:,} entries, more than {MOST_NUMBERS:,}; use tape_compact")
    if len(wrt) > 1 or not hasattr(args[wrt[0]], "shape"):
        raise Unsupported("compact Jacobians need exactly one active input, an array; use tape")

    def operation(g: Callable[..., Any], x: tuple[Any]) -> Any:
        value, jacobian = tape.compact_jacobian(lambda entry: g((entry,)), x[0], mode)
        shape = getattr(value, "shape", ()) + x[0].shape
        whole = (jacobian.dense().reshape(shape),)
        return (value, whole) if operator == "value_and_gradient" else whole

    return reverse.refusing(on_active(operation, operator, f, wrt))
