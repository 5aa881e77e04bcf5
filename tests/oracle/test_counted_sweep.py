"""How many operations a value and its gradient take: known programs."""

from typing import Any

import numpy as np
import pytest

from adbench.oracle.enclosures.counted_sweep import operations_with_gradient
from adbench.oracle.precise import NotPrecise
from tests.oracle.scalars import subject_of

N = 12
A, B, D, X = np.ones((N, N)), np.ones((N, N)), np.eye(N) + 0.1, np.ones(N)


@pytest.mark.parametrize(
    ("f", "args", "wrt", "of_value", "of_sweep"),
    [
        (lambda xp, a, b: xp.sum(a @ b), (A, B), (0, 1), 2 * N**3 + N**2, 4 * N**3),
        (lambda xp, a, b: xp.sum(a @ b), (A, B), (0,), 2 * N**3 + N**2, 2 * N**3),
        (lambda xp, a, x: xp.sum(a @ x), (A, X), (1,), 2 * N**2 + N, 2 * N**2),
        (lambda xp, x: xp.sum(xp.exp(x)), (X,), (0,), 2 * N, 2 * N),  # the slope, and its product
        (lambda xp, x, y: xp.sum(x * y), (X, X), (0, 1), 2 * N, 2 * N),
        (lambda xp, x: xp.sum(x), (X,), (0,), N, 0),
        (lambda xp, x: xp.sum(x[1:]), (X,), (0,), N - 1, N - 1),  # the gradient's place for a number that is moved
        (lambda xp, a: xp.linalg.slogdet(a)[1], (D,), (0,), 2 / 3 * N**3, 4 / 3 * N**3),
        (lambda xp, a: xp.linalg.det(a), (D,), (0,), 2 / 3 * N**3, 4 / 3 * N**3),
        (lambda xp, a: xp.sum(xp.linalg.inv(a)), (D,), (0,), 2 * N**3 + N**2, 4 * N**3),
        (lambda xp, a: xp.sum(xp.linalg.cholesky(a)), (D,), (0,), N**3 / 3 + N**2, 2 / 3 * N**3),
        (lambda xp, a, x: xp.sum(xp.linalg.solve(a, x)), (D, X), (0, 1), 2 / 3 * N**3 + 2 * N**2 + N, 4 * N**2),
        (lambda xp, a, b: xp.sum(xp.linalg.solve(a, b)), (D, A), (1,), 8 / 3 * N**3 + N**2, 2 * N**3),
        (
            lambda xp, a, x: xp.sum(xp.linalg.solve_triangular(a, x, lower=True)),
            (D, X),
            (0,),
            N**2 + N,
            3 * N**2,
        ),  # and tril's
    ],
)
def test_the_operations_are_those_of_a_textbook(f: Any, args: Any, wrt: Any, of_value: int, of_sweep: int) -> None:
    subject = subject_of(lambda *args: f(np, *args), args, wrt, text=f)
    assert operations_with_gradient(subject) == pytest.approx(1 + of_sweep / of_value)


def test_a_spectrum_is_not_counted() -> None:
    text = lambda xp, a: xp.sum(xp.linalg.eigvalsh(a))  # noqa: E731
    with pytest.raises(NotPrecise, match="its operations are not counted: "):
        operations_with_gradient(subject_of(lambda a: text(np, a), (A,), (0,), text=text))
