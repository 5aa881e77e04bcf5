"""Enclosures of linear systems and triangular factors against exact elimination with 1,000 bits."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from flint import arb

from adbench.oracle.enclosures import midpoint_radius, rounded_linalg, verified_linalg
from adbench.oracle.enclosures.ball_arrays import BallArray
from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.midpoint_radius import Enclosure
from adbench.oracle.enclosures.recorded import EnclosedArray, gradient
from adbench.oracle.enclosures.rounded_arrays import RoundedArray, UnroundedArray
from adbench.oracle.evidence import SINGLE
from adbench.oracle.series.ball import Arithmetic, arithmetic

Floats = Any
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # in use, they are off

ROWS = (1, 2, 5, rounded_linalg.BLOCK + 5)
EXACTLY = Arithmetic(1000)


def exact(x: Floats) -> UnroundedArray:
    """The same numbers, of `arb`."""
    return UnroundedArray(np.asarray(np.frompyfunc(arb, 1, 1)(x), dtype=object))


lower_factor = partial(scipy.linalg.cholesky, lower=True)


def nearly_singular(n: int, rng: np.random.Generator) -> Floats:
    left, right = (np.linalg.qr(rng.normal(size=(3, n, n))).Q for _ in range(2))
    return (left * np.logspace(0, -11, n)) @ right


def badly_scaled(n: int, rng: np.random.Generator) -> Floats:
    rows, columns = (10.0 ** rng.integers(-40, 40, (3, n, 1)) for _ in range(2))
    return rng.normal(size=(3, n, n)) * rows * np.swapaxes(columns, -1, -2)


def positive(a: Floats) -> Floats:
    """A symmetric, positive definite matrix with rows and columns of the sizes of a's."""
    powers = 2.0 ** np.rint(np.log2(np.abs(a).max(-1, keepdims=True)))
    rows = a / powers / np.abs(a / powers).max((-2), keepdims=True)
    product = np.tril(rows @ np.swapaxes(rows, -1, -2))
    symmetric = product + np.swapaxes(np.tril(product, -1), -1, -2) + 1e-9 * np.eye(a.shape[-1])
    return symmetric * powers * np.swapaxes(powers, -1, -2)


MATRICES: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "random": lambda n, rng: rng.normal(size=(3, n, n)),
    "nearly singular": nearly_singular,
    "badly scaled": badly_scaled,
}


def outside(x: Any, truth: Any) -> int:
    """How many true numbers are not certainly inside."""
    numbers = zip(*(part.ravel() for part in x.bounds()), np.broadcast_to(truth.parts[0], x.shape).ravel(), strict=True)
    return sum(np.isfinite(rad) and not abs(arb(mid) - number) <= arb(rad) for mid, rad, number in numbers)


def solved(kind: Any, a: Any, b: Any, at: Any) -> int:
    """How many numbers of a solution and of both factors are outside; at: the matrices within the enclosures."""
    x = verified_linalg.solve(a, kind.of(b))
    packed, order = verified_linalg.lu(a)
    rows = np.take_along_axis(at, order[..., None], -2)
    with arithmetic(EXACTLY):
        of_rows, same = rounded_linalg.lu(exact(rows))
        assert (same == np.arange(at.shape[-1])).all() or not np.isfinite(packed.bounds()[1]).all()
        return outside(x, rounded_linalg.solve(exact(at), exact(b))) + outside(packed, of_rows)


def factored(a: Any, at: Any) -> int:
    """How many numbers of a Cholesky factor are outside."""
    lower = verified_linalg.cholesky(a)
    with arithmetic(EXACTLY):
        return outside(lower, rounded_linalg.cholesky(exact(at)))


