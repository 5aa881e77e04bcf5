"""Compiled Jacobians and Hessians, dense and sparse, and their patterns, against the dense ones of the eager engine."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from adbench import tape
from adbench.tape.compiled.sparse import compression

RNG = np.random.default_rng(7)
X = RNG.uniform(0.6, 1.4, 8)
BAND = np.triu(np.tril(RNG.normal(size=(8, 8)), 1), -1)
FULL = RNG.normal(size=(8, 8))
TWICE, SHIFTED = np.array([0, 0, 3]), np.array([1, 2, 2])


def assigned(x):
    y = tape.zeros_like(x)
    y[1:] = x[:-1] ** 2
    y[0] = 3.0 * x[2]
    return y


def changes_its_argument(x):
    x[2] = x[0] * x[1]
    x[3:5] = x[5:7]
    return x * x


def loop_over_rows(x):
    return tape.loop(lambda i, s: s + tape.sin(s) * x[i], x * 1.0, 8)


def loop_of_neighbours(x):
    return tape.loop(lambda i, s: 0.5 * s + 0.1 * tape.concatenate([s[1:], s[:1]]) ** 2, x, 3)


def long_loop_of_neighbours(x):
    return tape.loop(lambda i, s: 0.5 * s + 0.01 * tape.concatenate([s[:1], s[:-1]]) ** 2, x, 12)


def loop_of_numbers(x):
    return tape.stack(list(tape.loop(lambda i, s: (s[0] * x[i], s[1] + x[0]), (x[1], x[2]), 8)))


EXACT = {
    "square": lambda x: x * x,
    "band": lambda x: x[1:-1] ** 2 * x[2:] - tape.sin(x[:-2]),
    "constant": lambda x: np.ones(3),
    "the argument itself": lambda x: x,
    "number": lambda x: tape.sum(x * x),
    "matrix of constants": lambda x: BAND @ x,
    "matrix of constants, after a function": lambda x: BAND @ tape.exp(x),
    "dense": lambda x: tape.sin(FULL @ x),
    "product of matrices": lambda x: x.reshape(2, 4) @ x.reshape(4, 2),
    "products of stacks": lambda x: x.reshape(2, 2, 2) @ x.reshape(2, 2, 2),
    "matrix by vector": lambda x: x.reshape(2, 4) @ x[:4],
    "diagonal matrix by vector": lambda x: tape.diag(x) @ (x * x),
    "triangle by vector": lambda x: tape.tril(x[:4].reshape(2, 2)) @ x[4:6],
    "outer": lambda x: tape.outer(x, x[:3]),
    "einsum": lambda x: tape.einsum("ij,kj->ik", x.reshape(2, 4), x.reshape(2, 4)),
    "assigned": assigned,
    "changes its argument": changes_its_argument,
    "loop over rows": loop_over_rows,
    "loop of neighbours": loop_of_neighbours,
    "long loop of neighbours": long_loop_of_neighbours,
    "loop of numbers": loop_of_numbers,
    "cumulative sum": lambda x: tape.cumsum(x * x),
    "cumulative product": tape.cumprod,
    "sorted": lambda x: tape.sort(x) ** 2,
    "repeated indices": lambda x: x[TWICE] * x[SHIFTED],
    "stacked numbers": lambda x: tape.stack([x[0], x[1] * x[2], tape.exp(x[7])]),
    "number of numbers": lambda x: x[0] * x[1] + x[2] ** 3,
    "roll": lambda x: tape.roll(x, 1) * x,
    "repeat": lambda x: tape.repeat(x, 2) * 2.0,
    "constant condition": lambda x: tape.where(np.arange(8) > 3, x * x, tape.flip(x)),
    "constant zeros": lambda x: x * np.array([0.0, 1.0] * 4) + tape.flip(x) * np.array([1.0, 0.0] * 4),
    "inverse": lambda x: tape.inv(np.eye(2) + x[:4].reshape(2, 2)),
    "log of sums": lambda x: tape.logsumexp(x.reshape(2, 4), axis=1),
    "softmax": lambda x: tape.softmax(x.reshape(2, 4)),
    "floor": lambda x: tape.floor(x) + x[::-1],
    "absolute": lambda x: abs(x - 1.01) * x,
    "density": lambda x: tape.normal_lpdf(x, 0.3, 1.2),
    "product of rows": lambda x: tape.prod(x.reshape(4, 2), axis=1),
    "mean removed": lambda x: x - tape.mean(x),
    "branch": lambda x: x[1:] * x[:-1] if x[0] > 0 else x[::-1] ** 2,
}
CONSERVATIVE = {
    "condition on values": lambda x: tape.where(x > 1, x * x, tape.flip(x)),
    "largest": lambda x: tape.max(x.reshape(2, 4), axis=1),
    "eigenvalues": lambda x: tape.linalg.eigvalsh(x[:4].reshape(2, 2) + x[:4].reshape(2, 2).T),
    "solution": lambda x: tape.solve(np.eye(8) + 0.1 * FULL, x * x),
    "Cholesky": lambda x: tape.cholesky(tape.diag(x[:3]) + 0.1 * np.eye(3)),
    "Fourier": lambda x: tape.fft.irfft(tape.fft.rfft(x), 8),
}


def as_matrix(block, rows, columns):
    return np.reshape(block, (np.size(rows), np.size(columns)))


def programs(compiled):
    return [p for s in compiled._signatures.values() for p in (*s.programs, *s.careful)]


def is_native(compiled):
    return not any(s.eager_because for s in compiled._signatures.values())


@pytest.mark.filterwarnings("ignore:sparsity of")
@pytest.mark.parametrize("name", [*EXACT, *CONSERVATIVE])
def test_jacobians_are_those_of_the_eager_engine(name):
    f = (EXACT | CONSERVATIVE)[name]
    fx, expected = tape.jacobian(f, X, "reverse")
    dense = tape.compile(f, X, operator="jacobian")
    sparse = tape.compile(f, X, operator="jacobian", sparse=True)
    for _ in range(2):  # the second call goes through the native entry point
        value, matrix = dense.call(X)
        np.testing.assert_allclose(value, fx, rtol=1e-14)
        assert np.shape(matrix) == np.shape(expected)
        np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-14)
        value, matrix = sparse.call(X)
        np.testing.assert_allclose(value, fx, rtol=1e-14)
        expected_rows = as_matrix(expected, fx, X)
        np.testing.assert_allclose(matrix.toarray(), expected_rows, rtol=1e-12, atol=1e-14)
        assert matrix.has_canonical_format
    assert is_native(dense)
    pattern = tape.sparsity(f, X)
    assert pattern.dtype == bool
    found = pattern.toarray()
    assert np.all(found[expected_rows != 0])
    if name in EXACT:
        np.testing.assert_array_equal(found, expected_rows != 0)


def arrow(x):
    return x[0] * tape.sum(x**2) + tape.sum(tape.exp(x[1:]))


def rosenbrock(x):
    return tape.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def grid(x):
    u = x.reshape(-1, 4)
    return tape.sum(tape.exp(u[1:] * u[:-1])) + tape.sum(tape.sin(u[:, 1:] - u[:, :-1]))


SCALAR = {
    "Rosenbrock": rosenbrock,
    "arrow": arrow,
    "grid": grid,
    "linear": lambda x: tape.sum(x),
    "constant": lambda x: 3.0,
    "separable": lambda x: tape.sum(tape.exp(x)),
    "dense": lambda x: tape.sum(x) ** 2,
    "quadratic form": lambda x: x @ (BAND @ x),
    "product of all": tape.prod,
    "loop": lambda x: tape.sum(loop_of_neighbours(x)),
    "long loop": lambda x: tape.sum(long_loop_of_neighbours(x)),
    "loop over rows": lambda x: tape.loop(lambda i, s: s + tape.sin(x[i]) * x[i], 0.0, 8),
    "density": lambda x: tape.normal_lpdf(x[:4], 0.3, 1.0 + x[4:] ** 2),
    "log of a sum": tape.logsumexp,
    "log determinant": lambda x: tape.log_determinant(np.eye(2) * 3.0 + x[:4].reshape(2, 2)),
    "numbers": lambda x: x[0] * x[1] * x[2] + tape.sin(x[3]) ** 2,
    "branch": lambda x: rosenbrock(x) if x[0] > 0 else arrow(x),
    "changes its argument": lambda x: tape.sum(changes_its_argument(x)),
}


@pytest.mark.parametrize("name", SCALAR)
def test_hessians_are_those_of_the_eager_engine(name):
    f = SCALAR[name]
    expected = tape.hessian(f, X)
    for is_sparse in (False, True):
        compiled = tape.compile(f, X, operator="hessian", sparse=is_sparse)
        for _ in range(2):
            value, gradient, matrix = compiled.call(X)
            assert value == pytest.approx(expected[0], rel=1e-13)
            np.testing.assert_allclose(gradient, expected[1], rtol=1e-12, atol=1e-13)
            matrix = matrix.toarray() if is_sparse else matrix
            np.testing.assert_allclose(matrix, expected[2], rtol=1e-10, atol=1e-12)
        assert is_native(compiled)
    pattern = tape.sparsity(f, X, operator="hessian").toarray()
    np.testing.assert_array_equal(pattern, pattern.T)
    assert np.all(pattern[expected[2] != 0])
    if name not in ("product of all",):  # its derivative P / x[i] reads all elements
        np.testing.assert_array_equal(pattern, expected[2] != 0)


# Random functions

UNARY = {"sin": tape.sin, "square": lambda v: v * v, "flip": tape.flip, "floor": tape.floor, "cumsum": tape.cumsum}
UNARY |= {"absolute": lambda v: abs(v - 0.1) * v, "norm": lambda v: v / (1.0 + tape.linalg.norm(v[:3]))}
UNARY |= {"roll": lambda v: tape.roll(v, 2), "sum": lambda v: v + tape.sum(v[:2]), "matrix": lambda v: BAND[:5, :5] @ v}
UNARY |= {"part": lambda v: tape.concatenate([v[1:3], v[2:5]]), "loop": lambda v: tape.loop(lambda i, s: s * 0.5, v, 9)}
BINARY = {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "where": lambda a, b: tape.where(a > 0.2, a, b)}
BINARY |= {"divide": lambda a, b: a / (2.0 + b * b), "branch": lambda a, b: a * b if a[0] > b[1] else a - b}


def random_function(steps):
    """A function of five numbers that applies these operations, each to earlier values."""

    def f(x):
        values = [x]
        for name, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[name](a) if name in UNARY else BINARY[name](a, b))
        return values[-1]

    return f


STEPS = st.lists(
    st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8
)
POINTS = st.lists(st.floats(-1.5, 1.5).map(lambda v: round(v, 2) + 0.003), min_size=5, max_size=5).map(np.array)


@settings(max_examples=25, deadline=None)
@given(STEPS, POINTS, POINTS)
def test_random_functions_have_the_jacobians_of_the_eager_engine_at_any_point(steps, first, second):
    f = random_function(steps)
    compiled = tape.compile(f, first, operator="jacobian", sparse=True)
    for x in (first, second, first):  # another branch of f is another recording with another pattern
        fx, expected = tape.jacobian(f, x, "reverse")
        value, matrix = compiled.call(x)
        np.testing.assert_allclose(value, fx, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-10, atol=1e-12)
        assert np.all(tape.sparsity(f, x).toarray()[expected != 0])


@settings(max_examples=15, deadline=None)
@given(STEPS, POINTS, POINTS)
def test_random_functions_have_the_hessians_of_the_eager_engine_at_any_point(steps, first, second):
    vector = random_function(steps)
    f = lambda x: tape.sum(vector(x) ** 2)  # noqa: E731
    compiled = tape.compile(f, first, operator="hessian", sparse=True)
    for x in (first, second):
        expected = tape.hessian(f, x)[2]
        matrix = compiled.call(x)[2].toarray()
        np.testing.assert_allclose(matrix, expected, rtol=1e-8, atol=1e-8 * (1 + np.abs(expected).max()))


# Patterns that change


def test_a_failed_guard_finds_the_pattern_again():
    def f(x):
        if x[0] > 0:
            return x[1:] * x[:-1]
        return tape.where(x[1] > 0, x[1:] + tape.sum(x), x[:1] * x[1:]) if x[2] > 0 else x[2:]

    compiled = tape.compile(f, X, operator="jacobian", sparse=True)
    points = [X, -X, X * [-1, 1, 1, 1, 1, 1, 1, 1], X * [-1, -1, 1, 1, 1, 1, 1, 1]]
    for x in points * 2:
        fx, expected = tape.jacobian(f, x, "reverse")
        value, matrix = compiled.call(x)
        np.testing.assert_allclose(value, fx, rtol=1e-14)
        np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-13)
    assert len(programs(compiled)) == 3


def test_an_index_that_depends_on_values_is_part_of_the_pattern():
    f = lambda x: x[tape.argsort(x)][:3] * x[:3]  # noqa: E731
    compiled = tape.compile(f, X, operator="jacobian", sparse=True)
    for x in (X, X[::-1].copy(), X + np.arange(8.0)):
        np.testing.assert_allclose(compiled(x)[1].toarray(), tape.jacobian(f, x)[1], rtol=1e-14)


def test_a_value_whose_shape_follows_a_branch_is_right_in_every_operator():
    f = lambda x: x[:2] * 2.0 if x[0] > 0 else x * 3.0  # noqa: E731
    x = np.ones(40)
    for operator, options in (("value", {}), ("jacobian", {}), ("jacobian", {"sparse": True})):
        compiled = tape.compile(f, x, operator=operator, **options)
        for y in (x, -x, x, -x):
            result = compiled.call(y)
            value = result if operator == "value" else result[0]
            np.testing.assert_array_equal(value, f(y))


def test_a_value_whose_structure_follows_a_branch_is_right():
    f = lambda x: (x[:2] * 2.0, x[0]) if x[0] > 0 else x * 3.0  # noqa: E731
    x = np.ones(40)
    for example in (x, -x):
        compiled = tape.compile(f, example, operator="value")
        for _ in range(3):
            np.testing.assert_array_equal(compiled.call(-x), -3.0 * x)
            pair, number = compiled.call(x)
            assert (pair.tolist(), number) == ([2.0, 2.0], 1.0)


def test_results_share_no_memory():
    compiled = tape.compile(rosenbrock, X, operator="hessian", sparse=True)
    first = compiled.call(X)[2]
    expected = first.toarray()
    first.indices[:] = 0
    first.data[:] = 5.0
    first.indptr[:] = 0
    second = compiled.call(X)[2]
    np.testing.assert_array_equal(second.toarray(), expected)
    second.eliminate_zeros()
    np.testing.assert_array_equal(compiled.call(X)[2].toarray(), expected)


def test_zero_times_infinity_is_zero_as_in_the_eager_engine():
    f = lambda x: tape.sqrt(x[1:]) * x[:-1] + x[:-1] * tape.log(x[1:] + 1.0)  # noqa: E731
    x = np.array([0.0, 0.0, 1.0, 0.0, 2.0])
    expected = tape.jacobian(f, x, "reverse")[1]
    for options in ({}, {"sparse": True}):
        matrix = tape.compile(f, x, operator="jacobian", **options)(x)[1]
        matrix = matrix.toarray() if options else matrix
        np.testing.assert_array_equal(np.isnan(matrix), np.isnan(expected))
        np.testing.assert_allclose(matrix, expected, rtol=1e-13)


# Arguments and results of any structure


def test_numbers_have_one_by_one_matrices():
    for f in (tape.sin, lambda x: x * 3.0, lambda x: 2.0):
        fx, slope = tape.jacobian(f, 0.7)
        assert tape.compile(f, 0.7, operator="jacobian")(0.7) == pytest.approx((fx, slope))
        value, matrix = tape.compile(f, 0.7, operator="jacobian", sparse=True)(0.7)
        assert matrix.shape == (1, 1)
        assert (value, matrix.sum()) == pytest.approx((fx, slope))
        assert tape.compile(f, 0.7, operator="hessian")(0.7) == pytest.approx(tape.hessian(f, 0.7))


def same(ours, theirs, rtol=1e-13):
    """Whether two nests of arrays agree; a sparse matrix has its block's elements in two axes."""
    ours, structure = tape.trees.tree_flatten(ours)
    theirs, expected = tape.trees.tree_flatten(theirs)
    assert structure == expected
    for a, b in zip(ours, theirs, strict=True):
        a = a.toarray().reshape(np.shape(b)) if hasattr(a, "toarray") else a
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-14)
    return True


