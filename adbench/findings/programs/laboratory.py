"""Programs go to each library in its own worker, and their answers to a worker that judges.

A worker that dies or hangs is replaced; the library's crash is then a finding, the judge's is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from adbench.catalog.discovery import Catalog
from adbench.execution.known_faults import of_backend
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.resident_worker import ResidentWorker, require_device
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.findings.finding import Finding, Kind
from adbench.findings.programs.judging import AnswerFault
from adbench.findings.programs.random_program import Program
from adbench.model.backend import KnownBug
from adbench.model.settings import PROCESSOR, Settings

ANSWER = "adbench.findings.programs.program_worker:answer"
LACKING = "adbench.findings.programs.program_worker:lacking"
JUDGE = "adbench.findings.programs.program_worker:judge"
ANSWER_SECONDS = 60.0
"""A library that does not answer in this time hangs. Compiling a long program may take half of it."""
JUDGE_SECONDS = 30.0
IMPORT_SECONDS = 120.0

LOST: Mapping[str, Kind] = {"crashed": "crashes", "timed_out": "hangs"}


class Asked(Protocol):
    """Something that answers requests: a worker, or a library in this process."""

    def ask(self, request: Mapping[str, Any], timeout: float) -> Any:
        """The answer. Raises NoAnswer."""


@dataclass(frozen=True)
class Examined:
    """What came of one program.

    is_known   whether its true derivatives are known; otherwise only answers that differ were examined
    answered   the libraries with a result, or a fault, for some operator
    refused    library -> why it has no answer, for some operator; "the judge" -> why it has none
    lost       whether the judge gave no answer
    """

    findings: tuple[Finding, ...]
    is_known: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False
    answered: frozenset[str] = frozenset()


class Laboratory(AbstractContextManager["Laboratory"]):
    """Libraries by name, and the judge.

    versions   library -> its version
    known      library -> its known faults
    """

    def __init__(
        self,
        libraries: Mapping[str, Asked],
        judge: Asked,
        versions: Mapping[str, str] | None = None,
        seed: int = 0,
        known: Mapping[str, Sequence[KnownBug]] | None = None,
        device: str = PROCESSOR,
    ) -> None:
        self.libraries, self.judge, self.seed, self.device = dict(libraries), judge, seed, device
        self.versions, self.known = dict(versions or {}), dict(known or {})
        self._threads = ThreadPoolExecutor(max_workers=max(1, len(self.libraries)))

    @staticmethod
    @contextmanager
    def of_workers(
        catalog: Catalog, backends: Sequence[str], seed: int = 0, device: str = PROCESSOR
    ) -> Iterator[Laboratory]:
        """One worker for each backend, and one that judges. Raises UsageError if no backend has the device."""
        with Supervisor(default_limit()) as supervisor:
            context = Context(supervisor, catalog.on(device), Settings(device=device))
            sources = context.catalog.backends
            versions = {name: sources[name].version or "" for name in backends}
            workers = {name: ResidentWorker(context, name, context.checking_start(backend=name)) for name in backends}
            require_device(workers.values(), device)
            known = {name: of_backend(sources[name], catalog.cases, device).bugs for name in backends}
            judge = ResidentWorker(context, start=context.checking_start())
            with Laboratory(workers, judge, versions, seed, known, device) as laboratory:
                yield laboratory

    def examine(self, program: Program, operators: Sequence[str], libraries: Sequence[str] = ()) -> Examined:
        """The findings in these operators of a program, for these libraries or all."""
        asked = tuple(libraries) or tuple(self.libraries)
        plain = {"program": msgspec.to_builtins(program), "seed": self.seed}
        request = {"do": "call", "function": ANSWER, "operators": list(operators), **plain}
        answers_of = dict(zip(asked, self._threads.map(lambda name: self._answers(name, request), asked), strict=True))
        findings = [self._lost(program, name, one) for name, one in answers_of.items() if isinstance(one, NoAnswer)]
        answers = {name: one for name, one in answers_of.items() if not isinstance(one, NoAnswer)}
        refused = {
            name: str(one["unsupported"]) for name, of in answers.items() for one in of.values() if "unsupported" in one
        }
        try:
            judged = self.judge.ask({"do": "call", "function": JUDGE, "answers": answers, **plain}, JUDGE_SECONDS)
        except NoAnswer as lost:
            return Examined(tuple(findings), False, {**refused, "the judge": lost.reason}, lost=True)
        for name, faults in judged["faults"].items():
            for operator, fault in faults.items():
                findings.append(self._finding(program, name, operator, AnswerFault(**fault)))
        answered = {name for name, of in answers.items() if any("result" in one for one in of.values())}
        answered |= {one.library for one in findings}
        return Examined(tuple(findings), bool(judged["known"]), refused, answered=frozenset(answered))

    def lacking(self) -> frozenset[str]:
        """The operations that none of the libraries can compute."""
        lacking_of = []
        for library in self.libraries.values():
            try:
                lacking_of.append(frozenset(library.ask({"do": "call", "function": LACKING}, IMPORT_SECONDS)))
            except NoAnswer:  # each program will have the reason
                lacking_of.append(frozenset())
        return frozenset.intersection(*lacking_of)

    def _answers(self, name: str, request: Mapping[str, Any]) -> Any:
        try:
            return self.libraries[name].ask(request, ANSWER_SECONDS)
        except NoAnswer as lost:
            return lost

    def _lost(self, program: Program, name: str, lost: NoAnswer) -> Finding:
        kind = LOST.get(lost.status, "raises")
        words = f"the worker of {name} {lost.reason}"
        return self._finding(program, name, "gradient", AnswerFault(kind, lost.reason, "an answer", "", words, ""))

    def _finding(self, program: Program, name: str, operator: str, fault: AnswerFault) -> Finding:
        version = self.versions.get(name, "")
        return Finding(program, operator, name, **vars(fault), version=version, device=self.device)

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False)  # the supervisor ends the workers
