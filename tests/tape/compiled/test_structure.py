"""The structure of emitted code: loops stay loops, arrays take one pass, and nothing is computed twice or unused."""

import re
import threading
import tracemalloc

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.inspection import listing


def loops_in(found):
    """The number of loops; each has one counter."""
    return len(re.findall(r"= phi i64 ", found.llvm))


def calls_of(found, name):
    """The number of calls of a function of the C library or LAPACK."""
    return len(re.findall(rf"call [^@\n]*@{name}\(", found.llvm))


def program_of(compiled):
    (signature,) = compiled._signatures.values()
    (program,) = signature.programs
    return program


def workspace(compiled):
    """Doubles."""
    return program_of(compiled).lowered.work


def drift(n):
    return lambda x: tape.loop(lambda _, s: s + 0.001 * tape.sin(s * x[0]) * x[1], x[0], n)


TWO = np.array([0.7, 1.1])


def test_the_code_of_a_loop_does_not_grow_with_its_iterations_in_either_direction():
    short, long = listing(drift(50), TWO), listing(drift(5_000), TWO)
    assert loops_in(short) == loops_in(long) == 2
    assert len(short.assembly.splitlines()) == len(long.assembly.splitlines())
    unrolled = listing(lambda x: drift(7)(x), TWO)  # loops of fewer than eight iterations are unrolled
    assert loops_in(unrolled) == 0


def test_a_loop_stores_n_states_and_with_checkpoints_root_n():
    n = 10_000
    stored, less = tape.compile(drift(n), TWO), tape.compile(drift(n), TWO, checkpointed=True)
    expected = tape.gradient(drift(n), TWO + 0.1)
    for compiled in (stored, less):
        value, slope = compiled(TWO + 0.1)
        assert value == pytest.approx(expected[0], rel=1e-9)
        assert slope == pytest.approx(expected[1], rel=1e-9)
    assert n <= workspace(stored) <= 1.1 * n
    assert workspace(less) <= 8 * np.sqrt(n)


@pytest.mark.parametrize("x", [0.7, np.array([0.7]), np.array([[0.7]])])
def test_the_gradient_of_a_loop_of_one_number_is_one_loop_without_stored_states(x):
    """Value and tangent share one loop; a sweep would store each state and need a second loop."""

    def path(x):
        return tape.sum(tape.loop(lambda i, s: s + tape.sin(s * x) * 0.001, x, 5_000) ** 2)

    assert loops_in(listing(path, x)) == 1
    compiled = tape.compile(path, x)
    assert workspace(compiled) < 50
    value, slope = compiled(x + 0.1)
    expected = tape.gradient(path, x + 0.1)
    assert value == pytest.approx(expected[0], rel=1e-12)
    assert np.shape(slope) == np.shape(x)
    assert slope == pytest.approx(expected[1], rel=1e-10)


def test_at_zero_times_infinity_a_loop_of_one_number_is_swept_like_in_the_eager_engine():
    def path(x):
        return tape.loop(lambda _, s: s + tape.where(x > 0.0, tape.sqrt(x), 0.0) * 0.5, 1.0, 20)

    compiled = tape.compile(path, 0.3)
    assert loops_in(listing(path, 0.3)) == 1
    assert compiled(0.0) == tape.gradient(path, 0.0) == (1.0, 0.0)


def test_elementwise_operations_and_reductions_share_one_pass_without_stored_intermediates():
    f = lambda x, y: tape.sum(tape.exp(-x * x) * tape.sqrt(y) / (1.0 + x)) + tape.max(x * y)  # noqa: E731
    x = np.linspace(0.5, 1.5, 1024)
    value = tape.compile(f, x, x, operator="value")
    assert workspace(value) == 0
    g = lambda x, y: tape.sum(tape.exp(-x * x) * tape.sqrt(y) / (1.0 + x))  # noqa: E731
    assert workspace(tape.compile(g, x, x)) == 0
    assert loops_in(listing(g, x, x)) == 1  # value and both gradients


def test_a_long_loop_that_only_reads_asks_for_later_elements_once_for_each_array():
    """Slices of one array that begin close to each other share the request."""

    def sums(x, y, scale):
        return tape.sum((y[1:] - scale * x[1:] * x[:-1]) ** 2)

    for n, share in ((1_000, 0), (2**18 + 1, 2 / 3)):  # x[1:] and x[:-1] of three loads
        x = np.linspace(0.1, 1.0, n)
        text = listing(sums, x, x * x, 0.3, wrt=(2,)).llvm
        assert text.count("call void @llvm.prefetch") == share * len(re.findall(r" load <8 x double>", text))
        value, (slope,) = tape.compile(sums, x, x * x, 0.3, wrt=(2,))(x, x * x, 0.3)
        rest = x[1:] * x[1:] - 0.3 * x[1:] * x[:-1]
        np.testing.assert_allclose([value, slope], [np.sum(rest**2), -2 * np.sum(rest * x[1:] * x[:-1])], rtol=1e-12)
    stored = listing(lambda x: tape.sum(x * x), np.ones(2**18)).llvm
    assert "prefetch" not in stored
    summed = listing(lambda x, y: tape.sum(tape.sum(x * y, axis=0) ** 2), np.ones((3, 2**18)), 0.3, wrt=(1,)).llvm
    asking = [block for block in re.split(r"(?m)^\S+:", summed) if "call void @llvm.prefetch" in block]
    assert asking
    assert not [block for block in asking if "store <8 x double>" in block]