def test_nests_give_blocks_like_the_eager_engine():
    f = lambda p: {"u": p["a"] * p["b"], "v": [tape.sum(p["a"]), p["a"][:2] @ p["c"]]}  # noqa: E731
    p = {"a": X[:3], "b": 2.0, "c": FULL[:2, :2]}
    fx, expected = tape.jacobian(f, p)
    for is_sparse in (False, True):
        compiled = tape.compile(f, p, operator="jacobian", sparse=is_sparse)
        assert same(compiled(p), (fx, expected))
        assert is_native(compiled)
    parts = tape.trees.tree_leaves(expected)
    heights, widths = (3, 1, 2), (3, 1, 4)
    lines = [[np.reshape(parts[3 * i + j], (h, w)) for j, w in enumerate(widths)] for i, h in enumerate(heights)]
    np.testing.assert_array_equal(tape.sparsity(f, p).toarray(), np.block(lines) != 0)
    g = lambda p: tape.sum(p["a"]) * p["b"] + tape.sum(p["c"] @ p["a"][:2])  # noqa: E731
    for is_sparse in (False, True):
        assert same(tape.compile(g, p, operator="hessian", sparse=is_sparse)(p), tape.hessian(g, p))


@pytest.mark.parametrize("wrt", [None, (0, 2), (2, 0), (0,), 0])
def test_several_arguments_give_one_block_each(wrt):
    f = lambda x, k, y: x[:2] ** k * y  # noqa: E731
    h = lambda x, k, y: tape.sum(x[:2] ** k * y)  # noqa: E731
    x, y = X[:3], X[3:5]
    for k in (2, 3):
        for function, operator, eager in ((f, "jacobian", tape.jacobian), (h, "hessian", tape.hessian)):
            if wrt == 0:
                expected = eager(lambda x: function(x, k, y), x)  # noqa: B023
            elif wrt == (0,):
                expected = eager(lambda v: function(v[0], k, y), (x,))  # noqa: B023
            elif wrt == (2, 0):
                expected = eager(lambda v: function(v[1], k, v[0]), (y, x))  # noqa: B023
            else:
                expected = eager(lambda v: function(v[0], k, v[1]), (x, y))  # noqa: B023
            for is_sparse in (False, True):
                compiled = tape.compile(function, x, 2, y, operator=operator, wrt=wrt, sparse=is_sparse)
                for _ in range(2):
                    assert same(compiled.call(x, k, y), expected)


