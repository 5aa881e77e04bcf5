"""`xp`: the names that a case may call, for every library.

Cases use the names of the Python array API standard (2024.12), a few special functions and `loop`. The table below maps
standard names to numpy's older names for libraries that lack the former.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import numpy as np

from adbench.model.errors import MissingFunction

State = TypeVar("State")


@cache
def aliases() -> Mapping[str, str]:
    """Standard name -> numpy's older name, of functions of numbers and of arrays."""
    from adbench.vocabulary import FUNCTIONS  # not before a library's function is looked up

    return {
        **{name: row.numpy for name, row in FUNCTIONS.items() if row.numpy},
        "concat": "concatenate",
        "cumulative_prod": "cumprod",
        "cumulative_sum": "cumsum",
        "permute_dims": "transpose",
    }


def loop(step: Callable[[int, State], State], state: State, n: int) -> State:
    """state ← step(i, state) for i = 0 … n-1, as a plain Python loop.

    Compiling libraries have their own, so that the benchmark does not time an unrolled program.
    """
    for i in range(n):
        state = step(i, state)
    return state


class Namespace:
    """A library's functions under array-API names.

    Namespace(module, loop=..., **more)   `more` adds or replaces functions by name; other names are looked up in
                                          `module`: first the standard name, then the older numpy name

    With `prefer_older`, the older name is tried first, for libraries that pass on all names of numpy but have
    derivatives only under the older ones.

    `xp.linalg` is the same for `module.linalg`; replace single functions in it by `linalg={"slogdet": ...}`.
    A missing name raises MissingFunction, which the harness records as "unsupported" with that reason.
    """

    def __init__(
        self, module: Any, *, linalg: Mapping[str, Any] | None = None, prefer_older: bool = False, **more: Any
    ) -> None:
        self._module = module
        self._prefer_older = prefer_older
        self._title = getattr(module, "__name__", type(module).__name__)
        self.__dict__.update({"loop": loop, **more})
        if not self._title.endswith("linalg"):
            self.linalg = Namespace(_Linalg(module), **(linalg or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and inspect look these up; they are not library functions
            raise AttributeError(name)
        older = aliases().get(name, name)
        for candidate in (older, name) if self._prefer_older else (name, older):
            attribute = getattr(self._module, candidate, None)
            if attribute is not None:
                setattr(self, name, attribute)  # later look-ups are plain attributes and cost no measured time
                return attribute
        raise MissingFunction(f"{self._title} has no {name}")


class _Linalg:
    """`module.linalg`, with the few functions that numpy-like libraries have elsewhere."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.__name__ = f"{getattr(module, '__name__', type(module).__name__)}.linalg"

    def __getattr__(self, name: str) -> Any:
        inside = getattr(getattr(self._module, "linalg", None), name, None)
        return inside if inside is not None else getattr(self._module, name, None)


_STEP = 1e-30
"""Of the complex step, which has no rounding error."""


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    """∇g at x for a g that takes complex numbers, by the complex step: Im g(x + i h e) / h."""
    x = np.asarray(x)
    slopes = np.empty(x.shape)
    for place in np.ndindex(x.shape):
        there = x.astype(np.complex128)
        there[place] += 1j * _STEP
        slopes[place] = np.imag(g(there)) / _STEP
    return slopes if slopes.ndim else slopes[()]


class _Numpy:
    """numpy, then scipy's special functions if scipy is installed."""

    __name__ = "numpy"

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name, None)
        if function is None and importlib.util.find_spec("scipy"):
            from adbench.vocabulary import FUNCTIONS

            row = FUNCTIONS.get(name)
            function = getattr(importlib.import_module("scipy.special"), (row and row.scipy) or name, None)
        if function is None:
            raise AttributeError(name)
        return function


PLAIN = Namespace(
    _Numpy(),
    derivative=derivative,
    log1p_exp=lambda x: np.logaddexp(0.0, x),
    linalg={
        "expm": lambda x: importlib.import_module("scipy.linalg").expm(x),
        "lstsq": lambda a, b: np.linalg.lstsq(a, b)[0],
    },
)
"""numpy under the names of `xp`, with scipy's functions where it is installed: for values without derivatives."""
