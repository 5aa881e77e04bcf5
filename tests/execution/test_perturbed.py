"""The second set of inputs of a timed call, and how the two alternate."""

from typing import Any

import numpy as np
import pytest

from adbench.execution.operators.perturbed import STEP, perturbed
from adbench.execution.operators.prepared_point import CasePoint, point
from adbench.execution.workers.timed_call import MOST_ROTATED_BYTES, TimedCall, exchanged
from adbench.model.case import Case
from adbench.model.errors import Unsupported


def at(f: Any = None, **inputs: Any) -> CasePoint:
    """A case of one size with these inputs, active in x."""
    made = Case(f=f or (lambda xp, x, **_: xp.sum(x)), inputs=lambda n, rng: dict(inputs), wrt=("x",), sizes=(1,))
    return point(made, 1, 0)


def test_entries_change_slightly_and_everything_else_stays() -> None:
    x = np.array([0.5, 1.5, -2.0, 0.0, 3e-300])
    labels, counts = np.array([0.0, 1.0, 2.5, 7.0]), np.array([3, 4])
    here = at(x=x, labels=labels, counts=counts, length=4, name="text", nested={"a": [1.25, True]})
    there = perturbed(here)
    found = dict(zip(there.names, there.args, strict=True))
    moved = np.abs(found["x"] / np.where(x == 0, 1.0, x) - 1)
    assert found["x"][0] == x[0]  # does not identify the array
    assert found["x"][3] == 0.0
    assert all(STEP / 2.01 < share < STEP * 1.01 for share in moved[[1, 2, 4]])
    assert found["labels"].tolist()[:2] == [0.0, 1.0]
    assert found["labels"][2] != 2.5
    assert found["labels"][3] == 7.0
    assert found["counts"] is counts
    assert (found["length"], found["name"]) == (4, "text")
    assert found["nested"]["a"][0] != 1.25
    assert found["nested"]["a"][1] is True
    assert x.tolist() == [0.5, 1.5, -2.0, 0.0, 3e-300]


def test_float32_inputs_stay_exact() -> None:
    x = np.random.default_rng(0).normal(size=20).astype(np.float32).astype(np.float64)
    (moved,) = perturbed(at(x=x)).args
    assert (moved != x)[1:].all()
    assert np.array_equal(moved, moved.astype(np.float32))


def test_symmetric_matrices_stay_symmetric_and_others_do_not_become_so() -> None:
    symmetric = np.array([[2.0, 0.7, 1.1], [0.7, 3.0, 0.4], [1.1, 0.4, 5.0]])
    x, w = perturbed(at(x=np.array([symmetric, 2 * symmetric]), w=symmetric + np.triu(symmetric))).args
    assert np.array_equal(x, np.matrix_transpose(x))
    assert (x != np.array([symmetric, 2 * symmetric])).sum() == 17  # all but the first
    assert not np.array_equal(w, w.T)


def test_the_perturbed_point_is_reproducible_and_has_other_vectors() -> None:
    here = at(x=np.array([0.5, 1.5, 2.5]))
    first, second = perturbed(here), perturbed(here)
    assert all(np.array_equal(a, b) for a, b in zip(first.args, second.args, strict=True))
    assert first.seed != here.seed


@pytest.mark.parametrize(
    ("inputs", "f", "reason"),
    [
        ({"x": np.zeros(3)}, None, "can be perturbed"),
        ({"x": np.array([0.5, 1.0])}, lambda xp, x: 0.0 if x[1] == 1.0 else np.nan, "not finite"),
        ({"x": np.array([0.5, 1.0])}, lambda xp, x: 0.0 if x[1] == 1.0 else x[2], "IndexError"),
    ],
)
def test_an_impossible_perturbation_gives_the_reason(inputs: dict[str, Any], f: Any, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        perturbed(at(f, **inputs))


def test_large_inputs_get_no_second_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adbench.execution.operators.perturbed.MOST_BYTES", 100)
    with pytest.raises(Unsupported, match="too large"):
        perturbed(at(x=np.ones(20)))


def test_exchanged_inputs_are_the_same_arrays_with_swapped_contents() -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    locked = np.array([5.0])
    locked.flags.writeable = False
    first, second = exchanged((a, 0.5, 7, {"k": locked}), (b, 0.25, 7, {"k": np.array([6.0])}))
    assert first[0] is a
    assert second[0] is b
    assert (a.tolist(), b.tolist()) == ([3.0, 4.0], [1.0, 2.0])
    assert (first[1], second[1], first[2]) == (0.25, 0.5, 7)
    assert (first[3]["k"].tolist(), second[3]["k"].tolist()) == ([6.0], [5.0])


def test_tensors_of_torch_are_exchanged_in_place() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    first, second = exchanged((a,), (b,))
    assert first[0] is a
    assert (a.tolist(), second[0].tolist()) == ([3.0, 4.0], [1.0, 2.0])


def turns(entries: int, epochs: int, calls: int) -> list[list[float]]:
    """The first numbers of the inputs of each call, epoch by epoch."""
    seen: list[float] = []
    sets: list[tuple[Any, ...]] = [(np.full(entries, 1.0),), (np.full(entries, 2.0),)]
    timed = TimedCall(lambda x: seen.append(float(x[0])) or x.sum(), sets)
    found = []
    for _ in range(epochs):
        seen.clear()
        timed.epoch(calls)
        found.append(list(seen))
    assert {which: result / entries for which, result in timed.results.items()} == {0: 1.0, 1: 2.0}
    after = {which: result / entries for which, result in timed.after_exchange()}
    assert after == {0: 1.0, 1: 2.0}
    return found


def test_small_inputs_alternate_from_call_to_call() -> None:
    assert turns(3, 2, 3) == [[1.0, 2.0, 1.0], [2.0, 1.0, 2.0]]


def test_large_inputs_alternate_from_epoch_to_epoch() -> None:
    assert turns(MOST_ROTATED_BYTES // 8 + 1, 3, 3) == [[1.0] * 3, [2.0] * 3, [1.0] * 3]


def test_inputs_of_slow_calls_alternate_too() -> None:
    assert turns(3, 3, 1) == [[1.0], [2.0], [1.0]]
