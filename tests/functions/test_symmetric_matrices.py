"""Functions of a symmetric matrix that read one triangle: every convention of a library is right, a mistake is not."""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import autograd.scipy.stats
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
import torch

import adbench
from adbench.catalog.discovery import catalog, load
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.references import SYMMETRISED, by_conventions
from adbench.execution.operators.rounding_spread import Judge
from adbench.functions.libraries import double_precision
from adbench.functions.user_function import function_case
from adbench.model.backend import from_module
from adbench.oracle.structure import symmetrised
from tests.support.marks import one_in

Gradient = Callable[[torch.Tensor], torch.Tensor]

M = np.array([[2.0, 1.0], [1.0, 5.0]])
LARGER = np.array([[4.0, 1.0, -0.5], [1.0, 3.0, 0.7], [-0.5, 0.7, 5.0]])
OFF = np.array([[2.0, 1.5], [1.0, 5.0]])
UNEQUALLY = "not symmetrised: entries of both triangles share the derivative unequally"
Y = torch.tensor([1.0, -2.0], dtype=torch.float64)


def tensor(a: Any) -> torch.Tensor:
    return torch.tensor(a, dtype=torch.float64)


TORCH: dict[str, Any] = {
    "eigvalsh": lambda m: torch.linalg.eigvalsh(m)[0],
    "eigvalsh of the upper triangle": lambda m: torch.linalg.eigvalsh(m, UPLO="U")[0],
    "eigenvectors": lambda m: (torch.linalg.eigh(m)[1] ** 2)[0, 0],
    "cholesky": lambda m: torch.linalg.cholesky(m).sum(),
    "upper cholesky": lambda m: torch.linalg.cholesky(m, upper=True)[0].prod(),
    "cholesky_ex": lambda m: torch.linalg.cholesky_ex(m)[0].sum(),
    "cholesky_solve": lambda m: torch.cholesky_solve(Y[:, None], torch.linalg.cholesky(m))[0, 0],
    "cholesky_inverse": lambda m: torch.cholesky_inverse(torch.linalg.cholesky(m))[0, 1],
    "log-determinant": lambda m: 2 * torch.linalg.cholesky(m).diagonal().log().sum(),
    "density of a covariance": lambda m: torch.distributions.MultivariateNormal(0 * Y, m).log_prob(Y),
    "density of a precision": lambda m: torch.distributions.MultivariateNormal(0 * Y, precision_matrix=m).log_prob(Y),
    "matrix computed from the input": lambda m: torch.linalg.eigvalsh(2 * m + torch.diag(m.diagonal() ** 2))[1],
    "one of a batch": lambda m: torch.linalg.cholesky(torch.stack([m, m @ m])).sum(),
}


@pytest.mark.parametrize("name", TORCH)
def test_torchs_symmetrised_gradients_are_right_with_a_note(name: str) -> None:
    found = adbench.check(TORCH[name], tensor(M))
    assert (found.word, found.proved, found.note) == ("right", True, SYMMETRISED)
    told = str(found).replace("\n    ", " "), found.rows[0].told, found.to_dict()["rows"][0]["sentence"]
    assert all(SYMMETRISED in words for words in told)
    assert found.to_dict()["notes"] == [SYMMETRISED]


OTHERS: dict[str, tuple[Any, Any, str]] = {
    "autograd's cholesky": (lambda m: anp.sum(anp.linalg.cholesky(m)), M, SYMMETRISED),
    "autograd's eigh reads a triangle": (lambda m: anp.linalg.eigh(m)[0][0], M, ""),
    "both": (lambda m: anp.sum(anp.linalg.cholesky(m)) + anp.linalg.eigh(m)[0][0], M, SYMMETRISED),
    "autograd's density": (
        lambda m: autograd.scipy.stats.multivariate_normal.logpdf(anp.array([1.0, 2.0]), anp.zeros(2), m),
        M,
        SYMMETRISED,
    ),
    "jax.numpy symmetrises itself": (lambda m: jnp.linalg.cholesky(m).sum(), jnp.array(M), ""),
    "jax.scipy does not": (lambda m: jax.scipy.linalg.cholesky(m).sum(), jnp.array(M), UNEQUALLY),
    "jax's cho_solve": (
        lambda m: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(m, lower=True), jnp.arange(1.0, 4.0))[0],
        jnp.array(LARGER),
        UNEQUALLY,
    ),
    "jax's eigenvectors": (
        lambda m: (jnp.linalg.eigh(m, UPLO="U", symmetrize_input=False)[1] ** 2)[0, 1],
        jnp.array(LARGER),
        UNEQUALLY,
    ),
    "torch's Hermitian pinv": (lambda m: torch.linalg.pinv(m, hermitian=True)[0, 1], tensor(M), UNEQUALLY),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_conventions_are_right_and_named(name: str) -> None:
    f, m, note = OTHERS[name]
    found = adbench.check(f, m)
    assert found.word in (("right", "verified") if "float32" in str(m.dtype) else ("right",)), str(found)
    assert (found.proved, found.note) == (True, note)


