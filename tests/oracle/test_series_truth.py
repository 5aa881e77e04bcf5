"""Both orders of derivatives at difficult points: closed forms, and never a wrong proved number."""

import math
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy
from flint import arb, arb_series

from adbench.oracle.compute import reference
from adbench.oracle.leaves import Point
from adbench.oracle.reference import Known
from adbench.oracle.second_order import hessian_reference, hvp_reference
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, arithmetic
from adbench.oracle.series.evaluation import Curve, Evaluations, many_entries, one_entry, one_number
from adbench.oracle.series.namespace import lift_deadlines
from adbench.oracle.series.truth import Truth
from adbench.oracle.subject import Effort
from cases import saddle
from tests.oracle import expressions
from tests.oracle.scalars import subject_of
from tests.oracle.second_opinion import mp, reals
from tests.oracle.second_opinion import xp as second_opinion

Text = Callable[..., Any]
INF, PI = math.inf, math.pi
ANY = (-INF, INF)
UNKNOWN = None
"""Values that must be unknown to the oracle."""


@pytest.fixture(autouse=True)
def all_the_time_afterwards() -> Iterator[None]:
    yield
    lift_deadlines()


def truth(text: Text, *args: Any) -> tuple[Truth, Point]:
    point = Point(args, range(len(args)), [f"x{k}" for k in range(len(args))])
    return Truth(Evaluations(text, point, time.thread_time() + 60, one_number)), point


def told(known: Known) -> Any:
    """A number, the ends of an interval, or None."""
    if math.isnan(known.size):
        return None
    assert known.bar <= 1e-30 * max(1.0, known.size) or math.isinf(known.size)
    return known.lower if known.lower == known.upper else (known.lower, known.upper)


def both_orders(text: Text, x: Any) -> tuple[Any, Any, Any]:
    """Value, gradient and Hessian of a function of one array or number."""
    found, point = truth(text, x)
    moves = [one_entry(point, 0, index) for index in range(point.sizes[0])]
    gradient = [told(found.derivatives(Curve.straight(v))[0].known) for v in moves]
    hessian = [[told(found.derivatives(Curve.mixed(v, w))[0].known) for w in moves] for v in moves]
    return told(found.derivatives(Curve(()))[0].known), gradient, hessian


def near(found: Any, expected: Any) -> bool:
    """Equal up to the last bits; intervals by their ends; unknown only where expected."""
    if found is None or expected is None or isinstance(found, tuple) or isinstance(expected, tuple):
        return bool(found == expected)
    return bool(found == expected or abs(found - expected) <= 4e-16 * abs(expected))


def agree(name: str, found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected), (name, found)
        for pair in zip(found, expected, strict=True):
            agree(name, *pair)
    else:
        assert near(found, expected), (name, found, expected)


def masked(xp: Any, x: Any, value: Any) -> Any:
    return xp.where(xp.sum(x * x) == 0, 0.0, value)


def u(xp: Any, x: Any) -> Any:
    """Zero at 3, which no precision can decide."""
    return xp.exp(xp.log(x)) - 3


def bump(xp: Any, x: Any) -> Any:
    return xp.where(x == 0, 0.0, xp.exp(-1 / xp.where(x == 0, 1.0, x) ** 2))


X0 = np.zeros(2)
S, C = math.sin, math.cos
sech2 = [float(mp.sech(x) ** 2) for x in (20, 400)]
tanh2 = [float(-2 * mp.tanh(x) * mp.sech(x) ** 2) for x in (20, 400)]
LARGE = [mp.mpf(x) for x in (1e7, 1e15)]
GAUSS = [mp.exp(-(mp.mpf(x) ** 2)) for x in (1, 21)]


def diagonal(numbers: Any) -> list[list[float]]:
    return [[float(b) if i == j else 0.0 for j in range(len(numbers))] for i, b in enumerate(numbers)]


