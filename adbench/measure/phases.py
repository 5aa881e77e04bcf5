"""The parts of `prepare`, timed by the backend.

    with phase("trace"):
        traced = jax.jit(program).trace(*args)
    with phase("compile"):
        compiled = traced.lower().compile()

The harness opens `collecting`; outside it `phase` does nothing. Names:

trace     run the function on symbols
record    run the function on numbers and record its operations
lower     convert the trace or record to the compiler's language
compile   compile it to machine code
build     write, compile and load a program in another language
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter_ns

_open: ContextVar[tuple[dict[str, float], list[float]] | None] = ContextVar("adbench_phases", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, float]]:
    """Seconds by phase, filled while the block runs. Equal names add up; a phase inside another counts once, under its
    own name."""
    seconds: dict[str, float] = {}
    token = _open.set((seconds, [0.0]))
    try:
        yield seconds
    finally:
        _open.reset(token)


def add(name: str, seconds: float) -> None:
    """Add seconds measured by another process to the phase."""
    current = _open.get()
    if current is not None:
        current[0][name] = current[0].get(name, 0.0) + seconds


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Add the duration of the block to the phase, also if the block raises."""
    current = _open.get()
    if current is None:
        yield
        return
    seconds, inner = current
    start = perf_counter_ns()
    inner.append(0.0)
    try:
        yield
    finally:
        took = (perf_counter_ns() - start) * 1e-9
        seconds[name] = seconds.get(name, 0.0) + took - inner.pop()
        inner[-1] += took
