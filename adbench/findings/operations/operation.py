"""An operation: its mathematics once, on any namespace, and the functions of libraries that compute it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

from adbench.findings.operations import helpers
from adbench.vocabulary import FUNCTIONS

ARGUMENTS = "xyzab"
"""The names of the arguments in a library's own expression, in order."""

Kind = Literal["any", "increasing", "probabilities", "invertible", "symmetric", "definite", "triangular"]
"""The structure of an array: no condition; ascending numbers; positive numbers with sum 1; matrices."""

OF_JAX = {
    "torch.special.": "jax.scipy.special.",
    "torch.nn.functional.": "jax.nn.",
    "torch.": "jax.numpy.",
    "dim=": "axis=",
}
"""What torch calls its modules and axes -> jax's name for it, in the order of replacement."""

DIMENSIONS = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True)
class Domain:
    """The numbers of one argument: lower < x < upper, where the function has all its derivatives, or nearly everywhere.

    kind      the structure of an array
    special   further points to examine
    largest   the largest magnitude in a random program, of a domain with two ends; `adbench conform` goes beyond it
    active    whether the derivative with respect to this argument is taken
    """

    lower: float = -math.inf
    upper: float = math.inf
    kind: Kind = "any"
    special: tuple[float, ...] = ()
    largest: float = 1e3
    active: bool = True

    @property
    def moderate(self) -> Domain:
        """This domain; if it has two ends, its part within the largest magnitude."""
        if math.isinf(self.lower) or math.isinf(self.upper):
            return self
        return replace(self, lower=max(self.lower, -self.largest), upper=min(self.upper, self.largest))

    def contains(self, x: float) -> bool:
        """Whether the number is inside, or on the edge."""
        return self.lower <= x <= self.upper


REAL = Domain()
POSITIVE = Domain(lower=0.0)
UNIT = Domain(0.0, 1.0)
CONSTANT = Domain(active=False)


@dataclass(frozen=True)
class Operation:
    """An operation with its definition in `xp` and its names in libraries.

    definition   definition(xp, x, y, ...): the mathematics, for the oracle and for libraries without their own function
    text         the same as an expression of `xp`, x, y, z, a, b and functions of `helpers`
    signature    shapes as in numpy's generalised ufuncs: "(),()->()" broadcasts, "(n)->()" reduces the last axis,
                 "(n,n),(n)->(n)" takes a matrix and a vector; "(3)->(2)" needs exactly this length
    domain       one for each argument
    own          library -> its own function as an expression in x, y, z, a, b: "torch.nn.functional.gelu(x)"
    batch        whether further axes in front are allowed
    family       a heading on the page
    is_slope     whether it is the derivative, of a function of one number
    """

    name: str
    definition: Callable[..., Any]
    signature: str
    domain: tuple[Domain, ...]
    own: Mapping[str, str] = field(default_factory=dict, hash=False)
    batch: bool = True
    family: str = ""
    is_slope: bool = False
    text: str = ""

    def __post_init__(self) -> None:
        if len(self.domain) != len(self.inputs):
            raise ValueError(f"{self.name}: {len(self.domain)} domains for {self.signature}")

    @property
    def inputs(self) -> tuple[tuple[str, ...], ...]:
        """The dimensions of each argument: (("n", "n"), ("n",))."""
        return _dimensions(self.signature.split("->")[0])

    @property
    def output(self) -> tuple[str, ...]:
        """The dimensions of the result."""
        return _dimensions(self.signature.split("->")[1])[0]

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return len(self.inputs)

    @property
    def is_elementwise(self) -> bool:
        """Whether it maps numbers to a number, broadcast over arrays."""
        return self.signature.replace("()", "").strip(",") == "->"

    @property
    def is_of_matrices(self) -> bool:
        """Whether an argument is a matrix."""
        return any(len(dimensions) == 2 for dimensions in self.inputs)

    @property
    def slope(self) -> Operation | None:
        """The derivative as an operation, if this is a function of one number."""
        return replace(self, is_slope=True) if self.is_elementwise and self.arity == 1 else None

    def expression(self, library: str) -> str | None:
        """The library's own expression, or None."""
        return self.own.get(library)


def _dimensions(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(filter(None, (part.strip() for part in one.split(",")))) for one in DIMENSIONS.findall(text))


@dataclass(frozen=True)
class Family:
    """A heading with its operations."""

    title: str
    rows: list[Operation] = field(default_factory=list)

    def add(
        self,
        name: str,
        text: str,
        signature: str = "()->()",
        *domain: Domain,
        batch: bool = True,
        both: str = "",
        **own: str,
    ) -> None:
        """Add an operation; without domains, every argument may be any real number.

        text   the definition
        own    library -> its expression, in which jnp is jax.numpy; "" for none
        both   the expression of torch, if jax's differs in modules and axes alone
        """
        count = len(_dimensions(signature.split("->")[0]))
        if both:
            own = {"torch": both, "jax": reduce(lambda text, pair: text.replace(*pair), OF_JAX.items(), both), **own}
        own = {library: one.replace("jnp.", "jax.numpy.") for library, one in own.items() if one}
        arguments = ", ".join(["xp", *ARGUMENTS[:count]])
        definition = eval(f"lambda {arguments}: {text}", vars(helpers))  # noqa: S307 - our own table
        every = domain or (REAL,) * count
        self.rows.append(Operation(name, definition, signature, every, own, batch, self.title, text=text))

    def add_functions(self, names: str, *domain: Domain) -> None:
        """Add functions of numbers by their rows in the table of functions; ``domain`` replaces the one there."""
        for name in names.split():
            row = FUNCTIONS[name]
            every = domain or tuple(Domain(*interval) for interval in row.domain) or (REAL,) * row.arity
            arguments = ", ".join(ARGUMENTS[: row.arity])
            signature = ",".join(["()"] * row.arity) + "->()"
            torch, jax = (path and f"{path}({arguments})" for path in (row.torch, row.jax))
            self.add(name, f"xp.{name}({arguments})", signature, *every, torch=torch, jax=jax)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.rows)
