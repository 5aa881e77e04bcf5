"""Matrix functions compared with 50-digit values: both modes, first and second order, single matrices and stacks."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.linalg

from adbench import tape
from adbench.tape.linalg import triangular_factors
from tests.tape import truth

L = tape.linalg
RNG = np.random.default_rng(20)
A = RNG.normal(size=(3, 3)) + 2.0 * np.eye(3)
S = A @ A.T
STACK = RNG.normal(size=(2, 3, 3)) + 3.0 * np.eye(3)
TALL = RNG.normal(size=(3, 2))
VECTOR = np.array([0.7, -1.1, 0.4])
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
RANK_ONE = np.outer([1.0, -2.0, 3.0], [1.0, 1.0, 2.0])


def mp(f):
    """Lift a function of an mpmath matrix to object arrays; its result is a matrix, a number or a list of numbers."""

    def lifted(x):
        if x.ndim > 2:
            return np.array([lifted(part) for part in x], dtype=object)
        y = f(mpmath.matrix(x.tolist()))
        return np.array(y.tolist(), dtype=object) if isinstance(y, mpmath.matrix) else np.array(y, dtype=object)

    return lifted


def _det(a):
    """The determinant by the first row; mpmath's own fails for singular matrices."""
    return sum(
        a[0, i] * (a[1, (i + 1) % 3] * a[2, (i + 2) % 3] - a[1, (i + 2) % 3] * a[2, (i + 1) % 3]) for i in range(3)
    )


def _symmetric(a):
    """The symmetric matrix with this lower triangle."""
    return mpmath.matrix([[a[max(i, j), min(i, j)] for j in range(a.cols)] for i in range(a.rows)])


def _lower(a):
    return mpmath.matrix([[a[i, j] if i >= j else 0 for j in range(a.cols)] for i in range(a.rows)])


def _weighted(v):
    """Squared elements of vectors, which do not depend on the sign of a column."""
    return mpmath.matrix([[v[i, j] ** 2 for j in range(v.cols)] for i in range(v.rows)])


def _eigenvectors(a):
    w, v = mpmath.eigsy(_symmetric(a))
    order = sorted(range(len(w)), key=lambda i: w[i])
    return _weighted(mpmath.matrix([[v[i, j] for j in order] for i in range(v.rows)]))


def _positive_qr(a):
    q, r = mpmath.qr(a, "skinny")
    signs = np.sign(np.diagonal(np.linalg.qr(np.array(a.tolist(), float))[1]))
    flip = mpmath.diag([int(s) * (1 if r[i, i] > 0 else -1) for i, s in enumerate(signs)])
    return q * flip, flip * r


def _left_squares(a):
    """The left singular vectors, squared, through the eigenvectors of AAᵀ."""
    w, v = mpmath.eigsy(a * a.T)
    order = sorted(range(len(w)), key=lambda i: -w[i])[: min(a.rows, a.cols)]
    return _weighted(mpmath.matrix([[v[i, j] for j in order] for i in range(v.rows)]))


def _svdvals(a):
    return [mpmath.sqrt(w) for w in sorted(mpmath.eigsy(a.T * a if a.rows >= a.cols else a * a.T)[0], reverse=True)]


def _pinv(a):
    return (a.T * a) ** -1 * a.T


B2 = mpmath.matrix(TALL.tolist())
V = mpmath.matrix(VECTOR.tolist())

