"""Functions at points that are difficult in double precision, by kind of difficulty.

    FAMILIES[family][name] = (text, point)

text(xp, x) is a number; point(rng) the vector x. All functions are correct: a correct library computes them as well as
possible, and its verdict may be "right" or "inconclusive", but not "wrong".
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Generator = np.random.Generator
Text = Callable[[Any, Any], Any]
Maker = Callable[[Generator], Any]

N = 4


def spread(low: float, high: float) -> Maker:
    """Numbers of both signs, of sizes between these powers of ten."""
    return lambda rng: rng.choice([-1.0, 1.0], N) * 10.0 ** rng.uniform(low, high, N)


def positive(low: float, high: float) -> Maker:
    return lambda rng: 10.0 ** rng.uniform(low, high, N)


def around(centre: float, width: float = 1.0) -> Maker:
    return lambda rng: centre + width * rng.normal(size=N)


def at(*values: float) -> Maker:
    return lambda rng: np.array(values)


def hilbert(xp: Any, x: Any) -> Any:
    return xp.asarray([[1.0 / (i + j + 1.0) for j in range(N)] for i in range(N)]) + x[:, None] * x[None, :]


def nearly_rank_one(xp: Any, x: Any) -> Any:
    return x[:, None] * x[None, :] + 1e-7 * xp.asarray(np.eye(N))


def iterated(step: Callable[[Any, Any], Any], times: int) -> Text:
    def text(xp: Any, x: Any) -> Any:
        y = x
        for _ in range(times):
            y = step(xp, y)
        return xp.sum(y)

    return text


def horner(xp: Any, x: Any) -> Any:
    y = 0.0 * x
    for k in range(50):
        y = y * x + (-1.0) ** k * (k + 1.0)
    return xp.sum(y)


def recurrence(xp: Any, x: Any) -> Any:
    """Bessel's recurrence upwards: it amplifies every rounding."""
    before, now = x[0] * x[1], x[2] + x[3]
    for k in range(1, 25):
        before, now = now, 2.0 * k * now / (1.0 + x[0] * x[0]) - before
    return now


def softened(xp: Any, x: Any) -> Any:
    return xp.log(1.0 + xp.exp(-xp.abs(x))) + xp.maximum(x, 0.0 * x)