def missed(name: str, kind: Any = Enclosure) -> int:
    """How many true numbers lie outside, for matrices of this kind and all sizes."""
    count = 0
    for n in ROWS:
        rng = np.random.default_rng(n)
        a, b = MATRICES[name](n, rng), rng.normal(size=(3, n, 2))
        symmetric = positive(a)
        with arithmetic(Arithmetic(64)):
            count += solved(kind, kind.of(a), b, a) + factored(kind.of(symmetric), symmetric)
    return count


@pytest.mark.parametrize("kind", [Enclosure, BallArray])
@pytest.mark.parametrize("name", MATRICES)
def test_no_true_number_lies_outside(name: str, kind: Any) -> None:
    assert not missed(name, kind)


def test_a_residual_has_nearly_twice_the_precision_of_float64() -> None:
    rng = np.random.default_rng(3)
    for terms in (1, 2, 40, 400):
        a, b = rng.normal(size=(7, terms)), rng.normal(size=(terms, 5))
        a[2:] *= 2.0 ** rng.integers(-300, 300, (5, terms))
        b[:, 3:] *= 10.0 ** rng.integers(-160, 9, (terms, 2))
        c = a @ b
        residual = Enclosure.of(c).less_product(Enclosure.of(a), Enclosure.of(b))
        with arithmetic(EXACTLY):
            truth = exact(c).parts[0] - exact(a).parts[0] @ exact(b).parts[0]
            assert not outside(residual, UnroundedArray(truth))
        sizes = np.abs(a) @ np.abs(b)
        assert (residual.rad <= 2.0**-40 * sizes + 1e-290).all()
        even = slice(0, 2), slice(0, 3)  # rows and columns of one size
        assert (residual.rad <= 2.0**-80 * sizes + 2.0**-52 * np.abs(residual.mid))[even].all()


@pytest.mark.parametrize("n", [5, 30, 100])
def test_random_roundings_are_those_of_a_library_in_float32(n: int) -> None:
    rng, numbers = np.random.default_rng(n), RoundedArray.drawn(SINGLE, [1])
    drawn, real = [], []
    for _ in range(10):  # numpy's own functions compute in float64
        a, b = (rng.normal(size=(n, columns)).astype(np.float32) for columns in (n, 2))
        for rounded, library, operands in (
            (rounded_linalg.solve, scipy.linalg.solve, (a, b)),
            (rounded_linalg.cholesky, lower_factor, (a @ a.T / n + np.eye(n, dtype=np.float32),)),
        ):
            truth = library(*(x.astype(np.float64) for x in operands))
            drawn.append(np.abs(rounded(*map(numbers.of, operands)).parts[0] - truth))
            real.append(np.abs(library(*operands) - truth))
    for of in (slice(0, None, 2), slice(1, None, 2)):
        assert 0.2 < np.median(real[of]) / np.median(drawn[of]) < 2


def test_all_matrices_within_the_radii_are_enclosed() -> None:
    for n in ROWS:
        rng = np.random.default_rng(n)
        mid, b = rng.normal(size=(3, n, n)), rng.normal(size=(3, n, 2))
        rad = 1e-9 * np.abs(mid)
        at = mid + 0.99 * rad * rng.choice([-1, 1], mid.shape)
        x = verified_linalg.solve(Enclosure(mid, rad), Enclosure.of(b))
        with arithmetic(EXACTLY):
            truth = rounded_linalg.solve(exact(at), exact(b))
            assert not outside(x, truth)
            assert np.isfinite(x.rad).all()


