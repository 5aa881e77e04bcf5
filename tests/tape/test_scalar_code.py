"""The machine code for scalars makes the records, results and errors of the Python versions."""

import ctypes
import gc
import math
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

from adbench import tape
from adbench.tape.core.rule import Active
from adbench.tape.fast import switch
from adbench.tape.fast.scalar_functions import row
from adbench.tape.machine import layout, scalar_code

BIG = 10**400


def turns(x):
    s = x
    for k in range(1, 30):
        s = s + (x * x + 1.0) / s - k * tape.sin(s) * 0.5 + tape.exp(-x) / k
    return s


pytestmark = pytest.mark.skipif(bool(tape.load_machine_code()), reason=tape.load_machine_code())

OF_ONE = [rule for rule in scalar_code.FUNCTIONS if len(row(rule)) == 2]
OF_TWO = [rule for rule in scalar_code.FUNCTIONS if len(row(rule)) == 3]
VECTOR, MATRIX = np.array([0.5, -1.5, 2.0]), np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
LONG = np.linspace(0.1, 1.0, 5_000)
ELEMENTS = {
    "each element": lambda x, A: sum(a * a * k for k, a in enumerate(x)) + sum(a for row in A for a in row),
    "by one index": lambda x, A: x[0] * x[1] + x[2] / x[0] - x[1] * x[1],
    "by two indices": lambda x, A: A[0, 0] * A[1, 2] - A[0, 1] / A[1, 1] + A[1][0] * x[1],
    "from the end": lambda x, A: x[-1] * x[-3] + A[-1, 0] * A[0, -1],
    "other types of indices": lambda x, A: x[np.int64(1)] * x[True].sum() + A[(1, 1)] * A[1, True].sum() + x[()].sum(),
    "next to the whole": lambda x, A: tape.sum(x * x) * x[1] + tape.sum(A[0]) * A[0, 1] + tape.sum(A.T[0]) * A.T[2, 1],
    "of results": lambda x, A: (x * 2.0)[1] * (A @ x)[0] + (A * x)[1, 2] + tape.exp(x)[0],
    "after a new value": lambda x, A: with_new_values(x, A),
    "inside another derivative": lambda x, A: (
        x[0] * tape.gradient(lambda y: y[0] * x[1] + y[1] * y[0] * A[0, 0], VECTOR[:2])[1][0]
    ),
    "far along a vector": lambda x, A: x[0] * (tape.stack([x[0]] * 5_000) * LONG)[4_500] + x[1],
}


def with_new_values(x, A):
    y, B = x * A[0, 0], A * x[0]
    first = y[0] * B[0, 0]
    y[0] = first
    B[0, 0] = y[0] * 2.0
    return first * y[0] * B[0, 0] + y[1] * B[1, 1]


PROGRAMS = {
    "turns": turns,
    "constants on the right": lambda x: (x + 2 - 0.5) * 3 / 4 - np.float64(1.5) + x * np.float64(2.5) / np.float64(3),
    "constants on the left": lambda x: 2 + (1.5 - (3 * (4 / x))) - np.float64(2.5) * x + np.float64(1.0) / x,
    "minus one": lambda x: -1 * x + x * -1 - (-1 - x) + -1 / x + x / -1,
    "booleans": lambda x: x * True + False - x / True,
    "an operand twice": lambda x: x * x + x / x - (x + x) * (x - x),
    "a square": lambda x: x**2 + (x - 1.0) ** 2.0 + (x * x) ** np.float64(2.0),
    "other powers": lambda x: x**3 + x**0.5 + 2**x + x**x + x**-1 + x**True + x**-2.5 + x ** np.float64(2.0) + x**0,
    "large and small powers": lambda x: x**700 + x**1.1 + (x / 10) ** 400 + x**-310.5,
    "negative": lambda x: -x * (-(x * x)),
    "a root times itself": lambda x: tape.sqrt(x) * tape.sqrt(x) + tape.sqrt(x) ** 2,
    "in place": lambda x: in_place(x),
    "functions": lambda x: sum(f(x) * f(x + 0.1) for f in OF_ONE),
    "functions of two arguments": lambda x: sum(
        f(x, x + 0.1) + f(x, 2) * f(x, 0.25) + f(0.5, x) + f(3, x) for f in OF_TWO
    ),
    "functions of numpy's numbers": lambda x: sum(
        f(x, np.float64(0.5)) - f(np.float64(0.5), x) + f(x, -1) for f in OF_TWO
    ),
    "functions of one number twice": lambda x: sum(f(x, x) for f in OF_TWO),
    "numpy's functions": lambda x: np.sin(x) + np.exp(x) * np.sqrt(x) + np.multiply(x, 2.0) + np.add(1.0, x),
    "arrays": lambda x: tape.sum(np.arange(3.0) * x + x * np.arange(3.0) - tape.stack([x, x * 2.0, 1.0 / x]) / x),
    "an outer level": lambda x: tape.gradient(lambda y: x * y * y + y / x - tape.sin(x * y) + 2 * x, 0.7)[1] * x,
    "functions across levels": lambda x: x * tape.gradient(lambda y: sum(f(x, y) + f(y, x) for f in OF_TWO), 0.7)[1],
    "unused": lambda x: (x * x / 3.0, x + 1.0)[1],
    "zero": lambda x: (x - x) * x + 0 * x + x * 0.0 + 0 / x,
    "underflow": lambda x: 1e-200 / (x * 1e200) + (x * 1e-200) * (x * 1e-200),
    "overflow": lambda x: x * 1e308 * 10.0 - x,
}


