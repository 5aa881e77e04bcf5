"""Relations between calls of each of a backend's own operators, which single results do not show.

`REQUIRED_RELATIONS` and `OPTIONAL_RELATIONS` (adbench.model.operator) are their names and laws. Each operator is
prepared once for all cheap relations (probes.py), and again at other inputs and with other active inputs
(preparations.py). Two prepared operators that must agree are compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from adbench.execution.operators.relations.consistency import difference
from adbench.execution.operators.relations.preparations import choices, subsets_of, variant_faults
from adbench.execution.operators.relations.probes import CHEAP
from adbench.execution.operators.relations.setting import (
    Interruption,
    Kept,
    NotApplicable,
    PreparedSubject,
    Setting,
    described,
    prepared,
)
from adbench.model import tree
from adbench.model.backend import Call
from adbench.model.errors import Unsupported
from adbench.model.operator import OPERATORS, Operator
from adbench.model.record import Relations
from adbench.oracle.structure import symmetrised

__all__ = ["CHEAP", "Interruption", "Kept", "Setting", "of_rules", "related", "sentences", "subsets_of"]

OF_RULES = ("twice", "same array", "one entry")
BY_PREPARING = ("subsets", "elsewhere", "overwritten", "interleaved")
MOST_ENTRIES = 4_000_000  # of a matrix, 32 MB: relations hold several results
MOST_SECONDS = 60.0  # for one backend on one case; the record lists relations left out after that


def related(setting: Setting, seconds: float = MOST_SECONDS) -> Relations:
    """Test all relations of the backend's own operators on the case.

    seconds   no relation starts later than this

    Raises Unsupported if the backend itself has no derivative here.
    """
    findings = _Findings(setting, monotonic() + seconds)
    subjects = _subjects(setting, findings)
    for subject in list(subjects.values()):
        subjects[subject.operator] = _cheap(subject, findings)
    derivatives_first = sorted(subjects.values(), key=lambda subject: subject.operator == "value")
    for number, subject in enumerate(derivatives_first):
        if not findings.is_over(BY_PREPARING, subject.operator):
            _prepared_again(subject, choices(setting, subject.operator, number), findings)
    for relation, (pair, test) in PAIRS.items():
        both = ", ".join(pair)
        if lacking := [operator for operator in pair if operator not in subjects]:
            findings.leave_out(relation, both, f"the backend itself has no {' and no '.join(lacking)}")
        elif wrong := [operator for operator in pair if operator in findings.repeats]:
            findings.leave_out(relation, both, f"{' and '.join(wrong)} is itself wrong")
        else:
            findings.ask(relation, both, partial(_disagreements, test, *(subjects[operator] for operator in pair)))
    return findings.all()


def of_rules(setting: Setting, calls: Mapping[Operator, Call], seconds: float) -> Relations:
    """The relations that a derivative rule by a user may break, of operators that are prepared and right here."""
    findings = _Findings(setting, monotonic() + seconds)
    for operator, call in calls.items():
        subject = PreparedSubject(setting, operator, call)
        for relation in OF_RULES if subject.is_right else ():
            findings.ask(relation, operator, partial(CHEAP[relation], subject))
    return findings.all()


def sentences(relations: Relations, said: Collection[str] = ()) -> list[str]:
    """All faults: broken relations, and one sentence for operators that are themselves wrong.

    said   operators whose records already report their faults
    """
    itself = [operator for operator in relations.repeats if operator not in said]
    if not itself:
        return [*relations.broken]
    return [*relations.broken, f"wrong by itself ({', '.join(itself)}): {relations.repeats[itself[0]]}"]


def _subjects(setting: Setting, findings: _Findings) -> dict[Operator, PreparedSubject]:
    """The backend's own operators, prepared and called; without compositions, which belong to the harness and have no
    state."""
    subjects: dict[Operator, PreparedSubject] = {}
    refusals = []
    for operator in (operator for operator in setting.case.possible_operators if operator in OPERATORS):
        if (entries := setting.entries(operator)) > MOST_ENTRIES:
            findings.leave_out("all", operator, f"the result has {entries:.1g} entries")
            continue
        try:
            subject = subjects[operator] = prepared(setting, operator)
        except (Unsupported, NotImplementedError) as refusal:
            refusals += [refusal] if operator != "value" else []
            continue
        except Exception as error:  # its own record reports this too
            findings.repeats[operator] = described(error)
            continue
        if not subject.is_right:
            findings.repeats[operator] = subject.fault
    if not subjects.keys() - {"value"} and not findings.repeats and refusals:
        raise refusals[0]
    return subjects


def _cheap(subject: PreparedSubject, findings: _Findings) -> PreparedSubject:
    """Test the cheap relations. After a broken one the operator is prepared again."""
    for relation, probe in CHEAP.items():
        if findings.ask(relation, subject.operator, partial(probe, subject)):
            subject = prepared(subject.setting, subject.operator, again=True)
    return subject


def _prepared_again(subject: PreparedSubject, chosen: Sequence[tuple[int, ...]], findings: _Findings) -> None:
    """Test the relations that prepare the operator for each of these sets of active inputs."""
    broken: dict[str, str] = {}
    for wrt in chosen:
        try:
            for relation, fault in variant_faults(subject, wrt):
                broken.setdefault(relation, fault)
        except (Unsupported, NotImplementedError) as refusal:
            findings.leave_out("subsets", subject.operator, f"unsupported: {refusal}")
    for relation in BY_PREPARING:
        findings.note(relation, subject.operator, [broken[relation]] if relation in broken else [])


@dataclass
class _Findings:
    """The findings so far."""

    setting: Setting
    end: float
    held: int = 0
    broken: dict[str, dict[str, str]] = field(default_factory=dict)
    repeats: dict[str, str] = field(default_factory=dict)
    left_out: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def ask(self, relation: str, operator: str, probe: Callable[[], Iterator[str]]) -> bool:
        """Run a probe, record its faults, and return whether the relation is broken."""
        if relation in self.setting.backend.limits or self.is_over((relation,), operator):
            return False
        try:
            faults = list(probe())
        except NotApplicable as reason:
            self.leave_out(relation, operator, str(reason))
            return False
        except (Unsupported, NotImplementedError) as refusal:
            self.leave_out(relation, operator, f"unsupported: {refusal}")
            return False
        except Exception as error:  # raised by the library in a situation that it must handle
            faults = [described(error)]
        self.note(relation, operator, faults)
        return bool(faults)

    def note(self, relation: str, operator: str, faults: Sequence[str]) -> None:
        """Record that a relation holds, or its first fault."""
        if faults:
            self.broken.setdefault(relation, {})[operator] = faults[0]
        else:
            self.held += 1

    def leave_out(self, relation: str, operator: str, reason: str) -> None:
        """Record that a relation does not apply to this operator."""
        self.left_out.setdefault((relation, reason), []).append(operator)

    def is_over(self, relations: Iterable[str], operator: str) -> bool:
        """Whether the time is over; if so, record these relations as left out."""
        if monotonic() < self.end:
            return False
        for relation in relations:
            self.leave_out(relation, operator, "the time for relations was over")
        return True

    def all(self) -> Relations:
        """The findings for a record: one sentence for each broken relation."""
        broken = []
        for relation, faults in self.broken.items():
            broken.append(f"{relation} ({', '.join(faults)}): {next(iter(faults.values()))}")
        left_out = [f"{name} ({', '.join(operators)}): {why}" for (name, why), operators in self.left_out.items()]
        return Relations(self.held, tuple(broken), self.repeats, dict(self.setting.backend.limits), tuple(left_out))


Test = Callable[[PreparedSubject, PreparedSubject, Any], Iterator[str]]
"""A relation of two operators. With axes it holds for symmetric changes of these inputs only (`symmetrised`)."""


def _modes(jvp: PreparedSubject, vjp: PreparedSubject, axes: Any = None) -> Iterator[str]:
    """<w, J v> = <Jᵀ w, v>, for general v and w: forward compared with reverse."""
    setting = jvp.setting
    (v,), (w,) = setting.general("jvp"), setting.general("vjp")
    v = v if axes is None else symmetrised(v, axes)
    jv, wj = jvp.result(jvp.with_vector((v,))), vjp.result(vjp.with_vector((w,)))
    terms = [np.ravel(p * q) for p, q in zip(tree.leaves(wj), tree.leaves(v), strict=True)]
    products = np.concatenate(terms) if terms else np.zeros(0)
    left, right = float(np.sum(w * jv)), float(products.sum())
    noise, size = setting.noise("jvp"), float(np.abs(products).sum()) + float(np.sum(np.abs(w * jv)))
    bound = (noise.relative + noise.share) * size + noise.floor + 1e-300
    if not abs(left - right) <= max(bound, abs(right) * (setting.backend.claimed_relative_error or 0.0)):
        yield f"<w, J v> = {left!r}, but <Jᵀ w, v> = {right!r}"


def _symmetric(hvp: PreparedSubject, hessian: PreparedSubject, axes: Any = None) -> Iterator[str]:
    """H v is H times v for a general v, and H is symmetric."""
    setting = hvp.setting
    (v,), matrix = setting.general("hvp"), hessian.base
    if axes is not None:
        v, matrix = symmetrised(v, axes), symmetrised(matrix, axes, both_sides=True)
    rows = tree.leaves(v)
    blocks = tree.leaves(matrix)
    grid = [blocks[start : start + len(rows)] for start in range(0, len(blocks), len(rows))]
    noise, counts = setting.noise("hvp"), [np.ndim(leaf) for leaf in rows]
    products = [[np.tensordot(b, s, axes=np.ndim(s)) for b, s in zip(row, rows, strict=True)] for row in grid]
    sizes = [
        [np.tensordot(abs(b), abs(s), axes=np.ndim(s)) for b, s in zip(row, map(np.asarray, rows), strict=True)]
        for row in grid
    ]
    got = hvp.result(hvp.with_vector((v,)))
    got = got if axes is None else symmetrised(got, axes)
    expected, size = (tree.filled(got, [sum(row) for row in table]) for table in (products, sizes))
    if differs := difference(got, expected, noise, size):
        yield f"H v is not H times v: {differs}"
    for i, row in enumerate(grid):
        for j, block in enumerate(row[: i + 1]):
            turned = np.moveaxis(grid[j][i], range(counts[j]), range(-counts[j], 0)) if counts[j] else grid[j][i]
            if differs := difference(block, turned, noise, np.abs(turned) + np.abs(block)):
                yield f"the Hessian is not symmetric in inputs {i} and {j}: {differs}"
                return


def _disagreements(test: Test, first: PreparedSubject, second: PreparedSubject) -> Iterator[str]:
    """The disagreements of two operators; of symmetric changes alone if the case reads one triangle of an input.

    There a library may follow one convention forward, and another one in reverse (`references.by_conventions`).
    """
    sentences = list(test(first, second, None))
    if sentences and (axes := first.setting.symmetric_axes) is not None:
        sentences = list(test(first, second, axes))
    yield from sentences


PAIRS: Mapping[str, tuple[tuple[Operator, Operator], Test]] = {
    "modes": (("jvp", "vjp"), _modes),
    "symmetric": (("hvp", "hessian"), _symmetric),
}
"""relation -> its two operators, and the test."""
