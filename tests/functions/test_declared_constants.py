"""Numbers that a function declares constant: one rule for all spellings in all libraries."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import autograd.tracer
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from autograd.tracer import getval

import adbench
from adbench import tape
from adbench.functions import declared_constants

X = torch.tensor([0.3, 1.2], dtype=torch.float64)
A = np.array([0.3, 1.2])


def by_no_grad(x: Any) -> Any:
    with torch.no_grad():
        size = x[0] * 2
    return (x * size).sum()


def by_stop_gradient_in_a_loop(x: Any) -> Any:
    def step(total: Any, _: Any) -> Any:
        return total + jax.lax.stop_gradient(x[0]) * jnp.sum(x), None

    return jax.lax.scan(step, 0.0, None, length=2)[0]


def importing_getval(x: Any) -> Any:
    from autograd.tracer import getval

    return anp.sum(x * getval(x[0]) * 2)


def by_grad(x: Any) -> Any:
    (slope,) = torch.autograd.grad((x**2).sum(), x)  # 2 x
    return (x * slope[0]).sum()


SPELLINGS: dict[str, tuple[Callable[..., Any], Any]] = {
    "no_grad": (by_no_grad, X),
    "grad without create_graph": (by_grad, X),
    "detach": (lambda x: (x * x.detach()[0] * 2).sum(), X),
    "data": (lambda x: (x * x.data[0] * 2).sum(), X),
    "item": (lambda x: (x * x[0].item() * 2).sum(), X),
    "a rebuilt tensor: item": (lambda x: (x * torch.tensor(x[0].item() * 2)).sum(), X),
    "tolist": (lambda x: (x * x.tolist()[0] * 2).sum(), X),
    "the arrays of numpy: detach": (lambda x: (x * torch.from_numpy(x.detach().numpy().copy())[0] * 2).sum(), X),
    "stop_gradient": (lambda x: jnp.sum(x * jax.lax.stop_gradient(x[0]) * 2), A),
    "stop_gradient in a loop": (by_stop_gradient_in_a_loop, A),
    "getval": (lambda x: anp.sum(x * getval(x[0]) * 2), A),
    "getval of a module": (lambda x: anp.sum(x * autograd.tracer.getval(x[0]) * 2), A),
    "getval imported inside": (importing_getval, A),
    "stop_gradient of tape": (lambda x: tape.sum(x * tape.stop_gradient(x[0]) * 2), A),
}
"""Σ x · 2 x₀, with x₀ declared constant: the derivative by x₀ is 0.6, of the values 0.6 + 3."""


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_declared_constant_is_named_with_its_line_and_its_effect(name: str) -> None:
    f, x = SPELLINGS[name]
    found = adbench.check(f, x)
    assert (found.word, found.proved) == ("right", True), found
    assert found.entries[0].got == pytest.approx(0.6)
    (note,) = found.remarks
    spelling = name if "without" in name else name.rpartition(": ")[2].partition(" ")[0]
    assert note.startswith("right, with constants declared at test_declared_constants.py, line ")
    assert f"({spelling})" in note
    assert note.endswith("without them x[0] would be 3.6")


@pytest.mark.parametrize("name", SPELLINGS)
def test_forbidden_constants_make_the_derivative_wrong(name: str) -> None:
    f, x = SPELLINGS[name]
    found = adbench.check(f, x, constants="forbid")
    assert found.is_wrong
    assert "are forbidden" in str(found).replace("\n    ", " ")
    with pytest.raises(adbench.WrongGradient, match="forbidden"):
        adbench.assert_gradients(f, x, constants="forbid")


def stable(x: Any) -> Any:
    largest = jax.lax.stop_gradient(jnp.max(x))
    return jnp.log(jnp.sum(jnp.exp(x - largest))) + largest


WITHOUT_EFFECT: dict[str, tuple[Callable[..., Any], Any]] = {
    "softmax of torch": (lambda x: torch.softmax(x, 0)[0], X),
    "softmax of jax": (lambda x: jax.nn.softmax(x)[0], A),
    "a stable sum of exponentials": (stable, A),
    "an index": (lambda x: x[int(x.argmax())] ** 2, X),
    "a branch": (lambda x: (x**2).sum() if x[0].item() > 0 else x.sum(), X),
}


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
@pytest.mark.parametrize("constants", ["allow", "forbid"])
def test_a_constant_without_effect_on_the_derivative_is_not_named(name: str, constants: Any) -> None:
    f, x = WITHOUT_EFFECT[name]
    found = adbench.check(f, x, constants=constants)
    assert found.is_right, found
    assert found.remarks == ()


def padded(weight: Any) -> Any:
    return torch.nn.functional.embedding(torch.tensor([[0, 2], [2, 1]]), weight, padding_idx=0).square().sum()


def test_the_padding_of_an_embedding_is_a_declared_constant() -> None:
    weight = torch.nn.Embedding(3, 2, dtype=torch.float64).weight.detach()
    found = adbench.check(padded, weight)
    assert (found.word, found.proved) == ("right", True), found
    assert "(padding_idx): without them weight[0" in found.remarks[0]
    assert adbench.check(padded, weight, constants="forbid").is_wrong
    assert adbench.check(lambda weight: padded(weight * 1.0), weight.repeat(1, 4_000)).word == "blind"  # no proof


def drawn(law: Callable[[Any], Any], draw: str = "sample") -> Callable[[Any], Any]:
    def estimator(x: Any) -> Any:
        torch.manual_seed(0)
        distribution = law(x)
        return distribution.log_prob(getattr(distribution, draw)()).sum() + x.sum()

    return estimator


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Poisson", "Bernoulli", "Categorical"])
def test_the_samples_of_a_distribution_are_declared_constants(name: str) -> None:
    two = (torch.ones(2),) if name in ("Normal", "Gamma") else ()
    found = adbench.check(drawn(lambda x: getattr(torch.distributions, name)(x.sigmoid(), *two)), X)
    assert (found.word, found.proved) == ("right", True), found


def test_samples_by_quantiles_have_an_unknown_derivative() -> None:
    found = adbench.check(drawn(lambda x: torch.distributions.Gamma(x, 1.0), "rsample"), X)
    assert found.word == "blind"
    assert "differences of its values ignore rsample" in found.deciding.verdict.sentence


def test_a_wrong_rule_next_to_a_declared_constant_is_wrong() -> None:
    square = jax.custom_vjp(lambda x: x**2)
    square.defvjp(lambda x: (x**2, x), lambda x, c: (5 * c * x,))
    assert adbench.check(lambda x: jnp.sum(square(x) * jax.lax.stop_gradient(x)), A).is_wrong


def test_a_straight_through_estimator_is_right_with_its_constants() -> None:
    def quantised(x: Any) -> Any:
        return jnp.sum(x + jax.lax.stop_gradient(jnp.round(x) - x))

    found = adbench.check(quantised, A)
    assert found.word == "right"
    assert "without them x[0] would be 0" in found.remarks[0]


def test_the_forward_of_a_custom_rule_declares_nothing() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.from_numpy(x.detach().numpy() ** 3)

        @staticmethod
        def backward(ctx: Any, c: Any) -> Any:
            return 3 * c * ctx.saved_tensors[0] ** 2

    found = adbench.check(lambda x: Cube.apply(x).sum(), X)
    assert found.is_right, found
    assert found.remarks == ()


def test_another_word_for_constants_is_refused() -> None:
    with pytest.raises(adbench.UsageError, match="constants is 'no'; choose from allow, forbid"):
        adbench.check(stable, A, constants="no")  # type: ignore[arg-type]


def test_a_wrong_rule_around_numpy_in_torch_is_wrong() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.from_numpy(x.detach().numpy() ** 3)

        @staticmethod
        def backward(ctx: Any, c: Any) -> Any:
            return 3.001 * c * ctx.saved_tensors[0] ** 2

    assert adbench.check(lambda x: Cube.apply(x).sum(), X).is_wrong


def test_every_declaration_counts_and_three_are_shown() -> None:
    lines = iter("abcd")
    with declared_constants.declaring(lambda: next(lines), held=True) as declared:
        for spelling in ("item", "item", "item", declared_constants.PADDING):
            declared_constants.holds(spelling)
        assert declared_constants.PADDING in declared_constants.met()
    assert str(declared) == "a (item), b (item), c (item)"
