"""The name of a mistake: given if it is evident, and never for noise."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adbench.oracle.diagnosis.patterns import pattern
from adbench.oracle.evidence import EntryEvidence, compare
from adbench.oracle.reference import Known
from tests.oracle.scalars import judge, reference

Numbers = dict[str, Any]


def evidence(got: Numbers, right: Numbers, noise: float = 1e-16) -> list[EntryEvidence]:
    """Every entry of named arrays; the noise is relative to the entry."""
    return [
        compare(name, index, float(got[name][index]), Known(float(x), float(x), 0.0, noise * abs(x)), 1.0)
        for name, array in right.items()
        for index, x in np.ndenumerate(array)
    ]


def jacobian(got: Any, right: Any) -> list[EntryEvidence]:
    return [
        compare(f"output[{i}], x", (j,), float(got[i, j]), Known(float(x), float(x), 0.0, 1e-16), 1.0)
        for (i, j), x in np.ndenumerate(right)
    ]


RNG = np.random.default_rng(5)
X, Y, M = RNG.normal(size=6), RNG.normal(size=6), RNG.normal(size=(3, 3))
BOTH: Numbers = {"x": X, "y": Y}
PLANTED: dict[str, tuple[Numbers, Numbers, str]] = {
    "zeros": ({"x": 0 * X}, {"x": X}, "zero everywhere"),
    "sign": ({"x": -X, "y": -Y}, BOTH, "sign flipped"),
    "sign of a number": ({"x": np.array(-0.7)}, {"x": np.array(0.7)}, "sign flipped"),
    "sign of one input": ({"x": X, "y": -Y}, BOTH, "sign flipped in y"),
    "twice": ({"x": 2 * X}, {"x": X}, "twice the correct number"),
    "half": ({"x": X / 2}, {"x": X}, "half of the correct number"),
    "a factor": ({"x": 1.001 * X}, {"x": X}, "1.001 times the correct number"),
    "value": ({"x": 0 * X + 2.5}, {"x": X}, "the value instead of the derivative"),
    "exchanged": ({"x": Y, "y": X}, BOTH, "x and y exchanged"),
    "transposed": ({"x": M.T}, {"x": M}, "transposed"),
    "shifted": ({"x": np.roll(X, 1)}, {"x": X}, "shifted by one"),
    "shifted back": ({"x": np.append(X[1:], 0.0)}, {"x": X}, "shifted by one"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_an_evident_mistake_is_named(name: str) -> None:
    got, right, expected = PLANTED[name]
    assert pattern(evidence(got, right), 2.5) == expected


def test_a_transposed_jacobian_is_named() -> None:
    assert pattern(jacobian(M.T, M)) == "transposed"


@pytest.mark.parametrize("seed", range(200))
def test_noise_has_no_name(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [(), (1,), (2,), (7,), (3, 3)]
    right = {name: rng.normal(size=shapes[rng.integers(len(shapes))]) for name in ("x", "y")[: rng.integers(1, 3)]}
    scale = 10.0 ** rng.uniform(-6, 1)
    got = {name: array * (1 + scale * rng.normal(size=array.shape)) for name, array in right.items()}
    items = evidence(got, right, noise=10.0 ** rng.uniform(-16, -3))
    assert sum(item.index != () for item in items) < 2 or pattern(items, float(rng.normal())) == ""


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x * np.nan, lambda x: x + 1e-3 * (x == x[1])])
def test_correct_numbers_and_faults_without_a_pattern_have_no_name(change: Callable[[Any], Any]) -> None:
    assert pattern(evidence({"x": change(X)}, {"x": X}), 2.5) == ""


def test_unresolved_numbers_prove_no_pattern() -> None:
    assert pattern(evidence({"x": -X}, {"x": X}, noise=1e-2)) == ""


def test_unknown_entries_do_not_count_for_a_pattern() -> None:
    items = evidence({"x": np.roll(X, 1)}, {"x": X})
    unknown = compare("x", (9,), 1.0, Known(math.nan, math.nan, math.nan), 1.0)
    assert pattern([*items, unknown]) == "shifted by one"


def test_the_verdict_names_the_pattern() -> None:
    def text(xp: Any, x: Any) -> Any:
        return xp.sum(xp.sin(x))

    x = np.array([0.5, 0.7, 0.9])
    known = reference(lambda x: text(np, x), (x,), (0,), text=text)
    wrong = judge(text(np, x), (-np.cos(x),), known)
    assert "it looks like this: sign flipped" in wrong.sentence
    assert "looks like" not in judge(text(np, x), (np.cos(x),), known).sentence
    assert "twice the correct number" in judge(2 * text(np, x), (np.cos(x),), known).sentence
