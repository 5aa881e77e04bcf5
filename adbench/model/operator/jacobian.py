"""jacobian: as the gradient, but each leaf has the shape of f's value before that of the input.

Or it is a scipy.sparse array of (entries of the value, entries of the input).
"""

from adbench.model.combining import by_columns, by_rows
from adbench.model.operator.definition import Definition

JACOBIAN = Definition(
    name="jacobian",
    order=1,
    result="jacobian",
    of_arrays=True,
    lead=3,
    code=1,  # of a scalar function: its gradient
    fallbacks=((("gradient",), lambda here: here("gradient")), (("vjp",), by_rows), (("jvp",), by_columns)),
    fallbacks_of_arrays=((("jvp",), by_columns), (("vjp",), by_rows)),
)
