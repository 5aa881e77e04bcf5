"""Compiled arrays: broadcasting, reductions, moved elements and matrices, in registers and in memory."""

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.inspection import listing
from adbench.tape.compiled.kernels import orthogonal_factors

RNG = np.random.default_rng(3)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def _same_inputs_in_any_order():
    """Draw the same numbers in each run, whichever tests this process had before."""
    RNG.bit_generator.state = START


def agrees(f, *args, rtol=1e-12, atol=1e-13, native=True):
    """Check that compiled value and gradient equal the eager engine's, at the example and at another point."""
    compiled = tape.compile(f, *args, wrt=tuple(range(len(args))))
    for scale in (1.0, 0.8):
        given = [np.multiply(a, scale) for a in args]
        value, gradient = compiled(*given)
        expected, slopes = tape.gradient(lambda x: f(*x), tuple(given))
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-11)  # sums cancel: terms are up to 5,000
        for ours, theirs in zip(gradient, slopes, strict=True):
            assert np.shape(ours) == np.shape(theirs)
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
    assert "eager" not in compiled.explain()
    assert not native or "Python" not in compiled.explain()
    return compiled


def weighted(y):
    """A sum with different weights, which distinguishes all elements."""
    shape = np.shape(y) if isinstance(y, np.ndarray) else y.shape
    return tape.sum(y * np.cos(np.arange(1.0, 1.0 + np.prod(shape, dtype=int))).reshape(shape))


