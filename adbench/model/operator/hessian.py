"""hessian: H, a tuple of tuples: H[i][j] of the shape of input i before that of input j.

Where inputs are nested, x with a structure like x instead of each leaf.
"""

from functools import partial

from adbench.model.combining import hessian_by_columns
from adbench.model.operator.composed_modes import COMPOSED
from adbench.model.operator.definition import Definition

HESSIAN = Definition(
    name="hessian",
    order=2,
    result="hessian",
    of_traps=True,
    code=5,
    label="Hessian",
    fallbacks=((("hvp",), hessian_by_columns),),
    fallbacks_by_modes=tuple(((one.name,), partial(hessian_by_columns, hvp=one.name)) for one in reversed(COMPOSED)),
)
