"""Fallbacks give the same as native operators, for scalar and array values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from adbench import Case, Namespace, Unsupported
from adbench.execution.operators.fallback import lacking, prepare
from adbench.model import tree
from adbench.model.backend import OPERATORS, WITH_VECTOR, Backend, Operator
from adbench.model.case import function_of
from adbench.model.errors import MissingFunction
from adbench.model.operator import DEFINITIONS

calls: list[str] = []


@dataclass(frozen=True)
class Problem:
    """A function of two inputs, with every operator written by hand.

    own        operator -> its result at these arguments, and the vector where the operator takes one
    vectors    what an operator takes beyond the inputs
    fallbacks  the ways that are tried
    """

    f: Callable[..., Any]
    args: tuple[Any, ...]
    own: Mapping[str, Callable[..., Any]]
    vectors: Mapping[str, tuple[Any, ...]]
    fallbacks: Mapping[Operator, Any]

    def truth(self, operator: Operator) -> Any:
        """The operator's result."""
        return self.own[operator](*self.args, *self.vectors.get(operator, ()))

    def having(self, *operators: str, **more: Any) -> Backend:
        """A library with only these operators, which records their calls."""

        def own(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
            assert len(args) == 2 + (operator in WITH_VECTOR)
            if operator not in operators:
                raise Unsupported(f"no {operator} here")

            def noted(*a: Any) -> Any:
                calls.append(operator)
                return self.own[operator](*a)

            return noted

        return Backend("some", Namespace(np), own, lambda leaf: leaf, np.asarray, None, None, **more)

    def result(self, operator: Operator, backend: Backend) -> tuple[Any, str]:
        """The result of the prepared operator, and its `how`."""
        args = (*self.args, *self.vectors.get(operator, ()))
        made = prepare(backend, operator, self.f, args, (0, 1))
        calls.clear()
        return made.call(*args), made.how


A = np.array([[2.0, 1.0, 0.5], [0.0, 3.0, -1.0], [1.0, 0.0, 4.0]])
S = 0.5 * (A + A.T)


def quadratic(x: Any, b: Any, a: Any = A) -> Any:
    """½ xᵀ A x + b³ Σ x."""
    return 0.5 * x @ a @ x + b**3 * x.sum()


def gradient(x: Any, b: Any) -> tuple[Any, ...]:
    return S @ x + b**3, 3 * b**2 * x.sum()


def hessian(x: Any, b: Any) -> tuple[Any, ...]:
    return (S, np.full(3, 3 * b**2)), (np.full(3, 3 * b**2), 6 * b * x.sum())


V = (np.array([1.0, -2.0, 0.5]), 0.25)
SCALAR = Problem(
    quadratic,
    (np.array([0.3, -1.2, 0.7]), 1.5),
    {
        "value": quadratic,
        "gradient": gradient,
        "value_and_gradient": lambda x, b: (quadratic(x, b), gradient(x, b)),
        "jacobian": gradient,
        "jvp": lambda x, b, v: gradient(x, b)[0] @ v[0] + gradient(x, b)[1] * v[1],
        "vjp": lambda x, b, w: tuple(w * g for g in gradient(x, b)),
        "hvp": lambda x, b, v: (S @ v[0] + 3 * b**2 * v[1], 3 * b**2 * v[0].sum() + 6 * b * x.sum() * v[1]),
        "hessian": hessian,
    },
    {"jvp": (V,), "hvp": (V,), "vjp": (-2.0,)},
    {name: made.fallbacks for name, made in DEFINITIONS.items() if made.fallbacks},
)

N = 6


def banded(xp: Any, x: Any, p: Any) -> Any:
    """f[i, 0] = x_i² p["b"], f[i, 1] = x_i x_(i+1) + p["w"][i]: a band, a full column, a diagonal."""
    return xp.stack([x[:-1] * x[:-1] * p["b"], x[:-1] * x[1:] + p["w"]], axis=1)


def pattern(n: int) -> tuple[list[int], list[int]]:
    """Columns: n + 1 of x, then p["b"], then n of p["w"]: dict keys are sorted."""
    entries = [entry for i in range(n) for entry in ((2 * i, i), (2 * i + 1, i), (2 * i + 1, i + 1), (2 * i, n + 1))]
    entries += [(2 * i + 1, n + 2 + i) for i in range(n)]
    rows, columns = zip(*entries, strict=True)
    return list(rows), list(columns)


CASE = Case(
    f=banded,
    inputs=lambda n, rng: {"x": rng.uniform(1, 2, n + 1), "p": {"w": rng.uniform(1, 2, n), "b": 1.5}},
    wrt=("x", "p"),
    sizes=(N,),
    operators=("value", "jacobian"),
)


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


def array(case: Case) -> Problem:
    names, args, _ = case.bind(N, 0)
    return Problem(
        function_of(case, names, Namespace(np), N),
        args,
        {"value": lambda x, p: banded(Namespace(np), x, p), "jacobian": jacobian, "jvp": jvp, "vjp": vjp},
        {
            "jvp": ((np.linspace(1, 2, N + 1), {"w": np.linspace(-1, 1, N), "b": 0.5}),),
            "vjp": (np.arange(2.0 * N).reshape(N, 2) - 3,),
        },
        {name: made.fallbacks_of_arrays for name, made in DEFINITIONS.items() if made.fallbacks_of_arrays},
    )


ARRAY, SPARSE = array(CASE), array(replace(CASE, sparsity=pattern))
PROBLEMS = {"scalar": SCALAR, "array": ARRAY}


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple | dict):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            assert_same(got[key], expected[key])
    else:
        dense = got.toarray().reshape(expected.shape) if hasattr(got, "toarray") else got
        assert np.shape(dense) == np.shape(expected)
        np.testing.assert_allclose(dense, expected, rtol=1e-14)


