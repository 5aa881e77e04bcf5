"""Symmetric inputs of a user's function, which stay symmetric at its other points.

A function that reads one triangle, as eigvalsh does, means symmetric matrices. Elsewhere the conventions of libraries
differ, and a random change of each entry would call a correct library wrong. All other inputs change freely.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from adbench.functions.user_arguments import Arguments, Leaf
from adbench.model.namespace import PLAIN
from adbench.oracle.leaves import is_symmetric


def symmetric_inputs(function: Callable[..., Any], arguments: Arguments, shape: tuple[int, ...]) -> frozenset[str]:
    """The names of the active inputs that are exactly symmetric, and of which ``function(xp, **inputs)`` reads one
    triangle.

    shape   of its value
    """
    names, values = arguments.names, arguments.values
    active = [k for k, name in enumerate(names) if name in arguments.active]
    if not any(is_symmetric(np.asarray(values[k])) for k in active):
        return frozenset()
    from adbench.oracle.precise import NotPrecise, symmetric_reads  # not at the top: few inputs are symmetric
    from adbench.oracle.subject import Effort, Subject

    def text(xp: Any, *leaves: Any) -> Any:
        return function(xp, **dict(zip(names, leaves, strict=True)))

    def plain(*leaves: Any) -> Any:
        return text(PLAIN, *leaves)

    try:
        found = symmetric_reads(Subject.of(plain, values, active, text=text, names=names, shape=shape), Effort())
    except NotPrecise:  # it reads its inputs in an unknown way
        return frozenset()
    return frozenset(names[active[k]] for k in found.leaves)


def with_symmetric(point: Mapping[str, Leaf], names: Collection[str]) -> dict[str, Leaf]:
    """The point with ½ (A + Aᵀ) for the inputs of these names."""
    return {
        name: (leaf + np.matrix_transpose(leaf)) / 2 if name in names and isinstance(leaf, np.ndarray) else leaf
        for name, leaf in point.items()
    }
