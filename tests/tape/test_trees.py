"""Nested parameters: the structure of gradients, arithmetic, shapes, and draws by shape."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from adbench import tape
from adbench.tape import Tree, pqr


@dataclasses.dataclass
class Layer:
    weights: object
    bias: object
    name: str = dataclasses.field(default="", metadata={"pytree_node": False})

    def __post_init__(self):
        if not isinstance(self.bias, float):
            raise TypeError("a constructor that requires plain numbers")


@dataclasses.dataclass(frozen=True)
class Model:
    layers: list[Layer]
    scale: float


W = np.array([[1.0, 2.0], [3.0, 4.0]])
V = {"x": 3.0, "y": np.array([-4.0, 5.0])}


def plain(nest):
    """A nest with lists for arrays, to compare with ==."""
    return tape.tree_map(lambda v: v.tolist() if isinstance(v, np.ndarray) else v, getattr(nest, "nest", nest))


# Gradients


def model_value(m):
    return m.scale * tape.sum(m.layers[0].weights ** 2) + m.layers[0].bias * m.scale


def test_gradients_of_dataclasses_within_lists_have_the_same_structure_and_settings():
    model = Model([Layer(W, 0.5, "first")], 2.0)
    value, g = tape.gradient(model_value, model)
    assert value == 61.0
    assert isinstance(g, Model)
    assert g.layers[0].name == "first"
    assert g.layers[0].weights.tolist() == (4.0 * W).tolist()
    assert (g.layers[0].bias, g.scale) == (2.0, 30.5)


def test_every_functional_takes_dataclasses():
    model, direction = Model([Layer(W, 0.5)], 2.0), Model([Layer(np.ones((2, 2)), 1.0)], 0.0)
    assert tape.jvp(model_value, model, direction) == (61.0, 42.0)
    assert tape.vjp(model_value, model, 2.0)[1].scale == 61.0
    assert tape.jacobian(lambda m: m.layers[0].weights[0] * m.scale, model)[1].scale.tolist() == [1.0, 2.0]
    assert tape.hvp(model_value, model, direction)[1].scale == 21.0
    assert tape.hessian(model_value, model)[2].scale.layers[0].weights.tolist() == (2.0 * W).tolist()
    assert pqr.with_gradient(model_value, "forward", m=model).gradient["m"].layers[0].bias == 2.0


def test_a_function_may_return_a_dataclass():
    value, tangent = tape.jvp(lambda x: Model([], x * x), 3.0, 1.0)
    assert (value.scale, tangent.scale) == (9.0, 6.0)


# Arithmetic


def test_functions_recurse_and_nests_of_one_structure_are_added_as_in_the_slides():
    v, w = Tree(V), Tree({"x": 2.0, "y": np.array([1.0, 2.0])})
    assert plain(abs(v)) == {"x": 3.0, "y": [4.0, 5.0]}
    assert plain(v + w) == {"x": 5.0, "y": [-3.0, 7.0]}
    assert plain(v + w.nest) == plain(w.nest + v) == plain(v + w)


def test_a_number_operates_on_everything_below_it():
    v = Tree(V)
    assert plain(v * 10) == plain(10 * v) == {"x": 30.0, "y": [-40.0, 50.0]}
    assert plain(v * {"x": 2.0, "y": 10.0}) == {"x": 6.0, "y": [-40.0, 50.0]}
    assert plain(Tree({"a": [1.0, W[0]], "b": 3.0}) - {"a": 1.0, "b": 2.0}) == {"a": [0.0, [0.0, 1.0]], "b": 1.0}
    assert plain({"a": 1.0, "b": 2.0} - Tree({"a": [1.0, 2.0], "b": 3.0})) == {"a": [0.0, -1.0], "b": -1.0}


def test_functions_of_numpy_and_of_the_tape_work_leaf_by_leaf():
    assert plain(np.exp(Tree(V))) == plain(tape.exp(Tree(V))) == {"x": np.exp(3.0), "y": np.exp(V["y"]).tolist()}
    assert plain(-(Tree(V) ** 2)) == {"x": -9.0, "y": [-16.0, -25.0]}


def test_a_step_along_the_gradient_is_written_as_in_the_slides():
    params = Tree({"mean": np.zeros(2), "log_sd": [0.0]})

    def log_likelihood(params):
        z = (np.array([1.0, 2.0]) - params["mean"]) / tape.exp(params["log_sd"][0])
        return -0.5 * tape.sum(z * z) - 2 * params["log_sd"][0]

    loglik = pqr.with_gradient(log_likelihood, params=params)
    params = params + 0.1 * loglik.gradient["params"]
    assert isinstance(params, Tree)
    np.testing.assert_allclose(params["mean"], [0.1, 0.2], rtol=1e-15)
    assert params["log_sd"] == [pytest.approx(0.3)]


def test_arithmetic_on_trees_is_differentiated():
    f = lambda s: tape.sum((Tree(V) * s + V)["y"] ** 2)  # noqa: E731  # a formula
    assert tape.gradient(f, 1.0) == (164.0, 164.0)


def test_nests_of_different_structure_raise_an_error_that_shows_both():
    with pytest.raises(ValueError, match=r"nests of different structure: .*'x'.*'y'.* and .*'x'"):
        Tree(V) + {"x": 1.0}
    with pytest.raises(ValueError, match=r"an array of shape \(2,\) where the other has a nest; only a number"):
        Tree({"a": [1.0, 2.0]}) * {"a": np.ones(2)}
    with pytest.raises(TypeError, match="reduce"):
        np.add.reduce(Tree(V))


# Shape


def test_shape_of_arrays_numbers_and_nests():
    assert tape.shape(W) == (2, 2)
    assert tape.shape(3.0) == ()
    assert tape.shape({"x": W[0], "y": [1.0, 2], "z": np.zeros((4, 5))}) == {"x": (2,), "y": [(), ()], "z": (4, 5)}
    assert tape.gradient(lambda x: float(tape.shape([x])[0][0]), W[0])[0] == 2.0