SHAPES = [
    ((3, 1), (1, 4)),
    ((7, 1), (1, 9)),
    ((40,), ()),
    ((5, 8), (8,)),
    ((2, 3, 9), (3, 1)),
    ((1,), (33,)),
    ((6, 6), (6, 1)),
    ((40, 3), (3,)),
    ((1, 40, 3), (5, 1, 3)),
    ((2, 40, 1, 3), (1, 3, 1)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_broadcasting_agrees_with_the_eager_engine(shapes):
    x, y = (RNG.uniform(0.5, 2.0, s) if s else 1.3 for s in shapes)
    agrees(lambda x, y: weighted(x * y + tape.exp(x - y) / (x + y) - tape.maximum(x, y)), x, y)


REDUCED = [(4,), (17,), (5000,), (3, 4), (5, 9), (9, 40), (2, 3, 4), (4, 5, 9), (40, 3), (2, 40, 3)]


@pytest.mark.parametrize("shape", REDUCED)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod", "logsumexp", "std"])
def test_reductions_over_every_axis_agree(shape, reduce):
    x = RNG.uniform(0.5, 1.5, shape)
    axes = [None, *range(len(shape)), *([(0, -1)] if len(shape) > 1 else [])]
    for axis in axes:
        if reduce == "prod" and x.size > 100:
            continue

        def f(x, axis=axis):
            y = getattr(tape, reduce)(x, axis=axis)
            return weighted(y * y) if y.shape else y * y

        agrees(f, x, rtol=1e-11)


SHORT_LAST = {
    "transposed": lambda y: weighted(tape.transpose(y, (2, 0, 1)) * 1.5),
    "sliced": lambda y: weighted(tape.exp(y[:, ::-3, 1:])),
    "reshaped": lambda y: weighted(tape.reshape(y, (-1, 4)) * 2.0),
    "joined": lambda y: weighted(tape.concat([y, y * y], axis=1)),
    "compared": lambda y: weighted(tape.where(y > 1.0, y * y, tape.exp(y))),
    "kept axes": lambda y: weighted(tape.exp(tape.sum(y, axis=1, keepdims=True)) * y),
    "no first axis": lambda y: weighted(tape.sum(y, axis=0) / tape.sum(tape.sum(y, axis=0))),
    "product": lambda y: weighted((y @ y[0, :3, :].T) @ y[1, :3, :]),
    "matrix functions": lambda y: tape.sum(tape.linalg.inv(y[0].T @ y[0]) @ y[1].T),
}
"""Functions of an array with a short last axis, which loops may store in another order."""


@pytest.mark.parametrize("name", SHORT_LAST)
def test_arrays_with_a_short_last_axis_agree(name):
    x, y = RNG.uniform(0.5, 1.5, (40, 3)), RNG.uniform(0.5, 1.5, (2, 1, 3))
    agrees(lambda x, y: SHORT_LAST[name]((x - 0.2) * y), x, y, rtol=1e-10, atol=1e-11)


def test_a_long_sum_is_as_accurate_as_numpys():
    x = RNG.normal(size=1_000_003) * 1e3 + 1.0
    exact = float(np.sum(x.astype(np.longdouble)))
    ours = tape.compile(tape.sum, x, operator="value")(x)
    assert abs(ours - exact) <= 4 * max(abs(np.sum(x) - exact), 1e-16 * np.sum(np.abs(x)))


MOVES = {
    "slices": lambda x: weighted(x[1:] * x[:-1]),
    "steps": lambda x: weighted(x[::2] ** 2),
    "backwards": lambda x: weighted(x[::-1] * x),
    "one": lambda x: x[2] * x[-1] + x[0],
    "gather": lambda x: weighted(x[[0, 0, 3, 2]] ** 2),
    "mask": lambda x: weighted(x[np.arange(len(x)) % 3 == 1] ** 2),
    "concatenate": lambda x: weighted(tape.concatenate([x, 2.0 * x, x[:3]]) ** 2),
    "stack": lambda x: weighted(tape.stack([x, x * x])),
    "numbers": lambda x: weighted(tape.stack([x[i] * x[i + 1] for i in range(3)])),
    "roll": lambda x: weighted(tape.roll(x, 2) * x),
    "repeat": lambda x: weighted(tape.repeat(x, 3) ** 2),
    "tile": lambda x: weighted(tape.tile(x, 2) ** 2),
    "cumsum": lambda x: weighted(tape.cumsum(x) ** 2),
    "cumprod": lambda x: weighted(tape.cumprod(x)),
    "diff": lambda x: weighted(tape.diff(x) ** 2),
    "outer": lambda x: weighted(tape.outer(x, x[:4])),
    "diag": lambda x: weighted(tape.diag(x) @ x),
    "pad": lambda x: weighted(tape.pad(x, (2, 1)) ** 2),
    "flip": lambda x: weighted(tape.flip(x) * x),
    "element by element": lambda x: sum((x[i] * x[i] * (i + 1.0) for i in range(len(x))), 0.0),
}


@pytest.mark.parametrize("n", [6, 16, 17, 100])
@pytest.mark.parametrize("move", MOVES)
def test_moved_elements_of_vectors_agree(move, n):
    agrees(MOVES[move], RNG.uniform(0.5, 1.5, n))


OF_MATRICES = {
    "transpose": lambda a: weighted(a.T * 2.0) + weighted(a[1:].T ** 2),
    "column": lambda a: weighted(a[:, 1] ** 2) + a[0, 0] * a[-1, -1],
    "block": lambda a: weighted(a[1:3, ::2] ** 2),
    "reshape": lambda a: weighted(a.reshape(-1)[2:] ** 2) + weighted(a.T.reshape(-1) * 3.0),
    "triangles": lambda a: weighted(tape.tril(a) ** 2 + tape.triu(a, 1)),
    "softmax": lambda a: weighted(tape.softmax(a, 1)) + weighted(tape.log_softmax(a, 0)),
    "rows": lambda a: weighted(tape.stack([row * row[0] for row in a])),
    "cumsum": lambda a: weighted(tape.cumsum(a, 0) * tape.cumsum(a, 1)),
    "trace": lambda a: tape.trace(a[:3, :3]) * tape.sum(tape.diagonal(a)),
    "einsum": lambda a: tape.einsum("ij,ij->", a, a) + weighted(tape.einsum("ij->j", a) ** 2),
    "moveaxis": lambda a: weighted(tape.moveaxis(a[:, :, None] * a[:, None, :], 0, 2)),
}


@pytest.mark.parametrize("shape", [(3, 4), (4, 4), (5, 7), (20, 9)])
@pytest.mark.parametrize("move", OF_MATRICES)
def test_moved_elements_of_matrices_agree(move, shape):
    agrees(OF_MATRICES[move], RNG.uniform(0.5, 1.5, shape))


@pytest.mark.parametrize("n", [4, 20])
def test_assignments_to_elements_agree(n):
    def f(x):
        y = tape.zeros_like(x)
        before = y + 1.0
        for i in range(3):
            y[i] = x[i] * x[i + 1]
        kept = tape.sum(y)
        y[1:3] = x[2:4]
        y[np.array([0, 0, 3])] = x[:3] * 2.0
        x[0] = 5.0 * y[1]
        return weighted(y * x) + kept * tape.sum(before)

    agrees(f, RNG.uniform(0.5, 1.5, n))


def positive(a):
    return a @ a.T + 2.0 * np.eye(len(a)) if isinstance(a, np.ndarray) else a @ a.T + 2.0 * np.eye(a.shape[0])


LINEAR_ALGEBRA = {
    "matmul": lambda a, b: weighted((a @ b) @ a.T) + weighted(a.T @ b),
    "vector": lambda a, b: weighted(a @ b[0]) + weighted(b[:, 0] @ a) + a[0] @ b[:, 1],
    "sum of a product": lambda a, b: tape.sum(a @ b) * 0.5 + tape.sum(3.0 * (b @ a)),
    "inv": lambda a, b: weighted(tape.linalg.inv(positive(a))),
    "solve": lambda a, b: weighted(tape.linalg.solve(positive(a), b)) + weighted(tape.linalg.solve(positive(a), b[0])),
    "log_det": lambda a, b: tape.linalg.slogdet(positive(a))[1] * tape.linalg.slogdet(a @ b)[0],
    "cholesky": lambda a, b: weighted(tape.linalg.cholesky(positive(a))),
    "upper cholesky": lambda a, b: weighted(tape.linalg.cholesky(positive(a), upper=True)),
    "triangular": lambda a, b: weighted(
        tape.linalg.solve_triangular(positive(a), b, lower=True)
        + tape.linalg.solve_triangular(positive(a), b.T, lower=False)
        + tape.linalg.solve_triangular(positive(a).T, b, lower=True, transposed=True)
    ) + weighted(tape.linalg.solve_triangular(positive(a), b[1], lower=False, transposed=True)),
    "solve by a Cholesky factor": lambda a, b: weighted(
        tape.linalg.solve(tape.linalg.cholesky(positive(a)), b)
        + tape.linalg.solve(tape.linalg.cholesky(positive(a)).T, b.T)
        + tape.linalg.solve(tape.linalg.cholesky(positive(a), upper=True), b)
    ) + weighted(tape.linalg.solve(tape.linalg.cholesky(positive(a)), b[1])),
    "quadratic form": lambda a, b: b[0] @ tape.linalg.solve(positive(a), b[0]) + tape.linalg.slogdet(positive(a))[1],
}  # fmt: skip


@pytest.mark.parametrize("n", [2, 3, 5, 8, 33, 100])
@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra_agrees(name, n):
    a, b = RNG.normal(size=(2, n, n))
    agrees(LINEAR_ALGEBRA[name], a, b, rtol=1e-9, atol=1e-10)


def test_a_system_of_a_cholesky_factor_is_solved_as_a_triangle():
    a, b = RNG.normal(size=(2, 4, 4))
    found = listing(LINEAR_ALGEBRA["solve by a Cholesky factor"], a, b)
    called = {text.split("(")[0] for _, text in found.operations}
    assert "solve_triangular" in called
    assert "solve" not in called


@pytest.mark.parametrize("n", [65, 130, pytest.param(1100, marks=pytest.mark.slow)])
def test_the_adjoint_of_a_large_cholesky_factor_agrees(n):
    """The last order needs larger blocks, as there are 16 at most; none is a multiple of its block."""
    a = RNG.normal(size=(n, n)) / np.sqrt(n)

    def f(a):
        return weighted(tape.linalg.cholesky(positive(a)))

    agrees(f, a, rtol=1e-9, atol=1e-9)
    assert "cholesky_adjoint" in {text.split("(")[0] for _, text in listing(f, a).operations}


def of_vectors(packed):
    """A function of eigenvectors or singular vectors that does not depend on their signs."""
    return sum(weighted(part * part) for part in packed)


SPECTRAL = {
    "eigvalsh": lambda a: weighted(tape.linalg.eigvalsh(a + a.T)),
    "eigh": lambda a: of_vectors(tape.linalg.eigh(a + a.T)),
    "eigh of the upper triangle": lambda a: of_vectors(tape.linalg.eigh(a, UPLO="U")),
    "svdvals": lambda a: weighted(tape.linalg.svdvals(a)),
    "svd": lambda a: of_vectors(tape.linalg.svd(a, full_matrices=False)),
    "qr": lambda a: sum(map(weighted, tape.linalg.qr(a))),
    "norm": lambda a: tape.linalg.norm(a) + weighted(tape.linalg.norm(a, axis=0)),
    "nuclear norm": lambda a: tape.linalg.matrix_norm(a, ord="nuc"),
    "det": tape.linalg.det,
    "expm": lambda a: weighted(tape.linalg.expm(a)),
    "pinv": lambda a: weighted(tape.linalg.pinv(a)),
    "norm of order 3": lambda a: (
        tape.linalg.vector_norm(a, ord=3) + weighted(tape.linalg.vector_norm(a, axis=0, ord=2.5))
    ),
}


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (9, 4), (4, 9), (40, 40)])
@pytest.mark.parametrize("name", SPECTRAL)
def test_spectra_norms_and_determinants_agree_and_are_native(name, shape):
    if shape[0] != shape[1] and ("eig" in name or name in ("det", "expm")):
        shape = (3, 3)
    f, a, v = SPECTRAL[name], RNG.normal(size=shape) * (0.4 if name in ("det", "expm") else 1.0), RNG.normal(size=shape)
    agrees(f, a, rtol=1e-8, atol=1e-9)
    for operator, expected in (("jvp", tape.jvp(f, a, v)), ("hvp", tape.hvp(f, a, v))):
        compiled = tape.compile(f, a, v, operator=operator)
        np.testing.assert_allclose(compiled(a, v)[-1], expected[-1], rtol=1e-7, atol=1e-7)
        assert "eager" not in compiled.explain()


