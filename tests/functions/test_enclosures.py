"""Enclosures by midpoint and radius against balls: every true number lies inside, and radii are small."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
jnp = jax.numpy

from flint import arb  # noqa: E402 - torch comes first

from adbench.findings.programs.generation import drawn  # noqa: E402 - torch comes first
from adbench.findings.programs.random_program import Program  # noqa: E402
from adbench.functions.libraries import LIBRARIES, double_precision, translator_of  # noqa: E402
from adbench.oracle.compute import reference  # noqa: E402
from adbench.oracle.enclosures import midpoint_radius, taylor  # noqa: E402
from adbench.oracle.enclosures.ball_arrays import BallArray  # noqa: E402
from adbench.oracle.enclosures.enclosed_namespace import Enclosures  # noqa: E402
from adbench.oracle.enclosures.midpoint_radius import Enclosure  # noqa: E402
from adbench.oracle.enclosures.recorded import EnclosedArray, WithinRadii, gradient  # noqa: E402
from adbench.oracle.leaves import Point  # noqa: E402
from adbench.oracle.series.ball import Arithmetic, arithmetic  # noqa: E402
from adbench.oracle.subject import Effort, Subject  # noqa: E402
from tests.functions.campaign.low_precision import function_of  # noqa: E402

Bounds = list[tuple[Any, Any]]
SEEDS = range(30)


def bounds_of(kind: Any, text: Any, args: Sequence[Any], wrt: Sequence[int]) -> Bounds:
    """Midpoints and radii of the value and of the gradient of its sum, of a translated function."""
    numbers = [EnclosedArray(kind.of(arg), is_input=True) if k in wrt else arg for k, arg in enumerate(args)]
    with np.errstate(all="ignore"), arithmetic(Arithmetic(96)):
        xp = Enclosures(kind)
        value = xp.of(text(xp, *numbers))
        parts = gradient(value, kind.of(np.ones(value.shape)), [numbers[k] for k in wrt])
        return [part.bounds() for part in (value.value, *parts)]


def outside(enclosures: Bounds, balls: Bounds) -> int:
    """How many balls lie outside their enclosures; an enclosure without a finite radius holds everything."""
    return sum(
        int((np.isfinite(rad) & ~(np.abs(mid - middle) <= rad + radius)).sum())
        for (mid, rad), (middle, radius) in zip(enclosures, balls, strict=True)
    )


@pytest.fixture(scope="module", params=["torch", "jax", "numpy"])
def programs(request: pytest.FixtureRequest) -> list[tuple[Program, Any, Sequence[Any], Bounds]]:
    """Random programs whose operations all have enclosures, translated, with balls of their value and gradient."""
    made = []
    for seed in SEEDS:
        program = drawn(Random(seed).randrange, steps=6)
        args = [np.asarray(one.native, dtype=float) if np.ndim(one.native) else one.native for one in program.inputs]
        try:
            with double_precision():
                f = function_of(program, request.param)
                text = translator_of(LIBRARIES[request.param])(f, args)
                balls = bounds_of(BallArray, text, args, program.wrt)
                bounds_of(Enclosure, text, args, program.wrt)
                made.append((program, text, args, balls))
        except Exception:  # an operation without enclosures, or a comparison within radii: no proof
            continue
    assert len(made) > len(SEEDS) // 4
    return made


def compared(text: Any, args: Sequence[Any], wrt: Sequence[int], enclosures: Bounds) -> int:
    """How many derivatives lie within their enclosures by power series, which have no reverse sweep; all must."""
    names = tuple(f"x{k}" for k in range(len(args)))
    subject = Subject(lambda *x: text(np, *x), Point(tuple(args), tuple(wrt), names), text)
    row, count = reference(subject, Effort(max_seconds=1.0)).all_outputs, 0
    for leaf, (mid, rad) in zip(row.leaves if row.proved else (), enclosures[1:], strict=row.proved):
        for entry in leaf.entries:
            middle, radius, known = mid.flat[entry.index], rad.flat[entry.index], entry.derivative
            if np.isfinite(radius):
                count += 1
                nearest = min(max(middle, known.lower), known.upper)
                assert abs(middle - nearest) <= radius + known.bar, (leaf.path, entry)
    return count


def test_no_true_number_lies_outside_its_enclosure(programs: Any) -> None:
    count = 0
    for program, text, args, balls in programs:
        enclosures = bounds_of(Enclosure, text, args, program.wrt)
        assert not outside(enclosures, balls), program
        count += compared(text, args, program.wrt, enclosures)
    assert count > len(programs)


def in_place(x: Any) -> Any:
    y = torch.tanh(x)
    y[1:, 0] *= x[0, 1]
    y[:, 2].add_(y[:, 0])
    return (y * y).sum()


def partly_constant(x: Any) -> Any:
    with torch.no_grad():
        weights = x.exp() * torch.bucketize(x, torch.tensor([-1.0, 0.5]))
    return (weights * (x.T * 2).T.view(4, 3)).sum()  # a view of a result in the memory order of its argument


def running_product(x: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        return state * jnp.sin(row), state.at[1].set(row[0])

    return jnp.sum(jax.lax.scan(step, x[0], x)[1])


OPERATIONS = [
    ("torch", lambda x: (x.cumsum(1) ** 3).sum()),
    ("torch", lambda x: (x.sort(0).values * torch.arange(4.0)[:, None] * x).sum()),
    ("torch", lambda x: (x.topk(2, 1).values ** -2).sum() + (x.max(0).values * x[1]).sum() + x.min()),
    ("torch", lambda x: torch.einsum("ij,kj->ik", x, x.exp()).sum()),
    ("torch", in_place),
    ("torch", partly_constant),
    ("jax", lambda x: jnp.sum(jnp.cumsum(x, 1, dtype=float) ** 3 * jnp.sort(x, 0) * jax.lax.top_k(x, 3)[0])),
    ("jax", lambda x: jnp.sum(jnp.zeros((3, 3)).at[jnp.array([0, 2, 2, 1])].add(x) ** 2)),
    ("jax", lambda x: jnp.sum(jax.lax.dynamic_update_slice(x, x[:2, :2] ** 5, (1, 1)) * jax.nn.softmax(x, -1))),
    ("jax", running_product),
    ("torch", lambda x: (torch.linalg.cholesky(x.T @ x) * x[:3]).sum() + torch.linalg.solve(x[:3], x[3]).sum()),
    ("torch", lambda x: torch.linalg.inv(x[:3]).square().sum() + torch.linalg.det(x[1:])),
    ("torch", lambda x: torch.linalg.solve_triangular(x[:3], x[1:], upper=True).sum() * x.mean()),
    ("jax", lambda x: jnp.sum(jnp.linalg.cholesky(x.T @ x) * x[:3]) + jnp.linalg.det(x[1:])),
    ("numpy", lambda x: np.sum(np.linalg.solve(x[:3], x[3]) * np.linalg.inv(x[1:])[0]) + np.linalg.det(x[:3])),
    ("torch", lambda x: (torch.linalg.solve(torch.stack([x[:3], x[1:]]), x[:2, :, None]) ** 2).sum()),
    ("torch", lambda x: torch.linalg.slogdet(torch.stack([x[:3], x[1:]]))[1].sum() + torch.logdet(x.T @ x)),
    ("torch", lambda x: (torch.cholesky_solve(x.T, torch.linalg.cholesky(x.T @ x)) ** 2).sum()),
    ("torch", lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(x[:3]), x[1:], left=False).square().sum()),
    ("torch", lambda x: (x.cumprod(0) * x.logcumsumexp(1)).sum() * x.prod(1).sum()),
    ("jax", lambda x: jnp.sum(jnp.linalg.solve(jnp.stack([x[:3], x[1:]]), x[None, :3]) ** 2)),
    ("jax", lambda x: jnp.sum(jnp.linalg.inv(jnp.stack([x[:3], x[1:]])) ** 2) + jnp.linalg.solve(x[:3], x[3])[1]),
    ("jax", lambda x: jnp.sum(jnp.linalg.slogdet(jnp.stack([x.T @ x, x[1:]]))[1])),
    ("jax", lambda x: jnp.sum(jnp.linalg.det(jnp.stack([x @ x.T + 1.0, jnp.diag(x[:, 1]) + x @ x[0]])))),
    ("jax", lambda x: jnp.sum(jax.scipy.linalg.solve_triangular(x[:3], x[1:], trans=1, unit_diagonal=True) ** 2)),
    ("jax", lambda x: jnp.sum(jnp.linalg.cholesky(jnp.stack([x.T @ x, jnp.cov(x.T)])) ** 3)),
    ("jax", lambda x: jnp.sum(jax.lax.cumprod(x, 1, reverse=True) * jax.lax.cummax(x, 0)) + jnp.prod(x, 0)[1]),
    ("numpy", lambda x: np.sum(np.linalg.slogdet(np.stack([x[:3], x[1:]]))[1])),
    ("numpy", lambda x: np.sum(np.linalg.matrix_power(np.stack([x[:3], x[1:]]), -2)[:, 0])),
    ("numpy", lambda x: np.sum(np.maximum.accumulate(np.cumprod(x, axis=1)) * np.prod(x, axis=0, keepdims=True))),
    ("numpy", lambda x: np.sum(np.einsum("ij,kj->ki", x, np.exp(x)) ** 2)),
    ("numpy", lambda x: np.sum(np.cumsum(x, axis=1) * x.max(0) / np.var(x, axis=0, ddof=1))),
    ("numpy", lambda x: np.sum(np.concatenate([x.T[1:], np.ones((1, 4))]) @ x * np.tril(x[:2, :2]).sum())),
]


@pytest.mark.parametrize(("library", "f"), OPERATIONS)
def test_derivatives_of_arranged_and_running_numbers_agree_with_power_series(library: str, f: Any) -> None:
    args = [np.random.default_rng(3).normal(size=(4, 3))]
    with double_precision():
        text = translator_of(LIBRARIES[library])(f, args)
        enclosures = bounds_of(Enclosure, text, args, (0,))
        assert all(np.isfinite(rad).all() for _, rad in enclosures)
        assert not outside(enclosures, bounds_of(BallArray, text, args, (0,)))
        assert compared(text, args, (0,), enclosures) == args[0].size


def test_equal_numbers_share_the_derivative_of_the_largest() -> None:
    x = EnclosedArray(Enclosure.of([[2.0, 2.0, 1.0], [0.0, 3.0, -1.0]]), is_input=True)
    largest = Enclosures(Enclosure).max(x, -1)
    ((mid, rad),) = (part.bounds() for part in gradient(largest, Enclosure.of(np.ones(2)), [x]))
    assert mid.tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
    assert (rad[0, :2] >= 0.5).all()
    assert rad[1].max() < 1e-15


def test_radii_without_roundings_are_noticed(programs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(midpoint_radius, "U", 0.0)
    missed = [outside(bounds_of(Enclosure, text, args, program.wrt), balls) for program, text, args, balls in programs]
    assert any(missed)


NUMBERS = np.random.default_rng(0).normal(size=400) * np.repeat([1e-8, 0.1, 1.0, 5.0], 100)
POSITIVE = ("log", "sqrt")


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "expm1", "expit", "sin", *POSITIVE])
def test_functions_lie_within_tight_radii(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.abs(NUMBERS) if name in POSITIVE else NUMBERS

    def outside() -> int:
        """How many numbers and derivatives are not certainly inside."""
        with arithmetic(Arithmetic(96)):
            (value, slope), (ball, of_slope) = (kind.of(x).function(name) for kind in (Enclosure, BallArray))
            pairs = zip((value, slope()), (ball.balls, of_slope().balls), strict=True)
            each = [number for one, balls in pairs for number in zip(*one.bounds(), balls, strict=True)]
            return sum(not abs(arb(mid) - exact) <= arb(rad) for mid, rad, exact in each)

    assert not outside()
    value = Enclosure.of(x).function(name)[0]
    assert np.median(value.rad / np.abs(value.mid)) < 2.0**-48
    assert np.isfinite(value.rad).all()
    cell = taylor.cell
    monkeypatch.setattr(taylor, "U", 0.0)
    monkeypatch.setattr(taylor, "cell", lambda *at: cell(*at) * [[1], [0]])
    assert outside() > x.size // 2


def test_a_comparison_within_the_radii_is_undecided() -> None:
    x = EnclosedArray(Enclosure(np.ones(2), np.full(2, 1e-9)), is_input=True)
    assert (x > 0.5).all()
    with pytest.raises(WithinRadii):
        x > 1.0  # noqa: B015 - the comparison is what is tested


def test_a_product_of_matrices_holds_the_exact_one() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 7, 50)), rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-150, 150, (50, 3))
    found = [(Enclosure.of(a) @ Enclosure.of(b)).bounds()]
    with arithmetic(Arithmetic(200)):
        assert not outside(found, [(BallArray.of(a) @ BallArray.of(b)).bounds()])
