"""What the right answer is, and the verdict. Knows no backend."""

from adbench.oracle.cache import cached, reference_key
from adbench.oracle.compute import reference
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.noise import Noise
from adbench.oracle.reference import Direction, Entry, Known, Leaf, Reference
from adbench.oracle.verdict import Verdict, judge

__all__ = [
    "Direction",
    "Entry",
    "EntryEvidence",
    "Known",
    "Leaf",
    "Noise",
    "Reference",
    "Verdict",
    "cached",
    "judge",
    "reference",
    "reference_key",
]
