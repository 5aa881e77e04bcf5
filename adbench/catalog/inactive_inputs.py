"""Inputs that do nothing: a derivative that is negligible everywhere cannot show that a library has it wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from adbench.catalog.discovery import Catalog
from adbench.model.case import Case, function_of
from adbench.model.namespace import Namespace
from adbench.oracle.leaves import Point, direction_signs

NEGLIGIBLE = 1e-9
"""Of the value, or of what the other inputs do: a relative error that no verdict lets through elsewhere."""

STEP = 2.0**-10
DIRECTIONS = 3

MOST_SECONDS = 5.0
"""What the sizes of one case may take, before the next larger one is not begun."""


def dead_inputs(case: Case, size: int, seed: int = 0) -> list[str]:
    """The active inputs that do nothing, each in a sentence.

    Every array of an active input is moved in a random direction by a thousandth of its size, and in two more where
    that does nothing. It is dead where the value moves, per step, by less than 1e-9 of itself or of what the liveliest
    input does; or where the value is not finite. Runs the case on plain numpy, once or a few times for each input.
    """
    names, args, wrt = case.bind(size, seed)
    point = Point(args, wrt, names)
    text = function_of(case, names, Namespace(np))

    def value(which: int, step: np.ndarray | None) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(text(*point.moved([step if k == which else None for k in range(len(point.leaves))])))

    here = value(0, None)
    if not np.isfinite(here).all():
        return [f"the value at size {size} is {here.tolist() if here.ndim == 0 else 'not finite'}"]
    shapes = [leaf.values.shape for leaf in point.leaves]

    def effect(which: int, direction: int) -> float:
        step = STEP * point.leaves[which].scale * direction_signs(seed, direction, shapes)[which]
        move = np.max(np.abs(value(which, step) - here), initial=0.0)
        return float(move) / STEP if np.isfinite(move) else np.nan

    effects = [effect(which, 0) for which in range(len(shapes))]
    size_of_value = float(np.max(np.abs(here), initial=0.0))
    for direction in range(1, DIRECTIONS):  # for those in doubt: by ill luck one direction may do nothing
        most = max(size_of_value, np.nanmax(effects, initial=0.0))
        for which, found in enumerate(effects):
            if not found > NEGLIGIBLE * most:
                effects[which] = np.maximum(found, effect(which, direction))
    most = max(size_of_value, np.nanmax(effects, initial=0.0))
    return [
        f"input {leaf.path} does nothing at size {size}: the value moves by {found / (most or 1):.1g} of itself, "
        "so that a wrong derivative in it would not be seen"
        for leaf, found in zip(point.leaves, effects, strict=True)
        if leaf.values.size and not found > NEGLIGIBLE * most
    ]


@dataclass(frozen=True)
class Remark:
    """A line about a user's case: an input that does nothing (`dead`), or that nobody looked for one."""

    text: str
    dead: bool


def of_users_cases(catalog: Catalog, sizes: Mapping[str, Sequence[int]], seed: int) -> Iterator[Remark]:
    """What is dead in the user's own cases at these sizes; traps are left alone.

    Ours are held to the same by our tests. A case is given up, and says so, where that takes too long.
    """
    for name, wanted in sizes.items():
        if catalog.case_sources[name].builtin or catalog.cases[name].is_trap:
            continue
        begun = monotonic()
        for size in sorted(wanted):
            if monotonic() - begun > MOST_SECONDS:
                text = f"{name}: from size {size} on nobody looked for inputs that do nothing: that takes too long"
                yield Remark(text, dead=False)
                break
            try:
                sentences = dead_inputs(catalog.cases[name], size, seed)
            except Exception:  # a text that does not run on numpy is said where it is checked
                break
            yield from (Remark(f"{name}: {sentence}", dead=True) for sentence in sentences)
