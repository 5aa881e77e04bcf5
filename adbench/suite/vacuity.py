"""Inputs that do nothing: a derivative that is negligible everywhere cannot show that a library has it wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from adbench.oracle.leaves import Point, direction_signs
from adbench.suite.case import Case, function_of
from adbench.suite.catalog import Catalog
from adbench.suite.namespace import Namespace
from adbench.suite.record import Job

NEGLIGIBLE = 1e-9
"""Of the value, or of what the other inputs do: a relative error that no verdict lets through elsewhere."""

STEP = 2.0**-10
DIRECTIONS = 3


def dead_inputs(case: Case, size: int, seed: int = 0) -> list[str]:
    """The active inputs that do nothing, each in a sentence.

    Every array of an active input is moved in three random directions by a thousandth of its size. It is dead where
    the value moves, per step, by less than 1e-9 of itself or of what the liveliest input does; or where the value is
    not finite. Runs the case on plain numpy, a few times for each input.
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
    effects = []
    for which, leaf in enumerate(point.leaves):
        steps = [STEP * leaf.scale * direction_signs(seed, k, shapes)[which] for k in range(DIRECTIONS)]
        moves = [np.max(np.abs(value(which, step) - here), initial=0.0) for step in steps]
        effects.append(float(np.max(moves)) / STEP if np.isfinite(moves).all() else np.nan)
    most = max(float(np.max(np.abs(here), initial=0.0)), np.nanmax(effects, initial=0.0))
    return [
        f"input {leaf.path} does nothing at size {size}: the value moves by {effect / (most or 1):.1g} of itself, "
        "so that a wrong derivative in it would not be seen"
        for leaf, effect in zip(point.leaves, effects, strict=True)
        if leaf.values.size and not effect > NEGLIGIBLE * most
    ]


def warnings(catalog: Catalog, jobs: Sequence[Job], seed: int) -> list[str]:
    """What is dead in the user's own cases among the jobs, at their smallest sizes, each in one line."""
    smallest: Mapping[str, int] = {job.case: job.size for job in sorted(jobs, reverse=True)}
    found = []
    for name, size in smallest.items():
        if catalog.case_sources[name].builtin or catalog.cases[name].is_trap:
            continue
        try:
            found += [f"{name}: {sentence}" for sentence in dead_inputs(catalog.cases[name], size, seed)]
        except Exception:  # a text that does not run on numpy is said where it is checked
            continue
    return found
