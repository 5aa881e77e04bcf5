"""The operators of a backend and their laws: a file for each, with all that other parts of adbench ask of it.

With g the function of the tuple x of active inputs (see `of_active`), the docstring of each file states what the
operator returns. If a backend lacks an operator (it raises Unsupported), the harness computes it from others, labelled
as a fallback.
"""

from __future__ import annotations

from collections.abc import Mapping

from adbench.model.errors import UnknownName
from adbench.model.operator.batch_gradient import BATCH as BATCH
from adbench.model.operator.batch_gradient import BATCH_GRADIENT
from adbench.model.operator.batch_gradient import BATCH_POINTS as BATCH_POINTS
from adbench.model.operator.batch_gradient import batch_points as batch_points
from adbench.model.operator.batch_gradient import with_points as with_points
from adbench.model.operator.composed_modes import COMPOSED
from adbench.model.operator.definition import Definition
from adbench.model.operator.definition import Operator as Operator
from adbench.model.operator.gradient import GRADIENT
from adbench.model.operator.hessian import HESSIAN
from adbench.model.operator.hvp import HVP
from adbench.model.operator.jacobian import JACOBIAN
from adbench.model.operator.jvp import JVP
from adbench.model.operator.value import VALUE
from adbench.model.operator.value_and_gradient import VALUE_AND_GRADIENT
from adbench.model.operator.vjp import VJP

DEFINITIONS: Mapping[str, Definition] = {
    one.name: one
    for one in (
        VALUE,
        GRADIENT,
        VALUE_AND_GRADIENT,
        JACOBIAN,
        JVP,
        VJP,
        HVP,
        HESSIAN,
        BATCH_GRADIENT,
        *COMPOSED,
    )
}
"""Every operator by name, in the order of tables."""

EVERY_OPERATOR: tuple[Operator, ...] = tuple(one.name for one in DEFINITIONS.values())
"""All operators that a user can request."""

COMPOSITIONS: tuple[Operator, ...] = tuple(one.name for one in DEFINITIONS.values() if one.modes)
"""H v by composing a library's two modes."""

OPERATORS: tuple[Operator, ...] = tuple(one.name for one in DEFINITIONS.values() if one.is_requested)
"""The operators that the harness requests from every backend's `prepare`."""

OF_TRAPS: tuple[Operator, ...] = tuple(one.name for one in DEFINITIONS.values() if one.of_traps)
"""The operators that traps are examined in."""

OF_SECOND_ORDER: frozenset[str] = frozenset(one.name for one in DEFINITIONS.values() if one.order == 2)
"""Second-order operators, for scalar functions."""

WITH_VECTOR: frozenset[Operator] = frozenset(one.name for one in DEFINITIONS.values() if one.vector)
"""Operators whose last argument is the vector v or w, also in the `args` of `prepare`."""

TRANSFORMS: Mapping[str, Operator] = {one.mode: one.name for one in DEFINITIONS.values() if one.mode}
"""Each mode of a library -> the operator that is this mode, a key of a backend's NESTED."""


def definition(operator: str) -> Definition:
    """The definition of an operator, also of one with its number of points. Raises UnknownName."""
    chosen = DEFINITIONS.get(BATCH if batch_points(operator) else operator)
    if chosen is None:
        raise UnknownName("operator", operator, EVERY_OPERATOR)
    return chosen


RELATIONS = "relations"
"""In a job, this replaces the operator: laws that must hold between calls."""


def needs(operator: str) -> dict[str, int]:
    """The arguments of `known_at` for the operator."""
    hessian = operator == RELATIONS or definition(operator).reference == "hessian"
    return {"second_order": needs_second_order(operator), "hessian": hessian, "points": batch_points(operator)}


def needs_second_order(operator: str) -> bool:
    """Whether the operator needs a second-order reference; relations need all references."""
    return operator in OF_SECOND_ORDER or operator == RELATIONS


REQUIRED_RELATIONS: Mapping[str, str] = {
    "elsewhere": "a prepared operator is correct at other inputs of the same shapes",
    "overwritten": "the arrays of `prepare` may be overwritten afterwards",
    "twice": "a call is correct after a call at other inputs",
    "rewritten": "each call reads its arrays, whose numbers may have changed",
    "interleaved": "calls of two prepared operators may alternate",
    "untouched": "a call leaves its arguments unchanged",
    "own": "later calls do not change a result, and writing to it does not affect them",
    "subsets": "any inputs may be active, in any order",
    "linear": "J v, wᵀ J and H v are linear in any vector",
    "modes": "w · J v = Jᵀ w · v",
    "symmetric": "H v is H times v, and H is symmetric",
    "one entry": "a call is correct after one whose inputs differ in one entry only",
}
"""Laws that every operator of a backend must satisfy between calls: name -> law."""

OPTIONAL_RELATIONS: Mapping[str, str] = {
    "Fortran order": "a matrix may be stored column by column",
    "strided": "numbers may be apart in memory",
    "read-only": "arrays may be read-only",
    "same array": "two arguments may be the same array",
    "apart": "a result shares no memory with the arguments",
    "NaN": "a NaN input gives a NaN result or an exception, as in plain numpy",
    "exception": "a call is correct after a call that raised",
    "thread": "a call may come from another thread than `prepare`",
}
"""Further laws, which a backend's `LIMITS` may decline with a reason."""
