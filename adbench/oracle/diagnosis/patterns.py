"""Naming the mistake behind a wrong derivative: a flipped sign, a factor, exchanged inputs, and the like.

A pattern predicts every returned number from the correct ones. It is named only if all predictions hold and chance is
excluded: each prediction that holds to k digits, and differs from the correct number, counts k; six are needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from adbench.oracle.evidence import MOST_DIGITS, EntryEvidence

ENOUGH_DIGITS = 6.0
RELATIVE = 1e-9
LEAST_SHIFTED = 3
NUMBERS = re.compile(r"\[(\d+(?:, \d+)*)\]")

Place = tuple[str, tuple[int, ...]]
"""An entry: its input, and its index; in a Jacobian the index of the output comes first."""


@dataclass(frozen=True)
class _Pattern:
    """`expected(place)` is the number that the mistake returns there; None if unknown."""

    name: str
    expected: Callable[[Place], float | None]
    is_fitted: bool = False


def pattern(entries: Sequence[EntryEvidence], value: float = math.nan) -> str:
    """The name of the mistake that explains all these numbers, or all numbers of the wrong inputs; else "".

    value   of the function, which some libraries return instead of the derivative
    """
    items = {_place(item): item for item in entries if math.isfinite(item.expected)}
    wrong = {place[0] for place, item in items.items() if item.word == "wrong"}
    if not wrong or not all(math.isfinite(item.got) for item in items.values()):
        return ""
    if name := _explaining(items, value):
        return name
    if len(wrong) == len({place[0] for place in items}):
        return ""
    name = _explaining({place: item for place, item in items.items() if place[0] in wrong}, value)
    return f"{name} in {', '.join(sorted(wrong))}" if name else ""


def is_conjugate(entries: Sequence[EntryEvidence]) -> bool:
    """Whether numbers between parts of complex numbers, as `output.real, z.imag[0]`, are all those of the conjugate.

    The derivatives of one kind of parts in the other then have the wrong sign.
    """
    items = {_place(item): item for item in entries if math.isfinite(item.expected) and math.isfinite(item.got)}

    def conjugate(place: Place) -> float:
        expected = items[place].expected
        return -expected if place[0].count(".imag") % 2 else expected

    return _explains(_Pattern("conjugate", conjugate), items)


def _explaining(items: dict[Place, EntryEvidence], value: float) -> str:
    return next((each.name for each in _patterns(items, value) if _explains(each, items)), "")


def _patterns(items: dict[Place, EntryEvidence], value: float) -> Iterator[_Pattern]:
    """Patterns, the likelier first."""

    def right(place: Place) -> float | None:
        return items[place].expected if place in items else None

    def times(factor: float) -> Callable[[Place], float | None]:
        return lambda place: factor * items[place].expected

    yield _Pattern("zero everywhere", lambda place: 0.0)
    yield _Pattern("sign flipped", times(-1.0))
    yield _Pattern("twice the correct number", times(2.0))
    yield _Pattern("half of the correct number", times(0.5))
    if math.isfinite(value):
        yield _Pattern("the value instead of the derivative", lambda place: value)
    for pair in combinations(dict.fromkeys(place[0] for place in items), 2):
        yield _Pattern(" and ".join(pair) + " exchanged", partial(_exchanged, right, pair))
    if all(index and len(index) % 2 == 0 for _, index in items):
        yield _Pattern("transposed", lambda place: right((place[0], _halves_exchanged(place[1]))))
    if len(items) >= LEAST_SHIFTED and all(index for _, index in items):
        yield _Pattern("shifted by one", lambda place: right((place[0], _moved(place[1], 1))))
        yield _Pattern("shifted by one", lambda place: right((place[0], _moved(place[1], -1))))
    largest = max(items.values(), key=lambda item: abs(item.expected))
    if len(items) > 1 and largest.expected:
        factor = largest.got / largest.expected
        yield _Pattern(f"{factor:.6g} times the correct number", times(factor), is_fitted=True)


def _exchanged(right: Callable[[Place], float | None], pair: tuple[str, str], place: Place) -> float | None:
    name, index = place
    return right((pair[1 - pair.index(name)] if name in pair else name, index))


def _explains(tried: _Pattern, items: dict[Place, EntryEvidence]) -> bool:
    guesses = {place: guess for place in items if (guess := tried.expected(place)) is not None}
    digits = []
    for place, guess in guesses.items():
        item = items[place]
        allowed = item.bound + RELATIVE * abs(guess)
        if not abs(item.got - guess) <= allowed:
            return False
        share = abs(guess - item.expected) / allowed if allowed else math.inf
        digits.append(min(math.log10(share), MOST_DIGITS) if share > 10 else 0.0)
    if tried.is_fitted:
        digits = sorted(digits)[:-1]  # one of them determined the factor
    return sum(digits) >= ENOUGH_DIGITS and 2 * len(guesses) > len(items)


def _place(item: EntryEvidence) -> Place:
    """The name and the indices of an entry: of `output[2], x[0, 1]`, the text without brackets, and all numbers."""
    if "output[" not in item.where and item.index:
        return item.where, item.index
    groups = NUMBERS.findall(item.place)
    return NUMBERS.sub("[]", item.place), tuple(int(number) for group in groups for number in group.split(","))


def _halves_exchanged(index: tuple[int, ...]) -> tuple[int, ...]:
    half = len(index) // 2
    return (*index[half:], *index[:half])


def _moved(index: tuple[int, ...], step: int) -> tuple[int, ...]:
    return (*index[:-1], index[-1] + step)
