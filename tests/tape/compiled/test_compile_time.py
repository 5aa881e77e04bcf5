"""Compile time is linear in the length of the tape, with a bounded number of Python steps per node."""

import cProfile
import time

import numpy as np
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


def needed_later(turns):
    """The same, with values that the sweep reads again: fifteen nodes per iteration."""

    def f(x):
        s = x
        for _ in range(turns):
            s = s + (x * s + 1.0) / (s + 2.0)
        return s

    return f


def micros_a_node(f, level):
    """Microseconds per node, scaled to the machine of the targets."""
    before = step_of_python()
    start = time.process_time()
    compiled = tape.compile(f, 7.0, level=level)
    spent = time.process_time() - start
    slowness = min(before, step_of_python()) / STEP
    return 1e6 * spent / compiled.nodes() / slowness


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", [long, needed_later])
@pytest.mark.parametrize(("level", "most"), [(2, 130.0), (0, 40.0)])
def test_compile_time_per_node_is_bounded_at_any_length(program, level, most):
    tape.compile(long(3), 7.0)
    lengths = (150, 1_500) if level else (2_500, 25_000)
    short, long_one = (min(micros_a_node(program(turns), level) for _ in range(2)) for turns in lengths)
    assert max(short, long_one) <= most
    assert long_one <= 1.5 * short


def test_the_optimisation_level_depends_on_the_length(monkeypatch):
    monkeypatch.setattr(program, "LONG_PROGRAM", 500)
    assert [level_of(long(turns), 7.0) for turns in (20, 100)] == [2, 0]


def test_long_programs_of_numbers_are_not_optimised_unless_they_hold_array_work_or_many_guards():
    x = np.linspace(0.5, 0.7, 20)
    sums = lambda x: long(200)(x[0]) + x @ x  # noqa: E731
    assert level_of(long(200), 7.0) == level_of(sums, x) == 0
    assert level_of(long(100), 7.0) == 2
    assert level_of(lambda x: long(200)(x[0]) + tape.sum(tape.exp(x)), np.linspace(0.5, 0.7, 1_000)) == 2
    assert level_of(lambda x: tape.loop(lambda _, s: s * 0.9 + 0.1, long(200)(x), 50), 7.0) == 2

    def guarded(x):
        for _ in range(200):
            x = x * 0.5 + 1.0 if x > 1.0 else x * 2.0
        return x + long(150)(x)

    assert level_of(guarded, 7.0) == 2


def level_of(f, x):
    """The level of optimisation, after a check of the results at another point."""
    compiled = tape.compile(f, x)
    for ours, expected in zip(compiled(x + 0.5), tape.gradient(f, x + 0.5), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-10)
    (signature,) = compiled._signatures.values()
    return signature.programs[0].level


@pytest.mark.exhaustive
@pytest.mark.timeout(3_000)
def test_a_million_nodes_compile_and_run():
    f = long(112_000)
    compiled = tape.compile(f, 7.0)
    assert compiled.nodes() > 1_000_000
    assert "eager" not in compiled.explain()
    assert compiled(7.5) == pytest.approx(tape.gradient(f, 7.5), rel=1e-9)


def calls_for_a_hessian(turns):
    """Python's function calls to record and lower the Hessian of a long program with masked factors."""

    def f(x):
        s = x * 1.0
        for _ in range(turns):
            s = tape.sin(s) * x[0] + s[1] * x + 0.1 * s
        return tape.sum(s * s)

    profile = cProfile.Profile(builtins=False)
    profile.runcall(tape.compile, f, np.array([0.3, 0.2, 0.5, 0.7, 0.1]), operator="hessian", level=0)
    return sum(entry.callcount for entry in profile.getstats())


def test_work_for_a_hessian_is_proportional_to_the_program():
    calls_for_a_hessian(5)
    assert calls_for_a_hessian(96) < 3.0 * calls_for_a_hessian(48)
