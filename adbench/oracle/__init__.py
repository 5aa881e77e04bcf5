"""What the right answer is, and the verdict. Knows no backend."""

from adbench.oracle.array_valued import array_reference
from adbench.oracle.array_verdict import Nonzeros
from adbench.oracle.cache import cached, reference_key
from adbench.oracle.compute import reference
from adbench.oracle.engine_noise import Noise
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.reference import ArrayReference, Direction, Entry, Known, Leaf, Reference, from_plain
from adbench.oracle.verdict import Verdict, judge

__all__ = [
    "ArrayReference",
    "Direction",
    "Entry",
    "EntryEvidence",
    "Known",
    "Leaf",
    "Noise",
    "Nonzeros",
    "Reference",
    "Verdict",
    "array_reference",
    "cached",
    "from_plain",
    "judge",
    "reference",
    "reference_key",
]
