"""XAD's numbers and its tape."""

import gc
import math
from typing import Any

import pytest

pytest.importorskip("xad", reason="xad is not installed; pip install xad")
xad = __import__("backends.xad", fromlist=["prepare"])


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("count", range(3, 9))
def test_numbers_of_a_function_that_failed_do_not_act_on_the_next_tape(count: int, inside: bool) -> None:
    kept: list[Exception] = []

    def fails(x: Any) -> Any:
        y = 2.0 * x
        for _ in range(count - 2):
            y = y * x
        raise ValueError

    def fails_inside(x: Any) -> Any:
        try:
            fails(x)
        except ValueError as error:
            raise ValueError("another one") from error

    def g(*x: Any) -> Any:
        kept.clear()
        gc.collect()  # without care, y dies here, and takes the place of the last x
        return math.prod(x)

    try:
        xad.prepare("gradient", fails_inside if inside else fails, (1.0,), (0,))(1.0)
    except ValueError as error:
        kept.append(error)
    ones = (1.0,) * count
    assert xad.prepare("gradient", g, ones, tuple(range(count)))(*ones) == ones
