"""References: the method, the entries, the recorded data; the cache."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.oracle import cache
from adbench.oracle.cache import cached, reference_key
from adbench.oracle.compute import DIFFERENCES
from adbench.oracle.compute import reference as of_any_shape
from adbench.oracle.precise import METHOD, NOISE, NotPrecise, plan
from adbench.oracle.reference import Reference
from adbench.oracle.subject import Effort, chosen_entries
from tests.oracle.scalars import judge, reference, subject_of

X = np.linspace(0.2, 1.4, 7)


def text(xp: Any, x: Any) -> Any:
    return xp.sum(xp.exp(x) * x)


def plain(x: Any) -> Any:
    return text(np, x)


GRADIENT = np.exp(X) * (1 + X)


def test_a_source_on_series_gives_the_reference_with_its_noise() -> None:
    found = reference(plain, (X,), (0,), text=text)
    assert (found.method, found.noise, found.reason) == (METHOD, NOISE, "")
    assert [entry.derivative.noise > 0 for entry in found.leaves[0].entries] == [True] * 7
    assert judge(plain(X), (GRADIENT,), found).word == "right"
    assert judge(plain(X), (GRADIENT * (1 + 1e-9),), found).word == "wrong"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (None, "black box"),
        (lambda xp, x: np.exp(x).sum(), "does not run on power series: TypeError"),
        (lambda xp, x: xp.sum(xp.wavelet(x)), "no wavelet"),
        (lambda xp, x: math.exp(x[0]), "active number to a float"),
        (lambda xp, x: x, "must return one number"),
        (lambda xp, x: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_a_function_that_fails_on_series_falls_back_with_a_reason(function: Any, reason: str) -> None:
    found = reference(plain, (X,), (0,), text=function)
    assert found.method == DIFFERENCES
    assert reason in found.reason
    verdict = judge(plain(X), (GRADIENT,), found)
    assert verdict.word == "right"
    assert reason in verdict.reason
    assert judge(plain(X), (GRADIENT * (1 + 1e-9),), found).word == "wrong"


def test_a_slow_source_falls_back_to_differences() -> None:
    def slow(xp: Any, x: Any) -> Any:
        return xp.loop(lambda i, s: xp.sum(xp.exp(x)) * 0 + s, xp.sum(x), 3_000)

    found = reference(lambda x: np.sum(x), (X,), (0,), text=slow, max_seconds=0.01)
    assert (found.method, found.reason) == (DIFFERENCES, "the function takes too long on power series")


def test_constants_and_nested_arguments_reach_the_source_in_place() -> None:
    def nested(xp: Any, params: Any, n: int, y: Any) -> Any:
        return xp.sum(params["w"][0] * y) ** n + params["w"][1][0, 0] * params["k"]

    args = ({"w": [np.array([1.0, 2.0]), np.array([[3.0]])], "k": 2}, 2, np.array([0.5, 0.25]))
    found = reference(lambda *a: nested(np, *a), args, (0,), text=nested, names=("params", "n", "y"))
    assert found.method == METHOD
    assert [leaf.path for leaf in found.leaves] == ["params['w'][0]", "params['w'][1]"]
    gradient = {"w": [2 * 1.0 * args[2], np.array([[2.0]])], "k": None}
    assert judge(1.0 + 6.0, (gradient,), found).word == "right"


def test_every_subset_of_active_arguments_has_its_own_reference() -> None:
    def product(xp: Any, a: Any, b: Any) -> Any:
        return a * a * b

    for wrt, gradient in [((0,), (12.0,)), ((1,), (4.0,)), ((1, 0), (4.0, 12.0))]:
        found = reference(lambda a, b: a * a * b, (2.0, 3.0), wrt, text=product)
        assert judge(12.0, gradient, found).word == "right"


@pytest.mark.parametrize("x", [1.5, np.array(1.5), np.array([1.5]), np.array([[1.5]])])
def test_scalars_and_arrays_of_one_keep_their_shape(x: Any) -> None:
    found = reference(lambda x: np.sum(np.exp(x)), (x,), (0,), text=lambda xp, x: xp.sum(xp.exp(x)))
    assert found.method == METHOD
    assert judge(math.exp(1.5), (np.exp(x),), found).word == "right"
    assert judge(math.exp(1.5), (np.exp(np.reshape(x, (1, 1, 1))),), found).word == "wrong"


def test_an_empty_argument_has_an_empty_gradient() -> None:
    empty = np.zeros((0, 3))
    found = reference(lambda x: np.sum(x) + 1, (empty,), (0,), text=lambda xp, x: xp.sum(x) + 1)
    assert judge(1.0, (np.zeros((0, 3)),), found).word == "right"
    assert judge(1.0, (np.zeros((3, 0)),), found).word == "wrong"


@pytest.mark.slow
def test_large_arguments_are_sampled_and_summed_along_directions() -> None:
    x = np.random.default_rng(3).normal(size=3_000)
    found = reference(lambda x: np.sum(x**3), (x,), (0,), text=lambda xp, x: xp.sum(x**3), max_seconds=60.0)
    assert found.method == METHOD, found.reason
    assert found.directions
    gradient = 3 * x**2
    assert judge(np.sum(x**3), (gradient,), found).word == "right"
    outside = next(i for i in range(x.size) if i not in {e.index for e in found.leaves[0].entries})
    spoiled = gradient.copy()
    spoiled[outside] *= 1 + 1e-6
    verdict = judge(np.sum(x**3), (spoiled,), found)
    assert verdict.word == "wrong"
    assert "direction" in verdict.sentence


def test_the_sample_is_seeded_spread_over_the_leaves_and_holds_the_ends() -> None:
    chosen = chosen_entries([3, 1_000, 50], 40, seed=1)
    assert chosen == chosen_entries([3, 1_000, 50], 40, seed=1)
    assert chosen != chosen_entries([3, 1_000, 50], 40, seed=2)
    assert chosen[0] == [0, 1, 2]
    assert [(part[0], part[-1]) for part in chosen[1:]] == [(0, 999), (0, 49)]
    assert sum(map(len, chosen)) <= 40
    assert chosen_entries([2, 3], 10, seed=0) == [[0, 1], [0, 1, 2]]


def test_the_plan_takes_fewer_entries_rather_than_longer() -> None:
    everything = plan(total=10, evaluations=1e6, max_entries=64, max_directions=4, draws=6)
    assert (everything.entries, everything.directions) == (10, 0)
    sampled = plan(total=1000, evaluations=1e6, max_entries=64, max_directions=4, draws=6)
    assert (sampled.entries, sampled.directions) == (64, 4)
    costs = [plan(1000, n, 64, 4, 6).entries for n in (80, 150, 300, 1000)]
    assert costs == sorted(costs)
    with pytest.raises(NotPrecise, match="too long on power series with 1,000 entries; check at most 200 for a proof"):
        plan(1000, 10, 64, 4, 6)
    assert plan(200, 10 * 1000 / 200, 64, 4, 6).entries >= 1, "an evaluation of fewer entries takes less time"
    with pytest.raises(NotPrecise, match=r"series$"):
        plan(50, 10, 64, 4, 6)


def test_a_reference_on_series_survives_strict_json() -> None:
    found = reference(lambda x: np.sqrt(x), (0.0,), (0,), text=lambda xp, x: xp.sqrt(x))
    known = Reference((), ((0, found),))
    back = Reference.from_plain(json.loads(json.dumps(known.to_plain(), allow_nan=False)))
    assert back == known
    assert judge(0.0, (math.inf,), back.scalar).word == "right"


def test_a_reference_is_computed_once_and_a_damaged_one_again(tmp_path: Path) -> None:
    calls = []

    def compute() -> Reference:
        calls.append(1)
        return of_any_shape(subject_of(plain, (X,), (0,), text=text), Effort())

    key = reference_key("text", (X,), (0,), 0)
    first = cached(tmp_path / "cache", key, key, compute)
    assert cached(tmp_path / "cache", key, key, compute) == first
    assert len(calls) == 1
    (file,) = (tmp_path / "cache").rglob("*.json")
    kept = file.read_bytes()
    edited = kept.replace(b'"outputs"', b'"Outputs"')
    for damage in (b"", b"{", b"null", b'{"value": 3}', kept[:-9], edited, b'{"shape": [], "outputs": [[0]]}'):
        file.write_bytes(damage)
        assert cached(tmp_path / "cache", key, key, compute) == first
    assert len(calls) == 8


def test_an_edited_reference_is_computed_again(tmp_path: Path) -> None:
    key = reference_key("text", (X,), (0,), 0)
    first = cached(tmp_path, key, key, lambda: of_any_shape(subject_of(plain, (X,), (0,), text=text), Effort()))
    (file,) = tmp_path.rglob("*.json")
    edited = file.read_bytes().replace(b"1.4656833097922037", b"1.4656833097922047")
    assert edited != file.read_bytes()
    file.write_bytes(edited)
    assert cached(tmp_path, key, key, lambda: first) == first


def test_a_folder_that_others_can_write_to_is_not_read(tmp_path: Path) -> None:
    key = reference_key("text", (X,), (0,), 0)
    first = of_any_shape(subject_of(plain, (X,), (0,), text=text), Effort())
    calls: list[int] = []

    def compute() -> Reference:
        calls.append(1)
        return first

    cached(tmp_path, key, key, compute)
    (file,) = tmp_path.rglob("*.json")
    file.parent.chmod(0o777)
    cached(tmp_path, key, key, compute)
    assert len(calls) == 2


def test_what_another_text_of_the_oracle_computed_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def compute() -> Reference:
        calls.append(1)
        return of_any_shape(subject_of(plain, (X,), (0,), text=text), Effort())

    for digest in ("before", "after", "after"):
        monkeypatch.setattr(cache, "_text_of_oracle", lambda digest=digest: digest)
        cached(tmp_path, "key", "key", compute)
    assert len(calls) == 2


def test_an_unwritable_folder_only_costs_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    found = cached(blocked / "inside", "key", "key", lambda: of_any_shape(subject_of(plain, (X,), (0,))))
    assert found.scalar.method == DIFFERENCES


def test_the_key_depends_on_everything_that_matters() -> None:
    keys = [
        reference_key(*arguments)
        for arguments in [
            ("a", (X, 2), (0,), 0),
            ("b", (X, 2), (0,), 0),
            ("a", (X + 1e-16 * X.max() * 4, 2), (0,), 0),
            ("a", (X, 2.0), (0,), 0),
            ("a", (X, 2), (0, 1), 0),
            ("a", (X, 2), (0,), 1),
            ("a", (X.reshape(1, 7), 2), (0,), 0),
            ("a", ({"x": X}, 2), (0,), 0),
        ]
    ]
    assert len(set(keys)) == len(keys)
    assert reference_key("a", (X.copy(), 2), (0,), 0) == keys[0]
    assert reference_key("a", (X, 2), (0,), 0, max_entries=3) != keys[0]
