"""A compiled recording as text."""

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.inspection import listing


def branching(x, k):
    return tape.sum(tape.exp(-x * x) * x) if x[0] > 0 else tape.sum(x) * k


def halved(x):
    turns = 0
    while x > 1.0:
        x, turns = x / 2, turns + 1
    return x * turns


def test_operations_of_function_and_sweep_are_listed_in_the_names_of_the_arguments():
    found = listing(lambda x, k: k * x * x, 3.0, 2.0, wrt=(0,))
    assert [text for _, text in found.operations][:3] == ["x", "k", "v2 * v1"]
    value, slope = found.results
    by_name = dict(found.operations)
    env: dict[str, float] = {"x": 3.0, "k": 2.0}
    for name, text in by_name.items():
        env[name] = eval(text, {}, env)  # noqa: S307  # a text that we wrote down
    assert (env[value], env[slope]) == (18.0, 12.0)


@pytest.mark.parametrize(
    ("point", "guards"),
    [(3.0, ["x > 1 is True", "(x / 2) > 1 is True", "((x / 2) / 2) > 1 is False"]), (0.5, ["x > 1 is False"])],
)
def test_guards_show_the_conditions_on_the_inputs(point, guards):
    assert listing(halved, point).guards == tuple(guards)


def test_a_long_guard_uses_the_names_of_operations():
    def f(x):
        y = x
        for _ in range(40):
            y = tape.sin(y) + x
        return y if y > 0.5 else x

    (guard,) = listing(f, 1.0).guards
    assert len(guard) < 100
    assert "v" in guard


def test_the_code_is_that_of_the_function_run():
    found = listing(branching, np.ones(3), 2.0, wrt=(0,))
    assert "define i32 @run(" in found.llvm
    assert "run:" in found.assembly
    assert not found.eager
    assert "x[0] > 0 is True" in str(found)


def test_a_function_that_cannot_be_compiled_gives_the_reason():
    found = listing(lambda x: tape.make_callback_var(x.val, lambda vi: None) * 1.0, 2.0)
    assert found.eager
    assert not found.assembly
    assert "eager" in str(found)


def test_operations_that_call_python_are_named():
    assert listing(lambda a: tape.sum(tape.erfinv(a)), np.diag([0.1, 0.2, 0.3])).python
