"""Every case is alive: at every size, a gradient that is zero, NaN, single precision or 1 % off is found out.

A known suite's ODE gradient is exactly zero at all its default sizes, and its comparison lets NaN through.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from adbench import Namespace
from adbench.oracle import Reference, judge, reference
from adbench.suite import backend as contract
from adbench.suite import tree
from adbench.suite.case import function_of
from adbench.suite.catalog import catalog, load

CELLS = [(name, size) for name, case in sorted(catalog().cases.items()) if not case.is_trap for size in case.sizes]

BROKEN: dict[str, Callable[[Any], Any]] = {
    "zero": lambda g: g * 0.0,
    "NaN": lambda g: g * np.nan,
    "NaN in the last entry": lambda g: np.where(np.arange(np.size(g)).reshape(np.shape(g)) < np.size(g) - 1, g, np.nan),
    "single precision": lambda g: np.asarray(g, dtype=np.float32),
    # rounding alone may by luck hardly change a single number; the neighbour is off by half a unit at least
    "a unit of single precision off": lambda g: np.nextafter(np.float32(g), np.float32(np.inf)).astype(np.float64),
    "1 % off": lambda g: g * 1.01,
}


@cache
def known(name: str, size: int) -> tuple[Reference, tuple[Any, ...]]:
    """The reference of a cell, and its gradient by hand or by the reference engine."""
    case = catalog().cases[name]
    names, args, wrt = case.bind(size, seed=0)
    found = reference(
        function_of(case, names, Namespace(np)), args, wrt, max_evaluations=2_000 if size < 100 else 500, names=names
    )
    if case.gradient is not None:
        by_hand = case.gradient(**dict(zip(names, args, strict=True)))
        return found, tuple(tree.map_leaves(lambda leaf: np.asarray(leaf, dtype=np.float64), g) for g in by_hand)
    engine = contract.from_module("tape", load(catalog().backends["tape"]))
    native = engine.native_inputs(args)
    call = engine.prepare("gradient", function_of(case, names, engine.xp), native, wrt)
    return found, engine.numpy_result(call(*native))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), CELLS)
def test_a_broken_gradient_is_found_out(name: str, size: int) -> None:
    found, gradient = known(name, size)
    assert judge(None, gradient, found).word in ("right", "inconclusive")
    for fault, broken in BROKEN.items():
        verdict = judge(None, tree.map_leaves(broken, gradient), found)
        assert verdict.word == "wrong", f"{name} {size}: {fault} passes: {verdict.sentence}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), CELLS)
def test_a_fault_in_one_input_is_found_out(name: str, size: int) -> None:
    """Each active input by itself: the others are right."""
    found, gradient = known(name, size)
    for position, part in enumerate(gradient):
        for fault, broken in BROKEN.items():
            one = tree.map_leaves(broken, part)
            verdict = judge(None, (*gradient[:position], one, *gradient[position + 1 :]), found)
            assert verdict.word == "wrong", f"{name} {size} input {position}: {fault} passes: {verdict.sentence}"
