"""The types of 16 bits, and the functions of one number that are swept in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from adbench.findings.conform.places import Floats
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.operation import ARGUMENTS, Domain, Operation
from adbench.oracle.evidence import BRAIN, PRECISIONS, Precision

USUAL = (1.5, 0.75, 0.25)
"""Constants for arguments that are held, the first that lies in the domain; exact in both types."""


TYPES: Mapping[str, Precision] = {name: PRECISIONS[name] for name in ("bfloat16", "float16")}


def every_number(form: Precision) -> Floats:
    """All finite numbers of a type of 16 bits, ascending, with both zeros."""
    bits = np.arange(2**15, dtype=np.uint32)
    with np.errstate(all="ignore"):  # some of the bits are NaN
        typed: Any = (bits << 16).view(np.float32) if form is BRAIN else bits.astype(np.uint16).view(np.float16)
        numbers = typed.astype(np.float64)
    positive = numbers[np.isfinite(numbers)]
    return np.concatenate([-positive[::-1], positive])


@dataclass(frozen=True)
class OneArgument:
    """An elementwise operation as a function of one argument, with the others held.

    argument   its name, of the argument that runs through all inputs; held: the others with their numbers
    """

    name: str
    operation: Operation
    argument: str
    domain: Domain
    held: tuple[tuple[str, float], ...] = ()

    def ordered(self, x: Any, constant: Any) -> list[Any]:
        """The arguments in order; ``constant`` makes one from a number."""
        held = {name: constant(number) for name, number in self.held} | {self.argument: x}
        return [held[name] for name in ARGUMENTS[: self.operation.arity]]

    def as_operation(self) -> Operation:
        """The function as an operation of one argument, for proofs."""

        def definition(xp: Any, x: Any) -> Any:
            return self.operation.definition(xp, *self.ordered(x, float))

        return replace(self.operation, definition=definition, signature="()->()", domain=(self.domain,))


@cache
def functions() -> dict[str, OneArgument]:
    """Name -> function: each elementwise operation in each active argument, of three or more in the first."""
    rows = []
    for operation in OPERATIONS.values():
        if not operation.is_elementwise:
            continue
        active = [k for k, domain in enumerate(operation.domain) if domain.active]
        rows += [_held(operation, k) for k in (active if operation.arity < 3 else active[:1])]
    return {row.name: row for row in rows}


def _held(operation: Operation, k: int) -> OneArgument:
    """The operation as a function of argument k."""
    names = ARGUMENTS[: operation.arity]
    held = tuple((names[j], _usual(domain)) for j, domain in enumerate(operation.domain) if j != k)
    numbers = dict(held)
    shown = ", ".join(f"{numbers[name]:g}" if name in numbers else name for name in names)
    name = operation.name if operation.arity == 1 else f"{operation.name}({shown})"
    return OneArgument(name, operation, names[k], operation.domain[k], held)


def _usual(domain: Domain) -> float:
    choices: Sequence[float] = [x for x in domain.special if x] + list(USUAL)
    return next(x for x in choices if domain.contains(x))
