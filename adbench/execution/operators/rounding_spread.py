"""How far rounding scatters the results of a foreign program, which need not compute as the text of the case does.

The noise of a reference is that of the case's operations in their order. A foreign program is equal in mathematics, but
may add in another order or use other formulas, so its errors are other ones. They jump between inputs that are close
to each other, and a mistake does not: so high differences of its results along a line have its noise alone.

Moré and Wild (2011), "Estimating computational noise".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.execution.operators.prepared_point import Known, Point, examined
from adbench.model import tree
from adbench.oracle.evidence import Spread

CALLS = 8
ORDERS = (3, 4, 5)  # of the differences
STEP = 2.0**-30
"""The relative distance of two inputs: far above rounding, and smooth functions are straight at a few of them."""


def spread_of(at: Point, operator: str, known: Known, run: Callable[[Point], Any]) -> Spread:
    """Place of each compared number -> the standard deviation of its rounding error.

    run   run(point) -> the program's result there, in numpy
    """
    found: list[dict[str, float]] = []
    for step in range(CALLS):
        rng = np.random.default_rng([at.seed, at.size, CALLS])  # the same direction at each step
        move = partial(_moved, rng, step * STEP)
        args = tuple(tree.map_leaves(move, arg) if k in at.wrt else arg for k, arg in enumerate(at.args))
        _, entries = examined(at, operator, run(replace(at, args=args)), known, None)
        found.append({item.place: item.got for item in entries})
    return {place: noise(np.array([numbers[place] for numbers in found])) for place in found[0]}


def noise(values: NDArray[np.float64]) -> float:
    """The standard deviation of the errors of a smooth function's values at equal distances."""
    squares = [
        np.square(np.diff(values, order)).mean() * math.factorial(order) ** 2 / math.factorial(2 * order)
        for order in ORDERS
    ]
    return float(np.sqrt(np.mean(squares)))


def _moved(rng: np.random.Generator, step: float, leaf: Any) -> Any:
    """The floats of a leaf, each changed by a random share of it and of the step."""
    if tree.is_static(leaf) or not tree.is_active(leaf):
        return leaf
    array = np.asarray(leaf, dtype=np.float64)
    moved = array * (1 + step * rng.uniform(0.5, 1.0, array.shape))
    return moved if isinstance(leaf, np.ndarray) else float(moved)
