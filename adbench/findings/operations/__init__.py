"""The table of operations: `adbench conform` examines each, and `adbench fuzz` composes them to programs."""

from adbench.findings.operations import of_axes, of_densities, of_layers, of_matrices, of_numbers
from adbench.findings.operations.operation import Domain, Operation

PARTS = (of_numbers, of_axes, of_matrices, of_layers, of_densities)
__all__ = ["OPERATIONS", "Domain", "Operation"]

OPERATIONS: dict[str, Operation] = {
    operation.name: operation for part in PARTS for family in part.FAMILIES for operation in family
}
"""Name -> operation."""
