"""hvp_A_over_B: H v, as `hvp`, by the mode A of the derivative by the mode B, two modes of a library.

The harness composes these from a backend's NESTED (adbench/model/backend.py) and never requests one from `prepare`.
There is no fallback: a missing composition is unsupported.
"""

from adbench.model.operator.definition import Definition, Mode, Operator


def _composed(name: Operator, outer: Mode, inner: Mode, by_modes: str) -> Definition:
    return Definition(
        name=name,
        order=2,
        result="gradient",
        vector="tangent",
        modes=(outer, inner),
        judged_as="hvp",
        of_traps=True,
        by_modes=by_modes,
        label=f"{outer} ∘ {inner}",
    )


COMPOSED = (
    _composed(
        "hvp_forward_over_forward",
        "forward",
        "forward",
        "forward(lambda *p: forward(f, p, v), at, unit)",  # one entry
    ),
    _composed("hvp_reverse_over_forward", "reverse", "forward", "reverse(lambda *p: forward(f, p, v), at)"),
    _composed("hvp_forward_over_reverse", "forward", "reverse", "forward(lambda *p: reverse(f, p), at, v)"),
    _composed(
        "hvp_reverse_over_reverse",
        "reverse",
        "reverse",
        "reverse(lambda *p: sum(total(g * d) for g, d in zip(reverse(f, p), v)), at)",
    ),
)
