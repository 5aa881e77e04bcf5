"""value_and_gradient: the pair of f(x) and ∇g(x)."""

from adbench.model.combining import by_columns, by_rows
from adbench.model.operator.definition import Definition

VALUE_AND_GRADIENT = Definition(
    name="value_and_gradient",
    order=1,
    result="pair",
    lead=2,
    code=1,
    by_modes="reverse(f, at)",
    fallbacks=(
        (("value", "gradient"), lambda here: (here("value"), here("gradient"))),
        (("value", "vjp"), lambda here: (here("value"), by_rows(here))),
        (("value", "jvp"), lambda here: (here("value"), by_columns(here))),
    ),
)