@pytest.mark.parametrize(("name", "operator"), [(name, op) for name, of in PROBLEMS.items() for op in of.own])
def test_a_native_operator_is_used_directly(name: str, operator: Operator) -> None:
    problem = PROBLEMS[name]
    got, how = problem.result(operator, problem.having(*OPERATORS))
    assert how == "native"
    assert_same(got, problem.truth(operator))


@pytest.mark.parametrize(
    ("name", "operator", "needed"),
    [(name, op, needed) for name, of in PROBLEMS.items() for op, ways in of.fallbacks.items() for needed, _ in ways],
)
def test_every_fallback_gives_the_operator_and_names_its_parts(
    name: str, operator: Operator, needed: tuple[Operator, ...]
) -> None:
    problem = PROBLEMS[name]
    got, how = problem.result(operator, problem.having(*needed))
    assert how == f"from {' and '.join(needed)}"
    assert_same(got, problem.truth(operator))


@pytest.mark.parametrize("operator", ["gradient", "value_and_gradient", "jacobian", "jvp", "vjp"])
@pytest.mark.parametrize("only", ["jvp", "vjp"])
def test_the_value_and_one_of_jvp_and_vjp_are_enough_for_first_order(operator: Operator, only: str) -> None:
    assert_same(SCALAR.result(operator, SCALAR.having("value", only))[0], SCALAR.truth(operator))


@pytest.mark.parametrize("operator", ["jacobian", "jvp", "vjp"])
@pytest.mark.parametrize("only", ["jacobian", "jvp", "vjp"])
def test_for_an_array_one_of_the_three_is_enough(operator: Operator, only: str) -> None:
    assert_same(ARRAY.result(operator, ARRAY.having(only))[0], ARRAY.truth(operator))


@pytest.mark.parametrize(
    ("problem", "operator", "own"),
    [
        (SCALAR, "hvp", ("value", "gradient", "jvp", "vjp")),
        (SCALAR, "hessian", ("value", "gradient", "jvp", "vjp")),
        (ARRAY, "jacobian", ("value",)),
    ],
)
def test_without_a_fallback_the_librarys_refusal_is_raised(
    problem: Problem, operator: Operator, own: tuple[str, ...]
) -> None:
    with pytest.raises(Unsupported, match=f"no {operator} here"):
        problem.result(operator, problem.having(*own))


@pytest.mark.parametrize("operator", ["gradient", "value_and_gradient", "hvp", "hessian"])
def test_operators_of_scalars_are_refused_for_arrays(operator: Operator) -> None:
    with pytest.raises(Unsupported, match=f"an array-valued function has no {operator}; use jacobian"):
        ARRAY.result(operator, ARRAY.having(*OPERATORS))