SMOOTH: dict[str, tuple[Text, Any, list[float], list[list[float]]]] = {
    "Σ sin x": (
        lambda xp, x: xp.sum(xp.sin(x)),
        np.array([1e7, 1e15]),
        [float(mp.cos(x)) for x in LARGE],
        diagonal([-mp.sin(x) for x in LARGE]),
    ),
    "Σ 1/x": (
        lambda xp, x: xp.sum(1 / x),
        np.array([1e-150, -1e-150]),
        [float(-1 / mp.mpf(1e-150) ** 2)] * 2,
        [[INF, 0.0], [0.0, -INF]],  # beyond the range of float64
    ),
    "Σ exp(-x²)": (
        lambda xp, x: xp.sum(xp.exp(-x * x)),
        np.array([1.0, 21.0]),
        [float(-2 * x * g) for x, g in zip((1, 21), GAUSS, strict=True)],
        diagonal([(4 * x * x - 2) * g for x, g in zip((1, 21), GAUSS, strict=True)]),
    ),
    "Σ tanh": (lambda xp, x: xp.sum(xp.tanh(x)), np.array([20.0, 400.0]), sech2, diagonal(tanh2)),
    "exp(x/2)": (lambda xp, x: xp.exp(x / 2), 5e-324, [0.5], [[0.25]]),
    "1e-310 sin": (lambda xp, x: 1e-310 * xp.sin(x), 0.3, [1e-310 * C(0.3)], [[-1e-310 * S(0.3)]]),
    "|x|³": (lambda xp, x: abs(x) ** 3, 0.0, [0.0], [[0.0]]),
    "|x|^3.3": (lambda xp, x: abs(x) ** 3.3, 0.0, [0.0], [[0.0]]),
    "relu³": (lambda xp, x: xp.maximum(x, 0.0) ** 3, 0.0, [0.0], [[0.0]]),
    "sqrt(t⁴)": (lambda xp, x: xp.sqrt(x**4), 0.0, [0.0], [[2.0]]),
    "norm²": (lambda xp, x: xp.linalg.vector_norm(x) ** 2, X0, [0.0, 0.0], diagonal([2, 2])),
    "matrix norm²": (
        lambda xp, x: xp.linalg.matrix_norm(xp.reshape(x, (1, 2))) ** 2,
        X0,
        [0.0, 0.0],
        diagonal([2, 2]),
    ),
    "hypot²": (lambda xp, x: xp.hypot(x[0], x[1]) ** 2, X0, [0.0, 0.0], diagonal([2, 2])),
    "std²": (lambda xp, x: xp.std(x) ** 2, X0 + 1.5, [0.0, 0.0], [[0.5, -0.5], [-0.5, 0.5]]),
    "Σ σ²": (
        lambda xp, x: xp.sum(xp.linalg.svdvals(xp.reshape(x, (2, 2))) ** 2),
        np.array([1.0, 0.0, 0.0, 1.0]),
        [2.0, 0.0, 0.0, 2.0],
        diagonal([2, 2, 2, 2]),
    ),
    "Σ σ² at 0": (
        lambda xp, x: xp.sum(xp.linalg.svdvals(xp.reshape(x, (2, 2))) ** 2),
        np.zeros(4),
        [0.0] * 4,
        diagonal([2, 2, 2, 2]),
    ),
    "exp x + exp y": (
        lambda xp, x: xp.exp(x[0]) + xp.exp(x[1]),
        np.array([0.0, 1.0]),
        [1.0, math.e],
        diagonal([1, math.e]),
    ),
    "exp(-1/x²) masked": (bump, 0.0, [0.0], [[0.0]]),
    "sinc": (lambda xp, x: xp.sinc(x), 0.0, [0.0], [[-PI * PI / 3]]),
    "product": (lambda xp, x: xp.prod(x), np.array([0.0, 0.0, 3.0]), [0.0] * 3, [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    "branch at a number": (lambda xp, x: xp.where(x == 2, 4.0, x * x), 2.0, [4.0], [[2.0]]),
    "isinf of what moves": (lambda xp, x: xp.where(xp.isinf(1 / x), 0.0, x), 0.0, [1.0], [[0.0]]),
    "apparent tie": (lambda xp, x: xp.maximum(xp.exp(xp.log(x)) - x, 0.0) + x, 3.0, [1.0], [[0.0]]),
    "derivative of sqrt(t⁴)": (lambda xp, x: xp.derivative(lambda y: xp.sqrt(y**4), x), 0.0, [2.0], [[0.0]]),
    "second derivative": (
        lambda xp, x: xp.derivative(lambda y: xp.derivative(lambda z: 1 / z, y), x),
        0.5,
        [-96.0],
        [[768.0]],
    ),
    "third derivative": (
        lambda xp, x: xp.derivative(lambda a: xp.derivative(lambda b: xp.derivative(lambda c: c**5, b), a), x),
        2.0,
        [240.0],
        [[120.0]],
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_closed_forms_of_both_orders(name: str) -> None:
    text, x, gradient, hessian = SMOOTH[name]
    _, first, second = both_orders(text, x)
    agree(name, first, gradient)
    agree(name, second, hessian)


EDGES: dict[str, tuple[Text, Any, list[Any], list[list[Any]]]] = {
    "abs": (lambda xp, x: abs(x), 0.0, [(-1.0, 1.0)], [[UNKNOWN]]),
    "norm": (lambda xp, x: xp.linalg.vector_norm(x), X0, [(-1.0, 1.0)] * 2, [[UNKNOWN] * 2] * 2),
    "max": (lambda xp, x: xp.max(x), X0, [(0.0, 1.0)] * 2, [[UNKNOWN] * 2] * 2),
    "x|x|": (lambda xp, x: x * abs(x), 0.0, [0.0], [[UNKNOWN]]),
    "huber": (lambda xp, x: xp.where(abs(x) <= 1, 0.5 * x * x, abs(x) - 0.5), 1.0, [1.0], [[UNKNOWN]]),
    "|x|^2.5": (lambda xp, x: abs(x) ** 2.5, 0.0, [0.0], [[UNKNOWN]]),
    "|x|^1.3": (lambda xp, x: abs(x) ** 1.3, 0.0, [0.0], [[UNKNOWN]]),
    "x**1.3": (lambda xp, x: x**1.3, 0.0, [0.0], [[UNKNOWN]]),
    "x sqrt x": (lambda xp, x: x * xp.sqrt(x), 0.0, [0.0], [[UNKNOWN]]),
    "acos²": (lambda xp, x: xp.acos(x) ** 2, 1.0, [-2.0], [[UNKNOWN]]),
    "|x||y|": (lambda xp, x: abs(x[0]) * abs(x[1]), X0, [0.0, 0.0], [[0.0, UNKNOWN], [UNKNOWN, 0.0]]),
    "x|y|": (lambda xp, x: x[0] * abs(x[1]), X0, [0.0, 0.0], [[0.0, UNKNOWN], [UNKNOWN, 0.0]]),
    "sqrt(xy)": (lambda xp, x: xp.sqrt(x[0] * x[1]), X0, [0.0, 0.0], [[0.0, UNKNOWN], [UNKNOWN, 0.0]]),
    "Peano": (
        lambda xp, x: masked(xp, x, x[0] * x[1] * (x[0] ** 2 - x[1] ** 2) / (x[0] ** 2 + x[1] ** 2)),
        X0,
        [0.0, 0.0],
        [[0.0, UNKNOWN], [UNKNOWN, 0.0]],
    ),
    "relu of nothing": (lambda xp, x: xp.maximum(u(xp, x), 0.0), 3.0, [(0.0, 1.0)], [[UNKNOWN]]),
    "two of them": (
        lambda xp, x: xp.maximum(u(xp, x), 0.0) + xp.maximum(-u(xp, x), 0.0),
        3.0,
        [(-1.0, 1.0)],
        [[UNKNOWN]],
    ),
    "largest σ": (
        lambda xp, x: xp.linalg.svdvals(xp.stack([xp.stack([xp.asarray(1.0), 0 * x]), xp.stack([0 * x, x])]))[0],
        1.0,
        [(0.0, 1.0)],
        [[UNKNOWN]],
    ),
    "nuclear norm": (
        lambda xp, x: xp.sum(xp.linalg.svdvals(x * xp.asarray([[1.0, 1.0], [1.0, 1.0]]))),
        0.0,
        [(-2.0, 2.0)],
        [[UNKNOWN]],
    ),
    "smallest λ": (
        lambda xp, x: xp.linalg.eigvalsh(x * xp.asarray([[0.0, 1.0], [1.0, 0.0]]))[0],
        0.0,
        [(-1.0, 1.0)],
        [[UNKNOWN]],
    ),
    "jump": (lambda xp, x: xp.where(x > 0, 1.0 + x, x), 0.0, [1.0], [[UNKNOWN]]),
    "jump at nothing": (lambda xp, x: xp.where(u(xp, x) > 0, 1.0 + x, x), 3.0, [(0.0, 1.0)], [[UNKNOWN]]),
    "floor": (lambda xp, x: xp.floor(x) * x, 2.0, [(1.0, 2.0)], [[UNKNOWN]]),
    "angle at 0": (lambda xp, x: xp.atan2(x[0], x[1]), X0, [0.0, 0.0], [[UNKNOWN] * 2] * 2),
    "derivative of |y|^3.5": (
        lambda xp, x: xp.derivative(lambda y: abs(y) ** 3.5, x),
        0.0,
        [0.0],
        [[UNKNOWN]],
    ),
    "derivative of relu²": (
        lambda xp, x: xp.derivative(lambda y: xp.maximum(y, 0.0) ** 2, x),
        0.0,
        [(0.0, 2.0)],
        [[UNKNOWN]],
    ),
}
LOST: dict[str, tuple[Text, float]] = {
    "exp(log x)": (lambda xp, x: xp.exp(xp.log(x)), 0.0),
    "1/(1/x)": (lambda xp, x: 1 / (1 / x), 0.0),
    "x (1/x)": (lambda xp, x: x * (1 / x), 0.0),
    "1/log exp(-1/x²)": (lambda xp, x: 1 / xp.log(xp.exp(-1 / x**2)), 0.0),
    "1/lgamma": (lambda xp, x: 1 / xp.lgamma(x), 0.0),
    "tanh(atanh x)": (lambda xp, x: xp.tanh(xp.atanh(x)), 1.0),
    "atan(1/x²)": (lambda xp, x: xp.atan(1 / x**2), 0.0),
    "logaddexp(log x, 0)": (lambda xp, x: xp.logaddexp(xp.log(x), 0.0), 0.0),
    "a comparison with what is lost": (lambda xp, x: xp.where(xp.exp(xp.log(x)) > -1, x, 0.0), 0.0),
    "1/x < 2/x": (lambda xp, x: xp.where(2 / x > 1 / x, x, 0.0), 0.0),
    "isfinite(x log x)": (lambda xp, x: xp.where(xp.isfinite(x * xp.log(x)), x * xp.log(x), 0.0), 0.0),
    "x log x masked": (lambda xp, x: xp.where(x > 0, x * xp.log(xp.where(x > 0, x, 1.0)), 0.0), 0.0),
    "a pole on one side": (lambda xp, x: xp.where(x > 0, 1 / x, x), 0.0),
    "x^0.3 on one side": (lambda xp, x: xp.where(x > 0, xp.where(x > 0, x, 1.0) ** 0.3, x), 0.0),
    "exp(-(1+x)^(1/x))": (lambda xp, x: xp.exp(-((1 + x) ** (1 / x))), 0.0),
    "max with what is lost": (lambda xp, x: xp.where(x > 0, xp.maximum(xp.exp(xp.log(x)), -1.0), 0.0), 0.0),
    "erfc(1/x²) > 0": (lambda xp, x: xp.where(xp.erfc(1 / x**2) > 0, 0.0, x), 0.0),
    "exp(-|asinh(1/x)|)": (lambda xp, x: xp.exp(-abs(xp.asinh(1 / x))), 0.0),
    "clipped lgamma(-1/x²)": (lambda xp, x: xp.clip(xp.lgamma(-1 / x**2), -1.0, 1.0) * x, 0.0),
    "sin x^0.3 > 0": (lambda xp, x: xp.where(xp.sin(x**0.3) > 0, 0.5 * x, x), 0.0),
    "derivative at a kink": (lambda xp, x: xp.derivative(lambda y: xp.maximum(x, y) ** 2, x), 1.0),
    "derivative of y log y": (
        lambda xp, x: xp.derivative(lambda y: xp.where(y > 0, y * xp.log(xp.where(y > 0, y, 1.0)), 0.0), x),
        0.0,
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_intervals_in_first_order_and_unknown_in_second(name: str) -> None:
    text, x, gradient, hessian = EDGES[name]
    _, first, second = both_orders(text, x)
    agree(name, first, gradient)
    agree(name, second, hessian)


@pytest.mark.parametrize("name", LOST)
def test_lost_series_are_reported_as_unknown(name: str) -> None:
    text, x = LOST[name]
    _, first, second = both_orders(text, x)
    assert first == [UNKNOWN], first
    assert second == [[UNKNOWN]], second


def test_a_root_of_a_series_with_a_long_gap_does_not_end_the_process() -> None:
    with arithmetic(Arithmetic(terms=128)):
        root = ball.sqrt(arb_series([1, *[0] * 63, 3, *[0] * 62, 1], 128))
        square = root * root
    assert [square[k].overlaps(arb({0: 1, 64: 3, 127: 1}.get(k, 0))) for k in range(128)] == [True] * 128
    assert max(float(root[k].rad()) for k in range(128)) < 1e-50


def test_a_division_by_what_only_a_guess_says_is_not_zero_is_unknown() -> None:
    with arithmetic(Arithmetic(guess=1)):
        undecided = arb_series([arb(0, 1e-60), 1], 3)
        assert ball.is_lost(ball.div(ball.ONE, undecided))


def test_a_number_that_jumps_just_after_the_point_has_no_derivative() -> None:
    found, _ = truth(lambda xp, x: xp.where((-1.0) ** x > 0, 1.0, 0.0), -0.0)
    assert told(found.derivatives(Curve(()))[0].known) == 1.0
    (one,) = found.derivatives(Curve.straight(many_entries([np.array(1.0)])))
    assert math.isnan(one.known.size)


def test_loops_of_inner_derivatives_agree_with_code_by_hand() -> None:
    def by_library(xp: Any, a: Any, b: Any, c: Any) -> Any:
        def slope(x: Any, y: Any) -> Any:
            return xp.derivative(lambda other: saddle.phi(xp, x, other, a, b, c), y)

        def total(x: Any) -> Any:
            y = xp.loop(lambda _, y: y + saddle.RATE * slope(x, y), b + 0 * x, 2)
            return saddle.phi(xp, x, y, a, b, c)

        return xp.sum(xp.loop(lambda _, x: x - saddle.RATE * xp.derivative(total, x), a + 0 * b, 1))

    def by_hand(xp: Any, a: Any, b: Any, c: Any) -> Any:
        def slope(x: Any, y: Any) -> Any:
            return c * x - (y - b)

        def total(x: Any) -> Any:
            y = xp.loop(lambda _, y: y + saddle.RATE * slope(x, y), b + 0 * x, 2)
            s = xp.loop(lambda _, s: s + saddle.RATE * (c - s), 0 * c, 2)
            return (x - a) + c * y + s * slope(x, y)

        return xp.sum(xp.loop(lambda _, x: x - saddle.RATE * total(x), a + 0 * b, 1))

    args = np.array([0.75, 1.25]), np.array([0.5, 1.5]), 0.625
    library, point = truth(by_library, *args)
    hand, _ = truth(by_hand, *args)
    moves = [one_entry(point, 0, 1), one_entry(point, 2, 0)]
    for curve in [*map(Curve.straight, moves), Curve.mixed(*moves), Curve.mixed(moves[1], moves[1])]:
        (a,), (b,) = library.derivatives(curve), hand.derivatives(curve)
        assert near(a.known.lower, b.known.lower), (a.known, b.known)
        assert a.known.kind == b.known.kind == "smooth"


SYMBOLS = sympy.symbols("x0:4")
UNARY = ("sin", "cos", "exp", "tanh", "atan", "square", "log1p", "sqrt")


def smooth(rng: np.random.Generator, depth: int) -> str:
    """A random smooth function of x0 … x3, as a string over `xp`."""
    if depth == 0:
        return f"x{rng.integers(4)}"
    if rng.uniform() < 0.5:
        name = UNARY[int(rng.integers(len(UNARY)))]
        inner = smooth(rng, depth - 1)
        return f"xp.{name}(1.5 + xp.sin({inner}))" if name in ("log1p", "sqrt") else f"xp.{name}({inner})"
    kind = ("({} + {})", "({} - {})", "({} * {})", "({} / (1.5 + xp.square({})))")[int(rng.integers(4))]
    return kind.format(smooth(rng, depth - 1), smooth(rng, max(0, depth - 2)))


def _of_four(body: str) -> Text:
    scope: dict[str, Any] = {}
    exec(f"def f(xp, x0, x1, x2, x3):\n    return {body}", scope)
    return scope["f"]  # type: ignore[no-any-return]


SYMPY = SimpleNamespace(
    three_halves=sympy.Rational(3, 2),
    **{name: getattr(sympy, name) for name in ("sin", "cos", "exp", "tanh", "atan", "sqrt")},
    square=lambda a: a * a,
    log1p=lambda a: sympy.log(1 + a),
)


@pytest.mark.parametrize("seed", range(12))
def test_hessians_of_random_smooth_functions_equal_sympys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body = smooth(rng, 4) + " * " + smooth(rng, 2)
    x = rng.normal(size=4) * 10.0 ** rng.uniform(-2, 0.5)
    f = _of_four(body)
    _, first, second = both_orders(lambda xp, x: f(xp, *x), x)
    symbolic = _of_four(body.replace("1.5", "xp.three_halves"))(SYMPY, *SYMBOLS)
    at = {s: sympy.Rational(*float(v).as_integer_ratio()) for s, v in zip(SYMBOLS, x, strict=True)}

    def exact(*by: Any) -> float:
        return float(sympy.N(sympy.diff(symbolic, *by).subs(at), 60))

    agree(body, first, [exact(a) for a in SYMBOLS])
    agree(body, second, [[exact(a, b) for b in SYMBOLS] for a in SYMBOLS])


def _each(function: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
    return lambda *a: np.frompyfunc(function, count, 1)(*map(reals, a))


OF_MPMATH = ("sin", "cos", "tanh", "atan", "exp", "log1p", "log", "sqrt", "expm1")
MPMATH = SimpleNamespace(
    **{name: _each(getattr(mp, name)) for name in OF_MPMATH},
    square=_each(lambda a: a * a),
    abs=_each(abs),
    atan2=_each(mp.atan2, 2),
    maximum=np.maximum,
    minimum=np.minimum,
    where=np.where,
    cumulative_sum=np.cumsum,
    flip=np.flip,
    concat=np.concatenate,
    reshape=np.reshape,
    sum=np.sum,
    mean=np.mean,
    max=np.max,
    prod=np.prod,
    linalg=second_opinion.linalg,
)


@pytest.mark.parametrize("seed", range(25))
def test_random_expressions_agree_with_differences_of_mpmath(seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    text = expressions.scalar(rng, 5)
    values = expressions.inputs(rng)
    f, unit = expressions.function(text), values.pop("E")
    args = tuple(values[name] for name in ("x", "y", "A", "s"))
    found, _ = truth(lambda xp, *a: f(xp, *a, unit), *args)
    v, w = ([rng.choice([-1.0, 0.5, 1.0], np.shape(a)) for a in args] for _ in range(2))
    first = found.derivatives(Curve.straight(many_entries(v)))[0].known
    second = found.derivatives(Curve.mixed(many_entries(v), many_entries(w)))[0].known
    step = mp.mpf(2) ** -120

    def at(*sides: int) -> Any:
        moved = [
            reals(a) + sum((side * step * reals(d[k]) for side, d in zip(sides, (v, w), strict=False)), mp.mpf(0))
            for k, a in enumerate(args)
        ]
        return np.sum(f(MPMATH, *moved, reals(unit)))

    slope = (at(1) - at(-1)) / (2 * step)
    bend = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * step * step)
    for known, expected in ((first, slope), (second, bend)):
        assert known.kind == "smooth", (text, known)
        assert abs(known.lower - expected) <= 1e-15 * abs(expected) + mp.mpf(10) ** -30, (text, known, expected)


def test_second_order_operators_have_these_numbers() -> None:
    subject = subject_of(lambda x: np.sum(x**3), (np.array([1.0, -2.0]),), (0,), text=lambda xp, x: xp.sum(x**3))
    whole = hessian_reference(subject, Effort())
    rows = [[told(entry.derivative) for entry in row.leaves[0].entries] for _, row in whole.outputs]
    assert rows == [[6.0, 0.0], [0.0, -12.0]]
    product = hvp_reference(subject, reference(subject).scalar, Effort()).scalar
    step = subject.point.steps(0, 0)[0]
    assert step is not None
    assert [told(e.derivative) for e in product.leaves[0].entries] == [6.0 * step[0], -12.0 * step[1]]


def test_a_row_with_an_unknown_number_is_not_proved() -> None:
    def is_proved(text: Any) -> bool:
        subject = subject_of(lambda x: text(np, x), (0.0,), (0,), text=text)
        return hvp_reference(subject, reference(subject).scalar, Effort()).scalar.proved

    assert is_proved(lambda xp, x: x * x)
    assert not is_proved(lambda xp, x: abs(x))