@pytest.mark.parametrize("f", [lambda x: x[:0], lambda x: x * 2.0, lambda x: np.zeros((0, 2))])
def test_empty_arrays_give_empty_matrices(f):
    for x in (np.zeros(0), np.ones(3)):
        fx, expected = tape.jacobian(f, x)
        value, matrix = tape.compile(f, x, operator="jacobian")(x)
        assert np.shape(value) == np.shape(fx)
        assert np.shape(matrix) == np.shape(expected)
        sparse = tape.compile(f, x, operator="jacobian", sparse=True)(x)[1]
        assert sparse.shape == (np.size(fx), x.size)
        assert tape.sparsity(f, x).shape == (np.size(fx), x.size)
    assert tape.compile(tape.sum, np.zeros(0), operator="hessian", sparse=True)(np.zeros(0))[2].shape == (0, 0)


def test_rules_without_forward_mode_give_rows():
    cube = tape.function_gradients(lambda x: x**3, reverse=(lambda _v, adj, x: adj * 3 * x**2,), name="reverse only")
    expected = np.diag(3 * X**2)
    for options in ({}, {"sparse": True}):
        compiled = tape.compile(cube, X, operator="jacobian", **options)
        matrix = compiled(X)[1]
        np.testing.assert_allclose(matrix.toarray() if options else matrix, expected, rtol=1e-14)
        assert is_native(compiled)


