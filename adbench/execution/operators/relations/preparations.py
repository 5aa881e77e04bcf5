"""Relations that prepare an operator again: with other active inputs, at other inputs, from arrays that change."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from adbench.execution.operators.relations.setting import (
    Args,
    NotApplicable,
    PreparedSubject,
    Setting,
    combined,
    described,
)
from adbench.model import tree
from adbench.model.errors import Unsupported
from adbench.model.operator import Operator, definition

MOST_SUBSETS = 6
Wrt = tuple[int, ...]


def subsets_of(wrt: Wrt) -> list[Wrt]:
    """Sets of active inputs to prepare one operator of a case with: some proper subsets, smaller ones first, and all
    inputs in another order."""
    subsets = [chosen for n in range(1, len(wrt)) for chosen in combinations(wrt, n)][:MOST_SUBSETS]
    return subsets + [wrt[::-1]] * (len(wrt) > 1)


def choices(setting: Setting, operator: Operator, number: int) -> list[Wrt]:
    """The active inputs to prepare the operator with. The case's first derivative gets all `subsets_of` them.

    Other operators get some of them in another order; of two inputs, either their other order or one alone, alternating
    over operators and cases. A backend that builds each set separately gets all, in another order. The value does not
    depend on the active inputs.

    number   of the operator, among the backend's
    """
    wrt = setting.at.wrt
    if operator == "value" or len(wrt) == 1:
        return [wrt]
    if number == 0:
        return subsets_of(wrt)
    if setting.backend.build is not None:
        return [wrt[::-1]]
    left_out = (number + zlib.crc32(setting.case.name.encode())) % len(wrt)
    some = tuple(position for k, position in enumerate(wrt) if k != left_out)
    return [some[::-1]] if len(some) > 1 else [wrt[::-1], some]


def variant_faults(subject: PreparedSubject, wrt: Wrt) -> Iterator[tuple[str, str]]:
    """(relation, fault) of the operator prepared at other inputs, from arrays that are overwritten, for these active
    inputs.

    All three changes at once; if the result is wrong, a search finds the cause. Then the two prepared operators
    alternate. Raises Unsupported if the backend has no such operator.
    """
    variant = _Variant(subject, wrt)
    call, fault = variant.tried(elsewhere=True, overwritten=True)
    if fault:
        yield variant.cause(), f"{variant.what}{fault}"
    else:
        yield from _in_turns(subject, variant, call)


class _OtherParts(Exception):
    """A result does not have one part for each active input."""


def _parts(result: Any, count: int) -> Any:
    if not isinstance(result, tuple | list) or len(result) != count:
        actual = f"{len(result)} parts" if isinstance(result, tuple | list) else f"a {type(result).__name__}"
        raise _OtherParts(f"the result is {actual}; expected {count}")
    return result


def _in_turns(subject: PreparedSubject, variant: _Variant, call: Any) -> Iterator[tuple[str, str]]:
    """Call the subject after the variant, then the variant after the subject."""
    try:
        for fault in subject.faults("after a call of another prepared operator", subject.native()):
            yield "interleaved", fault
        if fault := variant.fault(call):
            yield "interleaved", f"after a call of another prepared operator: {variant.what}{fault}"
    except (Unsupported, NotImplementedError):
        raise
    except Exception as error:  # raised by the library: a fault that is reported
        yield "interleaved", described(error)


@dataclass
class _Variant:
    """The subject's operator, prepared with other active inputs."""

    subject: PreparedSubject
    wrt: Wrt

    @cached_property
    def what(self) -> str:
        """The active inputs in words; "" if they are the subject's."""
        setting = self.subject.setting
        if self.wrt == setting.at.wrt:
            return ""
        alone = " alone" if len(self.wrt) < len(setting.at.wrt) else ""
        return f"in {', '.join(setting.at.names[position] for position in self.wrt)}{alone}: "

    @property
    def chosen(self) -> tuple[int, ...]:
        """The indices of its inputs among the subject's active inputs."""
        return tuple(map(self.subject.setting.at.wrt.index, self.wrt))

    def tried(self, *, elsewhere: bool, overwritten: bool) -> tuple[Any, str]:
        """The call prepared like this, and why its result here is wrong, or ""."""
        try:
            call = self._prepared(elsewhere, overwritten)
            return call, self.fault(call)
        except (Unsupported, NotImplementedError):
            raise
        except Exception as error:  # raised by the library: a fault that is reported
            return None, described(error)

    def cause(self) -> str:
        """The broken relation: the first change that alone gives a wrong result."""
        if self.what and self.tried(elsewhere=False, overwritten=False)[1]:
            return "subsets"
        return "elsewhere" if self.tried(elsewhere=True, overwritten=False)[1] else "overwritten"

    def fault(self, call: Any) -> str:
        """Why the result here is wrong, or ""."""
        setting, subject = self.subject.setting, self.subject
        vector = setting.at.vector(subject.operator)
        got = setting.numpy(call(*setting.native((*setting.at.args, *self._of_active(vector)))))
        expected = subject.base
        if len(self.wrt) < len(subject.wrt) and definition(subject.operator).vector == "tangent":
            chosen = tuple(x if i in self.chosen else tree.like(x, np.zeros_like) for i, x in enumerate(vector[0]))
            expected = subject.result(subject.with_vector((chosen,)))
        if definition(subject.operator).result == "value":
            sizes = combined(lambda a, b: np.abs(a) + np.abs(b), expected, subject.base)
            return subject.disagreement(got, expected, sizes)
        try:
            return subject.disagreement(self._completed(got, expected), expected)
        except _OtherParts as error:
            return str(error)

    def _completed(self, got: Any, whole: Any) -> Any:
        """The parts in the subject's order, with those of `whole` for omitted inputs."""
        result = definition(self.subject.operator).result
        if result == "pair":
            value, gradient = _parts(got, 2)
            return value, self._inserted(gradient, whole[1])
        if result == "hessian":
            blocks = _parts(got, len(self.wrt))
            rows = [self._row(i, row, whole[i]) for row, i in zip(blocks, self.chosen, strict=True)]
            return self._inserted(rows, whole)
        return self._inserted(got, whole)

    def _row(self, i: int, row: Any, whole: Any) -> Any:
        """The rows of a Hessian for one input, each a tuple of blocks: one for each leaf of the input."""
        structure = tree.structure(self.subject.setting.at.args[self.subject.wrt[i]])
        pairs = zip(structure.flatten_up_to(row), structure.flatten_up_to(whole), strict=True)
        return structure.unflatten([self._inserted(*pair) for pair in pairs])

    def _inserted(self, parts: Any, whole: Any) -> tuple[Any, ...]:
        places = dict(zip(self.chosen, _parts(parts, len(self.wrt)), strict=True))
        return tuple(places.get(i, part) for i, part in enumerate(whole))

    def _of_active(self, vector: Args) -> Args:
        """The vector for these active inputs."""
        if definition(self.subject.operator).vector != "tangent":
            return vector
        return (tuple(vector[0][i] for i in self.chosen),)

    def _prepared(self, elsewhere: bool, overwritten: bool) -> Any:
        setting, operator = self.subject.setting, self.subject.operator
        examples = self._examples(elsewhere)
        call = setting.prepare(operator, setting.backend.native_inputs(examples), self.wrt)
        if elsewhere and setting.case.prepared is None:  # a library that records at its first call now records there
            setting.numpy(call(*setting.native(examples)))
        if overwritten:
            for leaf in tree.leaves(examples):
                if isinstance(leaf, np.ndarray):
                    leaf[...] = np.nan
        return call

    def _examples(self, elsewhere: bool) -> Args:
        setting = self.subject.setting
        inputs = setting.case.bind_prepared(setting.size, setting.seed)
        if elsewhere:
            with suppress(NotApplicable):  # the case defines `prepared`
                inputs = setting.there.args
        inputs = (*inputs, *self._of_active(setting.at.vector(self.subject.operator)))
        return tuple(map(tree.copied, inputs))