def crude(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approximations with three digits: all of a radius then matters."""
    rng = np.random.default_rng(7)

    def spoiled(function: Callable[[Floats], Any]) -> Callable[[Floats], Any]:
        def of(a: Floats) -> Any:
            result = function(a)
            numbers, *rest = result if isinstance(result, tuple) else (result,)
            near = numbers * rng.uniform(0.999, 1.001, numbers.shape)
            return (near, *rest) if rest else near

        return of

    monkeypatch.setattr(np.linalg, "inv", spoiled(np.linalg.inv))
    monkeypatch.setattr(np.linalg, "cholesky", spoiled(np.linalg.cholesky))
    monkeypatch.setattr(verified_linalg, "eliminated", spoiled(verified_linalg.eliminated))


@pytest.mark.parametrize("kind", [Enclosure, BallArray])
@pytest.mark.parametrize("name", MATRICES)
def test_crude_approximations_change_the_radii_alone(name: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    crude(monkeypatch)
    assert not missed(name, kind)


@pytest.mark.parametrize(
    ("fault", "is_crude"),
    [
        ((Enclosure, "widened", lambda x, _radii: x), True),
        ((verified_linalg, "_second_order", lambda e, *_: np.zeros(e.shape)), True),
        ((midpoint_radius, "U", 0.0), False),
    ],
    ids=["no remainder", "no second order", "no roundings"],
)
def test_missing_parts_of_radii_are_noticed(fault: Any, is_crude: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*fault)
    if is_crude:
        crude(monkeypatch)
    assert missed("random")


def test_radii_of_large_random_matrices_are_small() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 128, 128))
    x = verified_linalg.solve(Enclosure.of(a), Enclosure.of(rng.normal(size=(2, 128, 3))))
    packed, _ = verified_linalg.lu(Enclosure.of(a))
    lower = verified_linalg.cholesky(Enclosure.of(a @ np.swapaxes(a, -1, -2) + np.eye(128)))
    for one in (x, packed, lower):
        assert np.median(one.rad) < 2.0**-40 * np.median(np.abs(one.mid[one.mid != 0]))


def test_a_singular_matrix_has_an_enclosed_determinant_and_gradient() -> None:
    """The gradient is the transposed adjugate, which needs no inverse."""
    rng = np.random.default_rng(4)
    whole = rng.integers(-3, 4, (2, 30, 30)).astype(np.float64)
    whole[:, -1] = whole[:, 3] - whole[:, 5]
    x = EnclosedArray(Enclosure.of(whole), is_input=True)
    value = Enclosures(Enclosure).linalg.det(x)
    (adjugate,) = gradient(value, Enclosure.of(np.ones(2)), [x])
    assert (np.abs(value.value.mid) <= value.value.rad).all()
    largest = np.abs(adjugate.mid).max()
    assert (adjugate.rad < 2.0**-30 * largest).all()
    minor = np.delete(np.delete(whole[0], 2, 0), 7, 1)
    with arithmetic(EXACTLY):
        packed, order = rounded_linalg.lu(exact(minor))
        sign = -np.rint(np.linalg.det(np.eye(29)[order]))
        cofactor = np.prod(np.diagonal(packed.parts[0])) * arb(float(sign))
        assert abs(arb(adjugate.mid[0, 2, 7]) - cofactor) <= arb(adjugate.rad[0, 2, 7])


def test_running_products_of_many_numbers_with_zeros_have_exact_gradients() -> None:
    rng = np.random.default_rng(2)
    x = rng.choice([-1.0, 1.0, 2.0, 0.5], 5001, p=[0.25, 0.25, 0.25, 0.25])
    x[[3000, 4000]] = 0.0
    rest, expected = 0.0, np.zeros(x.size)
    for k in reversed(range(x.size)):  # exact: powers of two, few enough to have no underflow
        rest = 1.0 + (x[k + 1] * rest if k + 1 < x.size else 0.0)
        expected[k] = rest
    expected *= np.concatenate([[1.0], np.cumprod(x)[:-1]])
    a = EnclosedArray(Enclosure.of(x), is_input=True)
    product = Enclosures(Enclosure).cumulative_prod(a)
    (slope,) = gradient(product, Enclosure.of(np.ones(x.size)), [a])
    for one, truth in ((product.value, np.cumprod(x)), (slope, expected)):
        assert (np.abs(one.mid - truth) <= one.rad + 1e-9 * np.abs(truth)).all()
        assert (one.rad <= 1e-9 * np.abs(truth) + 1e-200).all()
