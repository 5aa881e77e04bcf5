"""Operators of functions whose value is an array, made from others, give what the library's own would."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from adbench.execution.operators.fallback_of_arrays import FALLBACKS

from adbench import Case, Namespace, Unsupported
from adbench.execution.operators.fallback import prepare
from adbench.model.backend import OPERATORS, WITH_VECTOR, Backend, Operator
from adbench.model.case import function_of

N = 6


def f(xp: Any, x: Any, p: Any) -> Any:
    """f[i, 0] = x_i² p["b"], f[i, 1] = x_i x_(i+1) + p["w"][i]: a band, a full column, a diagonal."""
    return xp.stack([x[:-1] * x[:-1] * p["b"], x[:-1] * x[1:] + p["w"]], axis=1)


def pattern(n: int) -> tuple[list[int], list[int]]:
    """Columns: n + 1 of x, then p["b"], then n of p["w"]: dict keys are sorted."""
    entries = [entry for i in range(n) for entry in ((2 * i, i), (2 * i + 1, i), (2 * i + 1, i + 1), (2 * i, n + 1))]
    entries += [(2 * i + 1, n + 2 + i) for i in range(n)]
    rows, columns = zip(*entries, strict=True)
    return list(rows), list(columns)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.uniform(1, 2, n + 1), "p": {"w": rng.uniform(1, 2, n), "b": 1.5}},
    wrt=("x", "p"),
    sizes=(N,),
    operators=("value", "jacobian"),
)
SPARSE = replace(CASE, sparsity=pattern)

NAMES, (X, P), WRT = CASE.bind(N, 0)
V = np.linspace(1, 2, N + 1), {"w": np.linspace(-1, 1, N), "b": 0.5}
W = np.arange(2.0 * N).reshape(N, 2) - 3


def jacobian(x: Any, p: Any) -> tuple[Any, Any]:
    by_x, by_w = np.zeros((N, 2, N + 1)), np.zeros((N, 2, N))
    i = np.arange(N)
    by_x[i, 0, i], by_x[i, 1, i], by_x[i, 1, i + 1], by_w[i, 1, i] = 2 * x[:-1] * p["b"], x[1:], x[:-1], 1
    return by_x, {"w": by_w, "b": np.stack([x[:-1] ** 2, np.zeros(N)], axis=1)}


def jvp(x: Any, p: Any, v: Any) -> Any:
    by_x, by_p = jacobian(x, p)
    return by_x @ v[0] + by_p["w"] @ v[1]["w"] + by_p["b"] * v[1]["b"]


def vjp(x: Any, p: Any, w: Any) -> Any:
    by_x, by_p = jacobian(x, p)
    return np.tensordot(w, by_x, 2), {key: np.tensordot(w, block, 2) for key, block in by_p.items()}


OWN: dict[str, Callable[..., Any]] = {
    "value": lambda x, p: f(Namespace(np), x, p),
    "jacobian": jacobian,
    "jvp": jvp,
    "vjp": vjp,
}
VECTORS: dict[str, tuple[Any, ...]] = {"jvp": (V,), "vjp": (W,)}
calls: list[str] = []


def having(*operators: str, **more: Any) -> Backend:
    """A library that has these operators only, and counts their calls."""

    def own(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        assert len(args) == 2 + (operator in WITH_VECTOR)
        if operator not in operators:
            raise Unsupported(f"no {operator} here")

        def counted(*a: Any) -> Any:
            calls.append(operator)
            return OWN[operator](*a)

        return counted

    return Backend("some", Namespace(np), own, lambda leaf: leaf, np.asarray, None, None, **more)


def result(operator: Operator, backend: Backend, case: Case = CASE) -> tuple[Any, str]:
    args = (X, P, *VECTORS.get(operator, ()))
    made = prepare(backend, operator, function_of(case, NAMES, backend.xp, N), args, WRT)
    calls.clear()
    return made.call(*args), made.how


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple | dict):
        assert type(got) is type(expected)
        keys = expected if isinstance(expected, dict) else range(len(expected))
        for key in keys:
            assert_same(got[key], expected[key])
    else:
        dense = got.toarray().reshape(expected.shape) if hasattr(got, "toarray") else got
        assert np.shape(dense) == np.shape(expected)
        np.testing.assert_allclose(dense, expected, rtol=1e-14)


@pytest.mark.parametrize(("operator", "needed"), [(op, needed) for op, ways in FALLBACKS.items() for needed, _ in ways])
def test_every_fallback_gives_the_operator_and_says_what_it_is_made_from(operator: Operator, needed: Operator) -> None:
    got, how = result(operator, having(needed))
    assert how == f"from {needed}"
    assert_same(got, OWN[operator](X, P, *VECTORS.get(operator, ())))


@pytest.mark.parametrize("operator", ["jacobian", "jvp", "vjp"])
@pytest.mark.parametrize("only", ["jacobian", "jvp", "vjp"])
def test_one_of_the_three_is_enough(operator: Operator, only: str) -> None:
    assert_same(result(operator, having(only))[0], OWN[operator](X, P, *VECTORS.get(operator, ())))


@pytest.mark.parametrize("operator", ["gradient", "value_and_gradient", "hvp", "hessian"])
def test_what_only_scalars_have_is_refused_in_plain_words(operator: Operator) -> None:
    with pytest.raises(Unsupported, match=f"the value is an array, which has no {operator}: ask for jacobian"):
        result(operator, having(*OPERATORS))


def test_the_librarys_refusal_stands_where_it_has_nothing() -> None:
    with pytest.raises(Unsupported, match="no jacobian here"):
        result("jacobian", having("value"))


def test_a_declared_pattern_is_taken_in_as_few_directions_as_it_allows() -> None:
    columns = 2 * N + 2
    for backend in (having("jvp"), having("jvp", "jacobian")):
        got, how = result("jacobian", backend, SPARSE)
        # Two neighbours in x and one of w share a row, and so does the full column with all of x.
        assert how == f"from jvp, coloured: 3 directions for {columns} columns"
        assert calls == ["jvp"] * 3
        assert got[0].nnz == 3 * N
        assert_same(got, jacobian(X, P))


def test_a_pattern_is_no_use_to_a_library_without_jvp_or_with_a_way_of_its_own() -> None:
    got, how = result("jacobian", having("vjp"), SPARSE)
    assert how == "from vjp"
    assert_same(got, jacobian(X, P))
    got, how = result("jacobian", having("jvp", "jacobian", sparse_jacobian=True), SPARSE)
    assert how == "native"
    assert_same(got, jacobian(X, P))


def test_a_shape_that_numpy_cannot_find_out_is_said() -> None:
    case = replace(CASE, f=lambda xp, x, p: xp.no_such(x))
    with pytest.raises(Unsupported, match="does not run on numpy"):
        result("jacobian", having("jvp"), case)
