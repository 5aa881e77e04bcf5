"""What an operator is: its law, and the attributes by which every other part of adbench treats it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from adbench.model.combining import Here

Operator = Literal[
    "value",
    "gradient",
    "value_and_gradient",
    "jacobian",
    "jvp",
    "vjp",
    "hvp",
    "hessian",
    "batch_gradient",
    "hvp_forward_over_forward",
    "hvp_reverse_over_forward",
    "hvp_forward_over_reverse",
    "hvp_reverse_over_reverse",
]
"""The name of an operator: what `prepare` gets, and what a run's file has."""

Mode = Literal["forward", "reverse"]
Way = tuple[tuple[Operator, ...], Callable[[Here], Any]]
"""A fallback: the operators that it needs, and the function that combines them."""


@dataclass(frozen=True)
class Definition:
    """An operator. The order of definitions in `adbench.model.operator` is that of tables.

    name         the operator's
    order        of the highest derivative in its result: 0, 1 or 2
    result       "value": like f's value. "gradient": a tuple like x. "pair": the value and a gradient. "jacobian": like
                 x, each leaf with the shape of f's value before its own. "hessian": a tuple of tuples of blocks
    vector       its last argument: "tangent", a tuple like x; "cotangent", like f's value; None if it takes none
    of_arrays    whether array-valued functions have it too
    mode         of the library that it names by itself: "forward" or "reverse"
    modes        the outer and the inner mode of a composition, which the harness builds from NESTED
    at_points    whether its inputs are those of many points
    judged_as    the operator with whose law the oracle judges its result; "" for its own
    of_traps     whether traps are examined in it
    lead         its rank among the operators that lead a report, the first is 1; 0 if it never does
    code         its number in the C++ interface (backends/native/call.hpp); None if that has none
    by_modes     its text in a script that has the two modes `forward` and `reverse` of a library; "" if none
    label        in the tables of reports; "" for its name

    Fallbacks, the best first, for a library that lacks the operator:

    fallbacks             for scalar functions
    fallbacks_of_arrays   for array-valued functions
    fallbacks_by_modes    further ones for a scalar function that the library's own way refuses
    """

    name: Operator
    order: int
    result: Literal["value", "gradient", "pair", "jacobian", "hessian"]
    vector: Literal["tangent", "cotangent"] | None = None
    of_arrays: bool = False
    mode: Mode | None = None
    modes: tuple[Mode, Mode] | None = None
    at_points: bool = False
    judged_as: str = ""
    of_traps: bool = False
    lead: int = 0
    code: int | None = None
    by_modes: str = ""
    label: str = ""
    fallbacks: tuple[Way, ...] = ()
    fallbacks_of_arrays: tuple[Way, ...] = ()
    fallbacks_by_modes: tuple[Way, ...] = ()

    @property
    def judged_by(self) -> str:
        """The operator with whose law the oracle judges its result."""
        return self.judged_as or self.name

    @property
    def derivatives(self) -> tuple[int, ...]:
        """The orders of the derivatives in its result."""
        return (0, self.order) if self.result == "pair" else (self.order,)

    @property
    def is_first_derivative(self) -> bool:
        """Whether its result is the first derivative by all inputs, and nothing else."""
        return self.order == 1 and self.vector is None and self.result in ("gradient", "jacobian")

    @property
    def reference(self) -> Literal["first", "hvp", "hessian"]:
        """The reference that its result is compared with: of f, of its derivative along v, or of its gradient."""
        if self.order < 2:
            return "first"
        return "hessian" if self.result == "hessian" else "hvp"

    @property
    def is_requested(self) -> bool:
        """Whether the harness requests it from the `prepare` of every backend."""
        return self.modes is None and not self.at_points