@pytest.mark.parametrize("name", one_in(3, ["eigvalsh", "cholesky", "log-determinant"]))
def test_every_mode_of_torch_is_right_although_its_second_derivatives_mix_two_conventions(name: str) -> None:
    found = adbench.check(TORCH[name], tensor(M), modes="all")
    assert found.word == "right", str(found)
    assert f"along symmetric changes, {SYMMETRISED}" in found.remarks


@pytest.mark.slow
def test_ordinary_terms_of_a_symmetric_input_have_their_second_derivatives() -> None:
    found = adbench.check(lambda m: torch.linalg.eigvalsh(m)[0] + m[0, 1] ** 2 * m[1, 1], tensor(M), modes="all")
    assert found.word == "right", str(found)


@pytest.mark.slow
def test_every_mode_of_jax_scipys_cholesky_is_right() -> None:
    found = adbench.check(lambda m: jax.scipy.linalg.cholesky(m).sum(), jnp.array(M), modes="all")
    assert found.word == "right", str(found)


def test_a_jacobian_is_right_by_one_convention() -> None:
    assert adbench.check(torch.linalg.cholesky, tensor(LARGER)).note == SYMMETRISED
    assert adbench.check(torch.linalg.eigvalsh, tensor(np.array([LARGER, LARGER + np.eye(3)]))).note == SYMMETRISED


@pytest.mark.parametrize("f", [TORCH["eigvalsh"], TORCH["cholesky"], TORCH["density of a covariance"]])
def test_at_unsymmetric_matrices_they_are_wrong_as_before(f: Any) -> None:
    off = OFF if f is not TORCH["density of a covariance"] else M + np.array([[0.0, 1e-9], [0.0, 0.0]])
    assert adbench.check(f, tensor(off)).word == "wrong"


def test_other_points_of_such_a_function_are_symmetric_and_those_of_any_other_are_not() -> None:
    assert adbench.check(TORCH["eigvalsh"], tensor(M), points=6).word == "right"
    f = function_case(lambda m, w: torch.linalg.eigvalsh(m)[0] + (m @ w).sum(), (tensor(M), tensor(M)))
    at = point(f, 1, 1)
    assert [np.array_equal(a, a.T) for a in at.args] == [True, False]


def test_a_matrix_that_is_always_symmetric_has_no_convention() -> None:
    found = adbench.check(lambda a: torch.linalg.cholesky(a @ a.T + torch.eye(2)).sum(), tensor(M))
    assert (found.word, found.note) == ("right", "")


def ruled(value: Gradient, gradient: Gradient) -> Gradient:
    """The function, whose derivative is this one by a custom rule."""

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(m: torch.Tensor) -> torch.Tensor:
            return value(m)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g * gradient(*ctx.saved_tensors)

    return lambda m: Rule.apply(m)


def own(f: Gradient) -> Gradient:
    """Torch's gradient."""
    return lambda m: torch.func.grad(f)(m)


def mixture(m: torch.Tensor) -> torch.Tensor:
    """One pair of entries by one triangle, another one symmetrised."""
    found = own(lambda m: torch.linalg.eigvalsh(m)[0])(m)
    found[1, 0], found[0, 1] = 2 * found[1, 0], 0.0
    return found