CASES = {
    "inv": (L.inv, mp(lambda a: a**-1), A),
    "inv of a stack": (L.inv, mp(lambda a: a**-1), STACK),
    "pinv": (L.pinv, mp(_pinv), TALL),
    "pinv of a wide matrix": (lambda a: L.pinv(a.T), mp(lambda a: _pinv(a).T), TALL),
    "solve in the matrix": (lambda a: L.solve(a, TALL), mp(lambda a: a**-1 * B2), A),
    "solve of a stack and one vector": (lambda a: L.solve(a, VECTOR), mp(lambda a: list(a**-1 * V)), STACK),
    "solve in the right side": (
        lambda b: L.solve(STACK, b),
        lambda x: np.array([(mpmath.matrix(m.tolist()) ** -1 * mpmath.matrix(x.tolist())).tolist() for m in STACK]),
        TALL,
    ),
    "solve in both": (lambda a: L.solve(a, a[0]), mp(lambda a: list(a**-1 * a[0, :].T)), A),
    "solve_triangular": (
        lambda a: L.solve_triangular(a, TALL, lower=True),
        mp(lambda a: _lower(a) ** -1 * B2),
        STACK,
    ),
    "solve_triangular transposed, in both": (
        lambda a: L.solve_triangular(a, a[:, 1], transposed=True),
        mp(lambda a: list(_lower(a.T) ** -1 * a[:, 1])),
        A,
    ),
    "det": (L.det, mp(_det), STACK),
    "det of a singular matrix": (L.det, mp(_det), SINGULAR),
    "det at rank one": (L.det, mp(_det), RANK_ONE),
    "slogdet": (lambda a: L.slogdet(a)[1], mp(lambda a: mpmath.log(abs(_det(a)))), A * [[-1.0], [1.0], [1.0]]),
    "log_determinant": (L.log_determinant, mp(lambda a: mpmath.log(abs(_det(a)))), STACK),
    "matrix_power": (lambda a: L.matrix_power(a, 5), mp(lambda a: a**5), A / 2.0),
    "matrix_power of the inverse": (lambda a: L.matrix_power(a, -2), mp(lambda a: a**-2), A),
    "expm": (L.expm, mp(mpmath.expm), A / 3.0),
    "cholesky": (L.cholesky, mp(lambda a: mpmath.cholesky(_symmetric(a))), S),
    "upper cholesky": (lambda a: L.cholesky(a, upper=True), mp(lambda a: mpmath.cholesky(_symmetric(a.T)).T), S),
    "eigvalsh": (L.eigvalsh, mp(lambda a: sorted(mpmath.eigsy(_symmetric(a), eigvals_only=True))), S),
    "eigenvectors": (lambda a: L.eigh(a).eigenvectors ** 2, mp(_eigenvectors), S),
    "eigenvectors from the upper half": (
        lambda a: L.eigh(a, "U").eigenvectors ** 2,
        mp(lambda a: _eigenvectors(a.T)),
        S,
    ),
    "svdvals": (L.svdvals, mp(_svdvals), TALL),
    "left singular vectors": (lambda a: L.svd(a, False).U ** 2, mp(_left_squares), TALL),
    "right singular vectors": (lambda a: L.svd(a, False).Vh.T ** 2, mp(lambda a: _left_squares(a.T)), TALL),
    "singular vectors of a wide matrix": (
        lambda a: L.svd(a.T, False).Vh.T ** 2,
        mp(_left_squares),
        TALL,
    ),
    "Q": (lambda a: L.qr(a).Q, mp(lambda a: _positive_qr(a)[0]), TALL),
    "R": (lambda a: L.qr(a).R, mp(lambda a: _positive_qr(a)[1]), A),
    "R of a wide matrix": (
        lambda a: L.qr(tape.concatenate([a, A], 1), "r")[:, 3:],
        mp(lambda a: _positive_qr(a)[0].T * mpmath.matrix(A.tolist())),
        A + 1.0,
    ),
    "quad_form": (lambda a: L.quad_form(a, TALL), mp(lambda a: B2.T * a * B2), STACK),
    "quad_form in both": (lambda a: L.quad_form(a, a[0]), mp(lambda a: (a[0, :] * a * a[0, :].T)[0]), A),
    "quad_form_sym": (lambda b: L.quad_form_sym(S, b), mp(lambda b: b.T * mpmath.matrix(S.tolist()) * b), TALL),
    "trace_quad_form": (
        lambda a: L.trace_quad_form(a, a),
        mp(lambda a: sum((a.T * a * a)[i, i] for i in range(3))),
        A,
    ),
    "Frobenius norm": (L.matrix_norm, mp(lambda a: mpmath.sqrt(sum(x**2 for x in a))), STACK),
    "nuclear norm": (lambda a: L.norm(a, "nuc"), mp(lambda a: sum(_svdvals(a))), TALL),
    "spectral norm": (lambda a: L.norm(a, 2), mp(lambda a: _svdvals(a)[0]), TALL),
    "smallest singular value": (lambda a: L.norm(a, -2), mp(lambda a: _svdvals(a)[-1]), TALL),
    "norm of order 1": (
        lambda a: L.norm(a, 1),
        mp(lambda a: max(sum(abs(a[i, j]) for i in range(3)) for j in range(3))),
        A,
    ),
    "norm of order -inf": (
        lambda a: L.norm(a, -np.inf),
        mp(lambda a: min(sum(abs(a[i, j]) for j in range(3)) for i in range(3))),
        A,
    ),
    "3-norm": (
        lambda a: L.vector_norm(a, ord=3),
        lambda x: sum(abs(v) ** 3 for v in x.flat) ** (mpmath.mpf(1) / 3),
        A,
    ),
    "half-norm": (lambda a: L.norm(a, 0.5), lambda x: sum(mpmath.sqrt(abs(v)) for v in x) ** 2, VECTOR),
    "2-norm": (L.norm, lambda x: mpmath.sqrt(sum(v**2 for v in x)), VECTOR),
    "trace": (lambda a: L.trace(a, 1), lambda x: x[:, 0, 1] + x[:, 1, 2], STACK),
    "diagonal": (L.diagonal, lambda x: np.stack([x[:, i, i] for i in range(3)], -1), STACK),
    "cross": (
        lambda a: L.cross(a, VECTOR),
        lambda x: np.array([x[1] * V[2] - x[2] * V[1], x[2] * V[0] - x[0] * V[2], x[0] * V[1] - x[1] * V[0]]),
        VECTOR + 1.0,
    ),
    "multi_dot": (lambda a: L.multi_dot([a, a, VECTOR]), mp(lambda a: list(a * a * V)), A),
}  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "x"), CASES.values(), ids=CASES)
def test_both_modes_agree_with_fifty_digits(f, exact, x):
    expected = truth.jacobian(exact, x)
    bar = 1e-12 * max(1.0, np.abs(expected).max())
    for mode in ("reverse", "forward"):
        value, jacobian = tape.jacobian(f, x, mode)
        np.testing.assert_allclose(jacobian, expected, rtol=0.0, atol=bar)
        np.testing.assert_allclose(value, f(x), rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(("f", "exact", "x"), CASES.values(), ids=CASES)
def test_second_derivatives_agree_with_fifty_digits(f, exact, x):
    rng = np.random.default_rng(4)
    direction = rng.normal(size=x.shape)
    weights = rng.normal(size=np.shape(f(x)))
    expected = truth.second_derivative(lambda a: np.sum(weights * np.asarray(exact(a), object)), x, direction)

    def scalar(a):
        return tape.sum(weights * f(a))

    _, along = tape.hvp(scalar, x, direction)
    _, _, hessian = tape.hessian(scalar, x)
    bar = 1e-10 * max(1.0, np.abs(hessian).max())
    assert np.sum(along * direction) == pytest.approx(expected, rel=0.0, abs=bar)
    np.testing.assert_allclose(np.tensordot(hessian, direction, x.ndim), along, rtol=0.0, atol=bar)


def test_a_matrix_function_is_one_node():
    with tape.nested() as recording:
        a = tape.Var(S)
        before = len(recording)
        for f in (L.inv, L.det, L.cholesky, L.eigvalsh, L.svdvals, L.expm, L.pinv, L.matrix_norm, L.log_determinant):
            f(a)
        L.solve(a, VECTOR), L.solve_triangular(a, TALL), L.quad_form(a, TALL), L.trace_quad_form(a, TALL)
        assert len(recording) - before == 13


def test_the_triangle_that_cholesky_and_eigh_do_not_read_has_derivative_zero():
    other = np.triu(np.full((3, 3), 7.0), 1)
    for f in (L.cholesky, L.eigvalsh, lambda a: L.eigh(a).eigenvectors):
        np.testing.assert_array_equal(f(S), f(S + other))
        for mode in ("reverse", "forward"):
            jacobian = tape.jacobian(f, S + other, mode)[1]
            assert not np.any(jacobian[..., *np.triu_indices(3, 1)])


def test_log_abs_det_works_for_a_negative_determinant():
    np.testing.assert_array_equal(tape.gradient(lambda a: L.slogdet(a)[1], np.diag([-2.0, 1.0]))[1], np.diag([-0.5, 1]))
    assert L.slogdet(tape.Var(np.diag([-2.0, 1.0]))).sign == -1.0


def test_the_determinant_of_a_singular_stack_has_right_derivatives():
    both = np.stack([SINGULAR, A])
    expected = truth.jacobian(mp(_det), both)
    np.testing.assert_allclose(tape.jacobian(L.det, both)[1], expected, atol=1e-13)


def test_second_derivatives_of_the_determinant_keep_their_digits_in_a_badly_scaled_matrix():
    """∂²det/∂a∂b of a diagonal matrix is the product of the other entries; tr(A⁻¹V) A⁻ᵀ is 10⁸ times as large."""
    d, v = np.array([1e-8, 1.0, 1e8]), np.array([[0.5, 1.0, -2.0], [0.25, -1.5, 0.75], [3.0, 2.0, 1.25]])
    others = d.prod() / np.outer(d, d) * (1.0 - np.eye(3))
    expected = np.diag(others @ np.diagonal(v)) - others * v.T
    for found in (
        tape.hvp(L.det, np.diag(d), v)[1],
        tape.compile(L.det, np.diag(d), v, operator="hvp")(np.diag(d), v)[1],
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_third_derivative_of_the_determinant_is_that_of_a_cubic():
    x, y, z = RNG.normal(size=(3, 3, 3))

    def second(a):
        return tape.sum(tape.hvp(L.det, a, x)[1] * y)

    # The polarisation of a cubic form does not depend on the point.
    det = np.linalg.det
    expected = det(x + y + z) - det(x + y) - det(x + z) - det(y + z) + det(x) + det(y) + det(z)
    for third in (tape.gradient(second, A)[1], tape.jacobian(second, A, "forward")[1]):
        assert np.sum(third * z) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="det: the third derivative needs an invertible matrix"):
        tape.gradient(second, SINGULAR)


def test_the_determinant_of_a_badly_scaled_matrix_has_right_derivatives():
    scales = np.array([1e120, 1.0, 1e-150])
    expected = np.linalg.det(A) * np.linalg.inv(A).T * np.array([1e-30, 1e-30, 1e-30])[:, None] / scales[:, None]
    np.testing.assert_allclose(tape.gradient(L.det, scales[:, None] * A)[1], expected, rtol=1e-13)


def _trace_of_exp(a):
    w, v = L.eigh(a)
    return tape.trace((v * tape.exp(w)) @ v.T)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_an_invariant_function_of_equal_eigenvalues_is_right(mode):
    np.testing.assert_allclose(tape.jacobian(_trace_of_exp, np.eye(3), mode)[1], np.e * np.eye(3), atol=1e-15)
    rotation = np.linalg.qr(A)[0]
    near = rotation @ np.diag([2.0, 2.0, 5.0]) @ rotation.T
    gradient = tape.jacobian(_trace_of_exp, near, mode)[1]
    np.testing.assert_allclose(0.5 * (gradient + gradient.T), scipy.linalg.expm(near), atol=1e-9)


def test_forward_mode_and_hvp_at_equal_eigenvalues_take_the_vectors_of_the_direction():
    def weighted(a):
        w, v = L.eigh(a)
        return tape.sum(S * ((v * tape.exp(w)) @ v.T))

    assert tape.jvp(weighted, np.eye(3), S)[1] == pytest.approx(np.e * np.sum(S * S), rel=1e-13)
    _, along = tape.hvp(lambda a: tape.sum(tape.exp(L.eigvalsh(a))), np.eye(3), S)
    np.testing.assert_allclose(0.5 * (along + along.T), np.e * S, rtol=1e-12)


def test_an_unknown_derivative_at_equal_eigenvalues_raises():
    def weighted(a):
        w, v = L.eigh(a)
        return tape.sum(S * ((v * tape.exp(w)) @ v.T))

    for call in (
        lambda: tape.gradient(weighted, np.eye(3)),
        lambda: tape.hessian(_trace_of_exp, np.eye(3)),
        lambda: tape.hvp(_trace_of_exp, np.eye(3), S),
        lambda: tape.gradient(lambda a: L.svd(a).U[0, 1], np.eye(3)),
        lambda: tape.jvp(lambda a: L.svd(a).U[0, 1], np.eye(3), A),
        lambda: tape.gradient(lambda a: L.svd(a, False).U[0, 1], RANK_ONE[:, :2]),
    ):
        with pytest.raises(tape.EqualEigenvaluesError, match=r"equal .*values.*use eigvalsh or svdvals"):
            call()


def test_norms_at_zero_have_derivative_zero():
    zero = np.zeros((2, 2))
    for order in (None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
        assert not np.any(tape.gradient(lambda a, order=order: L.norm(a, order), zero)[1])
    for order in (2, 1, 3, 0.5, 1.5, np.inf, 0):
        value, gradient = tape.gradient(lambda x, order=order: L.vector_norm(x, ord=order), np.zeros(3))
        assert value == 0.0
        assert not np.any(gradient)
    np.testing.assert_array_equal(tape.gradient(lambda x: 0.5 * L.norm(x) ** 2, np.zeros(2))[1], [0.0, 0.0])


def test_norms_neither_overflow_nor_vanish():
    for size in (1e-300, 1e200):
        for order in (2, 3):
            value, gradient = tape.gradient(lambda x, o=order: L.vector_norm(x, ord=o), size * np.array([3.0, 4.0]))
            assert value == pytest.approx(size * (3.0**order + 4.0**order) ** (1.0 / order), rel=1e-14)
            power = np.array([3.0, 4.0]) ** (order - 1)
            np.testing.assert_allclose(gradient, power / (3.0**order + 4.0**order) ** (1 - 1 / order), rtol=1e-14)


def test_norms_match_numpy_for_every_order_axis_and_keepdims():
    for order in (None, "fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
        for axis in ((0, 1), (2, 0)):
            for keep in (False, True):
                expected = np.linalg.norm(STACK, order, axis, keep)
                np.testing.assert_allclose(L.norm(STACK, order, axis, keep), expected, rtol=1e-14)
    for order in (None, 0, 1, -1, 2, 3.5, -2, np.inf, -np.inf):
        np.testing.assert_allclose(L.norm(STACK, order, 1), np.linalg.norm(STACK, order, 1), rtol=1e-14)
    assert L.norm(STACK) == pytest.approx(np.linalg.norm(STACK), rel=1e-15)


NUMPY_NAMES = {
    "cholesky": (np.linalg.cholesky, S), "det": (np.linalg.det, A), "inv": (np.linalg.inv, A),
    "pinv": (np.linalg.pinv, TALL), "solve": (lambda a: np.linalg.solve(a, VECTOR), A),
    "slogdet": (lambda a: np.linalg.slogdet(a).logabsdet, A), "eigh": (lambda a: np.linalg.eigh(a).eigenvalues, S),
    "eigvalsh": (np.linalg.eigvalsh, S), "svd": (lambda a: np.linalg.svd(a, full_matrices=False).S, TALL),
    "svd without vectors": (lambda a: np.linalg.svd(a, compute_uv=False), TALL),
    "svdvals": (np.linalg.svdvals, TALL), "qr": (lambda a: np.linalg.qr(a).R, A), "norm": (np.linalg.norm, A),
    "vector_norm": (lambda a: np.linalg.vector_norm(a, ord=3), A), "matrix_norm": (np.linalg.matrix_norm, STACK),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, 3), A), "trace": (np.linalg.trace, STACK),
    "diagonal": (np.linalg.diagonal, STACK), "matrix_transpose": (np.linalg.matrix_transpose, STACK),
    "outer": (lambda v: np.linalg.outer(v, VECTOR), VECTOR), "cross": (lambda v: np.linalg.cross(v, VECTOR), VECTOR),
    "multi_dot": (lambda a: np.linalg.multi_dot([a, TALL]), A), "matmul": (lambda a: np.linalg.matmul(a, A), STACK),
    "vecdot": (lambda a: np.linalg.vecdot(a, A), A), "tensordot": (lambda a: np.linalg.tensordot(a, A), A),
    "numpy.cross": (lambda v: np.cross(v, VECTOR + 1.0), VECTOR),
}  # fmt: skip


@pytest.mark.parametrize(("f", "x"), NUMPY_NAMES.values(), ids=NUMPY_NAMES)
def test_numpys_own_names_reach_the_engine(f, x):
    value = f(tape.Var(x))
    assert isinstance(value, tape.Var)
    np.testing.assert_allclose(value.val, f(x), rtol=1e-14, atol=1e-15)
    assert np.linalg.matrix_rank(tape.Var(A)) == 3


RANKS = [
    ((3,), (3,)), ((3,), (3, 2)), ((4, 3), (3,)), ((4, 3), (3, 2)), ((2, 4, 3), (3,)), ((3,), (2, 3, 4)),
    ((2, 4, 3), (3, 2)), ((4, 3), (2, 3, 2)), ((5, 1, 4, 3), (2, 3, 2)), ((1, 4, 3), (5, 3, 1)), ((0, 3), (3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), RANKS, ids=str)
def test_matmul_of_every_rank_has_the_products_of_its_definition(left, right):
    a, b = RNG.normal(size=left), RNG.normal(size=right)
    value, (to_a, to_b) = tape.jacobian(lambda p: tape.matmul(*p), (a, b), "reverse")
    _, (fwd_a, fwd_b) = tape.jacobian(lambda p: tape.matmul(*p), (a, b), "forward")
    np.testing.assert_array_equal(value, a @ b)
    # The product is linear in each factor, so its Jacobian is its value at the unit matrices.
    for jacobian, forward, along, shape in (
        (to_a, fwd_a, lambda e: e @ b, left),
        (to_b, fwd_b, lambda e: a @ e, right),
    ):
        for place in np.ndindex(shape):
            unit = np.zeros(shape)
            unit[place] = 1.0
            np.testing.assert_allclose(jacobian[(..., *place)], along(unit), rtol=1e-15)
            np.testing.assert_allclose(forward[(..., *place)], along(unit), rtol=1e-15)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 2)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("i,i", [(2,), (1,)]),
        ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]), ("ij->", [(2, 3)]), ("ij,ij,i->j", [(2, 3), (2, 3), (2,)]),
        ("iij,j->i", [(2, 2, 3), (3,)]), ("ij,k->kji", [(2, 3), (2,)]),
    ],
)  # fmt: skip
def test_einsum_has_the_derivatives_of_its_definition(subscripts, shapes):
    factors = tuple(RNG.normal(size=shape) for shape in shapes)
    value, reverse = tape.jacobian(lambda p: tape.einsum(subscripts, *p), factors, "reverse")
    _, forward = tape.jacobian(lambda p: tape.einsum(subscripts, *p), factors, "forward")
    np.testing.assert_allclose(value, np.einsum(subscripts, *factors), rtol=1e-14)
    for k, factor in enumerate(factors):
        for place in np.ndindex(factor.shape):
            unit = np.zeros(factor.shape)
            unit[place] = 1.0
            expected = np.einsum(subscripts, *factors[:k], unit, *factors[k + 1 :])
            np.testing.assert_allclose(np.asarray(reverse[k])[(..., *place)], expected, rtol=1e-14, atol=1e-15)
            np.testing.assert_allclose(np.asarray(forward[k])[(..., *place)], expected, rtol=1e-14, atol=1e-15)


