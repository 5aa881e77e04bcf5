"""Compile time is linear in the length of the tape, with a bounded number of Python steps per node."""

import time

import pytest

from adbench import tape
from adbench.tape.compiled.runtime import program

STEP = 45e-9
"""Seconds per iteration of the loop in `step_of_python` on the machine of the targets."""


def long(turns):
    """400 scalar operations for a hundred iterations; nine nodes per iteration, including the sweep's."""

    def f(x):
        s = x
        for _ in range(turns):
            s = s + (x * x + 1) / s
        return s

    return f


def step_of_python():
    """Seconds of processor time per iteration of a loop, now: larger on a busy or slow machine."""
    start = time.process_time()
    total = 0
    for i in range(1_000_000):
        total += i * i
    return (time.process_time() - start) / 1_000_000


def micros_a_node(turns, level):
    """Microseconds per node, scaled to the machine of the targets, and the compiled function."""
    before = step_of_python()
    start = time.process_time()
    compiled = tape.compile(long(turns), 7.0, level=level)
    spent = time.process_time() - start
    slowness = min(before, step_of_python()) / STEP
    return 1e6 * spent / compiled.nodes() / slowness, compiled


@pytest.mark.slow
@pytest.mark.parametrize(("level", "most"), [(2, 120.0), (0, 80.0)])
def test_compile_time_per_node_is_bounded_at_any_length(level, most):
    tape.compile(long(3), 7.0)
    short, long_one = (min(micros_a_node(turns, level)[0] for _ in range(3)) for turns in (150, 1_500))
    assert max(short, long_one) <= most
    assert long_one <= 2.0 * short


def test_the_optimisation_level_depends_on_the_length(monkeypatch):
    monkeypatch.setattr(program, "LONG_PROGRAM", 500)
    levels = []
    for turns in (20, 100):
        compiled = tape.compile(long(turns), 7.0)
        assert compiled(7.5) == pytest.approx(tape.gradient(long(turns), 7.5), rel=1e-12)
        (signature,) = compiled._signatures.values()
        levels.append(signature.programs[0].level)
    assert levels == [2, 0]


@pytest.mark.slow
@pytest.mark.timeout(3_000)
def test_a_million_nodes_compile_and_run():
    f = long(112_000)
    compiled = tape.compile(f, 7.0)
    assert compiled.nodes() > 1_000_000
    assert "eager" not in compiled.explain()
    assert compiled(7.5) == pytest.approx(tape.gradient(f, 7.5), rel=1e-9)
