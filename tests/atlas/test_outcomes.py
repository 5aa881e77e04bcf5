"""Results of a release as kinds of outcomes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adbench.atlas import making
from adbench.atlas.outcomes import NotRun, cell_of, outcomes_of, short
from adbench.atlas.survey import SurveyPlan
from adbench.bisection.releases import Release
from adbench.execution.session import prepare
from adbench.model.record import Record, Run
from tests.bisection.fake_library import BACKEND
from tests.support.files import CASE, write

BROKEN = BACKEND.replace("import fakead\n", "").replace('REQUIRES = ("fakead",)\n', "")
ANSWERS = {
    "right": "1 / (1 + np.exp(-x))",
    "wrong": "x",
    "nan": "x * np.nan",
    "raises": "[][0]",
}


def checked(folder: Path, formula: str) -> Run:
    """The run of one case on a backend with this gradient."""
    text = BROKEN.replace("fakead.gradient(x)", formula).replace("from adbench", "import numpy as np\nfrom adbench")
    write(folder, softplus=CASE, fake=text)
    session = prepare(
        cases=[str(folder / "softplus.py")], backends=[str(folder / "fake.py")], operators=["gradient", "hvp"],
        sizes=["1"], time=False, memory=False, quick=True,
    )  # fmt: skip
    for _ in session.events():
        pass
    return session.result()


@pytest.mark.parametrize(("name", "kind"), [("right", "r"), ("wrong", "w"), ("nan", "n"), ("raises", "e")])
def test_a_gradient_has_its_kind_and_both_results(tmp_path: Path, name: str, kind: str) -> None:
    found = outcomes_of(checked(tmp_path, ANSWERS[name]), "fake", "1.0")["softplus"]
    assert found["hvp"] == ("u", "", "")
    got = found["gradient"]
    assert got[0] == kind
    assert {"r": got[1:] == ("", ""), "e": "IndexError" in got[1], "n": got[1] == "x = nan"}.get(
        kind, got[1][:4] == "x = "
    )
    assert (got[2] != "") == (kind in "nw")


def test_a_known_fault_is_a_fault(tmp_path: Path) -> None:
    (record, _) = checked(tmp_path, ANSWERS["nan"]).records
    known = replace(record, status="known", reason="nan: 0/0. Here: 1 of 1 wrong")
    assert cell_of(known) == cell_of(record)
    raised = Record(record.job, "known", "raises: singular. Here: LinAlgError: Singular matrix")
    assert cell_of(raised) == ("e", "LinAlgError: Singular matrix", "")
    assert cell_of(replace(raised, status="crashed", reason="killed by signal 11")) == ("c", "killed by signal 11", "")
    assert cell_of(replace(raised, status="timed_out")) == ("q", "", "")


def test_a_library_that_cannot_be_imported_has_no_results(tmp_path: Path) -> None:
    run = checked(tmp_path, ANSWERS["right"])
    reason = "jax cannot be imported: ImportError: no module named old"
    failed = tuple(Record(record.job, "failed", reason) for record in run.records)
    with pytest.raises(NotRun, match="no module named old"):
        outcomes_of(replace(run, records=failed), "fake", "1.0")


def test_operations_have_the_faults_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = {"operator": "gradient", "kind": "nan", "got": "nan", "expected": "1.0", "point": {"x": 0.0}}
    cells = [
        {"operation": "sqrt", "refused": {"third_order": "none"}, "checked": 9,
         "faults": [fault, {**fault, "operator": "jvp", "kind": "hangs"}, {**fault, "kind": "wrong"}]},
        {"operation": "exp", "refused": {}, "checked": 9, "faults": []},
    ]  # fmt: skip
    asked: list[Any] = []

    def ran(command: list[str], **_: Any) -> tuple[int, str, str]:
        asked.append(command)
        return 1, json.dumps({"libraries": {"fake": "1.0"}, "cells": cells}), ""

    monkeypatch.setattr(making, "ran", ran)
    plan = SurveyPlan("fakead", "fake", "fake", (), ("sqrt", "exp"))
    found = making.of_operations(plan)(Path("python"), Release("1.0", ""), ["sqrt", "exp"])
    assert found["exp"] == {"gradient": ("r", "", "")}
    assert found["sqrt"] == {
        "gradient": ("n", "nan at x = 0.0", "1.0"),
        "jvp": ("c", "nan at x = 0.0", "1.0"),
        "third_order": ("u", "", ""),
    }
    assert asked[0][-4:] == ["--operation", "sqrt", "--operation", "exp"]
    with pytest.raises(NotRun, match=r"its environment has 1\.0"):
        making.of_operations(plan)(Path("python"), Release("1.1", ""), ["sqrt"])
    monkeypatch.setattr(making, "ran", lambda *_, **__: (2, "", "adbench: no backend 'fake'\n"))
    with pytest.raises(NotRun, match="no backend 'fake'"):
        making.of_operations(plan)(Path("python"), Release("1.0", ""), ["sqrt"])


def test_a_text_names_no_folder_of_this_machine() -> None:
    assert short("importing it: /tmp/a-b/core.1/backends/mygrad.py: 1/2 of a/b\n at https://x.org/a/b") == (
        "importing it: mygrad.py: 1/2 of a/b at https://x.org/a/b"
    )