def test_lists_with_variables_in_them_are_matrices():
    x = tape.Var(2.0)
    y = L.det([[x, 1.0], [1.0, x]])
    y.grad()
    assert (y.val, x.adj) == (pytest.approx(3.0), pytest.approx(4.0))


BAD = {
    "inv of a non-square matrix": (lambda: L.inv(TALL), r"inv: argument a: expected square .* got shape \(3, 2\)"),
    "det of a vector": (lambda: L.det(VECTOR), r"det: argument a: expected square .* got shape \(3,\)"),
    "svd of a vector": (lambda: L.svd(VECTOR), r"svd: argument a: expected matrices .* got shape \(3,\)"),
    "slogdet's derivative of a singular matrix": (
        lambda: tape.gradient(L.log_determinant, np.zeros((2, 2))),
        "slogdet: the derivative .* needs an invertible matrix",
    ),
    "qr's derivative of dependent columns": (
        lambda: tape.gradient(lambda a: L.qr(a).Q[0, 0], np.ones((3, 2))),
        "qr: the derivative needs independent columns",
    ),
    "eigh's triangle": (lambda: L.eigh(S, "M"), "eigh: argument UPLO: expected 'L' or 'U', got 'M'"),
    "a power that is not an integer": (lambda: L.matrix_power(A, 0.5), "matrix_power: argument n: .* got 0.5"),
    "an unknown norm": (lambda: L.norm(A, 3), "matrix_norm: argument ord: .* got 3"),
    "a norm over three axes": (lambda: L.norm(STACK, 2), "norm: argument axis: .* got 3"),
    "matrix_norm of a vector": (lambda: L.matrix_norm(VECTOR), "matrix_norm: argument x: .* got shape"),
    "vector_norm by name": (lambda: L.vector_norm(VECTOR, ord="fro"), "vector_norm: argument ord: .* got 'fro'"),
    "quad_form's shapes": (lambda: L.quad_form(A, np.ones(2)), r"quad_form: argument b: expected shape \(3,\)"),
    "quad_form_sym of an asymmetric matrix": (lambda: L.quad_form_sym(A, TALL), "quad_form_sym: argument a: .* symm"),
    "cross of length 2": (lambda: L.cross(np.ones(2), VECTOR), "cross: argument a: expected length 3"),
    "one matrix to multi_dot": (lambda: L.multi_dot([A]), "multi_dot: argument arrays: .* got 1"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_raises_an_error_that_names_it(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_factors_without_a_derivative_raise_an_error():
    for call in (
        lambda: tape.gradient(lambda a: L.svd(a).U[0, 0], TALL),
        lambda: L.svd(S, hermitian=True),
        lambda: L.qr(TALL, "complete"),
    ):
        with pytest.raises(NotImplementedError, match=r"argument \w+: expected"):
            call()


@pytest.fixture
def by_the_formula(monkeypatch):
    """Runs a function with the adjoint of a Cholesky factor by its formula, which other tests hold to 50 digits."""

    def run(f):
        with monkeypatch.context() as changed:
            changed.setattr(triangular_factors, "BLOCK", 10**9)
            return f()

    return run


@pytest.mark.parametrize("n", [65, 129, 200])
def test_the_blocked_adjoint_of_a_cholesky_factor_agrees_with_its_formula(n):
    rng = np.random.default_rng(n)
    lower = np.tril(rng.normal(size=(n, n))) + 2.0 * np.sqrt(n) * np.eye(n)
    adj = rng.normal(size=(n, n))
    found = triangular_factors._blocked_adjoint(lower, adj)
    np.testing.assert_allclose(found, triangular_factors._whole_adjoint(lower, adj), rtol=1e-11, atol=1e-14)
    assert not np.any(np.triu(found, 1))


@pytest.mark.parametrize("operator", ["gradient", "hvp", "vjp of jvp", "third"])
def test_derivatives_of_a_large_cholesky_factor_agree_with_its_formula(operator, by_the_formula):
    n = 70
    rng = np.random.default_rng(3)
    weights, x, along = rng.normal(size=(3, n, n))
    a = x @ x.T / n + np.eye(n)

    def f(a):
        return tape.sum(weights * L.cholesky(a)) + 0.3 * tape.sum(L.cholesky(a)) ** 2

    def rate(a):
        return tape.jvp(f, a, along)[1]

    def found():
        if operator == "gradient":
            return tape.gradient(f, a)[1]
        if operator == "hvp":
            return tape.jvp(lambda a: tape.gradient(f, a)[1], a, along)[1]
        if operator == "vjp of jvp":
            return tape.gradient(rate, a)[1]
        return tape.jvp(lambda a: tape.gradient(rate, a)[1], a, along)[1]

    np.testing.assert_allclose(found(), by_the_formula(found), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("which", ["the factor", "its adjoint", "both"])
def test_derivatives_of_the_blocked_adjoint_agree_with_those_of_its_formula(which):
    n = 66
    rng = np.random.default_rng(5)
    weights, adj, along, other = rng.normal(size=(4, n, n))
    lower = np.tril(rng.normal(size=(n, n))) + 2.0 * np.sqrt(n) * np.eye(n)

    def results(rule):
        def f(x):
            given = {"the factor": (x[0], adj), "its adjoint": (lower, x[1]), "both": x}[which]
            return tape.sum(weights * rule(*given))

        point = (lower, adj)
        slope, rate = tape.gradient(f, point)[1], tape.jvp(f, point, (np.tril(along), other))[1]
        return np.tril(slope[0]), np.tril(slope[1]), rate  # the other triangle of both is not read

    for found, expected in zip(
        results(triangular_factors._blocked_adjoint), results(triangular_factors._whole_adjoint), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_derivatives_of_expm_along_large_and_small_matrices_keep_their_digits(size):
    a, e = np.array([[0.0, -1.0, 0.5], [0.3, -2.6, 2.0], [-1.0, -1.1, -1.5]]), A / 3.0
    expected = tape.jvp(L.expm, a, e)[1]
    np.testing.assert_allclose(tape.jvp(L.expm, a, size * e)[1] / size, expected, rtol=1e-13)
    np.testing.assert_allclose(tape.vjp(L.expm, a.T, size * e)[1] / size, expected, rtol=1e-13)

    def gradient(a):
        return tape.gradient(lambda a: tape.sum(size * e * L.expm(a)), a)[1]

    twice = tape.gradient(lambda a: tape.sum(gradient(a) * e), a)[1]
    np.testing.assert_allclose(twice, tape.jvp(gradient, a, e)[1], rtol=1e-12)
