"""Calls with nests run the entry of their leaves; every other call is answered as before."""

import gc
import weakref

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.runtime import compiled_call
from adbench.tape.trees import tree_leaves


def loss(theta, x):
    return tape.sum(tape.tanh(x @ theta["w"] + theta["b"][0]) * theta["b"][1]) * theta["s"]


def nest(seed):
    rng = np.random.default_rng(seed)
    return {"w": rng.normal(size=(3, 2)), "b": [rng.normal(size=2), rng.normal(size=2)], "s": float(rng.normal())}


X, V = np.linspace(0.0, 1.0, 12).reshape(4, 3), nest(9)
EAGER = {
    "value": lambda f, p: f(p),
    "gradient": lambda f, p: tape.gradient(f, p)[1],
    "value_and_gradient": tape.gradient,
    "jacobian": tape.jacobian,
    "jvp": lambda f, p: tape.jvp(f, p, V),
    "hvp": lambda f, p: tape.hvp(f, p, V),
    "vjp": lambda f, p: tape.vjp(f, p, 2.0),
    "hessian": tape.hessian,
}
VECTOR = {"jvp": (V,), "hvp": (V,), "vjp": (2.0,)}


def assert_same(found, expected):
    assert tape.shape(found) == tape.shape(expected)
    for a, b in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.fixture
def only_entries(monkeypatch):
    """A function after which no call can go through Python."""
    return lambda: monkeypatch.setattr(compiled_call, "FlatArguments", None)


@pytest.mark.parametrize("operator", EAGER)
def test_a_nested_call_gives_what_the_eager_engine_gives(operator, only_entries):
    vector = VECTOR.get(operator, ())
    compiled = tape.compile(loss, nest(0), X, *vector, wrt=0, operator=operator)
    if operator != "hessian":  # its nests of nests are built in Python
        only_entries()
    for seed in (0, 1):
        expected = EAGER[operator](lambda theta: loss(theta, X), nest(seed))
        assert_same(compiled(nest(seed), X, *vector), expected)
        assert_same(compiled.call(nest(seed), X, *vector), expected)


def test_vectors_of_several_arrays_need_no_python(only_entries):
    x, y = np.linspace(0.1, 1.0, 6), np.linspace(1.0, 2.0, 6)
    f = lambda x, y: tape.sum(tape.sin(x) * y)  # noqa: E731
    compiled = tape.compile(f, x, y, (y, x), operator="hvp")
    only_entries()
    assert_same(compiled(y, x, (x, y)), tape.hvp(lambda pair: f(*pair), (y, x), (x, y)))


def test_nests_of_another_structure_or_shape_or_layout_are_recorded_or_copied():
    compiled = tape.compile(lambda p: tape.sum(p["a"] * p["b"][0]), {"a": np.ones(3), "b": [2.0]})
    assert compiled({"b": [3.0], "a": np.ones(3)})[0] == 9.0
    assert compiled({"a": np.ones(4), "b": [3.0]})[0] == 12.0
    assert compiled({"a": np.ones(3), "b": [np.ones(3), 5.0]})[1]["b"][1] == 0.0
    assert compiled({"a": np.arange(6.0)[::2], "b": [3.0]})[0] == 18.0
    assert compiled({"a": np.arange(3), "b": [3]})[0] == 9.0
    assert compiled({"a": np.ones(3), "b": [3.0]})[1]["a"].tolist() == [3.0] * 3


def test_settings_in_nests_belong_to_the_program():
    compiled = tape.compile(
        lambda x, how: x * how["n"] if how["name"] == "times" else x + how["n"], 2.0, {"n": 3, "name": "times"}, wrt=0
    )
    assert compiled(2.0, {"n": 3, "name": "times"}) == (6.0, 3.0)
    assert compiled(2.0, {"n": 4, "name": "times"}) == (8.0, 4.0)
    assert compiled(2.0, {"n": 4, "name": "plus"}) == (6.0, 1.0)
    assert compiled(2.0, {"n": 3, "name": "times"}) == (6.0, 3.0)


def test_every_path_through_the_function_and_flat_calls_after_nested_ones_are_right(only_entries):
    compiled = tape.compile(lambda p: p[0] * p[1] if p[0] > 0.0 else p[0] - p[1], [2.0, 3.0])
    assert compiled([-2.0, 3.0]) == (-5.0, [1.0, -1.0])
    assert compiled((-2.0, 3.0)) == (-5.0, (1.0, -1.0))
    assert compiled(np.array([2.0, 3.0]))[1].tolist() == [3.0, 2.0]
    only_entries()
    assert compiled([4.0, 3.0]) == (12.0, [3.0, 4.0])
    assert compiled([-4.0, 3.0]) == (-7.0, [1.0, -1.0])
    assert compiled((-4.0, 3.0)) == (-7.0, (1.0, -1.0))
    assert compiled(np.array([4.0, 3.0]))[1].tolist() == [3.0, 4.0]


def test_a_nan_in_the_derivative_of_a_nest_runs_the_careful_program():
    f = lambda p: tape.sum(tape.where(p["x"] > 0.0, tape.sqrt(p["x"]), 0.0))  # noqa: E731
    compiled = tape.compile(f, {"x": np.ones(2)})
    with np.errstate(invalid="ignore"):
        assert compiled({"x": np.array([4.0, -1.0])})[1]["x"].tolist() == [0.25, 0.0]


def test_the_call_keeps_the_code_of_a_nested_entry_and_no_longer():
    compiled = tape.compile(loss, nest(0), X, wrt=0)
    call, alive = compiled.call, weakref.ref(compiled)
    del compiled
    gc.collect()
    assert_same(call(nest(1), X), tape.gradient(lambda theta: loss(theta, X), nest(1)))
    assert alive() is not None
    del call
    gc.collect()
    assert alive() is None
