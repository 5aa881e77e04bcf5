"""Inputs that differ in one entry: which entries, and what differences say about the results there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.relations.neighbours import EVERY_ENTRY, SAMPLED, Neighbours
from tests.oracle import subjects as at


def neighbours(f: Any, active: tuple[str, ...] = ("x",), **inputs: Any) -> Neighbours:
    case = Case(f=f, inputs=lambda n, rng: dict(inputs), wrt=active, sizes=(1,))
    return Neighbours(point(case, 1, 0), seconds=10.0)


def cubes(xp: Namespace, x: Any, **others: Any) -> Any:
    return xp.sum(x**3)


def test_every_entry_of_small_inputs_is_changed_alone_also_of_inactive_inputs() -> None:
    found = neighbours(cubes, x=np.array([1.0, -2.0, 0.0]), w=0.5, n=3, table={"a": np.ones((1, 2))})
    assert {one.what for one in found.others} == {"x[0]", "x[1]", "x[2]", "w", "table['a'][0, 0]", "table['a'][0, 1]"}
    for one in found.others:
        leaves = [np.ravel(x) for x in (one.args[0], one.args[1], one.args[3]["a"])]
        given = [np.ravel(x) for x in (found.at.args[0], 0.5, np.ones(2))]
        assert sum(int((a != b).sum()) for a, b in zip(leaves, given, strict=True)) == 1
        assert one.args[2] == 3


def test_of_large_inputs_the_first_and_the_last_entry_and_some_others_are_changed() -> None:
    found = neighbours(cubes, x=np.arange(1.0, 2.0 + EVERY_ENTRY))
    assert len({one.what for one in found.others}) == SAMPLED
    assert {"x[0]", f"x[{EVERY_ENTRY}]"} < {one.what for one in found.others}


def test_a_symmetric_matrix_stays_symmetric() -> None:
    found = neighbours(lambda xp, x: xp.sum(x * x * x), x=np.array([[2.0, 1.0], [1.0, 5.0]]))
    (v,) = found.v
    assert np.array_equal(v, v.T)
    for one in (*found.others, found.nudged(found.here)):
        assert np.array_equal(one.args[0], one.args[0].T)
        assert not np.array_equal(one.args[0], found.at.args[0])


def test_differences_give_value_slope_and_curvature_along_a_direction() -> None:
    x = np.array([1.0, -2.0, 0.7])
    found = neighbours(cubes, x=x)
    (v,) = found.v
    for there in (found.here, *found.others):
        y = there.args[0]
        exact = [np.sum(y**3), np.sum(3 * y**2 * v), np.sum(6 * y * v * v)]
        assert np.all(np.abs(there.derivatives - exact) <= there.errors)
        assert found.disagreement("gradient", (3 * y**2,), there, 0.0) == ""
        assert found.disagreement("hessian", ((np.diag(6 * y),),), there, 0.0) == ""
        assert found.disagreement("jvp", exact[1], there, 0.0) == ""
    assert "differences of the function give" in found.disagreement("gradient", (3 * x**2,), found.others[0], 0.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda xp, x: xp.sum(xp.log(x - 0.9999)),  # leaves its domain
        lambda xp, x: xp.sum(xp.sin(1e6 * x)),  # varies faster than the steps
        lambda xp, x: float("no number"),
    ],
)
def test_differences_that_disagree_decide_nothing(f: Any) -> None:
    assert not neighbours(f, x=np.array([1.0, 2.0])).here.decides("gradient")


def test_the_rows_of_an_array_are_added_with_the_weights_of_w() -> None:
    case = replace(
        at.case(lambda xp, x, w: xp.stack([xp.sum(x * w), x[0] ** 2]), x=at.vector, w=at.weights),
        operators=("value", "jacobian"),
    )
    found = Neighbours(point(case, 1, 0))
    x, w = found.at.args
    rows = np.stack([w, np.eye(x.size)[0] * 2 * x[0]])
    for operator, result in (("jacobian", (rows,)), ("vjp", (found.w @ rows,)), ("jvp", rows @ found.v[0])):
        assert found.disagreement(operator, result, found.here, 0.0) == ""  # type: ignore[arg-type]
