"""Calls that run in the eager engine: a closed list. Faults raise, and with `eager=False` nothing runs there."""

import types

import numpy as np
import pytest

from adbench import tape
from adbench.tape.machine.llvm import LLVMRefusedError


def square(x):
    return tape.sum(x * x)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("place", "broken", "fault"),
    [
        ("machine.simd.Module.text", lambda _self: "nonsense", "LLVM refused the code"),
        ("compiled.runtime.program.lower", None, "not callable"),
        ("compiled.trace.loop_rule.spread", None, "not callable"),
    ],
)
def test_a_fault_of_the_compiler_raises_and_does_not_run_eagerly(monkeypatch, place, broken, fault, batch):
    monkeypatch.setattr(f"adbench.tape.{place}", broken)
    with pytest.raises((LLVMRefusedError, TypeError), match=fault):
        tape.compile(square, np.ones((2, 3)), batch=batch)


def test_a_changed_interface_of_llvmlite_raises(monkeypatch):
    def without_levels():
        raise AssertionError("never called")

    monkeypatch.setattr("llvmlite.binding.create_pipeline_tuning_options", without_levels)
    with pytest.raises(TypeError, match="speed_level"):
        tape.compile(square, np.ones(3))


def test_a_fault_of_the_engine_inside_the_function_raises(monkeypatch):
    def faulty(self, other):
        return self.no_such_attribute

    monkeypatch.setattr("adbench.tape.compiled.trace.symbol.Symbol.__mul__", under(tape, faulty))
    with pytest.raises(AttributeError, match="no_such_attribute"):
        tape.compile(lambda x: x * x, 1.0)


def under(package, function):
    """The function as if it were defined inside the package."""
    return types.FunctionType(function.__code__, {"__name__": f"{package.__name__}.made"})


def picky(x):
    if not isinstance(x, (float, tape.Scalar)):
        raise TypeError("expected a number")
    return x * x


def of_distance(a):
    return tape.sum(tape.linalg.inv(a))


def test_without_the_eager_engine_a_call_raises_the_reason():
    def f(x):
        tape.reverse_pass_callback(lambda: None)
        return tape.Var(x.val * x.val) * 0.0 + x * x

    for function, reason in ((f, "inner function"), (picky, "TypeError: expected a number")):
        with pytest.raises(tape.NotCompilableError, match=reason):
            tape.compile(function, 2.0, eager=False)
        assert tape.compile(function, 2.0)(3.0) == (9.0, 6.0)
    call = tape.compile(of_distance, np.eye(2), eager=False)
    with pytest.raises(np.linalg.LinAlgError):  # the function's own error
        call(np.zeros((2, 2)))
    assert call(np.eye(2))[0] == 2.0
    steps = tape.compile(lambda x: x * x if x > 1 else x, 2.0, recordings=1, eager=False)
    with pytest.raises(tape.NotCompilableError, match="more than 1 paths"):
        steps(0.5)


def test_reverse_over_forward_of_a_norm_at_zero_runs_as_machine_code():
    """Whether the zero may change is asked on a tape with quick records."""
    x, v = np.full(3, 0.5), np.array([1.0, -2.0, 0.5])

    def along(x, v):
        return tape.gradient(lambda x: tape.jvp(tape.std, x, v)[1], x)[1]

    compiled = tape.compile(along, x, v, operator="value", eager=False)(x, v)
    np.testing.assert_array_equal(compiled, along(x, v))
