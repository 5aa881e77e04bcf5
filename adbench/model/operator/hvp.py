"""hvp: H v, as the gradient; v is a tuple like x."""

from functools import partial
from typing import Any

from adbench.model.combining import Here, hvp_by_hessian
from adbench.model.operator.composed_modes import COMPOSED
from adbench.model.operator.definition import Definition


def _by(composition: str, here: Here) -> Any:
    return here(composition, here.vectors[0])


HVP = Definition(
    name="hvp",
    order=2,
    result="gradient",
    vector="tangent",
    of_traps=True,
    code=4,
    by_modes="forward(lambda *p: reverse(f, p), at, v)",
    label="H v",
    fallbacks=((("hessian",), hvp_by_hessian),),
    # Double reverse, which most custom rules allow, is first.
    fallbacks_by_modes=tuple(((one.name,), partial(_by, one.name)) for one in reversed(COMPOSED)),
)
