"""The contract of a case, and its namespace."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adbench import Case, MissingFunction, Namespace, Unsupported, UsageError, loop
from adbench.model.case import function_of


def made(**changes: Any) -> Case:
    parts: dict[str, Any] = {
        "f": lambda xp, x, scale, steps: xp.sum(x) * scale * steps,
        "inputs": lambda n, rng: {"x": rng.normal(size=n), "scale": 2.0, "steps": 3},
        "wrt": ("x", "scale"),
        "sizes": (1, 10, 100, 1000, 10_000),
    }
    return Case(**(parts | changes))


def test_inputs_depend_only_on_seed_and_size() -> None:
    names, args, wrt = made().bind(10, seed=4)
    assert names == ("x", "scale", "steps")
    assert wrt == (0, 1)
    np.testing.assert_array_equal(args[0], made().bind(10, seed=4)[1][0])
    assert not np.array_equal(args[0], made().bind(10, seed=5)[1][0])
    assert not np.array_equal(args[0][:1], made().bind(1, seed=4)[1][0])


def test_the_function_of_a_case_takes_its_inputs_in_order() -> None:
    case = made()
    names, args, _ = case.bind(10, seed=0)
    assert function_of(case, names, Namespace(np))(*args) == pytest.approx(6.0 * args[0].sum())


def test_a_case_takes_any_size_unless_it_has_only_one() -> None:
    assert made().accepts(77)
    assert not made().accepts(0)
    assert made(sizes=(1,)).accepts(1)
    assert not made(sizes=(1,)).accepts(2)


def test_quick_sizes_are_few_and_leave_out_the_largest() -> None:
    assert made().quick_sizes == (1, 10, 100)
    assert made(quick=(5,)).quick_sizes == (5,)
    assert made(sizes=(1,)).quick_sizes == (1,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wrt": "x"}, r"write \('x',\)"),
        ({"wrt": ()}, "name at least one input"),
        ({"sizes": ()}, "positive integers"),
        ({"sizes": (0, 1)}, "positive integers"),
        ({"sizes": (1.5,)}, "positive integers"),
    ],
)
def test_an_invalid_case_is_refused_when_created(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wrt": ("z",)}, "wrt names 'z', which is not an input; use names from x, scale, steps"),
        ({"wrt": ("steps",)}, "input 'steps' is active, so make it float"),
        ({"inputs": lambda n, rng: {"x": np.arange(n)}, "wrt": ("x",)}, "input 'x' is active"),
    ],
)
def test_an_active_input_must_exist_and_hold_floats(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(**changes).bind(3, seed=0)


def test_a_namespace_finds_functions_under_standard_and_older_names() -> None:
    class Old:
        __name__ = "old"
        exp = staticmethod(np.exp)
        concatenate = staticmethod(np.concatenate)
        linalg = SimpleNamespace(slogdet=np.linalg.slogdet)
        trace = staticmethod(np.trace)

    xp = Namespace(Old)
    assert xp.exp is np.exp
    assert xp.concat is np.concatenate
    assert xp.linalg.slogdet is np.linalg.slogdet
    assert xp.linalg.trace is np.trace


def test_a_namespace_can_prefer_older_names() -> None:
    assert Namespace(np).cumulative_sum is np.cumulative_sum
    assert Namespace(np, prefer_older=True).cumulative_sum is np.cumsum


def test_a_missing_function_is_unsupported_by_name() -> None:
    xp = Namespace(np, linalg={"slogdet": len}, exp=abs)
    assert xp.linalg.slogdet is len
    assert xp.exp is abs
    assert not hasattr(xp, "no_such")
    with pytest.raises(Unsupported, match="numpy has no no_such"):
        _ = xp.no_such
    with pytest.raises(MissingFunction, match=r"numpy\.linalg has no no_such"):
        _ = xp.linalg.no_such


def test_a_loop_passes_the_index_and_the_state() -> None:
    assert loop(lambda i, s: s + [i], [], 3) == [0, 1, 2]  # noqa: RUF005 - a new state, not a mutated one
    assert loop(lambda i, s: (s[0] + i, s[1] * 2), (0, 1), 4) == (6, 16)
    assert loop(lambda i, s: s / 0, 1, 0) == 1
