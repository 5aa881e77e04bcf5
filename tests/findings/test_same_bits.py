"""`--same-bits`: planted functions whose calls, threads, batches or sums have other bits are named, and no others."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.ad_hoc import ad_hoc
from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.execution.workers import channel
from adbench.findings.same_bits import bits_matrix
from adbench.findings.same_bits import repetitions as worker
from adbench.findings.same_bits.repetitions import BitDifference
from adbench.findings.same_bits.same_bits import BitRow, SameBits, repetitions
from adbench.functions.libraries import double_precision
from adbench.model.backend import Backend, from_module
from adbench.model.errors import UsageError
from adbench.oracle.evidence import BRAIN, DOUBLE
from tests.support.command import adbench

PLANTED = """
import os
import numpy as np

CALLS = []

def steady(x, w): return np.sin(x) * w
def noisy(x):
    CALLS.append(1)
    return np.sum(x * x) * (1.0 + 2.0**-52 * (len(CALLS) % 3))
def threaded(x):
    return x[0] + (x[1] + x[2]) if os.environ.get("OMP_NUM_THREADS") == "2" else (x[0] + x[1]) + x[2]
def batched(x): return np.sin(x) * (1.0 + 2.0**-52 * (len(x) < 8))
def padded(x): return np.sin(x) * (1.0 + 2.0**-52 * (len(x) > 8))
def added(x, w): return np.sum(x @ w)
def mean(x, w): return np.mean(np.exp(x @ w))
def whole(x): return np.sum(x) ** 2
def of_torch(x, w):
    import torch
    return torch.sum(torch.softmax(x @ w, 0))
