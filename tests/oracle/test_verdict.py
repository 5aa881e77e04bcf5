"""The verdict on gradients that are correct, wrong in every classical way, or unresolvable."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adbench.oracle.evidence import compare, in_digits
from adbench.oracle.reference import Known, Leaf, PartialDerivative, Reference, Row
from tests.oracle.scalars import judge, reference

OBSERVED = np.array([0.3, -1.2, 2.5, 0.7])


def log_density(mu: float, sigma: float) -> float:
    scaled = (OBSERVED - mu) / sigma
    return float(np.sum(-0.5 * scaled**2 - np.log(sigma)))


AT = (0.4, 1.3)
VALUE = log_density(*AT)
GRADIENT = (
    float(np.sum(OBSERVED - AT[0]) / AT[1] ** 2),
    float(np.sum((OBSERVED - AT[0]) ** 2) / AT[1] ** 3 - len(OBSERVED) / AT[1]),
)


def network(params: list[dict[str, Any]], x: Any) -> float:
    hidden = np.tanh(params[0]["w"] @ x + params[0]["b"])
    return float(np.sum(hidden**2))


def network_point() -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    return [{"w": rng.normal(size=(2, 3)), "b": rng.normal(size=2), "layers": 1}], rng.normal(size=3)


def network_gradient(params: Any, x: Any) -> tuple[Any, ...]:
    hidden = np.tanh(params[0]["w"] @ x + params[0]["b"])
    back = 2 * hidden * (1 - hidden**2)
    return [{"w": np.outer(back, x), "b": back, "layers": None}], params[0]["w"].T @ back


@pytest.fixture(scope="module")
def density() -> Row:
    return reference(log_density, AT, (0, 1))


@pytest.fixture(scope="module")
def nested() -> Row:
    return reference(network, network_point(), (0, 1))


def test_a_correct_gradient_is_right(density: Row) -> None:
    verdict = judge(VALUE, GRADIENT, density)
    assert verdict.word == "right", verdict.sentence
    assert (verdict.checked, verdict.right, verdict.wrong) == (2, 2, 0)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda g: 0.0,
        lambda g: math.nan,
        lambda g: math.inf,
        lambda g: -g,
        lambda g: 1.01 * g,
        lambda g: float(np.float32(g)),
        lambda g: g * (1 + 1e-9),
    ],
    ids=["zero", "nan", "inf", "flipped", "one percent", "float32", "ninth digit"],
)
def test_every_spoiled_entry_is_wrong_and_named(spoil: Callable[[float], float], density: Row) -> None:
    verdict = judge(VALUE, (GRADIENT[0], spoil(GRADIENT[1])), density)
    assert verdict.word == "wrong"
    assert verdict.worst is not None
    assert verdict.worst.place == "sigma"
    assert "sigma" in verdict.sentence


def test_a_wrong_value_with_a_correct_gradient_is_wrong(density: Row) -> None:
    for value in (VALUE * (1 + 1e-9), math.nan, 0.0):
        verdict = judge(value, GRADIENT, density)
        assert verdict.word == "wrong"
        assert "the value" in verdict.sentence


def test_a_gradient_without_a_value_is_judged_alone(density: Row) -> None:
    assert judge(None, GRADIENT, density).word == "right"


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        (GRADIENT[:1], "2 parts, one per argument; it has 1"),
        ((*GRADIENT, 1.0), "2 parts, one per argument; it has 3"),
        (None, "NoneType"),
        (np.array(GRADIENT), "must be a tuple"),
        ((GRADIENT[0], np.array([GRADIENT[1]])), r"sigma must have the shape \(\) of its argument; it has \(1,\)"),
        ((GRADIENT[0], np.float32(GRADIENT[1])), "sigma must be float64; it is float32"),
        ((GRADIENT[0], complex(GRADIENT[1])), "sigma must be float64; it is complex128"),
        ((GRADIENT[0], 0), "sigma must be float64; it is int64"),
        ((GRADIENT[0], "much"), "sigma must be float64"),
        ((GRADIENT[0], object()), "sigma must be float64; it is object"),
        ((GRADIENT[0], None), "sigma is missing"),
    ],
)
def test_a_result_of_another_structure_or_type_is_wrong_and_described(gradient: Any, said: str, density: Row) -> None:
    import re

    verdict = judge(VALUE, gradient, density)
    assert verdict.word == "wrong"
    assert re.search(said, verdict.sentence), verdict.sentence


def test_a_nested_gradient_is_compared_leaf_by_leaf(nested: Row) -> None:
    point = network_point()
    verdict = judge(network(*point), network_gradient(*point), nested)
    assert verdict.word == "right", verdict.sentence
    assert verdict.checked == 2 * 3 + 2 + 3
    assert [leaf.path for leaf in nested.leaves] == ["params[0]['b']", "params[0]['w']", "x"]


def test_one_wrong_entry_in_a_nested_gradient_is_named_with_its_index(nested: Row) -> None:
    point = network_point()
    gradient = network_gradient(*point)
    gradient[0][0]["w"][1, 2] *= 1 + 1e-7
    verdict = judge(network(*point), gradient, nested)
    assert verdict.word == "wrong"
    assert verdict.worst is not None
    assert verdict.worst.place == "params[0]['w'][1, 2]"
    assert verdict.worst.digits_correct == pytest.approx(7, abs=0.1)
    assert verdict.wrong == 1


def test_missing_and_extra_leaves_are_wrong(nested: Row) -> None:
    point = network_point()
    params, x = network_gradient(*point)
    value = network(*point)
    without = [{"w": params[0]["w"]}]
    assert "params[0]['b'] is missing" in judge(value, (without, x), nested).sentence
    extra = [{**params[0], "v": 1.0}]
    assert "lacks: 'v'" in judge(value, (extra, x), nested).sentence
    assert judge(value, ([*params, *params], x), nested).word == "wrong"
    assert judge(value, (params[0], x), nested).word == "wrong"


def test_small_entries_are_not_excused_by_large_neighbours() -> None:
    made = Leaf(0, (), "x", (2,), 1.0, (PartialDerivative(0, Known(1e9, 1e9)), PartialDerivative(1, Known(1e-3, 1e-3))))
    sharp = Row(Known(1.0, 1.0), 1, (made,), (), 0, "by hand", "", 0)
    assert judge(1.0, (np.array([1e9, 1e-3]),), sharp).word == "right"
    assert judge(1.0, (np.array([1e9, 1.001e-3]),), sharp).word == "wrong"


def test_noise_beyond_the_ninth_digit_leaves_fewer_digits() -> None:
    leaf = Leaf(0, (), "x", (), 1.0, (PartialDerivative(0, Known(2.0, 2.0, noise=1e-9)),))
    known = Row(Known(1.0, 1.0), 1, (leaf,), (), 0, "by hand", "", 0)
    verdict = judge(1.0, (2.0 + 1e-9,), known)
    assert (verdict.word, verdict.whole_digits) == ("verified", 7)
    assert "verified to 7 digits: 1 of 2 numbers cannot be verified to nine, the least is x: got 2" in verdict.sentence
    assert verdict.worst is not None
    assert verdict.worst.digits_resolvable == pytest.approx(8.0, abs=0.1)
    assert verdict.worst.digits_correct == pytest.approx(9.3, abs=0.1)
    assert judge(1.0, (2.0 + 1e-7,), known).word == "wrong"


def test_the_verdict_states_whether_the_reference_is_proved() -> None:
    leaf = Leaf(0, (), "x", (), 1.0, (PartialDerivative(0, Known(2.0, 2.0)),))
    for proved in (True, False):
        known = Row(Known(1.0, 1.0), 1, (leaf,), (), 0, "by hand", "", 0, proved=proved)
        for x in (2.0, 3.0):
            verdict = judge(1.0, (x,), known)
            assert verdict.proved == proved
            assert ("the expected values are proved" in verdict.sentence) == proved
        assert Reference.from_plain(Reference((), ((0, known),)).to_plain()).scalar.proved == proved


def test_a_bound_as_large_as_the_derivative_is_blind() -> None:
    for noise, word, digits in (
        (1e-10, "verified", 8),
        (1e-3, "verified", 1),
        (0.04, "verified", 0),
        (0.2, "blind", None),
    ):
        leaf = Leaf(
            0,
            (),
            "x",
            (2,),
            1.0,
            (PartialDerivative(0, Known(2.0, 2.0, noise=noise)), PartialDerivative(1, Known(1.0, 1.0))),
        )
        verdict = judge(1.0, (np.array([2.0, 1.0]),), Row(Known(1.0, 1.0), 1, (leaf,), (), 0, "by hand", "", 0))
        assert (verdict.word, verdict.whole_digits, verdict.blind) == (word, digits, int(word == "blind"))
        assert (
            judge(1.0, (np.array([0.0, 1.0]),), Row(Known(1.0, 1.0), 1, (leaf,), (), 0, "", "", 0)).word == "wrong"
        ) == (word == "verified")


def test_a_kink_accepts_everything_between_its_one_sided_derivatives() -> None:
    known = reference(lambda x: abs(x), (0.0,), (0,))
    for g in (-1.0, 0.0, 0.5, 1.0):
        assert judge(0.0, (g,), known).word == "right"
    for g in (-1.1, 1.0001, math.nan):
        verdict = judge(0.0, (g,), known)
        assert verdict.word == "wrong"
        assert "any value in [-1.0" in verdict.sentence


def test_sums_over_all_entries_are_ignored_at_kinks() -> None:
    x = np.random.default_rng(8).normal(size=300)
    x[0] = x[-1] = 0.0

    def text(xp: Any, x: Any) -> Any:
        return xp.sum(abs(x)) - 2 * abs(x[-1])

    known = reference(lambda x: text(np, x), (x,), (0,), text=text)
    assert known.directions
    gradient = np.sign(x)
    for first, last in [(0.0, 0.0), (1.0, 0.0), (-1.0, 1.0)]:
        gradient[0], gradient[-1] = first, last
        verdict = judge(text(np, x), (gradient,), known)
        assert verdict.word == "right", verdict.sentence
        assert [kink.place for kink in verdict.conventions] == ["x[0]", "x[299]"]


def test_a_value_alone_is_judged_too(density: Row) -> None:
    from dataclasses import replace

    only = replace(density, count=0, leaves=(), directions=())
    assert "the value" in judge(VALUE, (), only).sentence
    assert judge(VALUE, (), only).word == "right"
    assert judge(VALUE * (1 + 1e-9), (), only).word == "wrong"


def test_an_approximate_backend_is_judged_by_its_claim(density: Row) -> None:
    near = tuple(g * (1 + 2e-6) for g in GRADIENT)
    assert judge(VALUE, near, density).word == "wrong"
    assert judge(VALUE, near, density, claimed_relative_error=1e-5).word == "approximate"
    assert judge(VALUE, near, density, claimed_relative_error=1e-6).word == "wrong"
    for g in (0.0, math.nan, GRADIENT[1] * 1.01):
        assert judge(VALUE, (GRADIENT[0], g), density, claimed_relative_error=1e-5).word == "wrong"
    for value in (math.nan, VALUE * 1.01):
        assert judge(value, GRADIENT, density, claimed_relative_error=1e-5).word == "wrong"


def test_directions_reveal_one_wrong_entry_of_twenty_thousand() -> None:
    x = np.random.default_rng(2).normal(size=20_000)
    known = reference(lambda x: float(np.sum(np.sin(x))), (x,), (0,))
    value, gradient = np.sum(np.sin(x)), np.cos(x)
    assert judge(value, (gradient,), known).word in ("right", "verified")
    outside = next(i for i in range(x.size) if i not in {e.index for e in known.leaves[0].entries})
    for wrong in (gradient[outside] + 1e-3, math.nan):
        spoiled = gradient.copy()
        spoiled[outside] = wrong
        assert judge(value, (spoiled,), known).word == "wrong"
    assert judge(value, (np.float32(gradient).astype(np.float64),), known).word == "wrong"


def test_a_reference_survives_strict_json(nested: Row) -> None:
    kinked = reference(lambda x: math.nan if x != 1 else 0.0, (1.0,), (0,))
    for row in (nested, kinked):
        known = Reference((), ((0, row),))
        text = json.dumps(known.to_plain(), allow_nan=False)
        assert repr(Reference.from_plain(json.loads(text))) == repr(known)


def test_the_same_seed_gives_the_same_reference() -> None:
    x = np.linspace(0, 1, 300)

    def f(x: Any) -> float:
        return float(np.sum(x**3))

    assert reference(f, (x,), (0,), seed=4) == reference(f, (x,), (0,), seed=4)
    indices = [[e.index for e in reference(f, (x,), (0,), seed=s).leaves[0].entries] for s in (4, 5)]
    assert indices[0] != indices[1]


def test_whole_numbers_are_constants_unless_they_are_the_whole_argument() -> None:
    known = reference(lambda n, x: float(x) ** n, (3, 2.0), (1,))
    assert judge(8.0, (12.0,), known).word == "right"
    active = reference(lambda x: x * x, (100,), (0,))
    assert judge(10000.0, (200.0,), active).word == "right"


def test_the_inputs_are_left_untouched_even_by_a_function_that_writes_into_them() -> None:
    def writes(x: Any) -> float:
        x *= 2
        return float(np.sum(x**2))

    x = np.array([1.0, 2.0])
    known = reference(writes, (x,), (0,))
    assert x.tolist() == [1.0, 2.0]
    assert judge(20.0, (8 * x,), known).word == "right"


@pytest.mark.parametrize(("got", "word"), [(2.0, "blind"), (1e8, "blind"), (math.inf, "blind"), (math.nan, "wrong")])
def test_differences_that_resolve_nothing_convict_nothing(got: float, word: str) -> None:
    leaf = Leaf(0, (), "x", (), 1.0, (PartialDerivative(0, Known(50.0, 50.0, bar=44.0)),))
    assert judge(1.0, (got,), Row(Known(1.0, 1.0), 1, (leaf,), (), 0, "by hand", "", 0)).word == word
    resolved = Leaf(
        0,
        (),
        "x",
        (2,),
        1.0,
        (PartialDerivative(0, Known(50.0, 50.0, bar=1e-9)), PartialDerivative(1, Known(1e-12, 1e-12, 1e-9))),
    )
    row = Row(Known(1.0, 1.0), 1, (resolved,), (), 0, "by hand", "", 0)
    assert judge(1.0, (np.array([50.0, 3.0]),), row).word == "wrong"  # next to 50 it is a zero


@pytest.mark.parametrize("got", [2.0, np.nextafter(2.0, 3.0), 2.0 + 1e-6, math.inf])
def test_equal_numbers_are_exact_and_others_have_at_most_the_digits_of_float64(got: float) -> None:
    entry = compare("x", (), got, Known(2.0, 2.0, kind="smooth"), 0.0)
    digits = {2.0: "exact, 15.1", math.inf: "0.0 digits correct, 15.9 "}.get(got, "digits correct")
    assert digits in str(entry)
    assert "17.0" not in str(entry)
    assert (in_digits(entry.digits_correct) == "exact") == (got == 2.0)
    assert in_digits(entry.digits_correct) == "exact" or float(in_digits(entry.digits_correct)) <= 15.9
