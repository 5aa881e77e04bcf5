"""The bisection: judge GOOD and BAD, then halve the releases between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from adbench.bisection.decision import (
    LOOKS,
    around,
    exceeds,
    half_distance,
    is_slower,
    middle,
    most_installed,
    side_of,
)
from adbench.bisection.environments import Environments, NotInstalled
from adbench.bisection.judge import CellJudge, Undecided
from adbench.bisection.question import Question
from adbench.bisection.releases import Release
from adbench.bisection.trials import Outcome, Trial, Trials
from adbench.model.errors import AdbenchError, UsageError


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
    judge: CellJudge

    def run(self) -> Bisection:
        """Judge the ends, then repeatedly the middle of the rest. Raises UsageError, TooNoisy."""
        every = self.question.releases
        good, bad = (next(r for r in every if r.name == name) for name in (self.question.good, self.question.bad))
        if self.question.margin is None:
            self._verify_checked(good, bad)
        else:
            self._verify_timed(good, bad, self.question.margin)
        while (k := middle(self._states(), [self.trials[r.name].is_skipped for r in every])) is not None:
            self._decide(every[k])
        low, high = around(self._states())
        if self.question.margin is not None:
            self._confirm(*((high, low) if self.trials[every[high].name].outcome == "bad" else (low, high)))
        tried = tuple(self.trials[release.name] for release in every if self.trials[release.name].outcome)
        return Bisection(self.question, tried, every[low + 1 : high + 1])

    def _states(self) -> list[bool | None]:
        """Of each release, whether it has the state of the newest one; None if that is unknown."""
        outcomes = [self.trials[release.name].outcome for release in self.question.releases]
        return [outcome == outcomes[-1] if outcome in ("good", "bad") else None for outcome in outcomes]

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
        """The trial with at least so many launches, or with the reason why it has fewer."""

        def judge(trial: Trial, python: Path) -> Trial:
            times = self._launched(release, python, launches - len(trial.logs))
            return self.trials.put(replace(trial, logs=(*trial.logs, *times)))

        trial = self.trials[release.name]
        return trial if len(trial.logs) >= launches else self._in_environment(release, judge)

    def _confirm(self, slow: int, fast: int) -> None:
        """Measure the two releases at the change once more. Raises TooNoisy if they do not differ again.

        A whole environment may be disturbed for minutes, which its own launches do not show.
        """
        good, bad = (self.trials[name].logs for name in (self.question.good, self.question.bad))
        half, logs = half_distance(good, bad), {slow: list[float](), fast: list[float]()}
        for launches in LOOKS:
            for k, measured in logs.items():
                release = self.question.releases[k]
                try:
                    python, _ = self.environments.python(release, self._spared())
                    measured += self._launched(release, python, launches - len(measured))
                except (NotInstalled, Undecided) as no:
                    raise TooNoisy(f"{release.name} was decided, and then failed: {no}") from no
            if exceeds(logs[slow], logs[fast], half):
                return
        names = " and ".join(self.question.releases[k].name for k in sorted(logs))
        raise TooNoisy(f"too noisy to decide: measured again, {names} do not differ; repeat it on a quieter machine")

    def _spared(self) -> list[Release]:
        """The releases that may be measured once more."""
        every, known = self.question.releases, self._states()
        places = {0, len(every) - 1, *(around(known) if True in known and False in known else ())}
        return [every[k] for k in places]

    def _in_environment(self, release: Release, judge: Callable[[Trial, Path], Trial]) -> Trial:
        trial = self.trials[release.name]
        if trial.environment is None:
            self.told(f"{self.question.library} {release.name}: installing")
        try:
            python, existed = self.environments.python(release, self._spared())
            if trial.environment is None:
                trial = self.trials.put(replace(trial, environment="reused" if existed else "new"))
            return judge(trial, python)
        except (NotInstalled, Undecided) as no:
            outcome: Outcome = "not installed" if isinstance(no, NotInstalled) else "undecided"
            return self._end(replace(trial, outcome=outcome, detail=" ".join(str(no).split())))

    def _checked(self, trial: Trial, python: Path) -> Trial:
        self.told(f"{self.question.library} {trial.release}: checking")
        entry = self.judge.wrong(python)
        return self._end(replace(trial, outcome="good" if entry is None else "bad", detail=entry or ""))

    def _launched(self, release: Release, python: Path, launches: int) -> list[float]:
        self.told(f"{self.question.library} {release.name}: measuring in {launches} launches")
        return self.judge.launches(python, launches)

    def _end(self, trial: Trial) -> Trial:
        self.told(f"{self.question.library} {trial.release}: {trial.outcome}")
        return self.trials.put(trial)


def bisect(
    question: Question, environments: Environments, told: Callable[[str], None], judge: CellJudge | None = None
) -> Bisection:
    """Find the first release with the state of the newest one.

    told    is called with each step, as a sentence
    An interrupted bisection leaves a journal; the same question resumes it. Raises UsageError if GOOD is not good or
    BAD is not bad, and TooNoisy if launches cannot decide that.
    """
    with environments.locked():
        trials = Trials(environments.folder / "journals", [asdict(question), *environments.identity])
        if len(trials):
            told(f"resumed; decided before: {sum(trial.outcome is not None for trial in trials.values())}")
        try:
            judge = judge or CellJudge(question.request, question.backend, question.first_result)
            bisection = _Search(question, trials, environments, told, judge).run()
        except AdbenchError:
            trials.delete()
            raise
        finally:
            environments.trim()
        trials.delete()
        return bisection
