"""What each idea in the reference engine is worth: the same function with it and without it, side by side.

    python tests/benchmarks/ablations.py            eight launches, and the table as Markdown
    python tests/benchmarks/ablations.py --launches 5 --only tape
    pytest tests/benchmarks/ablations.py            both sides of every row give the same derivative

A row's ratio is the time without the idea over the time with it: above one, the idea pays. Each launch is a process of
its own, in which the two take turns round after round; its figure is the median of the rounds' ratios, and the table
has the Hodges-Lehmann estimate over launches with its interval (adbench/measure/statistics.py). For checkpoints the
ratio of the memory that Python sees at its peak is given too, which is what they are for.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import pytest

from adbench import tape
from adbench.measure.statistics import hodges_lehmann, paired_log_ratio
from adbench.suite.backend import from_module
from adbench.suite.catalog import catalog, load

CATALOG = catalog()
ENGINE = from_module("tape", load(CATALOG.backends["tape"]))
ROUNDS, SECONDS_PER_ROUND = 12, 0.02


@dataclass(frozen=True)
class Ablation:
    """One idea at one size: the derivative with it and without it, each as a call that returns the same numbers."""

    idea: str
    what: str
    with_it: Callable[[], Any]
    without: Callable[[], Any]

    @property
    def name(self) -> str:
        """What stands in the table."""
        return f"{self.idea}: {self.what}"


# By closures -----------------------------------------------------------------------------------------


class Closure:
    """A number whose operations put a closure on a stack: reverse mode as continuations, and nothing else.

    Carpenter (2018), "Lambda-based closures": the adjoints are in a list, each closure adds to its operands'.
    """

    __slots__ = ("index", "stack", "value")
    stack: list[tuple[Callable[..., None], int]]

    def __init__(self, value: float, stack: list[Any]) -> None:
        self.value, self.stack, self.index = value, stack, len(stack)
        stack.append(None)

    def _made(self, value: float, back: Callable[[list[float], float], None]) -> Closure:
        made = Closure(value, self.stack)
        self.stack[made.index] = (back, made.index)
        return made

    def __add__(self, other: Any) -> Closure:
        i = self.index
        if not isinstance(other, Closure):

            def back(adjoints: list[float], g: float) -> None:
                adjoints[i] += g

            return self._made(self.value + other, back)
        j = other.index

        def back_both(adjoints: list[float], g: float) -> None:
            adjoints[i] += g
            adjoints[j] += g

        return self._made(self.value + other.value, back_both)

    def __mul__(self, other: Closure) -> Closure:
        i, j, a, b = self.index, other.index, self.value, other.value

        def back(adjoints: list[float], g: float) -> None:
            adjoints[i] += g * b
            adjoints[j] += g * a

        return self._made(a * b, back)

    def __truediv__(self, other: Closure) -> Closure:
        i, j, quotient, b = self.index, other.index, self.value / other.value, other.value

        def back(adjoints: list[float], g: float) -> None:
            adjoints[i] += g / b
            adjoints[j] -= g * quotient / b

        return self._made(quotient, back)


def by_closures(f: Callable[[Any], Any], x: float) -> tuple[float, float]:
    """(f(x), f'(x)), the closures called from the last to the first."""
    stack: list[Any] = []
    start = Closure(x, stack)
    result = f(start)
    adjoints = [0.0] * len(stack)
    adjoints[result.index] = 1.0
    for entry in reversed(stack):
        if entry is not None:
            entry[0](adjoints, adjoints[entry[1]])
    return result.value, adjoints[start.index]


def recurrence(x: Any) -> Any:
    """400 scalar operations: s = s + (x² + 1) / s, a hundred times."""
    s = x
    for _ in range(100):
        s = s + (x * x + 1) / s
    return s


# Checkpoints -----------------------------------------------------------------------------------------


def checkpointed_loop(step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
    """`tape.loop` that keeps sqrt(n) states instead of all operations, and records each part again on the way back."""
    part = max(1, math.isqrt(n))

    def segment(start: int) -> Callable[[Any], Any]:
        return lambda s: tape.loop(lambda i, s: step(start + i, s), s, min(part, n - start))

    def shortened(f: Callable[[Any], Any], s: Any) -> Any:
        value = f(s.val)

        def chain(y: Any) -> None:
            s.adj += tape.vjp(f, s.val, y.adj)[1]

        return tape.make_callback_var(value, chain)

    for start in range(0, n, part):
        state = shortened(segment(start), state)
    return state


def drift(_: int, s: Any) -> Any:
    return s + 0.001 * (s * (1.5 - s))


# The rows --------------------------------------------------------------------------------------------


def gradient(case: str, size: int) -> Callable[[], Any]:
    """The gradient of a case on the engine, prepared."""
    made = CATALOG.cases[case]
    names, args, wrt = made.bind(size, 0)
    native = ENGINE.native_inputs(args)
    call = ENGINE.prepare("gradient", ENGINE.function(made, names), native, wrt)
    return lambda: call(*native)


def flat() -> Any:
    return tape.gradient(recurrence, 7.0)


def tape_rows() -> list[Ablation]:
    compiled = tape.compile(recurrence, 7.0)
    work = "400 scalar operations"
    return [
        Ablation("a flat tape", f"instead of closures, {work}", flat, partial(by_closures, recurrence, 7.0)),
        Ablation("a compiled tape", f"instead of a flat one, {work}", partial(compiled, 7.0), flat),
    ]


def node_rows() -> list[Ablation]:
    rows = []
    for case in ("matrix_product", "log_determinant", "cholesky", "solve"):
        for n in (4, 16):
            what = f"instead of scalar elements, {case.replace('_', ' ')} {n} × {n}"
            rows.append(Ablation("one node for a matrix", what, gradient(case, n), gradient(f"{case}_elements", n)))
    return rows


def built_in_density(y: Any, mu: float, sigma: float) -> Any:
    return tape.gradient(lambda p: tape.normal_lpdf(y, p[0], p[1]), (mu, sigma))[1]


def density_rows() -> list[Ablation]:
    rows = []
    for n in (10, 1_000, 100_000):
        _, given, _ = CATALOG.cases["normal_log_density"].bind(n, 0)
        what, elementary = f"instead of array operations, n = {n:,}", gradient("normal_log_density", n)
        rows.append(Ablation("a density as one node", what, partial(built_in_density, *given), elementary))
    return rows


def square(x: Any) -> Any:
    return x * x


def compact(x: Any) -> Any:
    return tape.compact_jacobian(square, x)[1].dense()


def dense(x: Any) -> Any:
    return tape.jacobian(square, x)[1]


def jacobian_rows() -> list[Ablation]:
    rows = []
    for n in (10, 100, 300):
        x, what = np.random.default_rng(n).normal(size=n), f"instead of a dense one, {n} squares"
        rows.append(Ablation("a compact Jacobian", what, partial(compact, x), partial(dense, x)))
    return rows


def to_one(x: Any) -> Any:
    return tape.sum(tape.exp(tape.sin(x) * x))


def to_many(c: Any, t: Any) -> Any:
    return tape.exp(tape.sin(t * c)) * c


def by_columns(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([tape.jvp(f, x, unit)[1] for unit in np.eye(len(x))])


def by_rows(f: Callable[[Any], Any], t: float, count: int) -> Any:
    return np.array([tape.vjp(f, t, unit)[1] for unit in np.eye(count)])


def backwards(f: Callable[[Any], Any], x: Any) -> Any:
    return tape.gradient(f, x)[1]


def forwards(f: Callable[[Any], Any], t: float) -> Any:
    return tape.jvp(f, t, 1.0)[1]


def mode_rows() -> list[Ablation]:
    rows = []
    for n in (1, 10, 100):
        x, what = np.random.default_rng(n).uniform(0.5, 1.5, n), f"instead of forward, {n} inputs and one output"
        rows.append(Ablation("reverse mode", what, partial(backwards, to_one, x), partial(by_columns, to_one, x)))
        f, what = partial(to_many, x), f"instead of reverse, one input and {n} outputs"
        rows.append(Ablation("forward mode", what, partial(forwards, f, 0.7), partial(by_rows, f, 0.7, n)))
    return sorted(rows, key=lambda row: row.idea, reverse=True)


def after_loop(loop: Callable[..., Any], n: int) -> Any:
    return tape.gradient(lambda s: loop(drift, s, n), 0.3)[1]


def checkpoint_rows() -> list[Ablation]:
    rows = []
    for n in (100, 10_000):
        what = f"a loop of {n:,} steps, of which sqrt(n) states are kept"
        kept, plain = partial(after_loop, checkpointed_loop, n), partial(after_loop, tape.loop, n)
        rows.append(Ablation("checkpoints", what, kept, plain))
    return rows


GROUPS: dict[str, Callable[[], list[Ablation]]] = {
    "tape": tape_rows,
    "nodes": node_rows,
    "density": density_rows,
    "jacobian": jacobian_rows,
    "mode": mode_rows,
    "checkpoints": checkpoint_rows,
}


# Measuring -------------------------------------------------------------------------------------------


def seconds(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def measured(row: Ablation) -> float:
    """log(without / with), the median over rounds in which the two take turns."""
    counts = []
    for call in (row.with_it, row.without):
        call()
        counts.append(max(1, int(SECONDS_PER_ROUND / seconds(call, 1))))
    times: list[list[float]] = [[], []]
    for turn in range(ROUNDS):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            times[side].append(seconds((row.with_it, row.without)[side], counts[side]))
    return paired_log_ratio(times[1], times[0])


def memory_rows() -> list[str]:
    """Peak bytes of the tape without and with checkpoints, as rows of the table: the same in every launch."""
    rows = []
    for row in checkpoint_rows():
        peaks = []
        for call in (row.without, row.with_it):
            tape.recover_memory()
            tracemalloc.start()
            call()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        rows.append(f"| {row.name}: memory | {peaks[0] / peaks[1]:.3g} | |")
    return rows


def table(launches: Sequence[dict[str, float]]) -> str:
    """Markdown: each idea with its ratio and interval."""
    lines = ["| idea | ratio | interval |", "|---|---|---|"]
    for name in launches[0]:
        found = hodges_lehmann([launch[name] for launch in launches])
        estimate, low, high = (math.exp(x) for x in (found.estimate, found.low, found.high))
        lines.append(f"| {name} | {estimate:.3g} | {low:.3g} … {high:.3g} |")
    return "\n".join(lines + (memory_rows() if any(name.startswith("checkpoints") for name in launches[0]) else []))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--launches", type=int, default=8, choices=range(4, 101), metavar="N", help="4 or more")
    parser.add_argument("--only", choices=GROUPS, action="append")
    parser.add_argument("--launch", action="store_true", help="be one launch, and print it as JSON")
    asked = parser.parse_args()
    groups = asked.only or list(GROUPS)
    if asked.launch:
        print(json.dumps({row.name: measured(row) for group in groups for row in GROUPS[group]()}))
        return
    command = [sys.executable, __file__, "--launch", *(f"--only={group}" for group in groups)]
    found = [json.loads(subprocess.check_output(command)) for _ in range(asked.launches)]
    print(table(found))


@pytest.mark.parametrize("group", GROUPS)
def test_both_sides_of_every_row_give_the_same_derivative(group: str) -> None:
    for row in GROUPS[group]():
        both = (numbers(row.with_it()), numbers(row.without()))
        with_it, without = (np.concatenate([np.ravel(part) for part in side]) for side in both)
        np.testing.assert_allclose(with_it, without, rtol=1e-9, err_msg=row.name)


def numbers(result: Any) -> list[Any]:
    return [part for item in result for part in numbers(item)] if isinstance(result, tuple) else [result]


if __name__ == "__main__":
    main()
