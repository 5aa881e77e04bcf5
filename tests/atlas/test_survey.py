"""The search over releases, with environments and outcomes that are made up."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from adbench.atlas.making import made
from adbench.atlas.outcomes import NotRun
from adbench.atlas.survey import Found, SurveyPlan, between, spread
from adbench.atlas.table import Atlas
from adbench.bisection.environments import Environments, NotInstalled
from adbench.bisection.interpreters import RUNNING, Interpreter
from adbench.bisection.releases import Release

OLD, NEW = Interpreter(Path("/python3.11"), "3.11.7"), Interpreter(Path("/python3.13"), "3.13.0")
NAMES = tuple(str(k) for k in range(20))
TRAPS = ("always", "never", "repaired", "appears", "comes_and_goes")


@dataclass(frozen=True)
class MadeUp(Environments):
    """No environment is made; its Python is called as the release."""

    missing: frozenset[str] = frozenset()
    only_new: frozenset[str] = frozenset()

    def python(self, release: Release, spare: Any = ()) -> tuple[Path, bool]:
        if release.name in self.missing:
            raise NotInstalled("needs numpy<2")
        if release.name in self.only_new and self.interpreter != NEW:
            raise NotInstalled("needs Python 3.13")
        return Path(release.name), False


@dataclass
class Planted:
    """`repaired` in 7, `appears` in 12, `comes_and_goes` from 9 to 14; `broken` releases do not run."""

    broken: frozenset[str] = frozenset()
    stop: str = ""
    ran: dict[str, list[str]] = field(default_factory=dict)

    def __call__(self, python: Path, release: Release, traps: Any) -> Found:
        if release.name == self.stop:
            raise KeyboardInterrupt
        if release.name in self.broken:
            raise NotRun("ImportError: no module named old_numpy")
        assert not set(traps) & set(self.ran.get(release.name, [])), "run twice"
        self.ran.setdefault(release.name, []).extend(traps)
        return {trap: self.of(trap, int(release.name)) for trap in traps}

    def of(self, trap: str, k: int) -> dict[str, tuple[str, str, str]]:
        faulty = {"always": True, "repaired": k < 7, "appears": k >= 12, "comes_and_goes": 9 <= k < 15}.get(trap, False)
        cell = ("n", "x = nan", "1") if faulty else ("r", "", "")
        return {"gradient": cell, "hvp": cell}


def atlas(
    folder: Path, runner: Planted, *, told: Any = None, stored: Any = None, full: int = 4, **more: set[str]
) -> Atlas:
    every = tuple((Release(name, f"fakead=={name}"), (OLD, NEW)) for name in NAMES)
    plan = SurveyPlan("fakead", "fake", "fake", every, TRAPS, full)
    missing, only_new = (frozenset(more.get(name, ())) for name in ("missing", "only_new"))
    environments = MadeUp(folder, "pip", missing=missing, only_new=only_new)
    return made(plan, environments, told or (lambda _: None), stored or (lambda _: None), "2026-01-01", runner=runner)


def outcomes(found: Atlas) -> dict[str, str]:
    return {row.name: row.outcomes for row in found.traps}


def test_a_fault_that_appears_and_one_that_is_repaired_are_found_by_bisection(tmp_path: Path) -> None:
    runner = Planted()
    found = outcomes(atlas(tmp_path, runner))
    assert found["repaired"].lower() == "n" * 7 + "r" * 13
    assert found["appears"].lower() == "r" * 12 + "n" * 8
    assert found["comes_and_goes"].lower() == "r" * 9 + "n" * 6 + "r" * 5
    assert found["always"] == "".join("N" if k in (0, 6, 13, 19) else "n" for k in range(20))
    assert [k for k in range(20) if "never" in runner.ran.get(str(k), [])] == [0, 6, 13, 19]
    assert sum(map(len, runner.ran.values())) < 4 * len(TRAPS) + 4 * 4  # of 100


def test_the_two_releases_at_a_change_were_run(tmp_path: Path) -> None:
    found = outcomes(atlas(tmp_path, Planted()))
    assert found["repaired"][6:8] == "NR"
    assert found["appears"][11:13] == "RN"


@pytest.mark.parametrize("k", [0, 6, 7, 12, 13, 19])
def test_a_release_that_cannot_be_installed_is_a_cell_with_the_reason(tmp_path: Path, k: int) -> None:
    found = atlas(tmp_path, Planted(), missing={str(k)})
    assert found.releases[k].reason == "not installed: needs numpy<2"
    assert {row.outcomes[k] for row in found.traps} == {"-"}
    whole = outcomes(atlas(tmp_path / "whole", Planted()))
    for name, row in outcomes(found).items():
        same = [row[i].lower() in (whole[name][i].lower(), "q") for i in range(20) if i != k]
        assert all(same), (name, row)


def test_a_release_that_does_not_run_is_tried_with_each_python(tmp_path: Path) -> None:
    found = atlas(tmp_path, Planted(broken=frozenset({"6"})), only_new={"13"})
    assert found.releases[6].reason == "does not run: ImportError: no module named old_numpy"
    assert [found.releases[k].python for k in (0, 6, 13)] == ["3.11.7", "", "3.13.0"]
    assert outcomes(found)["repaired"].lower() == "nnnnnn-rrrrrrrrrrrrr"


def test_an_interrupted_atlas_resumes(tmp_path: Path) -> None:
    first = Planted(stop="13")
    kept: list[Atlas] = []
    with pytest.raises(KeyboardInterrupt):
        atlas(tmp_path, first, stored=kept.append)
    assert list(first.ran) == ["0", "6"]
    assert [row.outcomes for row in kept[-1].traps if row.name == "always"] == ["NnnnnnN" + "q" * 13]
    journal = next((tmp_path / "journals").iterdir())
    journal.write_text(journal.read_text("utf-8") + '{"release": "13", "fou', "utf-8")
    again = Planted()
    found = atlas(tmp_path, again)
    assert not {"always", "never"} & set(again.ran.get("0", []) + again.ran.get("6", []))
    assert found == atlas(tmp_path / "whole", Planted())
    last = Planted()
    assert atlas(tmp_path, last) == found
    assert not last.ran


def test_a_release_that_could_not_be_installed_is_tried_again(tmp_path: Path) -> None:
    assert atlas(tmp_path, Planted(), missing={"0"}).releases[0].reason
    assert not atlas(tmp_path, Planted()).releases[0].reason


def test_other_cases_begin_again(tmp_path: Path) -> None:
    atlas(tmp_path, Planted())
    runner = Planted()
    every = tuple((Release(name, f"fakead=={name}"), (RUNNING,)) for name in NAMES)
    plan = SurveyPlan("fakead", "fake", "fake", every, TRAPS, 2)
    for files, ran in (((), False), (("another digest",), True)):
        made(replace(plan, files=files), MadeUp(tmp_path, "pip"), lambda _: None, lambda _: None, "", runner=runner)
        assert bool(runner.ran) is ran


def test_the_places_are_spread_evenly_with_both_ends() -> None:
    assert spread(20, 4) == [0, 6, 13, 19]
    assert spread(3, 6) == [0, 1, 2]
    assert spread(1, 6) == [0]
    assert spread(32, 2) == [0, 31]


def test_the_middle_between_two_releases_that_differ_is_next() -> None:
    states: list[dict[str, Any]] = [{"a": ("n",), "b": ()}, {}, {}, {}, {"a": (), "b": ()}]
    assert between(states, frozenset()) == {2: {"a"}}
    assert between(states, frozenset({2})) == {3: {"a"}}
    assert between(states, frozenset({1, 2, 3})) == {}