@pytest.mark.parametrize(("name", "lapack"), [("eigvalsh", "dsyevd"), ("svdvals", "dgesdd")])
def test_a_spectrum_and_its_derivative_share_one_factorisation(name, lapack, monkeypatch):
    called, call = [], orthogonal_factors.call_lapack
    monkeypatch.setattr(
        orthogonal_factors, "call_lapack", lambda emission, *rest: [called.append(rest[:2]), call(emission, *rest)]
    )
    a = RNG.normal(size=(5, 5))
    for operator, job in (("gradient", "V" if name == "eigvalsh" else "S"), ("value", "N")):
        called.clear()
        tape.compile(SPECTRAL[name], a, operator=operator)
        assert called == [(lapack, job)]


UNUSUAL = {
    "norm": (SPECTRAL["norm"], (np.zeros((3, 3)), np.full((3, 3), 1e-200), np.full((3, 3), 1e200))),
    "det": (tape.linalg.det, (np.zeros((3, 3)), np.diag([1.0, 0.0, 2.0]), np.ones((3, 3)), np.full((3, 3), 1e-150))),
    "det of extremes": (tape.linalg.det, (np.diag([1e-160, 1e-160, 3e300]), np.diag([1e200, 1e200, 1e-300]))),
    "nearly singular": (tape.linalg.det, (np.ones((3, 3)) + 1e-13 * np.diag([1.0, 2.0, 5.0]),)),
    "expm": (lambda a: tape.sum(tape.linalg.expm(a)), tuple(np.ones((3, 3)) * 10.0**k for k in range(-9, 3))),
    "equal eigenvalues": (lambda a: tape.sum(tape.linalg.eigvalsh(a) ** 3), (np.eye(3), np.zeros((3, 3)))),
    "exponential": (lambda a: (lambda w, v: tape.sum(v * tape.exp(w) * v))(*tape.linalg.eigh(a)), (np.eye(3),)),
    "equal singular values": (lambda a: tape.sum(tape.linalg.svdvals(a) ** 2), (np.eye(3), np.zeros((3, 3)))),
    "singular value of 0": (lambda a: tape.linalg.matrix_norm(a, ord=2), (np.diag([2.0, 0.0, 1.0]),)),
}


