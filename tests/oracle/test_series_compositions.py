"""Random compositions where functions end, jump or are infinite: results must agree with quotients."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from flint import arb

from adbench.oracle.leaves import Point
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, arithmetic
from adbench.oracle.series.evaluation import Curve, Evaluations, NotTold, one_entry, one_number
from adbench.oracle.series.functions import UNARY
from adbench.oracle.series.namespace import TooSlow, lift_deadlines, namespace_of
from adbench.oracle.series.number import Real
from adbench.oracle.series.truth import Truth

INNER: tuple[Callable[[Any, Any], Any], ...] = (
    lambda xp, x: x,
    lambda xp, x: x * x,
    lambda xp, x: abs(x),
    lambda xp, x: x * abs(x),
    lambda xp, x: 1 - x * x,
    lambda xp, x: 1 / x,
    lambda xp, x: 1 / (x * x),
    lambda xp, x: -1 / (x * x),
    lambda xp, x: xp.log(x),
    lambda xp, x: xp.sqrt(x),
    lambda xp, x: abs(x) ** 2.5,
    lambda xp, x: x**0.3,
)
OUTER: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda xp, y, x: y,
    lambda xp, y, x: x * y,
    lambda xp, y, x: 1 / y,
    lambda xp, y, x: xp.maximum(y, 0.5 * x),
    lambda xp, y, x: xp.where(y > 0, y, x),
    lambda xp, y, x: xp.where(xp.isfinite(y), y, x),
    lambda xp, y, x: xp.clip(y, -1.0, 1.0) * x,
    lambda xp, y, x: xp.exp(-abs(y)),
)
NAMES = sorted(set(UNARY) - {"zeta"})
H = arb(2) ** -160
JUMPS = 2.0**140
"""A quotient beyond this has a jump in it: there the derivative is that of either side."""


@pytest.fixture(autouse=True)
def all_the_time_afterwards() -> Iterator[None]:
    yield
    lift_deadlines()


def quotients(f: Callable[[Any, Any], Any], x: float) -> tuple[list[float], list[float]]:
    """Slopes from either side where the function is defined, and three second differences where it is defined
    everywhere."""

    def value(side: int) -> Any:
        try:
            found = f(namespace_of(Real), Real(arb(x) + side * H)).ball
        except ball.Insufficient:
            return None
        return None if isinstance(found, ball.Special) else ball.ball(found)

    with arithmetic(Arithmetic(1600)), np.errstate(all="ignore"):
        at = {side: value(side) for side in (-2, -1, 0, 1, 2)}
        if at[0] is None:
            return [], []
        slopes = [float((at[s] - at[0]) / (s * H)) for s in (1, -1) if at[s] is not None]
        slopes = [slope for slope in slopes if abs(slope) < JUMPS]
        if None in at.values():
            return slopes, []
        bends = [(at[k] - 2 * at[k - 1] + at[k - 2]) / (H * H) for k in (2, 0, 1)]
        return slopes, list(map(float, bends))


@pytest.mark.parametrize("seed", range(8))
def test_quotients_agree_with_their_inverse_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(80):
        inner, outer = INNER[rng.integers(len(INNER))], OUTER[rng.integers(len(OUTER))]
        name, x = NAMES[rng.integers(len(NAMES))], float(rng.integers(2))

        def f(xp: Any, x: Any, name: str = name, inner: Any = inner, outer: Any = outer) -> Any:
            return outer(xp, getattr(xp, name)(inner(xp, x)), x)

        point = Point((x,), (0,), ("x",))
        move = one_entry(point, 0, 0)
        try:
            truth = Truth(Evaluations(f, point, time.thread_time() + 60, one_number))
        except NotTold:
            continue
        first = truth.derivatives(Curve.straight(move))[0].known
        second = truth.derivatives(Curve.mixed(move, move))[0].known
        slopes, bends = quotients(f, x)
        what = INNER.index(inner), name, OUTER.index(outer), x
        if first.kind in ("smooth", "one-sided", "kink"):
            room = 1e-8 * (1 + first.size)
            assert all(first.lower - room < slope < first.upper + room for slope in slopes), (what, first, slopes)
            assert first.kind != "one-sided" or len(slopes) < 2, (what, first, slopes)
        if second.kind == "smooth":
            room = 1e-8 * (1 + second.size)
            assert all(abs(bend - second.lower) < room for bend in bends), (what, second, bends)


def test_an_endless_function_is_stopped() -> None:
    def endless(xp: Any, x: Any) -> Any:
        return xp.loop(lambda i, y: y * 0.5 + x, x, 10**9)

    point = Point((1.0,), (0,), ("x",))
    with pytest.raises(TooSlow):
        Truth(Evaluations(endless, point, time.thread_time() + 0.02, one_number))
    with pytest.raises(TooSlow):
        Truth(Evaluations(lambda xp, x: x, point, time.thread_time() - 1.0, one_number))
