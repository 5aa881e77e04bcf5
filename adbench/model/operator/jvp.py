"""jvp: J v, of the shape of f's value; v is a tuple like x."""

from adbench.model.combining import by_rows, dense_jacobian, times
from adbench.model.operator.definition import Definition

JVP = Definition(
    name="jvp",
    order=1,
    result="value",
    vector="tangent",
    of_arrays=True,
    mode="forward",
    code=3,
    by_modes="forward(f, at, v)",
    label="J v",
    fallbacks=(
        (("gradient",), lambda here: times(here, here("gradient"))),
        (("vjp",), lambda here: times(here, by_rows(here))),
    ),
    fallbacks_of_arrays=(
        (("jacobian",), lambda here: times(here, dense_jacobian(here))),
        (("vjp",), lambda here: times(here, by_rows(here))),
    ),
)
