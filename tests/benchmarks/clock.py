"""What the loop, the inputs that take turns and the binding take: `python -m tests.benchmarks.clock`.

The figures in the docstrings of adbench/measure/clock.py are from here, in nanoseconds a call. Each is the least of
many short epochs, since whatever comes between only adds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from itertools import repeat
from time import perf_counter_ns
from typing import Any

from adbench.measure import clock

EPOCHS, CALLS = 400, 2000
Loop = Callable[[Callable[[], Any], int], object]


def of_range(call: Callable[[], Any], calls: int) -> None:
    for _ in range(calls):
        call()


def of_repeat(call: Callable[[], Any], calls: int) -> None:
    for _ in repeat(None, calls):
        call()


def ours(call: Callable[[], Any], calls: int) -> None:
    clock._loop(call, calls, clock.NO_INPUTS, perf_counter_ns)


LOOPS: dict[str, Loop] = {"for _ in range(n)": of_range, "for _ in repeat(None, n)": of_repeat, "clock's own": ours}


def python_function(x: float, y: float) -> None:
    """A library's call that does nothing, in Python."""


LIBRARY: dict[str, Callable[..., Any]] = {"in Python": python_function, "in C": operator.mul}


def bindings(call: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
    """The ways to a call without arguments."""
    x, y = args
    return {
        "partial": partial(call, *args),
        "lambda: f(x, y)": lambda: call(x, y),
        "lambda: f(*args)": lambda: call(*args),
        "bind": clock.bind(call, args),
        "bind with a wait": clock.bind(call, args, id),
    }


def ns_per_call(loop: Loop, call: Callable[[], Any]) -> float:
    best = 10**12
    for _ in range(EPOCHS):
        start = perf_counter_ns()
        loop(call, CALLS)
        best = min(best, perf_counter_ns() - start)
    return best / CALLS


def main() -> None:
    for name, loop in LOOPS.items():
        print(f"{name:28} {ns_per_call(loop, tuple):6.1f} ns over a call of nothing")
    args = (1.0, 2.0)
    for where, call in LIBRARY.items():

        def bare(_: Callable[[], Any], calls: int, call: Callable[..., Any] = call) -> None:
            x, y = args
            for _ in repeat(None, calls):
                call(x, y)

        print(f"\nf(x, y) {where}: {ns_per_call(bare, tuple):.1f} ns written out in the loop; bound, in our loop:")
        turns = ns_per_call(lambda f, calls: clock._loop(f, calls, [args, (3.0, 4.0)], perf_counter_ns), call)
        print(f"{'two sets that take turns':28} {turns:6.1f} ns")
        for name, bound in bindings(call, args).items():
            print(f"{name:28} {ns_per_call(ours, bound):6.1f} ns   ({ns_per_call(of_repeat, bound):.1f} in a for loop)")


if __name__ == "__main__":
    main()
