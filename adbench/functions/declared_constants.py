"""Numbers that a function declares constant: `detach`, `no_grad`, `.item()`, `padding_idx`, `stop_gradient`.

A library leaves them out of the derivative, although the value depends on them. The translations ask `holds` where one
of them meets a number that depends on the inputs. Held, it is a constant, as in the library; otherwise it stays active,
which gives the derivative of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adbench.oracle.enclosures.recorded import EnclosedArray
from adbench.oracle.evidence import within
from adbench.oracle.series import ball
from adbench.oracle.series.number import ComplexNumber


@dataclass(frozen=True)
class Declared:
    """The declarations that a function met; place: `UserFunction.place`."""

    place: Callable[[], str]
    held: bool
    met: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(list(self.met)[:MOST_SHOWN])


OF_A_DRAW = "jax.random.gamma, whose derivative is that of its distribution; pass the numbers drawn as an argument"
"""Marsaglia and Tsang's rejection draws the number; jax keeps its probability fixed, as the derivatives of beta,
dirichlet, chisquare and t do, which draw gamma numbers. Differences of the values say nothing about them."""

OF_A_SOLVER = "an iterative linear solver, whose derivative is that of the solution; give it a smaller tolerance"
"""Differences of its values are those of the stopped iteration."""

MOST_SHOWN = 3

PADDING = "padding_idx"
"""The row of an embedding that torch declares constant."""

DRAWN = "rsample"
"""Random numbers of a distribution whose derivative is that of a quantile, which the values at one seed do not show."""

_DECLARED: ContextVar[Declared | None] = ContextVar("declared", default=None)


def declaring(place: Callable[[], str], *, held: bool) -> AbstractContextManager[Declared]:
    """Hold declared constants in the block, or not; the result collects them."""
    return within(_DECLARED, Declared(place, held))


def holds(spelling: str) -> bool:
    """Whether a number that depends on the inputs is a constant here, by a declaration of this spelling."""
    declared = _DECLARED.get()
    if declared is None:
        return True
    declared.met.setdefault(f"{declared.place() or 'a library'} ({spelling})")
    return declared.held


def are_held() -> bool:
    """Whether declared constants are constants now."""
    declared = _DECLARED.get()
    return declared is None or declared.held


def met() -> str:
    """The declarations that the function has met, or ""."""
    declared = _DECLARED.get()
    return ", ".join(declared.met) if declared else ""


def moves(numbers: Any) -> bool:
    """Whether any of these numbers is a series: whether it depends on the inputs."""
    if isinstance(numbers, EnclosedArray):
        return numbers.moves
    return any(
        ball.is_series(part.ball)
        for number in np.asarray(numbers).flat
        for part in ((number.real, number.imag) if isinstance(number, ComplexNumber) else (number,))
    )


def constant(number: Any) -> Any:
    """A number of the oracle, or an array of them, without its motion."""
    if isinstance(number, EnclosedArray):
        return number.constant()
    if isinstance(number, np.ndarray):
        return _CONSTANTS(number)
    if isinstance(number, ComplexNumber):
        return ComplexNumber(constant(number.real), constant(number.imag))
    value = number.ball
    if isinstance(value, ball.Special):
        return number if ball.is_lost(value) else type(number)(ball.Special(value.value))
    return type(number)(ball.start(value)) if ball.is_series(value) else number


_CONSTANTS = np.frompyfunc(constant, 1, 1)


def stops(numbers: Any, spelling: str) -> bool:
    """Whether this declaration makes numbers constant that depend on the inputs."""
    return moves(numbers) and holds(spelling)


def stopped(numbers: Any, spelling: str) -> Any:
    """A number or an array as a constant, if it is declared to be one."""
    return constant(numbers) if stops(numbers, spelling) else numbers
