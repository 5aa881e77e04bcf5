"""The namespace over balls: numpy's results with more digits and derivatives; no silent conversion to floats."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, NeedsTerms, arithmetic
from adbench.oracle.series.namespace import Balls, TooSlow
from adbench.oracle.series.number import LostPrecision, Real
from tests.oracle import second_opinion
from tests.oracle.balls import coefficients, directed, moving, quotients, xp

RNG = np.random.default_rng(11)
SQUARE = RNG.normal(size=(4, 4))
POSITIVE = SQUARE @ SQUARE.T + np.eye(4)
TALL = RNG.normal(size=(5, 3))
BATCH = RNG.normal(size=(2, 3, 4, 4))
LARGE = RNG.normal(size=(20, 20)) + 9 * np.eye(20)


@pytest.fixture(autouse=True)
def in_arithmetic() -> Iterator[None]:
    with arithmetic(Arithmetic()):
        yield


def floats(x: Any) -> Any:
    def number(element: Any) -> float:
        if not isinstance(element, Real):
            return float(element)
        value = element.ball
        return value.value if isinstance(value, ball.Special) else float(ball.ball(ball.start(value)).mid())

    return np.vectorize(number, otypes=[float])(x)


def same(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(floats(found), expected, rtol=1e-9, atol=1e-12)


def derivatives_agree(function: Callable[[Any, Any], Any], x: Any, seed: int = 5) -> None:
    """Both coefficients after the first, of every entry of function(xp, x + t v), with mpmath's differences."""
    v = np.random.default_rng(seed).choice([-1.0, 0.5, 1.0], size=np.shape(x))
    with arithmetic(Arithmetic(256)):
        found = [coefficients(e) for e in np.ravel(np.asarray(function(xp, moving(x, v)), dtype=object))]
    with arithmetic(Arithmetic(1000)):
        truth = quotients(lambda x: function(second_opinion.xp, x), x, v)
        assert len(found) == len(truth[0])
        for entry, *expected in zip(found, *truth, strict=True):
            for a, b in zip(entry, expected, strict=True):
                assert a.rad() < 1e-30 * (1 + abs(a))
                assert abs(a - b) < 1e-30 * (1 + abs(b)), (entry, expected)


# Shapes and reductions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "std", "var"])
def test_reductions_agree_along_every_axis(name: str, axis: Any) -> None:
    for keepdims in (False, True):
        expected = getattr(np, name)(TALL, axis=axis, keepdims=keepdims)
        same(getattr(xp, name)(xp.asarray(TALL), axis=axis, keepdims=keepdims), expected)


def test_empty_sums_are_zero_and_sums_are_exact() -> None:
    same(xp.sum(xp.zeros((0,))), 0.0)
    with arithmetic(Arithmetic(2200)):
        same(xp.sum(np.array([1e300, 1.0, -1e300])), 1.0)


def test_functions_of_several_numbers_broadcast() -> None:
    x, y = np.linspace(0.1, 2, 4), np.linspace(0.3, 0.8, 3)[:, None]
    same(xp.atan2(xp.asarray(x), y), np.arctan2(x, y))
    same(xp.hypot(xp.asarray(x), y), np.hypot(x, y))
    same(xp.exp([0.0, 1.0]), np.exp([0.0, 1.0]))
    assert isinstance(xp.exp(1), Real)


def test_branches_and_arrangement_agree() -> None:
    t = xp.asarray(TALL)
    with np.errstate(invalid="ignore"):
        same(xp.where(t > 0, xp.sqrt(t), 0.0), np.where(TALL > 0, np.sqrt(TALL), 0.0))
    same(xp.maximum(t, 0), np.maximum(TALL, 0))
    same(xp.clip(t, -0.5, 0.5), np.clip(TALL, -0.5, 0.5))
    same(xp.concat([t, np.ones((1, 3))]), np.concatenate([TALL, np.ones((1, 3))]))
    same(xp.stack([t[0, 0], 1.0]), [TALL[0, 0], 1.0])
    same(xp.permute_dims(t, (1, 0)), TALL.T)
    same(xp.reshape(t, (3, 5))[:, 1:3], TALL.reshape(3, 5)[:, 1:3])
    same(xp.cumulative_sum(t, axis=0), np.cumsum(TALL, axis=0))
    same(xp.sort(t, axis=0), np.sort(TALL, axis=0))
    assert (xp.argsort(t, axis=0) == np.argsort(TALL, axis=0)).all()
    same(xp.einsum("ij,kj->ik", t, t), TALL @ TALL.T)
    same(xp.loop(lambda i, s: s * i + t, xp.zeros_like(t), 3), 5 * TALL)
    same(xp.pad(t, 1), np.pad(TALL, 1))
    same(xp.vdot(t, t), np.vdot(TALL, TALL))
    same(xp.tril(t) @ xp.triu(t).T, np.tril(TALL) @ np.triu(TALL).T)


