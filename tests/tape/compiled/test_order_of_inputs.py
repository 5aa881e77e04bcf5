"""Results and vectors follow the order of `wrt`, not of the arguments."""

from typing import Any

import numpy as np
import pytest

import adbench.tape as tape

X, Y = np.array([0.5, 0.7]), np.array([1.5, 1.9])


def f(x: Any, y: Any) -> Any:
    return tape.sum(tape.sin(x) * y * y)


def parts(operator: str, wrt: tuple[int, int]) -> Any:
    vector = {"jvp": ((X, Y)[wrt[0]], (X, Y)[wrt[1]]), "hvp": ((X, Y)[wrt[0]], (X, Y)[wrt[1]]), "vjp": 2.0}
    more = (vector[operator],) if operator in vector else ()
    result = tape.compile(f, X, Y, *more, operator=operator, wrt=wrt)(X, Y, *more)
    return result if operator == "gradient" else result[1]


@pytest.mark.parametrize("operator", ["gradient", "value_and_gradient", "vjp", "hvp"])
def test_parts_follow_the_order_of_wrt(operator: str) -> None:
    in_order, turned = parts(operator, (0, 1)), parts(operator, (1, 0))
    np.testing.assert_allclose(turned[0], in_order[1])
    np.testing.assert_allclose(turned[1], in_order[0])


def test_the_vector_of_a_forward_sweep_follows_it_too() -> None:
    np.testing.assert_allclose(parts("jvp", (1, 0)), parts("jvp", (0, 1)))
