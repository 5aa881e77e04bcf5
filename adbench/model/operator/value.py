"""value: f(x), as the backend computes it."""

from adbench.model.operator.definition import Definition

VALUE = Definition(
    name="value",
    order=0,
    result="value",
    of_arrays=True,
    lead=4,
    code=0,
    by_modes="f(*at)",
    fallbacks=((("value_and_gradient",), lambda here: here("value_and_gradient")[0]),),
)
