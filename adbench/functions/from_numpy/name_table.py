"""The table of functions by their full names, and those of numbers that the table of all libraries lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from adbench.functions.declared_constants import stopped
from adbench.functions.from_numpy.rebinding import GETVAL
from adbench.model.errors import Unsupported
from adbench.vocabulary import CANONICAL

Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {}
"""A function's full name, like ``numpy.linalg.solve`` -> function(xp, *args, **options)."""


def known_as(*names: str) -> Callable[[Function], Function]:
    """Register a function under these full names."""

    def enter(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def namesake(name: str) -> Function:
    """The namespace's function of this name."""
    return lambda xp, *args, **options: getattr(xp, name)(*args, **options)


def unsupported(what: str) -> Unsupported:
    """The error for an unsupported option."""
    return Unsupported(f"{what} has no translation to the oracle's numbers")


# Functions of numbers

ELEMENTWISE: Mapping[str, Function] = {
    "divmod": lambda _xp, x, y: (x // y, x % y),
    "modf": lambda xp, x: (x - xp.trunc(x), xp.trunc(x)),
}
"""numpy's functions of numbers that the table of functions lacks."""

WHOLE = ("ceil", "floor", "trunc")
"""Functions of `math` that give integers, by a method of the number."""


FUNCTIONS.update({f"math.{name}": namesake(name) for name in CANONICAL if hasattr(math, name) and name not in WHOLE})
FUNCTIONS.update({f"scipy.special.{name}": namesake(name) for name in CANONICAL})
FUNCTIONS["math.fsum"] = lambda xp, terms: xp.sum(xp.reals(list(terms)))
FUNCTIONS["math.prod"] = lambda xp, terms, start=1: xp.prod(xp.reals(list(terms))) * start
FUNCTIONS["adbench.tape.stop_gradient"] = lambda xp, x: stopped(xp.reals(x), "stop_gradient")
FUNCTIONS[GETVAL] = lambda xp, x: stopped(xp.reals(x), "getval")
FUNCTIONS["math.dist"] = lambda xp, p, q: xp.sqrt(xp.sum(xp.square(xp.reals(list(p)) - xp.reals(list(q)))))


@known_as("math.log")
def _math_log(xp: Any, x: Any, base: Any = None) -> Any:
    return xp.log(x) if base is None else xp.log(x) / xp.log(base)
