"""The whole search, with environments and judgements that are made up: which releases it installs, and how it ends."""

from dataclasses import dataclass, field, replace
from math import ceil, log, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.bisection.bisect import Bisection, TooNoisy, bisect
from adbench.bisection.environments import Environments, NotInstalled
from adbench.bisection.judge import CellJudge, Undecided
from adbench.bisection.question import Question
from adbench.bisection.releases import Release
from adbench.model.errors import UsageError
from adbench.reports.text.terminal import bisection as shown


@dataclass(frozen=True)
class MadeUp(Environments):
    """No environment is made; a Python is the name of a release."""

    missing: frozenset[str] = frozenset()
    installed: list[str] = field(default_factory=list)

    def python(self, release: Release, spare: Any = ()) -> tuple[Path, bool]:
        if release.name in self.missing:
            raise NotInstalled("needs another Python")
        existed = release.name in self.installed
        if not existed:
            self.installed.append(release.name)
        return Path(release.name), existed


@dataclass(frozen=True)
class Planted(CellJudge):
    """Releases from `first` to before `last` are wrong, or slower by `times`; `broken` ones fail, `stop` interrupts."""

    first: int = 0
    last: int = 99
    times: float = 1.5
    noise: float = 0.01
    broken: frozenset[str] = frozenset()
    stop: str = ""
    judged: list[str] = field(default_factory=list)
    rng: Any = None

    def _begin(self, python: Path) -> bool:
        if python.name == self.stop:
            raise KeyboardInterrupt
        if python.name in self.broken:
            raise Undecided("gradient: failed: no such function")
        self.judged.append(python.name)
        return self.first <= int(python.name) < self.last

    def wrong(self, python: Path) -> str | None:
        return "gradient: x[1]: got 2.0, expected 1.0" if self._begin(python) else None

    def launches(self, python: Path, count: int) -> list[float]:
        at = log(self.times) if self._begin(python) else 0.0
        return list(at + self.noise * self.rng.normal(size=count))


RELEASES = tuple(Release(str(k), f"fakead=={k}") for k in range(16))


def asked(folder: Path, *, margin: float | None = None, ends: tuple[str, str] = ("0", "15"), **more: Any) -> Bisection:
    """The bisection of sixteen releases."""
    question = Question("fakead", RELEASES, *ends, "fake", {}, margin)
    environments = MadeUp(folder, "pip", missing=frozenset(more.pop("missing", ())))
    judge = Planted({}, "fake", rng=np.random.default_rng(1), **more)
    return bisect(question, environments, lambda text: None, judge)


@pytest.mark.parametrize("margin", [None, 0.2])
@pytest.mark.parametrize("first", [1, 2, 7, 8, 14, 15])
def test_it_finds_the_first_bad_release_and_installs_few(tmp_path: Path, first: int, margin: float | None) -> None:
    found = asked(tmp_path, margin=margin, first=first)
    assert [each.name for each in found.culprits] == [str(first)]
    assert found.installed <= ceil(log2(16)) + 2 == found.most_installed
    assert (found.slowdown is None) == (margin is None)
    assert margin is None or found.slowdown == pytest.approx(1.5, rel=0.02)
    assert not list((tmp_path / "journals").iterdir())


@pytest.mark.parametrize("margin", [None, 0.2])
def test_it_finds_the_release_with_the_fix_if_bad_is_older(tmp_path: Path, margin: float | None) -> None:
    found = asked(tmp_path, margin=margin, ends=("15", "0"), first=0, last=5)
    assert [each.name for each in found.culprits] == ["5"]
    assert "First good release: 5" in shown.text(found, 100)


def test_a_release_that_cannot_be_installed_or_judged_is_skipped(tmp_path: Path) -> None:
    found = asked(tmp_path, first=9, missing={"7", "8"}, broken=frozenset({"10"}))
    assert [each.name for each in found.culprits] == ["7", "8", "9"]
    text = shown.text(found, 100)
    assert "First bad release: one of 7, 8, 9; those before 9 were skipped" in text
    assert "needs another Python" in text


