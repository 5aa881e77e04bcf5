"""Thousands of correct gradients raise no alarm, and errors of 1e-9 in one entry do."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adbench.oracle.precise import METHOD
from tests.oracle.scalars import judge, reference

N = 9
Text = Callable[[Any, Any], Any]
Gradient = Callable[[Any], Any]


def matrix(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (3, 3)) + 3 * xp.eye(3)


def quadratic_gradient(x: Any) -> Any:
    inverse = np.linalg.inv(matrix(np, x))
    return -np.outer(inverse.T @ np.ones(3), inverse @ np.ones(3)).ravel()


def softmax(x: Any) -> Any:
    grown = np.exp(x - x.max())
    return grown / grown.sum()


def variance_gradient(x: Any) -> Any:
    return 2 * (x - x.mean()) / N


def product_gradient(x: Any) -> Any:
    return np.array([np.prod(np.delete(x, i)) for i in range(N)])


def rosenbrock_gradient(x: Any) -> Any:
    gradient = np.zeros(N)
    gap = x[1:] - x[:-1] ** 2
    gradient[1:] += 200 * gap
    gradient[:-1] -= 400 * gap * x[:-1] + 2 * (1 - x[:-1])
    return gradient


def running_gradient(x: Any) -> Any:
    return np.cumsum(2 * np.cumsum(x)[::-1])[::-1]


# Correct gradients like a library's: closed forms in double precision, with all their rounding.
RIGHT: dict[str, tuple[Text, Gradient]] = {
    "sines": (lambda xp, x: xp.sum(xp.sin(3 * x)), lambda x: 3 * np.cos(3 * x)),
    "offset by 1e8": (lambda xp, x: xp.sum(x**3) + 1e8, lambda x: 3 * x**2),
    "cancelling squares": (lambda xp, x: xp.sum((1e3 + x) ** 2 - 1e6 - 2e3 * x), lambda x: 2 * (1e3 + x) - 2e3),
    "log of small numbers": (lambda xp, x: xp.sum(xp.log(1e-8 * x * x)), lambda x: 2e-8 * x / (1e-8 * x * x)),
    "log sum exp": (lambda xp, x: xp.log(xp.sum(xp.exp(5 * x))), lambda x: 5 * softmax(5 * x)),
    "hyperbolic tangents": (lambda xp, x: xp.sum(xp.tanh(4 * x)), lambda x: 4 * (1 - np.tanh(4 * x) ** 2)),
    "logistic": (lambda xp, x: xp.sum(1 / (1 + xp.exp(-x))), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    "quotient rule": (
        lambda xp, x: xp.sum((3 * x) ** 2 / (1 + (3 * x) ** 2)),
        lambda x: 18 * x / (1 + 9 * x**2) - 9 * x**2 * 18 * x / (1 + 9 * x**2) ** 2,
    ),
    "norm": (lambda xp, x: xp.sqrt(xp.sum(x * x)), lambda x: x / np.sqrt(np.sum(x * x))),
    "variance": (lambda xp, x: xp.sum((x - xp.sum(x) / N) ** 2) / N, variance_gradient),
    "product": (lambda xp, x: xp.prod(x), product_gradient),
    "rosenbrock": (
        lambda xp, x: xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
        rosenbrock_gradient,
    ),
    "running sums": (lambda xp, x: xp.sum(xp.cumulative_sum(x) ** 2), running_gradient),
    "log determinant": (
        lambda xp, x: xp.linalg.slogdet(matrix(xp, x))[1],
        lambda x: np.linalg.inv(matrix(np, x)).T.ravel(),
    ),
    "inverse": (lambda xp, x: xp.sum(xp.linalg.inv(matrix(xp, x))), quadratic_gradient),
}


pytestmark = pytest.mark.xdist_group("ninth digit")  # counted together


@pytest.fixture(scope="module")
def tally() -> Counter[str]:
    return Counter()


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_correct_gradients_raise_no_alarm_and_ninth_digit_errors_do(name: str, tally: Counter[str]) -> None:
    text, gradient = RIGHT[name]
    for seed in range(40):
        rng = np.random.default_rng([seed, 17])
        x = rng.normal(size=N) * (10.0 ** rng.uniform(-2, 0.3, N) if seed % 2 else 1.0)
        known = reference(lambda x: text(np, x), (x,), (0,), text=text, seed=seed)
        assert known.method == METHOD, known.reason
        right = gradient(x)
        verdict = judge(text(np, x), (right,), known)
        assert verdict.word != "wrong", f"seed {seed}: {verdict.sentence}"
        tally["entries"] += N
        which = int(rng.integers(N))
        spoiled = right.copy()
        spoiled[which] *= 1 + 1e-9 * rng.choice([-1, 1])
        caught = judge(text(np, x), (spoiled,), known)
        tally[caught.word] += 1
        if caught.word != "wrong":
            assert caught.word in ("verified", "blind"), f"seed {seed}: {caught.sentence}"


@pytest.mark.slow
def test_the_run_was_large_and_nearly_all_errors_were_caught(tally: Counter[str]) -> None:
    if tally["entries"] < len(RIGHT) * 40 * N:
        pytest.skip("only part of the gradients ran: nothing to sum up")
    assert tally["entries"] >= 5_000
    assert tally["wrong"] / (tally["wrong"] + tally["verified"] + tally["blind"]) > 0.9
