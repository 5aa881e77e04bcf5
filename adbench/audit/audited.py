"""The result of an audit: the answers of each test, and sentences about all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .spoils import SPOILS

NOTICED, MISSED, NOT_APPLICABLE, NOT_TRIED = "noticed", "missed", "not applicable", "not tried"
"""What a test says to a spoil: it fails, as it should; it passes; no number changed; the runs were spent."""


@dataclass(frozen=True)
class AuditedTest:
    """A test that was handed gradients.

    answers      name of a spoil -> one of the words above
    gradients    how many were handed out in the unspoiled run
    runs         how often it ran, at most one more than there are spoils
    set_aside    the reason to judge nothing: it fails or skips unspoiled, or its gradients differ from run to run
    tolerances   such as "line 41: rtol=0.1", read from its text
    """

    test: str
    file: str
    line: int
    answers: dict[str, str] = field(default_factory=dict)
    gradients: int = 0
    runs: int = 1
    set_aside: str = ""
    tolerances: tuple[str, ...] = ()

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> AuditedTest:
        """From the plain data of `dataclasses.asdict`."""
        return cls(**{**plain, "tolerances": tuple(plain["tolerances"])})

    @property
    def missed(self) -> tuple[str, ...]:
        """The spoils that it passes with."""
        return tuple(name for name, answer in self.answers.items() if answer == MISSED)

    @property
    def noticed(self) -> tuple[str, ...]:
        """The spoils that it fails with."""
        return tuple(name for name, answer in self.answers.items() if answer == NOTICED)


def ranked(tests: Sequence[AuditedTest]) -> list[AuditedTest]:
    """The audited tests, beginning with those that notice least."""
    judged = [test for test in tests if not test.set_aside]
    order = [spoil.name for spoil in SPOILS]
    return sorted(judged, key=lambda test: ([test.answers.get(name) == NOTICED for name in order], test.test))


def sentences(tests: Sequence[AuditedTest]) -> list[str]:
    """The result in words, most important first; one that no test was handed a gradient if that is so."""
    if not tests:
        return ["No test of this suite was handed a gradient by torch, jax, autograd, equinox or flax."]
    judged, aside = ranked(tests), [test for test in tests if test.set_aside]
    lines = []
    if judged:
        missed = {spoil.name: sum(spoil.name in test.missed for test in judged) for spoil in SPOILS}
        nothing = sum(bool(test.missed) and not test.noticed for test in judged)
        many = "1 gradient test passes" if len(judged) == 1 else f"{len(judged)} gradient tests pass"
        lines.append(
            f"{many} with right gradients; with gradients 10 % too large {missed['ten_percent']}, negated "
            f"{missed['negated']}, zero {missed['zero']}, NaN {missed['nan']}. Tests that notice nothing: {nothing}."
        )
        runs = sum(test.runs for test in judged) / len(judged)
        lines.append(f"Each test ran {runs:.1f} times on average, at most {max(test.runs for test in judged)} times.")
    if aside:
        lines.append(f"Set aside, with the reason: {len(aside)}.")
    return lines


def document(tests: Sequence[AuditedTest]) -> dict[str, Any]:
    """The result as plain data, for JSON."""
    return {
        "spoils": [spoil.name for spoil in SPOILS],
        "summary": sentences(tests),
        "tests": [asdict(test) for test in tests],
    }
