"""Values of the machine-learning cases against torch's own layers, scipy's solvers, and known properties."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import root
from torch.nn import functional

from adbench import Namespace
from adbench.catalog.discovery import catalog

CASES = catalog().cases
XP = Namespace(np)


def inputs(name: str, size: int) -> dict[str, Any]:
    names, args, _ = CASES[name].bind(size, 0)
    return dict(zip(names, args, strict=True))


def value(name: str, given: Mapping[str, Any]) -> float:
    return float(CASES[name].f(XP, **given))


def tensors(nest: Any) -> Any:
    if isinstance(nest, dict):
        return {key: tensors(part) for key, part in nest.items()}
    return [tensors(part) for part in nest] if isinstance(nest, list) else torch.tensor(nest)


def dense(x: Any, layer: Any) -> Any:
    return functional.linear(x, layer["weights"].T, layer["offset"])


def mlp(theta: Any, x: Any, labels: Any) -> Any:
    for layer in theta[:-1]:
        x = functional.relu(dense(x, layer))
    return functional.cross_entropy(dense(x, theta[-1]), labels)


def convolution(theta: Any, x: Any, labels: Any) -> Any:
    x = x.permute(0, 3, 1, 2)
    for layer in theta["convolutions"]:
        kernel = layer["weights"].reshape(3, 3, x.shape[1], -1).permute(3, 2, 0, 1)
        x = functional.max_pool2d(functional.relu(functional.conv2d(x, kernel, layer["offset"])), 2)
    return functional.cross_entropy(dense(x.flatten(1), theta["dense"]), labels)


def heads(x: Any, weights: Any) -> Any:
    return (x @ weights).reshape(len(x), 2, -1).transpose(0, 1)


def attended(x: Any, weights: Any, visible: Any) -> Any:
    q, k, v = (heads(x, weights[name]) for name in ("query", "key", "value"))
    found = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible > 0)
    return found.transpose(0, 1).reshape(x.shape)


def attention(x: Any, visible: Any, target: Any, **weights: Any) -> Any:
    return 0.5 * functional.mse_loss(attended(x, weights, visible) @ weights["output"], target)


def transformer(theta: Any, x: Any, visible: Any, labels: Any) -> Any:
    def normed(x: Any, norm: Any) -> Any:
        return functional.layer_norm(x, x.shape[-1:], norm["scale"], norm["offset"])

    x = x + dense(attended(normed(x, theta["norm_1"]), theta, visible), theta["output"])
    hidden = functional.gelu(dense(normed(x, theta["norm_2"]), theta["hidden"]), approximate="tanh")
    x = x + dense(hidden, theta["narrowing"])
    return functional.cross_entropy(dense(normed(x, theta["norm_3"]), theta["logits"]), labels)


@pytest.mark.parametrize("theirs", [mlp, convolution, attention, transformer], ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [1, 23])
def test_a_network_agrees_with_the_layers_of_torch(theirs: Callable[..., Any], size: int) -> None:
    given = inputs(theirs.__name__, size)
    expected = theirs(**{name: tensors(part) for name, part in given.items()})
    assert value(theirs.__name__, given) == pytest.approx(float(expected), rel=1e-13)


def test_a_token_sees_itself_and_no_later_token_or_other_document() -> None:
    visible = inputs("attention", 100)["visible"]
    assert (visible.diagonal() == 1).all()
    assert (np.triu(visible, 1) == 0).all()
    begins = [i for i in range(1, 101) if visible[i, i - 1] == 0]
    assert begins
    assert all((visible[i:, :i] == 0).all() for i in begins)


def test_a_normalising_flow_is_a_density() -> None:
    """The mean log density is that of a normal distribution at z, and of the change of variables x → z."""
    given = inputs("normalising_flow", 1)

    def z(x: Any) -> Any:
        a, b = x[:2], x[2:]
        for k in given["theta"]:
            h = np.tanh(a @ k["hidden"][0] + k["hidden"][1])
            s = np.tanh(h @ k["scale"][0] + k["scale"][1])
            a, b = b * np.exp(s) + h @ k["shift"][0] + k["shift"][1], a
        return np.concatenate([a, b])

    x, step = given["x"][0], 1e-20
    jacobian = np.stack([z(x + 1j * step * e).imag / step for e in np.eye(4)], axis=1)
    expected = -0.5 * z(x) @ z(x) - 2 * math.log(2 * math.pi) + math.log(abs(np.linalg.det(jacobian)))
    assert value("normalising_flow", given) == pytest.approx(expected, rel=1e-12)


def test_the_implicit_layer_is_at_its_fixed_point() -> None:
    given = inputs("implicit_layer", 20)
    W, V = given["W"], given["V"]
    driven = given["x"] @ given["U"] + given["b"]
    z = np.stack([root(lambda z, r=r: z - np.tanh(z @ W + r), np.zeros(6), tol=1e-14).x for r in driven])
    assert value("implicit_layer", given) == pytest.approx(0.5 * ((z @ V - given["y"]) ** 2).mean(), rel=1e-12)
    for seed in range(20):
        names, args, _ = CASES["implicit_layer"].bind(1, seed)
        assert np.linalg.norm(args[names.index("W")], 2) < 0.36  # or forty iterations were too few
