"""The operators of a backend and their laws."""

from __future__ import annotations

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
    "hvp_forward_over_forward",
    "hvp_reverse_over_forward",
    "hvp_forward_over_reverse",
    "hvp_reverse_over_reverse",
]
"""An operator of a backend.

With g the function of the tuple x of active inputs, as `of_active` makes it:

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
hvp_A_over_B         H v, as `hvp`, by the mode A of the derivative by the mode B

If a backend lacks an operator (it raises Unsupported), the harness makes it from others, labelled as a fallback.
"""

EVERY_OPERATOR: tuple[Operator, ...] = get_args(Operator)
"""All that a user can ask for."""

COMPOSITIONS: tuple[Operator, ...] = EVERY_OPERATOR[-4:]
"""H v by one composition of a library's two modes, the outer one named first; the law is that of `hvp`.

The harness makes all four from a backend's NESTED (adbench/model/backend.py) and never asks `prepare` for one. A
composition that a library lacks is unsupported: there is no fallback.
"""

OPERATORS: tuple[Operator, ...] = EVERY_OPERATOR[:-4]
"""The operators that the harness asks `prepare` for."""

OF_SECOND_ORDER: frozenset[str] = frozenset({"hvp", "hessian", *COMPOSITIONS})
"""Operators that need second derivatives, of functions whose value is a scalar."""

WITH_VECTOR: frozenset[Operator] = frozenset({"jvp", "vjp", "hvp", *COMPOSITIONS})
"""Operators whose call takes one argument more, the last: the vector v or w. `args` in `prepare` has it too."""

OF_ARRAYS: frozenset[Operator] = frozenset({"value", "jacobian", "jvp", "vjp"})
"""Operators that a function has whose value is an array; the others are for scalars."""
