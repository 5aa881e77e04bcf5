"""Calls: types and shapes, threads, memory, lifetimes, bad input, and reports of operations that are not native."""

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.lowering import module
from adbench.tape.compiled.runtime import compiled_call


def square(x):
    return tape.sum(x * x)


def test_operators_give_what_the_eager_engine_gives():
    f = lambda x, y: tape.sum(tape.sin(x) * y)  # noqa: E731
    x, y, v = np.linspace(0.1, 1.0, 20), np.linspace(1.0, 2.0, 20), np.linspace(-1.0, 1.0, 20)
    g = lambda x: f(x, y)  # noqa: E731
    assert tape.compile(f, x, y, wrt=0, operator="value")(x, y) == pytest.approx(f(x, y), rel=1e-15)
    np.testing.assert_allclose(
        tape.compile(f, x, y, wrt=0, operator="gradient")(x, y), tape.gradient(g, x)[1], rtol=1e-14
    )
    assert tape.compile(f, x, y, v, wrt=0, operator="jvp")(x, y, v) == pytest.approx(tape.jvp(g, x, v), rel=1e-14)
    np.testing.assert_allclose(
        tape.compile(f, x, y, v, wrt=0, operator="hvp")(x, y, v)[1], tape.hvp(g, x, v)[1], rtol=1e-13
    )
    value, back = tape.compile(lambda x: tape.exp(x) * x, x, v, operator="vjp")(x, v)
    expected = tape.vjp(lambda x: tape.exp(x) * x, x, v)
    np.testing.assert_allclose(value, expected[0], rtol=1e-15)
    np.testing.assert_allclose(back, expected[1], rtol=1e-14)


def test_a_value_with_a_derivative_inside_treats_zero_times_infinity_like_the_eager_engine():
    def slope(x):
        return tape.gradient(lambda y: tape.where(y > 0, tape.sqrt(y), 0.0), x)[1]

    with np.errstate(invalid="ignore"):
        assert slope(-1.0) == 0.0
        assert tape.compile(slope, -1.0, operator="value")(-1.0) == 0.0


def test_arguments_and_results_can_be_nests():
    f = lambda p: tape.sum(p["a"] * p["b"][0]) + p["b"][1] ** 2  # noqa: E731
    p = {"a": np.arange(3.0), "b": [np.ones(3), 2.0]}
    value, g = tape.compile(f, p)(p)
    assert value == 7.0
    assert g["a"].tolist() == [1.0] * 3
    assert g["b"][0].tolist() == [0.0, 1.0, 2.0]
    assert g["b"][1] == 4.0
    pair = tape.compile(lambda x: (x * x, tape.sum(x)), np.ones(3), operator="value")(np.full(3, 2.0))
    assert pair[0].tolist() == [4.0] * 3
    assert pair[1] == 6.0


def test_results_belong_to_the_caller_and_arguments_stay_as_they_are():
    compiled = tape.compile(square, np.ones(50))
    x = np.linspace(0.0, 1.0, 50)
    x.setflags(write=False)
    first = compiled(x)[1]
    kept = first.copy()
    second = compiled(2.0 * x)[1]
    assert first is not second
    np.testing.assert_array_equal(first, kept)
    first[:] = 7.0
    np.testing.assert_array_equal(compiled(x)[1], 2.0 * x)


def test_an_array_can_be_both_input_and_result():
    compiled = tape.compile(lambda x: x, np.ones(40), operator="value")
    x = np.arange(40.0)
    y = compiled(x)
    y[0] = 99.0
    assert x[0] == 0.0
    value, g = tape.compile(lambda x: 3.0, np.ones(40))(x)
    assert (value, g.tolist()) == (3.0, [0.0] * 40)


