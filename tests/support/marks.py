"""Parameters of which only some are tested each time."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], *, fast: Collection[Any]) -> list[Any]:
    """All values as parameters, marked `slow` but for those in `fast`, which stand for the others."""
    found = list(values)
    assert set(fast) <= set(found), f"not among the parameters: {set(fast) - set(found)}"
    return [pytest.param(value, marks=() if value in fast else pytest.mark.slow) for value in found]


def one_in(n: int, values: Iterable[Any]) -> list[Any]:
    """All values, or `pytest.param`s, as parameters: the first is fast and each `n`th after it, the others slow."""
    found = [value if isinstance(value, type(pytest.param())) else pytest.param(value) for value in values]
    return [
        one if i % n == 0 else pytest.param(*one.values, id=one.id, marks=(*one.marks, pytest.mark.slow))
        for i, one in enumerate(found)
    ]
