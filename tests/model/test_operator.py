"""The definitions of operators: complete, consistent, and independent of their order."""

from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

from adbench.model.errors import UnknownName
from adbench.model.operator import BATCH, COMPOSITIONS, DEFINITIONS, EVERY_OPERATOR, OPERATORS, TRANSFORMS, definition
from adbench.model.operator.definition import Operator
from adbench.oracle.operators import LAWS

ROOT = Path(__file__).parents[2]


def test_every_name_has_a_definition_in_the_order_of_tables() -> None:
    assert get_args(Operator) == EVERY_OPERATOR


def test_every_operator_is_requested_from_backends_or_composed_or_of_many_points() -> None:
    assert sorted([*OPERATORS, *COMPOSITIONS, BATCH]) == sorted(EVERY_OPERATOR)
    assert [definition(name).modes for name in COMPOSITIONS] == [
        tuple(part for part in name.split("_") if part in TRANSFORMS) for name in COMPOSITIONS
    ]


def test_each_is_judged_by_a_law_that_the_oracle_has() -> None:
    assert {one.judged_by for one in DEFINITIONS.values()} == LAWS


def test_a_fallback_needs_other_operators_that_take_no_other_points() -> None:
    for one in DEFINITIONS.values():
        for needed, _ in chain(one.fallbacks, one.fallbacks_of_arrays, one.fallbacks_by_modes):
            assert one.name not in needed
            assert not any(definition(name).at_points for name in needed)
        assert all(definition(name).of_arrays for needed, _ in one.fallbacks_of_arrays for name in needed)


def test_codes_are_those_of_the_cpp_interface() -> None:
    (line,) = [
        line for line in (ROOT / "backends/native/call.hpp").read_text("utf-8").splitlines() if "enum Op" in line
    ]
    written = dict(item.strip().split(" = ") for item in line.partition("{")[2].partition("}")[0].split(","))
    assert {name: int(code) for name, code in written.items()} == {name: DEFINITIONS[name].code for name in written}


def test_a_job_names_the_number_of_points_and_an_unknown_name_is_refused() -> None:
    assert definition("batch_gradient_1000") is definition(BATCH)
    with pytest.raises(UnknownName, match="no operator 'gradiant'"):
        definition("gradiant")
