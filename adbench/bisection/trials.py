"""What is known about each release, in a journal that outlasts an interruption."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeVar

from adbench.model.errors import BadOutput

T = TypeVar("T")
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


class LineJournal(dict[str, T]):
    """Release -> what is known about it, in a file of JSON lines that outlasts an interruption.

    A folder has one file for each key (plain data). A line that is damaged, or of another version, counts as missing.
    """

    def __init__(self, folder: Path, key: Any, kind: str = "") -> None:
        super().__init__()
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
        self.path = folder / f"{kind}{digest}.jsonl"
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, TypeError, KeyError):
                    self._add(json.loads(line))

    def _add(self, line: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _append(self, line: Mapping[str, Any]) -> None:
        """Write a line. Raises BadOutput."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            is_damaged = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" * is_damaged + json.dumps(line) + "\n")
        except OSError as error:
            raise BadOutput(f"{self.path}: cannot be written: {error.strerror}") from error


class Trials(LineJournal[Trial]):
    """Release -> trial; begins with what an interrupted bisection decided about the question."""

    def _add(self, line: Mapping[str, Any]) -> None:
        self[line["release"]] = Trial(**{**line, "logs": tuple(line["logs"])})

    def __missing__(self, release: str) -> Trial:
        return Trial(release)

    def put(self, trial: Trial) -> Trial:
        """Write a trial, instead of an earlier one of the same release."""
        self[trial.release] = trial
        self._append(asdict(trial))
        return trial

    def delete(self) -> None:
        """Delete the journal: the bisection has ended."""
        self.path.unlink(missing_ok=True)
