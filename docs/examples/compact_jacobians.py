"""Compact Jacobians against dense ones: the same chain of functions, the same answer, time and memory as ratios.

Each function is a chain of steps. Compact: forward mode through the chain, J = L₂ (L₁ I), in the forms of
`adbench.tape.pqr.compact`. Dense: the same with every L written out. Prints a Markdown table; `SIDE` is the length
of M.
"""

import time
import tracemalloc
from functools import reduce

import numpy as np

from adbench import tape
from adbench.tape import pqr

SIDE = 40
rng = np.random.default_rng(1)
A, B = rng.normal(size=(SIDE, SIDE)), rng.normal(size=(SIDE, SIDE))
ORDER = rng.permutation(SIDE * SIDE)[: SIDE * SIDE // 2]

CHAINS = {
    "sum(M**2)": [lambda m: m**2, tape.sum],
    "3 * sin(M)": [tape.sin, lambda m: 3.0 * m],
    "exp(M)[order]": [tape.exp, tape.ravel, lambda v: v[ORDER]],
    "sum(sin(M), axis 0)": [tape.sin, lambda m: tape.sum(m, 0)],
    "A @ M @ B": [lambda m: A @ m, lambda m: m @ B],
    "sum(tanh(A @ M))": [lambda m: A @ m, tape.tanh, tape.sum],
}


def compact(steps, m):
    return pqr.compact_jacobian(lambda x: reduce(lambda y, step: step(y), steps, x), m)[1]


def dense(steps, m):
    total = np.eye(m.size)
    for step in steps:
        m, local = pqr.compact_jacobian(step, m)
        total = local.dense() @ total
    return total


def seconds_and_bytes(call):
    """The best of three runs, and the peak of memory in one more."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(times), peak


def table(side=SIDE):
    """Rows of (function, form, dense time / compact time, dense memory / compact memory)."""
    m = rng.normal(size=(side, side))
    rows = []
    for name, steps in CHAINS.items():
        form = compact(steps, m)
        assert np.allclose(form.dense(), dense(steps, m), rtol=1e-10, atol=1e-12)
        seconds, memory = seconds_and_bytes(lambda steps=steps: compact(steps, m))
        dense_seconds, dense_memory = seconds_and_bytes(lambda steps=steps: dense(steps, m))
        rows.append((name, type(form).__name__, dense_seconds / seconds, dense_memory / memory))
    return rows


if __name__ == "__main__":
    print(f"M {SIDE} × {SIDE} | compact form | dense time / compact | dense memory / compact")
    print("---|---|---:|---:")
    for name, form, slower, larger in table():
        print(f"`{name}` | {form} | {slower:,.0f} | {larger:,.0f}")
