"""The operators of a backend and their laws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Literal, get_args

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
"""An operator of a backend.

With g the function of the tuple x of active inputs (see `of_active`):

value                f(x), as the backend computes it
gradient             ∇g(x): a tuple with one entry for each active input, of that input's structure
value_and_gradient   the pair of both
jacobian             as the gradient; each leaf has the shape of f's value before that of the input, or is a
                     scipy.sparse array of (entries of the value, entries of the input)
jvp                  J v, of the shape of f's value; v is a tuple like x
vjp                  wᵀ J, as the gradient; w is like f's value
hvp                  H v, as the gradient; v is a tuple like x
hessian              H: a tuple of tuples, H[i][j] of the shape of input i before that of input j; where inputs are
                     nested, x with a structure like x instead of each leaf
batch_gradient       ∇g at N points: each leaf of an active input has a leading axis of N, and so has each leaf of the
                     result; inactive inputs are the same at all points. Requested from backends with BATCHED
hvp_A_over_B         H v, as `hvp`, by the mode A of the derivative by the mode B

If a backend lacks an operator (it raises Unsupported), the harness computes it from others, labelled as a fallback.
"""

EVERY_OPERATOR: tuple[Operator, ...] = get_args(Operator)
"""All operators that a user can request."""

COMPOSITIONS: tuple[Operator, ...] = EVERY_OPERATOR[-4:]
"""H v by composing a library's two modes, named from the outside; the law is that of `hvp`.

The harness composes these from a backend's NESTED (adbench/model/backend.py) and never requests one from `prepare`.
There is no fallback: a missing composition is unsupported.
"""

BATCH: Operator = "batch_gradient"
"""The gradient at many points. A request names it: it is not among a case's possible operators."""

OPERATORS: tuple[Operator, ...] = tuple(name for name in EVERY_OPERATOR[:-4] if name != BATCH)
"""The operators that the harness requests from every backend's `prepare`."""

BATCH_POINTS = (1, 1_000, 100_000)
"""The numbers of points of `batch_gradient` by default. A job names its own: batch_gradient_1000."""


def batch_points(name: str) -> int:
    """The N of "batch_gradient_N"; 0 for any other name."""
    operator, _, points = name.rpartition("_")
    return int(points) if operator == BATCH and points.isdecimal() and points[0] != "0" else 0


def with_points(operators: Iterable[str]) -> tuple[str, ...]:
    """The operators of jobs: `batch_gradient` becomes one for each default number of points."""
    named = [[f"{BATCH}_{n}" for n in BATCH_POINTS] if name == BATCH else [name] for name in operators]
    return tuple(chain.from_iterable(named))


OF_SECOND_ORDER: frozenset[str] = frozenset({"hvp", "hessian", *COMPOSITIONS})
"""Second-order operators, for scalar functions."""

WITH_VECTOR: frozenset[Operator] = frozenset({"jvp", "vjp", "hvp", *COMPOSITIONS})
"""Operators whose last argument is the vector v or w, also in the `args` of `prepare`."""

OF_ARRAYS: frozenset[Operator] = frozenset({"value", "jacobian", "jvp", "vjp"})
"""Operators of array-valued functions; the others are for scalars."""

RELATIONS = "relations"
"""In a job, this replaces the operator: laws that must hold between calls."""

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


def needs(operator: str) -> dict[str, int]:
    """The arguments of `known_at` for the operator."""
    hessian = operator in ("hessian", "relations")
    return {"second_order": needs_second_order(operator), "hessian": hessian, "points": batch_points(operator)}


def needs_second_order(operator: str) -> bool:
    """Whether the operator needs a second-order reference; relations need all references."""
    return operator in OF_SECOND_ORDER or operator == "relations"
