"""Enclosures by midpoint and radius against balls: every true number lies inside, and radii are small."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jax")  # which the module of random programs imports

from flint import arb  # noqa: E402 - torch comes first

from adbench.findings.programs.generation import drawn  # noqa: E402 - torch comes first
from adbench.findings.programs.random_program import Program  # noqa: E402
from adbench.functions.libraries import LIBRARIES, double_precision, translator_of  # noqa: E402
from adbench.oracle.compute import reference  # noqa: E402
from adbench.oracle.enclosures import midpoint_radius, taylor  # noqa: E402
from adbench.oracle.enclosures.ball_arrays import BallArray  # noqa: E402
from adbench.oracle.enclosures.midpoint_radius import Enclosure  # noqa: E402
from adbench.oracle.enclosures.recorded import EnclosedArray, Enclosures, WithinRadii, gradient  # noqa: E402
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
                text = translator_of(LIBRARIES[request.param])(f, args, widened=True)
                bounds_of(Enclosure, text, args, program.wrt)
                made.append((program, text, args, bounds_of(BallArray, text, args, program.wrt)))
        except Exception:  # an operation without enclosures, or a comparison within radii: no proof
            continue
    assert len(made) > len(SEEDS) // 4
    return made


def test_no_true_number_lies_outside_its_enclosure(programs: Any) -> None:
    compared = 0
    for program, text, args, balls in programs:
        enclosures = bounds_of(Enclosure, text, args, program.wrt)
        assert not outside(enclosures, balls), program
        subject = Subject(lambda *x, text=text: text(np, *x), Point(tuple(args), program.wrt, program.names), text)
        row = reference(subject, Effort(max_seconds=1.0)).all_outputs
        for leaf, (mid, rad) in zip(row.leaves if row.proved else (), enclosures[1:], strict=row.proved):
            for entry in leaf.entries:
                middle, radius, known = mid.flat[entry.index], rad.flat[entry.index], entry.derivative
                compared += bool(np.isfinite(radius))
                if np.isfinite(radius):
                    nearest = min(max(middle, known.lower), known.upper)
                    assert abs(middle - nearest) <= radius + known.bar, (program, leaf.path)
    assert compared > len(programs)


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
