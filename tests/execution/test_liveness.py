"""Every case is alive: at every size, a derivative that is zero, NaN, single precision or 1 % off is found.

A known suite's ODE gradient is exactly zero at all its default sizes, and its comparison lets NaN through.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from adbench import Case, Operator
from adbench.catalog.discovery import catalog, load
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.references import subject_of
from adbench.model import backend as contract
from adbench.model import tree
from adbench.model.case import function_of
from adbench.oracle.compute import reference
from adbench.oracle.operators import judge_operator
from adbench.oracle.reference import Reference
from adbench.oracle.subject import Effort
from adbench.oracle.verdict import Verdict

CASES = {name: case for name, case in sorted(catalog().cases.items()) if not case.is_trap}
LARGEST_DENSE = 100  # of array-valued functions, whose Jacobians are broken entry by entry here


def sizes(case: Case) -> tuple[int, ...]:
    """Every size; for a variant, with its case's inputs, the checked sizes."""
    if "elements" in case.tags or case.same_twin not in ("", case.name):
        return case.quick_sizes
    return tuple(n for n in case.sizes if not case.is_array_valued or n <= LARGEST_DENSE)


CELLS = [(name, size) for name, case in CASES.items() for size in sizes(case)]

BROKEN: dict[str, Callable[[Any], Any]] = {
    "zero": lambda g: g * 0.0,
    "NaN": lambda g: g * np.nan,
    "NaN in the last entry": lambda g: np.where(np.arange(np.size(g)).reshape(np.shape(g)) < np.size(g) - 1, g, np.nan),
    "single precision": lambda g: np.asarray(g, dtype=np.float32),
    # rounding may hardly change a number; its neighbour differs by at least half a unit
    "a unit of single precision off": lambda g: np.nextafter(np.float32(g), np.float32(np.inf)).astype(np.float64),
    "1 % off": lambda g: g * 1.01,
}


@cache
def known(name: str, size: int) -> tuple[Reference, tuple[Any, ...]]:
    """A cell's quick reference, and its derivative by hand or by the reference engine."""
    case, at = CASES[name], point(CASES[name], size, 0)
    effort = Effort(max_seconds=0.4, max_evaluations=2_000 if size < 100 else 180, max_directions=1)
    found = reference(subject_of(at), effort)
    if case.gradient is not None:
        by_hand = case.gradient(**dict(zip(at.names, at.args, strict=True)))
        return found, tuple(tree.map_leaves(lambda leaf: np.asarray(leaf, dtype=np.float64), g) for g in by_hand)
    engine = contract.from_module("tape", load(catalog().backends["tape"]))
    native = engine.native_inputs(at.args)
    operator: Operator = "jacobian" if case.is_array_valued else "gradient"
    call = engine.prepare(operator, function_of(case, at.names, engine.xp), native, at.wrt)
    return found, engine.numpy_result(call(*native))


def judged(derivative: Any, found: Reference) -> Verdict:
    operator = "jacobian" if found.shape else "gradient"
    return judge_operator(operator, derivative, found)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every size with `--nightly 2`; by default the sizes of `adbench check`."""
    every = metafunc.config.getoption("--nightly") > 1
    metafunc.parametrize(("name", "size"), [(c, n) for c, n in CELLS if every or n in CASES[c].quick_sizes])


@pytest.mark.slow
def test_a_broken_derivative_is_found(name: str, size: int) -> None:
    """In all inputs at once, and in each while the others are correct."""
    found, gradient = known(name, size)
    assert judged(gradient, found).word in ("right", "verified")
    for fault, broken in BROKEN.items():
        verdict = judged(tree.map_leaves(broken, gradient), found)
        assert verdict.word == "wrong", f"{name} {size}: {fault} passes: {verdict.sentence}"
        for position, part in enumerate(gradient):
            one = tree.map_leaves(broken, part)
            verdict = judged((*gradient[:position], one, *gradient[position + 1 :]), found)
            assert verdict.word == "wrong", f"{name} {size} input {position}: {fault} passes: {verdict.sentence}"
