"""The gradient at many points: which cells a plan has, the points, loops and refusals.

Wrong batches are among the mutants (tests/oracle/mutants_of_batches.py).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace, Unsupported, check_cell
from adbench.catalog.discovery import Catalog, catalog
from adbench.catalog.source import Source
from adbench.execution.operators import fallback, many_points
from adbench.execution.operators.prepared_point import point
from adbench.execution.planning.plan import plan
from adbench.execution.planning.request import Request
from adbench.model.backend import Backend, from_module
from adbench.model.case import function_of
from adbench.model.operator import BATCH, batch_points, with_points
from tests.support.marks import mostly_slow

CASE = Case(
    f=lambda xp, a, x, w, p: a * xp.sum(w * x * x) + p["b"] * x[0],
    inputs=lambda n, rng: {"a": 1.5, "x": rng.uniform(1, 2, n), "w": rng.uniform(1, 2, n), "p": {"b": 2.0}},
    wrt=("p", "x", "a"),
    sizes=(1, 3, 10),
)


def planned(**asked: Any) -> list[tuple[int, str]]:
    sources = {"mine": Source("cases", "mine", "/mine.py", builtin=False)}
    mine = Catalog({"mine": CASE}, sources, {"left": Source("backends", "left", "", builtin=True)})
    return [(job.size, job.operator) for job in plan(mine, Request(**asked)).jobs]


def test_the_operator_stands_for_three_numbers_of_points_and_its_name_may_have_another() -> None:
    default = ("batch_gradient_1", "batch_gradient_1000", "batch_gradient_100000")
    assert with_points([BATCH, "hvp", "batch_gradient_64"]) == (*default, "hvp", "batch_gradient_64")
    assert [*map(batch_points, default)] == [1, 1_000, 100_000]
    assert [*map(batch_points, (BATCH, "gradient", "batch_gradient_0", "batch_gradient_x", "x_gradient_7"))] == [0] * 5


@pytest.mark.parametrize("time", [True, False])
def test_only_a_request_by_name_has_batches_at_the_named_sizes_or_the_second(time: bool) -> None:
    assert not [name for _, name in planned(time=time) if name.startswith(BATCH)]
    assert planned(time=time, operators=[BATCH]) == [(3, name) for name in with_points([BATCH])]
    assert planned(time=time, operators=["batch_gradient_5"], sizes=["1", "10"]) == [
        (1, "batch_gradient_5"),
        (10, "batch_gradient_5"),
    ]


def test_the_first_point_is_the_cases_and_inactive_inputs_are_shared() -> None:
    at = point(CASE, 3, 0)
    stack = at.stacked(4)
    a, x, w, p = stack
    assert (a.shape, x.shape, p["b"].shape) == ((4,), (4, 3), (4,))
    assert w is at.args[2]
    first = many_points.point_of(stack, at.wrt, 0)
    assert first[0] == 1.5
    assert first[1].tolist() == at.args[1].tolist()
    assert len({*a.tolist()}) == len({*x[:, 0].tolist()}) == 4
    assert np.abs(x / at.args[1] - 1).max() <= many_points.STEP
    assert [*at.sampled(4)] == [0, 1, 2, 3]
    few = [*at.sampled(1_000)]
    assert (few[0], few[-1], len(few)) == (0, 999, many_points.SAMPLED)


def test_too_many_numbers_are_refused() -> None:
    with pytest.raises(Unsupported, match="10,000,000 points of 5 entries: the most are 10,000,000 in all"):
        point(CASE, 3, 0).stacked(10_000_000)


def backend(**more: Any) -> Backend:
    """By hand, with a gradient of one point."""

    def prepare(operator: str, f: Any, args: Any, wrt: Any) -> Any:
        if operator != "gradient":
            raise Unsupported(f"no {operator} here")
        return lambda a, x, w, p: ({"b": x[0]}, 2 * a * w * x + p["b"] * np.eye(len(x))[0], np.sum(w * x * x))

    return Backend("some", Namespace(np), prepare, lambda leaf: leaf, np.asarray, None, None, **more)


@pytest.mark.parametrize("batched", [False, True])
def test_a_library_without_batches_loops_and_this_is_labelled(batched: bool) -> None:
    at, used = point(CASE, 3, 0), backend(batched=batched)
    _, native = at.native(used, "batch_gradient_7")
    made = fallback.prepare(used, BATCH, function_of(CASE, at.names, used.xp), native, at.wrt)
    assert made.how == "from gradient in a loop"
    p, x, a = made.call(*native)
    assert (p["b"].shape, x.shape, a.shape) == ((7,), (7, 3), (7,))
    assert a[6] == pytest.approx(np.sum(native[2] * native[1][6] ** 2))


def test_a_loop_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(1_000) * 0.01)
    monkeypatch.setattr(many_points, "perf_counter", lambda: next(clock))
    at, used = point(CASE, 3, 0), backend()
    f = function_of(CASE, at.names, used.xp)

    def call(count: int) -> Any:
        _, native = at.native(used, f"batch_gradient_{count}")
        return fallback.prepare(used, BATCH, f, native, at.wrt).call(*native)

    assert len(call(400)[2]) == 400
    with pytest.raises(Unsupported, match=r"a loop over 5,000 points takes about 50 s; use fewer points"):
        call(5_000)


def test_an_array_valued_function_has_no_batch() -> None:
    case = replace(CASE, f=lambda xp, x, **_: x, operators=("value", "jacobian"))
    at, used = point(case, 3, 0), backend()
    with pytest.raises(Unsupported, match="an array-valued function has no batch_gradient"):
        fallback.prepare(used, BATCH, function_of(case, at.names, used.xp), at.args, at.wrt)


@pytest.mark.parametrize(
    "name", mostly_slow(["tape_compiled", "jax", "torch", "torch_func", "casadi", "casadi_mx"], fast=["casadi"])
)
def test_libraries_are_right_at_many_points(name: str) -> None:
    found = check_cell("normal_log_density", 3, name, "batch_gradient_19")
    assert "all 19 are the same in another order, and 19 agree with single calls" in found


def test_a_loop_is_not_compared_with_single_calls() -> None:
    found = check_cell("normal_log_density", 3, "tape", "batch_gradient_19")
    assert "all 19 are the same in another order" in found
    assert "single calls" not in found


def test_a_library_whose_batch_refuses_in_the_call_loops() -> None:
    torch = from_module("torch", pytest.importorskip("backends.torch"))
    case = catalog().cases["projectile"]
    at = point(case, 10, 0)
    elsewhere, native = at.native(torch, "batch_gradient_3")
    first = fallback.OperatorRequest(torch, BATCH, torch.function(case, at.names), elsewhere, at.wrt).first_call(native)
    assert first.prepared.how == fallback.LOOP
    assert [np.shape(leaf)[0] for leaf in torch.numpy_result(first.result)] == [3] * len(at.wrt)
