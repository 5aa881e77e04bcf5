"""A row of the table of functions, and the rules that a table keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

Interval = tuple[float, float]
Noise = Literal["library", "rounded", "squares"]
"""The rounding errors of usual implementations: a few units in the last place; half a unit, as IEEE 754 requires; or a
few units, and the square of 1 + x² in the denominator of the second derivative."""


def words(text: str) -> frozenset[str]:
    """The words of a string: a set of names."""
    return frozenset(text.split())


class Function(NamedTuple):
    """A function of numbers, which libraries apply to arrays element by element. A tuple, because the table is
    imported by every process.

    name         in the array API, or else in scipy.special
    aliases      all other names of this function, in any library, in words
    arity        the number of arguments without a default
    numpy        its name in a numpy without the array API's names: "arctan" for "atan"
    scipy        its name in scipy.special, if another
    torch, jax   the path of the public function that `adbench conform` examines
    domain       for each argument the open interval where all derivatives exist; empty: all numbers
    singular     numbers at which the derivative with respect to the first argument is infinite
    limits       the values at -∞ and ∞, for a function of one number that the oracle has a series for
    exponential  whether it approaches finite limits there faster than any power, and infinite ones as fast as a power
    noise        the rounding errors of usual implementations
    analytic     whether numpy continues it to complex numbers
    definition   definition(xp, x, …) by other functions, for every translation; None: the oracle has a series
    """

    name: str
    aliases: str = ""
    arity: int = 1
    numpy: str = ""
    scipy: str = ""
    torch: str = ""
    jax: str = ""
    domain: tuple[Interval, ...] = ()
    singular: tuple[float, ...] = ()
    limits: tuple[float, float] | None = None
    exponential: bool = False
    noise: Noise = "library"
    analytic: bool = False
    definition: Callable[..., Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names, its own first."""
        return tuple(dict.fromkeys(filter(None, (self.name, self.numpy, self.scipy, *self.aliases.split()))))

    @property
    def is_examined(self) -> bool:
        """Whether `adbench conform` examines it: a function of one number with a path in a library."""
        return self.arity == 1 and bool(self.torch or self.jax)


def table(rows: Iterable[Function]) -> Mapping[str, Function]:
    """Name -> function. Raises ValueError if two functions have one name, or if a row contradicts itself."""
    owners: dict[str, str] = {}
    functions: dict[str, Function] = {}
    for row in rows:
        for name in row.names:
            if name in owners:
                raise ValueError(f"two functions have the name {name}: {owners[name]} and {row.name}")
            owners[name] = row.name
        if row.domain and len(row.domain) != row.arity:
            raise ValueError(f"{row.name} has {row.arity} arguments, but {len(row.domain)} domains")
        if row.limits is not None and row.arity != 1:
            raise ValueError(f"{row.name} has limits, but {row.arity} arguments")
        lower, upper = row.domain[0] if row.domain else (-math.inf, math.inf)
        if outside := [x for x in row.singular if not lower <= x <= upper]:
            raise ValueError(f"{row.name} is singular at {outside[0]}, outside of its domain")
        functions[row.name] = row
    return functions