def test_arrays_of_any_layout_are_read_right():
    compiled = tape.compile(lambda x: tape.sum(x * np.arange(40.0).reshape(5, 8)), np.ones((5, 8)))
    x = np.random.default_rng(0).normal(size=(5, 8))
    big = np.zeros((10, 16))
    big[::2, ::2] = x
    swapped = x.astype(x.dtype.newbyteorder())
    for same in (x, np.asfortranarray(x), big[::2, ::2], swapped, x[:, ::-1][:, ::-1]):
        assert compiled(same)[0] == pytest.approx(compiled(x)[0], rel=1e-15)
        assert compiled.call(same)[0] == pytest.approx(compiled(x)[0], rel=1e-15)


def test_threads_run_the_same_function_at_once():
    compiled = tape.compile(lambda a: tape.sum(tape.linalg.eigh(a @ a.T)[0] * a[0]) + tape.sum(tape.exp(a)), np.eye(6))
    rng = np.random.default_rng(0)
    points = [rng.normal(size=(6, 6)) for _ in range(8)]
    expected = [compiled(p)[1] for p in points]
    wrong = []

    def work(k):
        for _ in range(40):
            if not np.array_equal(compiled(points[k])[1], expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_function_that_calls_itself_in_a_node_has_its_own_workspace():
    inner = tape.compile(lambda x: tape.sum(tape.exp(x)) * 1.0, np.ones(30))
    node = tape.function_gradients(
        lambda x: inner(np.asarray(x, float))[0],
        reverse=(lambda _v, adj, x: adj * inner(x)[1],),
        name="compiled inside",
    )
    outer = tape.compile(lambda x: tape.sum(tape.sin(x)) * node(x), np.ones(30))
    x = np.linspace(0.0, 1.0, 30)
    expected = tape.gradient(lambda x: tape.sum(tape.sin(x)) * tape.sum(tape.exp(x)), x)
    np.testing.assert_allclose(outer(x)[1], expected[1], rtol=1e-13)
    np.testing.assert_allclose(outer(x)[1], expected[1], rtol=1e-13)


def test_the_entry_point_keeps_its_code_alive_and_no_longer():
    compiled = tape.compile(square, np.ones(30))
    call, alive = compiled.call, weakref.ref(compiled)
    del compiled
    gc.collect()
    assert call(np.full(30, 2.0))[0] == 120.0
    assert alive() is not None
    del call
    gc.collect()
    assert alive() is None


def test_calls_leave_no_memory_behind():
    compiled = tape.compile(lambda x: x @ x + tape.sum(x), np.ones(1000))
    x = np.ones(1000)
    compiled(x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2000):
        compiled.call(x)
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_settings_are_compared_natively(monkeypatch):
    f = lambda x, n, name, on: x * n if name == "times" and on else x + n  # noqa: E731
    compiled = tape.compile(f, 2.0, 1000, "times", True, wrt=0)
    assert compiled.call(3.0, int("1000"), "times", True) == (3000.0, 1000.0)
    assert compiled.call(3.0, 1001, "times", True) == (3003.0, 1001.0)
    assert compiled.call(3.0, 1000, "plus", True) == (1003.0, 1.0)
    assert compiled.call(3.0, 1000, "times", False) == (1003.0, 1.0)
    assert compiled.call(3.0, 10**30, "times", True)[1] == 1e30
    assert compiled.call(3.0, True, "times", True) == (3.0, 1.0)
    monkeypatch.setattr(compiled_call, "FlatArguments", None)  # no call can go through Python
    assert compiled.call(3.0, int("1001"), "times", True) == (3003.0, 1001.0)
    assert compiled.call(np.float64(3.0), 1000, "plus", True) == (1003.0, 1.0)


def python_functions_called(work):
    """The names of the Python functions that a call enters."""
    names = []
    sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names[1:]


def test_a_call_enters_no_python_function_while_a_recording_holds():
    compiled = tape.compile(lambda x, y: x * y if x > 0.0 else x - y, 2.0, np.ones(2)[0])
    assert python_functions_called(lambda: compiled(3.0, 4.0)) == []
    assert "_by_python" in python_functions_called(lambda: compiled(-3.0, 4.0))  # another path: recorded now
    assert python_functions_called(lambda: compiled(-2.0, 4.0)) == []
    assert compiled(3.0, 4.0) == (12.0, (4.0, 3.0))
    assert compiled(*[-3.0], *(4.0,)) == compiled.__call__(-3.0, 4.0) == (-7.0, (1.0, -1.0))


def test_arguments_by_name_are_refused_with_and_without_a_recording():
    compiled = tape.compile(lambda x: x * x, 2.0)
    for call in (compiled, compiled.__call__):
        with pytest.raises(TypeError, match="by position, got x by name"):
            call(x=3.0)
    assert compiled(3.0) == (9.0, 6.0)


def test_a_failed_call_leaves_the_function_usable():
    compiled = tape.compile(lambda x: x * x, 2.0)
    for bad in ((), (1.0, 2.0), ("two",), (None,)):
        with pytest.raises(TypeError):
            compiled(*bad)
        assert compiled(3.0) == (9.0, 6.0)


def test_calls_without_the_native_entry_point_are_as_right(monkeypatch):
    monkeypatch.setattr("adbench.tape.compiled.runtime.compiled_call.layouts_are_known", lambda: False)
    compiled = tape.compile(lambda x, y: tape.sum(x * y), np.ones(30), 2.0)
    value, (gx, gy) = compiled(np.ones(30), 3.0)
    assert (value, gx.tolist(), gy) == (90.0, [3.0] * 30, 30.0)


@pytest.mark.parametrize("piece", [20, 60, 200])
def test_a_program_in_pieces_gives_the_same_result(monkeypatch, piece):
    def f(x):
        s, t = x[0], tape.sum(x)
        for k in range(30):
            s = s + (x[1] * x[1] + 1.0) / s if s > -1e9 else t
            t = t + tape.sin(s) * x[k % 3]
        y = x * t
        for _ in range(5):
            s = s + tape.sum(y * y) / (1.0 + s * s)
        return tape.where(s > t, s, t) * tape.sum(y)

    expected = tape.gradient(f, np.linspace(0.5, 2.0, 40))
    monkeypatch.setattr(module, "PIECES", (piece,) * 4)
    compiled = tape.compile(f, np.linspace(0.5, 1.0, 40))
    value, g = compiled(np.linspace(0.5, 2.0, 40))
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(g, expected[1], rtol=1e-11)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_of_optimisation_gives_the_same_result(level):
    f = lambda x: tape.sum(tape.log1p_exp(x) * tape.tanh(x)) + x[0] / x[1]  # noqa: E731
    x = np.linspace(0.5, 3.0, 37)
    value, g = tape.compile(f, x, level=level)(x)
    expected = tape.gradient(f, x)
    assert value == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(g, expected[1], rtol=1e-13)


def test_fast_math_is_close():
    f = lambda x: tape.sum(x * x / (1.0 + x)) * tape.exp(x[0])  # noqa: E731
    x = np.linspace(0.5, 3.0, 1000)
    value, g = tape.compile(f, x, fast_math=True)(x)
    expected = tape.gradient(f, x)
    assert value == pytest.approx(expected[0], rel=1e-11)
    np.testing.assert_allclose(g, expected[1], rtol=1e-10)


def test_a_watcher_sees_every_phase():
    seen = []

    class Watch:
        def __init__(self, name):
            seen.append(name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    compiled = tape.compile(square, np.ones(3), watch=Watch)
    assert seen == ["record", "lower", "compile"]
    assert all(s > 0 for s in compiled.seconds.values())


def test_input_that_the_eager_engine_refuses_raises_the_same_error():
    with pytest.raises(tape.NotScalarError, match="gradient"):
        tape.compile(lambda x: x * 2.0, np.ones(3))
    with pytest.raises(TypeError, match="of a value being differentiated"):
        tape.compile(lambda x: np.float64(float(x)) * 2.0, 1.0)
    with pytest.raises(tape.UnsupportedError, match="convolve"):
        tape.compile(lambda x: np.sum(np.convolve(x, x)), np.ones(3))
    with pytest.raises(ValueError, match="shapes"):
        tape.compile(lambda x: tape.sum(x + np.ones(4)), np.ones(3))
    compiled = tape.compile(lambda a: tape.sum(tape.linalg.inv(a)), np.eye(3))
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((3, 3)))
    assert compiled(np.eye(3))[0] == 3.0
    lower = tape.compile(lambda a: tape.sum(tape.linalg.cholesky(a)), np.eye(3))
    with pytest.raises(np.linalg.LinAlgError):
        lower(-np.eye(3))


def test_bad_arguments_raise_an_error_of_one_line():
    with pytest.raises(ValueError, match="operator: expected one of"):
        tape.compile(square, 1.0, operator="curl")
    with pytest.raises(ValueError, match="positions from 0 to 0"):
        tape.compile(square, 1.0, wrt=3)
    with pytest.raises(TypeError, match="expected numbers, got str"):
        tape.compile(square, "one")
    compiled = tape.compile(square, 1.0)
    with pytest.raises(TypeError, match="expected 1 arguments"):
        compiled(1.0, 2.0)
    with pytest.raises(TypeError, match="real numbers"):
        compiled(np.ones(2, complex))


def test_without_memory_for_the_workspace_a_call_runs_eagerly_and_reports_it(monkeypatch):
    def grow(_self):
        raise MemoryError("of 8 bytes")

    monkeypatch.setattr("adbench.tape.compiled.runtime.entry.DispatchTable.grow", grow)
    compiled = tape.compile(square, np.ones(3))
    assert compiled(np.full(3, 2.0))[1].tolist() == [4.0] * 3
    assert "not enough memory for the workspace: of 8 bytes" in compiled.explain()


TIGHT = """
import resource
import numpy as np
from adbench import tape

x = np.ones(20_000_000)
call = tape.compile(lambda x: tape.sum(x * x), x).call
call(x)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 240_000_000,) * 2)
first = call(x)
for _ in range(3):
    try:
        call(x)
    except MemoryError:
        print("refused")
del first
print(call(x)[1][-1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.slow
def test_without_memory_for_a_result_a_call_raises_memory_error_and_the_next_is_right():
    done = subprocess.run([sys.executable, "-c", TIGHT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split() == ["refused"] * 3 + ["2.0"]


def test_a_callback_inside_runs_eagerly_and_is_reported():
    def f(x):
        y = tape.Var(x.val * x.val)
        tape.reverse_pass_callback(lambda: None)
        return y * 0.0 + x * x

    compiled = tape.compile(f, 2.0)
    assert compiled(3.0) == tape.gradient(f, 3.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_careful_program_runs_if_the_result_is_nan():
    f = lambda x: tape.sum(tape.where(x > 0.0, tape.sqrt(x), 2.0 * x))  # noqa: E731
    compiled = tape.compile(f, np.ones(40))
    x = np.linspace(-1.0, 1.0, 41)[:40]
    expected = tape.gradient(f, np.where(x == 0, 0.0, x))
    np.testing.assert_allclose(compiled(x)[1], expected[1], rtol=1e-14)
    np.testing.assert_allclose(compiled(np.abs(x) + 0.1)[1], 0.5 / np.sqrt(np.abs(x) + 0.1), rtol=1e-14)
    assert "careful" in compiled.explain()


def test_a_function_compiled_inside_a_recording_may_use_outer_values():
    def f(x):
        inner = tape.compile(lambda y: y * y + x, 1.0)  # x is not a result itself, but part of an operation
        value, slope = inner(2.0)
        return value * x + slope

    outer = tape.compile(f, 1.1)
    for x in (1.1, 3.0):
        assert outer(x) == pytest.approx((4.0 * x + x * x + 4.0, 4.0 + 2.0 * x), rel=1e-14)