FEWER_DIGITS = {"nearly singular": 1e-3, "expm": 1e-11}
"""Of values; scipy's exponential loses them."""


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_matrices_have_the_derivative_of_the_eager_engine(name):
    """Compiled code leaves them to the general form, and takes the usual one again afterwards."""
    f, matrices = UNUSUAL[name]
    usual = RNG.normal(size=(3, 3))
    usual = usual + usual.T
    compiled = tape.compile(f, usual)
    for a in (usual, *matrices, usual):
        value, slope = compiled(a)
        expected, theirs = tape.gradient(f, a)
        np.testing.assert_allclose(value, expected, rtol=FEWER_DIGITS.get(name, 1e-12))
        np.testing.assert_allclose(slope, theirs, rtol=1e-10, atol=1e-300)


NEARLY_DEPENDENT = np.array([[1.0, 1.0, 0.0], [0.0, 1e-17, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("name", "undefined"), [("eigh", np.ones((3, 3))), ("svd", np.ones((3, 3))), ("qr", NEARLY_DEPENDENT)]
)
def test_a_derivative_that_does_not_exist_raises_as_in_the_eager_engine(name, undefined):
    compiled = tape.compile(SPECTRAL[name], RNG.normal(size=(3, 3)))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            tape.gradient(SPECTRAL[name], undefined)
        with pytest.raises(np.linalg.LinAlgError):
            compiled(undefined)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 31, 33, 63, 64, 65, 90, 97, 255, 256, 257])