smallest, ordinary = TORCH["eigvalsh"], lambda m: m[0, 1] ** 2 + m[1, 0] ** 3
PLANTED: dict[str, tuple[Gradient, Gradient]] = {
    "an ordinary function, transposed": (ordinary, lambda m: own(ordinary)(m).T),
    "an ordinary function, symmetrised": (ordinary, lambda m: (own(ordinary)(m) + own(ordinary)(m).T) / 2),
    "an ordinary function of one triangle, symmetrised": (
        lambda m: (m.tril() ** 2).sum(),
        lambda m: 2 * m.tril() - (m.tril(-1) - m.tril(-1).T),
    ),
    "an ordinary term of a symmetric function, transposed": (
        lambda m: smallest(m) + ordinary(m),
        lambda m: own(smallest)(m) + own(ordinary)(m).T,
    ),
    "both triangles with the whole derivative": (
        smallest,
        lambda m: own(smallest)(m) * (2 * torch.ones_like(m) - torch.eye(len(m))),
    ),
    "one triangle with half of it": (smallest, lambda m: own(smallest)(m).tril()),
    "two conventions in one gradient": (smallest, mixture),
    "the other sign": (smallest, lambda m: -own(smallest)(m)),
    "another skew part": (
        smallest,
        lambda m: own(smallest)(m) + 0.01 * (torch.ones_like(m).tril() - torch.ones_like(m).triu()),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_no_convention_acquits_a_planted_mistake(name: str) -> None:
    assert adbench.check(ruled(*PLANTED[name]), tensor(LARGER)).word == "wrong"


def test_the_planted_rules_are_right_without_the_mistake() -> None:
    for f in (smallest, lambda m: smallest(m) + ordinary(m)):
        assert adbench.check(ruled(f, own(f)), tensor(LARGER)).note == SYMMETRISED


def test_a_triangle_that_the_function_itself_takes_is_no_convention() -> None:
    """torch's derivative of L[1, 0] is half of the function's: A is symmetric, but a symmetric change is lost."""
    assert adbench.check(lambda a: torch.linalg.cholesky(a.tril())[1, 0], tensor(np.eye(2))).word == "wrong"


class Turned(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
    """The identity, with a transposed gradient."""

    @staticmethod
    def forward(ctx: Any, m: torch.Tensor) -> torch.Tensor:
        return m.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.mT


@pytest.mark.slow  # tries series before
@pytest.mark.parametrize(
    ("f", "note", "word"),
    [
        (torch.linalg.cholesky, f"along symmetric changes, {SYMMETRISED}", "right"),
        (lambda m: torch.linalg.cholesky(m.tril()), "", "wrong"),
        (lambda m: Turned.apply(m) * tensor(np.arange(9.0).reshape(3, 3)), "", "wrong"),
    ],
    ids=["cholesky", "of a triangle", "transposed"],
)
def test_values_show_which_triangle_is_read_where_the_source_is_unknown(f: Gradient, note: str, word: str) -> None:
    found = adbench.check(lambda m: torch.special.airy_ai(Y).sum() + f(m).sum(), tensor(LARGER))
    assert (found.word, found.proved, found.note) == (word, False, note)


@pytest.mark.parametrize("operator", ["hvp", "hessian", "jvp"])
def test_a_wrong_derivative_of_symmetric_changes_is_wrong(operator: str) -> None:
    torches = from_module("torch", load(catalog().backends["torch"]))
    case = function_case(TORCH["cholesky"], (tensor(LARGER),))
    at = point(case, 1, 0)
    call = torches.prepare(operator, torches.function(case, at.names, 1), at.native(torches, operator)[0], at.wrt)

    def verdict(factor: float) -> str:
        changed = lambda *args: torch.utils._pytree.tree_map(lambda leaf: factor * leaf, call(*args))  # noqa: E731
        judge, native = Judge(torches, operator, changed), at.native(torches, operator)[1]
        known = next(iter(by_conventions(at, operator))).known  # a wrong one for torch's second derivatives
        return judge.judged(at, torches.numpy_result(changed(*native)), known).word

    with double_precision():  # an earlier check has restored torch's own default type
        assert verdict(1.0) == "right"
        assert verdict(1 + 1e-7) == "wrong"


def test_both_sides_of_a_hessian_are_symmetrised_for_marked_leaves_only() -> None:
    rng = np.random.default_rng(0)
    block, other, square = rng.normal(size=(2, 2, 2, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    ((found, column), (row, rest)) = symmetrised(((block, other), (other, square)), (2, 0), both_sides=True)
    sides = (block + block.transpose(1, 0, 2, 3)) / 2
    assert np.allclose(found, (sides + sides.transpose(0, 1, 3, 2)) / 2, rtol=1e-15)
    assert all(np.array_equal(part, (other + other.T) / 2) for part in (row, column))
    assert rest is square


@pytest.mark.parametrize(("factor", "word"), [(1.0, "right"), (1.01, "wrong")])
def test_without_time_for_a_proof_symmetric_changes_decide(factor: float, word: str, monkeypatch: Any) -> None:
    class Same(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        forward = staticmethod(lambda ctx, x: x.clone())
        backward = staticmethod(lambda ctx, g: factor * g)

    monkeypatch.setattr("adbench.execution.python_check.REFERENCE_SECONDS", 0.2)
    monkeypatch.setattr("adbench.execution.operators.references.CONVENTION_SECONDS", 0.2)
    a = torch.randn(14, 14, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = adbench.check(lambda a: torch.linalg.eigvalsh(Same.apply(a)).exp().sum(), (a + a.T) / 14)
    assert found.is_wrong == (word == "wrong"), found