def test_whole_parts_and_rounding_agree() -> None:
    x = np.array([-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, 2.6, 7.0])
    for name in ("floor", "ceil", "trunc", "round", "sign", "abs", "isfinite", "isnan", "signbit"):
        same(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x))
    same(xp.asarray(x) // 0.3, x // 0.3)
    same(xp.asarray(x) % 0.3, x % 0.3)


def test_arithmetic_follows_ieee_conventions() -> None:
    zero, one, minus = Real.of(0.0), Real.of(1.0), Real.of(-1.0)
    assert floats([one / 0, minus / zero, 0.0**zero]).tolist() == [math.inf, -math.inf, 1.0]
    assert floats([zero**2.0, zero**-1.0, zero**-0.5, minus**3]).tolist() == [0.0, math.inf, math.inf, -1.0]
    nothing = [zero / 0, minus**0.5, xp.log(minus), xp.sqrt(minus), xp.acos(Real.of(2)), one / 0 - one / 0]
    nothing += [Real.of(math.nan) / 0, one / 0 * 0]
    assert np.isnan(floats(nothing)).all()
    assert floats([xp.log(zero), xp.exp(xp.log(zero)), xp.tanh(one / 0)]).tolist() == [-math.inf, 0.0, 1.0]
    assert floats([one % math.inf, minus % math.inf]).tolist() == [1.0, math.inf]


def test_numpy_scalars_arrays_booleans_and_python_numbers_mix() -> None:
    half = Real.of(0.5)
    for number in (2, 2.0, np.float64(2), np.int64(2), True + True):
        assert isinstance(number * half, Real)
        same([number * half, half * number], [1.0, 1.0])
    same(np.array([1.0, 2.0]) * half, [0.5, 1.0])
    same((xp.asarray(TALL) > 0) * half, (TALL > 0) * 0.5)


@pytest.mark.parametrize("exact", [False, True])
def test_products_of_matrices_agree_in_every_shape(exact: bool) -> None:
    with arithmetic(Arithmetic(exact=exact)):
        for a, b in [(SQUARE, POSITIVE), (BATCH, SQUARE), (BATCH, SQUARE[0]), (SQUARE[0], SQUARE), (SQUARE[0],) * 2]:
            same(xp.matmul(a, b), a @ b)
            same(xp.asarray(a) @ xp.asarray(b), a @ b)
            same(xp.asarray(a) @ b, a @ b)
            same(a @ xp.asarray(b), a @ b)
        with pytest.raises(ValueError, match="do not match"):
            xp.matmul(TALL, SQUARE)


def test_infinities_propagate_through_products_and_sums() -> None:
    a = np.array([[np.inf, 1.0], [0.0, 2.0]])
    assert floats(xp.matmul(a, np.ones((2, 2)))).tolist() == [[np.inf, np.inf], [2.0, 2.0]]
    assert floats(xp.sum(a, axis=0)).tolist() == [np.inf, 3.0]


def test_a_product_is_as_long_as_its_shortest_factor_and_constants_stay_constant() -> None:
    moved = moving(SQUARE, np.eye(4, k=1))
    product = xp.concat([xp.reals(SQUARE[:1]), moved[1:]]) @ xp.asarray(SQUARE)
    assert not any(ball.is_series(number.ball) for number in product[0])
    assert all(number.ball.prec == 3 for number in product[1:].ravel())


# Linear algebra --------------------------------------------------------------------------------------------------


def test_linear_algebra_agrees_with_numpy() -> None:
    linalg = xp.linalg
    for matrix in (SQUARE, BATCH, LARGE, np.tril(SQUARE), np.triu(SQUARE)):
        same(linalg.inv(matrix), np.linalg.inv(matrix))
        same(linalg.det(matrix), np.linalg.det(matrix))
        for part in (0, 1):
            same(linalg.slogdet(matrix)[part], np.linalg.slogdet(matrix)[part])
    same(linalg.solve(SQUARE, POSITIVE), np.linalg.solve(SQUARE, POSITIVE))
    same(linalg.solve(SQUARE, POSITIVE[0]), np.linalg.solve(SQUARE, POSITIVE[0]))
    same(linalg.cholesky(POSITIVE), np.linalg.cholesky(POSITIVE))
    same(linalg.pinv(TALL), np.linalg.pinv(TALL))
    same(linalg.matrix_power(SQUARE, -2), np.linalg.matrix_power(SQUARE, -2))
    for order in ("fro", 1, 2, np.inf, "nuc"):
        same(linalg.matrix_norm(TALL, ord=order), np.linalg.matrix_norm(TALL, ord=order))
    same(linalg.vector_norm(TALL, ord=3, axis=0), np.linalg.vector_norm(TALL, ord=3, axis=0))


def test_factorisations_multiply_back_and_have_the_usual_signs() -> None:
    values, vectors = xp.linalg.eigh(POSITIVE)
    same(values, np.linalg.eigvalsh(POSITIVE))
    same(vectors @ xp.diag(values) @ vectors.T, POSITIVE)
    for matrix in (SQUARE, TALL, TALL.T):
        q, r = xp.linalg.qr(matrix)
        same(q, np.linalg.qr(matrix)[0])
        same(r, np.linalg.qr(matrix)[1])
        u, s, vh = xp.linalg.svd(matrix)
        same(s, np.linalg.svd(matrix)[1])
        same((u * s) @ vh, matrix)


SYMMETRIC = (SQUARE + SQUARE.T) / 2
OF_MATRICES: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "matmul": (SQUARE, lambda xp, a: a @ a @ SQUARE),
    "det": (SQUARE, lambda xp, a: xp.linalg.det(a)),
    "slogdet": (SQUARE, lambda xp, a: xp.linalg.slogdet(a)[1]),
    "inv": (SQUARE, lambda xp, a: xp.linalg.inv(a)),
    "inv of a triangle": (SQUARE, lambda xp, a: xp.linalg.inv(xp.tril(a))),
    "solve": (SQUARE, lambda xp, a: xp.linalg.solve(a, a[0] ** 2)),
    "solve_triangular": (SQUARE, lambda xp, a: xp.linalg.solve_triangular(a, a[0], lower=True)),
    "lstsq": (TALL, lambda xp, a: xp.linalg.lstsq(a, a[:, 0] ** 2)),
    "pinv": (TALL, lambda xp, a: xp.linalg.pinv(a)),
    "matrix_power": (SQUARE, lambda xp, a: xp.linalg.matrix_power(a, -2)),
    "cholesky": (POSITIVE, lambda xp, a: xp.linalg.cholesky(a)),
    "Q": (TALL, lambda xp, a: xp.linalg.qr(a)[0] ** 2),
    "R": (TALL, lambda xp, a: xp.linalg.qr(a)[1] ** 2),
    "R of a wide matrix": (TALL.T, lambda xp, a: xp.linalg.qr(a)[1] ** 2),
    "eigvalsh": (SYMMETRIC, lambda xp, a: xp.linalg.eigvalsh(a)),
    "eigenvectors": (SYMMETRIC, lambda xp, a: xp.linalg.eigh(a)[1] ** 2),
    "svdvals": (TALL, lambda xp, a: xp.linalg.svdvals(a)),
    "svdvals of a wide matrix": (TALL.T, lambda xp, a: xp.linalg.svdvals(a)),
    "left vectors": (TALL, lambda xp, a: xp.linalg.svd(a)[0] ** 2),
    "right vectors": (TALL.T, lambda xp, a: xp.linalg.svd(a)[2] ** 2),
    "norms": (TALL, lambda xp, a: xp.linalg.matrix_norm(a) * xp.linalg.matrix_norm(a, ord=2)),
    "p-norm": (TALL, lambda xp, a: xp.linalg.vector_norm(a, ord=3)),
    "logsumexp": (TALL, lambda xp, a: xp.logsumexp(a, 0)),
    "softmax": (TALL, lambda xp, a: xp.softmax(a, 0)),
    "std": (TALL, lambda xp, a: xp.std(a, 1)),
    "prod": (TALL, lambda xp, a: xp.prod(a, 1)),
    "sort": (TALL, lambda xp, a: xp.sort(a, 0)),
    "powers": (abs(TALL), lambda xp, a: a**0.3 * a[:, ::-1] ** a),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_derivatives_of_functions_of_matrices_agree_with_mpmath(name: str) -> None:
    matrix, function = OF_MATRICES[name]
    derivatives_agree(function, matrix)


def test_matrices_that_cannot_be_factored_give_nan_not_an_exception() -> None:
    assert np.isnan(floats(xp.linalg.cholesky(-np.eye(2)))).all()
    assert np.isnan(floats(xp.linalg.eigvalsh(np.full((2, 2), math.nan)))).all()
    assert np.isnan(floats(xp.linalg.svdvals(np.full((2, 2), math.inf)))).all()
    assert not np.isfinite(floats(xp.linalg.inv(np.zeros((2, 2))))).any()
    sign, logarithm = xp.linalg.slogdet(np.zeros((2, 2)))
    assert floats([sign, logarithm]).tolist() == [0.0, -math.inf]


def test_structural_zeros_of_inverses_stay_exact() -> None:
    a = np.kron(np.eye(2), SQUARE[:2, :2])
    v = np.kron(np.eye(2), np.ones((2, 2)))
    for number in xp.linalg.inv(moving(a, v) * v)[:2, 2:].ravel():
        assert all(c.is_zero() for c in coefficients(number))
    lower = xp.linalg.inv(xp.tril(moving(SQUARE, SQUARE)))
    assert all(c.is_zero() for c in coefficients(lower[0, 3]))


# Special points ------------------------------------------------------------------------------------------------


def is_near(found: list[Any], expected: list[float]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert abs(a - b) < 1e-30, (found, expected)


ONES = np.ones((3, 3))
V = np.array([[1.0, -1.0, 0.5], [2.0, 1.0, 1.0], [0.25, 1.0, -3.0]])
SMOOTH: dict[str, tuple[Callable[[Any], Any], Any, Any, list[float]]] = {
    "norm² at 0": (lambda x: xp.linalg.vector_norm(x) ** 2, [0.0, 0.0], [3.0, -4.0], [0, 0, 25]),
    "std² of a constant": (lambda x: xp.std(x) ** 2, [7.0, 7.0], [1.0, -1.0], [0, 0, 1]),
    "var of equals": (xp.var, [0.1, 0.1, 0.1], [1.0, -1.0, 0.0], [0, 0, 2 / 3]),
    "hypot² at 0": (lambda x: xp.hypot(x[0], x[1]) ** 2, [0.0, 0.0], [3.0, -4.0], [0, 0, 25]),
    "|x|² at 0": (lambda x: xp.abs(x[0]) ** 2, [0.0], [-2.0], [0, 0, 4]),
    "|x|³ at 0": (lambda x: xp.abs(x[0]) ** 3, [0.0], [-2.0], [0, 0, 0]),
    "sqrt x⁴ at 0": (lambda x: xp.sqrt(x[0] ** 4), [0.0], [-2.0], [0, 0, 4]),
    "x sqrt x at 0": (lambda x: xp.sqrt(x[0]) ** 2, [0.0], [2.0], [0, 2, 0]),
    "sin x / x at 0": (lambda x: xp.sin(x[0]) / x[0], [0.0], [1.0], [1, 0, -1 / 6]),
    "acos² at 1": (lambda x: xp.acos(x[0]) ** 2, [1.0], [-1.0], [0, 2, 1 / 3]),
    "det of rank 1": (xp.linalg.det, ONES, V, [0, 0, -1.375]),
    "det of rank 1 by balls": (lambda a: xp.linalg.det(a * xp.exp(1.0) / xp.exp(1.0)), ONES, V, [0, 0, -1.375]),
    "Σ eigenvalues² of ones": (lambda a: xp.sum(xp.linalg.eigvalsh(a) ** 2), ONES, V + V.T, [9, 11, 55.125]),
    "Σ singular values² of 0": (lambda a: xp.sum(xp.linalg.svdvals(a) ** 2), np.zeros((2, 2)), V[:2, :2], [0, 0, 7]),
    "trace exp at 1": (
        lambda a: (lambda w, u: xp.trace(u @ xp.diag(xp.exp(w)) @ u.T))(*xp.linalg.eigh((a + a.T) / 2)),
        np.eye(3), np.eye(3, k=1), [3 * math.e, 0, math.e / 2],
    ),
    "an inverse whose lowest powers are elsewhere": (
        lambda x: xp.linalg.inv(xp.reshape(xp.stack([x[0], 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, x[0]]), (3, 3)))[1, 1],
        [0.0], [1.0], [0, -1, 0],
    ),
    "a singular solution": (lambda x: xp.linalg.solve(xp.diag(x), x)[0], [0.0, 2.0], [1.0, 0.0], [1, 0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_points_where_parts_are_singular_but_the_whole_is_smooth(name: str) -> None:
    function, x, v, expected = SMOOTH[name]
    found = directed(function, np.asarray(x), np.asarray(v))
    with arithmetic(Arithmetic(256)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert abs(a - b) < 1e-15 * (1 + abs(b)), (found, expected)
            assert a.rad() < 1e-30


@pytest.mark.parametrize("matrix", [np.eye(3), np.diag([1.0, 1, 2]), np.ones((4, 4)), np.zeros((2, 2))])
def test_equal_eigenvalues_split_to_first_order(matrix: Any) -> None:
    v = np.random.default_rng(2).normal(size=matrix.shape)
    a = moving(matrix, v)
    a = (a + a.T) / 2
    values, vectors = xp.linalg.eigh(a)
    for gap in [*((vectors * values) @ vectors.T - a).ravel(), *(vectors.T @ vectors - np.eye(len(matrix))).ravel()]:
        assert all(c.contains(0) and c.rad() < 1e-40 for c in coefficients(gap, 2))
    assert all((x < y) for x, y in pairwise(values))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("rank", [0, 1])
def test_singular_values_that_are_equal_or_zero_split_to_first_order(shape: tuple[int, int], rank: int) -> None:
    for matrix in (np.full(shape, float(rank)), np.eye(*shape) * rank):
        a = moving(matrix, np.random.default_rng(3).normal(size=shape))
        u, s, vh = xp.linalg.svd(a)
        for gap in ((u * s) @ vh - a).ravel():
            assert all(c.contains(0) and c.rad() < 1e-40 for c in coefficients(gap, 2))
        assert all(x >= y for x, y in pairwise(s))
        assert s[-1] > 0


def test_eigenvectors_that_no_known_term_determines_need_more_terms() -> None:
    a = moving(np.eye(4), np.eye(4, k=1) * [0, 1, 0, 0])
    with pytest.raises(NeedsTerms):
        xp.linalg.eigh(a + a.T - np.eye(4))
    values = xp.linalg.eigvalsh(a + a.T - np.eye(4))
    for number, slope in zip(values, (-1, 0, 0, 1), strict=True):
        is_near(coefficients(number), [1, slope, 0])


def test_more_terms_are_correct_too() -> None:
    with arithmetic(Arithmetic(256, terms=8)):
        a = moving(SYMMETRIC, np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1))
        values, vectors = xp.linalg.eigh(a)
        u, s, vh = xp.linalg.svd(a)
        for product in ((vectors * values) @ vectors.T, (u * s) @ vh, xp.linalg.inv(xp.linalg.inv(a))):
            for gap in (product - a).ravel():
                assert gap.ball.prec == 8
                assert all(c.contains(0) and c.rad() < 1e-50 for c in coefficients(gap, 8))


def test_fractions_stay_exact() -> None:
    with arithmetic(Arithmetic(exact=True)):
        x = xp.reals(np.full(7, 0.1))
        assert xp.sum((x - xp.mean(x)) ** 2) == 0
        assert (xp.linalg.inv(xp.linalg.inv(SQUARE)) == SQUARE).all()
        assert xp.linalg.det(np.outer([0.1, 0.2, 0.7], [0.3, 0.1, 0.9])) != 1
        assert (xp.linalg.inv(xp.linalg.inv(np.tril(SQUARE))) == np.tril(SQUARE)).all()
        assert x[0] % 0.0625 == 0.1 % 0.0625
        assert xp.round(xp.reals(2.5)) - 2 == 0
        assert (xp.linalg.solve(SQUARE, xp.asarray(SQUARE) @ SQUARE) == SQUARE).all()


# No conversion to floats
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("escape", [float, math.exp, lambda x: np.float64(x), lambda x: np.zeros(1).__setitem__(0, x)])
def test_an_active_number_cannot_become_a_float(escape: Callable[[Any], Any]) -> None:
    with pytest.raises(LostPrecision, match="active number"):
        escape(Real.of(0.5))


def test_integers_can_be_taken_from_active_numbers() -> None:
    assert int(Real.of(2.9)) == 2
    assert math.floor(Real.of(-2.1)) == -3


def test_a_slow_source_is_stopped_between_operations() -> None:
    late = Balls(Real, deadline=0.0)
    with pytest.raises(TooSlow):
        late.loop(lambda i, s: s, 0, 1)
    with pytest.raises(TooSlow):
        late.exp(1.0)


def test_a_missing_function_is_named() -> None:
    with pytest.raises(AttributeError, match="no wavelet"):
        xp.wavelet(1.0)


def test_a_failed_comparison_inside_numpy_is_raised() -> None:
    third = xp.reals([1.0, 1.0]) / 3
    assert third[0] == third[0]
    with pytest.raises(ball.NeedsBits):
        np.sort(xp.stack([third[0] * 3, Real.of(1.0), third[1] * 3]))


# Noise ---------------------------------------------------------------------------------------------------------


class Counted(Real):
    """A type that records where a library would round."""

    __slots__ = ()
    heard: ClassVar[list[str]] = []

    @classmethod
    def computed(cls, name: str, function: Callable[..., Any], *operands: Any) -> Any:
        cls.heard.append(name)
        return function(*operands)

    @classmethod
    def total(cls, terms: Sequence[Any]) -> Any:
        cls.heard.append(f"total of {len(terms)}")
        return super().total(terms)

    @classmethod
    def product(cls, terms: Sequence[Any]) -> Any:
        cls.heard.append(f"product of {len(terms)}")
        return super().product(terms)

    @classmethod
    def matrix(cls, rows: Any, *, symmetric: bool, mixing: bool) -> Any:
        cls.heard.append("mixing" if mixing else "symmetric" if symmetric else "matrix")
        return rows

    @classmethod
    def rounded(cls, value: Any) -> Any:
        cls.heard.append("rounded")
        return value


def test_noisy_types_get_every_rounding() -> None:
    noisy = Balls(Counted)
    expected: dict[Callable[[], Any], list[str]] = {
        lambda: noisy.arctan(noisy.asarray([0.5, 1.0])): ["atan"] * 2,
        lambda: noisy.hypot(1.0, 2.0): ["hypot"],
        lambda: noisy.maximum(noisy.abs(1.0), 2.0): ["abs", "maximum"],
        lambda: noisy.sum(TALL, axis=0): ["total of 5"] * 3,
        lambda: noisy.prod(TALL, axis=1): ["product of 3"] * 5,
        lambda: noisy.mean(TALL): ["total of 15"],
        lambda: noisy.asarray(TALL) @ TALL.T: ["total of 3"] * 25,
        lambda: noisy.linalg.det(SQUARE): ["matrix", "rounded"],
        lambda: noisy.linalg.cholesky(POSITIVE[:2, :2]): ["symmetric", *["rounded"] * 4],
        lambda: noisy.linalg.svdvals(SQUARE[:1, :1]): ["mixing", *["rounded"] * 3],
    }
    for compute, heard in expected.items():
        Counted.heard.clear()
        assert all(type(number) is Counted for number in np.ravel(np.asarray(compute(), dtype=object)))
        assert Counted.heard == heard
