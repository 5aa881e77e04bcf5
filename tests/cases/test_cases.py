"""Every case, at every size: the gradient by hand, the inputs, and that no input is dead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace
from adbench.suite import tree
from adbench.suite.case import function_of
from adbench.suite.catalog import catalog
from tests.cases.high_precision import derivative

CATALOG = catalog()
CASES = {name: case for name, case in CATALOG.cases.items() if not case.is_trap}
EVERY_SIZE = [pytest.param(case, n, id=f"{name}-{n}") for name, case in CASES.items() for n in case.sizes]
SMALL = [pytest.param(case, n, id=f"{name}-{n}") for name, case in CASES.items() for n in case.sizes[:3]]
BY_HAND = [
    pytest.param(case, n, id=f"{name}-{n}") for name, case in CASES.items() for n in case.sizes[:3] if case.gradient
]
EVERY_CASE = [pytest.param(case, id=name) for name, case in CASES.items()]


def hand_gradient(case: Case, size: int, seed: int = 0) -> tuple[Any, ...]:
    names, args, _ = case.bind(size, seed)
    assert case.gradient is not None
    return case.gradient(**dict(zip(names, args, strict=True)))


def complex_step(case: Case, size: int, seed: int = 0) -> tuple[Any, ...]:
    """Im f(x + i h) / h: exact to rounding for functions that stay analytic (Squire and Trapp 1998)."""
    names, args, wrt = case.bind(size, seed)
    f, h = function_of(case, names, Namespace(np)), 1e-100

    def slope(which: int, index: tuple[int, ...]) -> float:
        there = args[which].astype(complex)
        there[index] += 1j * h
        return float(f(*args[:which], there, *args[which + 1 :]).imag / h)

    return tuple(np.array([slope(w, i) for i in np.ndindex(args[w].shape)]).reshape(args[w].shape) for w in wrt)


def test_the_cases_are_those_announced() -> None:
    assert sorted(CASES) == [
        "log_determinant",
        "lotka_volterra",
        "matrix_product",
        "normal_log_density",
        "normal_log_density_loop",
        "product_plus_constant",
        "projectile",
        "recurrence",
    ]


@pytest.mark.parametrize(("case", "size"), BY_HAND)
@pytest.mark.parametrize("seed", [0, 7])
def test_gradient_by_hand_agrees_with_high_precision_differences(case: Case, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for position, by_hand in enumerate(hand_gradient(case, size, seed)):
        indices = list(np.ndindex(np.shape(by_hand)))
        for k in rng.permutation(len(indices))[:4]:
            truth = derivative(case, size, seed, position, indices[k])
            np.testing.assert_allclose(np.asarray(by_hand)[indices[k]], truth, rtol=1e-12)


@pytest.mark.parametrize(("case", "size"), EVERY_SIZE)
def test_no_input_is_dead(case: Case, size: int) -> None:
    gradient = hand_gradient(case, size) if case.gradient else complex_step(case, size)
    _, args, wrt = case.bind(size, 0)
    for entry, w in zip(gradient, wrt, strict=True):
        assert np.shape(entry) == np.shape(args[w])
        assert np.all(np.isfinite(entry))
        assert np.all(np.abs(entry) > 1e-9 * np.max(np.abs(entry)))


@pytest.mark.parametrize(("case", "size"), SMALL)
def test_f_is_a_float64_scalar_and_leaves_its_inputs_alone(case: Case, size: int) -> None:
    names, args, _ = case.bind(size, 0)
    for leaf in tree.leaves(args):
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False  # writing raises
    value = np.asarray(function_of(case, names, Namespace(np))(*args))
    assert value.shape == ()
    assert value.dtype == np.float64
    assert np.isfinite(value)


@pytest.mark.parametrize("case", EVERY_CASE)
def test_inputs_depend_on_seed_and_size_only(case: Case) -> None:
    for size in case.sizes[:3]:
        first, again = (tree.leaves(case.bind(size, 3)[1]) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    if "smoke" not in case.tags:  # one fixed point, on purpose
        first, other = (tree.leaves(case.bind(case.sizes[0], seed)[1]) for seed in (3, 4))
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(("case", "size"), EVERY_SIZE)
def test_active_inputs_are_of_order_one(case: Case, size: int) -> None:
    _, args, wrt = case.bind(size, 0)
    for w in wrt:
        assert 1e-2 < np.median(np.abs(args[w])) < 20


@pytest.mark.parametrize("case", EVERY_CASE)
def test_sizes_ascend_and_flops_are_counted(case: Case) -> None:
    assert list(case.sizes) == sorted(set(case.sizes))
    assert list(case.quick_sizes) == sorted(set(case.quick_sizes))
    assert case.flops is not None
    flops = [case.flops(n) for n in case.sizes]
    assert flops == sorted(flops)
    assert flops[0] > 0


def test_every_case_says_what_it_is_in_one_line() -> None:
    for name, source in CATALOG.case_sources.items():
        assert source.summary.endswith("."), name
