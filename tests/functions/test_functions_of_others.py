"""Functions from other projects: each is checked in one line, with a proved reference."""

from typing import Any

import numpy as np
import pytest

import adbench

RNG = np.random.default_rng(0)
X = RNG.normal(size=4)


def marginal_likelihood(x: Any, y: Any, noise: float) -> Any:
    """A Gaussian process by jax.scipy's Cholesky factor; the diagonal holds squares of zero."""
    import jax.numpy as jnp
    from jax.scipy import linalg

    distances = jnp.sum((x[:, None] / 3 - x[None, :] / 3) ** 2, axis=-1)
    factor = linalg.cho_factor(jnp.exp(-distances) + noise * jnp.eye(len(x)), lower=True)
    return jnp.dot(y, linalg.cho_solve(factor, y)) + 2 * jnp.sum(jnp.log(jnp.diag(factor[0])))


@pytest.mark.slow
def test_a_gaussian_process_in_jax_by_its_cholesky_factor() -> None:
    check = adbench.check(marginal_likelihood, RNG.normal(size=(4, 2)), X, 0.1)
    assert (check.word, check.proved) == ("right", True), check


def test_a_while_loop_and_a_scan_of_jax() -> None:
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    def halved_until_small(x: Any) -> Any:
        return jax.lax.while_loop(lambda y: jnp.abs(y) > 0.1, lambda y: jnp.sin(y) / 2, x)

    def forward_algorithm(transitions: Any, emissions: Any) -> Any:
        def step(alpha: Any, emission: Any) -> Any:
            return logsumexp(alpha[:, None] + transitions, axis=0) + emission, None

        return logsumexp(jax.lax.scan(step, emissions[0], emissions[1:])[0])

    check = adbench.check(halved_until_small, 1.3, modes="jvp")
    assert (check.word, check.proved) == ("right", True), check
    check = adbench.check(forward_algorithm, RNG.normal(size=(2, 2)), RNG.normal(size=(4, 2)))
    assert (check.word, check.proved) == ("right", True), check


def test_a_segment_sum_of_jax() -> None:
    import jax
    import jax.numpy as jnp

    check = adbench.check(lambda x: jnp.sum(jax.ops.segment_sum(x, np.array([0, 0, 1, 2]), 3) ** 2), X)
    assert (check.word, check.proved) == ("right", True), check


def test_a_jax_that_has_enable_x64_in_another_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """As before jax 0.8."""
    import jax
    import jax.experimental
    import jax.numpy as jnp

    monkeypatch.setattr(jax.experimental, "enable_x64", jax.enable_x64, raising=False)
    monkeypatch.delattr(jax, "enable_x64")
    assert adbench.check(lambda x: jnp.sum(jnp.sin(x)), X).word == "right"


def test_a_module_of_torch_with_a_loss() -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.GRUCell(3, 2, dtype=torch.float64)  # another test may have left another default
    target = torch.tensor([[0.1, 0.7]], dtype=torch.float64)
    x = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    check = adbench.check(lambda m, x: torch.nn.functional.huber_loss(m(x), target), module, x)
    assert (check.word, check.proved) == ("right", True), check
    assert any("weight" in entry.place for entry in check.entries)


def test_a_distribution_of_torch() -> None:
    import torch

    def log_density(concentration: Any, rate: Any, x: Any) -> Any:
        return torch.distributions.Gamma(concentration, rate).log_prob(x).sum()

    check = adbench.check(log_density, torch.tensor(1.5), torch.tensor(0.7), torch.tensor([0.3, 2.0]))
    assert (check.word, check.proved) == ("right", True), check


def test_autograds_fixed_point_differs_from_the_derivative_of_its_iteration() -> None:
    """The iteration stops at a distance of 1e-4, but the rule is that of the exact fixed point."""
    import autograd.numpy as anp
    from autograd.misc.fixed_points import fixed_point

    def root(a: Any) -> Any:
        return fixed_point(lambda a: lambda x: x - 0.05 * (x**2 - a), a, 10.0, lambda x, y: anp.abs(x - y), 1e-4)

    check = adbench.check(root, 2.0)
    assert (check.word, check.proved) == ("wrong", True), check
    assert check.worst.digits_correct == pytest.approx(2.6, abs=0.3)