def test_broadcasts_slices_and_transposes_are_not_copied():
    def f(a, y):
        return tape.sum((a[:, ::2].T[1:] - y[1:, None]) ** 2)

    value = tape.compile(f, np.ones((40, 60)), np.zeros(30), operator="value")
    assert value(np.full((40, 60), 3.0), np.ones(30)) == 4.0 * 29 * 40
    assert workspace(value) == 0


def test_the_same_operation_is_computed_once():
    found = listing(lambda x: tape.sin(x) * tape.sin(x) + tape.sin(x) / (2.0 + tape.sin(x)), 0.7)
    assert calls_of(found, "adbench_sin_cos_1") == 1  # both at once


def test_constants_are_computed_when_the_function_is_recorded():
    weights = np.linspace(0.1, 1.0, 40)
    found = listing(lambda x: tape.sum(tape.sin(weights) * x) * tape.cos(2.0), np.ones(40))
    assert calls_of(found, "adbench_sin_cos_1") == calls_of(found, "adbench_sin_cos_8") == 0


def test_unused_values_are_not_computed():
    f = lambda x, y: tape.expm1(x) * tape.expm1(y) + 0.0 * x  # noqa: E731  # with exp as derivative
    assert calls_of(listing(f, 0.7, 0.3, wrt=(0, 1)), "adbench_exp_1") == 2
    assert calls_of(listing(f, 0.7, 0.3, wrt=(0,)), "adbench_exp_1") == 1

    def wasteful(x):
        tape.tan(x) * 3.0
        return x * x

    assert calls_of(listing(wasteful, 0.7), "adbench_tan_1") == 0


def test_a_product_that_is_only_summed_is_not_formed():
    products = r"(adbench_dgemm|product_\w+)"
    for n in (30, 150):  # generated code for small matrices, BLAS for others
        a, b = np.ones((2, n, n))
        assert calls_of(listing(lambda a, b: tape.sum(a @ b), a, b), products) == 0
        assert calls_of(listing(lambda a, b: tape.sum((a @ b) ** 2), a, b), products) == 3
    assert calls_of(listing(lambda a, b: tape.sum((a @ b) ** 2), a, b), "adbench_dgemm") == 3


def test_matrices_go_to_blas_and_lapack_and_their_factors_are_shared():
    weights = np.cos(np.arange(1e4)).reshape(100, 100)
    a = np.eye(100) + 0.001 * weights
    large = np.eye(300)
    found = listing(lambda a: tape.linalg.slogdet(a)[1] + tape.sum(tape.linalg.inv(a) * large), large)
    assert calls_of(found, "adbench_dgetrf") == calls_of(found, "adbench_dgetri") == 1
    assert calls_of(listing(lambda a: tape.sum(tape.linalg.solve(a, weights)), a), "adbench_dgetrs") >= 1
    found = listing(lambda a: tape.sum(tape.linalg.cholesky(a @ a.T) * weights), a)
    assert calls_of(found, "adbench_dpotrf") == 1
    # Generated code for small ones.
    assert calls_of(listing(lambda a: tape.linalg.slogdet(a)[1], a), "adbench_dgetrf") == 0
    small = lambda a: tape.sum(tape.linalg.solve(a, tape.linalg.cholesky(a @ a.T)))  # noqa: E731 - for two arguments
    assert calls_of(listing(small, a[:8, :8]), r"adbench_d(getr|potr|trtr)\w+") == 0
    assert calls_of(listing(small, a[:9, :9]), r"adbench_d(getr|potr|trtr)\w+") >= 3


@pytest.mark.parametrize(
    "f", [lambda x: tape.sum(tape.exp(x) * x), drift(200), lambda x: tape.sum(tape.cumsum(x) ** 2)]
)
def test_a_call_allocates_nothing_but_its_result(f):
    x = np.linspace(0.1, 0.2, 10_000)
    compiled = tape.compile(lambda x: tape.sum(f(x)), x)
    (signature,) = compiled._signatures.values()
    call = compiled.call
    for _ in range(3):
        call(x)
    blocks = len(signature.dispatch._blocks)
    tracemalloc.start()  # numpy reports its arrays to it
    try:
        call(x)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = call(x)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert result[1].nbytes <= peak <= result[1].nbytes + 1_000
    assert len(signature.dispatch._blocks) == blocks == 1
    declared = "\n".join(m.text() for m in program_of(compiled).lowered.modules)
    assert "alloc(" not in declared


def test_two_threads_in_one_function_at_once_have_a_workspace_each():
    both = threading.Barrier(2)

    def meet(x):
        both.wait(timeout=60)  # releases the interpreter's lock until the other thread arrives
        return np.array(x, float)

    waiting = tape.function_gradients(meet, (lambda _v, adj, _x: adj,), name="meet")

    def f(x):
        before = tape.exp(x)
        after = waiting(x)
        return tape.sum(tape.cumsum(before) * after)

    def run(work, points):
        results = {}
        threads = [threading.Thread(target=lambda k=k, x=x: results.update({k: work(x)})) for k, x in enumerate(points)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return [results[k] for k in range(len(points))]

    points = [np.linspace(0.0, 1.0, 40), np.linspace(2.0, 3.0, 40)]
    made = run(lambda x: tape.compile(f, x), points)  # compiling runs it once
    compiled = made[0]
    found = run(compiled, points)
    expected = run(lambda x: tape.gradient(f, x), points)
    for (value, slope), (value_there, slope_there) in zip(found, expected, strict=True):
        assert value == pytest.approx(value_there, rel=1e-13)
        np.testing.assert_allclose(slope, slope_there, rtol=1e-12)
    (signature,) = compiled._signatures.values()
    assert len(signature.dispatch._blocks) == 2