def in_place(x):
    s = 1.0 * x
    s += x
    s -= 0.25
    s *= x
    s /= 3
    s **= 2
    return s


def described(records):
    """Each record with places of cells in place of cells."""
    place = {id(record[1]): k for k, record in enumerate(records)}
    return [
        (rule.name, out.val, place.get(id(a)), place.get(id(b)), p, type(p), q, type(q))
        for rule, out, a, b, p, q in records
        if not isinstance(a, (list, tuple)) and not isinstance(out.val, Active)
    ]


def outcome(f, x):
    """The records of f at x, and its value and gradient."""
    with tape.nested() as records:
        f(tape.Var(x))
        made = described(records)
    return repr(made), repr(tape.gradient(f, x)), repr(tape.hessian(f, x))


@pytest.mark.filterwarnings("ignore:overflow|invalid|divide:RuntimeWarning")
@pytest.mark.parametrize("point", [1.3, 0.0, -0.7, 1e-320, 1e300, math.inf, math.nan])
@pytest.mark.parametrize("name", PROGRAMS)
def test_records_and_derivatives_are_those_of_python(name, point):
    f = PROGRAMS[name]

    def tried():
        with np.errstate(all="ignore"):
            try:
                return outcome(f, point)
            except Exception as error:  # also the errors are compared
                return type(error).__name__, str(error)

    found = tried()
    with switch.python_only():
        assert found == tried()


