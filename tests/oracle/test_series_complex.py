"""Complex numbers and Fourier transforms over balls: numpy's results, with derivatives, and never a complex value."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adbench.oracle.compute import reference
from adbench.oracle.second_order import hessian_reference
from adbench.oracle.series import ball
from adbench.oracle.series.ball import Arithmetic, arithmetic
from adbench.oracle.series.evaluation import one_number
from adbench.oracle.series.namespace import namespace_of
from adbench.oracle.series.noisy import noisy_type
from adbench.oracle.series.number import ComplexNumber, LostPrecision, Real
from adbench.oracle.subject import Effort
from tests.oracle.scalars import subject_of

RNG = np.random.default_rng(23)
X = RNG.normal(size=6)
Z = RNG.normal(size=6) + 1j * RNG.normal(size=6)
KINDS = (Real, noisy_type(0, 0))


@pytest.fixture(autouse=True)
def in_arithmetic() -> Iterator[None]:
    with arithmetic(Arithmetic()):
        yield


def plain(x: Any) -> Any:
    def number(element: Any) -> complex:
        if isinstance(element, ComplexNumber):
            return complex(number(element.real).real, number(element.imag).real)
        return complex(float(ball.ball(ball.start(element.ball)).mid()))

    return np.vectorize(number, otypes=[complex])(x)


def same(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(plain(found), expected, rtol=1e-12, atol=1e-13)


OPERATIONS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda xp, x, z: x + z * (1 - 2j),
    lambda xp, x, z: (1 - 2j) - x,
    lambda xp, x, z: 1j * x * z - z * x,
    lambda xp, x, z: z / (x + 1j) + x / z + 2.0 / z + z / 3,
    lambda xp, x, z: (2j + x) ** 3 * z**-2,
    lambda xp, x, z: abs(z) + xp.abs(1j * x),
    lambda xp, x, z: xp.conj(z) * z.conj() + z.real * z.imag,
    lambda xp, x, z: xp.real(z) + 1j * xp.imag(z) - xp.imag(x),
    lambda xp, x, z: xp.exp(z) - xp.exp(1j * x),
    lambda xp, x, z: xp.sum(z) + xp.sum(z * x),
    lambda xp, x, z: xp.concat([x * 1j, z])[::2] + np.complex128(1 + 2j),
    lambda xp, x, z: +z - -z,
    lambda xp, x, z: xp.log(z) + xp.log(1j * x) - xp.log1p(z),
    lambda xp, x, z: xp.sqrt(z) - xp.sqrt(x + 0j) * xp.sqrt(-z),
    lambda xp, x, z: xp.sin(z) * xp.cos(z) - xp.tan(z),
    lambda xp, x, z: xp.sinh(z) * xp.cosh(z) - xp.tanh(z),
    lambda xp, x, z: z**0.5 + z ** (1 - 2j) + 2.0**z + z**-2.0,
    lambda xp, x, z: xp.square(z) + xp.reciprocal(z) + xp.sign(z) * xp.prod(z),
    lambda xp, x, z: xp.linalg.solve(_square(z, x), z[:2]) @ _square(z, x) * xp.linalg.det(_square(z, x)),
    lambda xp, x, z: xp.linalg.inv(_square(z, x)) * xp.linalg.slogdet(_square(z, x))[1] + xp.vdot(z, x),
    lambda xp, x, z: xp.linalg.eigvals(_square(z, x)) + xp.linalg.eigvals(_square(x, x)),
    lambda xp, x, z: xp.abs(xp.linalg.eig(_square(z, x))[1]) @ xp.linalg.eigvalsh(_positive(xp, z)),
    lambda xp, x, z: xp.linalg.cholesky(_positive(xp, z)),
)


def _positive(xp: Any, z: Any) -> Any:
    a = _square(z, z)
    return a @ xp.conj(a.T)


def _square(a: Any, b: Any) -> Any:
    return a[:4].reshape(2, 2) + b[2:].reshape(2, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", range(len(OPERATIONS)))
def test_operations_agree_with_numpy(which: int, kind: type[Real]) -> None:
    xp, f = namespace_of(kind), OPERATIONS[which]
    same(f(xp, xp.asarray(X), xp.asarray(Z)), f(_numpy(), X, Z))


def _numpy() -> Any:
    return type(
        "Numpy", (), {"__getattr__": lambda _, name: getattr(np, name), "concat": staticmethod(np.concatenate)}
    )()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 4, 5, 6, 7, 9])
def test_transforms_agree_with_numpy(n: int | None, norm: Any, kind: type[Real]) -> None:
    xp = namespace_of(kind)
    for name, x in [("fft", Z), ("fft", X), ("ifft", Z), ("rfft", X), ("irfft", Z[:4]), ("irfft", X[:3])]:
        expected = getattr(np.fft, name)(x, n, norm=norm)
        same(getattr(xp.fft, name)(xp.asarray(x), n, norm=norm), expected)
    many = RNG.normal(size=(3, 4, 2))
    same(xp.fft.rfft(xp.asarray(many), n, axis=1), np.fft.rfft(many, n, axis=1))
    same(xp.fft.irfft(xp.asarray(many), n, axis=0), np.fft.irfft(many, n, axis=0))


@pytest.mark.parametrize("exact", [False, True])
def test_roots_of_unity_are_exact_where_they_are_fractions(exact: bool) -> None:
    with arithmetic(Arithmetic(exact=exact)):
        xp = namespace_of(Real)
        for found in (xp.fft.fft(xp.asarray([1.0, 2.0, 4.0, 8.0])), xp.fft.rfft(xp.asarray([1.0, 2.0, 4.0]))):
            parts = [ball.ball(element.real.ball) for element in found]
            assert all(part.is_exact() for part in parts), parts


def test_a_complex_number_is_no_value_no_float_and_unordered() -> None:
    z = Real.of(1.0) + 2j
    with pytest.raises(TypeError, match="got ComplexNumber"):
        one_number(z)
    for wrong in (
        lambda: z < 1,
        lambda: float(z),
        lambda: Real.of(1.0) // 2j,
        lambda: namespace_of(Real).floor(z),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(LostPrecision):
        complex(Real.of(1.0))
    with pytest.raises(TypeError, match="has no asin of complex numbers"):
        namespace_of(Real).asin(z)
    assert z == 1 + 2j
    assert z != 1
    assert z
    assert not z - z


def spectrum(xp: Any, x: Any) -> Any:
    return 0.5 * xp.sum(x * xp.fft.irfft(xp.fft.rfft(x) * xp.asarray([0.0, 3.0, 1.0, -2.0]), n=x.shape[0]))


PROVED: dict[str, tuple[Callable[[Any, Any], Any], Any, Any, Any]] = {
    "|z|²": (lambda xp, x: abs(x[0] + 1j * x[1]) ** 2, [3.0, 4.0], [6.0, 8.0], 2 * np.eye(2)),
    "|z|² at 0": (lambda xp, x: abs(x[0] + 1j * x[1]) ** 2, [0.0, 0.0], [0.0, 0.0], 2 * np.eye(2)),
    "Re e^ix": (lambda xp, x: xp.real(xp.exp(1j * x[0])), [0.5], [-np.sin(0.5)], [[-np.cos(0.5)]]),
    "arg": (lambda xp, x: xp.imag(xp.exp(x[0] + 1j * x[1])), [0.0, 0.0], [0.0, 1.0], [[0.0, 1.0], [1.0, 0.0]]),
    "power": (
        lambda xp, x: xp.sum(xp.abs(xp.fft.fft(x)) ** 2),
        [1.0, -2.0, 5.0],
        [6.0, -12.0, 30.0],
        6 * np.eye(3),
    ),
    "zero coefficients": (
        lambda xp, x: xp.sum(xp.abs(xp.fft.rfft(x)) ** 2),
        [1.0, 1.0, 1.0, 1.0],
        [8.0, 8.0, 8.0, 8.0],
        np.array([[6, 0, 2, 0], [0, 6, 0, 2], [2, 0, 6, 0], [0, 2, 0, 6]]),
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_both_orders_are_proved(name: str) -> None:
    f, x, gradient, hessian = PROVED[name]
    subject = subject_of(lambda x: f(np, x), (np.array(x),), (0,), text=f)
    row = reference(subject, Effort()).scalar
    assert row.proved, row.reason
    found = [entry.derivative for entry in row.leaves[0].entries]
    np.testing.assert_allclose([known.lower for known in found], gradient, rtol=1e-15)
    assert all(known.lower == known.upper and known.noise < 1e-13 for known in found)
    second = hessian_reference(subject, Effort())
    rows = [[e.derivative.lower for e in row.leaves[0].entries] for _, row in second.outputs]
    np.testing.assert_allclose(rows, hessian, rtol=1e-15)


def test_a_filter_has_the_matrix_that_numpy_has() -> None:
    matrix = np.array([np.fft.irfft(np.fft.rfft(e) * [0.0, 3.0, 1.0, -2.0], n=7) for e in np.eye(7)])
    subject = subject_of(lambda x: spectrum(np, x), (RNG.normal(size=7),), (0,), text=spectrum)
    second = hessian_reference(subject, Effort())
    rows = [[e.derivative.lower for e in row.leaves[0].entries] for _, row in second.outputs]
    np.testing.assert_allclose(rows, 0.5 * (matrix + matrix.T), rtol=1e-13, atol=1e-14)
