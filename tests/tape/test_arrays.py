"""Reductions, shapes, indexing, products and transforms, in both modes, compared with 50-digit differences.

Each function is written once, over a namespace: numpy runs it on object arrays of 50-digit numbers for the truth, and
the engine on variables.
"""

import numpy as np
import pytest

from adbench import tape

from . import truth

X = np.array([[0.7, -1.3, 2.1], [1.9, 0.4, -0.6]])
CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))
SQUARE = np.random.default_rng(1).normal(size=(3, 3))
MATRIX = np.random.default_rng(2).normal(size=(3, 2))
MASK = np.array([[True, False, True], [False, False, True]])
PICK = np.array([2, 0, 2])


def written(xp, x, index, v):
    y = x.copy()
    y[index] = v
    return y


FUNCTIONS = {
    "sum": (lambda xp, x: xp.sum(x * x), X),
    "sum over an axis": (lambda xp, x: xp.sum(x * x, axis=0), X),
    "sum, kept": (lambda xp, x: x * xp.sum(x, axis=-1, keepdims=True), X),
    "sum over two axes": (lambda xp, x: xp.sum(x * x, axis=(0, 2)), CUBE),
    "prod": (lambda xp, x: xp.prod(x), X),
    "prod over an axis": (lambda xp, x: xp.prod(x, axis=1), CUBE),
    "prod over two axes": (lambda xp, x: xp.prod(x, axis=(0, -1), keepdims=True), CUBE),
    "mean": (lambda xp, x: xp.mean(x * x, axis=1), X),
    "var": (lambda xp, x: xp.var(x, axis=1), X),
    "var, unbiased": (lambda xp, x: xp.var(x, ddof=1), X),
    "var, corrected": (lambda xp, x: xp.var(x, correction=1), X),
    "std, corrected": (lambda xp, x: xp.std(x, axis=0, correction=1), X),
    "max": (lambda xp, x: xp.max(x, axis=1), X),
    "min, kept": (lambda xp, x: xp.min(x, axis=0, keepdims=True) * x, X),
    "cumsum": (lambda xp, x: xp.cumsum(x, axis=1) * x, X),
    "cumsum, flat": (lambda xp, x: xp.cumsum(x), X),
    "cumprod": (lambda xp, x: xp.cumprod(x, axis=0), CUBE),
    "diff": (lambda xp, x: xp.diff(x, n=2), X * X),
    "trace": (lambda xp, x: xp.trace(x), SQUARE),
    "reshape": (lambda xp, x: xp.reshape(x, (3, -1)) ** 2, X),
    "ravel": (lambda xp, x: xp.ravel(x)[1:] * xp.ravel(x)[:-1], X),
    "transpose": (lambda xp, x: xp.transpose(x, (2, 0, 1)) ** 2, CUBE),
    "swapaxes": (lambda xp, x: xp.swapaxes(x, 0, -1) ** 2, CUBE),
    "moveaxis": (lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)) ** 2, CUBE),
    "expand_dims": (lambda xp, x: xp.expand_dims(x, (0, 2)) * x, X),
    "squeeze": (lambda xp, x: xp.squeeze(x[:, :1, None]) ** 2, X),
    "broadcast_to": (lambda xp, x: xp.broadcast_to(x[:, :1], (4, 2, 3)) ** 2, X),
    "flip": (lambda xp, x: xp.flip(x, 1) * x, X),
    "roll": (lambda xp, x: xp.roll(x, 1, axis=1) * x, X),
    "roll, flat": (lambda xp, x: xp.roll(x, -2) * x, X),
    "tril": (lambda xp, x: xp.tril(x) ** 2, SQUARE),
    "triu": (lambda xp, x: xp.triu(x, 1) ** 2, SQUARE),
    "repeat": (lambda xp, x: xp.repeat(x, 2, axis=1) ** 2, X),
    "repeat, flat": (lambda xp, x: xp.repeat(x, 3) ** 2, X),
    "tile": (lambda xp, x: xp.tile(x, (2, 1, 2)) ** 2, X),
    "concatenate": (lambda xp, x: xp.concatenate([x, 2 * x[:1], np.ones((1, 3))]) ** 2, X),
    "stack": (lambda xp, x: xp.stack([x[0], x[1] * x[0]], axis=1), X),
    "split": (lambda xp, x: xp.split(x, 3, axis=1)[1] * xp.split(x, [1], axis=1)[0], X),
    "pad": (lambda xp, x: xp.pad(x, ((1, 0), (0, 2))) ** 2, X),
    "diag of a matrix": (lambda xp, x: xp.diag(x, 1) ** 2, SQUARE),
    "diag of a vector": (lambda xp, x: xp.diag(x[0], -1) ** 2, X),
    "diagonal": (lambda xp, x: xp.diagonal(x, 0, 1, 2) ** 2, CUBE),
    "slices": (lambda xp, x: x[1, ::-1] * x[0, :], X),
    "newaxis and ellipsis": (lambda xp, x: x[..., None, 1:] ** 2, X),
    "negative integer": (lambda xp, x: x[-1] * x[0], X),
    "mask": (lambda xp, x: x[MASK] ** 2, X),
    "index arrays with repeats": (lambda xp, x: x[:, PICK] ** 2, X),
    "two index arrays": (lambda xp, x: x[[0, 1, 0], PICK] ** 2, X),
    "take": (lambda xp, x: xp.take(x, PICK, axis=1) ** 2, X),
    "take, flat": (lambda xp, x: xp.take(x, [5, 0]) ** 2, X),
    "sort": (lambda xp, x: xp.sort(x, axis=1) * np.arange(3.0), X),
    "write a slice": (lambda xp, x: written(xp, x, (slice(None), 0), x[:, 1] * x[:, 2]) ** 2, X),
    "write a number": (lambda xp, x: written(xp, x, (1, 2), 3.0) ** 2, X),
    "write a mask": (lambda xp, x: written(xp, x, MASK, x[0]) ** 2, X),
    "write one value in many places": (lambda xp, x: written(xp, x, (slice(None), slice(1, 3)), x[0, 0]) ** 2, X),
    "write with repeats": (lambda xp, x: written(xp, x, (0, PICK), x[1]) ** 2, X),
    "matmul": (lambda xp, x: xp.matmul(x, xp.matmul(MATRIX, x)), X),
    "matrix times vector": (lambda xp, x: x @ x[0], X),
    "vector times matrix": (lambda xp, x: x[0] @ x.T, X),
    "vector times vector": (lambda xp, x: x[0] @ x[1], X),
    "stacks of matrices": (lambda xp, x: xp.matmul(x[:, None], xp.swapaxes(x, 1, 2)[None]), CUBE),
    "stack times vector": (lambda xp, x: xp.matmul(x, x[0, 0]), CUBE),
    "vector times stack": (lambda xp, x: xp.matmul(x[0, :, 0], x), CUBE),
    "constant times stack": (lambda xp, x: xp.matmul(MATRIX.T, x), CUBE),
    "dot": (lambda xp, x: xp.dot(x, x.T), X),
    "dot of many axes": (lambda xp, x: xp.dot(x, np.ones((4, 2))), CUBE),
    "inner": (lambda xp, x: xp.inner(x, x), X),
    "outer": (lambda xp, x: xp.outer(x[0], x[1]), X),
    "vdot": (lambda xp, x: xp.vdot(x, x), X),
    "tensordot": (lambda xp, x: xp.tensordot(x, x, ((0, 2), (0, 2))), CUBE),
    "tensordot, count": (lambda xp, x: xp.tensordot(x, xp.moveaxis(x, 0, -1)), CUBE),
    "kron": (lambda xp, x: xp.kron(x, x[:, :1]), X),
    "einsum, matrix product": (lambda xp, x: xp.einsum("ij,kj->ik", x, x), X),
    "einsum, three factors": (lambda xp, x: xp.einsum("ij,jk,kl->il", x, MATRIX, x), X),
    "einsum, trace": (lambda xp, x: xp.einsum("ii", x), SQUARE),
    "einsum, diagonal times": (lambda xp, x: xp.einsum("ii,ij->j", x, x), SQUARE),
    "einsum, lonely label": (lambda xp, x: xp.einsum("ij,k->k", x, x[0]), X),
    "einsum, ellipsis": (lambda xp, x: xp.einsum("...ij,...kj->...ik", x, x), CUBE),
    "where": (lambda xp, x: xp.where(MASK, x * x, x), X),
    "iteration": (lambda xp, x: sum(row @ row for row in x), X),
    "zeros to fill": (lambda xp, x: written(xp, xp.zeros_like(x), 0, x[1] * x[0]), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_modes_agree_with_high_precision_differences(name):
    f, x = FUNCTIONS[name]
    with np.errstate(all="ignore"):  # numpy warns when it sorts or reduces objects
        exact = truth.jacobian(lambda v: f(np, v), x)
    plain = f(np, x)
    for mode in ("reverse", "forward"):
        fx, j = tape.jacobian(lambda v: f(tape, v), x, mode)
        np.testing.assert_allclose(fx, plain, rtol=1e-14, err_msg=mode)
        np.testing.assert_allclose(j, exact, rtol=1e-13, atol=1e-14, err_msg=mode)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpys_own_names_and_higher_orders_agree(name):
    f, x = FUNCTIONS[name]
    weights = np.random.default_rng(5).normal(size=np.shape(f(np, x)))

    def loss(xp):
        return lambda v: tape.sum(tape.sin(f(xp, v)) * weights)

    value, g = tape.gradient(loss(tape), x)
    again, by_numpy = tape.gradient(loss(np), x)
    assert again == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(by_numpy, g, rtol=1e-13, atol=1e-14)
    v = np.random.default_rng(6).normal(size=x.shape)
    hv = tape.hvp(loss(tape), x, v)[1]
    reverse_over_reverse = tape.gradient(lambda p: tape.sum(tape.gradient(loss(tape), p)[1] * v), x)[1]
    reverse_over_forward = tape.gradient(lambda p: tape.jvp(loss(tape), p, v)[1], x)[1]
    forward_over_forward = tape.jvp(lambda p: tape.jvp(loss(tape), p, v)[1], x, v)[1]
    np.testing.assert_allclose(reverse_over_reverse, hv, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(reverse_over_forward, hv, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(forward_over_forward, np.sum(hv * v), rtol=1e-10, atol=1e-11)


EXACT_IN_MPMATH = {
    "logsumexp": (lambda xp, x: xp.logsumexp(x), lambda x: truth.mp.log(np.sum(truth.mp.exp(x)))),
    "logsumexp over an axis": (
        lambda xp, x: xp.logsumexp(x, axis=1),
        lambda x: truth.mp.log(np.sum(truth.mp.exp(x), axis=1)),
    ),
    "softmax": (lambda xp, x: xp.softmax(x), lambda x: truth.mp.exp(x) / np.sum(truth.mp.exp(x), -1, keepdims=True)),
    "std": (lambda xp, x: xp.std(x, axis=0), lambda x: truth.mp.sqrt(np.var(x, axis=0))),
    "norm": (lambda xp, x: xp.linalg.norm(x), lambda x: truth.mp.sqrt(np.sum(x * x))),
    "cummax": (lambda xp, x: xp.cummax(x, axis=1) * x, lambda x: np.maximum.accumulate(x, 1) * x),
}


@pytest.mark.parametrize("name", EXACT_IN_MPMATH)
def test_functions_that_numpy_lacks_on_objects_agree_with_high_precision_differences(name):
    f, exact = EXACT_IN_MPMATH[name]
    for mode in ("reverse", "forward"):
        j = tape.jacobian(lambda v: f(tape, v), X, mode)[1]
        np.testing.assert_allclose(j, truth.jacobian(exact, X), rtol=1e-13, atol=1e-14)


def exact_inverse(a):
    """Gauss elimination in 50 digits."""
    n = len(a)
    work = np.concatenate([a, truth.exact(np.eye(n))], axis=1)
    for i in range(n):
        work[i] = work[i] / work[i, i]
        for k in range(n):
            if k != i:
                work[k] = work[k] - work[i] * work[k, i]
    return work[:, n:]


def exact_log_det(a):
    work, total = a.copy(), 0
    for i in range(len(a)):
        total = total + truth.mp.log(abs(work[i, i]))
        for k in range(i + 1, len(a)):
            work[k] = work[k] - work[i] * (work[k, i] / work[i, i])
    return total


def exact_cholesky(a):
    lower = truth.exact(np.zeros(a.shape))
    for i in range(len(a)):
        for k in range(i + 1):
            rest = a[i, k] - sum(lower[i, m] * lower[k, m] for m in range(k))
            lower[i, k] = truth.mp.sqrt(rest) if i == k else rest / lower[k, k]
    return lower


POSITIVE = SQUARE @ SQUARE.T + np.eye(3)
MATRIX_FUNCTIONS = {
    "inv": (lambda la, a: la.inv(a), exact_inverse, SQUARE),
    "slogdet": (lambda la, a: la.slogdet(a)[1], exact_log_det, SQUARE),
    "det": (lambda la, a: la.det(a), lambda a: np.sum(np.cross(a[0], a[1]) * a[2]), SQUARE),
    "solve": (lambda la, a: la.solve(a, MATRIX), lambda a: exact_inverse(a) @ MATRIX, SQUARE),
    "solve, both": (lambda la, a: la.solve(a, a[0] * a[1]), lambda a: exact_inverse(a) @ (a[0] * a[1]), SQUARE),
    "cholesky": (lambda la, a: la.cholesky(a), exact_cholesky, POSITIVE),
}


@pytest.mark.parametrize("name", MATRIX_FUNCTIONS)
def test_matrix_functions_agree_with_high_precision_differences_and_make_one_node(name):
    f, exact, a = MATRIX_FUNCTIONS[name]
    expected = truth.jacobian(exact, a)
    for la in (tape.linalg, np.linalg):
        for mode in ("reverse", "forward"):
            fx, j = tape.jacobian(lambda v, la=la: f(la, v), a, mode)
            np.testing.assert_allclose(fx, f(np.linalg, a), rtol=1e-14)
            np.testing.assert_allclose(j, expected, rtol=2e-12, atol=1e-13)
    loss = lambda v: tape.sum(tape.sin(f(tape.linalg, v)))  # noqa: E731
    v = np.random.default_rng(8).normal(size=a.shape)
    np.testing.assert_allclose(tape.hvp(loss, a, v)[1], np.tensordot(tape.hessian(loss, a)[2], v), rtol=1e-9)


def test_a_matrix_function_costs_one_node():
    with tape.nested() as recorded:
        a = tape.Var(POSITIVE)
        before = len(recorded)
        tape.linalg.inv(a)
        assert len(recorded) == before + 1
        _ = a @ a
        assert len(recorded) == before + 2


@pytest.mark.parametrize("n", [5, 6])
def test_spectra_of_real_signals_are_pairs_of_real_values(n):
    x = np.random.default_rng(n).normal(size=n)
    angle = -2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    c, s = np.cos(angle), np.sin(angle)
    k = n // 2 + 1

    def power(v):
        return np.sum(np.abs(np.fft.rfft(v)) ** 4)

    exact = truth.jacobian(lambda v: np.sum(((c[:k] @ v) ** 2 + (s[:k] @ v) ** 2) ** 2), x)
    np.testing.assert_allclose(tape.gradient(power, x)[1], exact, rtol=1e-11)
    np.testing.assert_allclose(tape.jacobian(power, x, "forward")[1], exact, rtol=1e-11)
    smooth = lambda v: np.fft.irfft(np.fft.rfft(v) * np.exp(-np.arange(k) * (0.3 + 0.2j)), n)  # noqa: E731
    fx, j = tape.jacobian(smooth, x)
    np.testing.assert_allclose(fx, smooth(x), rtol=1e-12)
    np.testing.assert_allclose(j, np.array([smooth(e) for e in np.eye(n)]).T, atol=1e-14)
    round_trip = tape.jacobian(lambda v: np.fft.ifft(np.fft.fft(v, 8), axis=-1).real, x)[1]
    np.testing.assert_allclose(round_trip, np.eye(8)[:, :n], atol=1e-15)
    h = tape.hessian(power, x)[2]
    np.testing.assert_allclose(h, h.T, rtol=1e-9, atol=1e-9)


def test_two_names_of_the_degrees_of_freedom_are_refused():
    for f in (tape.var, tape.std):
        with pytest.raises(ValueError, match="give ddof or correction, which mean the same; got 1 and 2"):
            f(X, ddof=1, correction=2)
