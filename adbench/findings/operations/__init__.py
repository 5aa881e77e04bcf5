"""The table of operations: `adbench conform` examines each, and `adbench fuzz` composes them to programs."""

from adbench.findings.operations import of_axes, of_numbers
from adbench.findings.operations.operation import Domain, Operation

__all__ = ["OPERATIONS", "Domain", "Operation"]

OPERATIONS: dict[str, Operation] = {
    operation.name: operation for part in (of_numbers, of_axes) for family in part.FAMILIES for operation in family
}
"""Name -> operation."""
