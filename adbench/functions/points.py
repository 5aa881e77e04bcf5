"""The points at which a user's function is checked, by their numbers: its own, then other signs, then others in turns.

A derivative by hand is often wrong for a sign that the given point does not have. So the first points after it have
mixed signs, zeros and negative numbers; then special points alternate with random ones around the given point.

A function that reads one triangle of a symmetric matrix, as eigvalsh does, means symmetric matrices. Elsewhere the
conventions of libraries differ, and a random change of each entry would call a correct library wrong. So these inputs
stay symmetric at all points. All other inputs change freely.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.catalog.ad_hoc import at_size
from adbench.functions.user_arguments import Arguments, Leaf
from adbench.model.case import Case
from adbench.model.namespace import PLAIN
from adbench.oracle.leaves import Point, is_symmetric, power_of_two

GIVEN = "the given point"
MOST_OUTSIDE = 16  # points that are replaced by others, beyond one for each requested point
SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "minus the given point": np.negative,
    "equal entries": lambda x: np.full_like(x, np.ravel(x)[0] if np.size(x) else 0.0),
}
"""Points where derivatives by hand often fail, computed from the given one. The last needs several entries."""

SIGNS = ("mixed signs", "zero entries", "negative entries")
"""The first points after the given one, if they have several entries. They count over all leaves."""
OTHER_SIGN = ("the other sign",)
"""The same for a single number; zero follows, and then another number of the same sign."""
BY_SIGNS = (*SIGNS, *OTHER_SIGN)

NEARNESS = (1.0, 2.0**-3, 2.0**-6, 2.0**-12, 2.0**-24)
"""A random point outside the domain comes closer to the given one: shares of its distance."""

SIZES = ((0.5, 1.0), (0.0, 1.0), (0.0, 2.0**-6))
"""The same for other signs, as (change, factor) of the sizes of entries: other sizes, the given ones, small ones."""


def name_of_point(number: int, entries: int) -> str:
    """ "the given point", "mixed signs", "random point 5", ...; entries: the number of active entries."""
    if number == 0:
        return GIVEN
    first = _first(entries)
    if number <= len(first):
        return first[number - 1]
    later, special = number - len(first) - 1, tuple(SPECIAL)[: 4 if entries > 1 else 3]  # one entry equals itself
    return special[later // 2] if later % 2 == 0 and later // 2 < len(special) else f"random point {number}"


def points_inside(case: Case, first: int, count: int) -> tuple[list[int], list[int]]:
    """The numbers of the first point and the next ones where the case of a `UserFunction` is defined, and those of
    points left out."""
    case = at_size(case, case.sizes[0])
    f: Any = case.f
    inside, outside = [first], list[int]()
    for number in range(first + 1, first + 2 * count + MOST_OUTSIDE):
        if len(inside) == count:
            break
        args = case.bind(case.sizes[0], number)[1]
        (inside if f.is_defined(args) else outside).append(number)
    return inside, outside


def following(number: int, entries: int) -> int:
    """The next random point whose entries have the signs of the given ones, so that it is probably in the domain."""
    return next(k for k in range(number + 1, number + 20) if _has_given_signs(k, entries))


def moved(
    given: Sequence[Leaf], number: int, seed: int, is_inside: Callable[[Sequence[Leaf]], bool]
) -> tuple[Leaf, ...]:
    """The active leaves at the point with this number; the last try if the function is defined at none of them.

    is_inside   whether the function is defined at these leaves
    """
    arrays = [np.asarray(leaf, dtype=np.float64) for leaf in given]
    which = name_of_point(number, sum(array.size for array in arrays))
    found: tuple[Leaf, ...] = ()
    for attempt in range(1 if which in SPECIAL else len(SIZES if which in BY_SIGNS else NEARNESS)):
        numbers = _numbers(arrays, number, np.random.default_rng([seed, number]), attempt)
        found = tuple(
            np.array(new, dtype=np.float64) if isinstance(leaf, np.ndarray) else float(new)
            for leaf, new in zip(given, numbers, strict=True)
        )
        if is_inside(found):
            break
    return found


def symmetric_inputs(function: Callable[..., Any], arguments: Arguments, shape: tuple[int, ...]) -> frozenset[str]:
    """The names of the active inputs that are exactly symmetric, and of which ``function(xp, **inputs)`` reads one
    triangle.

    shape   of its value
    """
    names, values = arguments.names, arguments.values
    active = [k for k, name in enumerate(names) if name in arguments.active]
    if not any(is_symmetric(np.asarray(values[k])) for k in active):
        return frozenset()
    from adbench.oracle.precise import symmetric_reads  # not at the top: few inputs are symmetric
    from adbench.oracle.subject import Effort, Subject

    def text(xp: Any, *leaves: Any) -> Any:
        return function(xp, **dict(zip(names, leaves, strict=True)))

    def plain(*leaves: Any) -> Any:
        return text(PLAIN, *leaves)

    reads = symmetric_reads(Subject(plain, Point(values, active, names), text, shape), Effort())
    return frozenset(names[active[k]] for k in reads.leaves)


def with_symmetric(point: Mapping[str, Leaf], names: Collection[str]) -> dict[str, Leaf]:
    """The point with ½ (A + Aᵀ) for the inputs of these names."""
    return {
        name: (leaf + np.matrix_transpose(leaf)) / 2 if name in names and isinstance(leaf, np.ndarray) else leaf
        for name, leaf in point.items()
    }


def _numbers(given: Sequence[Any], number: int, rng: np.random.Generator, attempt: int) -> list[Any]:
    entries = sum(x.size for x in given)
    which = name_of_point(number, entries)
    if which in SPECIAL:
        return [SPECIAL[which](x) for x in given]
    draws = [rng.normal(size=x.shape) for x in given]
    if which not in BY_SIGNS:
        near = _scaled if _has_given_signs(number, entries) else _shifted
        return [near(x, 0.5 * NEARNESS[attempt] * draw) for x, draw in zip(given, draws, strict=True)]
    change, factor = SIZES[attempt]
    sizes = [factor * np.abs(_scaled(x, change * draw)) for x, draw in zip(given, draws, strict=True)]
    signs = _signs(which, np.concatenate([x.ravel() for x in given]), rng)
    parts = np.split(signs, np.cumsum([x.size for x in given])[:-1])
    return [size * part.reshape(size.shape) for size, part in zip(sizes, parts, strict=True)]


def _signs(which: str, given: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """1, -1 or 0 for each entry."""
    if which == "negative entries":
        return np.full(given.size, -1.0)
    own = np.where(given < 0, -1.0, 1.0)
    if which in OTHER_SIGN:
        return -own
    half = rng.permutation(np.arange(given.size) % 2 == 0)
    is_mixed = abs(own.sum()) < own.size
    mixed = -own if is_mixed else np.where(half, own, -own)
    return mixed if which == "mixed signs" else np.where(half, 0.0, -mixed if is_mixed else mixed)


def _scaled(x: Any, draw: Any) -> Any:
    """Other sizes with the same signs."""
    return np.where(x == 0, 0.5 * _scale(x), x) * np.exp(draw)


def _shifted(x: Any, draw: Any) -> Any:
    """Changed by about a draw of the sizes of its entries."""
    return x + _scale(x) * draw


def _scale(x: Any) -> float:
    sizes = np.abs(x[x != 0])
    return power_of_two(float(np.median(sizes))) if sizes.size else 1.0


def _first(entries: int) -> tuple[str, ...]:
    return SIGNS if entries > 1 else OTHER_SIGN


def _has_given_signs(number: int, entries: int) -> bool:
    is_random = name_of_point(number, entries).startswith("random")
    return is_random and (number - len(_first(entries))) // 2 % 2 == 1
