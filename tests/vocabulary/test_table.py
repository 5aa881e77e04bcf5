"""The table of functions contradicts neither itself, nor its readers, nor the libraries whose names it has."""

import math
import operator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.special

from adbench.oracle.series.functions import SEVERAL, UNARY
from adbench.oracle.series.namespace import namespace_of
from adbench.oracle.series.noisy import COMPOSED, SLOPE_NOISE, SPECIAL
from adbench.oracle.series.number import Real
from adbench.vocabulary import CANONICAL, FUNCTIONS, of_numpy
from adbench.vocabulary.row import Function, table

SERIES = {**UNARY, **SEVERAL}


def in_numpy(row: Function, name: str = "") -> Any:
    """numpy's or scipy's function, or None."""
    return getattr(np, name or row.name, None) or getattr(scipy.special, name or row.scipy or row.name, None)


RENAMED = {name: row.numpy for name, row in FUNCTIONS.items() if row.numpy}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((Function("one"), Function("one")), "two functions have the name one"),
        ((Function("one", "first"), Function("first")), "two functions have the name first: one and first"),
        ((Function("one", numpy="unit"), Function("two", scipy="unit")), "two functions have the name unit"),
        ((Function("one", arity=2, domain=((0.0, 1.0),)),), "one has 2 arguments, but 1 domains"),
        ((Function("one", arity=2, limits=(0.0, 1.0)),), "one has limits, but 2 arguments"),
        ((Function("one", domain=((0.0, 1.0),), singular=(-1.0,)),), "one is singular at -1.0, outside of its domain"),
    ],
)
def test_rows_that_contradict_are_refused(rows: tuple[Function, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        table(rows)


@pytest.mark.parametrize(
    "named",
    [SERIES, COMPOSED, SLOPE_NOISE, set(SPECIAL) - {"centred", "squares"}],
    ids=["series", "composed", "slopes", "rational"],
)
def test_what_the_oracle_knows_by_name_is_in_the_table(named: Any) -> None:
    assert not set(named) - set(FUNCTIONS)


def test_every_function_has_a_series_or_a_definition() -> None:
    xp = namespace_of(Real)
    for name, row in FUNCTIONS.items():
        assert row.definition is None or name not in SERIES, f"{name} has both"
        for called in row.names:
            assert callable(getattr(xp, called, None)), called


def test_a_function_of_one_number_with_a_series_has_limits() -> None:
    without = {name for name in UNARY if FUNCTIONS[name].limits is None}
    assert without == {"reciprocal", "sqrt", "square"}, "these are arithmetic, without a special value of their own"


def test_an_unknown_function_has_no_name_in_numpy() -> None:
    assert of_numpy(("asin", "sin")) == {"arcsin": "asin", "sin": "sin"}
    with pytest.raises(KeyError):
        of_numpy(("arcsin",))


@pytest.mark.parametrize("name", RENAMED)
def test_an_older_name_of_numpy_is_the_same_function(name: str) -> None:
    assert getattr(np, RENAMED[name]) is getattr(np, name)


ALIASES = [
    alias
    for alias, name in CANONICAL.items()
    if alias != name and in_numpy(FUNCTIONS[name], alias) and in_numpy(FUNCTIONS[name])
]


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_computes_what_the_function_computes(alias: str) -> None:
    row, x = FUNCTIONS[CANONICAL[alias]], (1.0, 0.5, 0.25)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(in_numpy(row, alias)(*x[: row.arity]), in_numpy(row)(*x[: row.arity]), rtol=1e-15)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_libraries_have_the_functions_under_these_paths(library: str) -> None:
    pytest.importorskip(library)
    for row in FUNCTIONS.values():
        if path := getattr(row, library):
            module, _, name = path.rpartition(".")
            assert callable(operator.attrgetter(name)(import_module(module))), path


@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row.domain and in_numpy(row)])
def test_a_function_is_finite_inside_of_its_domain_and_not_beyond_its_edges(name: str) -> None:
    row = FUNCTIONS[name]
    inside = [min(max(0.5, low + 0.5), (low + high) / 2) for low, high in row.domain]

    def at(argument: int, x: float) -> float:
        with np.errstate(all="ignore"):
            found = complex(in_numpy(row)(*inside[:argument], x, *inside[argument + 1 :]))
        return found.real if found.imag == 0 else math.nan

    assert math.isfinite(at(0, inside[0]))
    for argument, (lower, upper) in enumerate(row.domain):
        for edge, outside in ((lower, -math.inf), (upper, math.inf)):
            if math.isfinite(edge):
                beyond = at(argument, math.nextafter(edge, outside))
                assert not (math.isfinite(at(argument, edge)) and math.isfinite(beyond)), (name, edge)
