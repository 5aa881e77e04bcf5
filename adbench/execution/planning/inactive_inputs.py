"""Inputs that do nothing: if a derivative is negligible everywhere, a wrong one goes unnoticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

import numpy as np

from adbench.catalog.discovery import Catalog
from adbench.model.case import Case, function_of
from adbench.model.errors import contained
from adbench.model.namespace import Namespace
from adbench.oracle.leaves import Point

NEGLIGIBLE = 1e-9
"""Relative to the value or to the effect of the other inputs; no verdict accepts a relative error of this size."""

STEP = 2.0**-10
DIRECTIONS = 3

MOST_SECONDS = 5.0
"""That one case may take before its next larger size is started."""


def inactive_inputs(case: Case, size: int, seed: int = 0) -> list[str]:
    """The active inputs that do nothing, each in a sentence.

    Every array of an active input is moved in a random direction by a thousandth of its size. If the value moves, per
    step, by less than 1e-9 of itself or of the largest effect of any input, the case's text decides: the input is
    inactive if its derivative along that direction is exactly 0. Where the text does not tell, two more directions must
    not move the value either. All are inactive if the value is not finite. Runs the case on plain numpy, once or a few
    times for each input.
    """
    names, args, wrt = case.bind(size, seed)
    point = Point(args, wrt, names)
    text = function_of(case, names, Namespace(np))
    shape = np.shape(text(*args)) if case.is_array_valued else ()

    def value(which: int, step: np.ndarray | None) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(text(*point.moved([step if k == which else None for k in range(len(point.leaves))])))

    here = value(0, None)
    if not np.isfinite(here).all():
        return [f"the value at size {size} is {here.tolist() if here.ndim == 0 else 'not finite'}"]

    def effect(which: int, direction: int) -> float:
        step = point.steps(seed, direction)[which]
        move = np.max(np.abs(value(which, STEP * step) - here), initial=0.0)
        return float(move) / STEP if np.isfinite(move) else np.nan

    effects = [effect(which, 0) for which in range(len(point.leaves))]
    size_of_value = float(np.max(np.abs(here), initial=0.0))
    most = max(size_of_value, np.nanmax(effects, initial=0.0))
    sentences = []
    for which, leaf in enumerate(point.leaves):
        if leaf.values.size and not effects[which] > NEGLIGIBLE * most:
            if _matters(case, names, point, shape, which, seed):
                continue
            again = [effects[which], *(effect(which, direction) for direction in range(1, DIRECTIONS))]
            moves = max((move for move in again if np.isfinite(move)), default=0.0)
            if not moves > NEGLIGIBLE * most:
                by = f"changes by a share of only {moves / most:.1g}" if moves else "does not change"
                sentences.append(
                    f"input {leaf.path} does nothing at size {size}: the value {by}, so a wrong derivative would go "
                    "unnoticed; check your function"
                )
    return sentences


def _matters(case: Case, names: tuple[str, ...], point: Point, shape: tuple[int, ...], which: int, seed: int) -> bool:
    """Whether the case's text proves that the value changes with this leaf."""
    from adbench.oracle.precise import NotPrecise, is_flat  # not at the top: few inputs are in doubt
    from adbench.oracle.subject import Effort, Subject

    text = lambda xp, *values: function_of(case, names, xp)(*values)  # noqa: E731 - named for what it runs on
    subject = Subject(function_of(case, names, Namespace(np)), point, text, shape)
    with suppress(NotPrecise):
        return not is_flat(subject, which, Effort(seed=seed))
    return False


@dataclass(frozen=True)
class Notice:
    """A line about a user's case: one of its inputs is `inactive`, or the search took too long."""

    text: str
    inactive: bool


def of_own_cases(catalog: Catalog, sizes: Mapping[str, Sequence[int]], seed: int) -> Iterator[Notice]:
    """The inactive inputs of the user's cases at these sizes, except traps.

    Our tests hold the built-in cases to the same. The search in a case ends, with a notice, if it takes too long.
    """
    for name, wanted in sizes.items():
        if catalog.case_sources[name].builtin or catalog.cases[name].is_trap:
            continue
        begun = monotonic()
        for size in sorted(wanted):
            if monotonic() - begun > MOST_SECONDS:
                text = f"{name}: inputs that do nothing were searched only below size {size}: it takes too long"
                yield Notice(text, inactive=False)
                break
            try:
                with contained():
                    sentences = inactive_inputs(catalog.cases[name], size, seed)
            except Exception:  # the check reports a case that does not run on numpy
                break
            yield from (Notice(f"{name}: {sentence}", inactive=True) for sentence in sentences)