def test_inverses_and_determinants_are_as_accurate_as_lapacks(n):
    normal = RNG.normal(size=(n, n))
    matrices = {
        "normal": normal,
        "rows to exchange": np.eye(n)[RNG.permutation(n)] * RNG.uniform(1.0, 9.0, n) + 1e-3 * normal,
        "triangular": np.tril(normal) + 3.0 * np.eye(n),
        "graded": normal * np.logspace(0, -6, n),
        "near singular": normal - normal[:, :1] * (1.0 - 1e-9) * (np.arange(n) == 1),
    }
    inverse = tape.compile(tape.linalg.inv, normal, operator="value")
    determinant = tape.compile(lambda a: tape.linalg.slogdet(a)[1], normal)
    for name, a in matrices.items():
        found, lapack = inverse(a), np.linalg.inv(a)
        error, theirs = (np.linalg.norm((x @ a - np.eye(n)) / np.linalg.norm(a, axis=0)) for x in (found, lapack))
        assert error <= 20.0 * theirs + 1e-14, name
        value, slope = determinant(a)
        assert value == pytest.approx(np.linalg.slogdet(a)[1], rel=1e-8, abs=1e-8), name
        np.testing.assert_array_equal(slope, inverse(a).T)
    with pytest.raises(np.linalg.LinAlgError):
        inverse(np.zeros((n, n)))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("columns", [None, 1, 5])
