"""Loops over large arrays on several threads: the same bits for any number, and safe with other threads and forks."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.runtime.thread_pool import PLACES, STARTED, _pool
from tests.tape.compiled.test_array_loops import documented_sum, pairs, rosenbrock, second_differences

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="one thread on Windows")


def density(x):
    z = (x - tape.mean(x)) / tape.exp(0.1 * x[0])
    return -0.5 * tape.sum(z * z) + tape.max(x) * tape.sum(tape.where(x > 0.7, x, -x))


def waves(x):
    return tape.sum(tape.sin(x) * tape.exp(x)) - tape.sum(tape.tanh(x * x))


def is_shared(compiled):
    """Whether any of its loops is shared by threads."""
    programs = [p for s in compiled._signatures.values() for p in (*s.programs, *s.careful)]
    return any("@task" in module.text() for program in programs for module in program.lowered.modules)


@pytest.mark.parametrize("f", [rosenbrock, second_differences, pairs, density, waves])
@pytest.mark.parametrize("n", [200_000, 196_608, 196_609, 262_143])
def test_any_number_of_threads_gives_the_same_bits(f, n):
    x = np.random.default_rng(n).uniform(0.5, 1.5, n)
    results = []
    for k in (1, 2, 3):
        compiled = tape.compile(f, x, threads=k)
        assert is_shared(compiled) == (k > 1)
        results += [compiled(x) for _ in range(3)]
    for value, slope in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(slope, results[0][1])
    expected = tape.gradient(f, x)
    assert results[0][0] == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(results[0][1], expected[1], rtol=1e-9, atol=1e-9)


def rows_scaled(x, c):
    return tape.sum(tape.exp(-x * tape.sum(c * c)) * c[0], axis=1) ** 2


def softmax(x, c):
    z = tape.exp(x * c - tape.max(x, axis=1, keepdims=True))
    return tape.sum(z / tape.sum(z, axis=1, keepdims=True) * tape.sin(x))


def columns(x, c):
    return tape.sum(tape.sin(x), axis=0) * tape.cos(x * c)


@pytest.mark.parametrize("f", [rows_scaled, softmax, columns])
@pytest.mark.parametrize("shape", [(2000, 101), (20_000, 7), (3, 70_001), (20, 20_000), (50, 40, 100)])
def test_any_number_of_threads_gives_the_same_bits_with_several_axes(f, shape):
    rng = np.random.default_rng(1)
    x, c = rng.uniform(0.5, 1.5, shape), rng.uniform(0.5, 1.5, shape[-1])
    total = lambda x, c: tape.sum(f(x, c))  # noqa: E731
    results = []
    for k in (1, 2, 3):
        compiled = tape.compile(total, x, c, threads=k)
        assert is_shared(compiled) == (k > 1)
        results += [compiled(x, c) for _ in range(2)]
    expected = tape.gradient(lambda xc: total(*xc), (x, c))
    for value, slopes in results:
        assert value == results[0][0]
        assert value == pytest.approx(expected[0], rel=1e-11)
        for slope, first, other in zip(slopes, results[0][1], expected[1], strict=True):
            np.testing.assert_array_equal(slope, first)
            np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [40_000, 40_003])
def test_any_number_of_threads_gives_the_same_bits_in_a_batch(count):
    def f(x, c):
        y = tape.sin(x[0] * c) * x[1]
        return tape.exp(-y * y) if x[2] > 0 else tape.log(2.0 + y)

    x = np.random.default_rng(2).normal(size=(count, 3))
    one, *others = (tape.compile(f, x, 0.7, batch=True, shared=1, wrt=0, threads=k) for k in (1, 2, 3))
    expected = one(x, 0.7)
    pool = _pool().memory
    for compiled in others:
        before = pool[0]
        value, slope = compiled(x, 0.7)
        assert pool[0] > before  # it opened a loop for helpers
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(slope, expected[1])


def test_a_sum_on_threads_has_the_documented_order():
    x = np.random.default_rng(0).normal(size=1_000_003)
    compiled = tape.compile(lambda x: (tape.sum(x), tape.sum(tape.exp(x))), x, operator="value", threads=3)
    assert is_shared(compiled)
    assert compiled(x)[0] == documented_sum(x)


def test_helpers_compute_a_part_of_the_blocks():
    x = np.linspace(0.0, 1.0, 400_000)
    compiled = tape.compile(waves, x, threads=2)
    pool = _pool()
    for _ in range(200):
        compiled(x)
        if pool.memory[PLACES["joined"]]:
            break
    assert pool.memory[PLACES["joined"]] == 1
    assert pool.memory[STARTED] >= 1
    assert pool.memory[PLACES["busy"]] == 0


def test_small_arrays_stay_on_one_thread():
    assert not is_shared(tape.compile(waves, np.ones(4_000), threads=2))
    assert not is_shared(tape.compile(rosenbrock, np.ones(20_000), threads=2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_guards_and_the_careful_program_work_on_threads():
    def f(x):
        return tape.sum(tape.exp(x)) if tape.sum(x * x) > 1.0 else tape.sum(tape.where(x > 0.0, tape.sqrt(x), 2.0 * x))

    x = np.linspace(-1.0, 1.0, 400_001)
    compiled = tape.compile(f, x, threads=2)
    for point in (x, 1e-4 * x, np.where(x == 0.0, 0.0, 1e-4 * x), 2.0 * x, np.full(400_001, 1e-9)):
        value, slope = compiled(point)
        expected = tape.gradient(f, point)
        assert value == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-12)
    assert "eager" not in compiled.explain()
    assert is_shared(compiled)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_python_code_inside_a_call_may_call_a_threaded_function():
    x = np.linspace(0.1, 1.0, 300_000)
    inner = tape.compile(waves, x, operator="value", threads=2)
    meet = tape.function_gradients(lambda x: np.asarray(x) * inner(x) * 1e-6, (lambda _v, adj, _x: adj,), name="meet")
    outer = tape.compile(lambda x: tape.sum(tape.exp(meet(tape.cos(x)))), x, operator="value", threads=2)
    assert outer(x) == pytest.approx(np.sum(np.exp(np.cos(x) * inner(np.cos(x)) * 1e-6)), rel=1e-12)


def test_several_python_threads_call_at_once():
    x = np.linspace(0.1, 1.0, 300_000)
    compiled = tape.compile(waves, x, threads=2)
    points = [x * k for k in (0.5, 1.0, 1.5, 2.0)]
    expected = [tape.compile(waves, x)(p) for p in points]
    found = {}

    def call(k):
        for _ in range(5):
            found[k] = compiled(points[k])

    callers = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for k, (value, slope) in enumerate(expected):
        assert found[k][0] == value
        np.testing.assert_array_equal(found[k][1], slope)


def test_a_call_without_the_interpreters_lock_is_right():
    x = np.linspace(0.1, 1.0, 300_000)
    compiled = tape.compile(waves, x, threads=2)
    (signature,) = compiled._signatures.values()
    arguments = (ctypes.c_void_p * 1)(x.ctypes.data)
    slope = np.zeros_like(x)
    results = (ctypes.c_void_p * 2)(None, slope.ctypes.data)
    work = signature.dispatch.borrow()
    run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    assert run(signature.programs[0].address)(ctypes.addressof(arguments), ctypes.addressof(results), work) == 0
    signature.dispatch.give_back(work)
    np.testing.assert_array_equal(slope, compiled(x)[1])


FORK = """
import os, threading, numpy as np
from adbench import tape
x = np.linspace(0.1, 1.0, 300_000)
f = lambda x: tape.sum(tape.sin(x) * tape.exp(x))
compiled = tape.compile(f, x, threads=3)
expected = compiled(x)
def same():
    value, slope = compiled(x)
    return value == expected[0] and (slope == expected[1]).all()
stop = threading.Event()
def busy():
    while not stop.is_set():
        compiled(x)
other = threading.Thread(target=busy)
other.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        good = all(same() for _ in range(3)) and any(t.name == "adbench loop helper" for t in threading.enumerate())
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
other.join()
assert same()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("body", [FORK, FORK.partition("stop = ")[0] + "assert same()\n"])
def test_forks_and_the_end_of_the_interpreter_are_safe(body):
    warned = "ignore:This process:DeprecationWarning"  # of Python 3.12 and later, to whoever forks among threads
    command = [sys.executable, "-W", warned, "-c", body]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_wrong_number_of_threads_is_an_error(threads):
    with pytest.raises(ValueError, match="threads: expected a whole number of at least 1"):
        tape.compile(waves, np.ones(3), threads=threads)
