"""Compact Jacobians: the algebra compared with dense matrices, both modes with 50-digit differences, and memory."""

from __future__ import annotations

import importlib.util
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from adbench import tape
from adbench.tape import pqr
from adbench.tape.pqr import compact
from tests.tape import truth
from tests.tape.truth import mp

rng = np.random.default_rng(7)
A = rng.normal(size=(3, 4))
B = rng.normal(size=(4, 2))
X = rng.normal(size=4)


# The algebra


def forms(n):
    """One of each form of shape (n, n), n = 6."""
    some = rng.normal
    diagonal = pqr.Diagonal(some(size=n))
    lazy = pqr.LazyProduct([(diagonal, pqr.Dense(some(size=(n, n)))), (pqr.Dense(some(size=(n, n))), diagonal)])
    matrix = some(size=(n, n))
    return [
        pqr.IdentityMultiple(1.0, n),
        pqr.IdentityMultiple(-2.5, n),
        diagonal,
        pqr.OneInRow(np.array([3, -1, 0, 0, 5, 2]), some(size=n), n),
        pqr.OneInRow(np.array([1, 1, 4, 0, -1, -1]), 2.0, n),
        pqr.OneInColumn(np.array([2, 2, -1, 0, 1, 5]), some(size=n), n),
        pqr.Scaled(some(size=n), pqr.Dense(some(size=(n, n)))),
        pqr.Scaled(3.0, diagonal),
        pqr.Kronecker(some(size=(2, 2)), some(size=(3, 3))),
        pqr.Kronecker(3, some(size=(2, 2))),
        pqr.Kronecker(some(size=(2, 2)), 3),
        pqr.Implicit((n, n), lambda w: w @ matrix, lambda v: matrix @ v, n),
        pqr.Implicit((n, n), lambda w: w @ matrix, None, n),
        pqr.Implicit((n, n), None, lambda v: matrix @ v, n),
        lazy,
        pqr.LazyProduct([(pqr.Dense(matrix), lazy), (diagonal, lazy)]),
        pqr.Dense(some(size=(n, n))),
    ]


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def entries(form):
    """The matrix column by column, by right products with unit vectors."""
    return np.stack([form.right(e) for e in np.eye(form.shape[1])], 1)


@pytest.fixture(params=[compact.DENSE_LIMIT, 0], ids=["small ones multiplied out", "nothing multiplied out"])
def limit(request, monkeypatch):
    monkeypatch.setattr(compact, "DENSE_LIMIT", request.param)


def test_left_and_right_products_and_the_dense_matrix_agree_for_every_form():
    for form in forms(6):
        matrix = entries(form)
        same(form.dense(), matrix)
        for w in (rng.normal(size=6), rng.normal(size=(3, 6))):
            same(form.left(w), w @ matrix)
            same(form.right(w.T), matrix @ w.T)
            same(w @ form, w @ matrix)
            same(form @ w.T, matrix @ w.T)


@pytest.mark.usefixtures("limit")
def test_composition_of_any_two_forms_is_the_product_of_their_matrices():
    for a in forms(6):
        for b in forms(6):
            for lazy in (False, True):
                same(compact.compose(a, b, lazy=lazy).dense(), entries(a) @ entries(b))


@pytest.mark.usefixtures("limit")
def test_the_sum_of_any_two_forms_is_the_sum_of_their_matrices():
    for a in forms(6):
        for b in forms(6):
            for lazy in (False, True):
                same(compact.add(a, b, lazy=lazy).dense(), entries(a) + entries(b))


def test_forms_closed_under_composition_and_sum_keep_their_form():
    identity, _, diagonal, row, *_ = forms(6)
    column, scaled, kronecker = pqr.OneInColumn(np.arange(6), 2.0, 6), forms(6)[6], pqr.Kronecker(3, np.eye(2) + 1)
    for a, b, expected in [
        (identity, kronecker, pqr.Kronecker),
        (diagonal, diagonal, pqr.Diagonal),
        (diagonal, row, pqr.OneInRow),
        (row, diagonal, pqr.OneInRow),
        (row, row, pqr.OneInRow),
        (column, diagonal, pqr.OneInColumn),
        (diagonal, column, pqr.OneInColumn),
        (column, column, pqr.OneInColumn),
        (diagonal, kronecker, pqr.Scaled),
        (diagonal, scaled, pqr.Scaled),
        (kronecker, kronecker, pqr.Kronecker),
    ]:
        assert type(a @ b) is expected
    assert (diagonal @ scaled).inner is scaled.inner
    assert type(diagonal + identity) is pqr.Diagonal
    assert type(kronecker + kronecker) is pqr.Kronecker
    assert type(pqr.Kronecker(kronecker.b, 3) + pqr.Kronecker(kronecker.b, 3)) is pqr.Kronecker
    assert type(row + row) is pqr.OneInRow


