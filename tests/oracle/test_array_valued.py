"""Array-valued functions: correct results pass, and one wrong entry among thousands does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from adbench import Namespace
from adbench.oracle.compute import reference as reference_of
from adbench.oracle.operators import Nonzeros, cotangent, judge_operator
from adbench.oracle.reference import Reference
from tests.oracle.scalars import subject_of


def f(xp: Any, x: Any, b: Any) -> Any:
    """f[i, j] = sin(x_i) b + x_i x_{i+j}, for j = 0, 1: most derivatives are zero."""
    return xp.stack([xp.sin(x[:-1]) * b + x[:-1] * x[:-1], xp.sin(x[:-1]) * b + x[:-1] * x[1:]], axis=1)


def jacobian(x: Any, b: float) -> tuple[Any, Any]:
    n = x.size - 1
    by_x = np.zeros((n, 2, n + 1))
    for i in range(n):
        by_x[i, 0, i] = np.cos(x[i]) * b + 2 * x[i]
        by_x[i, 1, i] = np.cos(x[i]) * b + x[i + 1]
        by_x[i, 1, i + 1] += x[i]
    return by_x, np.stack([np.sin(x[:-1])] * 2, axis=1)


def known(n: int) -> tuple[tuple[Any, float], Reference]:
    args = np.random.default_rng(n).uniform(0.5, 1.5, n + 1), 0.75
    plain = lambda *a: f(Namespace(np), *a)  # noqa: E731 - named for the argument
    return args, reference_of(subject_of(plain, args, (0, 1), text=f, names=("x", "b"), shape=(n, 2)))


SMALL, LARGE = known(4), known(40)
BOTH = pytest.mark.parametrize(("args", "reference"), [SMALL, LARGE], ids=["all examined", "some examined"])


def results(args: tuple[Any, float]) -> dict[str, Any]:
    by_x, by_b = jacobian(*args)
    v = subject_of(f, args, (0, 1)).point.direction(0, 0)
    w = cotangent(by_b.shape, 0)
    return {
        "value": f(Namespace(np), *args),
        "jacobian": (by_x, by_b),
        "jvp": by_x @ v[0] + by_b * v[1],
        "vjp": (np.tensordot(w, by_x, 2), np.tensordot(w, by_b, 2)),
    }


def word(operator: str, result: Any, reference: Reference, **more: Any) -> str:
    return judge_operator(operator, result, reference, **more).word


@BOTH
@pytest.mark.parametrize("operator", ["value", "jacobian", "jvp", "vjp"])
def test_correct_results_are_called_right(args: Any, reference: Reference, operator: str) -> None:
    verdict = judge_operator(operator, results(args)[operator], reference)
    assert verdict.word == "right", verdict.sentence
    assert verdict.method.startswith("power series")


@BOTH
@pytest.mark.parametrize("fault", [1 + 1e-8, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0, 0), (2, 1, 3), (-1, 1, -1), (-2, 1, -2)])
def test_one_wrong_entry_of_a_jacobian_is_found(args: Any, reference: Reference, fault: float, place: Any) -> None:
    by_x, by_b = jacobian(*args)
    assert by_x[place] != 0
    by_x[place] *= fault
    assert word("jacobian", (by_x, by_b), reference) == "wrong"


@BOTH
def test_every_wrong_output_is_found_in_values_and_products(args: Any, reference: Reference) -> None:
    for operator in ("value", "jvp"):
        right = results(args)[operator]
        for place in np.ndindex(right.shape):
            wrong = right.copy()
            wrong[place] *= 1 + 1e-8
            assert word(operator, wrong, reference) == "wrong", (operator, place)
            wrong[place] = np.nan
            assert word(operator, wrong, reference) == "wrong", (operator, place)


def test_the_verdict_names_output_and_input() -> None:
    args, reference = SMALL
    by_x, by_b = jacobian(*args)
    by_x[2, 1, 3] *= 1.001
    sentence = judge_operator("jacobian", (by_x, by_b), reference).sentence
    assert "output[2, 1], x[3]: got " in sentence


def test_a_sparse_jacobian_is_judged_without_conversion() -> None:
    args, reference = LARGE
    by_x, by_b = jacobian(*args)
    sparse = scipy.sparse.csr_array(by_x.reshape(by_b.size, -1))
    assert word("jacobian", (sparse, by_b), reference) == "right"
    for fault in (1 + 1e-8, np.nan):
        wrong = sparse.copy()
        wrong.data[17] *= fault
        assert word("jacobian", (wrong, by_b), reference) == "wrong"
    assert "sparse Jacobian must be float64" in judge_operator("jacobian", (sparse.T, by_b), reference).sentence


@pytest.mark.parametrize("form", [lambda block: block, scipy.sparse.csc_array], ids=["dense", "sparse"])
def test_an_entry_outside_the_pattern_must_be_exactly_zero(form: Callable[[Any], Any]) -> None:
    args, reference = LARGE
    by_x, by_b = jacobian(*args)
    both = np.concatenate([by_x.reshape(by_b.size, -1), by_b.reshape(-1, 1)], axis=1)
    nonzeros = Nonzeros(*np.nonzero(both))

    def judged() -> Any:
        block = form(by_x.reshape(by_b.size, -1))
        whole = block.reshape(by_x.shape) if isinstance(block, np.ndarray) else block
        return judge_operator("jacobian", (whole, by_b), reference, nonzeros=nonzeros)

    assert judged().word == "right"
    by_x[20, 0, 30] = 1e-300
    assert judged().word == "wrong"
    assert "output[20, 0], x[30]: got 1e-300, expected 0.0" in judged().sentence


@pytest.mark.parametrize(
    ("operator", "result", "text"),
    [
        ("value", 1.0, r"the value must have the shape \(4, 2\) of the value; it has \(\)"),
        ("value", np.zeros((4, 2), np.float32), "must be float64"),
        ("jvp", np.zeros((2, 4)), r"J v must have the shape \(4, 2\)"),
        ("jacobian", (np.zeros((4, 2, 5)),), "must have 2 parts"),
        ("jacobian", (np.zeros((5, 4, 2)), np.zeros((4, 2))), "the value's shape before the input's"),
        ("jacobian", None, "must be a tuple"),
        ("vjp", (np.zeros((4, 2, 5)), 0.0), "must have the shape"),
    ],
)
def test_a_result_of_another_shape_is_wrong(operator: str, result: Any, text: str) -> None:
    import re

    verdict = judge_operator(operator, result, SMALL[1])
    assert verdict.word == "wrong"
    assert re.search(text, verdict.sentence), verdict.sentence


def test_a_forgotten_cotangent_is_found() -> None:
    args, reference = SMALL
    right = results(args)["vjp"]
    assert word("vjp", tuple(np.asarray(part) / 2 for part in right), reference) == "wrong"
    assert word("vjp", tuple(np.sum(part, axis=(0, 1)) for part in jacobian(*args)), reference) == "wrong"


def test_a_black_box_is_judged_by_differences_in_double_precision() -> None:
    args, _ = SMALL
    reference = reference_of(subject_of(lambda *a: f(Namespace(np), *a), args, (0, 1), shape=(4, 2)))
    assert reference.sums[0].reason == "the function is a black box"
    by_x, by_b = jacobian(*args)
    assert word("jacobian", (by_x, by_b), reference) in ("right", "verified")
    by_x[2, 1, 3] *= 1 + 1e-6
    assert word("jacobian", (by_x, by_b), reference) == "wrong"


def test_an_approximate_library_is_judged_by_its_claim() -> None:
    args, reference = SMALL
    by_x, by_b = jacobian(*args)
    off = by_x * (1 + 1e-7), by_b * (1 - 1e-7)
    assert word("jacobian", off, reference) == "wrong"
    assert word("jacobian", off, reference, claimed_relative_error=1e-6) == "approximate"
    assert word("jacobian", off, reference, claimed_relative_error=1e-8) == "wrong"
    assert word("value", results(args)["value"] * (1 + 1e-7), reference, claimed_relative_error=1e-6) == "approximate"
    assert word("value", results(args)["value"] * (1 + 1e-5), reference, claimed_relative_error=1e-6) == "wrong"


def test_a_nan_at_an_unexamined_output_is_beyond_any_claim() -> None:
    args, reference = LARGE
    for operator in ("value", "jvp"):
        result = np.array(results(args)[operator])
        unseen = next(k for k in range(result.size) if k not in dict(reference.outputs))
        result.flat[unseen] = np.nan
        assert word(operator, result, reference, claimed_relative_error=1e-6) == "wrong"


def test_a_reference_travels_as_plain_data() -> None:
    reference = LARGE[1]
    assert Reference.from_plain(json.loads(json.dumps(reference.to_plain(), allow_nan=False))) == reference
