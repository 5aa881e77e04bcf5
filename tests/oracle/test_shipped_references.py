"""Shipped references: found by the key of a check, equal to computed ones, and never required."""

from pathlib import Path
from typing import Any

import pytest

from adbench.catalog.dependencies import text_of
from adbench.catalog.discovery import catalog
from adbench.execution.workers.worker import WorkerState, answer
from adbench.oracle import cache
from adbench.oracle.reference import Reference
from scripts import references

ANEW = "run ./scripts/references on an idle machine"
KNOWN = catalog()
REQUESTS = [request for request in references.requests(KNOWN) if request["effort_seconds"] <= 5.0]
"""Those of a check, in so little time that tests may compute some."""
SAMPLE = ("bundle_adjustment", "eight_schools", "gaussian_process", "hypot", "lotka_volterra", "trap_repeated_gather")
ESTIMATES = ("bar", "noise")  # of errors: other processors may change their digits


def asked(request: dict[str, Any], folder: Path) -> Any:
    found = answer(WorkerState(), request | {"cache": str(folder)})
    assert "value" in found, found
    return found["value"]


def agree(ours: Any, theirs: Any, name: str = "") -> bool:
    """Whether two references as plain data agree up to the last digits of numbers."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(agree(ours[key], theirs[key], key) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(ours, float):
        return bool(ours == pytest.approx(theirs, rel=0.5 if name in ESTIMATES else 1e-12))
    return bool(ours == theirs)


@pytest.mark.parametrize("name", SAMPLE)
def test_shipped_references_equal_computed_ones(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = next(request for request in REQUESTS if request["case"]["name"] == name)
    found = asked(request, tmp_path)
    assert not list(tmp_path.iterdir()), f"nothing is shipped for {name}, or it is stale; {ANEW}"
    monkeypatch.setattr(cache, "SHIPPED", tmp_path / "none.xz")
    assert agree(asked(request, tmp_path), found), f"{name}: its reference has changed; {ANEW}"
    assert list(tmp_path.rglob("*.json")), "computed and cached"


@pytest.mark.slow
def test_nearly_all_references_of_checks_and_runs_are_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly everything, because some inputs come from LAPACK, whose last digits differ between machines."""
    shipped, missing = cache.shipped(cache.SHIPPED), set()

    def only_shipped(_folder: Path, _key: str, shipped_as: str, _compute: Any) -> Any:
        if shipped_as not in shipped:
            raise KeyError(shipped_as)
        return Reference.from_plain(shipped[shipped_as])

    monkeypatch.setattr(cache, "cached", only_shipped)
    requests = references.requests(KNOWN)
    for request in requests:
        asked = request | {"cache": str(tmp_path), "reference_seconds": 2.0}
        del asked["effort_seconds"]  # as a check asks
        if "value" not in answer(WorkerState(), asked):
            missing.add(f"{request['case']['name']} at {request['size']}")
    assert len(missing) <= 0.1 * len(requests), f"{ANEW}; not shipped: {sorted(missing)}"


@pytest.mark.parametrize("damage", ["missing", "not compressed", "cut short", "of another form"])
def test_unreadable_references_are_computed(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = next(request for request in REQUESTS if request["case"]["name"] == "hypot")
    expected = asked(request, tmp_path / "shipped")
    file = tmp_path / f"{damage}.xz"
    if damage == "not compressed":
        file.write_text("{}")
    elif damage == "cut short":
        file.write_bytes(cache.SHIPPED.read_bytes()[:-100])
    elif damage == "of another form":
        keys = cache.shipped(cache.SHIPPED)
        (tmp_path / "other").mkdir()
        for key in keys:
            (tmp_path / "other" / f"{key}.json").write_text('{"value": 1}')
        assert cache.pack(tmp_path / "other", file) == len(keys)
    monkeypatch.setattr(cache, "SHIPPED", file)
    assert agree(asked(request, tmp_path / "kept"), expected)
    assert list((tmp_path / "kept").rglob("*.json")), "computed anew"


def test_a_changed_case_or_oracle_uses_no_shipped_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.reference_key("text", (1.0,), (0,), 0)
    assert key not in cache.shipped(cache.SHIPPED)
    monkeypatch.setattr(cache, "ORACLE_VERSION", cache.ORACLE_VERSION + 1)
    assert cache.reference_key("text", (1.0,), (0,), 0) != key


def test_the_source_of_a_case_has_the_files_that_it_imports_and_no_others(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.py" for name in ("case", "_direct", "_indirect", "_other")}
    for name, text in zip(files, ("from ._direct import x", "from . import _indirect", "y = 1", "z = 1"), strict=True):
        files[name].write_text(text, encoding="utf-8")
    before = text_of(files["case"])
    files["_other"].write_text("z = 2", encoding="utf-8")
    assert text_of(files["case"]) == before
    files["_indirect"].write_text("y = 2", encoding="utf-8")
    assert text_of(files["case"]) != before
