"""The input of a comparison: the comparable part of a run, whichever program measured it.

A cell's name is `case[size]-backend-operator`, followed by `-seed=3` if the seed is not 0, and by `-threads=2` with
further threads. Benchmarks of other programs
with such a name are that cell; other names are kept.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from adbench.measure.machine import SAME_FOR_TIMES, fingerprint
from adbench.measure.unpaired import FEWEST
from adbench.model.errors import UsageError
from adbench.model.operator import BATCH, EVERY_OPERATOR
from adbench.model.record import Job, Memory, Outcome, Record, Run
from adbench.model.settings import FLOAT64, PROCESSOR, backend_and_device
from adbench.results.analysis import floor
from adbench.results.matched_samples import Array, log_seconds

Key = Job | str
State = Literal["right", "wrong", "known", "failing", "absent"]
"""right: not wrong; known: wrong, as is known; absent: unsupported, or not tried."""

UNKNOWN = "—"
"""In a fingerprint, for facts that a program does not record."""

MOST_NAMED = 5  # cases or backends in a command

SMALLEST_BLOCK, MOST_BLOCKS = 5, 10
USEFUL_ROUNDS = SMALLEST_BLOCK * MOST_BLOCKS
"""Rounds in a block, blocks in a launch, and rounds for that many blocks; see `in_blocks`."""

_PARTS = tuple(name.replace("_", " ") for name in SAME_FOR_TIMES)

_NAME = re.compile(
    r"(?P<case>.+)\[(?P<size>\d{1,15})\]-(?P<backend>.+)-"
    rf"(?P<operator>{'|'.join(EVERY_OPERATOR)}|{BATCH}_\d{{1,15}})(-seed=(?P<seed>\d{{1,15}}))?(-threads=(?P<threads>\d{{1,15}}))?",
    re.S,
)


@dataclass(frozen=True)
class Sample:
    """One cell of one run.

    logs      number of the launch -> log of the seconds per call, round by round; NaN for a missing round
    prepare   number of the launch -> log of the seconds until the first result
    memory    method -> bytes at the peak of a call
    instructions   of a call; None if they were not counted
    """

    key: Key
    state: State
    reason: str | None = None
    logs: Mapping[int, Array] = field(default_factory=dict)
    prepare: Mapping[int, float] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)
    how: str = ""
    instructions: float | None = None

    @property
    def timed(self) -> bool:
        """Whether it has comparable times."""
        return self.state == "right" and bool(self.logs)

    @property
    def launches(self) -> Array:
        """The median over rounds of each launch: log seconds per call."""
        return np.array([np.nanmedian(self.logs[number]) for number in sorted(self.logs)])

    @property
    def seconds_per_call(self) -> float:
        """The median over launches."""
        return float(np.exp(np.median(self.launches)))


@dataclass(frozen=True)
class ComparisonInput:
    """One run.

    name        its file or folder
    made_by     the program that measured it
    machine     `name value; …`: must agree for the times of two runs to be comparable
    conditions  further influences on times, such as the versions of libraries; differences are reported
    reference   the backend to which the others are compared within the run
    floor       the run's noise floor, as a share; None without a control
    quick       made with --quick, with too few launches for decisions
    again       the command that measures it without --quick
    counter     what counted instructions, with its version; counts of another counter are not comparable
    one_launch  a file of one process: each entry of `logs` is a block of its rounds (`in_blocks`)
    """

    name: str
    made_by: Literal["adbench", "pytest-benchmark", "pyperf", "gradbench"]
    created: str | None
    machine: str
    samples: Mapping[Key, Sample]
    conditions: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    floor: float | None = None
    quick: bool = False
    again: str = ""
    one_launch: bool = False
    counter: str | None = None


def in_blocks(rounds: Array) -> dict[int, Array]:
    """The rounds of one launch in up to MOST_BLOCKS successive blocks, which stand for launches.

    Neighbouring rounds depend on each other, medians of blocks much less. They still do not show how processes differ.
    Rounds too few for the fewest launches of a decision are one block.
    """
    count = min(MOST_BLOCKS, len(rounds) // SMALLEST_BLOCK)
    return dict(enumerate(np.array_split(rounds, count if count >= FEWEST else 1)))


def of_run(run: Run, name: str) -> ComparisonInput:
    """A run of adbench."""
    versions = {backend: version for backend, version in run.versions.items() if version}
    return ComparisonInput(
        name=name,
        made_by="adbench",
        created=run.created,
        machine=machine_of(run),
        samples={record.job: _sample(record) for record in run.records},
        conditions={"adbench": run.adbench_version} | versions,
        reference=run.reference_backend,
        floor=floor(run).reach,
        quick=run.settings.get("quick") is True,
        again=_command_of(run),
        counter=str(run.settings.get("instructions") or "") or None,
    )


def _command_of(run: Run) -> str:
    """The command that measures a run again, without --quick and names that would fill more than a line."""
    jobs = [record.job for record in run.records if record.job.case not in run.traps]
    chosen = {
        "-c": dict.fromkeys(run.sources.get(f"cases/{job.case}", job.case).partition(":")[0] for job in jobs),
        "-b": dict.fromkeys(
            run.sources.get(f"backends/{job.backend}", backend_and_device(job.backend)[0]).partition(":")[0]
            for job in jobs
        ),
        "-n": dict.fromkeys(str(job.size) for job in jobs),
    }
    chosen |= {option: {value: None} for option, value in run.options.items()}
    few = {option: names for option, names in chosen.items() if len(names) <= (1 if option == "-n" else MOST_NAMED)}
    return "adbench run" + "".join(f" {option} {shlex.quote(name)}" for option, names in few.items() for name in names)


IN_TYPE = "; dtype "


def machine_and_type(machine: str) -> tuple[str, str]:
    """The digest of a machine of `machine_of` without its type, and the type."""
    others, _, kind = machine.partition(IN_TYPE)
    return digest(others), kind or FLOAT64


def machine_of(run: Run) -> str:
    """What must agree for the times of two runs to be comparable: the machine, the number of threads, the device, the
    type."""
    device, transfers = (str(run.settings.get(name, "")) for name in ("device", "transfers"))
    names = ", ".join(sorted({record.device for record in run.records if record.device}))
    on = f"; device {device} ({names}), transfers {transfers}" if device not in ("", PROCESSOR) else ""
    kind = "" if run.dtype == FLOAT64 else f"{IN_TYPE}{run.dtype}"
    return f"{fingerprint(run.machine)}; threads {run.settings.get('threads', UNKNOWN)}{on}{kind}"


def name_of(key: Key) -> str:
    """The name of a cell."""
    if isinstance(key, str):
        return key
    seed = f"-seed={key.seed}" if key.seed else ""
    threads = f"-threads={key.threads}" if key.threads else ""
    return f"{key.case}[{key.size}]-{key.backend}-{key.operator}{seed}{threads}"


def key_called(name: str) -> Key:
    """The cell with this name; the name itself if no cell has it."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name
    numbers = (int(found[name] or 0) for name in ("seed", "threads"))
    return Job(found["case"], int(found["size"]), found["backend"], found["operator"], *numbers)


