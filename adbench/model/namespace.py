"""`xp`: the names that a case may call, whatever library is behind them.

Cases are written in the names of the Python array API standard (2024.12), plus a few special functions and `loop`.
Libraries that follow numpy's older names get the standard's through the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from adbench.model.errors import MissingFunction

State = TypeVar("State")

# standard name -> what older numpy-like libraries call it, first found wins
ALIASES: Mapping[str, tuple[str, ...]] = {
    "acos": ("arccos",),
    "acosh": ("arccosh",),
    "asin": ("arcsin",),
    "asinh": ("arcsinh",),
    "atan": ("arctan",),
    "atan2": ("arctan2",),
    "atanh": ("arctanh",),
    "concat": ("concatenate",),
    "cumulative_prod": ("cumprod",),
    "cumulative_sum": ("cumsum",),
    "matrix_transpose": (),
    "permute_dims": ("transpose",),
    "pow": ("power",),
}


def loop(step: Callable[[int, State], State], state: State, n: int) -> State:
    """state ← step(i, state) for i = 0 … n-1, as a plain Python loop.

    Libraries that compile offer their own, so that an unrolled program is not published as a compiler's speed.
    """
    for i in range(n):
        state = step(i, state)
    return state


class Namespace:
    """A library's functions under array-API names.

    Namespace(module, loop=..., **more)   `more` adds or replaces functions by name; everything else is looked up in
    `module`
                                          under the standard's name, then under its older numpy name.

    With `prefer_older`, the older name is tried first: for a library that passes every name of numpy on but knows
    derivatives under the older ones only.

    `xp.linalg` is the same for `module.linalg`; replace single functions in it by `linalg={"slogdet": ...}`.
    A name that the library lacks raises MissingFunction, which the harness records as "unsupported" with that reason.
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
        if name.startswith("__"):  # copy, pickle and inspect ask for these; they are not functions of the library
            raise AttributeError(name)
        older = ALIASES.get(name, ())
        for candidate in (*older, name) if self._prefer_older else (name, *older):
            found = getattr(self._module, candidate, None)
            if found is not None:
                setattr(self, name, found)  # the next look-up is a plain attribute: no cost inside the clock
                return found
        raise MissingFunction(f"{self._title} has no {name}")


class _Linalg:
    """`module.linalg`, with the few functions that numpy-like libraries keep outside it."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.__name__ = f"{getattr(module, '__name__', type(module).__name__)}.linalg"

    def __getattr__(self, name: str) -> Any:
        inside = getattr(getattr(self._module, "linalg", None), name, None)
        return inside if inside is not None else getattr(self._module, name, None)
