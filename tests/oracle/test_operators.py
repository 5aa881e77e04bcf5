"""The verdict on operators, for functions with known Hessians."""

from typing import Any

import numpy as np
import pytest

from adbench.oracle.compute import declared, reference
from adbench.oracle.operators import COTANGENT, along, judge_operator
from adbench.oracle.precise import METHOD
from adbench.oracle.reference import Reference
from adbench.oracle.second_order import DIRECTION, hessian_reference, hvp_reference
from adbench.oracle.subject import Effort
from tests.oracle.scalars import subject_of

A = np.array([[2.0, 1.0, 0.5], [0.0, 3.0, -1.0], [1.0, 0.0, 4.0]])
X, B = np.array([0.3, -1.2, 0.7]), 1.5
ARGS, WRT = (X, B), (0, 1)
S = 0.5 * (A + A.T)
HESSIAN = ((S, np.full(3, 3 * B**2)), (np.full(3, 3 * B**2), 6 * B * X.sum()))
GRADIENT = (S @ X + B**3, np.float64(3 * B**2 * X.sum()))


def text(xp: Any, x: Any, b: Any) -> Any:
    return 0.5 * xp.sum(x * (A @ x)) + b**3 * xp.sum(x)


def plain(x: Any, b: Any) -> Any:
    return text(np, x, b)


HERE = subject_of(plain, ARGS, WRT, text=text)
FIRST = reference(HERE)
V = [HERE.point.direction(0, DIRECTION)]
SECOND = {
    "hvp": hvp_reference(HERE, FIRST.scalar, Effort()),
    "hessian": hessian_reference(HERE, Effort()),
}


def hvp(v: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        sum(np.tensordot(block, step, np.ndim(step)) for block, step in zip(row, v, strict=True)) for row in HESSIAN
    )


RIGHT: dict[str, Any] = {
    "value": np.float64(plain(X, B)),
    "gradient": GRADIENT,
    "value_and_gradient": (np.float64(plain(X, B)), GRADIENT),
    "jacobian": GRADIENT,
    "jvp": np.float64(GRADIENT[0] @ V[0][0] + GRADIENT[1] * V[0][1]),
    "vjp": tuple(COTANGENT * g for g in GRADIENT),
    "hvp": hvp(V[0]),
    "hessian": HESSIAN,
}


def word(operator: str, result: Any) -> str:
    return judge_operator(operator, result, SECOND.get(operator, FIRST)).word


def changed(result: Any, factor: float) -> Any:
    """The structure with every number multiplied by the factor."""
    if isinstance(result, tuple):
        return tuple(changed(part, factor) for part in result)
    return np.asarray(result) * factor


@pytest.mark.parametrize("operator", RIGHT)
def test_correct_results_are_found_right(operator: str) -> None:
    assert word(operator, RIGHT[operator]) == "right"


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.01, 1 + 1e-8, np.nan])
@pytest.mark.parametrize("operator", RIGHT)
def test_errors_in_every_number_are_found_wrong(operator: str, factor: float) -> None:
    assert word(operator, changed(RIGHT[operator], factor)) == "wrong"


def test_a_forgotten_cotangent_and_a_forgotten_direction_are_found_wrong() -> None:
    assert word("vjp", GRADIENT) == "wrong"
    assert word("jvp", np.float64(sum(np.sum(g) for g in GRADIENT))) == "wrong"
    assert word("hvp", hvp((np.ones(3), 1.0))) == "wrong"


def test_only_a_value_with_a_gradient_mentions_the_gradient() -> None:
    said = {
        operator: judge_operator(operator, result, SECOND.get(operator, FIRST)).sentence
        for operator, result in (
            ("jvp", RIGHT["jvp"] * 2),
            ("value", RIGHT["value"] * 2),
            ("value_and_gradient", (RIGHT["value"] * 2, GRADIENT)),
        )
    }
    assert {operator: "though the gradient is correct" in sentence for operator, sentence in said.items()} == {
        "jvp": False,
        "value": False,
        "value_and_gradient": True,
    }


