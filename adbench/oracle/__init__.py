"""The oracle: reference derivatives and verdicts. It knows no backend."""

from adbench.oracle.cache import cached, reference_key
from adbench.oracle.compute import declared, reference
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.operators import Nonzeros, cotangent, judge_entries, judge_operator
from adbench.oracle.reference import Direction, Entry, Known, Leaf, Reference, Row
from adbench.oracle.second_order import hessian_reference, hvp_reference
from adbench.oracle.subject import Effort, Subject
from adbench.oracle.verdict import Hidden, Verdict

__all__ = [
    "Direction",
    "Effort",
    "Entry",
    "EntryEvidence",
    "Hidden",
    "Known",
    "Leaf",
    "Nonzeros",
    "Reference",
    "Row",
    "Subject",
    "Verdict",
    "cached",
    "cotangent",
    "declared",
    "hessian_reference",
    "hvp_reference",
    "judge_entries",
    "judge_operator",
    "reference",
    "reference_key",
]
