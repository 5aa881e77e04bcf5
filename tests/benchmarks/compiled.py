"""How fast the compiled gear is: ratios to jax, casadi, numpy and the eager gear, taken in one run.

    python tests/benchmarks/compiled.py          prints the tables
    python tests/benchmarks/compiled.py normal   those rows only whose name has this in it

The contenders of a row are timed in turns, round after round, each in many short samples of which the least counts: a
pause of the machine spoils one sample, a slow phase slows all contenders. Everybody computes value and gradient, on one
thread, in the form that suits it best: jax compiled, with data bound on its side and waited for; casadi as compiled C
where there is a C compiler, through `buffer()`; ours through `.call`. Every gradient is compared before it is timed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from adbench import tape

Call = Callable[[], Any]


@dataclass
class Row:
    """One function at one size: for each contender a call that gives (value, flat gradient)."""

    name: str
    ours: Call
    others: dict[str, Call] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def time(self, rounds: int = 25) -> None:
        """Seconds per call, the least of all samples."""
        calls = {"ours": self.ours, **self.others}
        repeats = {}
        for key, call in calls.items():
            call()
            start = time.perf_counter()
            call()
            repeats[key] = max(1, int(1e-3 / max(time.perf_counter() - start, 1e-7)))
        self.seconds = dict.fromkeys(calls, float("inf"))
        for _ in range(rounds):
            for key, call in calls.items():
                start = time.perf_counter()
                for _ in range(repeats[key]):
                    call()
                self.seconds[key] = min(self.seconds[key], (time.perf_counter() - start) / repeats[key])

    def __str__(self) -> str:
        ours = self.seconds["ours"]
        ratios = "  ".join(f"{k} {t * 1e6:.2f} ({t / ours:.1f}×)" for k, t in self.seconds.items() if k != "ours")
        return f"{self.name:34} {ours * 1e6:11.2f} µs   {ratios}"


def normal(xp: Any, y: Any, mu: Any, sigma: Any) -> Any:
    """The log density of the case normal_log_density."""
    z = (y - mu) / sigma
    return -0.5 * xp.sum(z * z) - y.shape[0] * (xp.log(sigma) + 0.9189385332046727)


def recurrence(xp: Any, x: Any) -> Any:
    """The case recurrence."""
    s = xp.loop(lambda _, s: s + (x * x + 1) / s, xp.ones_like(x), 100)
    return xp.sum(4 * xp.cumsum(s) ** 2)


def lotka_volterra(xp: Any, theta: Any, start: Any) -> Any:
    """The case lotka_volterra at 1000 steps."""
    h = 2.0 / 1000

    def slope(s: Any) -> Any:
        return xp.stack([s[0] * (theta[0] - theta[1] * s[1]), s[1] * (theta[3] * s[0] - theta[2])])

    def step(_: Any, s: Any) -> Any:
        k1 = slope(s)
        k2 = slope(s + h / 2 * k1)
        k3 = slope(s + h / 2 * k2)
        k4 = slope(s + h * k3)
        return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return xp.sum(xp.loop(step, start, 1000))


def matrix_product(xp: Any, a: Any, b: Any) -> Any:
    """The case matrix_product."""
    return xp.sum(a @ b)


def log_determinant(xp: Any, a: Any) -> Any:
    """The case log_determinant."""
    return xp.linalg.slogdet(a)[1]


def logistic(xp: Any, w: Any, x: Any, labels: Any) -> Any:
    """Logistic regression with a normal prior."""
    z = x @ w
    return xp.sum(labels * z - xp.logaddexp(0.0, z)) - 0.5 * xp.sum(w * w)


def mixture(xp: Any, alphas: Any, means: Any, scales: Any, x: Any) -> Any:
    """A mixture of normals with diagonal covariances: x (n, d), means and log scales (k, d)."""
    z = (x[:, None, :] - means[None]) * xp.exp(-scales)[None]
    terms = alphas - xp.sum(scales, 1) - 0.5 * xp.sum(z * z, 2)
    top = xp.max(terms, 1)
    return xp.sum(xp.log(xp.sum(xp.exp(terms - top[:, None]), 1)) + top)


def inputs() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...], tuple[int, ...]]]:
    """name, function, arguments, positions of the active ones."""
    rng = np.random.default_rng(0)
    for n in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000):
        yield f"normal_log_density {n}", normal, (rng.normal(size=n), 0.5, 1.7), (1, 2)
    for n in (1, 5, 100, 10_000):
        yield f"recurrence {n}", recurrence, (rng.uniform(0.5, 2.0, n),), (0,)
    yield "lotka_volterra 1000", lotka_volterra, (rng.uniform(0.5, 1.5, 4), rng.uniform(0.5, 1.5, 2)), (0, 1)
    for n in (8, 32, 64):
        yield f"matrix_product {n}", matrix_product, tuple(rng.normal(size=(2, n, n))), (0, 1)
    for n in (8, 32, 64):
        yield f"log_determinant {n}", log_determinant, (2 * np.eye(n) + rng.normal(size=(n, n)) / np.sqrt(n),), (0,)
    for n in (100, 1_000, 10_000):
        x, labels = rng.normal(size=(n, 10)), (rng.random(n) > 0.5) * 1.0
        yield f"logistic_regression {n} × 10", logistic, (rng.normal(size=10), x, labels), (0,)
    for n in (10, 100, 1_000):
        given = (rng.normal(size=5), rng.normal(size=(5, 4)), rng.normal(size=(5, 4)) / 4, rng.normal(size=(n, 4)))
        yield f"gaussian_mixture {n} × 4, 5", mixture, given, (0, 1, 2)


def jax_call(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Call | None:
    """jax.jit of value_and_grad, data on its side."""
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)

    class Names:
        linalg = jax.numpy.linalg

        def __getattr__(self, name: str) -> Any:
            return getattr(jax.numpy, name)

        @staticmethod
        def loop(step: Any, state: Any, n: int) -> Any:
            return jax.lax.fori_loop(0, n, step, state)

    native = tuple(jax.numpy.asarray(a) for a in args)
    compiled = jax.jit(jax.value_and_grad(lambda *a: f(Names(), *a), argnums=wrt)).lower(*native).compile()
    return lambda: jax.block_until_ready(compiled(*native))


def casadi_call(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Call | None:
    """casadi's expression graph, for the scalar functions that it can write, in its virtual machine through buffers."""
    try:
        import casadi
    except ImportError:
        return None
    if f is normal and args[0].size <= 10_000:
        y, p = casadi.SX.sym("y", args[0].size), casadi.SX.sym("p", 2)
        z = (y - p[0]) / p[1]
        value = -0.5 * casadi.sumsqr(z) - args[0].size * (casadi.log(p[1]) + 0.9189385332046727)
        given = [args[0], np.array(args[1:])]
        function = casadi.Function("f", [y, p], [value, casadi.gradient(value, p)])
    elif f is recurrence and args[0].size <= 100:
        x = casadi.SX.sym("x", args[0].size)
        s = casadi.SX.ones(args[0].size)
        for _ in range(100):
            s = s + (x * x + 1) / s
        value = casadi.sumsqr(2 * casadi.cumsum(s))
        given = [args[0]]
        function = casadi.Function("f", [x], [value, casadi.gradient(value, x)])
    else:
        return None
    buffer, trigger = function.buffer()
    results = [np.zeros(1), np.zeros(given[-1].size)]
    for k, a in enumerate(given):
        buffer.set_arg(k, memoryview(a))
    for k, r in enumerate(results):
        buffer.set_res(k, memoryview(r))

    def call(_alive: Any = (function, buffer, given)) -> Any:  # the trigger keeps none of them
        trigger()
        return results[0][0], (results[1],)

    return call