def test_a_function_that_cannot_be_recorded_runs_eagerly_and_says_why():
    f = lambda x: tape.sum(tape.linalg.eigvalsh(tape.outer(x, x) + np.eye(3)) ** 3)  # noqa: E731
    x = X[:3]
    expected = tape.hessian(f, x)[2]
    for options in ({}, {"sparse": True}):
        compiled = tape.compile(f, x, operator="hessian", **options)
        matrix = compiled(x)[2]
        np.testing.assert_allclose(matrix.toarray() if options else matrix, expected, rtol=1e-12)
        assert not is_native(compiled)
        assert "runs in the eager engine" in compiled.explain()


def test_opaque_rules_are_named():
    f = CONSERVATIVE["Fourier"]
    with pytest.warns(UserWarning, match="counts all entries of fft, ifft"):
        tape.sparsity(f, X)
    assert any("fft: its results count as depending on all" in n for n in tape.compile(f, X, operator="jacobian").notes)


def test_wrong_arguments_are_refused_in_one_line():
    for call, text in (
        (lambda: tape.sparsity(rosenbrock, X, "gradient"), "sparsity: operator: expected 'jacobian' or 'hessian'"),
        (
            lambda: tape.compile(rosenbrock, X, sparse=True),
            "compile: sparse: expected operator 'jacobian'",
        ),
        (lambda: tape.compile(rosenbrock, X, operator="jacobien"), "compile: operator: expected one of"),
        (lambda: tape.compile(lambda x: x * x, X, operator="hessian"), "should return a scalar, got an array of shape"),
        (lambda: tape.sparsity(lambda x: x * x, X, "hessian"), "should return a scalar, got an array of shape"),
    ):
        with pytest.raises(ValueError, match=text) as error:
            call()
        assert "\n" not in str(error.value)
    with pytest.raises(TypeError, match="sparsity: x: expected numbers"):
        tape.sparsity(rosenbrock, "x")


