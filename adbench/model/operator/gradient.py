"""gradient: ∇g(x), a tuple with one entry for each active input, of that input's structure."""

from adbench.model.combining import by_columns, by_rows
from adbench.model.operator.definition import Definition

GRADIENT = Definition(
    name="gradient",
    order=1,
    result="gradient",
    of_traps=True,
    lead=1,
    code=1,
    by_modes="reverse(f, at)",
    fallbacks=(
        (("value_and_gradient",), lambda here: here("value_and_gradient")[1]),
        (("vjp",), by_rows),
        (("jvp",), by_columns),
    ),
)