"""
X, ROWS, W = [0.1 * k + 0.3 for k in range(8)], [[0.1 * k + 0.3, 1.7 / (k + 1)] for k in range(8)], [0.7, -0.9]


@pytest.fixture(scope="module")
def tape() -> Backend:
    return from_module("tape", load(resolve(backends=["tape"]).catalog.backends["tape"]))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "planted_bits.py"
    path.write_text(PLANTED, encoding="utf-8")
    return path


def rows_of(
    file: Path, name: str, at: list[Any], backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> dict[str, BitRow]:
    """The rows, with workers that run in this process."""

    def ask(process: int, function: str, request: Mapping[str, Any]) -> Any:
        monkeypatch.setenv("OMP_NUM_THREADS", "2" if process == 3 else "1")
        answer = getattr(worker, function)(backend, json.loads(json.dumps(request)))
        return json.loads(json.dumps(answer, default=channel._plain), object_hook=channel._restored)

    named = ad_hoc(f"{file}:{name}", list(map(json.dumps, at)), double=False)
    monkeypatch.setattr("adbench.findings.same_bits.same_bits.usable_cpus", lambda: (0, 1))
    with double_precision():
        return {row.kind: row for row in repetitions(ask, {"named": asdict(named), "size": 1, "seed": 0})}


@pytest.mark.parametrize(
    ("name", "at", "differing"),
    [
        ("steady", [X, X], set()),
        ("noisy", [X], {"repeat"}),
        ("threaded", [[1.0, 2.0**-53, 2.0**-53]], {"threads"}),
        ("batched", [X], {"batch"}),
        ("padded", [X], {"padding"}),
        ("added", [ROWS, W], {"chunks"}),
        ("mean", [ROWS, W], {"chunks"}),
    ],
)
def test_only_the_planted_kind_of_repetition_differs(
    name: str, at: list[Any], differing: set[str], file: Path, tape: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(file, name, at, tape, monkeypatch)
    named = {kind for kind, row in rows.items() if row.word == "differs"}
    assert (named & differing if name == "noisy" else named) == differing
    for kind in differing:
        difference = rows[kind].difference
        assert difference is not None
        assert 0 < difference.ulp < 100
        assert f"{difference.place} is " in str(rows[kind])
    assert SameBits(name, "tape", "", tuple(rows.values())).differs == (name in ("noisy", "threaded"))


def test_a_function_without_a_batch_axis_has_no_batches(
    file: Path, tape: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(file, "whole", [X], tape, monkeypatch)
    assert {row.word for row in rows.values()} == {"same", "–"}
    assert rows["batch"].reason == rows["chunks"].reason == "the function has no batch axis"


@pytest.mark.slow
def test_the_reduction_on_the_way_to_a_gradient_is_named_where_the_program_is_known(file: Path, tape: Backend) -> None:
    pytest.importorskip("torch")
    named = ad_hoc(f"{file}:of_torch", list(map(json.dumps, [ROWS, W])), double=False)
    request = {"named": asdict(named), "size": 1, "seed": 0, "which": 2}
    with double_precision():
        torch = from_module("torch", load(resolve(backends=["torch"]).catalog.backends["torch"]))
        assert "mv" in worker.reduction(torch, request)
        assert "sum" in worker.reduction(torch, {**request, "which": 0})
    assert worker.reduction(tape, request) == ""


@pytest.mark.parametrize(
    ("first", "again", "ulp"),
    [
        (1.0, 1.0, None),
        (math.nan, math.nan, None),
        (0.0, -0.0, 0.0),
        (1.0, 1.0 + 2.0**-52, 1.0),
        (1.0, math.inf, math.inf),
    ],
)
def test_bits_are_compared_with_the_sign_of_zero(first: float, again: float, ulp: float | None) -> None:
    found = BitDifference.between(["x"], [np.array([2.0, first])], [np.array([2.0, again])], [DOUBLE])
    assert (found and (found.place, found.ulp)) == (None if ulp is None else ("x[1]", ulp))


def test_ulps_are_those_of_the_type() -> None:
    found = BitDifference.between(["x"], [np.array(1.0)], [np.array(1.0 + 2.0**-7)], [BRAIN])
    assert found is not None
    assert (found.place, found.ulp, found.type) == ("x", 1.0, "bfloat16")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--same-bits"], "--same-bits needs a function; add --function module:f"),
        (["--function", "{}:steady", "--at", "1.0", "2.0", "--same-bits", "--points", "3"], "--points has no meaning"),
        (["--function", "{}:steady", "--at", "1.0", "2.0", "--same-bits", "--variants"], "--variants has no meaning"),
        (["--function", "{}:steady", "--at", "1.0", "2.0", "--same-bits", "-n", "3"], "-n has no meaning"),
        (["--function", "{}:nothing", "--at", "1.0", "--same-bits"], "no function or object 'nothing'"),
        (["--function", "{}:of_torch", "--at", "1.0", "[1.0]", "--same-bits", "-b", "jax"], "is written for torch"),
    ],
)
def test_a_wrong_use_is_one_clear_line(words: list[str], says: str, file: Path, tmp_path: Path) -> None:
    result = adbench(tmp_path, "check", *(word.format(file) for word in words))
    assert (result.code, len(result.err.splitlines())) == (2, 1), result
    assert says in result.err


def test_every_operation_of_the_matrix_has_a_batch_axis(tape: Backend) -> None:
    for number, name in enumerate(bits_matrix.ROW_OPERATIONS):
        module = bits_matrix.__name__
        named = ad_hoc(f"{module}:operation_{number}", inputs=f"{module}:inputs_{number}", double=False)
        with double_precision():
            f = worker.Repeated(named, 1, tape)
            batch = f._batch(f.run(f.leaves, f.weights))
        assert batch is not None, name
        assert batch.kind == {"sum of all": "sum", "mean of all": "mean"}.get(name, "rows")
    with pytest.raises(AttributeError):
        _ = bits_matrix.operation_of_nothing


def test_a_matrix_is_computed_by_four_processes_and_survives_its_file(
    tape: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = set[int]()

    @contextmanager
    def asking(*_: Any) -> Iterator[Any]:
        def ask(process: int, function: str, request: Mapping[str, Any]) -> Any:
            processes.add(process)
            if "operation_1'" in repr(request["named"]):
                raise UsageError("it refuses")
            return getattr(worker, function)(tape, json.loads(json.dumps(request)))

        yield ask

    monkeypatch.setattr(bits_matrix, "asking", asking)
    with double_precision():
        found = bits_matrix.bits_matrix(["tape"], ["sum of all", "mean of all"])
    assert processes >= {0, 1, 2}
    assert [(cell.function, cell.differs) for cell in found.cells] == [("sum of all", False)]
    assert found.refused == (("mean of all", "tape", "it refuses"),)
    assert bits_matrix.BitsMatrix.from_plain(json.loads(json.dumps(found.to_plain())), Path("x")) == found
