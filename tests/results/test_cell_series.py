"""A cell over stored runs: the backend that changed is named, with its run; correctness is followed run by run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adbench.model.record import Job, Run
from adbench.results.comparison_inputs import ComparisonInput
from adbench.results.store import write_run
from adbench.results.timeline.cell_series import CellSeries, cell_series, timelines
from tests.reports import runs
from tests.support.command import adbench
from tests.support.sessions import Changes, input_of, run, times

THREE = ("tape", "jax", "torch")
RUNS = 8


def sides(
    changes: Mapping[int, Changes], backends: tuple[str, ...] = THREE, *, seed: int = 0, reference: str | None = "tape"
) -> list[ComparisonInput]:
    """Runs whose days differ by 5 %; `changes` begin with the run of their number."""
    rng = np.random.default_rng(seed)
    found = []
    now: Changes = {}
    for k in range(RUNS):
        now = changes.get(k, now)
        logs = times(rng, backends, cases=2, launches=6, rounds=4, session=rng.normal(0, 0.05), changes=now)
        found.append(input_of(f"r{k}", logs, reference=reference, created=f"2026-01-{k + 1:02}T00:00:00+00:00"))
    return found


def changed(found: list[CellSeries]) -> dict[tuple[str, str], list[int]]:
    """(case, backend) -> the runs at which its time changed beyond doubt."""
    by_cell = {(one.job.case, one.job.backend): one for one in found}
    places = {cell: [c.first for c in one.time_changes if c.doubt is None] for cell, one in by_cell.items()}
    return {cell: at for cell, at in places.items() if at}


def test_days_that_differ_are_no_change() -> None:
    assert [seed for seed in range(5) if changed(cell_series(sides({}, seed=seed)))] == []


@pytest.mark.parametrize("backend", ["jax", "tape"])
def test_the_backend_that_changed_is_named_also_if_it_is_the_reference(backend: str) -> None:
    found = cell_series(sides({5: {backend: 1.2}}))
    assert changed(found) == {("case0", backend): [5], ("case1", backend): [5]}
    change = next(one for one in found if one.job.backend == backend).time_changes[0]
    assert (change.earliest, change.latest) == (5, 5)
    assert change.ratio.low < 1.2 < change.ratio.high
    assert change.ratio.high / change.ratio.low < 1.1
    assert all(not one.time_changes for one in found if one.job.backend != backend)


def test_a_change_that_the_clock_does_not_show_is_in_doubt() -> None:
    found = cell_series(sides({4: {"tape": 1 / 1.2}}, ("tape", "jax")))
    assert ("case0", "jax") not in changed(found)


def test_without_another_backend_a_run_counts_once() -> None:
    alone = cell_series(sides({4: {"jax": 1.5}}, ("jax",), reference=None))
    assert {one.basis for one in alone} == {"clock"}
    assert not any(one.time_changes for one in alone)
    assert "8 runs, without another backend in them, are too few for 2 cells" in str(alone[0].undecided)


def test_right_and_wrong_are_followed_over_runs_that_lack_the_cell() -> None:
    every = sides({})
    job = Job("case0", 10, "jax", "gradient")
    for k, state in ((3, "wrong"), (4, "absent"), (5, "wrong"), (6, "failing")):
        sample = replace(every[k].samples[job], state=state, reason=f"in r{k}")
        every[k] = replace(every[k], samples={**every[k].samples, job: sample})
    found = next(one for one in cell_series(every) if one.job == job)
    assert [(c.run, c.before, c.after, c.reason) for c in found.state_changes] == [
        (3, "right", "wrong", "in r3"),
        (7, "failing", "right", None),
    ]
    assert found.states[4] is None
    assert found.seconds[3] is None


def test_machines_are_apart() -> None:
    here, there = sides({}), [replace(one, machine="processor q; threads 1") for one in sides({0: {"jax": 3.0}})]
    found = timelines([*there, *here])
    assert [len(one.runs) for one in found] == [RUNS, RUNS]
    assert not any(changed(list(one.cells)) for one in found)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Six stored runs: jax is slower from the fourth on, and torch is wrong in the fifth."""

    def stored(k: int) -> Run:
        rng = np.random.default_rng(k)
        logs = times(rng, THREE, cases=2, launches=6, rounds=4, changes={(0, "jax"): 1.25 if k >= 3 else 1.0})
        found = run(logs, created=f"2026-01-{k + 1:02}T10:00:00+00:00", seed=k)
        wrong = [
            replace(r, status="wrong", reason="sigma <is> off", time=None, verdict=runs.verdict("wrong"))
            if k == 4 and r.job.backend == "torch" and r.job.case == "case1"
            else r
            for r in found.records
        ]
        settings = found.settings | {"label": "nightly"}
        return replace(found, records=tuple(wrong), settings=settings)

    for k in range(6):
        folder = tmp_path / "results" / f"r{k}"
        folder.mkdir(parents=True)
        write_run(folder, stored(k))
    return tmp_path


def test_history_names_the_runs_of_all_changes(results: Path) -> None:
    done = adbench(results, "history", "--html", "page.html")
    assert (done.code, done.err) == (0, "")
    flat = " ".join(done.out.split())
    assert "(nightly)" in done.out
    assert "6 runs: 2 of 6 cells changed" in flat
    assert "case0[10]-jax-gradient ▲ slower since results/r3: 1.2" in flat
    assert "case1[10]-torch-gradient ✗ wrong since results/r4: was right; sigma <is> off ✓ right since" in flat
    page = (results / "page.html").read_text("utf-8")
    assert "sigma &lt;is&gt; off" in page
    assert "▲ slower" in page
    assert max(map(len, adbench(results, "history", COLUMNS="50").out.splitlines())) <= 50


def test_a_chosen_cell_is_shown_run_by_run_and_machines_read_everything(results: Path) -> None:
    done = adbench(results, "history", "-c", "case0", "-b", "jax")
    assert (done.code, done.err) == (0, "")
    assert "1 of 1 cell changed" in done.out
    table = done.out[done.out.index("relative to tape", done.out.index("time before") + 40) :].splitlines()[1:]
    assert [line.split()[0] for line in table] == [f"results/r{k}" for k in range(6)]
    assert ["▲" in line for line in table] == [k == 3 for k in range(6)]
    data = json.loads(adbench(results, "history", "--json", "-b", "jax").out)
    (machine,) = data["machines"]
    assert len(data["runs"]) == 6
    assert {cell["backend"] for cell in machine["cells"]} == {"jax"}
    (change,) = machine["cells"][0]["time_changes"]
    assert (change["first"], change["run"], change["doubt"]) == (3, "results/r3", None)
    assert 1.2 < change["ratio"]["low"] < 1.25 < change["ratio"]["high"] < 1.3


def test_a_cell_that_no_run_has_is_one_line(results: Path) -> None:
    done = adbench(results, "history", "-c", "nothing")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "no run in results has such a cell" in done.err