# How many products


@pytest.mark.parametrize(
    ("f", "operator", "products"),
    [
        (EXACT["square"], "jacobian", 1),
        (EXACT["band"], "jacobian", 3),
        (EXACT["matrix of constants"], "jacobian", 3),
        (EXACT["number"], "jacobian", 1),  # a row: one product from the left
        (lambda x: x[0] * tape.ones(8) * np.arange(8.0), "jacobian", 1),  # a column
        (EXACT["mean removed"], "jacobian", 8),
        (rosenbrock, "hessian", 3),
        (arrow, "hessian", 2),
        (SCALAR["separable"], "hessian", 1),
        (SCALAR["linear"], "hessian", 1),
    ],
)
def test_the_number_of_products_is_that_of_a_good_colouring(f, operator, products):
    assert [p.products for p in programs(tape.compile(f, X, operator=operator))] == [products]


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("operator", ["jacobian", "hessian"])
def test_a_loop_over_the_colours_gives_the_same_as_one_copy_for_each(operator, n, monkeypatch):
    f = loop_of_neighbours if operator == "jacobian" else grid
    x = RNG.uniform(0.5, 1.5, n)
    monkeypatch.setattr(compression, "SMALL", 10**6)
    monkeypatch.setattr(compression, "FEW_OPERATIONS", 10**6)
    few = tape.compile(f, x, operator=operator)(x)
    monkeypatch.setattr(compression, "FEW_OPERATIONS", 1)
    many = tape.compile(f, x, operator=operator)
    assert is_native(many)
    np.testing.assert_allclose(many(x)[-1], few[-1], rtol=1e-13, atol=1e-15)


