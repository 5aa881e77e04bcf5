"""How fast the reference engine is: ratios to plain Python, autograd and torch, taken in one run.

    python tests/benchmarks/engine.py            prints the table
    pytest tests/benchmarks/engine.py            checks that the ratios hold, with room for a busy machine

Absolute times drift with the machine; ratios hold. All contenders of a row are timed in turns, and the best of many
short rounds counts: a pause of the machine then hits none of them, or all.

seconds_per_call   of one value and gradient, preparation included: the eager engines record anew in every call
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from adbench import tape

autograd = pytest.importorskip("autograd")
anp = pytest.importorskip("autograd.numpy")


@dataclass(frozen=True)
class Row:
    """One comparison: `ratio` is other / ours, or ours / plain where `at_most` is the limit."""

    what: str
    ours: float
    other: float
    ratio: float
    limit: str

    def __str__(self) -> str:
        return f"{self.what:58} {self.ours * 1e6:12.1f} {self.other * 1e6:12.1f} {self.ratio:8.1f}   {self.limit}"


def seconds_per_call(*calls: Callable[[], Any], seconds: float = 1.0) -> list[float]:
    """The best time of each call over many short rounds, taken in turns."""
    best = [float("inf")] * len(calls)
    repeats = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        repeats.append(max(1, int(2e-3 / (time.perf_counter() - start))))
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / repeats[i])
    return best


def recurrence(x: Any) -> Any:
    """400 scalar operations: s = s + (x² + 1) / s, a hundred times."""
    s = x
    for _ in range(100):
        s = s + (x * x + 1) / s
    return s


def scalar_rows() -> list[Row]:
    """The scalar recurrence against plain Python (value only), autograd and, where installed, torch."""
    calls = [
        lambda: recurrence(7.0),
        lambda: tape.gradient(recurrence, 7.0),
        lambda: autograd.value_and_grad(recurrence)(7.0),
    ]
    try:
        import torch
    except ImportError:
        torch = None
    else:
        torch.set_num_threads(1)
        calls.append(lambda: torch_gradient(torch))
    plain, ours, slow, *rest = seconds_per_call(*calls)
    rows = [
        Row("scalar recurrence: tape / plain Python, value only", ours, plain, ours / plain, "at most 25"),
        Row("scalar recurrence: autograd / tape", ours, slow, slow / ours, "at least 30"),
    ]
    return rows + [Row("scalar recurrence: torch eager / tape", ours, t, t / ours, "at least 8") for t in rest]


def torch_gradient(torch: Any) -> Any:
    """Value and gradient of the recurrence by torch's eager engine."""
    x = torch.tensor(7.0, dtype=torch.float64, requires_grad=True)
    y = recurrence(x)
    return y, torch.autograd.grad(y, x)


def array_functions(xp: Any, n: int) -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """Array code as people write it: name -> (function, point)."""
    rng = np.random.default_rng(0)
    y, c, x = rng.normal(size=n), rng.random(n), rng.random(n)
    a, labels = rng.normal(size=(n, 8)), (rng.random(n) > 0.5) * 1.0
    for data in (y, c, a, labels):
        data.flags.writeable = False  # a constant that could still change would be copied when a product is recorded

    def normal(p: Any) -> Any:
        return xp.sum(-0.5 * ((y - p[0]) / p[1]) ** 2) - n * xp.log(p[1])

    def logistic(w: Any) -> Any:
        z = xp.dot(a, w)
        return xp.sum(xp.logaddexp(0.0, z) - labels * z)

    def rosenbrock(x: Any) -> Any:
        return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def chain(x: Any) -> Any:
        s = x
        for _ in range(10):
            s = s * x + c
        return xp.sum(s)

    return {
        "normal log density": (normal, np.array([0.3, 1.2])),
        "logistic regression": (logistic, rng.normal(size=8)),
        "Rosenbrock": (rosenbrock, x),
        "chain of products and sums": (chain, x),
    }


def array_rows(n: int, limit: str) -> list[Row]:
    """Each array function at one size: autograd / tape."""
    rows = []
    theirs = array_functions(anp, n)
    for name, (f, x) in array_functions(tape, n).items():
        g = theirs[name][0]
        np.testing.assert_allclose(tape.gradient(f, x)[1], autograd.grad(g)(x), rtol=1e-10)
        pair = (lambda f=f, x=x: tape.gradient(f, x)), (lambda g=g, x=x: autograd.value_and_grad(g)(x))
        ours, slow = seconds_per_call(*pair)
        rows.append(Row(f"{name}, n = {n:,}: autograd / tape", ours, slow, slow / ours, limit))
    return rows


def overhead_row() -> Row:
    """Seconds a node costs beyond numpy's own work: a chain of 200 operations on 100 elements, and its adjoints."""
    x = np.linspace(0.5, 1.5, 100)

    def chain(v: Any) -> Any:
        s = v
        for _ in range(100):
            s = s * v + v
        return tape.sum(s)

    def by_hand() -> Any:
        values, s = [], x
        for _ in range(100):
            values.append(s)
            s = s * x + x
        total, g, gx = np.add.reduce(s), np.ones(100), np.zeros(100)
        for value in reversed(values):
            gx += g
            gx += g * value
            g = g * x
        return total, gx + g

    np.testing.assert_allclose(tape.gradient(chain, x)[1], by_hand()[1])
    ours, hand = seconds_per_call(lambda: tape.gradient(chain, x), by_hand)
    per_node = (ours - hand) / 201
    return Row("per array node beyond numpy by hand", per_node, hand / 201, per_node * 1e6, "at most 2 (µs)")


def memory_after_warm_up() -> dict[str, int]:
    """Bytes held and the highest mark of one more gradient after ten, for the recurrence."""
    for _ in range(10):
        tape.gradient(recurrence, 7.0)
    tracemalloc.start()
    try:
        tape.gradient(recurrence, 7.0)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(10):
            tape.gradient(recurrence, 7.0)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return {"bytes kept per call": (after - before) // 10, "bytes at the highest mark": peak - before}


def main() -> None:
    """Prints the table."""
    print(f"{'':58} {'ours, µs':>12} {'other, µs':>12} {'ratio':>8}   wanted")
    for row in [*scalar_rows(), overhead_row(), *array_rows(100, "at least 5"), *array_rows(1_000_000, "at least 1")]:
        print(row)
    for what, count in memory_after_warm_up().items():
        print(f"second and later gradients of the recurrence, {what}: {count:,}")


def test_scalar_code_is_within_reach_of_plain_python_and_far_ahead_of_the_other_eager_engines() -> None:
    rows = scalar_rows()
    assert rows[0].ratio < 40
    assert rows[1].ratio > 20
    assert all(row.ratio > 5 for row in rows[2:])


def test_array_code_is_ahead_of_autograd_when_small() -> None:
    assert all(row.ratio > 1.5 for row in array_rows(100, "at least 5"))


def test_a_second_gradient_keeps_no_memory() -> None:
    assert memory_after_warm_up()["bytes kept per call"] < 200


if __name__ == "__main__":
    main()