def test_an_unexpected_array_value_is_unsupported() -> None:
    column = replace(SCALAR, own={**SCALAR.own, "jvp": lambda x, b, v: np.ones(1)})
    with pytest.raises(Unsupported, match=r"needs a scalar function; its value has shape \(1,\)"):
        column.result("gradient", column.having("jvp"))


def test_a_function_missing_in_the_installed_version_gets_a_fallback_or_is_unsupported() -> None:
    def own(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        if operator == "vjp":
            return SCALAR.own["vjp"]
        return np.an_operator_of_another_version  # type: ignore[attr-defined]

    library = Backend("lib", np, own, lambda leaf: leaf, np.asarray, None, None)
    assert SCALAR.result("gradient", library)[1] == "from vjp"
    with pytest.raises(
        Unsupported, match=rf"^numpy has no an_operator_of_another_version in the installed version {np.__version__}"
    ):
        SCALAR.result("hvp", library)


def test_any_other_missing_attribute_is_a_fault() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'") as raised:
        _ = A.nothing  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lacking(raised.value)
    refusal = MissingFunction("numpy has no such name")
    assert lacking(refusal) is refusal


def test_a_declared_pattern_takes_as_few_directions_as_it_allows() -> None:
    for backend in (SPARSE.having("jvp"), SPARSE.having("jvp", "jacobian")):
        got, how = SPARSE.result("jacobian", backend)
        # Two neighbours in x and one of w share a row, and so does the full column with all of x.
        assert how == f"from jvp, coloured: 3 directions for {2 * N + 2} columns"
        assert calls == ["jvp"] * 3
        assert got[0].nnz == 3 * N
        assert_same(got, SPARSE.truth("jacobian"))


def test_a_pattern_is_ignored_without_jvp_or_if_the_library_uses_it_itself() -> None:
    for backend, expected in (
        (SPARSE.having("vjp"), "from vjp"),
        (SPARSE.having("jvp", "jacobian", sparse_jacobian=True), "native"),
    ):
        got, how = SPARSE.result("jacobian", backend)
        assert how == expected
        assert_same(got, SPARSE.truth("jacobian"))


@pytest.mark.parametrize("operator", ["jvp", "vjp"])
def test_products_with_a_jacobian_of_sparse_blocks_are_right(operator: Operator) -> None:
    def sparse_jacobian(*args: Any) -> Any:
        def block(dense: Any) -> Any:
            return sparse.csr_array(np.reshape(dense, (2 * N, -1)))

        return tree.map_leaves(block, SPARSE.own["jacobian"](*args))

    library = replace(SPARSE, own={**SPARSE.own, "jacobian": sparse_jacobian}).having("jacobian", sparse_jacobian=True)
    got, how = SPARSE.result(operator, library)
    assert how == "from jacobian"
    assert_same(got, SPARSE.truth(operator))


def test_a_shape_unknown_to_numpy_is_reported() -> None:
    problem = array(replace(CASE, f=lambda xp, x, p: xp.no_such(x)))
    with pytest.raises(Unsupported, match="does not run on numpy"):
        problem.result("jacobian", problem.having("jvp"))


def test_a_refused_operator_is_not_requested_again_at_the_same_inputs() -> None:
    asked: list[tuple[str, float]] = []

    def refusing(operator: Operator, f: Any, args: tuple[Any, ...], wrt: tuple[int, ...]) -> Any:
        asked.append((operator, float(args[0][0])))
        if operator == "value":
            return f
        raise Unsupported(f"too long: {operator}")

    case = Case(f=lambda xp, x: xp.sum(x), inputs=lambda n, rng: {"x": np.ones(2)}, wrt=("x",), sizes=(1,))
    backend = Backend("refuses", Namespace(np), refusing, np.asarray, np.asarray, None, None)

    def reason(operator: Operator, start: float) -> str:
        f = function_of(case, ("x",), backend.xp)
        with pytest.raises(Unsupported) as refusal:
            prepare(backend, operator, f, (np.array([start, 1.0]),), (0,))
        return str(refusal.value)

    assert reason("gradient", 0.0) == reason("gradient", 0.0) == "too long: gradient"
    assert reason("value_and_gradient", 0.0) == "too long: value_and_gradient"
    assert len(asked) == len(set(asked))  # the parts of fallbacks too
    before = len(asked)
    assert reason("gradient", 2.0) == "too long: gradient"  # other inputs: requested again
    assert len(asked) > before
