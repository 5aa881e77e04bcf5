"""Wrong rules for the reference engine, as data: the planted fault, its effect, and the operator that shows it.

kind      the sort of mistake: a row of the kill matrix
size      its relative error: a column; "gross" if it has none
case      a small function at points of full precision: its gradient has entries of about one, nothing cancels
operator  the operator that must catch it, or whose relation (`adbench.execution.operators.relations`) must break
expected  "wrong"; "verified" at the hard points, where double precision cannot show an error in the ninth digit
"""

from dataclasses import dataclass

from adbench import Case
from tests.oracle.planting import Plant

SIZES = {"1": 1.0, "1e-2": 1e-2, "1e-4": 1e-4, "1e-6": 1e-6, "1e-8": 1e-8, "1e-9": 1e-9}
GROSS = "gross"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    name: str
    kind: str
    plant: Plant
    case: Case
    size: str = GROSS
    operator: str = "gradient"
    relation: str = ""
    expected: str = "wrong"
    points: int = 1  # more than one if the mistake is in the state left by an earlier call
    survives: str = ""  # why it is not caught yet

    def __str__(self) -> str:
        through = f"by {self.relation}" if self.relation else f"in the {self.operator}"
        return f"{self.kind}: {self.name}{'' if self.size == GROSS else ' ' + self.size}, {through}"