def test_a_large_product_without_a_compact_form_stays_lazy():
    wide = pqr.Implicit((2000, 2000), lambda w: w, lambda v: v, 2000)
    assert type(wide @ wide) is pqr.LazyProduct


def test_a_lazy_product_visits_shared_factors_once():
    calls = []

    def counted(w):
        calls.append(1)
        return w

    form = pqr.LazyProduct([(pqr.Implicit((3, 3), counted, counted), pqr.IdentityMultiple(1.0, 3))])
    for _ in range(30):  # 2³⁰ paths
        form = pqr.LazyProduct([(pqr.IdentityMultiple(0.5, 3), form), (pqr.IdentityMultiple(0.5, 3), form)])
    same(form.left(np.ones(3)), np.ones(3))
    same(form.right(np.ones(3)), np.ones(3))
    assert len(calls) == 2


def test_errors_name_the_form_the_expected_and_the_given_shape():
    with pytest.raises(ValueError, match=r"Diagonal.left: the Jacobian has shape \(3, 3\).*length 3.*got shape \(2,\)"):
        pqr.Diagonal(np.ones(3)).left(np.ones(2))
    with pytest.raises(ValueError, match=r"Dense.right.*length 4 along axis 0.*got shape \(3, 4\)"):
        pqr.Dense(A).right(A)
    with pytest.raises(ValueError, match=r"compose: shapes \(3, 4\) and \(3, 4\) do not match"):
        pqr.Dense(A) @ pqr.Dense(A)
    with pytest.raises(ValueError, match=r"add: shapes \(3, 4\) and \(2, 4\) do not match"):
        pqr.Dense(A) + pqr.Dense(B.T)
    with pytest.raises(ValueError, match="expected a left or a right product, got neither"):
        pqr.Implicit((2, 2), None, None)
    with pytest.raises(
        ValueError, match="compact_jacobian: mode: expected 'forward', 'hybrid' or 'dense', got 'reverse'"
    ):
        pqr.compact_jacobian(tape.sin, 1.0, "reverse")


# The two modes


def written(x):
    y = x.copy()
    y[1:3] = tape.sin(x[:2]) if isinstance(x, tape.Active) else mp.sin(x[:2])
    y[3] = x[0] * x[3]
    return y


def filled(x):
    y = tape.zeros_like(x) if isinstance(x, tape.Active) else np.zeros(4) * x
    for i in range(4):
        y[i] = x[i] * x[3 - i]
    return y


def recurrence(x):
    return tape.loop(lambda _, s: s + (x * x + 1) / s, 1, 20)


CASES = {
    "power": (lambda x: x**2, lambda x: x**2, A, pqr.Diagonal),
    "scalar": (lambda x: tape.sin(3.0 * x), lambda x: mp.sin(3 * x), 1.2, pqr.IdentityMultiple),
    "sum": (lambda x: tape.sum(x**2), lambda x: np.sum(x**2), A, pqr.OneInColumn),
    "column sums": (lambda x: tape.sum(x**3, 0), lambda x: np.sum(x**3, 0), A, pqr.OneInColumn),
    "recurrence": (recurrence, recurrence, A, pqr.Diagonal),
    "gather": (lambda x: tape.exp(x)[[0, 0, 2]], lambda x: mp.exp(x)[[0, 0, 2]], X, pqr.OneInRow),
    "join": (lambda x: tape.concatenate([x[1:], x**2]), lambda x: np.concatenate([x[1:], x**2]), X, pqr.OneInRow),
    "triangle": (lambda x: tape.tril(x), lambda x: np.tril(np.ones(A.shape)) * x, A, pqr.OneInRow),
    "broadcast": (lambda x: A * x, lambda x: A * x, X, pqr.OneInRow),
    "left product": (lambda x: B.T @ x.T, lambda x: B.T @ x.T, A, None),
    "product": (lambda x: x @ B, lambda x: x @ B, A, pqr.Kronecker),
    "two products": (lambda x: x @ x.T @ x, lambda x: x @ x.T @ x, A, None),
    "matrix times vector": (lambda x: A @ x, lambda x: A @ x, X, pqr.Dense),
    "vector times matrix": (lambda x: X @ x, lambda x: X @ x, B, pqr.Kronecker),
    "inner product": (lambda x: x @ x, lambda x: x @ x, X, pqr.Dense),
    "stack of matrices": (
        lambda x: x.reshape(3, 2, 2) @ B[:2],
        lambda x: x.reshape(3, 2, 2) @ B[:2],
        A,
        pqr.Implicit,
    ),
    "indexed assignment": (written, written, X, None),
    "filled": (filled, filled, X, None),
    "cumulative": (lambda x: tape.cumsum(x * x), lambda x: np.cumsum(x * x), X, None),
    "shared": (lambda x: x - tape.sum(x) * x[0], lambda x: x - np.sum(x) * x[0], X, None),
    "stack": (lambda x: tape.stack([x[0] * x[1], x[2]]), lambda x: np.stack([x[0] * x[1], x[2]]), X, None),
    "norm": (lambda x: tape.linalg.norm(x), lambda x: mp.sqrt(np.sum(x * x)), A, pqr.Implicit),
}


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("mode", ["forward", "hybrid"])
@pytest.mark.parametrize("name", CASES)
def test_both_modes_agree_with_fifty_digit_differences(name, mode):
    f, precise, x, form = CASES[name]
    value, jacobian = pqr.compact_jacobian(f, x, mode)
    expected = truth.jacobian(precise, x)
    assert jacobian.shape == (np.size(value), np.size(x))
    np.testing.assert_allclose(jacobian.dense(), expected.reshape(jacobian.shape), rtol=2e-14, atol=1e-15)
    assert form is None or type(jacobian) is form


