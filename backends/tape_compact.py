"""adbench's own reference engine with compact Jacobians: carried forwards whole, in the fewest numbers they take."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Operator, Unsupported, on_active, tape
from adbench.model import tree

from . import tape as reverse

VARIANT_OF = "tape"

KNOWN = {
    "trap_equal_eigenvalues": "raises, and says so: eigenvectors are turned by any change where eigenvalues are equal",
    "trap_equal_singular_values": "raises, and says so",
    "trap_simple_eigenvector": "raises, and says so: eigenvalues of other eigenvectors are equal",
    "trap_std_of_constant": "nan (as HIPS/autograd#151)",
}

xp = reverse.xp
NESTED = "compact Jacobians are numbers: nothing is recorded of how they were made"

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
        raise Unsupported(f"compact Jacobians give no {operator}: they are whole Jacobians, carried forwards")
    if mode == "dense" and (numbers := sum(np.size(leaf) for leaf in tree.leaves(args[wrt[0]])) ** 2) > MOST_NUMBERS:
        raise Unsupported(f"a dense Jacobian of the inputs alone would hold {numbers:,} numbers")
    if len(wrt) > 1 or not hasattr(args[wrt[0]], "shape"):
        raise Unsupported("here a compact Jacobian is taken in one array; the case has more active inputs, or a nest")

    def operation(g: Callable[..., Any], x: tuple[Any]) -> Any:
        value, jacobian = tape.compact_jacobian(lambda entry: g((entry,)), x[0], mode)
        shape = getattr(value, "shape", ()) + x[0].shape
        whole = (jacobian.dense().reshape(shape),)
        return (value, whole) if operator == "value_and_gradient" else whole

    return reverse.refusing(on_active(operation, operator, f, wrt))
