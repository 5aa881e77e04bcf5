"""Blocks of large arrays are reused without overwriting numbers in use, and constants keep their values."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from adbench import tape
from adbench.tape import memory

N = memory.LARGE


def cubes(x):
    return tape.sum(x * x * x)


def test_a_block_becomes_free_when_no_array_uses_it():
    memory.release()
    array = memory.room((N,))
    view = array[1:].reshape(1, -1)
    assert memory.kept() == 0
    del array
    assert memory.kept() == 0
    del view
    assert memory.kept() == 8 * N
    again = memory.room((N,))
    assert memory.kept() == 0
    del again
    memory.release()
    assert memory.kept() == 0


def test_free_blocks_stay_below_the_limit(monkeypatch):
    memory.release()
    monkeypatch.setattr(memory, "KEPT_AT_MOST", 16 * N)
    arrays = [memory.room((N,)) for _ in range(5)]
    del arrays
    assert memory.kept() == 16 * N
    memory.release()


def test_small_arrays_are_numpys_own():
    assert memory.room((3,)).base is None
    assert memory.room((0, 5)).shape == (0, 5)


def test_the_second_gradient_takes_no_memory_from_the_system():
    x = np.linspace(0.5, 1.0, N)
    tape.gradient(cubes, x)
    tape.gradient(cubes, x)
    before = memory.made()
    for _ in range(3):
        tape.gradient(cubes, x)
    assert memory.made() == before


def test_results_that_a_caller_keeps_do_not_change():
    x = np.linspace(0.5, 1.0, N)
    kept = []

    def f(v):
        y = v * v
        kept.append(y.val)
        return tape.sum(y * 2.0)

    gradients = [tape.gradient(f, x * k)[1] for k in (1.0, 2.0, 3.0)]
    gc.collect()
    for k, g, square in zip((1.0, 2.0, 3.0), gradients, kept, strict=True):
        np.testing.assert_allclose(g, 4.0 * k * x, rtol=1e-15)
        np.testing.assert_allclose(square, (k * x) ** 2, rtol=1e-15)


@pytest.mark.parametrize("n", [4, N])
def test_a_constant_changed_after_its_use_counts_with_its_old_value(n):
    x, b = np.ones(n), np.full(n, 3.0)

    def f(v):
        total = tape.sum(v * b) + tape.sum(b * v) + tape.sum(tape.maximum(v, b) * 0.0) + tape.dot(b, v)
        b[:] = 0.0
        return total

    np.testing.assert_array_equal(tape.gradient(f, x)[1], 9.0)


@pytest.mark.parametrize("n", [4, N])
def test_a_read_only_view_of_a_writable_array_counts_with_its_old_value(n):
    owner = np.full(n, 3.0)
    view = owner[:]
    view.flags.writeable = False

    def f(v):
        total = tape.sum(v * view)
        owner[:] = 0.0
        return total

    np.testing.assert_array_equal(tape.gradient(f, np.ones(n))[1], 3.0)
    spread = np.broadcast_to(np.array([5.0]), (n,))
    np.testing.assert_array_equal(tape.gradient(lambda v: tape.sum(v * spread), np.ones(n))[1], 5.0)


def test_a_large_read_only_array_is_not_copied():
    b = np.full(N, 3.0)
    b.flags.writeable = False
    with tape.nested() as recording:
        _ = tape.Var(np.ones(N)) * b
        assert any(b is part for part in recording[-1][3])


def test_the_point_stays_unchanged_and_its_later_changes_have_no_effect():
    x = np.ones(N)

    def f(v):
        y = v * v
        x[:] = 7.0
        return tape.sum(y)

    np.testing.assert_array_equal(tape.gradient(f, x)[1], 2.0)
    np.testing.assert_array_equal(x, 7.0)


def test_large_arrays_give_the_same_numbers_by_other_loops():
    x = np.concatenate([np.linspace(-800.0, 800.0, N), [np.inf, -np.inf, 0.0, -0.0]])
    with np.errstate(all="ignore"):
        for y in (0.0, np.linspace(-3.0, 2.0, N + 4), np.inf, -np.inf):
            parts = [np.broadcast_to(a, x.shape).reshape(-1, 4) for a in (x, y)]
            few = np.concatenate([tape.logaddexp(a, b) for a, b in zip(*parts, strict=True)])
            np.testing.assert_allclose(tape.logaddexp(x, y), few, rtol=2e-15, atol=1e-15)
            np.testing.assert_allclose(tape.logaddexp(y, x), few, rtol=2e-15, atol=1e-15)
    few = np.concatenate([tape.expit(a) for a in x.reshape(-1, 4)])
    np.testing.assert_allclose(tape.expit(x), few, rtol=2e-15, atol=1e-307)


@pytest.mark.skipif(not hasattr(memory.mmap, "MAP_PRIVATE"), reason="this system does not fork")
def test_a_block_is_not_shared_with_a_forked_process():
    program = """
import os
from adbench.tape import memory
array = memory.full((memory.LARGE,), 1.0)
child = os.fork()
if child == 0:
    array[:] = 2.0
    os._exit(0)
os.waitpid(child, 0)
assert array[0] == 1.0
"""
    subprocess.run([sys.executable, "-c", program], check=True)
