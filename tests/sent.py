"""Functions and a case that tests send to worker processes from here."""

from typing import Any

import numpy as np

import adbench

SCALE = 3.0


def square(x: float, y: float) -> float:
    return SCALE * x * x * y


def powers(xp: Any, x: Any) -> Any:
    return xp.sum(x**3)


CUBES = adbench.Case(f=powers, inputs=lambda n, rng: {"x": rng.normal(size=n)}, wrt=("x",), sizes=(2, 4))


def made(scale: float) -> Any:
    """A function that no module has."""

    def f(x: float) -> float:
        return square(x, scale) * float(np.pi)

    return f