def test_small_systems_are_solved_with_exchanged_rows_and_refused_if_singular(n, columns):
    b = RNG.normal(size=n if columns is None else (n, columns))
    call = tape.compile(tape.linalg.solve, np.eye(n), b, operator="value")
    for _ in range(5):
        a = np.eye(n)[RNG.permutation(n)] * RNG.uniform(1.0, 9.0, n) + 0.1 * RNG.normal(size=(n, n))
        np.testing.assert_allclose(call(a, b), np.linalg.solve(a, b), rtol=1e-11, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        call(np.zeros((n, n)), b)
    assert np.isnan(call(np.full((n, n), np.nan), b)).all()


@pytest.mark.parametrize("n", [1, 2, 8, 9])
def test_small_triangles_and_cholesky_factors_are_refused_like_lapacks(n):
    factor = tape.compile(tape.linalg.cholesky, np.eye(n), operator="value")
    lower = np.tril(RNG.uniform(0.5, 1.5, (n, n)))
    np.testing.assert_allclose(factor(lower @ lower.T), lower, rtol=1e-9)
    solve = tape.compile(lambda a, b: tape.linalg.solve_triangular(a, b, lower=True), lower, lower, operator="value")
    np.testing.assert_allclose(solve(lower, lower), np.eye(n), atol=1e-12)
    last = np.diag(np.arange(n) == n - 1) * 1.0
    for broken in (0.0, -1.0):
        with pytest.raises(np.linalg.LinAlgError):
            factor(np.eye(n) + (broken - 1.0) * last)
    assert np.isnan(factor(np.eye(n) + np.nan * last)[-1, -1])
    with pytest.raises(np.linalg.LinAlgError):
        solve(np.eye(n) - last, lower)


PRODUCTS = [(8, 8, 8), (9, 5, 24), (7, 30, 33), (1, 10, 8), (17, 1, 50), (40, 3, 129), (64, 64, 64), (16, 20, 47)]


@pytest.mark.parametrize("shape", PRODUCTS)
@pytest.mark.parametrize("layout", ["rows", "columns", "every second", "backwards"])
def test_products_of_every_size_and_layout_agree(shape, layout):
    m, inner, n = shape
    x, y = RNG.uniform(-1.0, 1.0, (2 * m, 2 * inner)), RNG.uniform(-1.0, 1.0, (2 * inner, 2 * n))
    looks = {
        "rows": lambda x, y: (x[:m, :inner], y[:inner, :n]),
        "columns": lambda x, y: (
            tape.reshape(x, (2 * inner, 2 * m)).T[:m, :inner],
            tape.reshape(y, (2 * n, -1)).T[:inner, :n],
        ),
        "every second": lambda x, y: (x[::2, 1::2], y[1::2, ::2]),
        "backwards": lambda x, y: (x[:m, :inner][::-1, ::-1], y[:inner, :n][::-1, ::-1]),
    }

    def f(x, y):
        a, b = looks[layout](x, y)
        return weighted(tape.sin(a @ b))

    agrees(f, x, y, rtol=1e-9, atol=1e-11)


THIN = [
    ((150, 3), (3, 3)),
    ((150, 1), (1, 9)),
    ((2, 150, 3), (2, 3, 2)),
    ((4, 1, 150, 3), (2, 3, 2)),
    ((3, 150), (150, 2)),
    ((4, 2, 150), (150, 3)),
    ((150, 4), (4,)),
    ((150,), (150, 4)),
]


@pytest.mark.parametrize(("of_a", "of_b"), THIN)
def test_products_of_one_long_axis_agree_without_blas(of_a, of_b):
    a, b = RNG.normal(size=of_a), RNG.normal(size=of_b)
    f = lambda a, b: weighted(tape.tanh(a @ b))  # noqa: E731 - for two arguments
    agrees(f, a, b)
    assert "adbench_dgem" not in listing(f, a, b).llvm


def test_rectangular_products_agree():
    a, b = RNG.normal(size=(5, 30)), RNG.normal(size=(30, 7))
    agrees(lambda a, b: weighted(a @ b) + weighted(b.T @ a.T) + weighted(a[:, ::2] @ b[::2]), a, b)


def test_two_matrices_in_the_same_memory_are_not_confused():
    def f(a):
        total = 0.0
        for k in range(4):
            total = total + tape.linalg.slogdet(positive(a * (1.0 + k)))[1] * tape.sum(tape.linalg.inv(positive(a + k)))
        return total

    agrees(f, RNG.normal(size=(6, 6)), rtol=1e-9, atol=1e-10)


def test_a_rule_without_a_native_form_is_called_in_python_and_reported():
    f = lambda a: tape.sum(tape.erfinv(0.1 * a)) + tape.sum(tape.polygamma(a * a, 2))  # noqa: E731
    compiled = agrees(f, RNG.normal(size=(5, 5)), rtol=1e-10, native=False)
    assert "erfinv: has no native form, and is called in Python" in compiled.explain()
    cube = np.vectorize(lambda x: float(x) ** 3)
    mine = tape.function_gradients(cube, (lambda _v, adj, x: adj * 3.0 * x * x,), name="cube")
    compiled = agrees(lambda x: tape.sum(mine(x)), RNG.normal(size=30), native=False)
    assert "cube: has no native form" in compiled.explain()


def test_a_custom_rule_written_with_numpy_becomes_native():
    mine = tape.function_gradients(lambda x: np.exp(x) + x**3, (lambda _v, adj, x: adj * (tape.exp(x) + 3.0 * x * x),))
    agrees(lambda x: tape.sum(mine(x)), RNG.normal(size=30))


def test_densities_agree():
    y = RNG.normal(size=30)
    agrees(lambda m, s: tape.normal_lpdf(y, m, s) + tape.cauchy_lpdf(y, m, s), 0.3, 1.2, native=False)
    compiled = tape.compile(lambda y, m, s: tape.normal_lpdf(y, m, s), y, 0.3, 1.2)
    value, slopes = compiled(y * 2.0, 0.1, 1.1)
    expected = tape.gradient(lambda x: tape.normal_lpdf(*x), (y * 2.0, 0.1, 1.1))
    assert value == pytest.approx(expected[0])
    for a, b in zip(slopes, expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    with pytest.raises(tape.DomainError):
        compiled(y, 0.1, -1.0)


def test_empty_arrays_agree():
    agrees(lambda x, b: tape.sum(x * x) + b * b, np.zeros(0), 1.5)
    agrees(lambda a, b: tape.sum(a @ b) + tape.sum(b * b), np.zeros((0, 30)), RNG.normal(size=30))


@pytest.mark.parametrize(("m", "n"), [(8, 8), (9, 17), (16, 8), (23, 31), (7, 40), (64, 64), (100, 131)])
def test_a_transposed_copy_has_every_element_in_its_place(m, n):
    a = np.arange(1.0 * m * n).reshape(m, n)
    whole, part = lambda a: tape.concatenate([a.T, a.T]), lambda a: tape.concatenate([a[1:, 2:].T, a.T[2:, 1:]])
    for f, expected in ((whole, np.concatenate([a.T, a.T])), (part, np.concatenate([a[1:, 2:].T, a.T[2:, 1:]]))):
        np.testing.assert_array_equal(tape.compile(f, a, operator="value")(a), expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 1, 140, 5), (2, 5, 3)),
        ((5, 150), (4, 150, 2)),
        ((600,), (2, 600, 3)),
        ((2, 3, 40, 20), (20,)),
        ((0, 9, 10), (0, 10, 11)),
        ((2, 2, 3), (2, 3, 2)),
    ],
)
def test_products_of_stacks_of_matrices_are_right_in_every_layout(a, b):
    """Small ones are fused loops, larger ones calls; both broadcast and differentiate."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=a), rng.normal(size=b)

    def turned(z):  # the same numbers in columns
        return tape.matrix_transpose(tape.matrix_transpose(z) * 1.0) if len(z.shape) > 1 else z

    for f in (
        lambda x, y: tape.sum(tape.sin(turned(x) @ turned(y))),
        lambda x, y: tape.sum(tape.sin(x[..., ::-1] @ (y[::-1] if len(b) == 1 else y[..., ::-1, :]))),
    ):
        value, (by_x, by_y) = tape.compile(f, x, y)(x, y)
        expected = tape.gradient(lambda pair, f=f: f(*pair), (x, y))
        assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(by_x, expected[1][0], rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(by_y, expected[1][1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b"), [((3, 0), (0, 2)), ((3, 0), (0,)), ((0, 3), (3, 2)), ((2, 3), (3, 0)), ((0,), (0, 2))]
)
def test_small_products_without_elements_run_as_machine_code(a, b):
    def f(a, b, c):
        return tape.sum(tape.exp(tape.matmul(a, b) + c)) * c

    args = np.zeros(a), np.zeros(b), 1.5
    value, slopes = tape.compile(f, *args, eager=False)(*args)
    expected = tape.gradient(lambda t: f(*t), args)
    assert value == expected[0]
    for found, slope in zip(slopes, expected[1], strict=True):
        np.testing.assert_array_equal(found, slope)
