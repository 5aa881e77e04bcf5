"""Operators made from others give what the library's own would."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adbench import Unsupported
from adbench.execution.operators.fallback import FALLBACKS, lacking, prepare
from adbench.model.backend import OPERATORS, WITH_VECTOR, Backend, Operator
from adbench.model.errors import MissingFunction

A = np.array([[2.0, 1.0, 0.5], [0.0, 3.0, -1.0], [1.0, 0.0, 4.0]])
X, B = np.array([0.3, -1.2, 0.7]), 1.5
V = (np.array([1.0, -2.0, 0.5]), 0.25)


def f(x: Any, b: Any, a: Any = A) -> Any:
    """½ xᵀ A x + b³ Σ x: a function whose derivatives can be written down."""
    return 0.5 * x @ a @ x + b**3 * x.sum()


S = 0.5 * (A + A.T)
GRADIENT = (S @ X + B**3, 3 * B**2 * X.sum())
HESSIAN = ((S, np.full(3, 3 * B**2)), (np.full(3, 3 * B**2), 6 * B * X.sum()))
HVP = (S @ V[0] + 3 * B**2 * V[1], 3 * B**2 * V[0].sum() + 6 * B * X.sum() * V[1])
JVP = GRADIENT[0] @ V[0] + GRADIENT[1] * V[1]
W = -2.0

TRUTH: dict[str, Any] = {
    "value": f(X, B),
    "gradient": GRADIENT,
    "value_and_gradient": (f(X, B), GRADIENT),
    "jacobian": GRADIENT,
    "jvp": JVP,
    "vjp": (W * GRADIENT[0], W * GRADIENT[1]),
    "hvp": HVP,
    "hessian": HESSIAN,
}

OWN: dict[str, Callable[..., Any]] = {
    "value": f,
    "gradient": lambda x, b: (S @ x + b**3, 3 * b**2 * x.sum()),
    "value_and_gradient": lambda x, b: (f(x, b), OWN["gradient"](x, b)),
    "jacobian": lambda x, b: OWN["gradient"](x, b),
    "jvp": lambda x, b, v: (S @ x + b**3) @ v[0] + 3 * b**2 * x.sum() * v[1],
    "vjp": lambda x, b, w: (w * (S @ x + b**3), w * 3 * b**2 * x.sum()),
    "hvp": lambda x, b, v: (S @ v[0] + 3 * b**2 * v[1], 3 * b**2 * v[0].sum() + 6 * b * x.sum() * v[1]),
    "hessian": lambda x, b: ((S, np.full(3, 3 * b**2)), (np.full(3, 3 * b**2), 6 * b * x.sum())),
}


def having(*operators: str) -> Backend:
    """A library that has these operators only."""

    def own(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        assert len(args) == 2 + (operator in WITH_VECTOR)
        if operator not in operators:
            raise Unsupported(f"no {operator} here")
        return OWN[operator]

    return Backend("some", np, own, lambda leaf: leaf, np.asarray, None, None)


def result(operator: Operator, backend: Backend) -> tuple[Any, str]:
    vector = {"jvp": (V,), "hvp": (V,), "vjp": (W,)}.get(operator, ())
    args = (X, B, *vector)
    made = prepare(backend, operator, f, args, (0, 1))
    return made.call(*args), made.how


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert isinstance(got, tuple)
        for part, truth in zip(got, expected, strict=True):
            assert_same(part, truth)
    else:
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-14)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_native_operator_is_taken_as_it_is(operator: Operator) -> None:
    got, how = result(operator, having(*OPERATORS))
    assert how == "native"
    assert_same(got, TRUTH[operator])


@pytest.mark.parametrize(("operator", "needed"), [(op, needed) for op, ways in FALLBACKS.items() for needed, _ in ways])
def test_every_fallback_gives_the_operator_and_says_what_it_is_made_from(
    operator: Operator, needed: tuple[Operator, ...]
) -> None:
    got, how = result(operator, having(*needed))
    assert how == f"from {' and '.join(needed)}"
    assert_same(got, TRUTH[operator])


@pytest.mark.parametrize("operator", ["gradient", "value_and_gradient", "jacobian", "jvp", "vjp"])
@pytest.mark.parametrize("only", ["jvp", "vjp"])
def test_the_value_and_one_of_jvp_and_vjp_are_enough_for_first_order(operator: Operator, only: str) -> None:
    assert_same(result(operator, having("value", only))[0], TRUTH[operator])


@pytest.mark.parametrize("operator", ["hvp", "hessian"])
def test_without_a_second_order_the_librarys_refusal_stands(operator: Operator) -> None:
    with pytest.raises(Unsupported, match=f"no {operator} here"):
        result(operator, having("value", "gradient", "jvp", "vjp"))


def test_what_the_installed_version_of_a_library_lacks_is_made_from_what_it_has_or_unsupported() -> None:
    def own(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        if operator == "vjp":
            return OWN["vjp"]
        return np.an_operator_of_another_version  # type: ignore[attr-defined]

    library = Backend("lib", np, own, lambda leaf: leaf, np.asarray, None, None)
    made = prepare(library, "gradient", f, (X, B), (0, 1))
    assert made.how == "from vjp"
    with pytest.raises(Unsupported, match=rf"^numpy has no an_operator_of_another_version in version {np.__version__}"):
        prepare(library, "hvp", f, (X, B, V), (0, 1))


def test_an_attribute_that_is_missing_elsewhere_is_a_fault() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'") as raised:
        _ = X.nothing  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lacking(raised.value)
    refusal = MissingFunction("numpy has no such name")
    assert lacking(refusal) is refusal