POINTS = [
    0.3,
    -0.3,
    0.0,
    -0.0,
    0.999,
    1.0,
    -1.0,
    1.3,
    5.0,
    -5.0,
    40.0,
    -40.0,
    709.9,
    -745.2,
    1e-9,
    1e-310,
    1e160,
    math.inf,
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rule", scalar_code.FUNCTIONS, ids=lambda rule: rule.name)
def test_each_function_has_the_records_of_python_at_ordinary_and_special_points(rule):
    def every_record():
        for a in POINTS:
            for b in POINTS if rule in OF_TWO else [0.0]:
                with tape.nested() as records:
                    x, y = tape.Var(a), tape.Var(b)
                    if rule in OF_ONE:
                        rule(x)
                    else:
                        for arguments in (
                            (x, y),
                            (y, x),
                            (x, x),
                            (x, b),
                            (b, x),
                            (x, np.float64(b)),
                            (x, 2),
                            (3, x),
                            (x, -1),
                        ):
                            rule(*arguments)
                    yield repr(described(records))

    found = list(every_record())
    with switch.python_only():
        assert found == list(every_record())


def of_array(f, *, which):
    """The records of f, and its derivatives, in the vector or the matrix, and adjoints of a sweep that keeps them."""
    with tape.nested() as records:
        x, A = tape.Var(VECTOR), tape.Var(MATRIX)
        y = f(x, A)
        made = [(r[0].name, getattr(r[1], "val", None), type(r[2]), type(r[3]), r[4]) for r in records]
        y.grad()
        kept = [np.array(r[1].adj) for r in records]
    g = (lambda x: f(x, MATRIX)) if which == "x" else (lambda A: f(VECTOR, A))
    point = VECTOR if which == "x" else MATRIX
    return made, kept, tape.gradient(g, point), tape.hessian(g, point)[2]


@pytest.mark.parametrize("which", ["x", "A"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_of_arrays_have_the_records_and_derivatives_of_python(name, which):
    found = of_array(ELEMENTS[name], which=which)
    with switch.python_only():
        assert repr(found) == repr(of_array(ELEMENTS[name], which=which))


@pytest.mark.parametrize("index", [3, -4, (0, 3), (2, 0), 10**30, 1.5, "a", None, (0, 0, 0)])
def test_an_index_outside_of_an_array_gives_the_outcome_of_python(index):
    def outcome(of):
        def f(A):
            x = of(A)
            x[0] if x.ndim == 1 else x[0, 0]  # the machine code treats later reads
            return tape.sum(x[index] * 2.0)

        try:
            return repr(tape.gradient(f, MATRIX))
        except Exception as error:  # also errors are compared
            return type(error), str(error)

    for of in (lambda A: A, lambda A: A[0]):
        found = outcome(of)
        with switch.python_only():
            assert found == outcome(of)


def test_elements_of_arrays_that_are_not_contiguous_are_read_and_added_to():
    weights = np.arange(12.0).reshape(3, 4)
    for view in (weights[:, ::2], weights.T, weights[::-1], weights.astype(np.float32)):
        value, slope = tape.gradient(lambda A: A[0, 1] * A[1, 0] + A[1, 1] * A[1, 1], view)
        a, b, c = float(view[0, 1]), float(view[1, 0]), float(view[1, 1])
        expected = np.zeros(view.shape)
        expected[0, 1], expected[1, 0], expected[1, 1] = b, a, 2 * c
        assert value == a * b + c * c
        np.testing.assert_array_equal(slope, expected)


REFUSED = {
    "an integer beyond floats": lambda x: x * BIG,
    "an integer beyond floats, reflected": lambda x: BIG - x,
    "a complex number": lambda x: x + 1j,
    "text": lambda x: x * "a",
    "nothing": lambda x: None / x,
    "a modulus": lambda x: pow(x, 2, 3),
    "a function without an argument": lambda x: tape.sin(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_operand_raises_the_same_type_of_error(name):
    def error():
        with pytest.raises(Exception) as caught:  # noqa: PT011  # its type is compared
            tape.gradient(REFUSED[name], 1.3)
        return caught.type

    found = error()
    with switch.python_only():
        assert found is error()
    assert tape.gradient(lambda x: x * x, 3.0) == (9.0, 6.0)


def test_a_division_by_zero_warns_as_numpy():
    for f in (lambda x: x / 0, lambda x: 1 / (x - 1.0), lambda x: x / (x - 1.0)):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            tape.gradient(f, 1.0)


def test_a_variable_of_a_closed_tape_is_refused():
    with tape.nested():
        x, y = tape.Var(2.0), tape.Var(3.0)
    for f in (lambda: x * y, lambda: x + 1.0, lambda: 1 - x, lambda: -x, lambda: x**2, lambda: tape.sin(x)):
        with pytest.raises(tape.ClosedTapeError):
            f()


def test_the_direct_style_reads_adjoints_that_later_sweeps_do_not_change():
    with tape.nested():
        x = tape.Var(2.0)
        y = x * x * x
        y.grad()
        first = x.adj
        (y * x).grad()
        assert (first, x.adj, y.adj) == (12.0, 32.0, 2.0)


def test_an_active_adjoint_is_left_to_python():
    def weighted(w):
        with tape.nested() as records:
            x = tape.Var(1.5)
            y = 2.0 * x
            x.adj, y.adj = w, 1.0
            switch.PASSES[0](reversed(records))
            return x.adj * w

    assert tape.gradient(weighted, 3.0) == (15.0, 8.0)


def test_weights_that_the_caller_holds_are_not_changed():
    weights = np.ones(3)
    found = tape.vjp(lambda x: (x, x[1] * 2.0, x[0]), VECTOR, (weights, 1.0, 1.0))[1]
    np.testing.assert_array_equal(found, [2.0, 3.0, 1.0])
    np.testing.assert_array_equal(weights, np.ones(3))


def test_an_array_of_another_type_is_left_to_python():
    with tape.nested():
        x = tape.Var(VECTOR)
        assert x[1].val == -1.5
        x.val = VECTOR.astype(np.float32)
        assert [x[k].val for k in range(3)] == [0.5, -1.5, 2.0]


def test_a_class_derived_from_a_scalar_keeps_its_side():
    class Named(tape.Scalar):
        """A scalar of another class, as a program may define it."""

    with tape.nested():
        x = tape.Var(3.0)
        y = Named()
        y.val, y.adj, y.tape = 2.0, 0.0, x.tape
        found = [y - 1.0, 1.0 - y, y / x, y**2, -y]
        assert [one.val for one in found] == [1.0, -1.0, 2 / 3, 4.0, -2.0]


def test_a_callback_between_scalars_is_called_in_the_sweep():
    def f(x):
        y = x * 2.0

        def chain():
            seen.append(y.adj)

        tape.reverse_pass_callback(chain)
        return y * y * 3.0

    seen = []
    assert tape.gradient(f, 1.0) == (12.0, 24.0)
    assert seen == [12.0]


def test_no_reference_and_no_memory_is_lost():
    shared = [None, tape.core.rule, tape.add, tape.multiply, tape.divide, tape.subtract, tape.sin, 2, 1.5, np.float64]
    three, wide = 3.5, np.float64(2.5)

    def f(x):
        s = x
        for _ in range(20):
            s = (s * x + 2 - three) / (wide + s * s) - 1 * x + (-s) ** 2 / 70 + tape.sin(s) * wide + three / (s * s + 1)
            s = tape.logaddexp(s, x) - tape.hypot(s, 2) + tape.maximum(s, 0.5) * tape.erf(s * s) ** 0.5
        return s

    tape.gradient(f, 1.3)
    shared += [three, wide, scalar_code.ZERO, tape.core.recording.ASK]
    gc.collect()
    before = [sys.getrefcount(thing) for thing in shared]
    tracemalloc.start()
    tape.gradient(f, 1.3)
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(300):
        tape.gradient(f, 1.3)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    after = [sys.getrefcount(thing) for thing in shared]
    assert all(abs(a - b) < 40 for a, b in zip(after, before, strict=True)), list(zip(before, after, strict=True))
    assert grown < 20_000


def test_the_collector_may_run_at_any_allocation():
    before = gc.get_threshold()
    try:
        gc.set_threshold(1, 1, 1)
        found = tape.gradient(turns, 1.3)
    finally:
        gc.set_threshold(*before)
    with switch.python_only():
        assert found == tape.gradient(turns, 1.3)


def test_the_code_outlives_everything_that_refers_to_it():
    """At the end of a process, Python visits the functions after it has dropped the modules."""
    code = scalar_code.MachineCode()
    before = sys.getrefcount(code)
    kept = weakref.ref(code)
    del code
    gc.collect()
    assert before == 3  # the name, the argument, and the reference that is never given back
    assert kept() is not None


def test_threads_record_on_their_own_tapes():
    results = {}

    def work(k):
        results[k] = [tape.gradient(turns, 1.0 + k) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[k] == [tape.gradient(turns, 1.0 + k)] * 20 for k in range(4))


@pytest.fixture
def fresh(monkeypatch):
    """The state before anything was loaded."""
    with switch.python_only():
        for name, value in (("refused", ""), ("left", 50.0)):
            monkeypatch.setattr(switch._LoadingState, name, value)
        switch.PASSES[0] = switch.counted_sweep
        yield
        monkeypatch.undo()


@pytest.mark.usefixtures("fresh")
def test_the_code_is_loaded_once_enough_records_were_swept():
    tape.gradient(lambda x: x * x, 1.3)
    assert switch._LoadingState.code is None
    for _ in range(3):
        assert tape.gradient(turns, 1.3) == tape.gradient(turns, 1.3)
    assert switch._LoadingState.code is not None
    assert switch.PASSES[0] is not switch.counted_sweep


@pytest.mark.usefixtures("fresh")
def test_an_unknown_place_of_the_counts_keeps_the_python_versions(monkeypatch):
    monkeypatch.setattr(layout, "COUNT", 8)
    assert tape.load_machine_code() == "unknown layout of counts"


@pytest.mark.usefixtures("fresh")
def test_an_unknown_layout_keeps_the_python_versions(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    assert tape.load_machine_code() == "machine code for scalars knows CPython 3.11 to 3.13 on 64 bits only"
    assert switch._LoadingState.code is None
    assert tape.gradient(turns, 1.3)[1] == pytest.approx(tape.jvp(turns, 1.3, 1.0)[1])


@pytest.mark.usefixtures("fresh")
def test_without_llvmlite_the_python_versions_stay(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbench.tape.machine.scalar_code", None)
    assert "scalar_code" in tape.load_machine_code()
    assert tape.gradient(lambda x: x * x, 3.0) == (9.0, 6.0)


def test_a_part_in_another_place_is_noticed(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(layout, "layouts_are_known", lambda: False)
        with pytest.raises(layout.UnknownLayoutError, match="64 bits"):
            layout.check()
    for name, value in {"ITEMS_OF_TUPLE": 16, "SIZE": 24, "PLACE": 24, "LISTED": 16, "STRIDES": 32}.items():
        with monkeypatch.context() as patch:
            patch.setattr(layout, name, value)
            with pytest.raises(layout.UnknownLayoutError, match="unknown layout of"):
                layout.check()
    with pytest.raises(layout.UnknownLayoutError):
        layout.place_of("mul", layout.ITEMS)


def test_the_page_has_the_number_of_functions():
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "engine.md").read_text(encoding="utf-8")
    assert f"{len(scalar_code.FUNCTIONS)} functions of scalars" in page


def test_methods_set_by_python_replace_the_code_until_it_is_installed_again():
    address = switch._LoadingState.code.address("operator_mul")
    place = layout.place_of("mul")
    assert layout.operators_of(tape.Scalar)[place] == address
    with switch.python_only():
        assert layout.operators_of(tape.Scalar)[place] != address
    assert layout.operators_of(tape.Scalar)[place] == address
    assert ctypes.c_void_p(address).value == address