FAMILIES: Mapping[str, Mapping[str, tuple[Text, Maker]]] = {
    "offsets": {
        "shifted square": (lambda xp, x: xp.sum(((x + 1e8) - 1e8) ** 2), around(0)),
        "variance far from zero": (lambda xp, x: xp.sum((x - xp.mean(x)) ** 2), around(1e8)),
        "differences of neighbours": (lambda xp, x: xp.sum((x[1:] - x[:-1]) ** 2), around(1e8)),
        "sine of a shift": (lambda xp, x: xp.sum(xp.sin(x + 1e8)), around(0)),
        "value with an offset": (lambda xp, x: xp.sum(x**3) + 1e8, around(0)),
        "two-pass moments": (lambda xp, x: xp.sum(x * x) / N - (xp.sum(x) / N) ** 2, around(1e4)),
        "logarithm of a ratio": (lambda xp, x: xp.sum(xp.log(x[1:] / x[:-1])), around(1e8)),
    },
    "large scales": {
        "square roots": (lambda xp, x: xp.sum(xp.sqrt(x)), positive(140, 155)),
        "logarithms": (lambda xp, x: xp.sum(xp.log(x)), positive(140, 155)),
        "reciprocals": (lambda xp, x: xp.sum(1.0 / x), positive(140, 155)),
        "shares": (lambda xp, x: x[0] / xp.sum(x), positive(149, 151)),
        "scaled square": (lambda xp, x: xp.sum((1e-150 * x) ** 2), spread(149, 151)),
        "squares": (lambda xp, x: xp.sum(x * x), spread(140, 150)),
        "arc tangents": (lambda xp, x: xp.sum(xp.atan(x)), spread(140, 155)),
        "saturated": (lambda xp, x: xp.sum(xp.tanh(1e-150 * x)), spread(149, 151)),
    },
    "small scales": {
        "square roots": (lambda xp, x: xp.sum(xp.sqrt(x)), positive(-155, -140)),
        "logarithms": (lambda xp, x: xp.sum(xp.log(x)), positive(-155, -140)),
        "reciprocals": (lambda xp, x: xp.sum(1.0 / x), positive(-102, -90)),
        "shares": (lambda xp, x: x[0] / xp.sum(x), positive(-151, -149)),
        "squares": (lambda xp, x: xp.sum(x * x), spread(-150, -140)),
        "sines": (lambda xp, x: xp.sum(xp.sin(x)), spread(-155, -140)),
        "cosines": (lambda xp, x: xp.sum(xp.cos(x)), spread(-155, -140)),
        "exponentials": (lambda xp, x: xp.sum(xp.exp(x)), spread(-155, -140)),
        "products": (lambda xp, x: x[0] * x[1] + x[2] * x[3], spread(-155, -140)),
    },
    "subnormal numbers": {
        "sines": (lambda xp, x: xp.sum(xp.sin(x)), spread(-315, -309)),
        "tiny factor": (lambda xp, x: xp.sum(1e-310 * xp.sin(x)), around(0)),
        "exponentials": (lambda xp, x: xp.sum(xp.exp(0.5 * x)), at(5e-324, 1e-323, -5e-324, 1e-310)),
        "logarithms of small": (lambda xp, x: xp.sum(xp.log(1e-200 * x)), positive(-110, -105)),
        "underflowing square": (lambda xp, x: xp.sum(xp.sin(x) + x * x), spread(-200, -180)),
        "underflowing tail": (lambda xp, x: xp.sum(xp.exp(-x * x)), around(26.8, 0.2)),
    },
    "cancellation": {
        "exp x - 1 - x": (lambda xp, x: xp.sum(xp.exp(x) - 1.0 - x), spread(-9, -3)),
        "(1 - cos x) / x²": (lambda xp, x: xp.sum((1.0 - xp.cos(x)) / (x * x)), spread(-6, -2)),
        "x - sin x": (lambda xp, x: xp.sum(x - xp.sin(x)), spread(-6, -1)),
        "neighbouring roots": (lambda xp, x: xp.sum(xp.sqrt(x + 1.0) - xp.sqrt(x)), positive(8, 12)),
        "expanded power": (
            lambda xp, x: xp.sum(x**5 - 5.0 * x**4 + 10.0 * x**3 - 10.0 * x * x + 5.0 * x - 1.0),
            around(1, 1e-3),
        ),
        "quadratic root": (lambda xp, x: xp.sum(-x + xp.sqrt(x * x - 1.0)), positive(3, 7)),
        "difference of squares": (lambda xp, x: (x[0] * x[0] - x[1] * x[1]) / (x[0] - x[1]), around(1, 1e-7)),
        "difference of logarithms": (lambda xp, x: xp.sum(xp.log(x + 1.0) - xp.log(x)), positive(5, 12)),
        "sin² + cos² - 1 + x": (lambda xp, x: xp.sum(xp.sin(x) ** 2 + xp.cos(x) ** 2 - 1.0 + 1e-6 * x), around(0)),
    },
    "near-singular matrices": {
        "solve": (lambda xp, x: xp.sum(xp.linalg.solve(hilbert(xp, x), x)), spread(-3, 0)),
        "determinant": (lambda xp, x: xp.linalg.det(hilbert(xp, x)), spread(-2, 0)),
        "log determinant": (lambda xp, x: xp.linalg.slogdet(nearly_rank_one(xp, x))[1], around(1, 0.3)),
        "inverse": (lambda xp, x: xp.sum(xp.linalg.inv(nearly_rank_one(xp, x))), around(1, 0.3)),
        "two by two": (lambda xp, x: (x[2] * x[1] - x[3]) / (x[0] * x[1] - 1.0), at(1.0 + 1e-9, 1.0 - 1e-10, 0.3, 0.7)),
    },
    "long recurrences": {
        "logistic map": (iterated(lambda xp, y: 3.9 * y * (1.0 - y), 25), lambda rng: rng.uniform(0.1, 0.9, N)),
        "slow sine": (iterated(lambda xp, y: y - y * y * y / 6.0, 100), lambda rng: rng.uniform(0.3, 2.5, N)),
        "roots of roots": (iterated(lambda xp, y: xp.sqrt(1.0 + y), 60), positive(-2, 2)),
        "continued fraction": (iterated(lambda xp, y: 1.0 / (1.0 + y), 40), positive(-2, 2)),
        "horner": (horner, lambda rng: rng.uniform(0.3, 1.2, N)),
        "upward recurrence": (recurrence, lambda rng: rng.uniform(0.5, 2.0, N)),
        "Newton's root": (iterated(lambda xp, y: 0.5 * (y + 2.0 / y), 8), positive(-1, 1)),
        "running sums": (lambda xp, x: xp.sum(xp.cumulative_sum(xp.sin(x) * x) ** 2), around(0)),
    },
    "large arguments": {
        "sine at 1e7": (lambda xp, x: xp.sum(xp.sin(x)), spread(6, 8)),
        "sine at 1e15": (lambda xp, x: xp.sum(xp.sin(x)), spread(12, 16)),
        "sine at 1e22": (lambda xp, x: xp.sum(xp.sin(x)), spread(20, 23)),
        "fast cosine": (lambda xp, x: xp.sum(xp.cos(1e8 * x) * x), around(0)),
        "chirp": (lambda xp, x: xp.sum(xp.sin(x * x)), spread(3, 5)),
        "tangent": (lambda xp, x: xp.sum(xp.sin(x) / xp.cos(x)), spread(5, 8)),
        "sine of exponential": (lambda xp, x: xp.sum(xp.sin(xp.exp(x))), around(15)),
    },
    "power laws": {
        "x^2.5": (lambda xp, x: xp.sum(x**2.5), positive(-100, -90)),
        "x^-3": (lambda xp, x: xp.sum(x**-3), positive(-60, 60)),
        "x^0.5": (lambda xp, x: xp.sum(x**0.5), positive(-190, 200)),
        "x^20": (lambda xp, x: xp.sum(x**20), spread(-14, 14)),
        "|x|³": (lambda xp, x: xp.sum(xp.abs(x) ** 3), spread(-90, 90)),
        "|x|³ at zero": (lambda xp, x: xp.sum(xp.abs(x) ** 3), at(0.0, 1.0, -2.0, 1e-8)),
        "x^y": (lambda xp, x: xp.abs(x[0]) ** x[1] + xp.abs(x[2]) ** x[3], spread(-1, 1.5)),
        "x log x": (lambda xp, x: xp.sum(x * xp.log(x)), positive(-300, 100)),
        "ratio of powers": (lambda xp, x: xp.sum(x**3 / (1.0 + x**3)), positive(-30, 30)),
    },
    "saturation": {
        "tanh": (lambda xp, x: xp.sum(xp.tanh(x)), at(20.0, -19.0, 15.0, 3.0)),
        "bell": (lambda xp, x: xp.sum(xp.exp(-x * x)), at(1.0, 21.0, -5.0, 0.1)),
        "logistic": (lambda xp, x: xp.sum(1.0 / (1.0 + xp.exp(-x))), at(40.0, -40.0, 700.0, -700.0)),
        "softplus": (lambda xp, x: xp.sum(softened(xp, x)), at(40.0, -40.0, 300.0, 1e-3)),
        "tanh of large": (lambda xp, x: xp.sum(xp.tanh(x) * x), spread(0, 2.5)),
        "double exponential": (lambda xp, x: xp.sum(xp.exp(-xp.exp(x))), around(2, 2.0)),
        "flat at zero": (lambda xp, x: xp.sum(xp.exp(-1.0 / (x * x))), spread(-1.4, 0)),
    },
    "mixed sizes": {
        "log sum exp": (lambda xp, x: xp.log(xp.sum(xp.exp(x - xp.max(x)))) + xp.max(x), at(300.0, 299.0, -300.0, 0.0)),
        "entropy": (
            lambda xp, x: -xp.sum(xp.exp(x) / xp.sum(xp.exp(x)) * xp.log(xp.exp(x) / xp.sum(xp.exp(x)))),
            around(0, 8.0),
        ),
        "norm": (lambda xp, x: xp.sqrt(xp.sum(x * x)), spread(-60, 60)),
        "product": (lambda xp, x: xp.prod(x), spread(-70, 70)),
        "weighted squares": (lambda xp, x: xp.sum(x * x * xp.asarray([1e-20, 1.0, 1e20, 1e-8])), around(0)),
        "cosine similarity": (
            lambda xp, x: (x[0] * x[2] + x[1] * x[3]) / xp.sqrt((x[0] ** 2 + x[1] ** 2) * (x[2] ** 2 + x[3] ** 2)),
            spread(-20, 20),
        ),
        "sum of powers": (lambda xp, x: xp.sum(x) ** 3 / 1e9, spread(-9, 3)),
    },
}  # fmt: skip
