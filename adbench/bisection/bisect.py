"""The bisection: judge GOOD and BAD, then halve the releases between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from adbench.bisection.decision import LOOKS, is_slower, middle, most_installed, side_of
from adbench.bisection.environments import Environments, NotInstalled
from adbench.bisection.probe import Undecided, judged, measured, run_in
from adbench.bisection.question import Question
from adbench.bisection.releases import Release
from adbench.bisection.trials import Outcome, Trial, Trials
from adbench.model.errors import AdbenchError, UsageError
from adbench.model.record import Run

Probe = Callable[[Path, dict[str, Any]], Run]


class TooNoisy(AdbenchError):
    """The launches do not decide whether BAD is slower than GOOD."""


@dataclass(frozen=True)
class Bisection:
    """The result.

    trials     of the releases that were tried, oldest first
    culprits   the first release with the state of the newest one; several if releases before it were skipped
    """

    question: Question
    trials: tuple[Trial, ...]
    culprits: tuple[Release, ...]

    @property
    def installed(self) -> int:
        """How many releases were installed."""
        return sum(trial.environment is not None for trial in self.trials)

    @property
    def most_installed(self) -> int:
        """How many would be installed at most, if none had to be skipped."""
        return most_installed(len(self.question.releases))

    @property
    def slowdown(self) -> float | None:
        """Time of the first bad release / time of GOOD; None if that was not measured."""
        ratios = {trial.release: trial.ratio for trial in self.trials}
        good = ratios.get(self.question.good)
        at = self.question.bad if self.question.finds_fix else self.culprits[-1].name
        bad = ratios.get(at)
        return bad / good if bad and good else None


@dataclass(frozen=True)
class _Search:
    question: Question
    trials: Trials
    environments: Environments
    told: Callable[[str], None]
    probe: Probe

    def run(self) -> Bisection:
        """Judge the ends, then the middle of what is left. Raises UsageError, TooNoisy."""
        every, ends = self.question.releases, (self.question.good, self.question.bad)
        by_name = {release.name: release for release in every}
        good, bad = (by_name[name] for name in ends)
        if self.question.margin is None:
            self._verify_checked(good, bad)
        else:
            self._verify_timed(good, bad, self.question.margin)
        newest = self.trials[every[-1].name].outcome
        while True:
            found = [self.trials[release.name].outcome for release in every]
            states = [outcome == newest if outcome in ("good", "bad") else None for outcome in found]
            k = middle(states, [outcome in ("undecided", "not installed") for outcome in found])
            if k is None:
                break
            self._decide(every[k])
        low = max(k for k, state in enumerate(states) if state is False)
        high = min(k for k, state in enumerate(states) if state is True)
        tried = tuple(self.trials[release.name] for release in every if self.trials[release.name].outcome)
        return Bisection(self.question, tried, every[low + 1 : high + 1])

    def _verify_checked(self, good: Release, bad: Release) -> None:
        for release, end in ((good, "good"), (bad, "bad")):
            trial = self._decide(release)
            if trial.outcome != end:
                said = trial.detail or "every derivative that was checked is correct"
                raise UsageError(f"{release.name} is not {end}, it is {trial.outcome or 'undecided'}: {said}")

    def _verify_timed(self, good: Release, bad: Release, margin: float) -> None:
        if self.trials[good.name].outcome == "good" and self.trials[bad.name].outcome == "bad":
            return
        for launches in LOOKS:
            for release, end in ((good, "good"), (bad, "bad")):
                trial = self._timed(release, launches)
                if trial.outcome is not None:
                    raise UsageError(f"{release.name} is not {end}, it is {trial.outcome}: {trial.detail}")
            first, last = self.trials[good.name], self.trials[bad.name]
            slower = is_slower(last.logs, first.logs, margin)
            if slower is not None:
                break
        ratio = (last.ratio or 0.0) / (first.ratio or 1.0)
        said = f"{bad.name} takes {ratio:.2f} times the time of {good.name}"
        if slower is None:
            raise TooNoisy(
                f"too noisy to decide about a margin of {margin:.0%}: {said} in {LOOKS[-1]} launches of each"
            )
        if not slower:
            raise UsageError(f"{bad.name} is not bad: {said}, which is not {margin:.0%} slower")
        self.trials.put(replace(first, outcome="good"))
        self.trials.put(replace(last, outcome="bad"))

    def _decide(self, release: Release) -> Trial:
        """The trial of a release, after judging it; an earlier decision stays."""
        trial = self.trials[release.name]
        if trial.outcome is not None:
            return trial
        if self.question.margin is None:
            return self._in_environment(release, self._checked)
        ends = [self.trials[name].logs for name in (self.question.good, self.question.bad)]
        for launches in LOOKS:
            trial = self._timed(release, launches)
            if trial.outcome is not None:
                return trial
            side = side_of(trial.logs, *ends)
            if side is not None:
                return self._end(replace(trial, outcome=side))
        said = f"between GOOD and BAD, or too noisy, in {LOOKS[-1]} launches"
        return self._end(replace(trial, outcome="undecided", detail=said))

    def _timed(self, release: Release, launches: int) -> Trial:
        """The trial with at least so many launches, or with the reason why there are none."""
        trial = self.trials[release.name]
        missing = launches - len(trial.logs)
        return trial if missing <= 0 else self._in_environment(release, partial(self._launched, launches=missing))

    def _in_environment(self, release: Release, judge: Callable[[Trial, Path], Trial]) -> Trial:
        trial = self.trials[release.name]
        ends = [each for each in self.question.releases if each.name in (self.question.good, self.question.bad)]
        if trial.environment is None:
            self.told(f"{self.question.library} {release.name}: installing")
        try:
            python, existed = self.environments.python(release, ends)
            if trial.environment is None:
                trial = self.trials.put(replace(trial, environment="reused" if existed else "new"))
            return judge(trial, python)
        except NotInstalled as no:
            return self._skip(trial, "not installed", str(no))
        except Undecided as no:
            return self._skip(trial, "undecided", str(no))

    def _checked(self, trial: Trial, python: Path) -> Trial:
        self.told(f"{self.question.library} {trial.release}: checking")
        is_wrong, entry = judged(self.probe(python, self.question.request))
        return self._end(replace(trial, outcome="bad" if is_wrong else "good", detail=entry))

    def _launched(self, trial: Trial, python: Path, *, launches: int) -> Trial:
        self.told(f"{self.question.library} {trial.release}: measuring in {launches} launches")
        run = self.probe(python, {**self.question.request, "launches": launches})
        found = measured(run, self.question.backend, first_result=self.question.first_result)
        if len(found) < launches:
            raise Undecided(f"only {len(found)} of {launches} launches were measured")
        return self.trials.put(replace(trial, logs=(*trial.logs, *found)))

    def _skip(self, trial: Trial, outcome: Outcome, why: str) -> Trial:
        return self._end(replace(trial, outcome=outcome, detail=" ".join(why.split())))

    def _end(self, trial: Trial) -> Trial:
        self.told(f"{self.question.library} {trial.release}: {trial.outcome}")
        return self.trials.put(trial)


def bisect(
    question: Question, environments: Environments, told: Callable[[str], None], probe: Probe = run_in
) -> Bisection:
    """Find the first release with the state of the newest one.

    told    is called with each step, as a sentence
    An interrupted bisection leaves a journal; the same question resumes it. Raises UsageError if GOOD is not good or
    BAD is not bad, and TooNoisy if launches cannot decide that.
    """
    with environments.locked():
        trials = Trials(environments.folder / "journals", [asdict(question), str(environments)])
        if len(trials):
            told(f"resumed: {sum(trial.outcome is not None for trial in trials.values())} releases are decided")
        try:
            found = _Search(question, trials, environments, told, probe).run()
        except AdbenchError:
            trials.delete()
            raise
        finally:
            environments.trim()
        trials.delete()
        return found
