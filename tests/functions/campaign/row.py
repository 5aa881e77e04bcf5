"""A row of the campaign: a function, a point, its true derivative, and whether the library's derivative is right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

Truth = Callable[..., Any]
"""truth(*args at 50 digits) -> the derivatives, for each output in all inputs, as nested lists."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A function to check.

    f, at      the function of that library, and its arguments
    truth      written in closed form, or differences of a definition in mpmath (`truth.D`); never from `f`
    expected   whether the derivative that the library returns is right there, or wrong because of a planted rule or
               a fault of the library. "either": the library loses digits by its formula, and both words are fair.
               "elsewhere": right there, wrong at other points that the check is asked for
    digits     the digits to which a right derivative agrees with the truth in double precision
    options    of `adbench.check`
    """

    library: str
    name: str
    f: Callable[..., Any]
    at: tuple[Any, ...]
    truth: Truth
    expected: Literal["right", "wrong", "either", "elsewhere"]
    digits: float
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    module: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name} ({self.library})"

    @property
    def args(self) -> tuple[Any, ...]:
        """New arguments in the types that users of the library pass."""
        return tuple(_native(leaf, self.library) for leaf in self.at)


def right(
    library: str, name: str, f: Callable[..., Any], *at: Any, truth: Truth, digits: float = 9.0, **options: Any
) -> Row:
    return Row(library=library, name=name, f=f, at=at, truth=truth, expected="right", digits=digits, options=options)


def wrong(library: str, name: str, f: Callable[..., Any], *at: Any, truth: Truth, **options: Any) -> Row:
    return Row(library=library, name=name, f=f, at=at, truth=truth, expected="wrong", digits=9.0, options=options)


def either(library: str, name: str, f: Callable[..., Any], *at: Any, truth: Truth, **options: Any) -> Row:
    return Row(library=library, name=name, f=f, at=at, truth=truth, expected="either", digits=0.0, options=options)


def elsewhere(library: str, name: str, f: Callable[..., Any], *at: Any, truth: Truth, points: int = 5) -> Row:
    options = {"points": points}
    return Row(library=library, name=name, f=f, at=at, truth=truth, expected="elsewhere", digits=9.0, options=options)


def rows(kind: str, *found: Row) -> list[Row]:
    return [replace(row, kind=kind) for row in found]


def _native(leaf: Any, library: str) -> Any:
    """Lists are arrays; those of torch are tensors."""
    if isinstance(leaf, dict):
        return {name: _native(part, library) for name, part in leaf.items()}
    if isinstance(leaf, list | np.ndarray):
        array = np.array(leaf, dtype=np.float64)
        if library != "torch":
            return array
        import torch

        return torch.tensor(array)
    return leaf
