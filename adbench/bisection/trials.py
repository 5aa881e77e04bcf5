"""What is known about each release, in a journal that outlasts an interruption."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from adbench.model.errors import BadOutput

Outcome = Literal["good", "bad", "undecided", "not installed"]
Place = Literal["new", "reused"]


@dataclass(frozen=True)
class Trial:
    """One release.

    outcome       None as long as it is not decided
    detail        the wrong entry, or why it is undecided or not installed
    environment   whether its environment was new or reused; None if it has none
    logs          of its launches: log of the time relative to the control
    """

    release: str
    outcome: Outcome | None = None
    detail: str = ""
    environment: Place | None = None
    logs: tuple[float, ...] = ()

    @property
    def is_skipped(self) -> bool:
        """Whether it cannot be judged."""
        return self.outcome in ("undecided", "not installed")

    @property
    def ratio(self) -> float | None:
        """The time relative to the control; None if it was not timed."""
        return math.exp(median(self.logs)) if self.logs else None


class Trials(Mapping[str, Trial]):
    """Release -> trial. Each change is a line of the journal; a damaged last line counts as missing."""

    def __init__(self, folder: Path, question: Any) -> None:
        """The journal of this question (plain data) in a folder, with what an interrupted bisection decided."""
        text = json.dumps(question, sort_keys=True)
        self.path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
        self._trials: dict[str, Trial] = {}
        if not self.path.exists():
            append(self.path, text)
            return
        written = self.path.read_text(encoding="utf-8")
        if not written.endswith("\n"):
            append(self.path, "")
        for line in written.splitlines()[1:]:
            with suppress(ValueError, TypeError):
                fields = json.loads(line)
                self._trials[fields["release"]] = Trial(**{**fields, "logs": tuple(fields["logs"])})

    def __getitem__(self, release: str) -> Trial:
        return self._trials.get(release) or Trial(release)

    def __iter__(self) -> Iterator[str]:
        return iter(self._trials)

    def __len__(self) -> int:
        return len(self._trials)

    def put(self, trial: Trial) -> Trial:
        """Write a trial, instead of an earlier one of the same release."""
        self._trials[trial.release] = trial
        append(self.path, json.dumps(asdict(trial)))
        return trial

    def delete(self) -> None:
        """Delete the journal: the bisection has ended."""
        self.path.unlink(missing_ok=True)


def append(journal: Path, line: str) -> None:
    """Add a line to a journal, which is made if it is missing. Raises BadOutput."""
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        with journal.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    except OSError as error:
        raise BadOutput(f"{journal}: cannot be written: {error.strerror}") from error