class Margins:
    """The margin of each cell.

    A name is a cell's, a case's, or a glob of either, in which * is any text and everything else itself, brackets too.
    If several names select a cell, the last one counts.
    """

    def __init__(self, margin: float, named: Mapping[str, float], cells: Iterable[Key]) -> None:
        """Raises UsageError for a name that selects none of the cells."""
        self.margin = margin
        self.named = dict(named)
        known = list(cells)
        for name in self.named:
            if not any(_selects(name, key) for key in known):
                example = name_of(known[0]) if known else "none"
                raise UsageError(f"margin for {name!r}: no cell of either run has this name; the first is {example!r}")

    def of(self, key: Key) -> float:
        """The margin of a cell."""
        return next((self.named[name] for name in reversed(self.named) if _selects(name, key)), self.margin)


def _selects(name: str, key: Key) -> bool:
    pattern = ".*".join(map(re.escape, name.split("*")))
    names = (name_of(key), key.case) if isinstance(key, Job) else (key,)
    return any(re.fullmatch(pattern, each, re.S) for each in names)


def digest(machine: str) -> str:
    """Eight hexadecimal digits of a fingerprint: enough to see which runs come from one machine."""
    return hashlib.sha256(machine.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def differences(old: str, new: str) -> list[str]:
    """The differences of two machines, in words; empty if they agree in all facts recorded for both.

    They differ if either processor is not recorded.
    """
    a, b = (dict(_part(part) for part in machine.split("; ")) for machine in (old, new))
    for facts in (a, b):
        facts.setdefault("device", PROCESSOR)
        facts.setdefault("dtype", FLOAT64)
    if UNKNOWN in (a.get("processor", UNKNOWN), b.get("processor", UNKNOWN)):
        return ["a processor that is not recorded"]
    return [
        f"{name}: {value} → {b[name]}"
        for name, value in a.items()
        if name in b and UNKNOWN not in (value, b[name]) and value != b[name]
    ]


def _part(part: str) -> tuple[str, str]:
    """`hardware threads 2` -> its name and its value."""
    name = next((name for name in _PARTS if part.startswith(name + " ")), part.partition(" ")[0])
    return name, part.removeprefix(name).strip()


def _sample(record: Record) -> Sample:
    state = _state(record.outcome)
    if state == "wrong":
        return Sample(record.job, state, record.reason or (record.verdict.sentence if record.verdict else None))
    if state != "right":
        return Sample(record.job, state, record.reason)
    logs: dict[int, Array] = {}
    prepare: dict[int, float] = {}
    if record.time is not None:
        launches = sorted(record.time.launches, key=lambda launch: launch.number)  # as `log_seconds` has them
        for launch, row in zip(launches, log_seconds([record.time])[0], strict=True):
            if np.isfinite(row).any():
                logs[launch.number] = row
            first = launch.prepare_seconds + launch.first_call_seconds
            if first > 0 and launch in record.time.compiled:
                prepare[launch.number] = float(np.log(first))
    how = " ".join(filter(None, (record.how, record.text)))
    counted = record.instructions.value if record.instructions is not None else None
    return Sample(record.job, "right", None, logs, prepare, _memory(record.memory), how, counted)


def _state(outcome: Outcome) -> State:
    if outcome.is_fault:
        return "failing"
    if outcome.word in ("wrong", "known"):
        return outcome.word
    return "right" if outcome.is_measured or outcome.word == "surprise" else "absent"


def _memory(memory: Memory | None) -> dict[str, float]:
    figures = {} if memory is None else vars(memory)
    return {name.removesuffix("_peak_bytes"): of.value for name, of in figures.items() if of.value is not None}