def test_skipped_releases_away_from_the_change_do_not_matter(tmp_path: Path) -> None:
    found = asked(tmp_path, first=3, missing={"7", "8", "9"}, broken=frozenset({"10"}))
    assert [each.name for each in found.culprits] == ["3"]


@pytest.mark.parametrize(
    ("margin", "more", "said"),
    [
        (None, {"first": 0}, "0 is not good, it is bad: gradient: x[1]: got 2.0, expected 1.0"),
        (None, {"first": 99}, "15 is not bad, it is good: every derivative that was checked is correct"),
        (None, {"first": 9, "missing": {"0"}}, "0 is not good, it is not installed: needs another Python"),
        (None, {"first": 9, "broken": frozenset({"15"})}, "15 is not bad, it is undecided: gradient: failed"),
        (0.2, {"first": 99}, "15 is not bad: 15 takes 1.00 times the time of 0, which is not 20% slower"),
        (0.2, {"first": 9, "times": 1.05}, "which is not 20% slower"),
        (0.2, {"first": 9, "times": 0.5}, "which is not 20% slower"),
    ],
)
def test_good_must_be_good_and_bad_must_be_bad(
    tmp_path: Path, margin: float | None, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        asked(tmp_path, margin=margin, **more)
    assert said in str(refused.value)
    assert not list((tmp_path / "journals").iterdir())


def test_noise_beyond_the_margin_is_too_noisy_to_decide(tmp_path: Path) -> None:
    with pytest.raises(TooNoisy, match=r"too noisy to decide about a margin of 20%: .* in 24 launches of each"):
        asked(tmp_path, margin=0.2, first=9, times=1.2, noise=1.0)


@pytest.mark.parametrize("margin", [None, 0.2])
def test_an_interrupted_bisection_resumes_with_what_it_had_decided(tmp_path: Path, margin: float | None) -> None:
    question = Question("fakead", RELEASES, "0", "15", "fake", {}, margin)
    judge = Planted({}, "fake", first=6, stop="6", rng=np.random.default_rng(1))
    environments = MadeUp(tmp_path, "pip")
    with pytest.raises(KeyboardInterrupt):
        bisect(question, environments, lambda text: None, judge)
    assert {"0", "15", "8", "4"} <= set(judge.judged) < {str(k) for k in range(16)}
    journal = next((tmp_path / "journals").iterdir())
    journal.write_text(journal.read_text("utf-8") + '{"release": "1", "outc', "utf-8")
    told: list[str] = []
    again = replace(judge, stop="", judged=[])
    found = bisect(question, environments, told.append, again)
    assert [each.name for each in found.culprits] == ["6"]
    assert told[0] == "resumed; decided before: 4"
    if margin is None:  # times are measured once more at the change
        assert not {"0", "15", "8", "4"} & set(again.judged)
    assert found.installed <= found.most_installed


@pytest.mark.parametrize("seed", range(20))
def test_twenty_bisections_of_identical_releases_have_no_culprit(tmp_path: Path, seed: int) -> None:
    question = Question("fakead", RELEASES, "0", "15", "fake", {}, 0.2)
    judge = Planted({}, "fake", first=99, noise=0.08, rng=np.random.default_rng(seed))
    with pytest.raises((UsageError, TooNoisy)):
        bisect(question, MadeUp(tmp_path, "pip"), lambda text: None, judge)


def test_a_disturbed_environment_is_not_called_the_culprit(tmp_path: Path) -> None:
    """BAD and every other release seem slow for a while, and then no more."""

    class Disturbed(Planted):
        def launches(self, python: Path, count: int) -> list[float]:
            self.judged.append(python.name)
            slow = python.name != "0" and self.judged.count(python.name) == 1
            return list(log(1.5) * slow + 0.01 * self.rng.normal(size=count))

    question = Question("fakead", RELEASES, "0", "15", "fake", {}, 0.2)
    judge = Disturbed({}, "fake", rng=np.random.default_rng(1))
    with pytest.raises(TooNoisy, match="measured again, 0 and 1 do not differ"):
        bisect(question, MadeUp(tmp_path, "pip"), lambda text: None, judge)
