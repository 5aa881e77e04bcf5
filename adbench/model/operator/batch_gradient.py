"""batch_gradient: ∇g at N points.

Each leaf of an active input has a leading axis of N, and so has each leaf of the result; inactive inputs are the same
at all points. Requested from backends with BATCHED; a job names N: batch_gradient_1000.
"""

from collections.abc import Iterable
from itertools import chain

from adbench.model.operator.definition import Definition, Operator

BATCH: Operator = "batch_gradient"
"""A request names it: it is not among a case's possible operators."""

BATCH_GRADIENT = Definition(name=BATCH, order=1, result="gradient", at_points=True, judged_as="gradient", code=6)

BATCH_POINTS = (1, 1_000, 100_000)
"""The numbers of points by default."""


def batch_points(name: str) -> int:
    """The N of "batch_gradient_N"; 0 for any other name."""
    operator, _, points = name.rpartition("_")
    return int(points) if operator == BATCH and points.isdecimal() and points[0] != "0" else 0


def with_points(operators: Iterable[str]) -> tuple[str, ...]:
    """The operators of jobs: `batch_gradient` becomes one for each default number of points."""
    named = [[f"{BATCH}_{n}" for n in BATCH_POINTS] if name == BATCH else [name] for name in operators]
    return tuple(chain.from_iterable(named))
