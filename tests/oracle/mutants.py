"""All planted faults."""

from collections.abc import Iterator

from tests.oracle import subjects as at
from tests.oracle.mutant import SIZES, Mutant
from tests.oracle.mutants_of_batches import BATCHES
from tests.oracle.mutants_of_calls import CALLS
from tests.oracle.mutants_of_relations import RELATIONS
from tests.oracle.mutants_of_rules import RULES
from tests.oracle.planting import in_reverse, scaled


def unresolvable() -> Iterator[Mutant]:
    """The same error at hard points: invisible in the ninth digit, found in the second."""
    for name, where in at.HARD.items():
        for label, expected in (("1e-9", "verified"), ("1e-2", "wrong")):
            kind = "beyond resolution" if expected == "verified" else "hard point"
            yield Mutant(
                name=name, kind=kind, size=label, case=where, expected=expected,
                plant=in_reverse("sin", scaled(SIZES[label])),
            )  # fmt: skip


MUTANTS: list[Mutant] = [*RULES, *CALLS, *RELATIONS, *BATCHES, *unresolvable()]
