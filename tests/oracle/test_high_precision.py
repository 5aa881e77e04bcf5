"""The high-precision namespace: numpy's answers to more digits, IEEE's conventions, no silent way back to floats."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from adbench.oracle.highprecision.elementary import BINARY, UNARY
from adbench.oracle.highprecision.monte_carlo import Stream, noisy_type
from adbench.oracle.highprecision.namespace import HighPrecision, TooSlow, namespace_of
from adbench.oracle.highprecision.real import LostPrecision, Real, real_type

REAL = real_type(170)
xp = namespace_of(REAL)
RNG = np.random.default_rng(11)
SQUARE = RNG.normal(size=(4, 4))
POSITIVE = SQUARE @ SQUARE.T + np.eye(4)
TALL = RNG.normal(size=(5, 3))
BATCH = RNG.normal(size=(2, 3, 4, 4))


def floats(x: Any) -> Any:
    with np.errstate(all="ignore"):  # NaN is a fine answer here
        return np.vectorize(lambda e: e.nearest_float() if isinstance(e, Real) else float(e), otypes=[float])(x)


def same(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(floats(found), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", UNARY)
def test_elementwise_functions_agree_with_numpy_and_scipy(name: str) -> None:
    others = {"lgamma": "gammaln", "digamma": "psi"}
    if name == "log1p_exp":
        expected: Callable[[Any], Any] = lambda x: np.log1p(np.exp(x))  # noqa: E731  numpy has no name for it
    else:
        expected = getattr(np, name, None) or getattr(scipy.special, others.get(name, name))
    x = np.linspace(0.05, 0.95, 7) + (name == "acosh")
    same(getattr(xp, name)(x), expected(x))
    assert isinstance(getattr(xp, name)(REAL.of(x[0])), Real)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_broadcast_and_agree(name: str) -> None:
    x, y = np.linspace(0.1, 2, 4), np.linspace(0.3, 0.8, 3)[:, None]
    same(getattr(xp, name)(xp.asarray(x), y), (getattr(np, name, None) or getattr(scipy.special, name))(x, y))


def test_special_functions_from_mpmath_agree_with_scipy() -> None:
    x = np.linspace(0.1, 0.9, 4)
    same(xp.betainc(2.0, 3.0, x), scipy.special.betainc(2.0, 3.0, x))
    same(xp.gammainc(2.0, x), scipy.special.gammainc(2.0, x))
    same(xp.ndtri(x), scipy.special.ndtri(x))
    same(xp.polygamma(1, x), scipy.special.polygamma(1, x))
    same(xp.multigammaln(4.5, 3), scipy.special.multigammaln(4.5, 3))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "std", "var"])
def test_reductions_agree_along_every_axis(name: str, axis: Any) -> None:
    for keepdims in (False, True):
        expected = getattr(np, name)(TALL, axis=axis, keepdims=keepdims)
        same(getattr(xp, name)(xp.asarray(TALL), axis=axis, keepdims=keepdims), expected)


def test_the_sum_of_nothing_is_zero_and_sums_are_rounded_once() -> None:
    same(xp.sum(xp.zeros((0,))), 0.0)
    assert xp.sum(np.array([1e300, 1.0, -1e300])).nearest_float() == 1.0


def test_products_of_matrices_agree_in_every_shape() -> None:
    for a, b in [(SQUARE, POSITIVE), (BATCH, SQUARE), (BATCH, SQUARE[0]), (SQUARE[0], SQUARE), (SQUARE[0], SQUARE[1])]:
        same(xp.matmul(a, b), a @ b)
        same(xp.asarray(a) @ xp.asarray(b), a @ b)
        same(xp.asarray(a) @ b, a @ b)
        same(a @ xp.asarray(b), a @ b)
    with pytest.raises(ValueError, match="do not fit"):
        xp.matmul(TALL, SQUARE)


def test_infinities_go_through_products_and_sums() -> None:
    a = np.array([[np.inf, 1.0], [0.0, 2.0]])
    assert floats(xp.matmul(a, np.ones((2, 2)))).tolist() == [[np.inf, np.inf], [2.0, 2.0]]
    assert floats(xp.sum(a, axis=0)).tolist() == [np.inf, 3.0]


def test_linear_algebra_agrees_with_numpy() -> None:
    linalg = xp.linalg
    same(linalg.inv(SQUARE), np.linalg.inv(SQUARE))
    same(linalg.inv(BATCH), np.linalg.inv(BATCH))
    same(linalg.solve(SQUARE, POSITIVE), np.linalg.solve(SQUARE, POSITIVE))
    same(linalg.solve(SQUARE, POSITIVE[0]), np.linalg.solve(SQUARE, POSITIVE[0]))
    same(linalg.det(BATCH), np.linalg.det(BATCH))
    for part in (0, 1):
        same(linalg.slogdet(BATCH)[part], np.linalg.slogdet(BATCH)[part])
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


def test_equal_eigenvalues_do_no_harm() -> None:
    values, vectors = xp.linalg.eigh(np.eye(3))
    same(values, np.ones(3))
    same(vectors @ vectors.T, np.eye(3))


def test_matrices_that_cannot_be_factored_give_nan_not_an_exception() -> None:
    assert np.isnan(floats(xp.linalg.cholesky(-np.eye(2)))).all()
    assert not np.isfinite(floats(xp.linalg.inv(np.zeros((2, 2))))).any()
    sign, logarithm = xp.linalg.slogdet(np.zeros((2, 2)))
    assert (sign.nearest_float(), logarithm.nearest_float()) == (0.0, -math.inf)


def test_arithmetic_keeps_the_conventions_of_ieee() -> None:
    zero, one, minus = REAL.of(0.0), REAL.of(1.0), REAL.of(-1.0)
    assert floats([one / 0, minus / zero, 0.0**zero]).tolist() == [math.inf, -math.inf, 1.0]
    assert floats([zero**2.0, zero**-1.0, minus**3]).tolist() == [0.0, math.inf, -1.0]
    assert np.isnan(floats([zero / 0, minus**0.5, xp.log(minus), xp.sqrt(minus), xp.acos(REAL.of(2))])).all()
    assert floats([xp.log(zero), xp.exp(xp.log(zero)), xp.tanh(one / 0)]).tolist() == [-math.inf, 0.0, 1.0]
    same(xp.asarray(TALL) // 0.3, TALL // 0.3)
    same(xp.asarray(TALL) % 0.3, TALL % 0.3)


def test_numpy_scalars_arrays_booleans_and_python_numbers_mix() -> None:
    half = REAL.of(0.5)
    for number in (2, 2.0, np.float64(2), np.int64(2), True + True):
        assert isinstance(number * half, Real)
        assert (number * half).nearest_float() == (half * number).nearest_float() == 1.0
    same(np.array([1.0, 2.0]) * half, [0.5, 1.0])
    same((xp.asarray(TALL) > 0) * half, (TALL > 0) * 0.5)


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
    same(xp.einsum("ij,kj->ik", t, t), TALL @ TALL.T)
    same(xp.loop(lambda i, s: s * i + t, xp.zeros_like(t), 3), 5 * TALL)


@pytest.mark.parametrize("escape", [float, math.exp, lambda x: np.float64(x), lambda x: np.zeros(1).__setitem__(0, x)])
def test_an_active_number_refuses_to_become_a_float(escape: Callable[[Any], Any]) -> None:
    with pytest.raises(LostPrecision, match="active number"):
        escape(REAL.of(0.5))


def test_whole_numbers_may_be_taken_from_active_ones() -> None:
    assert int(REAL.of(2.9)) == 2
    assert math.floor(REAL.of(-2.1)) == -3


def test_a_text_that_takes_too_long_is_stopped_between_operations() -> None:
    late = HighPrecision(REAL, deadline=0.0)
    with pytest.raises(TooSlow):
        late.loop(lambda i, s: s, 0, 1)


def test_a_missing_function_says_its_name() -> None:
    with pytest.raises(AttributeError, match="no wavelet"):
        xp.wavelet(1.0)


def test_monte_carlo_arithmetic_repeats_itself_and_has_the_size_of_a_rounding() -> None:
    real = noisy_type(170)
    errors = []
    for draw in range(50):
        real.stream = Stream(0, draw)
        values = []
        for _ in range(2):
            real.stream.restart()
            values.append((real.of(1.0) / 3).raw)
        assert values[0] == values[1]
        errors.append(REAL(values[0]) * 3 - 1)
    sizes = np.abs(floats(errors))
    assert sizes.max() <= 2.0**-53
    assert sizes.std() > 2.0**-56


def test_a_long_sum_is_as_noisy_as_a_running_one() -> None:
    real = noisy_type(170)
    noisy = namespace_of(real)
    errors = []
    for draw in range(40):
        real.stream = Stream(1, draw)
        real.stream.restart()
        errors.append(noisy.sum(np.full(3000, 0.1)).nearest_float() / 300 - 1)
    # Σ_k (k/n) ε_k over n partial sums, ε uniform: u sqrt(n / 9).
    assert np.std(errors) == pytest.approx(2.0**-53 * math.sqrt(3000 / 9), rel=0.5)
