"""Every trap: its summary, its truth compared with the oracle, and verdicts on wrong answers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from adbench import Case, Namespace, Unsupported
from adbench.catalog import discovery
from adbench.catalog.source import Source
from adbench.cli import cli
from adbench.model.case import THREAD, function_of
from adbench.model.errors import UsageError
from adbench.oracle.compute import declared
from adbench.oracle.reference import Row
from tests.oracle.scalars import judge, reference

CATALOG = discovery.catalog()
TRAPS = {name: case for name, case in CATALOG.cases.items() if case.is_trap}
HELPERS = discovery.load(Source("cases", "_traps", str(discovery.builtin_folder("cases") / "_traps.py"), True))

every_trap = pytest.mark.parametrize("name", TRAPS)
every_backend = pytest.mark.parametrize("name", CATALOG.backends)

UNRESOLVED = {
    "trap_std_of_constant": "the noise of a mean that need not be exact",
    "trap_equal_eigenvalues": "the noise of eigenvectors that are not determined",
    "trap_atan2_small": "the noise of x² + y², which underflows",
}


@cache
def known(name: str) -> Row:
    case = TRAPS[name]
    names, args, wrt = case.bind(1, 0)
    f = function_of(case, names, Namespace(np))
    with np.errstate(all="ignore"):
        if case.declared:
            return declared(float(f(*args)), truth(case), args, wrt, names).scalar

        def text(xp: Any, *args: Any) -> Any:
            return function_of(case, names, xp)(*args)

        return reference(f, args, wrt, text=text, names=names)


def truth(case: Case) -> tuple[Any, ...]:
    names, args, _ = case.bind(1, 0)
    assert case.gradient is not None
    return case.gradient(**dict(zip(names, args, strict=True)))


def answers(name: str, change: Any) -> tuple[Any, ...]:
    """Apply `change` to every true number, or to the upper end of a true interval."""
    found = known(name)
    made = []
    for leaf in found.leaves:
        array = np.empty(leaf.shape)
        for entry in leaf.entries:
            array.flat[entry.index] = change(entry.derivative.upper)
        made.append(array)
    return tuple(made)


def word(name: str, gradient: tuple[Any, ...]) -> str:
    return judge(None, gradient, known(name)).word


def test_the_number_of_traps_is_known() -> None:
    assert len(TRAPS) >= 90
    assert len({case.tags for case in TRAPS.values()}) >= 8


@every_trap
def test_a_trap_has_one_point_and_a_one_line_summary(name: str) -> None:
    case = TRAPS[name]
    assert name.startswith("trap_")
    assert case.sizes == (1,)
    assert case.tags[0] == "trap"
    assert len(case.tags) == 2
    assert 20 < len(case.summary) < 120
    assert case.summary.endswith(".")


def test_traps_cite_threads_of_every_tracker() -> None:
    folder = discovery.builtin_folder("cases")
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("trap_*.py")))
    cited = set(THREAD.findall(texts))
    for tracker, least in {
        "jax-ml/jax": 15,
        "pytorch/pytorch": 15,
        "HIPS/autograd": 10,
        "casadi/casadi": 5,
        "stan-dev/math": 5,
        "EnzymeAD/": 4,
    }.items():
        assert sum(thread.startswith(tracker) for thread in cited) >= least, tracker


@every_trap
def test_the_declared_truth_agrees_with_the_oracle(name: str) -> None:
    case, found = TRAPS[name], known(name)
    kinds = {entry.derivative.kind for leaf in found.leaves for entry in leaf.entries}
    if case.gradient is None:
        assert "kink" in kinds
        return
    for array, leaf in zip(truth(case), found.leaves, strict=True):
        for entry in leaf.entries:
            derivative = entry.derivative
            loose = 1e-9 * max(1.0, derivative.size) if found.reason or derivative.kind == "unsure" else 0.0
            close = 1e-13 * derivative.size + 25 * derivative.bar + loose
            here = float(np.asarray(array).flat[entry.index])
            assert derivative.lower - close <= here <= derivative.upper + close


@every_trap
def test_the_truth_is_judged_correct(name: str) -> None:
    assert word(name, answers(name, lambda number: number)) in ("right", "verified", "blind")


@every_trap
def test_nan_is_judged_wrong(name: str) -> None:
    assert word(name, answers(name, lambda _: np.nan)) == "wrong"


@every_trap
def test_an_error_of_one_per_cent_or_one_for_zero_is_judged_wrong(name: str) -> None:
    off = word(name, answers(name, lambda number: number + (0.01 * abs(number) or 1.0)))
    assert off == "wrong" or name in UNRESOLVED


@every_trap
def test_zero_is_judged_wrong_unless_it_is_true(name: str) -> None:
    found = known(name)
    zero_is_true = all(e.derivative.lower <= 0 <= e.derivative.upper for leaf in found.leaves for e in leaf.entries)
    if name not in UNRESOLVED:
        assert word(name, answers(name, lambda _: 0.0)) == ("right" if zero_is_true else "wrong")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("trap_accumulate", np.cos(0.7)),
        ("trap_recorded_branch", 0.0),
        ("trap_recorded_loop", 500.0),
        ("trap_perturbation_confusion", 2.0),
        ("trap_stop_gradient", 6.0),
        ("trap_repeated_gather", [2.0, 0.0, 6.0]),
        ("trap_repeated_scatter", [1.0, 1.0, 0.0]),
        ("trap_saved_by_reference", [0.0, 0.0]),
        ("trap_prod_two_zeros", [3.0, 3.0, 0.0]),
        ("trap_max_tie_sums_to_one", 3.0),
        ("trap_clip_difference", 2.0),
        ("trap_square_of_sqrt", 0.0),
        ("trap_log_abs_det_negative", [[0.5, 0.0], [0.0, 1.0]]),
        ("trap_cosh", -np.sinh(0.7)),
        ("trap_complex_exponential", np.sin(0.5)),
        ("trap_log_add_exp_equal_large", 0.99999952125830205),
        ("trap_sinc_near_zero", -3.28989e-6),
    ],
)
def test_the_known_wrong_answer_is_judged_wrong(name: str, wrong: Any) -> None:
    assert word(name, (np.array(wrong),)) == "wrong"


@pytest.mark.parametrize("name", [name for name, case in TRAPS.items() if case.prepared])
def test_separate_preparation_points_differ_from_the_point(name: str) -> None:
    assert TRAPS[name].bind_prepared(1, 0) != TRAPS[name].bind(1, 0)[1]


def test_a_shared_fault_is_named_by_its_outcome() -> None:
    shared = TRAPS["trap_masked_sinc"]
    assert shared.known_fault("nan") == "nan: 0/0 in the branch not taken (as jax-ml/jax#1722)"
    assert shared.known_fault("nan (me/mine#7)") == "nan: 0/0 in the branch not taken (me/mine#7)"
    assert shared.known_fault("nan: for another reason (me/mine#7)") == "nan: for another reason (me/mine#7)"
    assert TRAPS["trap_repeated_scatter"].known_fault("(1, 1, 0)").startswith("(1, 1, 0): the overwritten entry")


def test_a_check_reports_a_shared_fault_in_full() -> None:
    options = ["check", "-c", "trap_masked_infinity", "-b", "tape_closures", "--operator", "gradient", "--json"]
    done = CliRunner().invoke(cli, options, catch_exceptions=False)
    (record,) = json.loads(done.output)["records"]
    assert record["status"] == "known"
    assert record["reason"].startswith("nan: 0 · inf in the branch not taken (as jax-ml/jax#2630). Here: ")


def test_an_active_integer_input_is_refused_by_name() -> None:
    square = Case(f=lambda xp, x: x * x, inputs=lambda _n, _rng: {"x": 100}, wrt=("x",), sizes=(1,))
    with pytest.raises(UsageError, match=r"input 'x' is active.*got 100"):
        square.bind(1, 0)


def test_derivatives_on_plain_numbers_nest_and_are_exact_to_rounding() -> None:
    xp = Namespace(np)
    first = HELPERS.derivative(xp, lambda a: np.exp(-(a**2.0)), 0.3)
    assert first == pytest.approx(-0.6 * np.exp(-0.09), rel=1e-14)
    second = HELPERS.derivative(xp, lambda a: HELPERS.derivative(xp, lambda b: np.exp(-(b**2.0)), a), 0.0)
    assert second == pytest.approx(-2.0, rel=1e-14)


def test_a_library_that_cannot_nest_stop_or_assign_is_unsupported() -> None:
    class Foreign:
        """A value of a library without these functions."""

    with pytest.raises(Unsupported, match="no derivative"):
        HELPERS.derivative(Namespace(np), np.sin, Foreign())
    with pytest.raises(Unsupported, match="no stop_gradient"):
        HELPERS.stop_gradient(Namespace(np), Foreign())
    with pytest.raises(Unsupported, match="Foreign does not support assignment to entries"):
        HELPERS.assigned(Foreign(), 0, 1.0)