def test_indexed_assignment_from_the_same_array_has_one_entry_in_a_row():
    def f(a):
        a[2] = a[0]
        return 3.0 * a

    jacobian = pqr.compact_jacobian(f, X)[1]
    assert type(jacobian) is pqr.OneInRow
    same(jacobian.dense(), 3.0 * np.eye(4)[[0, 1, 0, 3]])


def test_a_result_that_does_not_depend_on_x_has_a_jacobian_of_zeros():
    value, jacobian = pqr.compact_jacobian(lambda x: np.ones(2), A)
    assert value.tolist() == [1.0, 1.0]
    assert jacobian.dense().tolist() == np.zeros((2, 12)).tolist()


def test_zero_times_infinity_is_zero_in_compact_products():
    f = lambda x: x * tape.sqrt(x)  # noqa: E731  # a formula
    assert pqr.compact_jacobian(f, np.array([0.0, 4.0]))[1].dense().tolist() == [[0.0, 0.0], [0.0, 3.0]]
    assert pqr.compact_jacobian(f, 0.0)[1].dense().tolist() == [[0.0]]


def test_a_constant_changed_after_the_call_does_not_reach_a_lazy_jacobian():
    b = B.copy()
    jacobian = pqr.compact_jacobian(lambda x: tape.cumsum(x @ b), A, "hybrid")[1]
    before = jacobian.dense()
    b[:] = 0.0
    assert jacobian.dense().tolist() == before.tolist()


def test_the_input_is_left_untouched_by_assignment_in_the_function():
    x = X.copy()
    pqr.compact_jacobian(written, x)
    assert x.tolist() == X.tolist()


def test_a_custom_rule_works_in_these_modes():
    cube = tape.function_gradients(lambda x: x**3, (lambda _v, adj, x: adj * 3.0 * x * x,), name="cube")
    jacobian = pqr.compact_jacobian(cube, X)[1]
    assert type(jacobian) is pqr.Diagonal
    same(jacobian.dense(), np.diag(3 * X**2))


def test_a_missing_derivative_raises_an_error_that_names_it():
    one_way = tape.function_gradients(np.cumsum, reverse=(None,), name="one_way")
    with pytest.raises(tape.RuleError, match="one_way has no derivative in argument 0 in reverse mode"):
        pqr.compact_jacobian(one_way, X)[1].dense()
    wrong = tape.function_gradients(np.cumsum, reverse=(lambda _v, adj, _x: adj[:2],), name="wrong")
    with pytest.raises(tape.RuleError, match=r"wrong: the gradient for argument 0.*expected \(4,\), got \(2,\)"):
        pqr.compact_jacobian(wrong, X)[1].dense()


def test_a_variable_of_a_finished_block_raises_an_error():
    kept = []
    pqr.compact_jacobian(lambda x: kept.append(x) or x, X)
    with pytest.raises(tape.TapeError, match="sin: an argument is a variable of a block that has ended"):
        tape.sin(kept[0])


# Memory


@pytest.mark.parametrize("mode", ["forward", "hybrid"])
@pytest.mark.parametrize("inside", [False, True], ids=["whole", "reverse inside"])
def test_sum_of_squares_of_a_1000_by_1000_matrix_takes_less_than_ten_times_its_memory(mode, inside):
    m = rng.normal(size=(1000, 1000))
    f = lambda m: tape.sum(m**2)  # noqa: E731  # a formula
    g = (lambda m: pqr.back_gradient(f, m)) if inside else f
    tracemalloc.start()
    result = pqr.with_gradient(g, mode, m=m)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(result.gradient["m"], 2.0 * m)
    assert peak < 10 * m.nbytes


def test_the_table_of_the_documentation_is_right_and_compact_is_smaller():
    path = Path(__file__).parents[2] / "docs" / "examples" / "compact_jacobians.py"
    spec = importlib.util.spec_from_file_location("compact_jacobians_example", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    m = rng.normal(size=(example.SIDE, example.SIDE))
    steps = example.CHAINS["sum(M**2)"]
    compact_memory = example.seconds_and_bytes(lambda: example.compact(steps, m))[1]
    assert compact_memory < 10 * m.nbytes
    for steps in example.CHAINS.values():
        assert example.compact(steps, m).numbers <= 2 * m.size
