"""The operators of a backend and their laws."""

from __future__ import annotations

from collections.abc import Mapping
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

REQUIRED_RELATIONS: Mapping[str, str] = {
    "elsewhere": "an operator prepared at some inputs is right at others of the same shapes",
    "overwritten": "the arrays that `prepare` saw may be overwritten afterwards",
    "twice": "a call is right again after a call at other inputs",
    "rewritten": "a call reads its arrays each time: the same array may hold other numbers",
    "interleaved": "calls of two prepared operators may take turns",
    "untouched": "a call leaves its arguments unchanged",
    "own": "later calls leave a result alone, and writing into it does not spoil them",
    "subsets": "any of the inputs may be active, in any order",
    "linear": "J v, wᵀ J and H v are linear in the vector, whatever its numbers",
    "modes": "<w, J v> = <Jᵀ w, v>",
    "symmetric": "H v is H times v, and H is symmetric",
}
"""What must hold between calls of every operator that a backend offers: name -> law."""

OPTIONAL_RELATIONS: Mapping[str, str] = {
    "Fortran order": "a matrix may lie in memory column by column",
    "strided": "the numbers of an array may lie apart in memory",
    "read-only": "arrays may be read-only",
    "same array": "two arguments may be the same array",
    "apart": "a result shares no memory with the arguments",
    "NaN": "a NaN in an input is a NaN in the result, or an exception, as on plain numpy",
    "exception": "a call is right after a call that raised",
    "thread": "a call may come from another thread than `prepare`",
}
"""The same, where a backend's file may say in its `LIMITS` why the library cannot."""
