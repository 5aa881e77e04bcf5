"""Every case at every size: hand-written gradient, inputs, sparsity pattern, and no inactive inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from adbench import Case, Namespace
from adbench.catalog.discovery import catalog
from adbench.catalog.inventory import docstring, formula
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.references import known_at
from adbench.execution.planning.inactive_inputs import inactive_inputs
from adbench.model import tree
from adbench.model.case import function_of
from tests.oracle.scalars import judge

CATALOG = catalog()
CASES = {name: case for name, case in CATALOG.cases.items() if not case.is_trap}
EVERY_CASE = [pytest.param(case, id=name) for name, case in CASES.items()]
SECONDS_OF_ORACLE = {"attention", "burgers_equation", "convolution", "implicit_layer", "mlp", "normalising_flow"}
BY_HAND = [
    pytest.param(case, id=name, marks=[pytest.mark.slow] * (name in SECONDS_OF_ORACLE))
    for name, case in CASES.items()
    if case.gradient
]
SPARSE = [pytest.param(case, id=name) for name, case in CASES.items() if case.sparsity]

ROWS = """
    normal_log_density product_plus_constant hypot sums products powers log_sum_exp matrix_product
    log_determinant inverse cholesky solve quadratic_form multi_normal gaussian_process lotka_volterra
    van_der_pol sir linear_chain recurrence projectile square_sum nested_parameters reparameterised_draws
    gaussian_mixture bundle_adjustment hand_tracking_simple hand_tracking_complicated lstm
    least_squares_polynomial determinant_by_minors kmeans particle saddle helmholtz_energy rosenbrock
    speelpenning logistic_regression linear_regression eight_schools stochastic_volatility
    mlp convolution attention transformer normalising_flow implicit_layer
    heston sabr_calibration credit_valuation_adjustment libor_market_model
    kalman_filter heat_equation burgers_equation lennard_jones robot_arm optimal_control
"""
"""The published comparisons and the workloads of a field, each once; a variant's name starts with its case's name."""

SUITES = {"quick", "stan-paper", "fastad", "adbench", "gradbench", "pqr", "ablations"}
SUITES |= {"finance", "machine-learning", "science"}


def every_size(case: Case) -> list[int]:
    return sorted({*case.sizes, *case.quick_sizes})


def test_every_published_comparison_has_a_case_and_the_rest_are_variants() -> None:
    announced = ROWS.split()
    assert set(announced) <= set(CASES)
    for name in set(CASES) - set(announced):
        assert name.startswith(tuple(announced)), f"{name} is no variant of anything"


def test_every_suite_has_cases_and_every_case_names_known_suites() -> None:
    assert {suite for case in CASES.values() for suite in case.suites} == SUITES


@pytest.mark.parametrize("case", BY_HAND)
def test_hand_written_gradients_agree_with_the_oracle(case: Case) -> None:
    for size, seed in ((case.sizes[0], 7), (case.quick_sizes[0], 0)):
        at = point(case, size, seed)
        known = known_at(at, second_order=False, seconds=10.0).first.scalar
        assert case.gradient is not None
        verdict = judge(None, case.gradient(**dict(zip(at.names, at.args, strict=True))), known)
        assert verdict.word in ("right", "verified"), verdict.sentence
        assert known.method.startswith("power series"), known.reason


@pytest.mark.parametrize("case", EVERY_CASE)
def test_no_input_is_inactive_at_any_size(case: Case) -> None:
    for size in every_size(case):
        assert inactive_inputs(case, size) == []


@pytest.mark.parametrize("case", EVERY_CASE)
def test_f_returns_float64_and_does_not_change_its_inputs(case: Case) -> None:
    for size in case.sizes[:3]:
        names, args, _ = case.bind(size, 0)
        for leaf in tree.leaves(args):
            if isinstance(leaf, np.ndarray):
                leaf.flags.writeable = False  # writing raises
        value = np.asarray(function_of(case, names, Namespace(np))(*args))
        assert (value.shape != ()) == case.is_array_valued
        assert value.dtype == np.float64
        assert np.isfinite(value).all()


@pytest.mark.parametrize("case", EVERY_CASE)
def test_inputs_depend_on_seed_and_size_only(case: Case) -> None:
    for size in case.sizes[:3]:
        first, again = (tree.leaves(case.bind(size, 3)[1]) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    if "smoke" not in case.tags:  # a fixed point
        first, other = (tree.leaves(case.bind(case.sizes[0], seed)[1]) for seed in (3, 4))
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("case", EVERY_CASE)
def test_active_inputs_are_of_order_one(case: Case) -> None:
    for size in case.sizes:
        _, args, wrt = case.bind(size, 0)
        for w in wrt:
            sizes = np.abs(np.concatenate([np.ravel(leaf) for leaf in tree.leaves(args[w])]))
            assert 1e-2 < np.median(sizes) < 20


@pytest.mark.parametrize("case", EVERY_CASE)
def test_sizes_ascend_and_flops_are_counted(case: Case) -> None:
    assert list(case.sizes) == sorted(set(case.sizes))
    assert list(case.quick_sizes) == sorted(set(case.quick_sizes))
    assert case.flops is not None
    flops = [case.flops(n) for n in case.sizes]
    assert flops == sorted(flops)
    assert flops[0] > 0


def test_sizes_of_cheap_cases_span_three_decades() -> None:
    """Matrices, grids with n points on a side, unrolled programs and cases with a single size have smaller ranges."""
    for name, case in CASES.items():
        few = {"matrix", "elements", "smoke", "second-order", "nested-loops", "data-dependent", "grid"} & set(case.tags)
        if not few and len(case.sizes) > 1:
            assert case.sizes[-1] >= 1_000 * case.sizes[0], name


@pytest.mark.parametrize("case", EVERY_CASE)
def test_every_case_has_a_summary_a_formula_and_tags(case: Case) -> None:
    assert CATALOG.case_sources[case.name].summary.endswith(".")
    text = formula(docstring(Path(case.file)))
    assert "=" in text, "a formula: an indented line of the file's docstring"
    assert case.tags


def jacobian(case: Case, size: int) -> Any:
    """The Jacobian in all active inputs by a complex step, exact to rounding."""
    names, args, wrt = case.bind(size, 0)
    f, h = function_of(case, names, Namespace(np)), 1e-100
    columns = []
    for w in wrt:
        for place in np.ndindex(np.shape(args[w])):
            there = args[w].astype(complex)
            there[place] += 1j * h
            columns.append(f(*args[:w], there, *args[w + 1 :]).imag.ravel() / h)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("case", SPARSE)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 12])
def test_the_sparsity_pattern_matches_the_jacobian(case: Case, size: int) -> None:
    assert case.sparsity is not None
    found = jacobian(case, size)
    rows, columns = case.sparsity(size)
    pattern = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=found.shape).toarray()
    assert pattern.max() == 1  # no entry twice
    assert not found[pattern == 0].any()
    assert np.mean(found[pattern == 1] != 0) > 0.8  # most entries of the pattern are nonzero


def test_no_observation_of_the_bundle_occurs_twice() -> None:
    rows, columns = CASES["bundle_adjustment"].sparsity(100)  # type: ignore[misc]
    seen = [tuple(np.sort(np.asarray(columns)[np.asarray(rows) == 3 * i])[:14]) for i in range(100)]
    assert len(set(seen)) == 100
