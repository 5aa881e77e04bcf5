"""Faults in the rules of a library: autograd with one function whose derivative is wrong, as a library has it.

A derivative is wrong everywhere or in one regime of its argument; a sum over broadcast axes is missing; a second use is
forgotten; a branch leaks. Second derivatives come from the wrong first ones, or are wrong alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defjvp, defvjp, primitive

from adbench import Case
from adbench.model.backend import Backend
from adbench.model.namespace import Namespace
from tests.backends.loaded import backend
from tests.oracle.campaign.cases import made, uniform
from tests.oracle.campaign.fault import Fault

ORDER = ("gradient", "value_and_gradient", "jvp", "hvp", "hessian")

VALUES: dict[str, Callable[[Any], Any]] = {
    "sin": anp.sin, "cos": anp.cos, "exp": anp.exp, "log": anp.log, "tanh": anp.tanh, "sqrt": anp.sqrt,
    "atan": anp.arctan, "expm1": anp.expm1, "log1p": anp.log1p, "square": anp.square, "sinh": anp.sinh,
}  # fmt: skip
SLOPES: dict[str, Callable[[Any], Any]] = {
    "sin": anp.cos,
    "cos": lambda x: -anp.sin(x),
    "exp": anp.exp,
    "log": lambda x: 1.0 / x,
    "tanh": lambda x: 1.0 - anp.tanh(x) ** 2,
    "sqrt": lambda x: 0.5 / anp.sqrt(x),
    "atan": lambda x: 1.0 / (1.0 + x * x),
    "expm1": anp.exp,
    "log1p": lambda x: 1.0 / (1.0 + x),
    "square": lambda x: 2.0 * x,
    "sinh": anp.cosh,
}
ANY_SIGN = ("sin", "cos", "exp", "tanh", "atan", "expm1", "square", "sinh")

REGIMES: dict[str, tuple[Callable[[Any], Any], tuple[float, ...]]] = {
    "everywhere": (lambda x: x == x, (0.5, 1.2, 0.8, 1.7)),
    "negative": (lambda x: x < 0, (0.5, -1.2, 0.8, -1.7)),
    "large": (lambda x: np.abs(x) > 4, (0.5, 1.2, 4.5, 1.7)),
    "small": (lambda x: np.abs(x) < 1e-4, (0.5, 1.2, 3e-5, 1.7)),
    "zero": (lambda x: x == 0, (0.5, 1.2, 0.0, 1.7)),
    "an integer": (lambda x: x == np.rint(x), (0.5, 2.0, 0.8, 1.7)),
    "above one": (lambda x: x > 1, (0.5, 1.2, 0.8, 1.7)),
}


def swapped(**functions: Any) -> Callable[[], Backend]:
    """autograd with these functions replaced."""

    def make() -> Backend:
        right = backend("autograd")
        xp = Namespace(right.xp, **{name: f for name, f in functions.items() if name != "linalg"})
        if "linalg" in functions:
            xp.linalg = Namespace(right.xp.linalg, **functions["linalg"])
        return replace(right, xp=xp)

    return make


def unary(value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Any:
    """A function of one array with this derivative; differentiable as often as the slope is."""

    @primitive
    def wrong(x: Any) -> Any:
        return value(x)

    defvjp(wrong, lambda ans, x: lambda g: g * slope(x))
    defjvp(wrong, lambda g, ans, x: g * slope(x))
    return wrong


@cache
def of(name: str, points: tuple[float, ...]) -> Case:
    """Σ w f(x) x at these points, moved slightly by the seed unless they are special points."""
    weights = np.array([1.3, 0.7, 1.1, 0.9])

    def place(rng: np.random.Generator) -> Any:
        x = np.array(points)
        ordinary = (x != np.rint(x)) & (np.abs(x) > 1e-3)
        return np.where(ordinary, x * (1 + 0.01 * rng.uniform(size=4)), x)

    return made(lambda xp, x: xp.sum(weights * getattr(xp, name)(x) * (1.0 + x)), x=place)


def partials() -> Iterator[Fault]:
    errors = {"factor 2": 1.0, "1e-3": 1e-3, "1e-6": 1e-6, "1e-8": 1e-8}
    for regime, (inside, points) in REGIMES.items():
        for label, error in errors.items():
            for name in VALUES:
                if name not in ANY_SIGN and regime in ("negative", "zero"):
                    continue

                def off(x: Any, name: str = name, inside: Any = inside, error: float = error) -> Any:
                    return SLOPES[name](x) * (1.0 + error * inside(constant(x)))

                invisible = name == "square" and regime in ("zero", "small")  # 2 · 0 is 0 for any factor
                if not invisible:
                    yield Fault(
                        kind=f"partial off by {label}, argument {regime}", name=name, case=of(name, points),
                        operators=ORDER, make=swapped(**{name: unary(VALUES[name], off)}),
                    )  # fmt: skip
    for name in VALUES:
        points = REGIMES["everywhere"][1]
        wrong: dict[str, Callable[[Any], Any]] = {
            "partial with its sign flipped": lambda x, name=name: -SLOPES[name](x),
            "partial zero": lambda x: 0.0 * x,
            "value instead of the partial": lambda x, name=name: VALUES[name](x),
            "partial of the inverse": lambda x, name=name: 1.0 / SLOPES[name](x),
            "partial at a rounded argument": lambda x, name=name: SLOPES[name](x + 1e-7),
        }
        for kind, slope in wrong.items():
            if name in ("exp",) and kind == "value instead of the partial":
                continue
            yield Fault(
                kind=kind, name=name, case=of(name, points), operators=ORDER,
                make=swapped(**{name: unary(VALUES[name], slope)}),
            )  # fmt: skip


def constant(x: Any) -> Any:
    """The plain number: derivatives stop here."""
    while hasattr(x, "_value"):
        x = x._value
    return x


def second_partials() -> Iterator[Fault]:
    """The first derivative is correct, the second is wrong."""
    for name in VALUES:
        points = REGIMES["everywhere"][1]
        curved: dict[str, Callable[[Any, Any], Any]] = {
            "second partial zero": lambda right, x: constant(right),
            "second partial off by 1e-3": lambda right, x: right + 1e-3 * (right - constant(right)),
            "second partial doubled": lambda right, x: 2.0 * right - constant(right),
            "second partial with its sign flipped": lambda right, x: 2.0 * constant(right) - right,
            "second partial off by 1e-8": lambda right, x: right + 1e-8 * (right - constant(right)),
        }
        for kind, bend in curved.items():

            def slope(x: Any, name: str = name, bend: Any = bend) -> Any:
                return bend(SLOPES[name](x), x)

            yield Fault(
                kind=kind, name=name, case=of(name, points), operators=("hvp", "hessian"),
                make=swapped(**{name: unary(VALUES[name], slope)}),
            )  # fmt: skip


def vjp_only(value: Callable[..., Any], *vjps: Any) -> Any:
    wrong = primitive(value)
    defvjp(wrong, *vjps)
    return wrong


def structure() -> Iterator[Fault]:
    """Wrong sums, axes, slices, orders, branches."""
    only = ("gradient", "value_and_gradient")
    weights = np.arange(1.0, 4.0)

    def fault(kind: str, name: str, case: Case, **functions: Any) -> Fault:
        return Fault(kind=kind, name=name, case=case, operators=only, make=swapped(**functions))

    row, column, square, vector = uniform(1, 3), uniform(3, 1), uniform(3, 3), uniform(6)
    spread = made(lambda xp, x, A: xp.sum(xp.broadcast_to(x, (3, 3)) * A), constants=("A",), x=row, A=square)
    tall = made(lambda xp, x, A: xp.sum(xp.broadcast_to(x, (3, 3)) * A), constants=("A",), x=column, A=square)
    for name, case, axis in (("row", spread, 0), ("column", tall, 1)):
        first = (slice(0, 1), slice(None)) if axis == 0 else (slice(None), slice(0, 1))
        broadcasts: dict[str, Callable[[Any], Any]] = {
            "broadcasting: the first instead of the sum": lambda g, first=first: g[first],
            "broadcasting: the mean instead of the sum": lambda g, axis=axis: anp.mean(g, axis=axis, keepdims=True),
            "broadcasting: sum over the other axis": lambda g, axis=axis: anp.sum(g, axis=1 - axis, keepdims=True).T,
        }
        for kind, back in broadcasts.items():
            wrong = vjp_only(lambda x, shape: np.broadcast_to(x, shape), lambda ans, x, s, b=back: lambda g: b(g))
            yield fault(kind, name, case, broadcast_to=wrong)

    summed = made(lambda xp, A: xp.sum(xp.sum(A * A, axis=0) * xp.asarray(weights)), A=square)
    plain = anp.sum

    def sum_with(back: Callable[[Any, Any], Any]) -> Any:
        wrong = vjp_only(lambda x: np.sum(x, axis=0), lambda ans, x: lambda g: back(g, x))
        return lambda x, axis=None: wrong(x) if axis == 0 else plain(x, axis=axis)

    yield fault("sum: adjoint along the wrong axis", "square", summed, sum=sum_with(lambda g, x: g[:, None] + 0 * x))
    yield fault("sum: adjoint divided", "square", summed, sum=sum_with(lambda g, x: g[None, :] / 3 + 0 * x))
    means = made(lambda xp, x: xp.mean(x * x) + xp.sum(x), x=vector)
    mean = vjp_only(lambda x: np.mean(x), lambda ans, x: lambda g: g * np.ones(6))
    yield fault("mean: not divided", "vector", means, mean=mean)
    mean = vjp_only(lambda x: np.mean(x), lambda ans, x: lambda g: g * np.ones(6) / 5)
    yield fault("mean: divided by n - 1", "vector", means, mean=mean)

    running = made(lambda xp, x: xp.sum(xp.cumulative_sum(x * x) * x), x=vector)
    backs: dict[str, Callable[[Any], Any]] = {
        "running sum: adjoint not reversed": lambda g: anp.cumsum(g),
        "running sum: off by one": lambda g: anp.concatenate([anp.cumsum(g[::-1])[::-1][1:], anp.zeros(1)]),
        "running sum: adjoint passed through": lambda g: g,
    }
    for kind, back in backs.items():
        wrong = vjp_only(lambda x: np.cumsum(x), lambda ans, x, b=back: lambda g: b(g))
        yield fault(kind, "vector", running, cumulative_sum=wrong, cumsum=wrong)

    product = made(lambda xp, A, B: xp.sum(xp.matmul(A, B) * A), A=square, B=square)
    products: dict[str, tuple[Any, Any]] = {
        "matrix product: left adjoint not transposed": (lambda g, A, B: g @ B, lambda g, A, B: A.T @ g),
        "matrix product: right adjoint not transposed": (lambda g, A, B: g @ B.T, lambda g, A, B: A @ g),
        "matrix product: adjoints exchanged": (lambda g, A, B: A.T @ g, lambda g, A, B: g @ B.T),
        "matrix product: one adjoint dropped": (lambda g, A, B: g @ B.T, lambda g, A, B: 0 * B),
    }
    for kind, (left, right) in products.items():
        wrong = vjp_only(
            lambda A, B: A @ B,
            lambda ans, A, B, back=left: lambda g: back(g, A, B),
            lambda ans, A, B, back=right: lambda g: back(g, A, B),
        )
        yield fault(kind, "square", product, matmul=wrong)

    def shifted(rng: np.random.Generator) -> Any:
        return rng.uniform(0.4, 1.6, (3, 3)) + 3 * np.eye(3)

    inverse = made(lambda xp, A: xp.sum(xp.linalg.inv(A) * xp.asarray(np.arange(9.0).reshape(3, 3))), A=shifted)
    inverses: dict[str, Callable[[Any, Any], Any]] = {
        "inverse: sign": lambda g, Y: Y.T @ g @ Y.T,
        "inverse: not transposed": lambda g, Y: -Y @ g @ Y,
        "inverse: half of the product": lambda g, Y: -Y.T @ g,
        "inverse: symmetric": lambda g, Y: -0.5 * (Y.T @ g @ Y.T + Y @ g.T @ Y),
    }
    for kind, of_inverse in inverses.items():
        wrong = vjp_only(lambda A: np.linalg.inv(A), lambda ans, A, b=of_inverse: lambda g: b(g, ans))
        yield fault(kind, "square", inverse, linalg={"inv": wrong})

    solved = made(lambda xp, A, b: xp.sum(xp.linalg.solve(A, b) * b), A=shifted, b=uniform(3))
    solves: dict[str, tuple[Any, Any]] = {
        "solve: matrix not transposed": (
            lambda g, A, b, x: -np.outer(np.linalg.solve(A, g), x), lambda g, A, b, x: np.linalg.solve(A, g),
        ),
        "solve: outer product transposed": (
            lambda g, A, b, x: -np.outer(x, np.linalg.solve(A.T, g)), lambda g, A, b, x: np.linalg.solve(A.T, g),
        ),
        "solve: sign of the matrix's part": (
            lambda g, A, b, x: np.outer(np.linalg.solve(A.T, g), x), lambda g, A, b, x: np.linalg.solve(A.T, g),
        ),
        "solve: the matrix is a constant": (lambda g, A, b, x: 0 * A, lambda g, A, b, x: np.linalg.solve(A.T, g)),
    }  # fmt: skip
    for kind, (of_matrix, of_vector) in solves.items():
        wrong = vjp_only(
            lambda A, b: np.linalg.solve(A, b),
            lambda x, A, b, back=of_matrix: lambda g: back(g, A, b, x),
            lambda x, A, b, back=of_vector: lambda g: back(g, A, b, x),
        )
        yield fault(kind, "three", solved, linalg={"solve": wrong})

    largest = made(lambda xp, x: xp.max(xp.abs(x)) * x[1] + x[0], x=lambda rng: np.array([1.0, -1.5, 1.5, 0.5]))
    wrong = vjp_only(lambda x: np.max(x), lambda ans, x: lambda g: g * (x == ans) * 1.0)
    yield fault("maximum: the whole share to each of a tie", "pair", largest, max=wrong)
    wrong = vjp_only(lambda x: np.max(x), lambda ans, x: lambda g: g * (np.arange(4) == 0))
    yield fault("maximum: always the first", "vector", largest, max=wrong)
    norm = made(lambda xp, x: xp.sqrt(xp.sum(xp.square(x))) * x[0], x=vector)
    wrong = vjp_only(lambda x: np.sum(np.square(x)), lambda ans, x: lambda g: g * x)
    yield fault("square: factor forgotten", "norm", norm, square=unary(anp.square, lambda x: x))
    order = made(
        lambda xp, x: xp.sum(xp.sort(x) * np.arange(6.0)),
        x=lambda rng: np.array([3.0, 1.0, 2.0, 6.0, 4.0, 5.0]) + rng.uniform(0, 0.1, 6),
    )
    wrong = vjp_only(lambda x: np.sort(x), lambda ans, x: lambda g: g)
    yield fault("sort: adjoint not put back", "vector", order, sort=wrong)
    wrong = vjp_only(lambda x: np.sort(x), lambda ans, x: lambda g: g[np.argsort(x)])
    yield fault("sort: permutation instead of its inverse", "vector", order, sort=wrong)
    turned = made(lambda xp, x: xp.sum(xp.flip(x) * np.arange(6.0) * x), x=vector)
    yield fault("flip: adjoint not flipped", "vector", turned, flip=vjp_only(np.flip, lambda ans, x: lambda g: g))
    rolled = made(lambda xp, x: xp.sum(xp.roll(x, 2) * np.arange(6.0) * x), x=vector)
    wrong = vjp_only(np.roll, lambda ans, x, k: lambda g: np.roll(g, k))
    yield fault("roll: adjoint rolled the same way", "vector", rolled, roll=wrong)
    chosen = made(lambda xp, x: xp.sum(xp.where(x > 1.0, xp.sin(x), x * x)), x=vector)

    def where_with(left: Callable[[Any, Any], Any], right: Callable[[Any, Any], Any]) -> Any:
        return vjp_only(
            lambda c, a, b: np.where(c, a, b),
            None,
            lambda ans, c, a, b: lambda g: left(g, c),
            lambda ans, c, a, b: lambda g: right(g, c),
        )

    yield fault("where: the branch not taken leaks", "vector", chosen, where=where_with(lambda g, c: g, lambda g, c: g))
    yield fault(
        "where: branches exchanged", "vector", chosen, where=where_with(lambda g, c: g * ~c, lambda g, c: g * c)
    )
    bent = made(lambda xp, x: xp.sum(xp.maximum(x, 1.0) * x), x=vector)
    wrong = vjp_only(lambda x, y: np.maximum(x, y), lambda ans, x, y: lambda g: g, None)
    yield fault("maximum of two: both branches pass", "vector", bent, maximum=wrong)
    stacked = made(lambda xp, x, y: xp.sum(xp.concat([x, y]) * np.arange(6.0)), x=uniform(3), y=uniform(3))
    joined = vjp_only(
        lambda x, y: np.concatenate([x, y]), lambda ans, x, y: lambda g: g[:3], lambda ans, x, y: lambda g: g[2:5]
    )
    yield fault("concat: split one place early", "two", stacked, concat=lambda parts: joined(*parts))
    reshaped = made(lambda xp, A: xp.sum(xp.reshape(A, (9,)) * np.arange(9.0)), A=square)
    wrong = vjp_only(
        lambda A, shape: np.reshape(A, shape), lambda ans, A, s: lambda g: np.reshape(g, (3, 3), order="F")
    )
    yield fault("reshape: adjoint in Fortran order", "square", reshaped, reshape=wrong)
    multiplied = made(lambda xp, x: xp.prod(x) + xp.sum(x), x=lambda rng: np.array([2.0, 0.0, 3.0, 1.5]))
    wrong = vjp_only(lambda x: np.prod(x), lambda ans, x: lambda g: 0.0 * x)
    yield fault("prod: zero at a zero", "vector", multiplied, prod=wrong)
    used = made(lambda xp, x: xp.sum(xp.sin(x) * xp.exp(x)) + xp.sum(xp.sin(x)), x=vector)
    yield fault("a second use forgotten", "sin", used, sin=once_only())
    angles = made(lambda xp, y, x: xp.sum(xp.atan2(y, x) * y), y=uniform(3), x=uniform(3))
    wrong = vjp_only(
        np.arctan2,
        lambda ans, y, x: lambda g: -g * y / (x * x + y * y),
        lambda ans, y, x: lambda g: g * x / (x * x + y * y),
    )
    yield fault("atan2: arguments exchanged", "vector", angles, atan2=wrong, arctan2=wrong)


def once_only() -> Any:
    """sin whose adjoint reaches its argument at the first of several uses only."""
    seen: list[Any] = []

    def back(ans: Any, x: Any) -> Callable[[Any], Any]:
        def adjoint(g: Any) -> Any:
            seen.append(1)
            return g * np.cos(x) * (len(seen) % 2)

        return adjoint

    return vjp_only(np.sin, back)


RULES = [*partials(), *second_partials(), *structure()]
