"""Parameters of which only some are tested each time."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], *, fast: Collection[Any]) -> list[Any]:
    """All values as parameters, marked `slow` but for those in `fast`, which stand for the others."""
    found = list(values)
    assert set(fast) <= set(found), f"not among the parameters: {set(fast) - set(found)}"
    return [pytest.param(value, marks=() if value in fast else pytest.mark.slow) for value in found]