@pytest.mark.parametrize("place", [(0, 0, (0, 0)), (0, 0, (1, 2)), (0, 1, (2,)), (1, 0, (0,)), (1, 1, ())])
def test_one_wrong_entry_of_a_hessian_is_found(place: tuple[int, int, tuple[int, ...]]) -> None:
    i, j, index = place
    blocks = [[np.array(block, dtype=float) for block in row] for row in HESSIAN]
    blocks[i][j][index] += 1e-6
    assert word("hessian", tuple(map(tuple, blocks))) == "wrong"


@pytest.mark.parametrize("operator", ["jvp", "vjp", "hvp", "hessian", "jacobian", "value_and_gradient"])
@pytest.mark.parametrize("shape", ["none", "text", "half", "column"])
def test_misshapen_results_are_wrong_and_raise_nothing(operator: str, shape: str) -> None:
    result = RIGHT[operator]
    broken = {
        "none": None,
        "text": "no",
        "half": result[:1] if isinstance(result, tuple) else (result,),
        "column": tuple(np.reshape(leaf, (-1, 1)) for leaf in GRADIENT),
    }[shape]
    assert word(operator, broken) == "wrong"


def test_summed_and_examined_directional_derivatives_agree() -> None:
    sampled, first = reference(HERE, Effort(max_entries=2)).scalar, FIRST.scalar
    assert sampled.directions
    examined, summed = along(sampled, 0), along(first, 0)
    assert not first.directions
    assert examined.lower == pytest.approx(summed.lower, rel=1e-14)
    assert np.isnan(along(sampled, 99).lower)


def test_a_product_of_opposite_infinities_is_unknown() -> None:
    v = subject_of(plain, ARGS, WRT).point.direction(0, 0)[0]
    infinite = declared(1.0, (np.sign(v) * np.array([np.inf, -np.inf, 1.0]), 1.0), ARGS, WRT, ("x", "b"))
    assert np.isnan(along(infinite.scalar, 0).lower)
    assert judge_operator("jvp", 2.0, infinite).word == "blind"


def test_a_claim_about_a_cancelling_product_refers_to_its_terms() -> None:
    at = (1.3, 0.7)
    p, q = (float(part) for part in subject_of(plain, at, (0, 1)).point.direction(0, 0))

    def cancelling(xp: Any, a: Any, b: Any) -> Any:  # its gradient is (q, -p), and its product with v is 0
        return q * a - p * b

    known = reference(subject_of(lambda a, b: cancelling(np, a, b), at, (0, 1), text=cancelling))
    size = 2 * abs(p * q)

    def word_of(off: float, claim: float | None = 1e-6) -> str:
        return judge_operator("jvp", off * size, known, claimed_relative_error=claim).word

    assert [word_of(off) for off in (0.0, 1e-8, 1e-4, np.nan)] == ["approximate", "approximate", "wrong", "wrong"]
    assert word_of(1e-8, None) == "wrong"


def test_without_series_second_order_is_unknown() -> None:
    def opaque(xp: Any, x: Any, b: Any) -> Any:
        return text(np, np.asarray(x, dtype=float), float(b))

    second = hvp_reference(subject_of(plain, ARGS, WRT, text=opaque), FIRST.scalar, Effort())
    assert second.scalar.method != METHOD
    assert judge_operator("hvp", RIGHT["hvp"], second).word == "blind"


def test_a_declared_gradient_overrides_differences() -> None:
    """x · stop(x) at 3: 3 by declaration, 6 by differences."""
    known = declared(9.0, (np.float64(3.0),), (3.0,), (0,), ("x",))
    assert judge_operator("gradient", (np.float64(3.0),), known).word == "right"
    assert judge_operator("gradient", (np.float64(6.0),), known).word == "wrong"
    assert Reference.from_plain(known.to_plain()) == known


def test_nested_inputs_have_nested_directions() -> None:
    args = ({"w": [X, B], "n": 2}, 0.5)
    v = subject_of(plain, args, (0, 1)).point.direction(3, 0)
    assert v[0]["w"][0].shape == (3,)
    assert isinstance(v[1], float)
