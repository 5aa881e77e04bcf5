"""vjp: wᵀ J, as the gradient; w is like f's value."""

from adbench.model.combining import by_columns, dense_jacobian, from_left
from adbench.model.operator.definition import Definition

VJP = Definition(
    name="vjp",
    order=1,
    result="gradient",
    vector="cotangent",
    of_arrays=True,
    mode="reverse",
    code=2,
    fallbacks=(
        (("gradient",), lambda here: from_left(here, here("gradient"))),
        (("jvp",), lambda here: from_left(here, by_columns(here))),
    ),
    fallbacks_of_arrays=(
        (("jacobian",), lambda here: from_left(here, dense_jacobian(here))),
        (("jvp",), lambda here: from_left(here, by_columns(here))),
    ),
)