LARGER = RNG.normal(size=(20, 20)) / 4.0
NARROW = np.triu(np.tril(LARGER, 1), -1)
WITH_MATRICES = {
    "one layer": lambda x: tape.sin(LARGER @ x),
    "from the left": lambda x: tape.sin(x @ LARGER),
    "two layers": lambda x: tape.tanh(LARGER @ tape.tanh(LARGER[:, ::-1] @ x)),
    "band": lambda x: NARROW @ tape.exp(NARROW @ x),
    "matrix of variables": lambda x: tape.outer(x, x * x) @ x[::-1],
    "wide": lambda x: tape.sin(LARGER[:, :15] @ x[:15]) * x,
    "in a loop": lambda x: tape.loop(lambda i, s: tape.sin(LARGER @ s), x, 9),
}


@pytest.mark.parametrize("name", WITH_MATRICES)
def test_products_of_large_matrices_for_all_colours_at_once_are_right(name):
    f = WITH_MATRICES[name]
    x = RNG.uniform(0.5, 1.5, 20)
    jacobian = tape.compile(f, x, operator="jacobian")
    np.testing.assert_allclose(jacobian(x)[1], tape.jacobian(f, x)[1], rtol=1e-11, atol=1e-13)
    g = lambda x: tape.sum(f(x) ** 2)  # noqa: E731
    hessian = tape.compile(g, x, operator="hessian", sparse=True)
    np.testing.assert_allclose(hessian(x)[2].toarray(), tape.hessian(g, x)[2], rtol=1e-9, atol=1e-11)
    assert is_native(jacobian)
    assert is_native(hessian)


def test_a_product_over_the_limit_of_entries_counts_as_full(monkeypatch):
    from adbench.tape.compiled.sparse import dependence

    monkeypatch.setattr(dependence, "MOST_ENTRIES", 3)
    f = EXACT["band"]
    matrix = tape.compile(f, X, operator="jacobian", sparse=True)(X)[1]
    assert matrix.nnz == 48
    np.testing.assert_allclose(matrix.toarray(), tape.jacobian(f, X)[1], rtol=1e-13)