def flat(result: Any) -> Any:
    """A value and a gradient as one vector."""
    value, gradient = result
    return np.concatenate([np.ravel(np.asarray(part, float)) for part in (value, *gradient)])


def rows(wanted: str = "") -> Iterator[Row]:
    """Rows whose contenders agree."""
    for name, f, args, wrt in inputs():
        if wanted not in name:
            continue
        call = tape.compile(lambda *a, f=f: f(tape, *a), *args, wrt=wrt).call
        row = Row(name, lambda call=call, args=args: call(*args))
        makers = {"jax": jax_call, "casadi": casadi_call}
        for key, make in makers.items():
            other = make(f, args, wrt)
            if other is not None:
                np.testing.assert_allclose(flat(other()), flat(row.ours()), rtol=1e-8, atol=1e-9)
                row.others[key] = other

        def of_active(x: Any, f: Any = f, args: Any = args, wrt: Any = wrt) -> Any:
            full = list(args)
            for k, part in zip(wrt, x, strict=True):
                full[k] = part
            return f(tape, *full)

        row.others["eager"] = lambda g=of_active, args=args, wrt=wrt: tape.gradient(g, tuple(args[k] for k in wrt))
        yield row


def calling_cost() -> Iterator[str]:
    """What a call costs over the work: x² of a number, and of an array of three."""
    for name, x in (("a number", 1.5), ("an array of three", np.ones(3))):
        call = tape.compile(lambda x: tape.sum(x * x), x).call
        row = Row(name, lambda call=call, x=x: call(x), {"an empty function of Python's": lambda: None})
        row.time(60)
        over = row.seconds["ours"] - row.seconds["an empty function of Python's"]
        yield f"calling with {name}: {over * 1e9:.0f} ns, the loop and an empty function taken off"


def compile_cost() -> Iterator[str]:
    """Seconds of processor time for a node, by length."""
    for turns, level in ((100, 2), (1_000, 2), (1_000, 0), (10_000, 0)):

        def f(x: Any, turns: int = turns) -> Any:
            s = x
            for _ in range(turns):
                s = s + (x * x + 1) / s
            return s

        start = time.process_time()
        compiled = tape.compile(f, 7.0, level=level)
        spent = time.process_time() - start
        nodes = compiled.nodes()
        yield f"compiling {nodes} nodes at level {level}: {spent / nodes * 1e6:.0f} µs each"


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    for row in rows(chosen):
        row.time()
        print(row, flush=True)
    if not chosen:
        for line in (*calling_cost(), *compile_cost()):
            print(line, flush=True)
